// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"net/netip"
	"slices"
	"time"

	"github.com/beep-lb/beep/src/compile"
	"github.com/beep-lb/beep/src/datapath/sweep"
	"github.com/beep-lb/beep/src/model"
	"github.com/beep-lb/beep/src/reconcile"
)

// departures remembers the endpoints that left until their flows are gone.
type departures struct {
	// remove and removeStrangers are those of package sweep, on the maps that are pinned now.
	remove          func(gone []model.Socket) (sweep.Departures, error)
	removeStrangers func(known func(model.Socket) bool) (sweep.Departures, error)
	now             func() time.Time

	// previous is the snapshot before; known says that there was one.
	previous model.Snapshot
	known    bool
	// unswept departed and may have flows.
	unswept map[model.Socket]bool
	// late are swept once more at their time, for what a program was about to write.
	late map[model.Socket]time.Time
	// strangers says that the flows of those who left before this process began may still be there.
	strangers bool
}

func newDepartures() *departures {
	return &departures{now: time.Now, unswept: map[model.Socket]bool{}, late: map[model.Socket]time.Time{}, strangers: true}
}

// take notes who left since the snapshot before.
func (d *departures) take(next model.Snapshot) {
	if d.known {
		departed := compile.Departures(d.previous, next)
		for _, addr := range departed.Addrs {
			d.unswept[model.Socket{Addr: addr}] = true
		}
		for _, socket := range slices.Concat(departed.Sockets, departed.UDP) {
			d.unswept[socket] = true
		}
	}
	d.previous, d.known = next, true
}

// before sweeps those who left and whose address is desired again, since another pod has it by now. What cannot be
// swept is taken out of desired: nobody may be sent to a new pod by a row of the old one.
func (d *departures) before(desired *model.Desired) error {
	if len(d.unswept)+len(d.late) == 0 {
		return nil
	}
	back := d.back(desired)
	var again []model.Socket
	for socket := range d.unswept {
		if back[socket.Addr] {
			again = append(again, socket)
		}
	}
	for socket := range d.late {
		if back[socket.Addr] {
			delete(d.late, socket)
		}
	}
	failed, err := d.sweep(again)
	if len(failed) == 0 {
		return err
	}
	withheld := map[netip.Addr]bool{}
	for socket := range failed {
		withheld[socket.Addr] = true
	}
	for i := range desired.Fronts {
		desired.Fronts[i].Endpoints = slices.DeleteFunc(slices.Clone(desired.Fronts[i].Endpoints),
			func(e model.Endpoint) bool { return withheld[e.Addr] })
	}
	desired.Targets = slices.DeleteFunc(desired.Targets, func(s model.Socket) bool { return withheld[s.Addr] })
	return err
}

// after sweeps those who left the maps just now, and those whose time has come. Endpoints that came back meanwhile
// were dealt with by before.
func (d *departures) after(snapshot model.Snapshot) error {
	var gone []model.Socket
	for socket := range d.unswept {
		gone = append(gone, socket)
	}
	failed, err := d.sweep(gone)
	for _, socket := range gone {
		if failed[socket] == nil {
			d.late[socket] = d.now().Add(reconcile.Grace)
		}
	}
	var due []model.Socket
	for socket, at := range d.late {
		if !d.now().Before(at) {
			due = append(due, socket)
			delete(d.late, socket)
		}
	}
	_, lateErr := d.sweep(due)
	return errors.Join(err, lateErr, d.afterRestart(snapshot))
}

// afterRestart removes what is pinned to endpoints that no slice has.
func (d *departures) afterRestart(snapshot model.Snapshot) error {
	if !d.strangers {
		return nil
	}
	known := map[netip.Addr]bool{}
	for _, addr := range compile.EndpointAddresses(snapshot) {
		known[addr] = true
	}
	_, err := d.removeStrangers(func(socket model.Socket) bool { return known[socket.Addr] })
	d.strangers = err != nil
	return err
}

// due returns when after has something to do though nothing changed; the zero time is never.
func (d *departures) due() (at time.Time) {
	for _, late := range d.late {
		if at.IsZero() || late.Before(at) {
			at = late
		}
	}
	return at
}

// sweep removes the flows of the sockets and notes what failed.
func (d *departures) sweep(sockets []model.Socket) (map[model.Socket]error, error) {
	if len(sockets) == 0 {
		return nil, nil
	}
	slices.SortFunc(sockets, model.Socket.Compare)
	result, err := d.remove(sockets)
	for _, socket := range sockets {
		if result.Failed[socket] == nil {
			delete(d.unswept, socket)
		} else {
			d.unswept[socket] = true
		}
	}
	return result.Failed, err
}

// back are the addresses of those who left that desired sends somebody to.
func (d *departures) back(desired *model.Desired) map[netip.Addr]bool {
	left := map[netip.Addr]bool{}
	for socket := range d.unswept {
		left[socket.Addr] = true
	}
	for socket := range d.late {
		left[socket.Addr] = true
	}
	back := map[netip.Addr]bool{}
	for i := range desired.Fronts {
		for _, endpoint := range desired.Fronts[i].Endpoints {
			if left[endpoint.Addr] {
				back[endpoint.Addr] = true
			}
		}
	}
	return back
}
