// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/bpffs"
	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/src/datapath/bpfobj"
	rows "github.com/beep-lb/beep/src/datapath/maps"
	"github.com/beep-lb/beep/src/datapath/pinfs"
	"github.com/beep-lb/beep/src/model"
)

var small = rows.Sizes{FrontMeta: 8, FrontEndpoints: 64, FrontRing: 64, FrontSources: 32, Affinity: 64, Fragments: 64,
	FlowTable: 1024, FlowDatagrams: 512, FlowPending: 256, NodeAllow: 4, PodTargets: 4}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// life is a pin directory and what its starts log.
type life struct {
	t   *testing.T
	dir *pinfs.Dir
	log bytes.Buffer
}

func newLife(t *testing.T) *life {
	t.Helper()
	require.Root(t)
	require.TCX(t)
	dir, err := pinfs.Create(filepath.Join(bpffs.New(t), "beep"))
	must(t, err)
	return &life{t: t, dir: dir}
}

func (l *life) try(sizes rows.Sizes, faults *Faults) (*Set, *rows.Kernel, error) {
	l.t.Helper()
	spec, err := bpfobj.LoadBeep()
	must(l.t, err)
	for name, entries := range sizes.ByMap() {
		spec.Maps[name].MaxEntries = entries
	}
	set, err := Stage(l.dir, spec, faults, slog.New(slog.NewTextHandler(&l.log, nil)))
	if err != nil {
		return nil, nil, err
	}
	l.t.Cleanup(func() { set.Close() })
	k := rows.ByName(set.Maps())
	if set.Empty("CONFIG") {
		must(l.t, k.SetConfig(rows.Config{ABI: rows.ABI}))
	}
	return set, k, nil
}

func (l *life) stage(sizes rows.Sizes) (*Set, *rows.Kernel) {
	l.t.Helper()
	set, k, err := l.try(sizes, nil)
	must(l.t, err)
	return set, k
}

// start is a whole start.
func (l *life) start(sizes rows.Sizes) *rows.Kernel {
	l.t.Helper()
	set, k := l.stage(sizes)
	must(l.t, set.PinAside(), set.Drain(), set.Publish())
	return k
}

// pinned opens a map by its pin.
func (l *life) pinned(name string) *ebpf.Map {
	l.t.Helper()
	m, err := ebpf.LoadPinnedMap(l.dir.MapPath(name), nil)
	must(l.t, err)
	l.t.Cleanup(func() { m.Close() })
	return m
}

func (l *life) names() []string {
	l.t.Helper()
	names, err := l.dir.Maps()
	must(l.t, err)
	return names
}

// flow is a half-known flow of that client port.
func flow(port uint16, lastSeen uint32) rows.Flow {
	return rows.Flow{
		FlowKey: rows.FlowKey{Kind: rows.Forward, Proto: model.UDP, Src: netip.AddrPortFrom(netip.MustParseAddr("198.51.100.7"), port),
			Dst: netip.MustParseAddrPort("192.0.2.1:53")},
		Table: rows.FlowDatagrams, Nat: netip.MustParseAddrPort("10.42.1.5:53"), Peer: netip.MustParseAddr("192.0.2.2"), ClientPort: port,
		LastSeen: lastSeen,
	}
}

// flows are the client ports and times of all flows.
func flows(t *testing.T, k *rows.Kernel) string {
	t.Helper()
	var lines []string
	must(t, k.Flows(func(f rows.Flow) bool {
		lines = append(lines, fmt.Sprintf("%d@%d", f.Src.Port(), f.LastSeen))
		return true
	}))
	slices.Sort(lines)
	return strings.Join(lines, " ")
}

var front = model.Socket{Addr: netip.MustParseAddr("192.0.2.1"), Port: 53, Proto: model.UDP}

func resized() rows.Sizes {
	sizes := small
	sizes.FlowTable, sizes.FlowDatagrams, sizes.FlowPending, sizes.FrontEndpoints = 2048, 1024, 512, 32
	return sizes
}

// TestRowsWrittenMeanwhile are those that the old programs write until they are switched.
func TestRowsWrittenMeanwhile(t *testing.T) {
	l := newLife(t)
	old := l.start(small)
	now := clock()
	must(t, old.PutFlow(flow(1, now)), old.PutFlow(flow(2, now)))
	set, next := l.stage(resized())
	if !set.FlowsMoved() {
		t.Error("the flows have not moved")
	}
	must(t, set.PinAside())
	must(t, old.PutFlow(flow(3, now)), old.PutFlow(flow(2, now+1)), next.PutFlow(flow(1, now+1)))
	must(t, set.CatchUp(rows.NewWins), old.PutFlow(flow(4, now)), set.Drain(), set.Publish())
	if got, want := flows(t, next), fmt.Sprintf("1@%d 2@%d 3@%d 4@%d", now+1, now+1, now, now); got != want {
		t.Errorf("flows %s, want %s", got, want)
	}
	if names := l.names(); len(names) != 15 {
		t.Errorf("pins %v", names)
	}
}

