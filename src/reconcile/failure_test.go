// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/beep-lb/beep/src/datapath/maps"
	"github.com/beep-lb/beep/src/model"
)

// transition has every kind of change: fronts that come, grow, shrink, lose all endpoints, only change affinity,
// and go; peers and targets that come and go; another configuration.
func transition(t tb) (before, after model.Desired) {
	before = want(t, slices.Concat(front(80, 2), front(81, 3), front(82, 1), front(83, 1), front(84, 1),
		sources(81, "198.51.100.0/24", "203.0.113.0/24"), sources(82, "198.51.100.0/24"), sources(84, "203.0.113.0/24"),
		[]string{"peer=192.0.2.2", "target=tcp/10.42.1.1:80"})...)
	after = want(t, slices.Concat(front(80, 3), front(81, 2), front(82, 0), []string{"front=tcp/192.0.2.1:83,10.42.0.1:8080:affinity"},
		front(85, 2), sources(80, "198.51.100.0/24"), sources(81, "198.51.100.0/25", "10.0.0.0/8"), sources(85, "198.51.100.0/25"),
		[]string{"peer=192.0.2.3", "target=tcp/10.42.1.1:81", "node=2001:db8:b::1"})...)
	return before, after
}

// settle applies until nothing is due.
func settle(t tb, r *Reconciler, clock *clock, desired model.Desired) {
	t.Helper()
	for range 3 {
		if _, err := r.Apply(desired); err != nil {
			t.Fatal(err)
		}
		at, due := r.Due()
		if !due {
			return
		}
		clock.advance(at.Sub(clock.now()))
	}
	t.Fatal("something is always due")
}

// TestFailureAtEveryWrite lets the nth write fail, for every n: fronts stay whole, and the next Apply converges.
// In the second variant every later write fails too, as if the process had been killed, and a new one goes on.
func TestFailureAtEveryWrite(t *testing.T) {
	before, after := transition(t)
	for _, killed := range []bool{false, true} {
		t.Run(map[bool]string{false: "one failure", true: "killed"}[killed], func(t *testing.T) {
			onBoth(t, func(t *testing.T, fresh func() maps.Maps) {
				reached := 1
				for n := 1; n <= reached; n++ {
					m, clock := &watched{Maps: fresh()}, newClock()
					r := New(m, clock.now)
					settle(t, r, clock, before)
					written := 0
					check := admission(t, m.Maps, after)
					m.after = func() {
						if written >= n-1 { // what comes before is as with a smaller n
							whole(t, m.Maps)
							check()
						}
					}
					m.fail = func(string) error {
						written++
						if written == n || killed && written > n {
							return unix.ENOMEM
						}
						return nil
					}
					for range 2 { // the second collects what the first retired
						r.Apply(after) //nolint:errcheck // it fails by design, once or more
						clock.advance(Grace)
					}
					reached = max(reached, written)
					m.fail = nil
					if killed {
						r = New(m, clock.now)
					}
					settle(t, r, clock, after)
					if got, want := dump(t, m), expected(after); got != want {
						t.Fatalf("failure at write %d: maps:\n%s\nwant:\n%s", n, got, want)
					}
				}
				if reached < 55 {
					t.Errorf("only %d writes were tried", reached)
				}
			})
		})
	}
}

// TestEpochAfterADeletionThatFailed: the row may be gone when raising the epoch fails.
func TestEpochAfterADeletionThatFailed(t *testing.T) {
	fake, clock := maps.NewFake(sizes), newClock()
	r := New(fake, clock.now)
	settle(t, r, clock, want(t, "peer=192.0.2.2"))
	fake.Inject(func(call maps.Call) error {
		if call.Op == maps.Put && call.Map == "CONFIG" {
			return unix.EPERM
		}
		return nil
	})
	if _, err := r.Apply(want(t)); err == nil {
		t.Fatal("raising the epoch did not fail")
	}
	if _, err := r.Apply(want(t)); err == nil {
		t.Fatal("the second try did not fail")
	}
	fake.Inject(nil)
	settle(t, r, clock, want(t))
	settle(t, r, clock, want(t))
	if got, err := fake.Config(); err != nil || got.Epoch != 2 {
		t.Errorf("config %+v, %v: want epoch 2, one for the start", got, err)
	}
}

// TestAnySequence draws desired states, failures and restarts. Whatever comes, fronts are whole after each write,
// what is refused leaves the rest as desired, and in the end the maps are as desired.
func TestAnySequence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fake, clock := maps.NewFake(sizes), newClock()
		m := &watched{Maps: fake}
		r := New(m, clock.now)
		for range rapid.IntRange(1, 6).Draw(t, "states") {
			desired := drawDesired(t)
			if rapid.Bool().Draw(t, "restart") {
				r = New(m, clock.now)
			}
			fake.Inject(maps.Randomly(rapid.Uint64().Draw(t, "seed"), rapid.SampledFrom([]float64{0, 0.1, 0.5}).Draw(t, "failures"), unix.ENOMEM))
			for range rapid.IntRange(0, 3).Draw(t, "tries") {
				check := admission(t, fake, desired)
				m.after = func() { whole(t, fake); check() }
				r.Apply(desired) //nolint:errcheck // some fail by design
				clock.advance(time.Duration(rapid.IntRange(0, 2).Draw(t, "graces")) * Grace)
			}
			fake.Inject(nil)
		}
		// The last state is small enough to fit beside anything that can be collected.
		m.after = func() { whole(t, fake) }
		last := want(t, slices.Concat(front(80, 2), front(90, 1))...)
		r.Apply(last) //nolint:errcheck // may not fit beside the previous one
		clock.advance(Grace)
		settle(t, r, clock, last)
		if got, want := dump(t, fake), expected(last); got != want {
			t.Fatalf("maps:\n%s\nwant:\n%s", got, want)
		}
	})
}

func drawDesired(t *rapid.T) model.Desired {
	var fixtures []string
	for port := 80; port < 90; port++ {
		if n := rapid.IntRange(-1, 5).Draw(t, "endpoints"); n >= 0 {
			fixtures = append(fixtures, front(port, n)...)
			fixtures = append(fixtures, sources(port, rapid.SliceOfNDistinct(rapid.SampledFrom(someRanges), 0, 3, rapid.ID).Draw(t, "sources")...)...)
		}
	}
	for i := 2; i < 8; i++ {
		if rapid.Bool().Draw(t, "peer") {
			fixtures = append(fixtures, fmt.Sprintf("peer=192.0.2.%d", i))
		}
	}
	desired := want(t, fixtures...)
	desired.Seed[0] = byte(rapid.IntRange(1, 2).Draw(t, "hash seed"))
	return desired
}
