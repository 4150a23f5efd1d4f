// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"fmt"
	"net/netip"

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
	// Collected is the removal of rows that no front has used since their grace.
	Collected Action = "collected"
)

// Step is the smallest change that leaves every front whole; it is applied completely or not at all. Only the
// collection of rows that no front names may stop half-way.
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
	// retires is the generation that stops being in force; its Front is 0 if there is none.
	retires Generation
}

// String is the step in one line, as "front TCP/192.0.2.1:80 added: 3 endpoints".
func (s Step) String() string {
	text := fmt.Sprintf("%s %s %s", s.Object, s.Name, s.Action)
	if s.Detail != "" {
		text += ": " + s.Detail
	}
	return text
}

// apply makes the step's writes in order. After a failure it takes back what it put.
func (s Step) apply(m maps.Maps) error {
	for i, w := range s.writes {
		if err := w.apply(m); err != nil {
			return fmt.Errorf("%s %s: %w", s.Object, s.Name, errors.Join(err, takeBack(m, s.writes[:i])))
		}
	}
	return nil
}

// distrusts says that the step removes a peer or a target.
func (s Step) distrusts() bool {
	for _, w := range s.writes {
		switch w.(type) {
		case deletePeer, deleteTarget:
			return true
		}
	}
	return false
}

// takeBack removes the rows that were put before a later write failed. What it cannot remove is in no front's
// generation, so the next plan collects it.
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

// undoable is a write of a row that nothing names yet.
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
func (w putPeer) apply(m maps.Maps) error        { return m.PutPeer(w.addr) }
func (w deletePeer) apply(m maps.Maps) error     { return m.DeletePeer(w.addr) }
func (w putTarget) apply(m maps.Maps) error      { return m.PutTarget(w.socket) }
func (w deleteTarget) apply(m maps.Maps) error   { return m.DeleteTarget(w.socket) }

func (w putEndpoint) undo() write { return deleteEndpoint{w.key} }
func (w putRing) undo() write     { return deleteRing{w.key} }
