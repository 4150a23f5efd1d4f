// SPDX-License-Identifier: Apache-2.0

// Package migrate takes a datapath from the maps that are pinned to those that this build and these flags want: it
// makes new ones aside, carries the rows over, once before the programs are switched and once more behind them, and
// publishes. Invariant: until Publish every name is pinned to the old map, from PinAside on the new maps are pinned
// too, and whichever of the two a running program uses, the next start finds it and carries its rows on.
//
// The pins say how far a start came that was killed. A new map waits as NAME_next, that of CONFIG is pinned last and
// published last: without CONFIG_next what lies aside is incomplete and means nothing; with it, it is the state to
// go on from, and the map under NAME is one that programs may still write to.
package migrate

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/src/datapath/bpfobj"
	rows "github.com/beep-lb/beep/src/datapath/maps"
	"github.com/beep-lb/beep/src/datapath/pinfs"
)

// Set are the maps of the next datapath.
type Set struct {
	dir    *pinfs.Dir
	log    *slog.Logger
	faults *Faults
	now    map[string]*ebpf.Map
	fresh  map[string]*fresh
	// since is when rows were last carried, in seconds of the programs' clock.
	since uint32
}

// fresh is a map that is not published yet.
type fresh struct {
	made     bool   // by this start: it is not pinned at all
	replaces bool   // another one is pinned under the name
	why      string // it was made
	// sources are the older maps, newest first, whose rows this build can read.
	sources []source
	carried rows.Carried
	rows    bool // rows were carried over
}

// source is a map whose rows move, and their layout.
type source struct {
	*ebpf.Map
	abi   uint32
	waits bool // it is pinned, but not under its name yet
}

// groups are the maps whose rows make sense together only, and are therefore made together.
var groups = [][]string{
	{bpfobj.BeepMapFRONT_META, bpfobj.BeepMapFRONT_ENDPOINTS, bpfobj.BeepMapFRONT_RING, bpfobj.BeepMapFRONT_SOURCES},
	{bpfobj.BeepMapFLOW_TABLE, bpfobj.BeepMapFLOW_DATAGRAMS, bpfobj.BeepMapFLOW_PENDING},
}

// Stage opens the pinned maps that fit as they are, and makes the others with the rows of their predecessors. It
// changes no pin but those that a killed start left without meaning. The caller holds the directory's lock.
func Stage(dir *pinfs.Dir, spec *ebpf.CollectionSpec, faults *Faults, log *slog.Logger) (*Set, error) {
	s := &Set{dir: dir, log: log, faults: faults, now: map[string]*ebpf.Map{}, fresh: map[string]*fresh{}}
	pins, err := readPins(dir, spec)
	if err != nil {
		return nil, err
	}
	if pins.interrupted {
		log.Warn("an earlier start was interrupted while it replaced the maps, going on from there")
	}
	for _, group := range grouped(spec) {
		if err := s.take(group, spec, pins); err != nil {
			s.Close()
			pins.close()
			return nil, err
		}
	}
	faults.Reach(MapsMade)
	if err := s.carry(); err != nil {
		s.Close()
		return nil, err
	}
	faults.Reach(RowsCarried)
	return s, nil
}

// grouped are all shared maps of the object, those that are in no group alone.
func grouped(spec *ebpf.CollectionSpec) [][]string {
	all := slices.Clone(groups)
	for _, name := range Shared(spec) {
		if !slices.ContainsFunc(groups, func(group []string) bool { return slices.Contains(group, name) }) {
			all = append(all, []string{name})
		}
	}
	return all
}

// take decides over one group: all of its maps are kept, or none.
func (s *Set) take(group []string, spec *ebpf.CollectionSpec, pins *pins) error {
	var reason string
	for _, name := range group {
		if why := pins.misfit(spec.Maps[name]); why != "" && reason == "" {
			reason = name + ": " + why
		}
	}
	for _, name := range group {
		f := &fresh{why: pins.misfit(spec.Maps[name]), replaces: pins.has(name), sources: pins.readable(spec.Maps[name])}
		if reason == "" {
			s.now[name] = f.sources[0].Map
			if f.sources = f.sources[1:]; pins.aside(name) {
				s.fresh[name] = f
			}
			continue
		}
		s.fresh[name] = f
		f.made, f.why = true, cmp.Or(f.why, reason)
		m, err := ebpf.NewMap(spec.Maps[name])
		if err != nil {
			return fmt.Errorf("make map %s with %d rows: %w", name, spec.Maps[name].MaxEntries, err)
		}
		s.now[name] = m
	}
	return nil
}

