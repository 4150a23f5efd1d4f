// SPDX-License-Identifier: Apache-2.0

package mtu_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/packet"
	"github.com/beep-lb/beep/harness/traffic"
)

// The ports of dialogues, of an echo behind one front of both pods, and where nobody listens: of the pods, and of the
// fronts by pod.
const (
	talkPort   = 8083
	closedPort = 8084
	sharedPort = 8085
)

// patience is for datagrams that may well be lost.
const patience = 50 * time.Millisecond

var (
	talkFronts   = map[string]uint16{localPod: 1083, remotePod: 2083}
	closedFronts = map[string]uint16{localPod: 1084, remotePod: 2084}
)

const udpHeader = 8

// pace keeps specs below the rate at which a node makes ICMP errors (bpf/lib/icmp.h).
const pace = time.Millisecond

// talk is a dialogue of the client and a pod, and the ICMP errors that come to each.
type talk struct {
	rig
	*traffic.Dialogue
	pod, front         netip.AddrPort
	source             netip.AddrPort // the client
	toClient, toServer *traffic.ICMPErrors
}

// open begins a dialogue of the client through the front of a pod on node-a's first address.
func (r rig) open(pod string, client, server traffic.SocketOptions) *talk {
	GinkgoHelper()
	return r.openFrom("client", r.dialled(), pod, client, server)
}

// openFrom begins a dialogue of a host through the front of a pod.
func (r rig) openFrom(host string, dialled netip.Addr, pod string, client, server traffic.SocketOptions) *talk {
	GinkgoHelper()
	t := &talk{rig: r, pod: netip.AddrPortFrom(r.Addr(pod, r.inner), talkPort), front: netip.AddrPortFrom(dialled, talkFronts[pod])}
	var err error
	t.Dialogue, err = traffic.OpenDialogue(traffic.Talk{
		Client: r.NS(host), From: netip.AddrPortFrom(r.Addr(host, r.inner), 0), Dialled: t.front, ClientOptions: client,
		Server: r.NS(pod), At: t.pod, ServerOptions: server, Pace: pace,
	})
	Expect(err).NotTo(HaveOccurred())
	t.source = t.Client()
	t.toClient, err = traffic.WatchICMP(r.NS(host), r.device(host))
	Expect(err).NotTo(HaveOccurred())
	t.toServer, err = traffic.WatchICMP(r.NS(pod), "eth0")
	Expect(err).NotTo(HaveOccurred())
	return t
}

// device is the first of a host.
func (r rig) device(host string) string {
	for _, device := range r.Devices() {
		if device.Host == host {
			return device.Device
		}
	}
	panic("mtu: plan has no device of " + host)
}

// end closes the dialogue; nothing may have come that nobody waited for.
func (t *talk) end() {
	GinkgoHelper()
	Expect(t.Close()).To(Succeed())
	Expect(errors.Join(t.toClient.Close(), t.toServer.Close())).To(Succeed())
	Expect(t.Strays()).To(BeZero(), "datagrams or ICMP errors that nobody waited for")
}

// both are the two directions.
var both = []direction{toPod, toClient}

// direction is of the datagrams whose size a spec varies.
type direction bool

const (
	toPod    direction = true
	toClient direction = false
)

func (d direction) String() string {
	if d == toPod {
		return "client to pod"
	}
	return "pod to client"
}

// send sends a burst in a direction, and one byte in the other, and returns the fate of the burst and the ICMP
// errors that came to its sender.
func (t *talk) send(d direction, b traffic.Burst) (traffic.Leg, [][]byte, error) {
	one := traffic.Burst{Size: 1, Count: 1}
	question, answer, errs := b, one, t.toClient
	if d == toClient {
		question, answer, errs = one, b, t.toServer
	}
	fate, err := t.Ask(question, answer)
	if err != nil {
		return traffic.Leg{}, nil, err
	}
	frames, err := errs.Take()
	if d == toPod {
		if err == nil && fate.Question.Whole() && !fate.Answer.Whole() {
			err = fmt.Errorf("the answer of 1 byte %s", fate.Answer)
		}
		return fate.Question, frames, err
	}
	if err == nil && !fate.Question.Whole() {
		err = fmt.Errorf("the question of 1 byte %s", fate.Question)
	}
	return fate.Answer, frames, err
}

// bound is something on the way that takes packets no longer than so many bytes from the IP header on.
type bound struct {
	longest int
	by      []netip.Addr // from which an error about a longer one may come; nil: the sender's own kernel says so
}

// first is the bound that a packet of a length meets first, if any.
func first(bounds []bound, length int) (bound, bool) {
	i := slices.IndexFunc(bounds, func(b bound) bool { return length > b.longest })
	if i < 0 {
		return bound{}, false
	}
	return bounds[i], true
}

// judge says what is wrong with the fate of one datagram that must not be fragmented.
func (t *talk) judge(d direction, bounds []bound, leg traffic.Leg, frames [][]byte, size int) error {
	length := t.header() + udpHeader + size
	b, bounded := first(bounds, length)
	switch {
	case !bounded && (!leg.Whole() || len(frames) > 0):
		return fmt.Errorf("%d bytes fit, but: %s; %d ICMP errors", length, leg, len(frames))
	case !bounded:
		return nil
	case b.by == nil && (leg.Errno != unix.EMSGSIZE || len(frames) > 0):
		return fmt.Errorf("%d bytes do not fit the sender's link, but: %s; %d ICMP errors", length, leg, len(frames))
	case b.by == nil:
		return nil
	case leg.Refusal == nil || leg.Arrived > 0 || len(frames) != 1:
		return fmt.Errorf("%d bytes exceed %d, but: %s; %d ICMP errors", length, b.longest, leg, len(frames))
	}
	return t.judgeError(d, b, leg, frames[0], size)
}

