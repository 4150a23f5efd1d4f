// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"fmt"
	"net/netip"

	"github.com/beep-lb/beep/src/model"
)

// list is a map that is a set: who or what is trusted.
type list[K comparable] struct {
	object      string // of a Step
	table       table
	capacity    uint32
	put, remove func(K) write
}

func peers(capacity uint32) list[netip.Addr] {
	return list[netip.Addr]{"peer", nodeAllow, capacity,
		func(addr netip.Addr) write { return putPeer{addr} }, func(addr netip.Addr) write { return deletePeer{addr} }}
}

func targets(capacity uint32) list[model.Socket] {
	return list[model.Socket]{"target", podTargets, capacity,
		func(socket model.Socket) write { return putTarget{socket} }, func(socket model.Socket) write { return deleteTarget{socket} }}
}

// plan returns the steps to make before the fronts' and those to make after. Additions are early and removals
// late, so that nobody who is replaced is refused in between; only where the map cannot hold both are the
// removals early too. What the map cannot hold at all is the error; what fits is planned. So many rows are in both
// lists beside those that are given.
func (l list[K]) plan(desired, actual []K, both int) (early, late []Step, err error) {
	known, wanted := setOf(actual), setOf(desired)
	var additions, removals []Step
	for _, row := range desired {
		if !known[row] {
			additions = append(additions, l.step(row, Added, l.put))
		}
	}
	for _, row := range actual {
		if !wanted[row] {
			removals = append(removals, l.step(row, Removed, l.remove))
		}
	}
	free := int(l.capacity) - both - len(actual)
	if len(additions) <= free {
		return additions, removals, nil
	}
	free += len(removals)
	if over := len(additions) - free; over > 0 {
		err = fmt.Errorf("%d of %d %ss are left out: %w", over, both+len(desired), l.object, l.table.full(len(additions), free, l.capacity))
		additions = additions[:free]
	}
	return append(removals, additions...), nil, err
}

func (l list[K]) step(row K, action Action, to func(K) write) Step {
	return Step{Object: l.object, Name: fmt.Sprint(row), Action: action, writes: []write{to(row)}}
}

func setOf[K comparable](rows []K) map[K]bool {
	set := make(map[K]bool, len(rows))
	for _, row := range rows {
		set[row] = true
	}
	return set
}
