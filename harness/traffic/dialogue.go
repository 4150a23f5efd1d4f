// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/netns"
)

// Dialogue is a UDP client and a UDP server of which one goroutine holds both ends, so that every datagram has a
// known fate: it arrived whole, its sender was told why not, or it vanished. Methods are for that goroutine alone.
type Dialogue struct {
	client, server *party
	patience       time.Duration
	pace           time.Duration
	told           time.Time // when a sender was last told of an ICMP error
	sequence       int
	strays         int
}

// Talk says who takes part in a dialogue.
type Talk struct {
	Client  *netns.NS
	From    netip.AddrPort // the client's own address; port 0 takes a free one
	Dialled netip.AddrPort // where the client sends to
	Server  *netns.NS
	At      netip.AddrPort // where the server listens

	ClientOptions, ServerOptions SocketOptions

	Patience time.Duration // after which a datagram has vanished; 0 is one second
	Pace     time.Duration // the least time from one ICMP error to the next datagram, as nodes ration theirs
}

// SocketOptions are what one end asks of its kernel.
type SocketOptions struct {
	Fragment    Fragmentation
	TTL         int  // time to live, or hop limit; 0 is the kernel's choice
	DestOptions bool // an IPv6 destination options header in front of every datagram (RFC 8200, section 4.6)
}

// Burst is what one end sends in one call: Count datagrams of Size bytes of UDP payload. More than one go through
// UDP_SEGMENT (udp(7)), as programs that speak QUIC send: the kernel or the device cuts them apart.
type Burst struct{ Size, Count int }

// Fate is what became of a question and of its answer, which is sent only if the whole question arrived.
type Fate struct{ Question, Answer Leg }

// Leg is the fate of one burst.
type Leg struct {
	Sent    []byte         // the payload handed to the kernel, of all datagrams; nil if none was
	Errno   syscall.Errno  // why the sender's own kernel took nothing
	Due     int            // datagrams in it
	Arrived int            // datagrams that arrived whole
	Source  netip.AddrPort // as the receiver saw it
	Refusal *Refusal       // what an ICMP error told the sender, if one came before everything had arrived
}

// Whole says whether all of it arrived, unharmed and without an error to its sender.
func (l Leg) Whole() bool { return l.Due > 0 && l.Arrived == l.Due && l.Refusal == nil }

// String prints the fate in one line.
func (l Leg) String() string {
	switch {
	case l.Due == 0:
		return "not sent"
	case l.Errno != 0:
		return "refused by the sender's kernel: " + l.Errno.Error()
	case l.Refusal != nil:
		return fmt.Sprintf("%d of %d arrived, ICMP error %+v", l.Arrived, l.Due, *l.Refusal)
	case l.Whole():
		return fmt.Sprintf("arrived, %d of %d", l.Arrived, l.Due)
	}
	return fmt.Sprintf("vanished: %d of %d arrived, and its sender was not told why", l.Arrived, l.Due)
}

// Refusal is an ICMP error as the sender's socket got it (IP_RECVERR in ip(7), IPV6_RECVERR in ipv6(7)).
type Refusal struct {
	Type, Code uint8
	MTU        int        // bytes; 0 if the error tells none
	From       netip.Addr // who made the error
	Errno      syscall.Errno
}

// pattern is what datagrams are cut from, so that comparing one costs nothing.
var pattern = sync.OnceValue(func() []byte {
	data := make([]byte, 2*maxDatagram)
	var seed [32]byte
	if _, err := rand.NewChaCha8(seed).Read(data); err != nil {
		panic(err) // documented to be always nil
	}
	return data
})

// OpenDialogue opens both ends. They end by Close, or with their namespaces.
func OpenDialogue(t Talk) (*Dialogue, error) {
	server, err := newParty(t.Server, t.At, t.ServerOptions)
	if err != nil {
		return nil, err
	}
	client, err := newParty(t.Client, t.From, t.ClientOptions)
	if err != nil {
		return nil, errors.Join(err, server.close())
	}
	if err := unix.Connect(client.fd, sockaddr(t.Dialled)); err != nil {
		return nil, errors.Join(fmt.Errorf("connect to udp %s: %w", t.Dialled, err), client.close(), server.close())
	}
	return &Dialogue{client: client, server: server, patience: cmp.Or(t.Patience, time.Second), pace: t.Pace}, nil
}

// Close ends the dialogue. It may be called twice.
func (d *Dialogue) Close() error { return errors.Join(d.client.close(), d.server.close()) }

// Strays are datagrams and ICMP errors that nobody waited for: damaged, doubled or late.
func (d *Dialogue) Strays() int { return d.strays }

// Client is the client's address and port.
func (d *Dialogue) Client() netip.AddrPort { return d.client.name }

