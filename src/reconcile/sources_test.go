// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/src/datapath/maps"
	"github.com/beep-lb/beep/src/model"
)

// sources are the fixtures of ranges of TCP/192.0.2.1:port.
func sources(port int, ranges ...string) []string {
	var fixtures []string
	for _, source := range ranges {
		fixtures = append(fixtures, fmt.Sprintf("source=tcp/192.0.2.1:%d,%s", port, source))
	}
	return fixtures
}

// someRanges overlap, and someClients tell them apart.
var (
	someRanges  = []string{"0.0.0.0/0", "198.51.100.0/24", "198.51.100.0/25", "198.51.100.128/25", "10.0.0.0/8", "2001:db8::/32"}
	someClients = []netip.Addr{netip.MustParseAddr("198.51.100.7"), netip.MustParseAddr("198.51.100.200"),
		netip.MustParseAddr("10.1.2.3"), netip.MustParseAddr("203.0.113.9")}
)

// sourcesIn are the rows of one front.
func sourcesIn(state State, id uint32) []netip.Prefix {
	var ranges []netip.Prefix
	for _, key := range state.Sources {
		if key.Front == id {
			ranges = append(ranges, key.Prefix)
		}
	}
	return ranges
}

// takes says whether ranges let a client in.
func takes(ranges []netip.Prefix, limited bool, client netip.Addr) bool {
	return !limited || slices.ContainsFunc(ranges, func(p netip.Prefix) bool { return p.Contains(client) })
}

// admitted lists the clients that each front takes now, as the programs look it up.
func admitted(t tb, m maps.Maps) map[model.Socket][]bool {
	t.Helper()
	state, err := Read(m)
	if err != nil {
		t.Fatal(err)
	}
	all := map[model.Socket][]bool{}
	for _, front := range state.Fronts {
		ranges := sourcesIn(state, front.ID)
		for _, client := range someClients {
			all[front.Socket] = append(all[front.Socket], takes(ranges, front.SourcesLimited, client))
		}
	}
	return all
}

// admission returns a check, for any moment on the way to desired: a client whom a front takes before and after is
// taken, and one whom it takes neither before nor after is not.
func admission(t tb, m maps.Maps, desired model.Desired) func() {
	t.Helper()
	before, after := admitted(t, m), map[model.Socket][]bool{}
	for _, front := range desired.Fronts {
		ranges, limited := front.Limits()
		for _, client := range someClients {
			after[front.Socket] = append(after[front.Socket], takes(ranges, limited, client))
		}
	}
	return func() {
		t.Helper()
		for socket, now := range admitted(t, m) {
			for i, client := range someClients {
				had, gets := before[socket], after[socket]
				if (had == nil || now[i] != had[i]) && (gets == nil || now[i] != gets[i]) {
					t.Fatalf("front %s takes %s: %t, before %v, after %v", socket, client, now[i], had, gets)
				}
			}
		}
	}
}

func TestSourceSteps(t *testing.T) {
	const front80 = "front TCP/192.0.2.1:80 changed: 1 endpoint"
	const gone = "without the front"
	wide, narrow := sources(80, "198.51.100.0/24"), sources(80, "198.51.100.0/25")
	for _, tt := range []struct {
		name          string
		before, after []string
		steps         string
		writes        string
		narrower      bool // flows have to be checked
	}{
		{"the same", wide, wide, "", "", false},
		{"everybody of the family is no limit", nil, sources(80, "0.0.0.0/0"), "", "", false},
		{"ranges of the other family are nobody", nil, sources(80, "::/0"), front80 + ", for nobody", "put front, raise epoch", true},
		{"a limit", nil, wide, front80 + ", for clients of [198.51.100.0/24]", "put source, put front, raise epoch", true},
		{"a further range", narrow, slices.Concat(wide, narrow),
			front80 + ", for clients of [198.51.100.0/24 198.51.100.0/25]", "put source", false},
		{"a range less", slices.Concat(wide, narrow), narrow, front80 + ", for clients of [198.51.100.0/25]", "delete source", true},
		{"another range", wide, narrow, front80 + ", for clients of [198.51.100.0/25]", "put source, delete source", true},
		{"nobody", wide, []string{"source=tcp/192.0.2.1:80"}, front80 + ", for nobody", "delete source", true},
		{"no limit", wide, nil, front80, "put front", false},
		{"the front goes", wide, []string{gone}, "front TCP/192.0.2.1:80 removed", "delete front", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, fresh func() maps.Maps) {
				m, clock := &watched{Maps: fresh()}, newClock()
				r := New(m, clock.now)
				settle(t, r, clock, want(t, slices.Concat(front(80, 1), tt.before)...))
				after := want(t)
				if tt.after == nil || tt.after[0] != gone {
					after = want(t, slices.Concat(front(80, 1), tt.after)...)
				}
				var writes []string
				m.fail = func(row string) error { writes = append(writes, row); return nil }
				check := admission(t, m.Maps, after)
				m.after = check
				epoch := epochOf(t, m)
				if got := apply(t, r, after); got != tt.steps {
					t.Errorf("steps:\n%s\nwant:\n%s", got, tt.steps)
				}
				if got := strings.Join(writes, ", "); got != tt.writes {
					t.Errorf("writes %s, want %s", got, tt.writes)
				}
				if raised := epochOf(t, m) != epoch; raised != tt.narrower {
					t.Errorf("a new epoch: %t, want %t", raised, tt.narrower)
				}
				settle(t, r, clock, after)
				if got, want := dump(t, m), expected(after); got != want {
					t.Errorf("maps:\n%s\nwant:\n%s", got, want)
				}
			})
		})
	}
}

