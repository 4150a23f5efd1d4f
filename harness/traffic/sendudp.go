// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/netns"
)

// Fragmentation says what the kernel may do with a datagram that does not fit the path.
type Fragmentation int

// The choices, after IP_MTU_DISCOVER in ip(7).
const (
	KernelChoice Fragmentation = iota // as programs that ask for nothing: DF set, path MTU learned, large ones fragmented
	MayFragment                       // DF never set
	NeverHere                         // DF set; what exceeds the known path MTU fails here with EMSGSIZE
	ProbePath                         // DF set, known path MTU ignored: only the device's MTU limits
)

// Datagrams says what SendUDP sends.
type Datagrams struct {
	Count    int           // 0 is no end but the context's
	Size     int           // UDP payload in bytes, at least MinDatagram; 0 is MinDatagram
	Window   int           // most datagrams under way at once; 0 is 32
	Every    time.Duration // between one datagram and the next; 0 is as fast as Window allows
	Patience time.Duration // after which a missing answer counts as lost; 0 is one second
	From     netip.AddrPort
	Fragment Fragmentation
}

// Tally is what came of it. Sent = Received + Lost, unless the context ended: what is then under way is in neither.
type Tally struct {
	Sent       int
	Received   int // right answers, each counted once, late ones too
	Lost       int
	Duplicated int // answers beyond the first to one question
	Corrupted  int // datagrams that came back damaged
	Refused    map[syscall.Errno]int
	Sources    map[netip.AddrPort]int // the sources that the server saw, with the number of answers that say so
}

// String prints the counters in one line.
func (t Tally) String() string {
	return fmt.Sprintf("sent %d, received %d, lost %d, duplicated %d, corrupted %d, refused %v, sources %v",
		t.Sent, t.Received, t.Lost, t.Duplicated, t.Corrupted, t.Refused, t.Sources)
}

// SendUDP sends datagrams to a ServeUDP server from one connected socket and counts the answers. No more than
// Window are under way, so no socket buffer overflows and what is lost was lost on the way. Refused counts errors
// by which the kernel reported a send or an ICMP error (EMSGSIZE, ECONNREFUSED); a datagram refused at sending
// is not in Sent. The end of ctx ends the run early and is no error.
func SendUDP(ctx context.Context, ns *netns.NS, at netip.AddrPort, d Datagrams) (tally Tally, err error) {
	d.Size, d.Window, d.Patience = cmp.Or(d.Size, MinDatagram), cmp.Or(d.Window, 32), cmp.Or(d.Patience, time.Second)
	if d.Size < MinDatagram || d.Size > maxDatagram {
		return Tally{}, fmt.Errorf("send udp to %s: size %d: want %d to %d bytes", at, d.Size, MinDatagram, maxDatagram)
	}
	conn, err := ns.DialFrom(ctx, "udp", d.From, at)
	if err != nil {
		return Tally{}, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	socket := conn.(*net.UDPConn)
	if err := errors.Join(bigBuffers(socket), setFragmentation(socket, d.Fragment)); err != nil {
		return Tally{}, fmt.Errorf("send udp to %s: %w", at, err)
	}
	s := &sender{
		conn: socket, Datagrams: d, run: rand.Uint64(),
		due: time.Now(), sent: map[uint64]time.Time{},
		tally: Tally{Refused: map[syscall.Errno]int{}, Sources: map[netip.AddrPort]int{}},
	}
	defer context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })()
	if err := s.send(ctx); err != nil {
		return s.tally, fmt.Errorf("send udp to %s: %w", at, err)
	}
	return s.tally, nil
}

// sender is one run. A question is in sent until it is answered or given up; that answered lacks the lost ones
// tells a late answer from a second one.
type sender struct {
	Datagrams
	conn     *net.UDPConn
	run      uint64
	next     uint64
	due      time.Time // of the next question
	oldest   uint64    // no question below it is in sent
	sent     map[uint64]time.Time
	answered bits
	tally    Tally
}