// Maps are the maps by name, for the programs. The set keeps them.
func (s *Set) Maps() map[string]*ebpf.Map { return s.now }

// Empty says whether a map was made and given no rows.
func (s *Set) Empty(name string) bool {
	f := s.fresh[name]
	return f != nil && f.made && !f.rows
}

// FlowsMoved says whether running programs may keep flows in other tables than those of the set.
func (s *Set) FlowsMoved() bool {
	f := s.fresh[bpfobj.BeepMapFLOW_TABLE]
	return f != nil && f.replaces
}

// Reach is Faults.Reach.
func (s *Set) Reach(step Step) { s.faults.Reach(step) }

// carry fills the new maps for the first time.
func (s *Set) carry() error {
	s.since = clock()
	if err := s.carryFronts(); err != nil {
		return err
	}
	if err := s.carryFlows(); err != nil {
		return err
	}
	for _, name := range s.names() {
		f := s.fresh[name]
		if !f.made || len(f.sources) == 0 || inGroup(name) || !moves(name) {
			continue
		}
		var err error
		if f.carried, err = rows.Carry(name, f.sources[0].Map, s.now[name], s.faults.restore); err != nil {
			return err
		}
		f.rows = true
	}
	return s.CatchUp(rows.OldWins)
}

func inGroup(name string) bool {
	return slices.ContainsFunc(groups, func(group []string) bool { return slices.Contains(group, name) })
}

// counters are the maps whose rows are added up.
var counters = []string{bpfobj.BeepMapDROPS, bpfobj.BeepMapTRAFFIC}

// moves says whether the map has rows that Carry knows: what a CPU may spend is nothing to keep, and counters are
// added up at the end.
func moves(name string) bool {
	return name != bpfobj.BeepMapBUDGET && !slices.Contains(counters, name)
}

func (s *Set) carryFronts() error {
	meta := s.fresh[bpfobj.BeepMapFRONT_META]
	if meta == nil || !meta.made {
		return nil
	}
	from, whole := s.frontSource()
	if !whole {
		return nil
	}
	carried, err := rows.CarryFronts(from, rows.FrontMaps{
		ABI: rows.ABI, Meta: s.now[bpfobj.BeepMapFRONT_META], Endpoints: s.now[bpfobj.BeepMapFRONT_ENDPOINTS],
		Rings: s.now[bpfobj.BeepMapFRONT_RING], Sources: s.now[bpfobj.BeepMapFRONT_SOURCES],
	}, s.faults.restore)
	for name, of := range map[string]rows.Carried{
		bpfobj.BeepMapFRONT_META: carried.Meta, bpfobj.BeepMapFRONT_ENDPOINTS: carried.Endpoints,
		bpfobj.BeepMapFRONT_RING: carried.Rings, bpfobj.BeepMapFRONT_SOURCES: carried.Sources,
	} {
		s.fresh[name].carried, s.fresh[name].rows = of, true
	}
	return err
}

// frontSource is the newest of each of the maps of fronts, if there are all that a front needs.
func (s *Set) frontSource() (rows.FrontMaps, bool) {
	meta, endpoints := s.source(bpfobj.BeepMapFRONT_META, 0), s.source(bpfobj.BeepMapFRONT_ENDPOINTS, 0)
	rings := s.source(bpfobj.BeepMapFRONT_RING, 0)
	return rows.FrontMaps{
		ABI: meta.abi, Meta: meta.Map, Endpoints: endpoints.Map, Rings: rings.Map,
		Sources: s.source(bpfobj.BeepMapFRONT_SOURCES, 0).Map,
	}, meta.Map != nil && endpoints.Map != nil && rings.Map != nil
}

// source is the older map of that name at a place in their order, newest first. Its Map is nil if there is none.
func (s *Set) source(name string, place int) source {
	if f := s.fresh[name]; f != nil && place < len(f.sources) {
		return f.sources[place]
	}
	return source{}
}

