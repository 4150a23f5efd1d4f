// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// errNotYet says that the maps have not been made as desired.
var errNotYet = errors.New("the maps have not been made as desired yet")

// readyFile is there while the maps have been made as desired once by this process. A kubelet's probe looks for it.
type readyFile struct {
	path string

	lock sync.Mutex
	// missing says why it is not there.
	missing error
}

// newReadyFile removes the file that a process before may have left.
func newReadyFile(path string) (*readyFile, error) {
	r := &readyFile{path: path, missing: errNotYet}
	return r, r.remove()
}

// err says why the file is not there, or nil.
func (r *readyFile) err() error {
	r.lock.Lock()
	defer r.lock.Unlock()
	return r.missing
}

// because notes why the file is not there yet; nil is no news.
func (r *readyFile) because(err error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.missing != nil && err != nil {
		r.missing = fmt.Errorf("%w: %w", errNotYet, err)
	}
}

// create makes the file. It returns whether it was not there.
func (r *readyFile) create() (bool, error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.missing == nil {
		return false, nil
	}
	if err := os.WriteFile(r.path, []byte("ready\n"), 0o644); err != nil {
		return false, fmt.Errorf("--ready-file: %w", err)
	}
	r.missing = nil
	return true, nil
}

// remove removes the file, if it is there.
func (r *readyFile) remove() error {
	if err := os.Remove(r.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--ready-file: %w", err)
	}
	return nil
}
