// SPDX-License-Identifier: Apache-2.0

package maps

import (
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/src/datapath/bpfobj"
	"github.com/beep-lb/beep/src/model"
)

// rowsOf reads all tables.
func rowsOf(t testing.TB, k *Kernel) map[FlowKey]Flow {
	t.Helper()
	rows := map[FlowKey]Flow{}
	must(t, k.Flows(func(f Flow) bool { rows[f.FlowKey] = f; return true }))
	return rows
}

func flowMaps(k *Kernel) FlowMaps {
	return FlowMaps{k.maps.FLOW_TABLE, k.maps.FLOW_DATAGRAMS, k.maps.FLOW_PENDING}
}

// putPair writes both rows of a local flow, and returns the first.
func putPair(t testing.TB, k *Kernel, table string, n int, lastSeen uint32, change func(*Flow)) Flow {
	t.Helper()
	source := netip.AddrPortFrom(netip.MustParseAddr("198.51.100.7").Next(), uint16(n))
	f := Flow{FlowKey: FlowKey{Forward, source, port(front), model.TCP}, Table: table, Nat: port(pod),
		ClientPort: source.Port(), Flags: Paired | Replied, LastSeen: lastSeen}
	if change != nil {
		change(&f)
	}
	key, _ := f.Mirror()
	mirror := f
	mirror.FlowKey, mirror.Nat, mirror.ClientPort = key, f.Dst, f.Src.Port()
	must(t, k.PutFlow(f), k.PutFlow(mirror))
	return f
}

// TestCarryFlows: a larger table takes all, also one that is just large enough; a smaller one the newest, and no row
// without its mirror.
func TestCarryFlows(t *testing.T) {
	const pairs = 1700
	old := newKernel(t, flowSizes(4096))
	for i := range pairs {
		putPair(t, old, FlowTable, 1000+i, uint32(i), nil)
	}
	before := uint32(len(rowsOf(t, old)))
	for _, size := range []uint32{4096, 65536, 1024} {
		next := newKernel(t, flowSizes(size))
		carried, err := CarryFlows(flowMaps(old), flowMaps(next), nil)
		must(t, err)
		after := rowsOf(t, next)
		if carried.Table.Found != before || carried.Table.Kept != uint32(len(after)) {
			t.Errorf("%d rows: %+v, of %d rows there are %d", size, carried, before, len(after))
		}
		if fits := size >= 4096; fits && carried.Table.Lost() > 0 || !fits && uint32(len(after)) < size*3/4 {
			t.Errorf("%d rows: %d of %d lost", size, carried.Table.Lost(), carried.Table.Found)
		}
		for key, row := range after {
			mirror, _ := row.Mirror()
			if _, there := after[mirror]; !there {
				t.Fatalf("%d rows: %s came without its mirror", size, key)
			}
			if oldest := pairs - len(after)/2; int(row.LastSeen) < oldest {
				t.Fatalf("%d rows: %s of second %d was kept, later ones were not", size, key, row.LastSeen)
			}
		}
	}
}

// datagram makes a flow one of UDP.
func datagram(f *Flow) { f.Proto = model.UDP }

// TestCarryFlowsByProtocol: connections and dialogues have a table each, and each keeps the newest that it has room for.
func TestCarryFlowsByProtocol(t *testing.T) {
	const pairs = 1000
	old, sizes := newKernel(t, flowSizes(4096)), flowSizes(4096)
	for i := range pairs {
		putPair(t, old, FlowTable, 1000+i, uint32(i), nil)
		putPair(t, old, FlowDatagrams, 1000+i, uint32(i), datagram)
	}
	sizes.FlowDatagrams = 1024
	next := newKernel(t, sizes)
	carried, err := CarryFlows(flowMaps(old), flowMaps(next), nil)
	must(t, err)
	if carried.Table != (Carried{2 * pairs, 2 * pairs}) || carried.Datagrams.Found != 2*pairs || carried.Datagrams.Kept < 512 {
		t.Errorf("%+v", carried)
	}
	for key, row := range rowsOf(t, next) {
		want := FlowTable
		if key.Proto == model.UDP {
			want = FlowDatagrams
		}
		if row.Table != want {
			t.Fatalf("%s is in %s", key, row.Table)
		}
	}
}