// flowSources are the older tables of flows, newest first. Those of UDP may be missing: older layouts had none, and
// they are published, drained, before the others.
func (s *Set) flowSources() []rows.FlowMaps {
	var older []rows.FlowMaps
	for {
		place := len(older)
		table, pending := s.source(bpfobj.BeepMapFLOW_TABLE, place), s.source(bpfobj.BeepMapFLOW_PENDING, place)
		if table.Map == nil || pending.Map == nil {
			return older
		}
		older = append(older, rows.FlowMaps{
			Table: table.Map, Datagrams: s.source(bpfobj.BeepMapFLOW_DATAGRAMS, place).Map, Pending: pending.Map,
		})
	}
}

func (s *Set) flows() rows.FlowMaps {
	return rows.FlowMaps{
		Table: s.now[bpfobj.BeepMapFLOW_TABLE], Datagrams: s.now[bpfobj.BeepMapFLOW_DATAGRAMS],
		Pending: s.now[bpfobj.BeepMapFLOW_PENDING],
	}
}

func (s *Set) carryFlows() error {
	sources := s.flowSources()
	if len(sources) == 0 {
		return nil
	}
	if s.fresh[bpfobj.BeepMapFLOW_TABLE].made {
		carried, err := rows.CarryFlows(sources[0], s.flows(), s.faults.restore)
		if err != nil {
			return err
		}
		for name, of := range map[string]rows.Carried{
			bpfobj.BeepMapFLOW_TABLE: carried.Table, bpfobj.BeepMapFLOW_DATAGRAMS: carried.Datagrams,
			bpfobj.BeepMapFLOW_PENDING: carried.Pending,
		} {
			s.fresh[name].carried, s.fresh[name].rows = of, true
		}
		sources = sources[1:]
	}
	for _, older := range sources {
		if err := rows.CatchUpFlows(older, s.flows(), 0, rows.OldWins, s.faults.restore); err != nil {
			return err
		}
	}
	return nil
}

// CatchUp carries over what programs have written to the old maps since the last time. A tie is ended as maps.Tie
// says.
func (s *Set) CatchUp(tie rows.Tie) error {
	// Rows have whole seconds of a clock that lags by a tick.
	const overlap = 2
	since := s.since - overlap
	s.since = clock()
	for _, older := range s.flowSources() {
		if err := rows.CatchUpFlows(older, s.flows(), since, tie, s.faults.restore); err != nil {
			return err
		}
	}
	for _, name := range []string{bpfobj.BeepMapAFFINITY, bpfobj.BeepMapFRAGMENTS} {
		if f := s.fresh[name]; f != nil {
			for _, older := range f.sources {
				if _, err := rows.CatchUp(name, older.Map, s.now[name], s.faults.restore); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// Drain is the last CatchUp, when no program writes to the old maps any more. It also adds up the counters.
func (s *Set) Drain() error {
	if err := s.CatchUp(rows.NewWins); err != nil {
		return err
	}
	for _, name := range counters {
		f := s.fresh[name]
		if f == nil {
			continue
		}
		for _, older := range f.sources {
			var err error
			if f.carried, err = rows.AddCounts(name, older.Map, s.now[name]); err != nil {
				return err
			}
			f.rows = true
		}
	}
	return nil
}

// Close closes the maps; what is pinned or used by a program lives on.
func (s *Set) Close() error {
	var errs []error
	for _, m := range s.now {
		errs = append(errs, m.Close())
	}
	return errors.Join(append(errs, s.closeSources())...)
}

func (s *Set) closeSources() error {
	var errs []error
	for _, f := range s.fresh {
		for _, older := range f.sources {
			errs = append(errs, older.Close())
		}
		f.sources = nil
	}
	return errors.Join(errs...)
}

// names are the maps that are not published yet, CONFIG last.
func (s *Set) names() []string {
	last := func(name string) int {
		if name == bpfobj.BeepMapCONFIG {
			return 1
		}
		return 0
	}
	return slices.SortedFunc(maps.Keys(s.fresh), func(a, b string) int {
		return cmp.Or(cmp.Compare(last(a), last(b)), cmp.Compare(a, b))
	})
}

// clock is the time that rows carry, in seconds.
func clock() uint32 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC_COARSE, &now); err != nil {
		return 0 // then everything is carried again
	}
	return uint32(now.Sec)
}
