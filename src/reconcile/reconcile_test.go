// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/src/config"
	"github.com/beep-lb/beep/src/datapath/maps"
	"github.com/beep-lb/beep/src/maglev"
	"github.com/beep-lb/beep/src/model"
)

// want is a desired state in the language of --fixture, on node 192.0.2.1 with seed 1.
func want(t tb, fixtures ...string) model.Desired {
	t.Helper()
	desired, err := config.ParseFixtures(append([]string{"node=192.0.2.1"}, fixtures...))
	if err != nil {
		t.Fatal(err)
	}
	desired.Seed[0] = 1
	return desired
}

// front is the fixtures of TCP/192.0.2.1:port with endpoints 10.42.0.1 to 10.42.0.n.
func front(port, n int) []string {
	socket := fmt.Sprintf("front=tcp/192.0.2.1:%d", port)
	if n == 0 {
		return []string{socket}
	}
	var fixtures []string
	for i := range n {
		fixtures = append(fixtures, fmt.Sprintf("%s,10.42.0.%d:8080", socket, i+1))
	}
	return fixtures
}

// numbered is a reconciler whose new fronts start with generation 1.
func numbered(m maps.Maps, clock *clock) *Reconciler {
	r := New(m, clock.now)
	r.first = func() uint32 { return 1 }
	return r
}

// texts are steps or error lines, to compare.
func texts(steps []Step) string {
	var lines []string
	for _, step := range steps {
		lines = append(lines, step.String())
	}
	return strings.Join(lines, "\n")
}

func apply(t *testing.T, r *Reconciler, desired model.Desired) string {
	t.Helper()
	steps, err := r.Apply(desired)
	if err != nil {
		t.Fatal(err)
	}
	return texts(steps)
}

