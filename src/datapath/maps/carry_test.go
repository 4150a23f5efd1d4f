// SPDX-License-Identifier: Apache-2.0

package maps

import (
	"strings"
	"testing"
)

// TestCarryFlows: a larger table takes all, also one that is just large enough; a smaller one what fits.
func TestCarryFlows(t *testing.T) {
	const rows = 3000
	old := newKernel(t, flowSizes(4096))
	fillFlows(t, old, rows)
	var before uint32
	must(t, old.Flows(func(Flow) bool { before++; return true }))
	for _, size := range []uint32{4096, 65536, 1024} {
		next := newKernel(t, flowSizes(size))
		carried, err := Carry(FlowTable, old.maps.FLOW_TABLE, next.maps.FLOW_TABLE)
		must(t, err)
		var after uint32
		must(t, next.Flows(func(Flow) bool { after++; return true }))
		if carried.Found != before || carried.Kept != after || carried.Lost() != before-after {
			t.Errorf("%d rows: %+v, of %d rows there are %d", size, carried, before, after)
		}
		if fits := size >= 4096; fits && carried.Lost() > 0 || !fits && after < size/2 {
			t.Errorf("%d rows: %d of %d lost", size, carried.Lost(), carried.Found)
		}
	}
}

func TestCarryRefusesWhatHasOneSize(t *testing.T) {
	k := newKernel(t, small)
	_, err := Carry("CONFIG", k.maps.CONFIG, k.maps.CONFIG)
	if err == nil || !strings.Contains(err.Error(), "CONFIG over: its size is fixed") {
		t.Errorf("error %v", err)
	}
}
