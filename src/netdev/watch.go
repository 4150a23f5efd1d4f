// SPDX-License-Identifier: Apache-2.0

package netdev

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// retryPause is the wait after a failed read or list, so that a lasting failure does not spin.
const retryPause = 100 * time.Millisecond

// Kind says what happened to a device.
type Kind int

// The kinds of an Event.
const (
	// Appeared is a device that was not there before, and every existing one when a watch starts.
	Appeared Kind = iota + 1
	// Vanished is a device that is gone, or has lost its name to another; Link is what it was last.
	Vanished
	// WentUp is a device that was switched on.
	WentUp
	// WentDown is a device that was switched off.
	WentDown
	// Changed is another MAC, MTU or type on the same device.
	Changed
)

// String is the kind in words.
func (k Kind) String() string {
	switch k {
	case Appeared:
		return "appeared"
	case Vanished:
		return "vanished"
	case WentUp:
		return "went up"
	case WentDown:
		return "went down"
	case Changed:
		return "changed"
	}
	return fmt.Sprintf("kind %d", int(k))
}

// Event is one change of one device. A device that was deleted and made again under its name is Vanished with
// the old ifindex and then Appeared with the new one, also if both happened while nobody looked; so is a
// device that was renamed, with one ifindex and two names.
type Event struct {
	Kind Kind
	Link Link
}

// Watch reports every device as Appeared and then each change, until ctx ends; the channel closes then. It
// must be called in the namespace of Open, on the caller's thread. A slow reader loses no state: when the
// kernel's buffer overflows (ENOBUFS) the devices are listed anew and the difference is reported.
func (h *Host) Watch(ctx context.Context) (<-chan Event, error) {
	socket, err := nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_LINK)
	if err != nil {
		return nil, fmt.Errorf("watch interfaces: %w", err)
	}
	if err := sameNamespace(socket, h.links.Socket); err != nil {
		socket.Close()
		return nil, fmt.Errorf("watch interfaces: %w", err)
	}
	// Listed after subscribing: what changes in between is told twice rather than never.
	links, err := h.List()
	if err != nil {
		socket.Close()
		return nil, fmt.Errorf("watch interfaces: %w", err)
	}
	queue, err := unix.FcntlInt(uintptr(socket.GetFd()), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		socket.Close()
		return nil, fmt.Errorf("watch interfaces: duplicate the socket: %w", err)
	}
	w := watcher{host: h, socket: socket, queue: queue, events: make(chan Event), known: tracker{}}
	context.AfterFunc(ctx, socket.Close)
	go w.run(ctx, links)
	return w.events, nil
}

// sameNamespace refuses a watch whose changes and lists would come from two namespaces.
func sameNamespace(a, b *nl.NetlinkSocket) error {
	cookieA, err := unix.GetsockoptUint64(a.GetFd(), unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err != nil {
		return fmt.Errorf("network namespace of a socket: %w", err)
	}
	cookieB, err := unix.GetsockoptUint64(b.GetFd(), unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err != nil {
		return fmt.Errorf("network namespace of a socket: %w", err)
	}
	if cookieA != cookieB {
		return errors.New("called in another network namespace than Open: lock the goroutine to its thread")
	}
	return nil
}

// watcher turns the messages of one subscription into events.
type watcher struct {
	host   *Host
	socket *nl.NetlinkSocket
	// queue is the socket once more, under a descriptor that the end of ctx does not close beneath a read.
	queue  int
	events chan Event
	known  tracker
}

func (w *watcher) run(ctx context.Context, links []Link) {
	defer close(w.events)
	defer unix.Close(w.queue)
	alive := w.send(ctx, w.known.resync(links))
	for alive {
		messages, from, err := w.socket.Receive()
		switch {
		case ctx.Err() != nil || errors.Is(err, os.ErrClosed):
			return
		case err != nil:
			// ENOBUFS: messages were lost. Any other error is answered the same way, which is never wrong.
			w.discard()
			alive = w.relist(ctx)
		case from.Pid != nl.PidKernel:
			// Only the kernel's word counts; root on this node could send here too.
		default:
			alive = w.take(ctx, messages)
		}
	}
}

// discard empties the socket. Messages from before a loss must not be read after the list that mends it: they
// could bring back a device whose deletion was among the lost.
func (w *watcher) discard() {
	var buffer [nl.RECEIVE_BUFFER_SIZE]byte
	for {
		_, _, err := unix.Recvfrom(w.queue, buffer[:], unix.MSG_DONTWAIT)
		if err != nil && !errors.Is(err, unix.ENOBUFS) && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// relist reports what changed unseen. It returns false when ctx ends.
func (w *watcher) relist(ctx context.Context) bool {
	for {
		links, err := w.host.List()
		if err == nil {
			return w.send(ctx, w.known.resync(links))
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(retryPause):
		}
	}
}

// take reports what messages say. It returns false when ctx ends.
func (w *watcher) take(ctx context.Context, messages []syscall.NetlinkMessage) bool {
	for _, message := range messages {
		if len(message.Data) < unix.SizeofIfInfomsg || nl.DeserializeIfInfomsg(message.Data).Family != unix.AF_UNSPEC {
			// A device that leaves a bridge sends RTM_DELLINK of family AF_BRIDGE, and lives on.
			continue
		}
		link, err := decodeLink(message.Data)
		if err != nil {
			if !w.relist(ctx) {
				return false
			}
			continue
		}
		var events []Event
		switch message.Header.Type {
		case unix.RTM_NEWLINK:
			events = w.known.update(link)
		case unix.RTM_DELLINK:
			events = w.known.remove(link.Index)
		}
		if !w.send(ctx, events) {
			return false
		}
	}
	return true
}

// send hands events over. It returns false when ctx ends.
func (w *watcher) send(ctx context.Context, events []Event) bool {
	for _, event := range events {
		select {
		case w.events <- event:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// tracker is the last known state of each device by ifindex, and the pure part of a watch.
type tracker map[int]Link

// update takes in the present state of one device.
func (t tracker) update(now Link) []Event {
	var events []Event
	before, known := t[now.Index]
	if !known || before.Name != now.Name {
		if known {
			events = append(events, Event{Vanished, before})
		}
		// Another device of this name must be gone, even if nobody said so.
		for index, link := range t {
			if link.Name == now.Name && index != now.Index {
				events = append(events, t.remove(index)...)
			}
		}
		t[now.Index] = now
		return append(events, Event{Appeared, now})
	}
	t[now.Index] = now
	switch {
	case now.Up && !before.Up:
		events = append(events, Event{WentUp, now})
	case before.Up && !now.Up:
		events = append(events, Event{WentDown, now})
	}
	before.Up = now.Up
	if before != now {
		events = append(events, Event{Changed, now})
	}
	return events
}

// remove forgets one device.
func (t tracker) remove(index int) []Event {
	before, known := t[index]
	if !known {
		return nil
	}
	delete(t, index)
	return []Event{{Vanished, before}}
}

// resync takes in a whole list, the vanished before the new, by ifindex.
func (t tracker) resync(links []Link) []Event {
	present := map[int]bool{}
	for _, link := range links {
		present[link.Index] = true
	}
	var events []Event
	for _, index := range slices.Sorted(maps.Keys(t)) {
		if !present[index] {
			events = append(events, t.remove(index)...)
		}
	}
	for _, link := range links {
		events = append(events, t.update(link)...)
	}
	return events
}
