// SPDX-License-Identifier: Apache-2.0

package packetfuzz

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/packet"
	"github.com/beep-lb/beep/harness/progrun"
	"github.com/beep-lb/beep/src/datapath/bpfobj"
)

// quoted is how many bytes of a refused packet its sender gets back.
const quoted = 96

// overhead is what the tunnel adds (design: 60 or 80 forward, 40 or 60 on the way back).
func overhead(forward bool, peer netip.Addr) int {
	n := 40
	if forward {
		n += 20
	}
	if peer.Is6() {
		n += 20
	}
	return n
}

// mtuTo is the MTU of the way to an address.
func mtuTo(dst netip.Addr) int {
	if dst == addr(third4) {
		return tightMTU
	}
	return 1500
}

// headers are the bytes of a TCP segment that its MSS does not count.
func headers(s seen) int {
	if s.family == unix.AF_INET {
		return 20 + 20
	}
	return 40 + 20
}

// sent judges a packet that must leave as the draft says, by an uplink of the programs' choice.
func (e *event) sent(d *draft) error {
	if e.out.Verdict != progrun.Redirect || len(e.dropped) > 0 {
		return fmt.Errorf("verdict %v %v, want a redirect", e.out.Verdict, e.dropped)
	}
	if e.out.Mark != markOurs {
		return fmt.Errorf("redirected with the mark %#x", e.out.Mark)
	}
	return d.compare(e.out.Packet)
}

// tunnelled judges a packet that must leave through the tunnel to its flow's peer. The inner packet is in the draft.
func (e *event) tunnelled(d *draft, s seen, row bpfobj.BeepFlow, forward bool) error {
	peer := ipOf(row.Peer)
	if !slices.Contains(peers, peer) {
		return fmt.Errorf("sent to %v, which is no peer", peer)
	}
	outer := outerHeaders(s, row, peer, forward)
	whole := &draft{b: slices.Concat(d.b[:12], outer, d.b[14:])}
	for _, at := range d.sums {
		whole.sums = append(whole.sums, at+len(outer)-2)
	}
	return e.sent(whole)
}

// outerHeaders are the EtherType and all headers in front of the inner packet.
func outerHeaders(s seen, row bpfobj.BeepFlow, peer netip.Addr, forward bool) []byte {
	big := binary.BigEndian
	var b []byte
	inside := s.len() + overhead(forward, peer)
	if peer.Is4() {
		b = append(b, 0x08, 0x00, 0x45, s.tos)
		b = big.AppendUint16(b, uint16(inside))
		b = append(b, 0, 0, 0x40, 0, 64, unix.IPPROTO_UDP, 0, 0)
		b = append(b, addr(self4).AsSlice()...)
		b = append(b, peer.AsSlice()...)
		sum := words(b[2:], false)
		sum = sum&0xffff + sum>>16
		sum = sum&0xffff + sum>>16
		big.PutUint16(b[12:], ^uint16(sum))
		inside -= 20
	} else {
		inside -= 40
		b = append(b, 0x86, 0xdd, 6<<4|s.tos>>4, s.tos<<4, 0, 0)
		b = big.AppendUint16(b, uint16(inside))
		b = append(b, unix.IPPROTO_UDP, 64)
		b = append(b, addr(self6).AsSlice()...)
		b = append(b, peer.AsSlice()...)
	}
	b = big.AppendUint16(b, host(row.TunnelPortBe))
	b = big.AppendUint16(b, 6081)
	b = big.AppendUint16(b, uint16(inside))
	b = append(b, 0, 0)
	words := byte(1)
	if forward {
		words = 6
	}
	b = append(b, words, 0x40)
	b = big.AppendUint16(b, s.etherType())
	b = big.AppendUint32(b, 48873<<8)
	if !forward {
		return append(b, 0xff, 0xbe, 0x82, 0)
	}
	b = append(b, 0xff, 0xbe, 0x81, 5)
	b = append(b, row.NatAddr[:]...)
	b = big.AppendUint16(b, host(row.NatPortBe))
	return append(b, 0, 0)
}

