// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"fmt"
	gomaps "maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/beep-lb/beep/src/datapath/maps"
	"github.com/beep-lb/beep/src/model"
)

// TestAPlanOfWhatDiffersIsThePlanOfEverything draws changes, failures and pauses: what a reconciler does from memory is
// what Plan says of all that the maps hold, step by step and row by row, with maps so small that fronts are refused.
func TestAPlanOfWhatDiffersIsThePlanOfEverything(t *testing.T) {
	remembered, refused := 0, 0
	tight := sizes
	tight.FrontRing, tight.FrontSources = 5*7, 6
	rapid.Check(t, func(t *rapid.T) {
		sizes := []maps.Sizes{sizes, tight}[rapid.IntRange(0, 1).Draw(t, "sizes")]
		fake, clock := maps.NewFake(sizes), newClock()
		r := numbered(fake, clock)
		desired := drawDesired(t)
		for range rapid.IntRange(1, 20).Draw(t, "changes") {
			desired = changeDesired(t, desired)
			clock.advance(time.Duration(rapid.IntRange(0, 3).Draw(t, "pause")) * Grace / 2)
			before := gomaps.Clone(r.retired)
			actual, err := Read(fake)
			if err != nil {
				t.Fatal(err)
			}
			actual.Held, actual.Distrust, actual.First = r.held(), r.distrust, 1
			r.retired = before
			steps, planErr := Plan(desired, actual)
			if r.image != nil {
				remembered++
				if planErr != nil {
					refused++
				}
			}
			done, err := r.Apply(desired)
			if got, want := fmt.Sprint(err), fmt.Sprint(planErr); got != want {
				t.Fatalf("error %s\nwant %s", got, want)
			}
			if got, want := rowsOf(done), rowsOf(steps); got != want {
				t.Fatalf("steps\n%s\nwant\n%s", got, want)
			}
			if rapid.IntRange(0, 14).Draw(t, "failure") == 0 {
				fake.Inject(maps.Randomly(rapid.Uint64().Draw(t, "seed"), 0.3, unix.ENOMEM))
				r.Apply(changeDesired(t, desired)) //nolint:errcheck // some fail by design
				fake.Inject(nil)
			}
		}
	})
	if remembered < 100 || refused < 50 {
		t.Errorf("only %d plans were made from memory, of them %d with something that does not fit", remembered, refused)
	}
}

// rowsOf are steps with their writes, those of one step in any order.
func rowsOf(steps []Step) string {
	var text string
	for _, step := range steps {
		var writes []string
		for _, w := range slices.Concat(step.writes, step.then) {
			writes = append(writes, fmt.Sprintf("  %T %v\n", w, w))
		}
		slices.Sort(writes)
		text += fmt.Sprintln(step.String(), step.retires, writes)
	}
	return text
}

// changeDesired changes a few things and shares the rest.
func changeDesired(t *rapid.T, desired model.Desired) model.Desired {
	desired.Fronts = slices.Clone(desired.Fronts)
	for range rapid.IntRange(0, 3).Draw(t, "how many") {
		other := drawDesired(t)
		switch rapid.IntRange(0, 12).Draw(t, "what") {
		case 0:
			desired.Seed = other.Seed
		case 1:
			desired.Peers = other.Peers
		case 2:
			desired.Targets = nil
			for i := range rapid.IntRange(0, 6).Draw(t, "targets") {
				desired.Targets = append(desired.Targets, model.Socket{Addr: numberedAddr(i), Port: 80, Proto: model.TCP})
			}
		case 3:
			desired.Underlay6 = netip.MustParseAddr("2001:db8:b::1")
		case 4:
			if len(desired.Fronts) > 0 {
				i := rapid.IntRange(0, len(desired.Fronts)-1).Draw(t, "affinity of")
				desired.Fronts[i].ClientIPAffinity = !desired.Fronts[i].ClientIPAffinity
			}
		case 5, 6, 7:
			if len(desired.Fronts) > 0 && len(other.Fronts) > 0 {
				desired.Fronts[rapid.IntRange(0, min(1, len(desired.Fronts)-1)).Draw(t, "sources of")].Sources = other.Fronts[0].Sources
			}
		case 8:
			slices.Reverse(desired.Fronts) // sorted no more
		default:
			desired = takeOver(t, desired, other)
		}
	}
	return desired
}

// takeOver has one front, there or not, as it is in another state.
func takeOver(t *rapid.T, desired, other model.Desired) model.Desired {
	port := uint16(rapid.IntRange(80, 89).Draw(t, "port"))
	is := func(front model.Front) bool { return front.Port == port }
	desired.Fronts = slices.DeleteFunc(desired.Fronts, is)
	if i := slices.IndexFunc(other.Fronts, is); i >= 0 {
		desired.Fronts = append(desired.Fronts, other.Fronts[i])
	}
	slices.SortFunc(desired.Fronts, func(a, b model.Front) int { return a.Compare(b.Socket) })
	return desired
}

// TestTheMapsAreReadAgain: what somebody else wrote is mended, if late.
func TestTheMapsAreReadAgain(t *testing.T) {
	fake, clock := maps.NewFake(sizes), newClock()
	r := New(fake, clock.now)
	desired := want(t, front(80, 2)...)
	settle(t, r, clock, desired)
	if err := fake.DeleteFront(desired.Fronts[0].Socket); err != nil {
		t.Fatal(err)
	}
	if steps := apply(t, r, desired); steps != "" {
		t.Errorf("at once: %s", steps)
	}
	clock.advance(ReadAgain)
	settle(t, r, clock, desired)
	if got, want := dump(t, fake), expected(desired); got != want {
		t.Errorf("maps:\n%s\nwant:\n%s", got, want)
	}
}

// TestWhatDoesNotDifferIsNotRead: a change of one front asks the maps for the configuration alone, also while others do
// not fit.
func TestWhatDoesNotDifferIsNotRead(t *testing.T) {
	for _, tt := range []struct {
		name   string
		fronts []string
	}{
		{"all fit", front(90, 2)},
		{"a new front does not fit", front(90, 30)},
		{"a front does not fit any more", front(80, 30)},
		{"not all peers fit", append(front(80, 2), "peer=192.0.2.2", "peer=192.0.2.3", "peer=192.0.2.4", "peer=192.0.2.5", "peer=192.0.2.6")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fake, clock := maps.NewFake(sizes), newClock()
			before := New(fake, clock.now)
			settle(t, before, clock, want(t, slices.Concat(front(80, 2), front(81, 2))...))
			for name, r := range map[string]*Reconciler{"goes on": before, "is restarted": New(fake, clock.now)} {
				r.Apply(want(t, slices.Concat(tt.fronts, front(81, 2))...)) //nolint:errcheck // what is refused is the point
				clock.advance(Grace)
				r.Apply(want(t, slices.Concat(tt.fronts, front(81, 2))...)) //nolint:errcheck // likewise
				read := map[string]int{}
				fake.Inject(func(call maps.Call) error {
					if call.Op == maps.List {
						read[call.Map]++
					}
					return nil
				})
				r.Apply(want(t, slices.Concat(tt.fronts, front(81, 3))...)) //nolint:errcheck // likewise
				if fake.Inject(nil); len(read) != 1 || read["CONFIG"] != 1 {
					t.Errorf("%s: read %v, want CONFIG once", name, read)
				}
				r.Apply(want(t, slices.Concat(tt.fronts, front(81, 2))...)) //nolint:errcheck // likewise
			}
		})
	}
}