// TestStartsThatWereKilled leave pins aside at every stage; the next start goes on from them, or does without.
func TestStartsThatWereKilled(t *testing.T) {
	stages := []struct {
		name string
		run  func(*Set) error
		kept bool // what was written to the new maps
	}{
		{"nothing pinned", func(*Set) error { return nil }, false},
		{"some pinned", func(s *Set) error { return errors.Join(s.pinAside("FLOW_TABLE"), s.pinAside("FRONT_META")) }, false},
		{"all pinned", (*Set).PinAside, true},
		{"some published", func(s *Set) error {
			return errors.Join(s.PinAside(), s.dir.Publish(s.dir.MapPath("FLOW_PENDING_next"), s.dir.MapPath("FLOW_PENDING")))
		}, true},
		{"all but the last published", func(s *Set) error {
			err := s.PinAside()
			for _, name := range s.names()[:len(s.names())-1] {
				err = errors.Join(err, s.dir.Publish(s.dir.MapPath(name+"_next"), s.dir.MapPath(name)))
			}
			return err
		}, true},
	}
	other := small
	other.FlowTable, other.FlowDatagrams, other.FlowPending = 4096, 2048, 1024
	for _, stage := range stages {
		for name, sizes := range map[string]rows.Sizes{"same again": resized(), "back": small, "others": other} {
			t.Run(stage.name+", "+name, func(t *testing.T) {
				l := newLife(t)
				old := l.start(small)
				now := clock()
				must(t, old.PutFlow(flow(1, now)), old.PutFront(rows.FrontMeta{Socket: front, ID: 1}))
				killed, next := l.stage(resized())
				must(t, stage.run(killed), old.PutFlow(flow(2, now)), next.PutFlow(flow(3, now)))

				again := l.start(sizes)
				if names := l.names(); len(names) != 15 {
					t.Errorf("pins %v", names)
				}
				want := []string{fmt.Sprintf("1@%d", now)}
				if !strings.Contains(stage.name, "published") { // which nobody writes to the old maps after
					want = append(want, fmt.Sprintf("2@%d", now))
				}
				if stage.kept {
					want = append(want, fmt.Sprintf("3@%d", now))
				}
				if got := flows(t, again); got != strings.Join(want, " ") {
					t.Errorf("flows %s, want %s", got, want)
				}
				fronts, err := again.Fronts()
				if err != nil || len(fronts) != 1 {
					t.Errorf("fronts %v, %v", fronts, err)
				}
				if again.Capacity() != sizes {
					t.Errorf("capacity %+v", again.Capacity())
				}
			})
		}
	}
}

// inTable is the flow where layouts 1 and 2 had it.
func inTable(f rows.Flow) rows.Flow {
	f.Table = rows.FlowTable
	return f
}

// layout says that the pinned maps are of another.
func (l *life) layout(abi uint32) {
	l.t.Helper()
	var row bpfobj.BeepConfig
	must(l.t, l.pinned("CONFIG").Lookup(uint32(0), &row))
	row.Abi = abi
	must(l.t, l.pinned("CONFIG").Put(uint32(0), row))
}

// TestLayout2 had no FLOW_DATAGRAMS: what it kept of UDP moves there, also what is written while the programs change.
func TestLayout2(t *testing.T) {
	l := newLife(t)
	old := l.start(small)
	now := clock()
	tcp := inTable(flow(5, now))
	tcp.Proto = model.TCP
	must(t, old.PutFlow(inTable(flow(1, now))), old.PutFlow(tcp), l.dir.Remove(l.dir.MapPath("FLOW_DATAGRAMS")))
	l.layout(2)
	set, k := l.stage(small)
	if !set.FlowsMoved() {
		t.Error("the flows have not moved")
	}
	must(t, set.PinAside(), old.PutFlow(inTable(flow(2, now))), set.Drain(), set.Publish())
	var got []string
	must(t, k.Flows(func(f rows.Flow) bool {
		got = append(got, fmt.Sprintf("%s %s %d", f.Table, f.Proto, f.Src.Port()))
		return true
	}))
	slices.Sort(got)
	if want := []string{"FLOW_DATAGRAMS UDP 1", "FLOW_DATAGRAMS UDP 2", "FLOW_TABLE TCP 5"}; !slices.Equal(got, want) {
		t.Errorf("flows %q, want %q", got, want)
	}
	for _, words := range []string{
		`msg="map rebuilt, all rows kept" map=FLOW_DATAGRAMS had="not pinned yet" rows=1`,
		`msg="map rebuilt, all rows kept" map=FLOW_TABLE had="FLOW_DATAGRAMS: not pinned yet" rows=1`,
	} {
		if !strings.Contains(l.log.String(), words) {
			t.Errorf("the log lacks %s:\n%s", words, l.log.String())
		}
	}
	if _, again := l.stage(small); flows(t, again) != flows(t, k) {
		t.Errorf("the next start has flows %s", flows(t, again))
	}
}

