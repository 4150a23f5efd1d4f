// SPDX-License-Identifier: Apache-2.0

package telemetry

import "github.com/beep-lb/beep/src/datapath/maps"

// State is a flow's state in one word.
type State string

// The states of a flow.
const (
	// HalfOpen has not proved itself: the endpoint has not answered, or (TCP) the client has not answered it.
	HalfOpen State = "half-open"
	// Established has, and forwards.
	Established State = "established"
	// Closing has seen the FIN of one side.
	Closing State = "closing"
	// Closed has ended, and forwards what comes late.
	Closed State = "closed"
)

// States are all of them, in the order of a flow's life.
var States = []State{HalfOpen, Established, Closing, Closed}

// StateOf is the state of the flow that a row belongs to.
func StateOf(flow maps.Flow) State {
	switch {
	case flow.Flags&maps.Closed != 0:
		return Closed
	case flow.Flags&(maps.FinClient|maps.FinEndpoint) != 0:
		return Closing
	case flow.Table == maps.FlowPending:
		return HalfOpen
	}
	return Established
}