func TestSteps(t *testing.T) {
	for _, tt := range []struct {
		name          string
		before, after []string
		steps         string
	}{
		{"nothing differs", front(80, 3), front(80, 3), ""},
		{"the order of endpoints does not matter", front(80, 3), []string{
			"front=tcp/192.0.2.1:80,10.42.0.3:8080", "front=tcp/192.0.2.1:80,10.42.0.1:8080", "front=tcp/192.0.2.1:80,10.42.0.2:8080"}, ""},
		{"a new front", nil, front(80, 3), "front TCP/192.0.2.1:80 added: 3 endpoints"},
		{"a front without endpoints", nil, front(80, 0), "front TCP/192.0.2.1:80 added: 0 endpoints"},
		{"an endpoint leaves", front(80, 3), front(80, 2), "front TCP/192.0.2.1:80 changed: 2 endpoints"},
		{"an endpoint moves to another node", front(80, 1), []string{"front=tcp/192.0.2.1:80,10.42.0.1:8080@192.0.2.2"},
			"peer 192.0.2.2 added\nfront TCP/192.0.2.1:80 changed: 1 endpoint"},
		{"affinity alone", front(80, 1), []string{"front=tcp/192.0.2.1:80,10.42.0.1:8080:affinity"},
			"front TCP/192.0.2.1:80 changed: 1 endpoint, ClientIP affinity for 3h0m0s"},
		{"shrinking first, then by key, and removed last",
			slices.Concat(front(80, 1), front(81, 1), front(82, 3), front(83, 4)),
			slices.Concat(front(80, 2), front(82, 2), front(83, 3), front(84, 1)),
			"front TCP/192.0.2.1:82 changed: 2 endpoints\nfront TCP/192.0.2.1:83 changed: 3 endpoints\n" +
				"front TCP/192.0.2.1:80 changed: 2 endpoints\nfront TCP/192.0.2.1:84 added: 1 endpoint\n" +
				"front TCP/192.0.2.1:81 removed"},
		{"removed first where both do not fit",
			slices.Concat(front(80, 0), front(81, 0), front(82, 0), front(83, 0), front(84, 0), front(85, 0), front(86, 0), front(87, 0)),
			slices.Concat(front(81, 0), front(82, 0), front(83, 0), front(84, 0), front(85, 0), front(86, 0), front(87, 0), front(88, 0)),
			"front TCP/192.0.2.1:80 removed\nfront TCP/192.0.2.1:88 added: 0 endpoints"},
		{"trusted before the fronts, distrusted after",
			[]string{"peer=192.0.2.2", "target=tcp/10.42.1.1:80"},
			slices.Concat(front(80, 1), []string{"peer=192.0.2.3", "target=udp/10.42.1.1:80"}),
			"peer 192.0.2.3 added\ntarget UDP/10.42.1.1:80 added\nfront TCP/192.0.2.1:80 added: 1 endpoint\n" +
				"peer 192.0.2.2 removed\ntarget TCP/10.42.1.1:80 removed"},
		{"distrusted first where both do not fit",
			[]string{"peer=192.0.2.2", "peer=192.0.2.3", "peer=192.0.2.4", "peer=192.0.2.5"},
			[]string{"peer=192.0.2.3", "peer=192.0.2.4", "peer=192.0.2.5", "peer=192.0.2.6"},
			"peer 192.0.2.2 removed\npeer 192.0.2.6 added"},
		{"another underlay", nil, []string{"node=2001:db8:b::1"}, "config CONFIG changed: underlay 192.0.2.1, underlay 2001:db8:b::1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fake, clock := maps.NewFake(sizes), newClock()
			r := New(fake, clock.now)
			apply(t, r, want(t, tt.before...))
			clock.advance(Grace)
			apply(t, r, want(t, tt.before...))
			if got := apply(t, r, want(t, tt.after...)); got != tt.steps {
				t.Errorf("steps:\n%s\nwant:\n%s", got, tt.steps)
			}
			clock.advance(Grace)
			apply(t, r, want(t, tt.after...))
			if got, want := dump(t, fake), expected(want(t, tt.after...)); got != want {
				t.Errorf("maps:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

func TestNewSeedMakesNewRings(t *testing.T) {
	fake, clock := maps.NewFake(sizes), newClock()
	r := New(fake, clock.now)
	desired := want(t, slices.Concat(front(80, 3), front(81, 1))...)
	apply(t, r, desired)
	desired.Seed[0] = 2
	const steps = "config CONFIG changed: underlay 192.0.2.1, new hash seed\nfront TCP/192.0.2.1:80 changed: 3 endpoints"
	if got := apply(t, r, desired); got != steps {
		t.Errorf("steps:\n%s\nwant:\n%s", got, steps)
	}
}

func TestRingIsKeyedByAddressAndPort(t *testing.T) {
	fake := maps.NewFake(sizes)
	desired := want(t, front(80, 3)...)
	apply(t, numbered(fake, newClock()), desired)
	var keys [][]byte
	for _, endpoint := range desired.Fronts[0].Endpoints {
		addr := endpoint.Addr.As16()
		keys = append(keys, binary.BigEndian.AppendUint16(addr[:], endpoint.Port))
	}
	ring, err := maglev.Table(desired.Seed, keys, maglev.Size(3))
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := fake.RingBlocks()
	if err != nil {
		t.Fatal(err)
	}
	for slot, index := range ring {
		key := maps.RingKey{Front: 1, Generation: 1, Block: uint32(slot / maps.RingBlock)}
		if got := blocks[key][slot%maps.RingBlock]; got != index {
			t.Fatalf("slot %d holds %d, want %d", slot, got, index)
		}
	}
}

func TestNothingIsWrittenTwice(t *testing.T) {
	onBoth(t, func(t *testing.T, fresh func() maps.Maps) {
		desired := want(t, slices.Concat(front(80, 3), front(81, 1), front(82, 0), []string{"peer=192.0.2.2", "target=tcp/10.42.1.1:80"})...)
		m := &watched{Maps: fresh()}
		r := New(m, newClock().now)
		apply(t, r, desired)
		m.fail = func(row string) error { return fmt.Errorf("unexpected: %s", row) }
		if steps := apply(t, r, desired); steps != "" {
			t.Errorf("steps: %s", steps)
		}
		m.fail = nil
		if steps := apply(t, New(m, newClock().now), desired); steps != "config CONFIG renewed" {
			t.Errorf("steps after a restart: %s", steps)
		}
		if at, due := r.Due(); due {
			t.Errorf("something is due at %s", at)
		}
	})
}

func TestEpochIsKept(t *testing.T) {
	onBoth(t, func(t *testing.T, fresh func() maps.Maps) {
		m := fresh()
		r := New(m, newClock().now)
		apply(t, r, want(t, "peer=192.0.2.2"))
		apply(t, r, want(t))
		apply(t, r, want(t, "node=2001:db8:b::1"))
		got, err := m.Config()
		if err != nil || got.Epoch != 2 || got.ABI != maps.ABI {
			t.Errorf("config %+v, %v: want epoch 2 and this ABI", got, err)
		}
	})
}

func TestOldGenerationGoesAfterItsGrace(t *testing.T) {
	onBoth(t, func(t *testing.T, fresh func() maps.Maps) {
		m, clock := fresh(), newClock()
		r := numbered(m, clock)
		apply(t, r, want(t, front(80, 3)...))
		apply(t, r, want(t, front(80, 2)...))
		at, due := r.Due()
		if !due || at != clock.now().Add(Grace) {
			t.Errorf("due: %s, %t", at, due)
		}
		clock.advance(Grace - time.Millisecond)
		if steps := apply(t, r, want(t, front(80, 2)...)); steps != "" {
			t.Errorf("too early: %s", steps)
		}
		clock.advance(time.Millisecond)
		if steps := apply(t, r, want(t, front(80, 2)...)); steps != "rows 1/1 collected: 3 endpoints, 7 ring blocks" {
			t.Errorf("after the grace: %s", steps)
		}
		if _, due := r.Due(); due {
			t.Error("something is still due")
		}
	})
}

func TestIDs(t *testing.T) {
	fake, clock := maps.NewFake(sizes), newClock()
	ids := func() string {
		fronts, err := fake.Fronts()
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, front := range fronts {
			all = append(all, fmt.Sprintf("%d=%d/%d", front.Port, front.ID, front.Generation))
		}
		return strings.Join(all, " ")
	}
	r := numbered(fake, clock)
	for _, tt := range []struct {
		does    string
		restart bool
		wait    time.Duration
		fronts  []string
		ids     string
	}{
		{"ids start at 1", false, 0, slices.Concat(front(80, 1), front(81, 1)), "80=1/1 81=2/1"},
		{"a restart keeps them", true, 0, slices.Concat(front(80, 1), front(81, 2)), "80=1/1 81=2/2"},
		{"an id with rows is not free", false, 0, slices.Concat(front(81, 2), front(82, 1)), "81=2/2 82=3/1"},
		{"its rows go", false, Grace, slices.Concat(front(81, 2), front(82, 1)), "81=2/2 82=3/1"},
		{"then it is free", false, 0, slices.Concat(front(81, 2), front(82, 1), front(83, 1)), "81=2/2 82=3/1 83=1/1"},
	} {
		clock.advance(tt.wait)
		if tt.restart {
			r = numbered(fake, clock)
		}
		apply(t, r, want(t, tt.fronts...))
		if got := ids(); got != tt.ids {
			t.Errorf("%s: %s, want %s", tt.does, got, tt.ids)
		}
	}
}

func TestOrphansAreCollectedAndTheirNumbersAvoided(t *testing.T) {
	onBoth(t, func(t *testing.T, fresh func() maps.Maps) {
		m := fresh()
		r := numbered(m, newClock())
		apply(t, r, want(t, front(80, 1)...))
		endpoint := want(t, front(80, 1)...).Fronts[0].Endpoints[0]
		for _, key := range []maps.EndpointKey{{Front: 1, Generation: 2}, {Front: 2, Generation: 5, Index: 9}} {
			if err := m.PutEndpoint(key, endpoint); err != nil {
				t.Fatal(err)
			}
		}
		r = numbered(m, newClock()) // the process that left them was killed
		desired := want(t, slices.Concat(front(80, 2), front(81, 1))...)
		const steps = "config CONFIG renewed\nrows 1/2 collected: 1 endpoints, 0 ring blocks\nrows 2/5 collected: 1 endpoints, 0 ring blocks\n" +
			"front TCP/192.0.2.1:80 changed: 2 endpoints\nfront TCP/192.0.2.1:81 added: 1 endpoint"
		if got := apply(t, r, desired); got != steps {
			t.Errorf("steps:\n%s\nwant:\n%s", got, steps)
		}
		fronts, err := m.Fronts()
		if err != nil || fronts[0].Generation != 3 || fronts[1].ID != 3 {
			t.Errorf("fronts %+v, %v: want generation 3 of the first, id 3 for the second", fronts, err)
		}
	})
}

func TestCapacity(t *testing.T) {
	many := func(from, to int) (fronts []string) {
		for port := from; port <= to; port++ {
			fronts = append(fronts, front(port, 1)...)
		}
		return fronts
	}
	for _, tt := range []struct {
		name          string
		before, after []string
		err           string
		kept          []string
	}{
		{"fronts", nil, many(80, 88),
			"front TCP/192.0.2.1:88 is not added: map is full: FRONT_META has 0 of 8 rows free and this takes 1: raise --max-fronts", many(80, 87)},
		{"endpoints of a new front", nil, slices.Concat(front(80, 20), front(81, 15), front(82, 1)),
			"front TCP/192.0.2.1:81 is not added: map is full: FRONT_ENDPOINTS has 12 of 32 rows free and this takes 15: raise --endpoints-per-front",
			slices.Concat(front(80, 20), front(82, 1))},
		{"endpoints of a front that keeps its own", front(80, 2), front(80, 31),
			"front TCP/192.0.2.1:80 keeps its previous endpoints: map is full: FRONT_ENDPOINTS has 30 of 32 rows free and this takes 31: raise --endpoints-per-front",
			front(80, 2)},
		{"a ring", nil, slices.Concat(front(80, 17), front(81, 2), front(82, 2), front(83, 2), front(84, 2), front(85, 2), front(86, 2), front(87, 2)),
			"front TCP/192.0.2.1:87 is not added: map is full: FRONT_RING has 2 of 70 rows free and this takes 7: raise --endpoints-per-front",
			slices.Concat(front(80, 17), front(81, 2), front(82, 2), front(83, 2), front(84, 2), front(85, 2), front(86, 2))},
		{"peers", []string{"peer=192.0.2.9"}, []string{"peer=192.0.2.2", "peer=192.0.2.3", "peer=192.0.2.4", "peer=192.0.2.5", "peer=192.0.2.6"},
			"1 of 5 peers are left out: map is full: NODE_ALLOW has 4 of 4 rows free and this takes 5: raise --node-allow-max-entries",
			[]string{"peer=192.0.2.2", "peer=192.0.2.3", "peer=192.0.2.4", "peer=192.0.2.5"}},
		{"targets", nil, []string{"target=tcp/10.42.0.1:1", "target=tcp/10.42.0.1:2", "target=tcp/10.42.0.1:3", "target=tcp/10.42.0.1:4", "target=tcp/10.42.0.1:5"},
			"1 of 5 targets are left out: map is full: POD_TARGETS has 4 of 4 rows free and this takes 5: raise --pod-targets-max-entries",
			[]string{"target=tcp/10.42.0.1:1", "target=tcp/10.42.0.1:2", "target=tcp/10.42.0.1:3", "target=tcp/10.42.0.1:4"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, fresh func() maps.Maps) {
				m := fresh()
				r := New(m, newClock().now)
				apply(t, r, want(t, tt.before...))
				_, err := r.Apply(want(t, tt.after...))
				if err == nil || err.Error() != tt.err || !errors.Is(err, maps.ErrCapacity) {
					t.Errorf("error:\n%v\nwant:\n%s", err, tt.err)
				}
				if got, want := dump(t, m), expected(want(t, tt.kept...)); got != want {
					t.Errorf("maps:\n%s\nwant:\n%s", got, want)
				}
			})
		})
	}
}

func TestRefusedForTheSwapAloneFitsAfterTheGrace(t *testing.T) {
	fake, clock := maps.NewFake(sizes), newClock()
	r := New(fake, clock.now)
	apply(t, r, want(t, front(80, 20)...))
	desired := want(t, front(81, 20)...)
	if _, err := r.Apply(desired); !errors.Is(err, maps.ErrCapacity) {
		t.Errorf("beside the old rows: %v", err)
	}
	at, due := r.Due()
	if !due {
		t.Fatal("nothing is due")
	}
	clock.advance(at.Sub(clock.now()))
	apply(t, r, desired)
	if got, want := dump(t, fake), expected(desired); got != want {
		t.Errorf("maps:\n%s\nwant:\n%s", got, want)
	}
}

func TestOneEndpointTwice(t *testing.T) {
	fake := maps.NewFake(sizes)
	desired := want(t, slices.Concat(front(80, 2), front(81, 1))...)
	desired.Fronts[0].Endpoints[1] = desired.Fronts[0].Endpoints[0]
	_, err := New(fake, newClock().now).Apply(desired)
	if err == nil || !strings.HasPrefix(err.Error(), "front TCP/192.0.2.1:80: ") {
		t.Errorf("error: %v", err)
	}
	if got, want := dump(t, fake), expected(want(t, front(81, 1)...)); got != want {
		t.Errorf("maps:\n%s\nwant:\n%s", got, want)
	}
}

func TestCauseOfARefusedWrite(t *testing.T) {
	for _, errno := range []unix.Errno{unix.ENOMEM, unix.E2BIG, unix.EPERM} {
		fake := maps.NewFake(sizes)
		fake.Inject(func(call maps.Call) error {
			if call.Op == maps.Put && call.Map == "FRONT_ENDPOINTS" {
				return errno
			}
			return nil
		})
		_, err := New(fake, newClock().now).Apply(want(t, front(80, 2)...))
		causes := map[unix.Errno]error{unix.ENOMEM: maps.ErrNoMemory, unix.E2BIG: maps.ErrCapacity, unix.EPERM: unix.EPERM}
		if !errors.Is(err, causes[errno]) || !strings.HasPrefix(err.Error(), "front TCP/192.0.2.1:80: write endpoint 0") {
			t.Errorf("%v: %v", errno, err)
		}
	}
}
