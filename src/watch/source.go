// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"sync"

	"github.com/beep-lb/beep/src/model"
)

// Source is where Snapshots come from.
type Source interface {
	// Run keeps the Snapshot as it should be until ctx ends. What goes wrong meanwhile is logged and tried again.
	Run(ctx context.Context)
	// Changed returns a channel that receives after changes, several in one; whoever asks gets a channel of its own.
	// Ask before Run.
	Changed() <-chan struct{}
	// Snapshot returns what is known. ok is false until all three lists are complete and processed: then nothing may
	// be concluded from what is there, and less from what is not.
	Snapshot() (snapshot model.Snapshot, ok bool)
	// Fault is what is wrong with the source now, or nil: why a list is not complete, or why Snapshot is older than
	// what there is.
	Fault() error
}

var (
	_ Source = (*Cluster)(nil)
	_ Source = (*Directory)(nil)
)

// bell tells any number of listeners, each by a channel that holds one receipt.
type bell struct {
	lock      sync.Mutex
	listeners []chan struct{}
}

// Changed returns a new listener's channel.
func (b *bell) Changed() <-chan struct{} {
	b.lock.Lock()
	defer b.lock.Unlock()
	listener := make(chan struct{}, 1)
	b.listeners = append(b.listeners, listener)
	return listener
}

// ring tells every listener, and waits for none.
func (b *bell) ring() {
	b.lock.Lock()
	defer b.lock.Unlock()
	for _, listener := range b.listeners {
		select {
		case listener <- struct{}{}:
		default:
		}
	}
}
