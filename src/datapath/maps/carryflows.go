// SPDX-License-Identifier: Apache-2.0

package maps

import (
	"cmp"
	"errors"
	"runtime"
	"slices"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/src/datapath/bpfobj"
	"github.com/beep-lb/beep/src/model"
)

// FlowMaps are the tables of flows. Datagrams is nil in layouts 1 and 2, whose Table had the answered flows of UDP too.
type FlowMaps struct{ Table, Datagrams, Pending *ebpf.Map }

// FlowRows counts the rows of each table.
type FlowRows struct{ Table, Datagrams, Pending Carried }

// Tie says whose row stays where the old and the new programs used a flow in the same second.
type Tie bool

// The ways to end a tie.
const (
	// OldWins is for as long as clients' packets meet the old programs.
	OldWins Tie = true
	// NewWins is for afterwards.
	NewWins Tie = false
)

// place is where a flow is: the table of its protocol's proved flows or, where the programs look last, that of those
// which have not proved themselves. A flow on its way from there to the other is in both.
type place int

const (
	connections place = iota // of TCP
	datagrams                // of UDP
	halfOpen
)

func (p place) String() string { return FlowTables[p] }

// provedPlace is where a flow is that has proved itself.
func provedPlace(key flowKey) place {
	if model.Proto(key.Proto) == model.UDP {
		return datagrams
	}
	return connections
}

type (
	flowKey   = bpfobj.BeepFlowKey
	flowRow   = bpfobj.BeepFlow
	flowStore = kernelStore[flowKey, flowRow]
)

// flowPair is what one flow has in a table: one row, or two that mirror each other.
type flowPair struct {
	place    place
	lastSeen uint32
	rows     []keyedFlow
}

type keyedFlow struct {
	key flowKey
	row flowRow
}

// CarryFlows copies flows, each with both of its rows, into empty tables of the same layout. Where there is no room
// for all, those that were used last are kept.
func CarryFlows(from, to FlowMaps, guard Guard) (FlowRows, error) {
	c := flowCarrier{from: from.stores(), to: to.stores(), tie: OldWins, guard: guard}
	var rows FlowRows
	for at, carried := range []*Carried{connections: &rows.Table, datagrams: &rows.Datagrams, halfOpen: &rows.Pending} {
		at := place(at)
		keys, found, err := c.used(at, nil)
		if err != nil {
			return rows, carryFault(at.String(), err)
		}
		carried.Found = found
		if err := c.carry(at, newest(keys, roomOf(c.to[at]))); err != nil {
			return rows, carryFault(at.String(), err)
		}
		if carried.Kept, err = counter(c.to[at])(); err != nil {
			return rows, carryFault(at.String(), err)
		}
	}
	return rows, nil
}

// CatchUpFlows copies what the old programs have written since a time in seconds of their clock (see sweep.Now). A
// flow that the new tables have newer is left alone; pairs stay whole.
func CatchUpFlows(from, to FlowMaps, since uint32, tie Tie, guard Guard) error {
	c := flowCarrier{from: from.stores(), to: to.stores(), tie: tie, guard: guard}
	for _, at := range []place{connections, datagrams, halfOpen} {
		// A half-open TCP flow is not refreshed, so its time says nothing.
		limit := &since
		if at == halfOpen {
			limit = nil
		}
		keys, _, err := c.used(at, limit)
		if err == nil {
			err = c.carry(at, keys)
		}
		if err != nil {
			return carryFault(at.String(), err)
		}
	}
	return nil
}

// flowStores are the tables by place.
type flowStores [3]flowStore

func (m FlowMaps) stores() flowStores {
	if m.Datagrams == nil {
		return flowStores{connections: {m.Table}, datagrams: {m.Table}, halfOpen: {m.Pending}}
	}
	return flowStores{connections: {m.Table}, datagrams: {m.Datagrams}, halfOpen: {m.Pending}}
}

// datedKey is a row to carry, with its time.
type datedKey struct {
	key      flowKey
	lastSeen uint32
	rows     int // with its mirror's
}

// newest keeps the keys that were used last and have room together, in the order of time, so that what an LRU table
// drops all the same is what is oldest.
func newest(keys []datedKey, room int) []datedKey {
	slices.SortStableFunc(keys, func(a, b datedKey) int { return cmp.Compare(int32(a.lastSeen-b.lastSeen), 0) })
	first := len(keys)
	for first > 0 && keys[first-1].rows <= room {
		first--
		room -= keys[first].rows
	}
	return keys[first:]
}

// roomOf is how many rows an LRU table surely takes: each CPU holds up to 128 free ones for itself (LOCAL_FREE_TARGET
// of kernel/bpf/bpf_lru_list.h), and an eighth is more than it loses to that where it is small.
func roomOf(table flowStore) int {
	room := int(table.capacity())
	return room - min(room/8, 128*runtime.NumCPU())
}

type flowCarrier struct {
	from, to flowStores
	tie      Tie
	guard    Guard
}

// used lists one row of every old flow of a place that was used since then, and counts all rows.
func (c *flowCarrier) used(at place, since *uint32) (keys []datedKey, found uint32, err error) {
	var failed error
	err = c.from[at].each(func(key flowKey, row flowRow) bool {
		if at != halfOpen && provedPlace(key) != at {
			return true // its table had both
		}
		found++
		if since != nil && later(*since, row.LastSeen) {
			return true
		}
		_, paired, err := c.mirror(c.from[at], keyedFlow{key, row})
		if err != nil {
			failed = err
			return false
		}
		switch {
		case !paired:
			keys = append(keys, datedKey{key, row.LastSeen, 1})
		case Kind(key.Kind) != Reverse:
			keys = append(keys, datedKey{key, row.LastSeen, 2})
		}
		return true
	})
	return keys, found, cmp.Or(err, failed)
}