// judgeError compares an ICMP error, as its receiver's socket told it and as it was on the wire, with what is due.
func (t *talk) judgeError(d direction, b bound, leg traffic.Leg, frame []byte, size int) error {
	want := traffic.Refusal{Type: traffic.Unreachable4, Code: traffic.NeedsFragmentation4, MTU: b.longest, From: leg.Refusal.From, Errno: unix.EMSGSIZE}
	if t.header() == 40 {
		want.Type, want.Code = traffic.TooBig6, 0
	}
	if *leg.Refusal != want || !slices.Contains(b.by, leg.Refusal.From) {
		return fmt.Errorf("%d bytes: the socket got %+v, want %+v from one of %v", t.header()+udpHeader+size, *leg.Refusal, want, b.by)
	}
	return t.judgeFrame(d, *leg.Refusal, frame, leg.Sent[:size])
}

// judgeFrame compares an ICMP error on the wire with what the socket said, and its quote with what was sent.
func (t *talk) judgeFrame(d direction, said traffic.Refusal, frame, sent []byte) error {
	e, err := readError(frame)
	if err != nil {
		return err
	}
	from, to := t.source, t.front
	if d == toClient {
		from, to = t.pod, t.source
	}
	length := t.header() + udpHeader + len(sent)
	switch {
	case t.verify(frame) != nil:
		return fmt.Errorf("%d bytes: the error is malformed: %w\n%s", length, t.verify(frame), packet.Describe(frame))
	case e.from != said.From || e.to != from.Addr() || e.kind != said.Type || e.code != said.Code || e.mtu != said.MTU:
		return fmt.Errorf("%d bytes: on the wire the error is another than the socket says, %+v:\n%s", length, said, packet.Describe(frame))
	case e.quotedFrom != from || e.quotedTo != to || e.quotedLength != length:
		return fmt.Errorf("%d bytes from %s to %s: the error quotes something else:\n%s", length, from, to, packet.Describe(frame))
	case len(e.quoted) > len(sent) || string(e.quoted) != string(sent[:len(e.quoted)]):
		return fmt.Errorf("%d bytes: the error quotes another payload than was sent:\n%s", length, packet.Describe(frame))
	case len(e.quoted) == 0 && len(sent) > 64:
		return fmt.Errorf("%d bytes: the error quotes nothing of the payload:\n%s", length, packet.Describe(frame))
	}
	return nil
}

// verify checks all lengths and checksums. A sender that leaves its checksum to the device is quoted with an unfinished
// one, as nobody on the way can know: with offloads on the quoted UDP checksum is not judged.
func (t *talk) verify(frame []byte) error {
	err := packet.Verify(frame)
	if err == nil || !bool(t.offload) {
		return err
	}
	for line := range strings.Lines(err.Error()) {
		if !strings.HasPrefix(line, "quote.udp: checksum ") {
			return err
		}
	}
	return nil
}

// icmpError is an ICMP error about a UDP datagram.
type icmpError struct {
	from, to             netip.Addr
	kind, code           uint8
	mtu                  int
	quotedFrom, quotedTo netip.AddrPort
	quotedLength         int // bytes from its IP header on, as that says
	quoted               []byte
}

var errShort = errors.New("an ICMP error is too short")

// readError reads an ICMP error from its IP header on.
func readError(frame []byte) (icmpError, error) {
	var e icmpError
	var ok bool
	var message []byte
	if e.from, e.to, _, message, ok = readIP(frame); !ok || len(message) < 8 {
		return e, errShort
	}
	e.kind, e.code, e.mtu = message[0], message[1], int(binary.BigEndian.Uint16(message[6:]))
	if e.from.Is6() {
		e.mtu = int(binary.BigEndian.Uint32(message[4:]))
	}
	from, to, length, udp, ok := readIP(message[8:])
	if !ok || len(udp) < udpHeader {
		return e, errShort
	}
	e.quotedFrom = netip.AddrPortFrom(from, binary.BigEndian.Uint16(udp))
	e.quotedTo = netip.AddrPortFrom(to, binary.BigEndian.Uint16(udp[2:]))
	e.quotedLength, e.quoted = length, udp[udpHeader:]
	return e, nil
}

// readIP reads an IP header without extensions.
func readIP(data []byte) (from, to netip.Addr, length int, rest []byte, ok bool) {
	switch {
	case len(data) >= 20 && data[0] == 0x45:
		return netip.AddrFrom4([4]byte(data[12:])), netip.AddrFrom4([4]byte(data[16:])), int(binary.BigEndian.Uint16(data[2:])), data[20:], true
	case len(data) >= 40 && data[0]>>4 == 6:
		return netip.AddrFrom16([16]byte(data[8:])), netip.AddrFrom16([16]byte(data[24:])), 40 + int(binary.BigEndian.Uint16(data[4:])), data[40:], true
	}
	return from, to, 0, nil, false
}
