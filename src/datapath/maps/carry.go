// SPDX-License-Identifier: Apache-2.0

package maps

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/src/datapath/bpfobj"
)

// Carried is how many rows a carry found in the old map, and how many the new one held afterwards.
type Carried struct{ Found, Kept uint32 }

// Lost is how many rows did not come along.
func (c Carried) Lost() uint32 { return c.Found - min(c.Found, c.Kept) }

// Guard is asked before each carried row is written; its error ends the carry. nil asks nobody.
type Guard func() error

func (g Guard) ask() error {
	if g == nil {
		return nil
	}
	return g()
}

// Carry copies the rows of a map that stands alone into an empty one of the same layout. One that is too small keeps
// the first keys in their order. The maps of fronts and those of flows go together, by CarryFronts and CarryFlows.
func Carry(name string, from, to *ebpf.Map, guard Guard) (Carried, error) {
	var carried Carried
	var err error
	switch name {
	case bpfobj.BeepMapNODE_ALLOW:
		carried, err = carryFirst[bpfobj.BeepNodeKey](from, to, guard)
	case bpfobj.BeepMapPOD_TARGETS:
		carried, err = carryFirst[bpfobj.BeepSocketKey](from, to, guard)
	case bpfobj.BeepMapCONFIG:
		carried, err = carryConfig(from, to, guard)
	case bpfobj.BeepMapAFFINITY, bpfobj.BeepMapFRAGMENTS:
		if carried.Found, err = CatchUp(name, from, to, guard); err == nil {
			carried.Kept, err = count(name, to)
		}
	default:
		err = errors.New("its rows do not move")
	}
	return carried, carryFault(name, err)
}

// CatchUp copies what the programs have written to the old map of an LRU table since its rows were carried, and
// returns how many rows that has. A row that the new map has newer is left alone.
func CatchUp(name string, from, to *ebpf.Map, guard Guard) (uint32, error) {
	var found uint32
	var err error
	switch name {
	case bpfobj.BeepMapAFFINITY:
		newer := func(old, now bpfobj.BeepAffinity) bool { return later(old.LastSeen, now.LastSeen) }
		found, err = copyWhere[bpfobj.BeepAffinityKey](from, to, guard, newer)
	case bpfobj.BeepMapFRAGMENTS: // a datagram's ports never change
		found, err = copyWhere[bpfobj.BeepFragmentKey](from, to, guard, func(_, _ bpfobj.BeepFragmentPorts) bool { return false })
	default:
		err = errors.New("the programs do not write to it")
	}
	return found, carryFault(name, err)
}

// carryFault says what was not done and what that means.
func carryFault(name string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.ENOMEM):
		err = fmt.Errorf("%w: %w", ErrNoMemory, err)
	}
	return fmt.Errorf("carry the rows of %s over: %w", name, err)
}

// carryFirst copies as many rows as there is room for, in the order of the keys' bytes.
func carryFirst[K comparable](from, to *ebpf.Map, guard Guard) (Carried, error) {
	type row struct {
		key   K
		order []byte
		value uint32
	}
	var rows []row
	err := kernelStore[K, uint32]{from}.each(func(key K, value uint32) bool {
		order, _ := binary.Append(nil, binary.BigEndian, key) // fixed-size by construction
		rows = append(rows, row{key, order, value})
		return true
	})
	if err != nil {
		return Carried{}, err
	}
	slices.SortFunc(rows, func(a, b row) int { return bytes.Compare(a.order, b.order) })
	carried := Carried{Found: uint32(len(rows))}
	for _, r := range rows[:min(len(rows), int(to.MaxEntries()))] {
		if err := guard.ask(); err != nil {
			return carried, err
		}
		if err := (kernelStore[K, uint32]{to}).put(r.key, r.value); err != nil {
			return carried, err
		}
		carried.Kept++
	}
	return carried, nil
}

// carryConfig copies the one row, which has this build's layout number from now on.
func carryConfig(from, to *ebpf.Map, guard Guard) (Carried, error) {
	if err := guard.ask(); err != nil {
		return Carried{}, err
	}
	var failed error
	err := kernelArray[bpfobj.BeepConfig]{from}.each(func(key uint32, row bpfobj.BeepConfig) bool {
		row.Abi = ABI
		failed = kernelArray[bpfobj.BeepConfig]{to}.put(key, row)
		return true
	})
	return Carried{Found: 1, Kept: 1}, cmp.Or(err, failed)
}

// copyWhere copies the rows that the new map lacks, and those that better prefers to the new map's own.
func copyWhere[K comparable, V any](from, to *ebpf.Map, guard Guard, better func(old, now V) bool) (uint32, error) {
	var found uint32
	var failed error
	target := kernelStore[K, V]{to}
	err := kernelStore[K, V]{from}.each(func(key K, value V) bool {
		found++
		now, err := target.lookup(key)
		switch {
		case errors.Is(err, unix.ENOENT), err == nil && better(value, now):
			if failed = guard.ask(); failed == nil {
				failed = target.put(key, value)
			}
		case err != nil:
			failed = err
		}
		return failed == nil
	})
	return found, cmp.Or(err, failed)
}

// count counts the rows of an LRU table.
func count(name string, m *ebpf.Map) (uint32, error) {
	switch name {
	case bpfobj.BeepMapAFFINITY:
		return counter(kernelStore[bpfobj.BeepAffinityKey, bpfobj.BeepAffinity]{m})()
	case bpfobj.BeepMapFRAGMENTS:
		return counter(kernelStore[bpfobj.BeepFragmentKey, bpfobj.BeepFragmentPorts]{m})()
	}
	return counter(kernelStore[bpfobj.BeepFlowKey, bpfobj.BeepFlow]{m})()
}

// later compares two times of the programs' clock in seconds, which wraps after 136 years of uptime.
func later(a, b uint32) bool { return int32(a-b) > 0 }

// AddCounts adds the counts of an old DROPS or TRAFFIC, which name says, to a new one, CPU by CPU, after no program
// writes to the old one any more. Rows are only ever added, so an index keeps its meaning.
func AddCounts(name string, from, to *ebpf.Map) (Carried, error) {
	carried := Carried{Found: from.MaxEntries()}
	for index := range min(from.MaxEntries(), to.MaxEntries()) {
		var old, now []bpfobj.BeepDropCount
		if err := errors.Join(from.Lookup(&index, &old), to.Lookup(&index, &now)); err != nil {
			return carried, carryFault(name, errno(err))
		}
		carried.Kept++
		var counted uint64
		for cpu := range now {
			now[cpu].Packets += old[cpu].Packets
			now[cpu].Bytes += old[cpu].Bytes
			counted |= old[cpu].Packets
		}
		if counted == 0 {
			continue // nothing to add, and no count of the new programs' to race with
		}
		if err := to.Update(&index, now, ebpf.UpdateAny); err != nil {
			return carried, carryFault(name, errno(err))
		}
	}
	return carried, nil
}