func epochOf(t *testing.T, m maps.Maps) uint32 {
	t.Helper()
	config, err := m.Config()
	if err != nil {
		t.Fatal(err)
	}
	return config.Epoch
}

// TestLimitedAgainWithinTheGrace: rows of the first list lie there still, and must not come into force again.
func TestLimitedAgainWithinTheGrace(t *testing.T) {
	onBoth(t, func(t *testing.T, fresh func() maps.Maps) {
		m, clock := &watched{Maps: fresh()}, newClock()
		r := New(m, clock.now)
		apply(t, r, want(t, slices.Concat(front(80, 1), sources(80, "198.51.100.0/24"))...))
		apply(t, r, want(t, front(80, 1)...))
		after := want(t, slices.Concat(front(80, 1), sources(80, "10.0.0.0/8"))...)
		m.after = admission(t, m.Maps, after)
		apply(t, r, after)
		if got, want := dump(t, m), expected(after); got != want {
			t.Errorf("maps:\n%s\nwant:\n%s", got, want)
		}
	})
}

// TestAffinityAloneWritesOneRow is also for a change of its time.
func TestAffinityAloneWritesOneRow(t *testing.T) {
	onBoth(t, func(t *testing.T, fresh func() maps.Maps) {
		m, clock := &watched{Maps: fresh()}, newClock()
		r := New(m, clock.now)
		settle(t, r, clock, want(t, front(80, 3)...))
		for _, suffix := range []string{":affinity", ":affinity=5", ""} {
			var writes []string
			m.fail = func(row string) error { writes = append(writes, row); return nil }
			var fixtures []string
			for _, fixture := range front(80, 3) {
				fixtures = append(fixtures, fixture+suffix)
			}
			apply(t, r, want(t, fixtures...))
			if !slices.Equal(writes, []string{"put front"}) {
				t.Errorf("%q: writes %v", suffix, writes)
			}
			if got, want := dump(t, m), expected(want(t, fixtures...)); got != want {
				t.Errorf("maps:\n%s\nwant:\n%s", got, want)
			}
		}
	})
}

func TestSourcesThatDoNotFit(t *testing.T) {
	var many []string
	for i := range 11 {
		many = append(many, fmt.Sprintf("10.%d.0.0/16", i))
	}
	onBoth(t, func(t *testing.T, fresh func() maps.Maps) {
		m, clock := &watched{Maps: fresh()}, newClock()
		r := New(m, clock.now)
		before := slices.Concat(front(80, 1), sources(80, many...), front(81, 1))
		settle(t, r, clock, want(t, before...))
		m.fail = func(row string) error { t.Errorf("written: %s", row); return nil }
		_, err := r.Apply(want(t, slices.Concat(before, sources(81, "198.51.100.0/25", "198.51.100.128/25"))...))
		const text = "front TCP/192.0.2.1:81 keeps its previous endpoints: map is full: " +
			"FRONT_SOURCES has 1 of 12 rows free and this takes 2: raise --max-fronts"
		if !errors.Is(err, maps.ErrCapacity) || err.Error() != text {
			t.Errorf("error:\n%v\nwant:\n%s", err, text)
		}
		// The front that gives rows up comes first, whatever its key.
		m.fail = nil
		after := want(t, slices.Concat(front(80, 1), sources(80, many[:5]...), front(79, 1), sources(79, many[5:]...))...)
		apply(t, r, after)
		settle(t, r, clock, after)
		if got, want := dump(t, m), expected(after); got != want {
			t.Errorf("maps:\n%s\nwant:\n%s", got, want)
		}
	})
}

// TestEpochAfterALimitThatFailedToTell: FRONT_META says that the front is limited, and raising the epoch fails.
func TestEpochAfterALimitThatFailedToTell(t *testing.T) {
	for _, killed := range []bool{false, true} {
		fake, clock := maps.NewFake(sizes), newClock()
		m := &watched{Maps: fake}
		r := New(m, clock.now)
		settle(t, r, clock, want(t, front(80, 1)...))
		epoch := epochOf(t, m)
		m.fail = func(row string) error {
			if row == "raise epoch" {
				return unix.EPERM
			}
			return nil
		}
		limited := want(t, slices.Concat(front(80, 1), sources(80, "198.51.100.0/24"))...)
		steps, err := r.Apply(limited)
		if !errors.Is(err, unix.EPERM) || len(steps) != 1 || epochOf(t, m) != epoch {
			t.Fatalf("steps %v, error %v", steps, err)
		}
		m.fail = nil
		if killed {
			r = New(m, clock.now)
		}
		settle(t, r, clock, limited)
		if epochOf(t, m) == epoch {
			t.Errorf("killed %t: no new epoch", killed)
		}
	}
}

// TestANewFrontOfAnOldNumber: rows of AFFINITY name a front's id and generation and outlive it.
func TestANewFrontOfAnOldNumber(t *testing.T) {
	fake, clock := maps.NewFake(sizes), newClock()
	r := New(fake, clock.now)
	seen := map[uint32]bool{}
	for range 3 {
		settle(t, r, clock, want(t, front(80, 2)...))
		fronts, err := fake.Fronts()
		if err != nil || fronts[0].ID != 1 || seen[fronts[0].Generation] || fronts[0].Generation == 0 {
			t.Fatalf("fronts %+v, %v, generations before: %v", fronts, err, seen)
		}
		seen[fronts[0].Generation] = true
		settle(t, r, clock, want(t))
	}
}
