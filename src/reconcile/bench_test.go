// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/beep-lb/beep/src/datapath/maps"
	"github.com/beep-lb/beep/src/model"
)

// sized are maps for so many fronts of ten endpoints.
func sized(fronts int) maps.Sizes {
	n := uint32(fronts)
	return maps.Sizes{FrontMeta: 2 * n, FrontEndpoints: 40 * n, FrontRing: 80 * n, FrontSources: 64, FlowTable: 1024, FlowPending: 256,
		Affinity: 64, Fragments: 64, NodeAllow: 256, PodTargets: 1024}
}

// manyFronts is a state of so many fronts of ten endpoints each.
func manyFronts(fronts int) model.Desired {
	desired := model.Desired{Seed: [16]byte{1}, Underlay4: netip.MustParseAddr("192.0.2.1")}
	for i := range fronts {
		front := model.Front{Socket: model.Socket{Addr: desired.Underlay4, Port: uint16(1024 + i), Proto: model.TCP}}
		for j := range 10 {
			front.Endpoints = append(front.Endpoints, model.Endpoint{Addr: numberedAddr(i*10 + j), Port: 8080})
		}
		desired.Fronts = append(desired.Fronts, front)
	}
	return desired
}

// numberedAddr is an address of 10.42.0.0/16 and, past it, of what follows.
func numberedAddr(n int) netip.Addr {
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, 10<<24|42<<16+uint32(n))))
}

// withoutOne is the state without one endpoint of one front. What did not change is shared with the given state.
func withoutOne(desired model.Desired, front int) model.Desired {
	desired.Fronts = slices.Clone(desired.Fronts)
	desired.Fronts[front].Endpoints = desired.Fronts[front].Endpoints[1:]
	return desired
}

// BenchmarkOneChange is Apply when one endpoint of one front comes or goes, by the number of fronts that there are.
func BenchmarkOneChange(b *testing.B) {
	for _, fronts := range []int{10, 100, 1000, 10000} {
		b.Run(fmt.Sprint(fronts), func(b *testing.B) {
			clock := newClock()
			r := New(maps.NewFake(sized(fronts)), clock.now)
			full := manyFronts(fronts)
			settle(b, r, clock, full)
			states := []model.Desired{full, withoutOne(full, fronts/2)}
			for i := 0; b.Loop(); i++ {
				clock.advance(Grace)
				r.image.read = clock.now() // ReadAgain never comes
				if _, err := r.Apply(states[i%2]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkStart is the first Apply of a process, onto maps that are as desired.
func BenchmarkStart(b *testing.B) {
	for _, fronts := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint(fronts), func(b *testing.B) {
			m, clock, full := maps.NewFake(sized(fronts)), newClock(), manyFronts(fronts)
			settle(b, New(m, clock.now), clock, full)
			for b.Loop() {
				if _, err := New(m, clock.now).Apply(full); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
