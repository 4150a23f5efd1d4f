// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"errors"
	"fmt"
	gomaps "maps"
	"net/netip"
	"slices"

	"github.com/beep-lb/beep/src/datapath/maps"
	"github.com/beep-lb/beep/src/model"
)

// Pinned is the cause of rows that went because of the endpoint that they are pinned to, as metrics label it.
const Pinned Cause = "endpoint-gone"

// Departures is what one sweep after endpoints did.
type Departures struct {
	// Scanned is the number of rows that were looked at, of all tables.
	Scanned int
	// Flows and Affinities are the rows that went, mirrors included.
	Flows, Affinities int
	// Failed are the endpoints that may still have rows, each with the first error: nothing new may be installed at
	// their address before another sweep removed them.
	Failed map[model.Socket]error
}

// Rows is the number of rows that went.
func (d *Departures) Rows() int { return d.Flows + d.Affinities }

// Departed removes every row of flows and affinities that is pinned to one of the sockets of endpoints, of their
// protocol: of a UDP socket alone where a terminating endpoint drains its TCP flows. A socket without protocol and
// port is its whole address: every pin to the pod that had it. It goes once over each map however many there are.
//
// Call it on every node, after the endpoints left the fronts, so that nobody is pinned to them anew; and once more
// reconcile.Grace later for what a program was about to write meanwhile, unless the endpoint has come back. The error
// joins that of each endpoint in Failed; rows of the others went all the same.
func Departed(m *maps.Kernel, gone []model.Socket) (Departures, error) {
	return departed(m, gone)
}

func departed(m pins, gone []model.Socket) (Departures, error) {
	result, unread := pinned(m, departedFrom(gone))
	for _, socket := range gone {
		result.fail(socket, unread)
	}
	return result, result.err(unread)
}

// Strangers removes every row that is pinned to a socket that is not known: after a restart, when nobody can tell
// any more who departed. Failed has the sockets themselves. Otherwise it is Departed.
func Strangers(m *maps.Kernel, known func(model.Socket) bool) (Departures, error) {
	result, unread := pinned(m, func(socket model.Socket) (model.Socket, bool) { return socket, !known(socket) })
	return result, result.err(unread)
}

// departedFrom finds the departure that a socket is part of.
func departedFrom(gone []model.Socket) selection {
	set := make(map[model.Socket]bool, len(gone))
	for _, socket := range gone {
		set[socket] = true
	}
	return func(socket model.Socket) (model.Socket, bool) {
		if whole := (model.Socket{Addr: socket.Addr}); set[whole] {
			return whole, true
		}
		return socket, set[socket]
	}
}

// selection says whether rows pinned to a socket go, and as what it is called in Failed.
type selection func(model.Socket) (model.Socket, bool)

// pins is the part of maps.Kernel that knows what is pinned where.
type pins interface {
	flows
	Affinities(visit func(maps.Affinity) bool) error
	DeleteAffinity(key maps.AffinityKey) error
	Fronts() ([]maps.FrontMeta, error)
}

var _ pins = (*maps.Kernel)(nil)

// pinned removes what is selected. The error is that of a map that could not be read.
func pinned(m pins, selected selection) (Departures, error) {
	result := Departures{Failed: map[model.Socket]error{}}
	// Affinities first: a client whose flow is gone must not be sent there again.
	unread := sweepAffinities(m, selected, &result)
	return result, errors.Join(unread, m.Flows(func(flow maps.Flow) bool {
		result.Scanned++
		if socket, gone := selected(pinOf(flow)); gone {
			result.fail(socket, removePinned(m, flow, &result))
		}
		return true
	}))
}

// fail notes the first error of an endpoint.
func (d *Departures) fail(socket model.Socket, err error) {
	if err != nil && d.Failed[socket] == nil {
		d.Failed[socket] = fmt.Errorf("flows of endpoint %s: %w", socket, err)
	}
}

// err joins what failed, in the order of the endpoints.
func (d *Departures) err(unread error) error {
	errs := []error{unread}
	for _, socket := range slices.SortedFunc(gomaps.Keys(d.Failed), model.Socket.Compare) {
		if unread == nil || !errors.Is(d.Failed[socket], unread) {
			errs = append(errs, d.Failed[socket])
		}
	}
	return errors.Join(errs...)
}

// pinOf is the endpoint of a row.
func pinOf(flow maps.Flow) model.Socket {
	endpoint := flow.Nat
	if flow.Kind == maps.Reverse {
		endpoint = flow.Src
	}
	return socketOf(endpoint, flow.Proto)
}

func socketOf(endpoint netip.AddrPort, proto model.Proto) model.Socket {
	return model.Socket{Addr: endpoint.Addr(), Port: endpoint.Port(), Proto: proto}
}

// removePinned removes a row together with its mirror: a packet that finds one of a pair makes the other again.
func removePinned(m flows, row maps.Flow, result *Departures) error {
	mirror, paired, err := mirrorOf(m, row)
	if err != nil {
		return err
	}
	rows := []maps.Flow{row}
	if paired {
		rows = append(rows, mirror)
	}
	for _, row := range rows {
		switch err := m.DeleteFlow(row.Table, row.FlowKey); {
		case err == nil:
			result.Flows++
		case !errors.Is(err, maps.ErrNoRow):
			return err
		}
	}
	return nil
}

func sweepAffinities(m pins, selected selection, result *Departures) error {
	protos, err := frontProtos(m)
	if err != nil {
		return err
	}
	return m.Affinities(func(row maps.Affinity) bool {
		result.Scanned++
		endpoint := netip.AddrPortFrom(row.Endpoint.Addr, row.Endpoint.Port)
		for _, proto := range protos(row.Front) {
			socket, gone := selected(socketOf(endpoint, proto))
			if !gone {
				continue
			}
			switch err := m.DeleteAffinity(row.AffinityKey); {
			case err == nil:
				result.Affinities++
			case !errors.Is(err, maps.ErrNoRow):
				result.fail(socket, err)
			}
		}
		return true
	})
}

// frontProtos returns what tells the protocol of a front: both, if it is no more.
func frontProtos(m pins) (func(id uint32) []model.Proto, error) {
	fronts, err := m.Fronts()
	if err != nil {
		return nil, err
	}
	known := make(map[uint32][]model.Proto, len(fronts))
	for _, front := range fronts {
		known[front.ID] = []model.Proto{front.Proto}
	}
	return func(id uint32) []model.Proto {
		if protos, ok := known[id]; ok {
			return protos
		}
		return []model.Proto{model.TCP, model.UDP}
	}, nil
}
