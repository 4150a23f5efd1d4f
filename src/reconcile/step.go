// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/beep-lb/beep/src/datapath/maps"
	"github.com/beep-lb/beep/src/model"
)

// configObject is the Object of a step that writes CONFIG.
const configObject = "config"

// Action is what a step does.
type Action string

// The actions of a step.
const (
	Added   Action = "added"
	Changed Action = "changed"
	Removed Action = "removed"
	// Renewed is a new epoch alone: every flow is checked anew against who is trusted.
	Renewed Action = "renewed"
	// Collected is the removal of rows that no front has used since their grace.
	Collected Action = "collected"
)

// Step is the smallest change that leaves every front whole; it is made completely or not at all. Only the
// collection of rows that no front names may stop half-way, and the removal of source ranges that are in force still.
type Step struct {
	// Object is the kind of thing that changes: "config", "front", "peer", "target", or "rows" for the rows of a
	// generation that is not in force.
	Object string
	// Name is the thing itself, as a socket, an address or a Generation.
	Name string
	// Action is what happens to it.
	Action Action
	// Detail says what it becomes, in words; it may be empty.
	Detail string

	writes []write
	// then are what is left to do once the step is made. What fails of it the next plan finds.
	then []write
	// retires are the generations that stop being in force; one whose Front is 0 is none.
	retires []Generation
}

// String is the step in one line, as "front TCP/192.0.2.1:80 added: 3 endpoints".
func (s Step) String() string {
	text := fmt.Sprintf("%s %s %s", s.Object, s.Name, s.Action)
	if s.Detail != "" {
		text += ": " + s.Detail
	}
	return text
}

// apply makes the step's writes in order, and says whether it made the step. If not, it took back what it put.
func (s Step) apply(m maps.Maps) (made bool, err error) {
	for i, w := range s.writes {
		if err := w.apply(m); err != nil {
			return false, fmt.Errorf("%s %s: %w", s.Object, s.Name, errors.Join(err, takeBack(m, s.writes[:i])))
		}
	}
	for _, w := range s.then {
		if err := w.apply(m); err != nil {
			return true, fmt.Errorf("%s %s: %w", s.Object, s.Name, err)
		}
	}
	return true, nil
}

// distrusts says that the step takes trust from somebody, which needs a new epoch.
func (s Step) distrusts() bool {
	for _, w := range slices.Concat(s.writes, s.then) {
		switch w.(type) {
		case deletePeer, deleteTarget, deleteSource, raiseEpoch:
			return true
		}
	}
	return false
}

// takeBack removes the rows that were put before a later write failed. What it cannot remove is in no front's
// generation, or a source range that is not desired, so the next plan removes it.
func takeBack(m maps.Maps, done []write) error {
	var errs []error
	for _, w := range done {
		if put, ok := w.(undoable); ok {
			errs = append(errs, put.undo().apply(m))
		}
	}
	return errors.Join(errs...)
}

// write is one write of one row.
type write interface {
	apply(m maps.Maps) error
}

// undoable is a write of a row that was not there before.
type undoable interface {
	undo() write
}

type (
	setConfig   struct{ config maps.Config }
	putFront    struct{ meta maps.FrontMeta }
	deleteFront struct{ socket model.Socket }
	putEndpoint struct {
		key      maps.EndpointKey
		endpoint model.Endpoint
	}
	deleteEndpoint struct{ key maps.EndpointKey }
	putRing        struct {
		key     maps.RingKey
		indexes []uint16
	}
	deleteRing   struct{ key maps.RingKey }
	putSource    struct{ key maps.SourceKey }
	deleteSource struct{ key maps.SourceKey }
	raiseEpoch   struct{}
	putPeer      struct{ addr netip.Addr }
	deletePeer   struct{ addr netip.Addr }
	putTarget    struct{ socket model.Socket }
	deleteTarget struct{ socket model.Socket }
)

func (w setConfig) apply(m maps.Maps) error      { return m.SetConfig(w.config) }
func (w putFront) apply(m maps.Maps) error       { return m.PutFront(w.meta) }
func (w deleteFront) apply(m maps.Maps) error    { return m.DeleteFront(w.socket) }
func (w putEndpoint) apply(m maps.Maps) error    { return m.PutEndpoint(w.key, w.endpoint) }
func (w deleteEndpoint) apply(m maps.Maps) error { return m.DeleteEndpoint(w.key) }
func (w putRing) apply(m maps.Maps) error        { return m.PutRingBlock(w.key, w.indexes) }
func (w deleteRing) apply(m maps.Maps) error     { return m.DeleteRingBlock(w.key) }
func (w putSource) apply(m maps.Maps) error      { return m.PutSource(w.key) }
func (w deleteSource) apply(m maps.Maps) error   { return m.DeleteSource(w.key) }
func (raiseEpoch) apply(m maps.Maps) error       { return m.RaiseEpoch() }
func (w putPeer) apply(m maps.Maps) error        { return m.PutPeer(w.addr) }
func (w deletePeer) apply(m maps.Maps) error     { return m.DeletePeer(w.addr) }
func (w putTarget) apply(m maps.Maps) error      { return m.PutTarget(w.socket) }
func (w deleteTarget) apply(m maps.Maps) error   { return m.DeleteTarget(w.socket) }

func (w putEndpoint) undo() write { return deleteEndpoint{w.key} }
func (w putRing) undo() write     { return deleteRing{w.key} }
func (w putSource) undo() write   { return deleteSource(w) }
