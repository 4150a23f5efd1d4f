// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/src/datapath/maps"
	"github.com/beep-lb/beep/src/datapath/pinfs"
	"github.com/beep-lb/beep/src/reconcile"
)

const (
	// lookAtPins is how often the pins are looked at: `beep run` replaces maps when it is upgraded or resized.
	lookAtPins = time.Second
	// patience is how often a wait that goes on is logged.
	patience = time.Minute
)

// pins are the maps of this node, which `beep run` makes and may replace.
type pins struct {
	path string

	lock sync.Mutex
	// rows are the maps, nil before Open.
	rows       *maps.Kernel
	reconciler *reconcile.Reconciler
	// mark tells these maps from their successors.
	mark string
	// right is to fill them, for as long as this process lives and the folder is the same.
	right *pinfs.Lock
}

// wait opens the maps as soon as they are there, and tells waits why they cannot be. It fails if another controller
// fills them.
func (p *pins) wait(ctx context.Context, log *slog.Logger, waits func(error)) error {
	var complained time.Time
	for {
		_, _, err := p.current()
		if err == nil || errors.Is(err, pinfs.ErrRowsLocked) {
			return err
		}
		waits(fmt.Errorf("waiting for the maps of beep run: %w", err))
		if time.Since(complained) >= patience {
			log.Warn("waiting for the maps of beep run", "pin_dir", p.path, "error", err)
			complained = time.Now()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lookAtPins):
		}
	}
}

// claim takes the right to fill the maps, where it is not held.
func (p *pins) claim() error {
	if p.right != nil && !p.right.Lost() {
		return nil
	}
	p.unclaim()
	dir, err := pinfs.Open(p.path)
	if err != nil {
		return err
	}
	p.right, err = dir.LockRows()
	return err
}

func (p *pins) unclaim() {
	if p.right != nil {
		p.right.Unlock() //nolint:errcheck // it ends with the process anyway
		p.right = nil
	}
}

// current returns the maps that are pinned now, if no other controller fills them. They are closed when others take
// their place: for one goroutine.
func (p *pins) current() (*maps.Kernel, *reconcile.Reconciler, error) {
	mark, err := fingerprint(p.path)
	if err != nil {
		return nil, nil, err
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.rows != nil && mark == p.mark {
		return p.rows, p.reconciler, nil
	}
	if err := p.claim(); err != nil {
		return nil, nil, err
	}
	rows, err := maps.Open(p.path)
	if err != nil {
		return nil, nil, err
	}
	if p.rows != nil {
		p.rows.Close()
	}
	p.rows, p.mark, p.reconciler = rows, mark, reconcile.New(rows, time.Now)
	return p.rows, p.reconciler, nil
}

// watch tells of maps that were replaced, until ctx ends.
func (p *pins) watch(ctx context.Context, replaced func()) {
	ticks := time.NewTicker(lookAtPins)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		mark, err := fingerprint(p.path)
		p.lock.Lock()
		other := err == nil && mark != p.mark
		p.lock.Unlock()
		if other {
			replaced()
		}
	}
}

// serving says whether the maps hold fronts. If they cannot be read it is taken that they do.
func (p *pins) serving() bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.rows == nil {
		return true
	}
	fronts, err := p.rows.Fronts()
	return err != nil || len(fronts) > 0
}

// close closes the maps; what is pinned lives on.
func (p *pins) close() {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.rows != nil {
		p.rows.Close()
	}
	p.unclaim()
}

// fingerprint tells the maps that are pinned from others that take their names: a pin is an inode, and one that is
// renamed over another keeps its own.
func fingerprint(path string) (string, error) {
	dir, err := pinfs.Open(path)
	if err != nil {
		return "", err
	}
	names, err := dir.Maps()
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, name := range names {
		var stat unix.Stat_t
		if err := unix.Stat(dir.MapPath(name), &stat); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				continue // it was just renamed
			}
			return "", &os.PathError{Op: "stat", Path: dir.MapPath(name), Err: err}
		}
		fmt.Fprintf(&text, "%s %d\n", name, stat.Ino)
	}
	return text.String(), nil
}
