// SPDX-License-Identifier: Apache-2.0

// Package transcript holds what processes print, for whoever reads it while they still do. Invariant: writes and reads may come
// from any goroutines at once, and what was written stays.
package transcript

import (
	"bytes"
	"sync"
)

// Transcript is an io.Writer for one or several streams; the zero value is empty and ready.
type Transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends; it never fails.
func (t *Transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(p)
}

// String is all that has been written so far.
func (t *Transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}
