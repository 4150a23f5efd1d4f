// SPDX-License-Identifier: Apache-2.0

package packetfuzz

import (
	"fmt"
	"math/bits"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/progrun"
	"github.com/beep-lb/beep/src/datapath/bpfobj"
	rows "github.com/beep-lb/beep/src/datapath/maps"
	"github.com/beep-lb/beep/src/model"
)

// The marks of bpf/lib/config.h.
const (
	markOurs  = 0x62656570
	markPiece = 0x62656500
	pieceMask = 0x0f
)

// event is one packet through one program: what was before, what came of it.
type event struct {
	w             *world
	at            hook
	mark          uint32
	in            []byte
	before, after state
	out           progrun.Out
	dropped       []string // counters that rose
}

// check says what is wrong with what came of the packet.
func (e *event) check() error {
	switch e.out.Verdict {
	case progrun.Pass:
		if len(e.dropped) > 0 {
			return fmt.Errorf("passed, but counted as %v", e.dropped)
		}
	case progrun.Shot:
		if len(e.dropped) != 1 {
			return fmt.Errorf("dropped, but counted as %v", e.dropped)
		}
	case progrun.Redirect:
		if len(e.dropped) > 1 {
			return fmt.Errorf("counted twice: %v", e.dropped)
		}
	default:
		return fmt.Errorf("unknown verdict: %v", e.out.Verdict)
	}
	if err := e.checkRows(); err != nil {
		return err
	}
	etherType := uint16(e.in[12])<<8 | uint16(e.in[13])
	s, understood := parse(e.in, 14, etherType)
	switch {
	case e.at == egress && e.mark == markOurs:
		return e.foreign("packet of our own")
	case !understood:
		return e.foreign("packet that is not understood")
	case e.at == egress && e.mark&^pieceMask == markPiece:
		return e.piece(s)
	case e.at == egress:
		return e.fromEndpoint(s)
	case s.proto == unix.IPPROTO_UDP && s.fragment == whole && s.dport == 6081 && (s.dst == addr(self4) || s.dst == addr(self6)):
		return e.fromTunnel(s)
	}
	return e.fromClient(s)
}

// foreign is the fate of what is none of ours.
func (e *event) foreign(why string) error {
	if e.out.Verdict != progrun.Pass {
		return fmt.Errorf("a %s gets verdict %v %v", why, e.out.Verdict, e.dropped)
	}
	if err := clone(e.in).compare(e.out.Packet); err != nil {
		return fmt.Errorf("a %s is changed: %w", why, err)
	}
	if !e.after.same(e.before) {
		return fmt.Errorf("a %s changes rows", why)
	}
	return nil
}

// drop is the fate of a packet of ours that must not go on, for one of the reasons.
func (e *event) drop(reasons ...string) error {
	if e.out.Verdict != progrun.Shot {
		return fmt.Errorf("verdict %v, want a drop for %v", e.out.Verdict, reasons)
	}
	return e.droppedFor(reasons...)
}

func (e *event) droppedFor(reasons ...string) error {
	direction := " ingress"
	if e.at == egress {
		direction = " egress"
	}
	for _, reason := range reasons {
		if e.dropped[0] == reason+direction {
			return nil
		}
	}
	return fmt.Errorf("dropped for %v, want one of %v", e.dropped, reasons)
}

// pass is the fate of a packet that goes up or down the stack as the draft says.
func (e *event) pass(d *draft) error {
	if e.out.Verdict != progrun.Pass {
		return fmt.Errorf("verdict %v %v, want a pass", e.out.Verdict, e.dropped)
	}
	return d.compare(e.out.Packet)
}

func host(port uint16) uint16 { return bits.ReverseBytes16(port) }

func ipOf(b [16]byte) netip.Addr { return netip.AddrFrom16(b).Unmap() }

func key(kind rows.Kind, proto byte, src, dst netip.Addr, sport, dport uint16) bpfobj.BeepFlowKey {
	return bpfobj.BeepFlowKey{Src: src.As16(), Dst: dst.As16(), SportBe: host(sport), DportBe: host(dport), Proto: proto, Kind: uint8(kind)}
}

// with gives a later fragment the ports of its first one, if that was seen.
func (e *event) with(s seen) (seen, bool) {
	if s.fragment != later {
		return s, true
	}
	ports, known := e.before.fragments[bpfobj.BeepFragmentKey{Src: s.src.As16(), Dst: s.dst.As16(), Id: s.id, Proto: s.proto}]
	s.sport, s.dport = host(ports.SportBe), host(ports.DportBe)
	return s, known
}

// reopens says whether a packet begins a new connection on a closed row.
func reopens(row bpfobj.BeepFlow, s seen) bool {
	return row.Flags&uint32(rows.Closed) != 0 && s.flags&0x12 == 2
}

// frontOf finds the front of a socket of ours.
func (e *event) frontOf(dst netip.Addr, port uint16, proto byte) (front, bool) {
	f, ours := e.w.fronts[model.Socket{Addr: dst, Port: port, Proto: model.Proto(proto)}]
	return f, ours
}

