// SPDX-License-Identifier: Apache-2.0

package netdev

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netns"
	"pgregory.net/rapid"
)

// expect reads events until one matches, and fails after a deadline. It returns the link.
func expect(t *testing.T, events <-chan Event, kind Kind, name string) Link {
	t.Helper()
	deadline := time.After(5 * time.Second)
	for {
		select {
		case event := <-events:
			if event.Kind == kind && event.Link.Name == name {
				return event.Link
			}
		case <-deadline:
			t.Errorf("no event: %s %s", name, kind)
			return Link{}
		}
	}
}

func watch(t *testing.T) (<-chan Event, context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	events, err := open(t).Watch(ctx)
	if err != nil {
		t.Error(err)
		events = make(chan Event)
	}
	return events, cancel
}

func TestWatch(t *testing.T) {
	inNamespace(t, func(t *testing.T) {
		ip(t, "link add eth0 type veth peer name p0\n")
		events, cancel := watch(t)
		expect(t, events, Appeared, "lo")
		first := expect(t, events, Appeared, "eth0")

		ip(t, "link set eth0 up\n")
		if link := expect(t, events, WentUp, "eth0"); !link.Up {
			t.Errorf("went up as %+v", link)
		}
		ip(t, "link set eth0 mtu 1400\n")
		if link := expect(t, events, Changed, "eth0"); link.MTU != 1400 {
			t.Errorf("changed to %+v", link)
		}
		ip(t, "link set eth0 down\n")
		expect(t, events, WentDown, "eth0")

		ip(t, "link del eth0\nlink add eth0 type veth peer name p0\n")
		if gone := expect(t, events, Vanished, "eth0"); gone.Index != first.Index {
			t.Errorf("vanished as %+v, was %+v", gone, first)
		}
		again := expect(t, events, Appeared, "eth0")
		if again.Index == first.Index || again.Index == 0 {
			t.Errorf("re-created as %+v, was %+v", again, first)
		}

		ip(t, "link set eth0 name wan0\n")
		expect(t, events, Vanished, "eth0")
		if renamed := expect(t, events, Appeared, "wan0"); renamed.Index != again.Index {
			t.Errorf("renamed to %+v, was %+v", renamed, again)
		}

		cancel()
		for range events {
		}
	})
}

// TestWatchIsNotFooledByABridge: leaving a bridge sends RTM_DELLINK for a device that stays.
func TestWatchIsNotFooledByABridge(t *testing.T) {
	inNamespace(t, func(t *testing.T) {
		ip(t, `link add eth0 type veth peer name p0
			link add br0 type bridge
			link set eth0 master br0`)
		events, cancel := watch(t)
		expect(t, events, Appeared, "br0")
		ip(t, "link set eth0 nomaster\nlink add last type veth peer name plast\n")
		var seen []string
		for event := range events {
			if event.Link.Name == "eth0" && event.Kind == Vanished {
				t.Errorf("eth0 vanished after leaving its bridge; seen %v", seen)
			}
			seen = append(seen, fmt.Sprint(event.Link.Name, " ", event.Kind))
			if event.Link.Name == "last" {
				break
			}
		}
		cancel()
		for range events {
		}
	})
}

// TestWatchSurvivesOverflow lets the kernel's buffer overflow while nobody reads; afterwards the events must
// still add up to the devices that there are, with a re-created one under its new ifindex.
func TestWatchSurvivesOverflow(t *testing.T) {
	inNamespace(t, func(t *testing.T) {
		ip(t, "link add eth0 type veth peer name p0\nlink add doomed type veth peer name pdoomed\n")
		events, cancel := watch(t)
		state := map[string]Link{}
		apply := func(event Event) {
			if event.Kind == Vanished {
				delete(state, event.Link.Name)
			} else {
				state[event.Link.Name] = event.Link
			}
		}
		for len(state) < 5 {
			apply(<-events)
		}
		flood := strings.Repeat("link set p0 up\nlink set p0 down\n", 1500)
		// Life signs of eth0 and p0 are still queued when the buffer is full; their end is lost.
		ip(t, "link set eth0 mtu 1400\n"+flood+"link del doomed\nlink del eth0\nlink add eth0 type veth peer name p0\n")
		ip(t, "link add last type veth peer name plast\n")
		last, err := open(t).ByName("last")
		if err != nil {
			t.Error(err)
			return
		}
		// The last device shows once by the list or its own message; then the rest of the queue settles.
		quiet := time.Second
		for settled := false; !settled; {
			select {
			case event := <-events:
				apply(event)
			case <-time.After(quiet):
				settled = true
			}
		}
		want := map[string]Link{}
		links, err := open(t).List()
		if err != nil {
			t.Error(err)
		}
		for _, link := range links {
			want[link.Name] = link
		}
		if diff := cmp.Diff(want, state); diff != "" || state["last"] != last {
			t.Errorf("devices after an overflow (-want +got):\n%s", diff)
		}
		cancel()
		for range events {
		}
	})
}

func TestWatchInAnotherNamespace(t *testing.T) {
	inNamespace(t, func(t *testing.T) {
		host := open(t)
		other, err := netns.New()
		if err != nil {
			t.Error(err)
			return
		}
		defer other.Close()
		_, err = host.Watch(context.Background())
		const want = "watch interfaces: called in another network namespace than Open: lock the goroutine to its thread"
		if err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	})
}

func TestWatchEndsWithItsContext(t *testing.T) {
	inNamespace(t, func(t *testing.T) {
		events, cancel := watch(t)
		expect(t, events, Appeared, "lo")
		cancel()
		select {
		case _, open := <-events:
			if open {
				t.Error("an event after the end")
			}
		case <-time.After(5 * time.Second):
			t.Error("the channel stays open")
		}
	})
}

// TestTrackerAddsUp: whatever messages are lost before a list, the events told so far make the list.
func TestTrackerAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		link := rapid.Custom(func(t *rapid.T) Link {
			index := rapid.IntRange(1, 6).Draw(t, "index")
			return Link{Index: index, Name: rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "name"),
				MTU: rapid.IntRange(1, 2).Draw(t, "mtu"), Up: rapid.Bool().Draw(t, "up")}
		})
		known, told := tracker{}, map[string]Link{}
		apply := func(events []Event) {
			for _, event := range events {
				before, exists := told[event.Link.Name]
				switch event.Kind {
				case Vanished:
					if before != event.Link {
						t.Fatalf("%v, but told was %v", event, before)
					}
					delete(told, event.Link.Name)
				case Appeared:
					if exists {
						t.Fatalf("%v, but it was there as %v", event, before)
					}
					told[event.Link.Name] = event.Link
				default:
					if !exists || before.Index != event.Link.Index {
						t.Fatalf("%v of %v", event, before)
					}
					told[event.Link.Name] = event.Link
				}
			}
		}
		for range rapid.IntRange(0, 20).Draw(t, "messages") {
			if rapid.Bool().Draw(t, "delete") {
				apply(known.remove(rapid.IntRange(1, 6).Draw(t, "gone")))
			} else {
				apply(known.update(link.Draw(t, "link")))
			}
		}
		list := rapid.SliceOfNDistinct(link, 0, 4, func(l Link) string { return l.Name }).Draw(t, "list")
		seen := map[int]bool{}
		want := map[string]Link{}
		var unique []Link
		for _, l := range list {
			if !seen[l.Index] {
				seen[l.Index] = true
				want[l.Name] = l
				unique = append(unique, l)
			}
		}
		apply(known.resync(unique))
		if diff := cmp.Diff(want, told); diff != "" {
			t.Fatalf("after a list (-want +got):\n%s", diff)
		}
	})
}
