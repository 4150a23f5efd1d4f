// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/beep-lb/beep/src/datapath/maps"
	"github.com/beep-lb/beep/src/datapath/sweep"
	"github.com/beep-lb/beep/src/model"
)

// sweepStrangers removes the flows that are pinned to an endpoint of no front, which is also no target: fixtures know
// of no other pods. It goes by the maps, since a front that did not fit keeps the endpoints that it had. What it cannot
// remove stays owed. The result is the number of rows that went.
func (n *node) sweepStrangers() int {
	start := time.Now()
	var result sweep.Departures
	inForce, err := socketsInForce(n.datapath.Maps)
	if err == nil {
		result, err = sweep.Strangers(n.datapath.Maps, func(socket model.Socket) bool { return inForce[socket] })
	}
	if n.owesSweep = err != nil; n.owesSweep {
		n.log.Error("sweep of flows to endpoints that are gone, trying again", "error", err)
	}
	if result.Rows() > 0 {
		n.log.Info("swept flows to endpoints that are gone", "rows", result.Rows(), "scanned", result.Scanned, "took", time.Since(start))
	}
	return result.Rows()
}

// socketsInForce are the endpoints of all fronts, and the targets.
func socketsInForce(m *maps.Kernel) (map[model.Socket]bool, error) {
	fronts, err := m.Fronts()
	if err != nil {
		return nil, err
	}
	endpoints, err := m.Endpoints()
	if err != nil {
		return nil, err
	}
	targets, err := m.Targets()
	if err != nil {
		return nil, err
	}
	inForce := map[model.Socket]bool{}
	for _, target := range targets {
		inForce[target] = true
	}
	for _, front := range fronts {
		for i := range front.Count {
			endpoint := endpoints[maps.EndpointKey{Front: front.ID, Generation: front.Generation, Index: i}]
			inForce[model.Socket{Addr: endpoint.Addr, Port: endpoint.Port, Proto: front.Proto}] = true
		}
	}
	return inForce, nil
}