// tooBig judges a packet longer than its way takes: cut where its sender allows that, else refused. It describes the
// packet, which is in b, as its sender made it.
func (e *event) tooBig(s seen, limit int, b []byte) error {
	if s.df {
		if e.out.Verdict == progrun.Shot {
			return e.drop("too-big")
		}
		return e.answer(s, "too-big", limit, b)
	}
	ipLen := s.l4 - s.l3
	per := (limit - ipLen) &^ 7
	last := (s.len() - ipLen - 1) / per
	if ipLen != 20 || last > pieceMask {
		return e.drop("too-big")
	}
	if e.out.Verdict != progrun.Redirect || len(e.dropped) > 0 {
		return fmt.Errorf("verdict %v %v, want pieces", e.out.Verdict, e.dropped)
	}
	if want := uint32(markPiece | last); e.out.Mark != want {
		return fmt.Errorf("piece has the mark %#x, want %#x", e.out.Mark, want)
	}
	return clone(b).compare(e.out.Packet)
}

// answer judges the ICMP error that a packet has become: about a packet in b, of its reason; mtu 0 is an unreachable
// port.
func (e *event) answer(s seen, reason string, mtu int, b []byte) error {
	if e.out.Verdict != progrun.Redirect || len(e.dropped) != 1 {
		return fmt.Errorf("verdict %v %v, want an answer", e.out.Verdict, e.dropped)
	}
	if err := e.droppedFor(reason); err != nil {
		return err
	}
	if s.fragment == later || s.isError() {
		return fmt.Errorf("an answer to what none may be about (RFC 1122, section 3.2.2)")
	}
	if a := s.src; a.IsMulticast() || a.IsUnspecified() || a.IsLoopback() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		return fmt.Errorf("an answer to %v, which is no single host (RFC 1122, section 3.2.2; RFC 4443, section 2.4)", a)
	}
	typ, code := uint8(3), uint8(3)
	switch {
	case s.family == unix.AF_INET && mtu > 0:
		code = 4
	case s.family == unix.AF_INET6 && mtu > 0:
		typ, code, mtu = 2, 0, max(mtu, 1280)
	case s.family == unix.AF_INET6:
		typ, code = 1, 4
	}
	want := packet.Build(ip(s.dst, s.src), packet.ICMP(typ, code).Rest(uint32(mtu)),
		packet.Raw(b[s.l3:min(s.end, s.l3+quoted)]))
	ethernet := slices.Concat(b[6:12], b[:6], b[12:14])
	if e.at == ingress && len(b) != len(e.in) { // unwrapped: its sender is at the other end of a flow, and it goes on as if it came in here
		ethernet = b[:14]
	}
	d := &draft{b: slices.Concat(ethernet, want)}
	return d.compare(e.out.Packet)
}

// piece judges a copy of which one piece is wanted. Wherever it goes, its bytes are those of the packet.
func (e *event) piece(s seen) error {
	if e.out.Verdict != progrun.Redirect {
		return nil
	}
	out := e.out.Packet
	etherType := binary.BigEndian.Uint16(out[12:])
	got, understood := parse(out, 14, etherType)
	if understood && got.proto == unix.IPPROTO_UDP && got.dport == 6081 && s.dport != 6081 {
		if t, ours := tunnel(out, got); ours && t.wellMade {
			got, understood = parse(out, t.inner, innerType(out, t))
		}
	}
	if !understood && got.fragment != first {
		return fmt.Errorf("a piece is not understood: %x", out)
	}
	offset := func(b []byte, s seen) int { return 8 * int(binary.BigEndian.Uint16(b[s.l3+6:])&0x1fff) }
	from := s.l4 + offset(out, got) - offset(e.in, s)
	ports := 0
	if got.fragment != later { // ports, checksum and MSS are translated
		ports = 60
	}
	size := got.end - got.l4
	if from < s.l4 || from+size > s.end || ports < size && string(out[got.l4+ports:got.end]) != string(e.in[from+ports:from+size]) {
		return fmt.Errorf("a piece of %d bytes holds what is not in the packet: %x", size, out)
	}
	return nil
}