// Reconnect has the client's socket forget the route, and so the path MTU, that it had found.
func (d *Dialogue) Reconnect(dialled netip.AddrPort) error {
	if err := unix.Connect(d.client.fd, sockaddr(dialled)); err != nil {
		return fmt.Errorf("connect to udp %s: %w", dialled, err)
	}
	return nil
}

// Ask sends a question and, when all of it has arrived, its answer. An error is one of the sockets or of the
// caller; what the network does is in the fate.
func (d *Dialogue) Ask(question, answer Burst) (fate Fate, err error) {
	fate.Question, err = d.send(d.client, d.server, netip.AddrPort{}, question)
	if err == nil && fate.Question.Arrived == question.Count {
		fate.Answer, err = d.send(d.server, d.client, fate.Question.Source, answer)
	}
	if err != nil {
		return fate, fmt.Errorf("dialogue of %s: %w", d.client.name, err)
	}
	return fate, nil
}

// AnswerNobody closes the client and has the server send it a burst.
func (d *Dialogue) AnswerNobody(client netip.AddrPort, answer Burst) (Leg, error) {
	if err := d.sweepStrays(); err != nil {
		return Leg{}, err
	}
	gone := *d.client
	if err := d.client.close(); err != nil {
		return Leg{}, err
	}
	gone.fd = -1 // poll(2) ignores it
	return d.transmit(d.server, &gone, client, answer)
}

// send moves one burst and waits for its fate, once nothing else is under way.
func (d *Dialogue) send(from, to *party, dst netip.AddrPort, b Burst) (leg Leg, err error) {
	if err := d.sweepStrays(); err != nil {
		return leg, err
	}
	return d.transmit(from, to, dst, b)
}

// transmit is send for ends that were looked at.
func (d *Dialogue) transmit(from, to *party, dst netip.AddrPort, b Burst) (leg Leg, err error) {
	d.sequence++
	start := d.sequence * 7919 % maxDatagram
	if b.Size*b.Count > maxDatagram {
		return leg, fmt.Errorf("%d datagrams of %d bytes: want at most %d bytes", b.Count, b.Size, maxDatagram)
	}
	content := pattern()[start : start+b.Size*b.Count]
	leg.Due = b.Count
	if err := from.send(content, dst, b); err != nil {
		if errors.As(err, &leg.Errno) {
			return leg, nil
		}
		return leg, err
	}
	leg.Sent = content
	deadline := time.Now().Add(d.patience)
	for leg.Arrived < b.Count {
		fds := []unix.PollFd{{Fd: int32(to.fd), Events: unix.POLLIN}, {Fd: int32(from.fd)}} // POLLERR needs no asking
		n, err := unix.Poll(fds, int(max(0, time.Until(deadline).Milliseconds())))
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return leg, fmt.Errorf("wait for a datagram: %w", err)
		case n == 0:
			return leg, nil
		}
		if err := d.take(from, to, &leg, b.Size, fds[0].Revents != 0, fds[1].Revents != 0); err != nil || leg.Refusal != nil {
			return leg, err
		}
	}
	return leg, nil
}

// take reads what poll has announced.
func (d *Dialogue) take(from, to *party, leg *Leg, size int, arrived, failed bool) error {
	if arrived {
		data, source, err := to.receive()
		want := leg.Sent[leg.Arrived*size:][:size]
		switch {
		case errors.Is(err, unix.EAGAIN):
		case err != nil:
			return err
		case bytes.Equal(data, want):
			leg.Arrived++
			leg.Source = source
		default:
			d.strays++
		}
	}
	if failed {
		refusals, err := from.refusals()
		if err != nil {
			return err
		}
		if len(refusals) > 0 {
			leg.Refusal = &refusals[0]
			d.told = time.Now()
			d.strays += len(refusals) - 1
		}
	}
	return nil
}

// sweepStrays counts what came unasked since the last burst, and waits until the pace allows another.
func (d *Dialogue) sweepStrays() error {
	if wait := time.Until(d.told.Add(d.pace)); wait > 0 {
		fds := []unix.PollFd{{Fd: int32(d.client.fd), Events: unix.POLLIN}, {Fd: int32(d.server.fd), Events: unix.POLLIN}}
		timeout := unix.NsecToTimespec(wait.Nanoseconds())
		if _, err := unix.Ppoll(fds, &timeout, nil); err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wait for the next datagram's turn: %w", err)
		}
	}
	for _, end := range []*party{d.client, d.server} {
		refusals, err := end.refusals()
		if err != nil {
			return err
		}
		d.strays += len(refusals)
		for {
			if _, _, err := end.receive(); errors.Is(err, unix.EAGAIN) {
				break
			} else if err != nil {
				return err
			}
			d.strays++
		}
	}
	return nil
}
