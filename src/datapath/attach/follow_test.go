// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"context"
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/src/netdev"
)

// follow runs Follow inside the namespace until the test ends.
func (n *node) follow() {
	n.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	started, done := make(chan error, 1), make(chan error, 1)
	go func() {
		done <- n.ns.Do(func() error {
			host, err := netdev.Open()
			if err != nil {
				started <- err
				return err
			}
			defer host.Close()
			events, err := host.Watch(ctx)
			started <- err
			if err == nil {
				n.up.Follow(ctx, events)
			}
			return err
		})
	}()
	must(n.t, <-started)
	n.t.Cleanup(func() {
		cancel()
		must(n.t, <-done)
	})
}

// within waits for a condition, no longer than d.
func (n *node) within(d time.Duration, what string, condition func() bool) {
	n.t.Helper()
	for start := time.Now(); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Since(start) > d {
			n.t.Fatalf("not within %s: %s; pinned:\n%s", d, what, n.attached())
		}
	}
}

// runs says whether our programs are on the device of that name.
func (n *node) runs(name string) func() bool {
	uplink := n.find(name)
	return func() bool {
		list, err := Attached(n.dir)
		must(n.t, err)
		count := 0
		for _, a := range list {
			if a.Ifindex == uplink.Index && !a.Severed {
				count++
			}
		}
		return count == 2 && len(list) == 2
	}
}

func TestADeviceThatComesBackIsAttachedWithinASecond(t *testing.T) {
	n := newNode(t)
	a := n.device("up0")
	must(t, n.attach(a))
	n.follow()
	for range 3 {
		n.remove("up0")
		n.within(time.Second, "the pins go", func() bool { return n.attached() == "" })
		n.device("up0")
		n.within(time.Second, "attached again", n.runs("up0"))
	}
	n.device("up1") // nobody asked for it
	n.remove("up0")
	n.device("up0") // at once, with no time to look in between
	n.within(time.Second, "attached again", n.runs("up0"))
	if gone := n.told("uplink is gone"); gone != 4 {
		t.Errorf("%d lines tell of 4 losses", gone)
	}
	if asked := n.asked(); len(asked) != 5 {
		t.Errorf("instances were made for %v", asked)
	}
}

// TestTheTypeIsReadAnew: an Ethernet uplink comes back as one without link layer.
func TestTheTypeIsReadAnew(t *testing.T) {
	require.Tun(t)
	n := newNode(t)
	a := n.device("up0")
	must(t, n.attach(a))
	n.follow()
	n.remove("up0")
	n.ip("tuntap", "add", "dev", "up0", "mode", "tun")
	n.within(time.Second, "attached again", n.runs("up0"))
	asked := n.asked()
	if last := asked[len(asked)-1]; len(asked) != 2 || last.Type != unix.ARPHRD_NONE {
		t.Errorf("instances were made for %+v", asked)
	}
}

func TestARenamedUplinkIsNoUplink(t *testing.T) {
	n := newNode(t)
	a := n.device("up0")
	must(t, n.attach(a))
	n.follow()
	n.ip("link", "set", "up0", "name", "spare")
	n.within(time.Second, "detached", func() bool { return n.attached() == "" })
	n.on(a, "", "")
	n.ip("link", "set", "spare", "name", "up0")
	n.within(time.Second, "attached again", n.runs("up0"))
	n.on(a, "ours_in", "ours_out")
}

// TestOnlyTheLastAttachIsFollowed also has a device come back before anybody watches.
func TestOnlyTheLastAttachIsFollowed(t *testing.T) {
	n := newNode(t)
	a, b := n.device("up0"), n.device("up1")
	must(t, n.attach(a, b), n.attach(b))
	n.remove("up0")
	n.device("up0")
	n.remove("up1")
	n.device("up1")
	n.follow()
	n.within(time.Second, "attached again", n.runs("up1"))
	n.on(n.find("up0"), "", "")
}

// TestAnOlderDeviceOfTheNameGoes: the watch began before the uplinks were looked up, and tells of the past.
func TestAnOlderDeviceOfTheNameGoes(t *testing.T) {
	n := newNode(t)
	a := n.device("up0")
	must(t, n.attach(a))
	older := a
	older.Index = 4711
	events := make(chan netdev.Event, 2)
	events <- netdev.Event{Kind: netdev.Vanished, Link: older}
	events <- netdev.Event{Kind: netdev.Appeared, Link: a}
	close(events)
	must(t, n.ns.Do(func() error { n.up.Follow(t.Context(), events); return nil }))
	n.pinned(both(a)...)
	if n.told("uplink is gone") != 0 || len(n.asked()) != 1 {
		t.Errorf("instances were made for %v", n.asked())
	}
}

func TestAFailureIsToldOnceAndTriedAgain(t *testing.T) {
	n := newNode(t)
	a := n.device("up0")
	must(t, n.attach(a))
	n.failWith(func(netdev.Link) error { return errors.New("out of luck") })
	n.follow()
	n.remove("up0")
	n.device("up0")
	n.within(5*time.Second, "two more tries", func() bool { return len(n.asked()) >= 4 })
	if told := n.told("out of luck"); told != 1 {
		t.Errorf("told %d times", told)
	}
	n.failWith(nil)
	n.within(time.Second, "attached again", n.runs("up0"))
}
