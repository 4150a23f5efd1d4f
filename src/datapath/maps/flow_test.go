// SPDX-License-Identifier: Apache-2.0

package maps

import (
	"net/netip"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/google/go-cmp/cmp"

	"github.com/beep-lb/beep/src/datapath/bpfobj"
	"github.com/beep-lb/beep/src/model"
)

func port(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

const (
	client = "198.51.100.7:40000"
	front  = "192.0.2.1:80"
	pod    = "10.42.0.5:8080"
	// The endpoint sees another port of the client's where its own was taken.
	remapped = "198.51.100.7:1031"
)

// TestMirror is the table of mirror_key in bpf/lib/flow.h.
func TestMirror(t *testing.T) {
	tests := []struct {
		name string
		flow Flow
		want FlowKey
	}{
		{"a local flow's forward row",
			Flow{FlowKey: FlowKey{Forward, port(client), port(front), model.TCP}, Nat: port(pod), ClientPort: 40000, Flags: Paired},
			FlowKey{Reverse, port(pod), port(client), model.TCP}},
		{"its reverse row",
			Flow{FlowKey: FlowKey{Reverse, port(pod), port(client), model.TCP}, Nat: port(front), ClientPort: 40000, Flags: Paired},
			FlowKey{Forward, port(client), port(front), model.TCP}},
		{"a tunnelled flow with another source port",
			Flow{FlowKey: FlowKey{Backend, port(client), port(front), model.UDP}, Nat: port(pod), ClientPort: 1031, Flags: Paired | Tunnelled},
			FlowKey{Reverse, port(pod), port(remapped), model.UDP}},
		{"its reverse row",
			Flow{FlowKey: FlowKey{Reverse, port(pod), port(remapped), model.UDP}, Nat: port(front), ClientPort: 40000, Flags: Paired | Tunnelled},
			FlowKey{Backend, port(client), port(front), model.UDP}},
	}
	for _, test := range tests {
		got, paired := test.flow.Mirror()
		if diff := cmp.Diff(test.want, got, addrs); !paired || diff != "" {
			t.Errorf("%s: paired %v (-want +got):\n%s", test.name, paired, diff)
		}
		test.flow.Flags &^= Paired
		if got, paired := test.flow.Mirror(); paired {
			t.Errorf("%s: alone, and has the mirror %s", test.name, got)
		}
	}
}

// wireFlow is a row as the programs write it, byte for byte.
func wireFlow(n uint16) (bpfobj.BeepFlowKey, bpfobj.BeepFlow) {
	mapped := func(a, b, c, d byte) [16]uint8 { return [16]uint8{10: 0xff, 11: 0xff, 12: a, 13: b, 14: c, 15: d} }
	return bpfobj.BeepFlowKey{
			Src: mapped(198, 51, 100, 7), SportBe: n<<8 | n>>8, Dst: mapped(192, 0, 2, 1), DportBe: 0x5000, Proto: 6, Kind: 1,
		}, bpfobj.BeepFlow{
			NatAddr: [16]uint8{0x20, 1, 0xd, 0xb8, 0, 0xa, 15: 5}, NatPortBe: 0x901f, Peer: mapped(192, 0, 2, 2),
			Uplink: 3, FrontId: 4, LastSeen: 5, Epoch: 6, Flags: 1 | 8, ClientPortBe: 0x409c, TunnelPortBe: 0x00c0,
			ClientMac: [6]uint8{2, 0, 0, 0, 0, 7}, UplinkMac: [6]uint8{2, 0, 0, 0, 0, 1},
		}
}

func TestFlowsAreReadAsTheProgramsWriteThem(t *testing.T) {
	k := newKernel(t, small)
	key, row := wireFlow(40000)
	must(t, k.maps.FLOW_PENDING.Update(&key, &row, ebpf.UpdateAny))
	want := Flow{
		FlowKey: FlowKey{Forward, port(client), port(front), model.TCP}, Table: FlowPending,
		Nat: port("[2001:db8:a::5]:8080"), Peer: addr("192.0.2.2"), Uplink: 3, FrontID: 4, LastSeen: 5, Epoch: 6,
		Flags: Replied | Closed, ClientPort: 40000, TunnelPort: 0xc000,
		ClientMAC: [6]byte{2, 0, 0, 0, 0, 7}, UplinkMAC: [6]byte{2, 0, 0, 0, 0, 1},
	}
	var got []Flow
	must(t, k.Flows(func(f Flow) bool { got = append(got, f); return true }))
	if diff := cmp.Diff([]Flow{want}, got, addrs); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if text := want.String() + " " + want.Flags.String(); text != "forward TCP 198.51.100.7:40000 > 192.0.2.1:80 replied,closed" {
		t.Errorf("it prints as %s", text)
	}

	one, err := k.LookupFlow(FlowPending, want.FlowKey)
	must(t, err)
	if diff := cmp.Diff(want, one, addrs); diff != "" {
		t.Errorf("looked up (-want +got):\n%s", diff)
	}
	_, err = k.LookupFlow(FlowTable, want.FlowKey)
	refused(t, err, ErrNoRow, "FLOW_TABLE", "198.51.100.7:40000")
	must(t, k.DeleteFlow(FlowPending, want.FlowKey), k.PutFlow(want))
	one, err = k.LookupFlow(FlowPending, want.FlowKey)
	must(t, err)
	if diff := cmp.Diff(want, one, addrs); diff != "" {
		t.Errorf("written and looked up (-want +got):\n%s", diff)
	}
	must(t, k.DeleteFlow(FlowPending, want.FlowKey))
	refused(t, k.DeleteFlow(FlowPending, want.FlowKey), ErrNoRow, "FLOW_PENDING")
}

// fillFlows writes n rows into FLOW_TABLE.
func fillFlows(t testing.TB, k *Kernel, n int) {
	t.Helper()
	for i := range n {
		key, row := wireFlow(uint16(i))
		key.DportBe = uint16(i >> 16)
		must(t, k.maps.FLOW_TABLE.Update(&key, &row, ebpf.UpdateAny))
	}
}

// TestEachFlowComesOnce reads more rows than a batch holds, and deletes half of them on the way.
func TestEachFlowComesOnce(t *testing.T) {
	const n = 20000
	k := newKernel(t, flowSizes(4*n))
	fillFlows(t, k, n)
	seen := map[FlowKey]int{}
	must(t, k.Flows(func(f Flow) bool {
		seen[f.FlowKey]++
		if f.Src.Port()%2 == 0 {
			must(t, k.DeleteFlow(f.Table, f.FlowKey))
		}
		return true
	}))
	for key, times := range seen {
		if times != 1 {
			t.Fatalf("%s came %d times", key, times)
		}
	}
	if len(seen) != n {
		t.Errorf("%d flows came, want %d", len(seen), n)
	}
	left := 0
	must(t, k.Flows(func(Flow) bool { left++; return true }))
	if left != n/2 {
		t.Errorf("%d flows are left, want %d", left, n/2)
	}
	left = 0
	must(t, k.Flows(func(Flow) bool { left++; return left < 10 }))
	if left != 10 {
		t.Errorf("visit was called %d times, and had enough after 10", left)
	}
}

// TestBucketsLargerThanABatch: the kernel answers ENOSPC to a buffer that the next bucket does not fit in.
func TestBucketsLargerThanABatch(t *testing.T) {
	k := newKernel(t, flowSizes(1024))
	fillFlows(t, k, 900)
	seen := map[bpfobj.BeepFlowKey]int{}
	must(t, k.flows[FlowTable].eachBatch(1, func(key bpfobj.BeepFlowKey, _ bpfobj.BeepFlow) bool {
		seen[key]++
		return true
	}))
	want := 0
	must(t, k.Flows(func(Flow) bool { want++; return true }))
	for key, times := range seen {
		if times != 1 {
			t.Fatalf("%v came %d times", key, times)
		}
	}
	if len(seen) != want || want < 800 {
		t.Errorf("%d rows came, of %d", len(seen), want)
	}
}

func BenchmarkFlows65536(b *testing.B) {
	k := newKernel(b, flowSizes(1<<17))
	fillFlows(b, k, 1<<16)
	for b.Loop() {
		must(b, k.Flows(func(Flow) bool { return true }))
	}
}

func BenchmarkFill65536(b *testing.B) {
	k := newKernel(b, flowSizes(1<<17))
	fillFlows(b, k, 1<<16)
	for b.Loop() {
		_, err := k.Fill()
		must(b, err)
	}
}

// flowSizes are maps of which only the tables of established flows matter.
func flowSizes(n uint32) Sizes {
	return Sizes{FrontMeta: 1, FrontEndpoints: 1, FrontRing: 1, FrontSources: 1, FlowTable: n, FlowDatagrams: n, FlowPending: 16,
		Affinity: 16, Fragments: 16, NodeAllow: 1, PodTargets: 1}
}
