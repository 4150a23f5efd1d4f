// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/src/datapath/bpfobj"
	"github.com/beep-lb/beep/src/datapath/maps"
	"github.com/beep-lb/beep/src/maglev"
	"github.com/beep-lb/beep/src/model"
)

func TestMain(m *testing.M) { os.Exit(require.Main(m)) }

// tb is what testing.T and rapid.T share.
type tb interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// sizes fit a few fronts of a few endpoints; a ring of 2 to 16 endpoints is 7 blocks.
var sizes = maps.Sizes{FrontMeta: 8, FrontEndpoints: 32, FrontRing: 10 * 7, FrontSources: 12, FlowTable: 1024, FlowDatagrams: 256, FlowPending: 256,
	Affinity: 64, Fragments: 64, NodeAllow: 4, PodTargets: 4}

// onBoth runs one spec on the fake and on the kernel's own maps.
func onBoth(t *testing.T, spec func(t *testing.T, fresh func() maps.Maps)) {
	t.Run("fake", func(t *testing.T) {
		spec(t, func() maps.Maps { return maps.NewFake(sizes) })
	})
	t.Run("kernel", func(t *testing.T) {
		require.Root(t)
		spec(t, func() maps.Maps { return kernelMaps(t) })
	})
}

func kernelMaps(t *testing.T) maps.Maps {
	t.Helper()
	spec, err := bpfobj.LoadBeep()
	if err != nil {
		t.Fatal(err)
	}
	for name, entries := range sizes.ByMap() {
		spec.Maps[name].MaxEntries = entries
	}
	var objects bpfobj.BeepMaps
	if err := spec.LoadAndAssign(&objects, nil); err != nil {
		t.Fatal(err)
	}
	kernel := maps.New(objects)
	t.Cleanup(func() { kernel.Close() })
	if err := kernel.SetConfig(maps.Config{ABI: maps.ABI}); err != nil {
		t.Fatal(err)
	}
	return kernel
}

// watched passes writes on, after asking fail and before telling after.
type watched struct {
	maps.Maps
	fail  func(row string) error
	after func()
}

func (w *watched) write(row string, do func() error) error {
	if w.fail != nil {
		if err := w.fail(row); err != nil {
			return err
		}
	}
	err := do()
	if w.after != nil {
		w.after()
	}
	return err
}

func (w *watched) PutFront(f maps.FrontMeta) error {
	return w.write("put front", func() error { return w.Maps.PutFront(f) })
}
func (w *watched) DeleteFront(s model.Socket) error {
	return w.write("delete front", func() error { return w.Maps.DeleteFront(s) })
}
func (w *watched) PutEndpoint(k maps.EndpointKey, e model.Endpoint) error {
	return w.write("put endpoint", func() error { return w.Maps.PutEndpoint(k, e) })
}
func (w *watched) DeleteEndpoint(k maps.EndpointKey) error {
	return w.write("delete endpoint", func() error { return w.Maps.DeleteEndpoint(k) })
}
func (w *watched) PutRingBlock(k maps.RingKey, r []uint16) error {
	return w.write("put ring", func() error { return w.Maps.PutRingBlock(k, r) })
}
func (w *watched) DeleteRingBlock(k maps.RingKey) error {
	return w.write("delete ring", func() error { return w.Maps.DeleteRingBlock(k) })
}
func (w *watched) PutSource(k maps.SourceKey) error {
	return w.write("put source", func() error { return w.Maps.PutSource(k) })
}
func (w *watched) DeleteSource(k maps.SourceKey) error {
	return w.write("delete source", func() error { return w.Maps.DeleteSource(k) })
}
func (w *watched) RaiseEpoch() error { return w.write("raise epoch", w.Maps.RaiseEpoch) }
func (w *watched) PutPeer(a netip.Addr) error {
	return w.write("put peer", func() error { return w.Maps.PutPeer(a) })
}
func (w *watched) DeletePeer(a netip.Addr) error {
	return w.write("delete peer", func() error { return w.Maps.DeletePeer(a) })
}
func (w *watched) PutTarget(s model.Socket) error {
	return w.write("put target", func() error { return w.Maps.PutTarget(s) })
}
func (w *watched) DeleteTarget(s model.Socket) error {
	return w.write("delete target", func() error { return w.Maps.DeleteTarget(s) })
}
func (w *watched) SetConfig(c maps.Config) error {
	return w.write("set config", func() error { return w.Maps.SetConfig(c) })
}

