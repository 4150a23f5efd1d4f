// SPDX-License-Identifier: Apache-2.0

package maps

import (
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"github.com/beep-lb/beep/src/datapath/bpfobj"
)

// TestEveryReasonHasWords compares the table with the enum as the object has it: a reason is named after its
// constant, and a person reads a sentence.
func TestEveryReasonHasWords(t *testing.T) {
	spec, err := bpfobj.LoadBeep()
	must(t, err)
	var enum *btf.Enum
	must(t, spec.Types.TypeByName("drop_reason", &enum))
	named := map[string]string{}
	for _, value := range enum.Values {
		if value.Name == "DROP_UNUSED" || value.Name == "DROP_REASONS" {
			continue
		}
		reason := Reason(value.Value)
		want := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(value.Name, "DROP_")), "_", "-")
		if reason.String() != want {
			t.Errorf("%s = %d is called %q, want %q: add it to the table of words", value.Name, value.Value, reason, want)
		}
		if other, twice := named[reason.Words()]; twice || len(reason.Words()) < 40 {
			t.Errorf("%s has the words %q (and %s)", value.Name, reason.Words(), other)
		}
		named[reason.Words()] = value.Name
	}
	if len(named) != len(words) || len(Reasons()) != len(words) {
		t.Errorf("%d reasons in the object, %d have words, %d are listed", len(named), len(words), len(Reasons()))
	}
	if got := Reason(99).String() + ": " + Reason(99).Words(); !strings.HasPrefix(got, "reason 99: not known") {
		t.Errorf("an unknown reason: %s", got)
	}
}

func TestDropsAreSummedOverCPUs(t *testing.T) {
	k := newKernel(t, small)
	cpus := ebpf.MustPossibleCPU()
	counts := make([]bpfobj.BeepDropCount, cpus)
	var packets uint64
	for cpu := range counts {
		counts[cpu] = bpfobj.BeepDropCount{Packets: uint64(cpu) + 1, Bytes: 100 * (uint64(cpu) + 1)}
		packets += uint64(cpu) + 1
	}
	index := uint32(bpfobj.BeepDropReasonDROP_ECN)*2 + uint32(Egress)
	must(t, k.maps.DROPS.Update(&index, counts, ebpf.UpdateAny))

	rows, err := k.Drops()
	must(t, err)
	if len(rows) != 2*len(Reasons()) {
		t.Errorf("%d rows, want one for each of %d reasons and two directions", len(rows), len(Reasons()))
	}
	for _, row := range rows {
		want := DropRow{Reason: row.Reason, Direction: row.Direction}
		if row.Reason.String() == "ecn" && row.Direction.String() == "egress" {
			want.Packets, want.Bytes = packets, 100*packets
		}
		if row != want {
			t.Errorf("%s at %s: %+v, want %+v", row.Reason, row.Direction, row, want)
		}
	}
}