// TestLayout1 is migrated: the maps whose rows are as they were stay the same maps.
func TestLayout1(t *testing.T) {
	l := newLife(t)
	old := l.start(small)
	must(t, old.PutFlow(inTable(flow(1, 7))), old.PutPeer(netip.MustParseAddr("192.0.2.2")),
		old.SetConfig(rows.Config{ABI: rows.ABI, Epoch: 9, Seed: [16]byte{1}}))
	for _, name := range []string{"FRONT_META", "FRONT_SOURCES", "FLOW_DATAGRAMS", "AFFINITY", "FRAGMENTS", "BUDGET", "DROPS", "TRAFFIC"} {
		must(t, l.dir.Remove(l.dir.MapPath(name)))
	}
	drops, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.PerCPUArray, KeySize: 4, ValueSize: 16, MaxEntries: 38})
	must(t, err, drops.Pin(l.dir.MapPath("DROPS")))
	counts := make([]bpfobj.BeepDropCount, ebpf.MustPossibleCPU())
	counts[0].Packets = 5
	must(t, drops.Put(uint32(3), counts))
	meta, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Hash, KeySize: 20, ValueSize: 20, MaxEntries: 8, Flags: unix.BPF_F_NO_PREALLOC})
	must(t, err, meta.Pin(l.dir.MapPath("FRONT_META")))
	key := bpfobj.BeepSocketKey{Addr: front.Addr.As16(), PortBe: 0x3500, Proto: 17}
	must(t, meta.Put(key, [5]uint32{4, 2, 0, 0, 1}))
	l.layout(1)
	must(t, drops.Close(), meta.Close())

	set, k := l.stage(small)
	must(t, set.PinAside(), set.Drain(), set.Publish())
	fronts, err := k.Fronts()
	if want := (rows.FrontMeta{Socket: front, ID: 4, Generation: 2, ClientIPAffinity: true}); err != nil || len(fronts) != 1 || fronts[0] != want {
		t.Errorf("fronts %+v, %v", fronts, err)
	}
	config, err := k.Config()
	if err != nil || config != (rows.Config{ABI: rows.ABI, Epoch: 9, Seed: [16]byte{1}}) {
		t.Errorf("configuration %+v, %v", config, err)
	}
	peers, err := k.Peers()
	if err != nil || len(peers) != 1 || flows(t, k) != "1@7" {
		t.Errorf("peers %v, %v, flows %s", peers, err, flows(t, k))
	}
	must(t, l.pinned("DROPS").Lookup(uint32(3), &counts))
	if counts[0].Packets != 5 {
		t.Errorf("counts %v", counts)
	}
	for _, words := range []string{
		`msg="map rebuilt, all rows kept" map=FRONT_META had="layout 1, this build has 3" rows=1`,
		`msg="map rebuilt, all rows kept" map=CONFIG had="layout 1, this build has 3"`,
	} {
		if !strings.Contains(l.log.String(), words) {
			t.Errorf("the log lacks %s:\n%s", words, l.log.String())
		}
	}
}

// TestARowThatCannotBeRestored leaves everything as it was.
func TestARowThatCannotBeRestored(t *testing.T) {
	l := newLife(t)
	old := l.start(small)
	must(t, old.PutFlow(flow(1, 7)))
	before := l.names()
	faults, err := FaultsOf(func(name string) string { return map[string]string{EnvFailRestoreWrite: "1"}[name] }, slog.Default())
	must(t, err)
	_, _, err = l.try(resized(), faults)
	if !errors.Is(err, rows.ErrNoMemory) || !errors.Is(err, unix.ENOMEM) ||
		err.Error() != "carry the rows of FLOW_DATAGRAMS over: no memory for a row: cannot allocate memory" {
		t.Errorf("error %v", err)
	}
	if names := l.names(); !slices.Equal(names, before) {
		t.Errorf("pins %v", names)
	}
	if k := l.start(small); flows(t, k) != "1@7" {
		t.Errorf("flows %s", flows(t, k))
	}
}

func TestFaultsAreNamed(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	_, err := FaultsOf(func(string) string { return "nowhere" }, logger)
	if err == nil || !strings.Contains(err.Error(), "BEEP_FAULT_KILL_AT=nowhere: no such step: choose one of maps-made rows-carried") {
		t.Errorf("error %v", err)
	}
	if _, err := FaultsOf(func(string) string { return "" }, logger); err != nil || log.Len() > 0 {
		t.Errorf("none: %v, log %s", err, log.String())
	}
	if _, err := FaultsOf(func(name string) string {
		return map[string]string{EnvKillAt: "published"}[name]
	}, logger); err != nil || !strings.Contains(log.String(), "level=WARN") {
		t.Errorf("one: %v, log %s", err, log.String())
	}
	(*Faults)(nil).Reach(Published)
}
