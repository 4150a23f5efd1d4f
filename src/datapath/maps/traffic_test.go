// SPDX-License-Identifier: Apache-2.0

package maps

import (
	"testing"

	"github.com/cilium/ebpf"
	"github.com/google/go-cmp/cmp"

	"github.com/beep-lb/beep/src/datapath/bpfobj"
)

// TestTraffic gives each row of the map another count, as two CPUs see it.
func TestTraffic(t *testing.T) {
	k := newKernel(t, small)
	for row := range uint32(bpfobj.BeepTrafficTRAFFIC_ROWS) {
		counts := make([]bpfobj.BeepDropCount, ebpf.MustPossibleCPU())
		counts[0] = bpfobj.BeepDropCount{Packets: uint64(row), Bytes: 10}
		counts[len(counts)-1].Bytes += 100 * uint64(row)
		must(t, k.maps.TRAFFIC.Update(&row, counts, ebpf.UpdateAny))
	}
	got, err := k.Traffic()
	must(t, err)
	row := func(n uint64, from, to string) TrafficRow {
		return TrafficRow{Path: Path{from, to}, Packets: n, Bytes: 10 + 100*n}
	}
	want := Traffic{NewFlows: 8, NewFlowsHere: 9, Remapped: 10, Rows: []TrafficRow{
		row(0, "client", "endpoint"), row(1, "client", "tunnel"), row(2, "peer", "endpoint"), row(3, "peer", "client"),
		row(4, "endpoint", "client"), row(5, "endpoint", "redirect"), row(7, "copy", "redirect"),
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("traffic (-want +got):\n%s", diff)
	}
}