// TestFlowsOfLayout2 has answered flows of UDP beside those of TCP in FLOW_TABLE: each goes where the programs look,
// at the first pass and at the second.
func TestFlowsOfLayout2(t *testing.T) {
	old, next := newKernel(t, flowSizes(64)), newKernel(t, flowSizes(64))
	putPair(t, old, FlowTable, 1, 50, nil)
	putPair(t, old, FlowTable, 2, 50, datagram)
	putPair(t, old, FlowPending, 3, 50, datagram)
	from := flowMaps(old)
	from.Datagrams = nil
	carried, err := CarryFlows(from, flowMaps(next), nil)
	must(t, err)
	if want := (FlowRows{Carried{2, 2}, Carried{2, 2}, Carried{2, 2}}); carried != want {
		t.Errorf("carried %+v, want %+v", carried, want)
	}
	putPair(t, old, FlowTable, 4, 51, datagram)
	putPair(t, old, FlowTable, 3, 51, datagram) // its answer has come
	must(t, CatchUpFlows(from, flowMaps(next), 51, NewWins, nil))
	places := map[uint16]string{}
	for _, row := range rowsOf(t, next) {
		places[row.ClientPort] = row.Table
	}
	want := map[uint16]string{1: FlowTable, 2: FlowDatagrams, 3: FlowDatagrams, 4: FlowDatagrams}
	if diff := cmp.Diff(want, places); diff != "" {
		t.Errorf("tables by client port (-want +got):\n%s", diff)
	}
}

// TestCatchUp is the table of what the second pass makes of a flow that old and new programs know differently.
func TestCatchUp(t *testing.T) {
	idle := func(f *Flow) { f.Flags &^= Replied }
	elsewhere := func(f *Flow) { f.Nat = port("10.42.0.6:8080") }
	remap := func(f *Flow) { f.ClientPort = 1031 }
	type have struct {
		table    string
		lastSeen uint32
		change   func(*Flow)
	}
	tests := []struct {
		name     string
		old, now have
		tie      Tie
		want     have
	}{
		{"only the old programs have it", have{FlowTable, 50, nil}, have{}, NewWins, have{FlowTable, 50, nil}},
		{"not used since it was carried", have{FlowTable, 39, nil}, have{}, NewWins, have{}},
		{"half-open ones always come", have{FlowPending, 30, nil}, have{}, NewWins, have{FlowPending, 30, nil}},
		{"the old row is newer", have{FlowTable, 51, elsewhere}, have{FlowTable, 50, nil}, NewWins, have{FlowTable, 51, elsewhere}},
		{"the new row is newer", have{FlowTable, 50, elsewhere}, have{FlowTable, 51, nil}, OldWins, have{FlowTable, 51, nil}},
		{"a tie before the switch", have{FlowTable, 50, remap}, have{FlowTable, 50, nil}, OldWins, have{FlowTable, 50, remap}},
		{"a tie behind it", have{FlowTable, 50, remap}, have{FlowTable, 50, nil}, NewWins, have{FlowTable, 50, nil}},
		{"it proved itself to the old ones", have{FlowTable, 50, nil}, have{FlowPending, 50, idle}, NewWins, have{FlowTable, 50, nil}},
		{"it proved itself to the new ones", have{FlowPending, 50, nil}, have{FlowTable, 50, nil}, OldWins, have{FlowTable, 50, nil}},
		{"a dialogue, answered by way of the old ones", have{FlowDatagrams, 50, datagram}, have{FlowPending, 50, datagram}, NewWins, have{FlowDatagrams, 50, datagram}},
		{"a dialogue, answered by way of the new ones", have{FlowPending, 50, datagram}, have{FlowDatagrams, 50, datagram}, OldWins, have{FlowDatagrams, 50, datagram}},
		{"only the old ones saw the answer", have{FlowPending, 50, nil}, have{FlowPending, 50, idle}, NewWins, have{FlowPending, 50, nil}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			old, next, want := newKernel(t, flowSizes(64)), newKernel(t, flowSizes(64)), newKernel(t, flowSizes(64))
			for k, h := range map[*Kernel]have{old: test.old, next: test.now, want: test.want} {
				if h.table != "" {
					putPair(t, k, h.table, 40000, h.lastSeen, h.change)
				}
			}
			must(t, CatchUpFlows(flowMaps(old), flowMaps(next), 40, test.tie, nil))
			got := rowsOf(t, next)
			for key, row := range rowsOf(t, want) {
				if diff := cmp.Diff(row, got[key], addrs); diff != "" {
					t.Errorf("%s (-want +got):\n%s", key, diff)
				}
			}
			if test.want.table == "" && len(got) > 0 {
				t.Errorf("rows %v", got)
			}
		})
	}
}