func (s *sender) send(ctx context.Context) error {
	out, in := make([]byte, s.Size), make([]byte, maxDatagram)
	for ctx.Err() == nil {
		more := s.Count == 0 || s.next < uint64(s.Count)
		open := more && len(s.sent) < s.Window
		var err error
		switch {
		case open && !time.Now().Before(s.due):
			err = s.ask(out)
		case !more && len(s.sent) == 0:
			return s.linger(in)
		default:
			err = s.receive(ctx, in, open)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *sender) ask(out []byte) error {
	question(out, s.run, s.next)
	_, err := s.conn.Write(out)
	if err != nil && !s.refused(err) {
		return err
	}
	if err == nil {
		s.tally.Sent++
		s.sent[s.next] = time.Now()
	}
	s.next++
	s.due = s.due.Add(s.Every)
	return nil
}

// receive reads one answer, or gives up on the oldest question, or, if the window is open, returns when the next
// question is due.
func (s *sender) receive(ctx context.Context, in []byte, open bool) error {
	until, giveUp := s.due, false
	if len(s.sent) > 0 {
		for s.sent[s.oldest].IsZero() {
			s.oldest++
		}
		if end := s.sent[s.oldest].Add(s.Patience); !open || end.Before(until) {
			until, giveUp = end, true
		}
	}
	if err := s.conn.SetReadDeadline(until); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return nil // it ended before the deadline was set, which would have outlasted it
	}
	n, err := s.conn.Read(in)
	switch {
	case err == nil:
		s.take(in[:n])
	case errors.Is(err, os.ErrDeadlineExceeded):
		if ctx.Err() == nil && giveUp {
			delete(s.sent, s.oldest)
			s.tally.Lost++
		}
	case !s.refused(err):
		return err
	}
	return nil
}

// linger reads what comes after the last answer was due, to see duplicates.
func (s *sender) linger(in []byte) error {
	const quiet = 20 * time.Millisecond
	for {
		if err := s.conn.SetReadDeadline(time.Now().Add(quiet)); err != nil {
			return err
		}
		n, err := s.conn.Read(in)
		switch {
		case err == nil:
			s.take(in[:n])
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil
		case !s.refused(err):
			return err
		}
	}
}

func (s *sender) take(datagram []byte) {
	if !intact(datagram) || len(datagram) != s.Size {
		s.tally.Corrupted++
		return
	}
	sequence := binary.BigEndian.Uint64(datagram[offsetSequence:])
	switch {
	case binary.BigEndian.Uint64(datagram) != s.run || sequence >= s.next:
		s.tally.Corrupted++ // whole, but no answer to this run
		return
	case s.answered.has(sequence):
		s.tally.Duplicated++
		return
	}
	if s.sent[sequence].IsZero() {
		s.tally.Lost-- // late
	}
	delete(s.sent, sequence)
	s.answered.set(sequence)
	s.tally.Received++
	s.tally.Sources[sourceIn(datagram)]++
}

// bits is a set of sequence numbers, one bit each: a stream may run for hours.
type bits []uint64

func (b bits) has(n uint64) bool { return n/64 < uint64(len(b)) && b[n/64]>>(n%64)&1 == 1 }

func (b *bits) set(n uint64) {
	for n/64 >= uint64(len(*b)) {
		*b = append(*b, 0)
	}
	(*b)[n/64] |= 1 << (n % 64)
}

// refused counts an error that the network reported, and says whether it was one.
func (s *sender) refused(err error) bool {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return false
	}
	switch errno {
	case unix.EMSGSIZE, unix.ECONNREFUSED, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.EACCES, unix.EPROTO, unix.ENOBUFS:
		s.tally.Refused[errno]++
		return true
	}
	return false
}

// discovery are the kernel's numbers of the choices that ask for something; IPv6 has the same (linux/in6.h).
var discovery = map[Fragmentation]int{
	MayFragment: unix.IP_PMTUDISC_DONT, NeverHere: unix.IP_PMTUDISC_DO, ProbePath: unix.IP_PMTUDISC_PROBE,
}

func setFragmentation(conn *net.UDPConn, choice Fragmentation) error {
	mode, wanted := discovery[choice]
	if !wanted {
		return nil
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	level, option := unix.IPPROTO_IP, unix.IP_MTU_DISCOVER
	if conn.RemoteAddr().(*net.UDPAddr).AddrPort().Addr().Unmap().Is6() {
		level, option = unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER
	}
	var set error
	err = raw.Control(func(fd uintptr) { set = unix.SetsockoptInt(int(fd), level, option, mode) })
	if err := errors.Join(err, set); err != nil {
		return fmt.Errorf("set path MTU discovery: %w", err)
	}
	return nil
}
