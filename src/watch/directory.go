// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/beep-lb/beep/src/model"
)

const (
	// settle is how long a directory must be quiet before it is read: an editor writes a file in several steps.
	settle = 100 * time.Millisecond
	// look is how often a directory is read without being told to: file systems of other machines tell nothing.
	look = 30 * time.Second
)

// Directory is a Source of YAML files: every *.yaml and *.yml of a directory, of one or several documents, each a
// Service, an EndpointSlice, a Node or a List of them. It is read again when it changes; while a document in it is
// wrong, what was read before stays.
type Directory struct {
	bell
	path string
	log  *slog.Logger

	lock     sync.Mutex
	snapshot model.Snapshot
	fault    error
	read     bool
}

// OpenDirectory reads the manifests for the first time. It fails if one of them is wrong, with a line for each.
func OpenDirectory(path string, log *slog.Logger) (*Directory, error) {
	d := &Directory{path: path, log: log}
	if err := d.reload(); err != nil {
		return nil, err
	}
	return d, nil
}

// Snapshot returns the last directory that was right as a whole.
func (d *Directory) Snapshot() (model.Snapshot, bool) {
	d.lock.Lock()
	defer d.lock.Unlock()
	return d.snapshot, d.read
}

// Fault is what is wrong with the files as they are now, or nil. Then Snapshot is older than they.
func (d *Directory) Fault() error {
	d.lock.Lock()
	defer d.lock.Unlock()
	return d.fault
}

// Run reads the directory again when it changes.
func (d *Directory) Run(ctx context.Context) {
	var events chan fsnotify.Event
	var errs chan error
	watcher, err := fsnotify.NewWatcher()
	if err == nil {
		defer watcher.Close()
		events, errs = watcher.Events, watcher.Errors
		err = watcher.Add(d.path)
	}
	if err != nil {
		d.log.Warn("manifests are not watched, but read at times", "dir", d.path, "every", look, "error", err)
	}
	timer := time.NewTimer(settle) // what changed since OpenDirectory
	for {
		select {
		case <-ctx.Done():
			return
		case <-events:
			timer.Reset(settle)
		case err := <-errs: // events were lost
			d.log.Debug("watch of manifests", "error", err)
			timer.Reset(settle)
		case <-timer.C:
			if d.unsettled() {
				timer.Reset(settle)
				continue
			}
			if err := d.reload(); err != nil {
				d.log.Error("manifests are wrong, those from before stay in force", "error", err)
			}
			timer.Reset(look)
		}
	}
}

// unsettled reports whether a file has only just been written: its writer may have emptied it and not be done, and
// half a file must not take Services away.
func (d *Directory) unsettled() bool {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return false
	}
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && time.Since(info.ModTime()).Abs() < settle {
			return true
		}
	}
	return false
}

// reload reads the directory. It returns a fault only once, and notes it for Fault.
func (d *Directory) reload() error {
	m, err := readManifests(d.path)
	d.lock.Lock()
	defer d.lock.Unlock()
	if err != nil {
		again := d.fault != nil && d.fault.Error() == err.Error()
		d.fault = err
		if again {
			return nil
		}
		d.ring() // whoever shows the fault
		return err
	}
	if d.fault != nil {
		d.log.Info("manifests are right again")
		d.fault = nil
		d.ring()
	}
	if snapshot := m.snapshot(); !d.read || !reflect.DeepEqual(snapshot, d.snapshot) {
		d.snapshot, d.read = snapshot, true
		d.log.Info("manifests read", "services", len(snapshot.Services), "slices", len(snapshot.Slices), "nodes", len(snapshot.Nodes))
		d.ring()
	}
	return nil
}

// snapshot is what the manifests say, as an API server would hand it out: Services of other types and headless
// slices stay out.
func (m *manifests) snapshot() model.Snapshot {
	var s model.Snapshot
	for _, service := range m.services {
		if service.Spec.Type == "LoadBalancer" {
			s.Services = append(s.Services, convertService(service))
		}
	}
	for _, slice := range m.slices {
		if _, headless := slice.Labels[labelHeadless]; !headless {
			s.Slices = append(s.Slices, convertSlice(slice))
		}
	}
	for _, node := range m.nodes {
		s.Nodes = append(s.Nodes, convertNode(node))
	}
	return s
}

// String names the source for a person.
func (d *Directory) String() string { return fmt.Sprintf("the manifests in %s", d.path) }