// TestCatchUpMendsATornPair: the new programs took a client's packet for a flow of which they had only that half.
func TestCatchUpMendsATornPair(t *testing.T) {
	old, next := newKernel(t, flowSizes(64)), newKernel(t, flowSizes(64))
	f := putPair(t, old, FlowTable, 40000, 50, nil)
	f.LastSeen = 60
	must(t, next.PutFlow(f), CatchUpFlows(flowMaps(old), flowMaps(next), 40, NewWins, nil))
	if rows := rowsOf(t, next); len(rows) != 2 {
		t.Errorf("rows %v", rows)
	}
}

// carryFixture are three fronts: of two endpoints and a ring, of one, and of two whose second is missing.
func carryFixture(t *testing.T) *Kernel {
	t.Helper()
	sizes := small
	sizes.FrontMeta, sizes.FrontEndpoints, sizes.FrontRing, sizes.FrontSources = 8, 16, 16, 16
	k := newKernel(t, sizes)
	pods := []model.Endpoint{{Addr: addr("10.42.0.5"), Port: 8080}, {Addr: addr("10.42.1.5"), Port: 8080, Peer: addr("192.0.2.2")}}
	for i, front := range []FrontMeta{
		{ID: 7, Generation: 3, Count: 2, RingSize: uint32(RingBlock) + 1, SourcesLimited: true},
		{ID: 5, Generation: 1, Count: 1, ClientIPAffinity: true, AffinitySeconds: 60},
		{ID: 6, Count: 2},
	} {
		front.Socket = model.Socket{Addr: addr("192.0.2.1"), Port: uint16(80 + i), Proto: model.TCP}
		must(t, k.PutFront(front))
		for index := range min(front.Count, uint32(2-i)) {
			must(t, k.PutEndpoint(EndpointKey{front.ID, front.Generation, index}, pods[index]))
		}
	}
	must(t, k.PutEndpoint(EndpointKey{7, 2, 0}, pods[0])) // of a generation no longer in force
	must(t, k.PutRingBlock(RingKey{7, 3, 0}, []uint16{1, 0, 1}), k.PutRingBlock(RingKey{7, 3, 1}, []uint16{1}))
	must(t, k.PutSource(SourceKey{7, netip.MustParsePrefix("198.51.100.0/24")}))
	return k
}

func frontMaps(k *Kernel) FrontMaps {
	return FrontMaps{ABI, k.maps.FRONT_META, k.maps.FRONT_ENDPOINTS, k.maps.FRONT_RING, k.maps.FRONT_SOURCES}
}

// TestCarryFronts: whole fronts in key order, whichever map is too small.
func TestCarryFronts(t *testing.T) {
	old := carryFixture(t)
	room := small
	room.FrontMeta, room.FrontEndpoints, room.FrontRing, room.FrontSources = 8, 16, 16, 16
	tests := []struct {
		name   string
		shrink func(*Sizes)
		fronts string
		rows   FrontRows
	}{
		{"room for all", func(*Sizes) {}, "80 81", FrontRows{Carried{3, 2}, Carried{3, 3}, Carried{2, 2}, Carried{1, 1}}},
		{"one front", func(s *Sizes) { s.FrontMeta = 1 }, "80", FrontRows{Carried{3, 1}, Carried{3, 2}, Carried{2, 2}, Carried{1, 1}}},
		{"two endpoints", func(s *Sizes) { s.FrontEndpoints = 2 }, "80", FrontRows{Carried{3, 1}, Carried{3, 2}, Carried{2, 2}, Carried{1, 1}}},
		{"one endpoint", func(s *Sizes) { s.FrontEndpoints = 1 }, "81", FrontRows{Carried{3, 1}, Carried{3, 1}, Carried{2, 0}, Carried{1, 0}}},
		{"one ring block", func(s *Sizes) { s.FrontRing = 1 }, "81", FrontRows{Carried{3, 1}, Carried{3, 1}, Carried{2, 0}, Carried{1, 0}}},
	}
	for _, test := range tests {
		sizes := room
		test.shrink(&sizes)
		next := newKernel(t, sizes)
		rows, err := CarryFronts(frontMaps(old), frontMaps(next), nil)
		must(t, err)
		if diff := cmp.Diff(test.rows, rows); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
		fronts, err := next.Fronts()
		must(t, err)
		var ports []string
		for _, front := range fronts {
			ports = append(ports, strconv.Itoa(int(front.Port)))
		}
		if got := strings.Join(ports, " "); got != test.fronts {
			t.Errorf("%s: fronts at ports %s, want %s", test.name, got, test.fronts)
		}
		endpoints, err := next.Endpoints()
		must(t, err)
		if len(endpoints) != int(test.rows.Endpoints.Kept) {
			t.Errorf("%s: endpoints %v", test.name, endpoints)
		}
	}
}