// fromClient judges what comes in on the uplink outside of a tunnel.
func (e *event) fromClient(s seen) error {
	if s.isError() {
		return e.errorFromClient(s)
	}
	s, complete := e.with(s)
	if s.proto != unix.IPPROTO_TCP && s.proto != unix.IPPROTO_UDP || !complete {
		return e.foreign("packet of no flow")
	}
	name := key(rows.Forward, s.proto, s.src, s.dst, s.sport, s.dport)
	f, ours := e.frontOf(s.dst, s.dport, s.proto)
	row, known := e.before.established[name]
	if !known && ours {
		row, known = e.before.pending[name]
	}
	if known && !reopens(row, s) {
		return e.toEndpoint(s, row)
	}
	if !ours {
		return e.foreign("packet to no front")
	}
	if f.sources != nil && !slices.ContainsFunc(f.sources, func(p netip.Prefix) bool { return p.Contains(s.src) }) {
		return e.drop("source-denied")
	}
	if len(f.endpoints) == 0 {
		if s.flags&4 != 0 || e.out.Verdict == progrun.Shot {
			return e.drop("no-endpoint")
		}
		return e.answer(s, "no-endpoint", 0, e.in)
	}
	row, known = e.after.flow(name)
	if !known {
		return fmt.Errorf("a new flow has no row: verdict %v %v", e.out.Verdict, e.dropped)
	}
	chosen := model.Endpoint{Addr: ipOf(row.NatAddr), Port: host(row.NatPortBe)}
	if row.Peer != ([16]byte{}) {
		chosen.Peer = ipOf(row.Peer)
	}
	if !slices.Contains(f.endpoints, chosen) {
		return fmt.Errorf("a flow through front %d goes to %v, which is none of its endpoints", f.id, chosen)
	}
	return e.toEndpoint(s, row)
}

// toEndpoint judges a client's packet whose flow has the row.
func (e *event) toEndpoint(s seen, row bpfobj.BeepFlow) error {
	d := clone(e.in)
	if row.Peer == ([16]byte{}) {
		d.translate(s, rewrite{addr: ipOf(row.NatAddr), sport: host(row.ClientPortBe), dport: host(row.NatPortBe)})
		return e.pass(d)
	}
	peer := ipOf(row.Peer)
	limit := mtuTo(peer) - overhead(true, peer)
	if s.len() > limit {
		return e.tooBig(s, limit, e.in)
	}
	d.clamp(s, limit+overhead(true, peer)-overhead(false, peer)-headers(s))
	return e.tunnelled(d, s, row, true)
}

// errorFromClient judges an ICMP error about what a front has sent.
func (e *event) errorFromClient(s seen) error {
	q, understood := quote(e.in[:s.end], s.l4+8, s.etherType())
	if !understood || q.src != s.dst {
		return e.foreign("error about no flow")
	}
	row, known := e.before.flow(key(rows.Forward, q.proto, q.dst, q.src, q.dport, q.sport))
	if !known {
		return e.foreign("error about no flow")
	}
	d := clone(e.in)
	if row.Peer == ([16]byte{}) {
		d.translateError(s, q, rewrite{addr: ipOf(row.NatAddr), source: true, sport: host(row.NatPortBe), dport: host(row.ClientPortBe)})
		return e.pass(d)
	}
	if peer := ipOf(row.Peer); s.len() > mtuTo(peer)-overhead(true, peer) {
		return e.drop("too-big", "kernel-refused")
	}
	return e.tunnelled(d, s, row, true)
}

// fromEndpoint judges what leaves by the uplink.
func (e *event) fromEndpoint(s seen) error {
	if s.proto == unix.IPPROTO_UDP && s.fragment != later && s.dport == 6081 {
		if _, forged := tunnel(e.in, s); forged {
			return e.drop("forged-tunnel")
		}
	}
	if s.isError() {
		return e.errorFromEndpoint(s)
	}
	s, complete := e.with(s)
	if s.proto != unix.IPPROTO_TCP && s.proto != unix.IPPROTO_UDP || !complete {
		return e.foreign("packet of no flow")
	}
	row, known := e.before.flow(key(rows.Reverse, s.proto, s.src, s.dst, s.sport, s.dport))
	if !known {
		return e.foreign("packet of no flow")
	}
	to := rewrite{addr: ipOf(row.NatAddr), source: true, sport: host(row.NatPortBe), dport: host(row.ClientPortBe)}
	d := clone(e.in)
	if row.Flags&uint32(rows.Tunnelled) == 0 {
		d.translate(s, to)
		return e.pass(d)
	}
	peer := ipOf(row.Peer)
	if limit := mtuTo(peer) - overhead(false, peer); s.len() > limit {
		return e.tooBig(s, limit, e.in)
	}
	d.translate(s, to)
	d.clamp(s, mtuTo(peer)-overhead(true, peer)-headers(s))
	return e.tunnelled(d, s, row, false)
}

// errorFromEndpoint judges an ICMP error about what a client has sent.
func (e *event) errorFromEndpoint(s seen) error {
	q, understood := quote(e.in[:s.end], s.l4+8, s.etherType())
	if !understood || q.src != s.dst {
		return e.foreign("error about no flow")
	}
	row, known := e.before.flow(key(rows.Reverse, q.proto, q.dst, q.src, q.dport, q.sport))
	if !known {
		return e.foreign("error about no flow")
	}
	d := clone(e.in)
	d.translateError(s, q, rewrite{addr: ipOf(row.NatAddr), sport: host(row.ClientPortBe), dport: host(row.NatPortBe)})
	if row.Flags&uint32(rows.Tunnelled) == 0 {
		return e.pass(d)
	}
	if peer := ipOf(row.Peer); s.len() > mtuTo(peer)-overhead(false, peer) {
		return e.drop("too-big", "kernel-refused")
	}
	return e.tunnelled(d, s, row, false)
}