// mirror reads the other row of a pair, if it is there and is not by now another flow's.
func (c *flowCarrier) mirror(in flowStore, one keyedFlow) (keyedFlow, bool, error) {
	name, paired := fromFlow("", one.key, one.row).Mirror()
	if !paired {
		return keyedFlow{}, false, nil
	}
	other := keyedFlow{key: toFlowKey(name)}
	var present bool
	var err error
	if other.row, present, err = lookupFlow(in, other.key); err != nil || !present {
		return keyedFlow{}, false, err
	}
	back, _ := fromFlow("", other.key, other.row).Mirror()
	return other, toFlowKey(back) == one.key, nil
}

func lookupFlow(in flowStore, key flowKey) (flowRow, bool, error) {
	row, err := in.lookup(key)
	if errors.Is(err, unix.ENOENT) {
		return flowRow{}, false, nil
	}
	return row, err == nil, err
}

// carry brings each flow over, as it is now.
func (c *flowCarrier) carry(at place, keys []datedKey) error {
	for _, dated := range keys {
		row, present, err := lookupFlow(c.from[at], dated.key)
		if err != nil {
			return err
		}
		if !present {
			continue // it moved to the other table, or ended
		}
		one := keyedFlow{dated.key, row}
		pair := flowPair{place: at, lastSeen: row.LastSeen, rows: []keyedFlow{one}}
		other, paired, err := c.mirror(c.from[at], one)
		if err != nil {
			return err
		}
		if paired {
			pair.rows = append(pair.rows, other)
			if later(other.row.LastSeen, pair.lastSeen) {
				pair.lastSeen = other.row.LastSeen
			}
		}
		if err := c.settle(pair); err != nil {
			return err
		}
	}
	return nil
}

// standing is what the new tables have of a flow, or in its place.
type standing struct {
	place    place
	lastSeen uint32
	rows     []keyedFlow // of the same flow, each where it was found first
	foreign  bool        // another flow has the key of one of its rows
	proved   bool        // ... and has proved itself
	time     uint32      // ... and was used then
}

// look reads the rows of the new tables under the keys of a pair.
func (c *flowCarrier) look(pair flowPair) (standing, error) {
	s := standing{place: halfOpen}
	for _, old := range pair.rows {
		for _, at := range []place{provedPlace(old.key), halfOpen} {
			row, present, err := lookupFlow(c.to[at], old.key)
			if err != nil {
				return s, err
			}
			if !present {
				continue
			}
			if !sameFlow(row, old.row) {
				s.foreign, s.proved, s.time = true, s.proved || at != halfOpen, row.LastSeen
				break
			}
			s.place = min(s.place, at)
			s.rows = append(s.rows, keyedFlow{old.key, row})
			if len(s.rows) == 1 || later(row.LastSeen, s.lastSeen) {
				s.lastSeen = row.LastSeen
			}
			break
		}
	}
	return s, nil
}

// sameFlow says whether two rows of one key lead to the same place; the twin of same_flow in bpf/lib/flow.h.
func sameFlow(a, b flowRow) bool {
	return a.NatAddr == b.NatAddr && a.NatPortBe == b.NatPortBe && a.ClientPortBe == b.ClientPortBe && a.Peer == b.Peer
}

// settle writes a pair to the new tables unless those know better.
func (c *flowCarrier) settle(pair flowPair) error {
	now, err := c.look(pair)
	if err != nil {
		return err
	}
	switch {
	case now.foreign:
		// The keys can have one owner. A flow that has proved itself beats one that has not.
		provedOld := pair.place != halfOpen
		if provedOld == now.proved && !c.beats(pair.lastSeen, now.time) || !provedOld && now.proved {
			return nil
		}
	case len(now.rows) == 0:
	case now.place < pair.place:
		return nil // it has proved itself to the new programs
	case now.place == pair.place && len(now.rows) == len(pair.rows) && !c.beats(pair.lastSeen, now.lastSeen):
		return c.tellReplies(pair, now)
	}
	return c.write(pair, now)
}

// beats says whether the old programs' use of a flow counts more.
func (c *flowCarrier) beats(old, now uint32) bool {
	return later(old, now) || old == now && c.tie == OldWins
}

// tellReplies tells the new row of a flow that its endpoint has answered, which only old programs have seen.
func (c *flowCarrier) tellReplies(pair flowPair, now standing) error {
	for i, old := range pair.rows {
		row := now.rows[i].row
		if old.row.Flags&^row.Flags&uint32(Replied) == 0 {
			continue
		}
		row.Flags |= uint32(Replied)
		if err := c.put(now.place, keyedFlow{old.key, row}); err != nil {
			return err
		}
	}
	return nil
}

// write puts a pair where it was in the old tables, and takes it out of the other table. The mirror, which
// answers need, is there before the row that a client's packet finds.
func (c *flowCarrier) write(pair flowPair, now standing) error {
	for i := len(pair.rows) - 1; i >= 0; i-- {
		if slices.Contains(now.rows, pair.rows[i]) && now.place == pair.place {
			continue // already so
		}
		if err := c.put(pair.place, pair.rows[i]); err != nil {
			return err
		}
	}
	if pair.place == halfOpen {
		return nil
	}
	for _, old := range pair.rows {
		if err := c.to[halfOpen].remove(old.key); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	return nil
}

func (c *flowCarrier) put(at place, one keyedFlow) error {
	if err := c.guard.ask(); err != nil {
		return err
	}
	return c.to[at].put(one.key, one.row)
}
