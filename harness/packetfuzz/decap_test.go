// SPDX-License-Identifier: Apache-2.0

package packetfuzz

import (
	"fmt"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/src/datapath/bpfobj"
	rows "github.com/beep-lb/beep/src/datapath/maps"
)

// fromTunnel judges a UDP packet to this node's end of the tunnel.
func (e *event) fromTunnel(outer seen) error {
	t, ours := tunnel(e.in, outer)
	if !ours {
		return e.foreign("tunnel of another system")
	}
	if !t.wellMade {
		return e.drop("tunnel-malformed")
	}
	// Only what the outer packet's own length covers was sent by the peer.
	inner, understood := parse(e.in[:outer.end], t.inner, innerType(e.in, t))
	if !understood || inner.proto != unix.IPPROTO_TCP && inner.proto != unix.IPPROTO_UDP && !inner.isError() {
		return e.drop("tunnel-inner")
	}
	inner, complete := e.with(inner)
	if !complete {
		return e.drop("fragment-orphan")
	}
	q := seen{}
	if inner.isError() {
		q, understood = quote(e.in[:inner.end], inner.l4+8, inner.etherType())
		if !understood || q.src != inner.dst {
			return e.drop("tunnel-inner")
		}
	}
	switch {
	case t.isReturn:
		return e.fromReturn(outer, inner, q, t)
	case inner.isError():
		return e.errorFromForward(outer, inner, q, t)
	}
	return e.fromForward(outer, inner, t)
}

// trusted lists what speaks against delivering to a forward tunnel's target; it is empty where nothing does.
func trusted(outer, inner seen, t tunnelled, proto byte) (reasons []string) {
	if !slices.Contains(peers, outer.src) {
		reasons = append(reasons, "unknown-peer")
	}
	pod := slices.ContainsFunc(families, func(f family) bool { return t.target == netip.AddrPortFrom(f.here, podPort) })
	if !pod || t.target.Addr().Is4() != (inner.family == unix.AF_INET) || proto != unix.IPPROTO_TCP && proto != unix.IPPROTO_UDP {
		reasons = append(reasons, "unknown-target")
	}
	return reasons
}

// fromForward judges a client's packet that a peer has sent here.
func (e *event) fromForward(outer, inner seen, t tunnelled) error {
	if reasons := trusted(outer, inner, t, inner.proto); len(reasons) > 0 {
		return e.drop(reasons...)
	}
	d, s, dropped := e.unwrapped(outer, inner)
	if dropped {
		return e.drop("congested-not-ecn", "ecn")
	}
	row, known := e.after.flow(key(rows.Backend, inner.proto, inner.src, inner.dst, inner.sport, inner.dport))
	if !known {
		return fmt.Errorf("a peer's flow has no row: verdict %v %v", e.out.Verdict, e.dropped)
	}
	if ipOf(row.Peer) != outer.src || ipOf(row.NatAddr) != t.target.Addr() || host(row.NatPortBe) != t.target.Port() {
		return fmt.Errorf("a peer's flow to %v has a row to %v:%d of %v", t.target, ipOf(row.NatAddr), host(row.NatPortBe), ipOf(row.Peer))
	}
	d.clamp(s, mtuTo(outer.src)-overhead(false, outer.src)-headers(s))
	d.translate(s, rewrite{addr: t.target.Addr(), sport: host(row.ClientPortBe), dport: t.target.Port()})
	return e.pass(d)
}

// errorFromForward judges an ICMP error that a peer has sent here, about what a pod has sent.
func (e *event) errorFromForward(outer, inner, q seen, t tunnelled) error {
	reasons := trusted(outer, inner, t, q.proto)
	row, known := e.before.flow(key(rows.Backend, q.proto, q.dst, q.src, q.dport, q.sport))
	if !known || ipOf(row.Peer) != outer.src || ipOf(row.NatAddr) != t.target.Addr() || host(row.NatPortBe) != t.target.Port() {
		reasons = append(reasons, "no-flow")
	}
	if len(reasons) > 0 {
		return e.drop(reasons...)
	}
	d, s, dropped := e.unwrapped(outer, inner)
	if dropped {
		return e.drop("congested-not-ecn", "ecn")
	}
	q = moved(q, inner.l3-s.l3)
	d.translateError(s, q, rewrite{addr: ipOf(row.NatAddr), source: true, sport: host(row.NatPortBe), dport: host(row.ClientPortBe)})
	return e.pass(d)
}

// fromReturn judges a pod's answer that a peer has sent back.
func (e *event) fromReturn(outer, inner, q seen, t tunnelled) error {
	name := key(rows.Forward, inner.proto, inner.dst, inner.src, inner.dport, inner.sport)
	if inner.isError() {
		name = key(rows.Forward, q.proto, q.src, q.dst, q.sport, q.dport)
	}
	row, known := e.before.flow(name)
	switch _, ours := e.frontOf(ipOf(name.Dst), host(name.DportBe), name.Proto); {
	case known && ipOf(row.Peer) != outer.src:
		return e.drop("wrong-peer")
	case !known && !slices.Contains(peers, outer.src):
		return e.drop("unknown-peer")
	case !known && !ours:
		return e.drop("no-flow")
	}
	d, s, dropped := e.unwrapped(outer, inner)
	if dropped {
		return e.drop("congested-not-ecn", "ecn")
	}
	d.clamp(s, mtuTo(outer.src)-overhead(true, outer.src)-headers(s))
	if !known && len(e.dropped) > 0 && e.dropped[0] == "no-route ingress" {
		return e.drop("no-route")
	}
	if limit := mtuTo(inner.dst); s.len() > limit {
		return e.tooBig(s, limit, d.b)
	}
	return e.sent(d)
}

// unwrapped is the packet without its outer headers and with its congestion mark, and how it reads.
func (e *event) unwrapped(outer, inner seen) (d *draft, s seen, drop bool) {
	tos, drop := ecn(inner.tos, outer.tos)
	if drop {
		return nil, s, true
	}
	b := slices.Concat(e.in[:12], []byte{byte(inner.etherType() >> 8), byte(inner.etherType())}, e.in[inner.l3:])
	s = moved(inner, inner.l3-14)
	d = &draft{b: b}
	if tos != s.tos {
		d.mark(s, tos)
		s.tos = tos
	}
	return d, s, false
}

// moved is a packet that begins so many bytes earlier.
func moved(s seen, by int) seen {
	s.l3 -= by
	s.l4 -= by
	s.end -= by
	return s
}

// fromTo says of which row a mirror is, as bpf/lib/abi.h has it: the oracle's own words.
func mirror(name bpfobj.BeepFlowKey, row bpfobj.BeepFlow) bpfobj.BeepFlowKey {
	m := bpfobj.BeepFlowKey{Src: row.NatAddr, Dst: name.Src, SportBe: row.NatPortBe, DportBe: row.ClientPortBe,
		Proto: name.Proto, Kind: uint8(rows.Reverse)}
	if rows.Kind(name.Kind) != rows.Reverse {
		return m
	}
	m = bpfobj.BeepFlowKey{Src: name.Dst, Dst: row.NatAddr, SportBe: row.ClientPortBe, DportBe: row.NatPortBe, Proto: name.Proto,
		Kind: uint8(rows.Forward)}
	if row.Flags&uint32(rows.Tunnelled) != 0 {
		m.Kind = uint8(rows.Backend)
	}
	return m
}
