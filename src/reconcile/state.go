// SPDX-License-Identifier: Apache-2.0

// Package reconcile brings the maps of one node to a desired state: Plan says which rows must change and in
// which order, a Reconciler makes it so. Invariant: between any two writes, and whichever of them fails, every
// row of FRONT_META has all of its endpoints and ring blocks, and takes no client that neither the last state nor the
// next one takes.
package reconcile

import (
	"fmt"
	"net/netip"

	"github.com/beep-lb/beep/src/datapath/maps"
	"github.com/beep-lb/beep/src/model"
)

// Generation names the rows of FRONT_ENDPOINTS and FRONT_RING that belong together: one endpoint set of one
// front.
type Generation struct {
	// Front is the front's id, never 0.
	Front uint32
	// Number starts at 1; 0 are the front's rows of FRONT_SOURCES, which have no generations.
	Number uint32
}

// String prints 3/7: generation 7 of the front with id 3.
func (g Generation) String() string { return fmt.Sprintf("%d/%d", g.Front, g.Number) }

// State is what the maps hold, and what they could.
type State struct {
	Config    maps.Config
	Fronts    []maps.FrontMeta
	Endpoints map[maps.EndpointKey]model.Endpoint
	Rings     map[maps.RingKey][]uint16
	Sources   []maps.SourceKey
	Peers     []netip.Addr
	Targets   []model.Socket
	Capacity  maps.Sizes
	// Held are generations that are in force no more, but that a running program may be about to read. They are
	// not collected yet.
	Held map[Generation]bool
	// First is the number of a new front's generation. Rows of AFFINITY outlive their front and name its id and
	// generation, so the next front of that id must not come by the same number.
	First uint32
	// Distrust asks for a new epoch, because a peer, a target or a source range may have gone without one.
	Distrust bool
	// rest is what the maps hold beside this, if nothing about it is to change.
	rest rest
}

// rest is a part of the maps that a plan leaves alone.
type rest struct {
	// ids are those of its fronts.
	ids map[uint32]model.Socket
	// room is what the fronts take.
	room           room
	peers, targets int
}

// Read takes in the maps; nobody else may write them meanwhile. Held, First and Distrust are left for the
// caller.
func Read(m maps.Maps) (State, error) {
	state := State{Capacity: m.Capacity()}
	var err error
	if state.Config, err = m.Config(); err != nil {
		return State{}, err
	}
	if state.Fronts, err = m.Fronts(); err != nil {
		return State{}, err
	}
	if state.Endpoints, err = m.Endpoints(); err != nil {
		return State{}, err
	}
	if state.Rings, err = m.RingBlocks(); err != nil {
		return State{}, err
	}
	if state.Sources, err = m.Sources(); err != nil {
		return State{}, err
	}
	if state.Peers, err = m.Peers(); err != nil {
		return State{}, err
	}
	if state.Targets, err = m.Targets(); err != nil {
		return State{}, err
	}
	return state, nil
}