// clock is a time that tests move.
type clock struct{ time time.Time }

func newClock() *clock                      { return &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)} }
func (c *clock) now() time.Time             { return c.time }
func (c *clock) advance(step time.Duration) { c.time = c.time.Add(step) }

// whole fails if a front lacks an endpoint or a ring block, or its ring names an endpoint that it has not.
func whole(t tb, m maps.Maps) {
	t.Helper()
	state, err := Read(m)
	if err != nil {
		t.Fatal(err)
	}
	ids := map[uint32]model.Socket{}
	for _, front := range state.Fronts {
		if other, taken := ids[front.ID]; taken || front.ID == 0 {
			t.Fatalf("front %s has the id %d, which is 0 or %s's", front.Socket, front.ID, other)
		}
		ids[front.ID] = front.Socket
		for i := range front.Count {
			if _, ok := state.Endpoints[maps.EndpointKey{Front: front.ID, Generation: front.Generation, Index: i}]; !ok {
				t.Fatalf("front %s lacks endpoint %d", front.Socket, i)
			}
		}
		for block := range blocksOf(front) {
			indexes := state.Rings[maps.RingKey{Front: front.ID, Generation: front.Generation, Block: block}]
			if indexes == nil || uint32(slices.Max(indexes)) >= front.Count {
				t.Fatalf("front %s: ring block %d is missing or names no endpoint: %v", front.Socket, block, indexes)
			}
		}
	}
}

// blocksOf is the number of ring blocks that the front must have.
func blocksOf(front maps.FrontMeta) uint32 {
	return (front.RingSize + uint32(maps.RingBlock) - 1) / uint32(maps.RingBlock)
}

// dump is what the maps hold, as text; rows that no front names are lines of their own.
func dump(t tb, m maps.Maps) string {
	t.Helper()
	state, err := Read(m)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	add("config seed %d underlay %s %s", state.Config.Seed[0], state.Config.Underlay4, state.Config.Underlay6)
	limited := map[uint32]bool{}
	for _, front := range state.Fronts {
		add("front %s affinity=%t,%d slots=%d", front.Socket, front.ClientIPAffinity, front.AffinitySeconds, front.RingSize)
		limited[front.ID] = front.SourcesLimited
		if front.SourcesLimited {
			add("  takes %v", sourcesIn(state, front.ID))
		}
		for i := range front.Count {
			key := maps.EndpointKey{Front: front.ID, Generation: front.Generation, Index: i}
			add("  %s", state.Endpoints[key])
			delete(state.Endpoints, key)
		}
		for block := range blocksOf(front) {
			delete(state.Rings, maps.RingKey{Front: front.ID, Generation: front.Generation, Block: block})
		}
	}
	var stray []string
	for _, key := range state.Sources {
		if !limited[key.Front] {
			stray = append(stray, "stray "+key.String())
		}
	}
	for key := range state.Endpoints {
		stray = append(stray, "stray "+key.String())
	}
	for key := range state.Rings {
		stray = append(stray, "stray "+key.String())
	}
	slices.Sort(stray)
	lines = append(lines, stray...)
	for _, peer := range state.Peers {
		add("peer %s", peer)
	}
	for _, target := range state.Targets {
		add("target %s", target)
	}
	return strings.Join(lines, "\n")
}

// expected is the dump of maps that are as desired.
func expected(desired model.Desired) string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	add("config seed %d underlay %s %s", desired.Seed[0], desired.Underlay4, desired.Underlay6)
	for _, front := range desired.Fronts {
		add("front %s affinity=%t,%.0f slots=%d", front.Socket, front.ClientIPAffinity, front.AffinityFor().Seconds(),
			maglev.Size(len(front.Endpoints)))
		if ranges, limited := front.Limits(); limited {
			add("  takes %v", ranges)
		}
		for _, endpoint := range front.Endpoints {
			add("  %s", endpoint)
		}
	}
	for _, peer := range desired.Peers {
		add("peer %s", peer)
	}
	for _, target := range desired.Targets {
		add("target %s", target)
	}
	return strings.Join(lines, "\n")
}