// TestFrontsOfLayout1 has rows of 20 bytes and no source ranges.
func TestFrontsOfLayout1(t *testing.T) {
	old, next := carryFixture(t), carryFixture(t)
	meta, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Hash, KeySize: 20, ValueSize: 20, MaxEntries: 8, Flags: unix.BPF_F_NO_PREALLOC})
	must(t, err)
	t.Cleanup(func() { meta.Close() })
	fronts, err := old.Fronts()
	must(t, err)
	for _, front := range fronts[:2] {
		key, err := toSocketKey(front.Socket)
		must(t, err)
		row, err := toFrontMeta(front)
		must(t, err, meta.Update(&key, &frontMetaV1{row.Id, row.Generation, row.Count, row.RingSize, row.Flags}, ebpf.UpdateAny))
		must(t, next.DeleteFront(front.Socket))
	}
	must(t, next.DeleteFront(fronts[2].Socket))
	from := frontMaps(old)
	from.ABI, from.Meta, from.Sources = 1, meta, nil
	rows, err := CarryFronts(from, frontMaps(next), nil)
	if err != nil || rows.Meta != (Carried{2, 2}) {
		t.Fatalf("%+v, %v", rows, err)
	}
	got, err := next.Fronts()
	must(t, err)
	fronts[1].AffinitySeconds = 0 // which layout 1 did not know
	if diff := cmp.Diff(fronts[:2], got, addrs); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	from.ABI = 99
	if _, err := CarryFronts(from, frontMaps(next), nil); err == nil || !strings.Contains(err.Error(), "layout 99: no way to layout") {
		t.Errorf("an unknown layout: %v", err)
	}
}

// TestCarryFailsAsWhole: the error names map and cause.
func TestCarryFailsAsWhole(t *testing.T) {
	old, next := carryFixture(t), newKernel(t, small)
	putPair(t, old, FlowTable, 40000, 1, nil)
	must(t, old.PutPeer(addr("192.0.2.2")))
	full := func() error { return unix.ENOMEM }
	_, fronts := CarryFronts(frontMaps(old), frontMaps(next), full)
	_, flows := CarryFlows(flowMaps(old), flowMaps(next), full)
	_, peers := Carry("NODE_ALLOW", old.maps.NODE_ALLOW, next.maps.NODE_ALLOW, full)
	refused(t, fronts, ErrNoMemory, "carry the rows of front TCP/192.0.2.1:80 over", "cannot allocate memory")
	refused(t, flows, ErrNoMemory, "carry the rows of FLOW_TABLE over")
	refused(t, peers, ErrNoMemory, "carry the rows of NODE_ALLOW over")
}

func TestCarryConfigAndCounters(t *testing.T) {
	old, next := newKernel(t, small), newKernel(t, small)
	must(t, old.SetConfig(Config{ABI: ABI, Epoch: 7, Seed: [16]byte{1}, Underlay4: addr("192.0.2.1")}))
	_, err := Carry("CONFIG", old.maps.CONFIG, next.maps.CONFIG, nil)
	must(t, err)
	want, err := old.Config()
	must(t, err)
	got, err := next.Config()
	if err != nil || got != want {
		t.Errorf("configuration %+v, %v", got, err)
	}
	counts := make([]bpfobj.BeepDropCount, ebpf.MustPossibleCPU())
	for cpu := range counts {
		counts[cpu] = bpfobj.BeepDropCount{Packets: 2, Bytes: 100}
	}
	for name, of := range map[string]struct{ from, to *ebpf.Map }{
		"DROPS": {old.maps.DROPS, next.maps.DROPS}, "TRAFFIC": {old.maps.TRAFFIC, next.maps.TRAFFIC},
	} {
		must(t, of.from.Put(uint32(3), counts), of.to.Put(uint32(3), counts))
		_, err = AddCounts(name, of.from, of.to)
		sum := make([]bpfobj.BeepDropCount, len(counts))
		must(t, err, of.to.Lookup(uint32(3), &sum))
		if sum[0] != (bpfobj.BeepDropCount{Packets: 4, Bytes: 200}) {
			t.Errorf("%s: counts %v", name, sum)
		}
	}
}

func TestCarryRefusesWhatDoesNotMove(t *testing.T) {
	k := newKernel(t, small)
	_, err := Carry("BUDGET", k.maps.BUDGET, k.maps.BUDGET, nil)
	if err == nil || !strings.Contains(err.Error(), "BUDGET over: its rows do not move") {
		t.Errorf("error %v", err)
	}
}
