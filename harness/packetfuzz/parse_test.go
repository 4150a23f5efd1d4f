// SPDX-License-Identifier: Apache-2.0

package packetfuzz

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

const (
	etherIPv4 = 0x0800
	etherIPv6 = 0x86dd

	// extensions is how many IPv6 extension headers a packet may have for the programs to understand it.
	extensions = 6
	// lastHeader is the last byte of a frame at which the programs read a header (MAX_HEADER_OFFSET of bpf/lib/pkt.h).
	lastHeader = 512
)

// The places of a packet among the fragments of a datagram.
type fragment int

const (
	whole fragment = iota
	first
	later
)

// seen is an IP packet as the oracle reads it: strictly, every header inside the packet that its own lengths describe.
type seen struct {
	family       byte // unix.AF_INET or AF_INET6
	l3, l4, end  int  // of the IP header, of the transport header, and where the packet's own length ends it
	src, dst     netip.Addr
	sport, dport uint16
	proto        byte
	fragment     fragment
	id           uint32 // as the bytes stand, read by this machine
	tos          byte
	df           bool
	flags        byte   // TCP
	ack          uint32 // TCP: the acknowledgement number
	icmp         byte   // type
}

// parse reads the packet of an EtherType at l3 of b. ok is false for whatever is not an IP packet that beep could
// understand: cut short, of inconsistent lengths, with too long a header chain, or with addresses that belong to the
// other family (RFC 4291, section 2.5.5.2, gives IPv4-mapped ones no place on the wire).
func parse(b []byte, l3 int, etherType uint16) (s seen, ok bool) {
	s, ok = network(b, l3, etherType)
	if !ok || s.end > len(b) {
		return s, false
	}
	ok = s.fragment == later || s.transport(b)
	return s, ok
}

// quote reads what an ICMP error quotes at l3, which may be cut anywhere behind the first 8 bytes of its transport;
// b ends with the error.
func quote(b []byte, l3 int, etherType uint16) (s seen, ok bool) {
	s, ok = network(b, l3, etherType)
	if !ok || s.fragment == later || s.proto != unix.IPPROTO_TCP && s.proto != unix.IPPROTO_UDP || s.l4+8 > len(b) {
		return s, false
	}
	s.ports(b)
	return s, true
}

func network(b []byte, l3 int, etherType uint16) (s seen, ok bool) {
	s.l3 = l3
	switch etherType {
	case etherIPv4:
		ok = s.ipv4(b)
	case etherIPv6:
		ok = s.ipv6(b)
	}
	return s, ok
}

func (s *seen) ipv4(b []byte) bool {
	if s.l3+20 > len(b) || b[s.l3]>>4 != 4 || b[s.l3]&15 < 5 {
		return false
	}
	h := b[s.l3:]
	s.family = unix.AF_INET
	s.l4 = s.l3 + int(h[0]&15)*4
	s.end = s.l3 + int(binary.BigEndian.Uint16(h[2:]))
	s.tos, s.proto = h[1], h[9]
	s.src, s.dst = netip.AddrFrom4([4]byte(h[12:])), netip.AddrFrom4([4]byte(h[16:]))
	s.id = uint32(binary.NativeEndian.Uint16(h[4:]))
	word := binary.BigEndian.Uint16(h[6:])
	s.df = word&0x4000 != 0
	switch {
	case word&0x1fff != 0:
		s.fragment = later
	case word&0x2000 != 0:
		s.fragment = first
	}
	return s.l4 <= s.end
}

func (s *seen) ipv6(b []byte) bool {
	if s.l3+40 > len(b) || b[s.l3]>>4 != 6 {
		return false
	}
	h := b[s.l3:]
	s.family, s.df = unix.AF_INET6, true
	s.l4 = s.l3 + 40
	s.end = s.l4 + int(binary.BigEndian.Uint16(h[4:]))
	s.tos, s.proto = h[0]<<4|h[1]>>4, h[6]
	s.src, s.dst = netip.AddrFrom16([16]byte(h[8:])), netip.AddrFrom16([16]byte(h[24:]))
	if s.src.Is4In6() || s.dst.Is4In6() {
		return false
	}
	for range extensions {
		more, ok := s.extension(b)
		if !more || !ok {
			return ok
		}
	}
	switch s.proto {
	case unix.IPPROTO_HOPOPTS, unix.IPPROTO_DSTOPTS, unix.IPPROTO_ROUTING, unix.IPPROTO_AH, unix.IPPROTO_FRAGMENT:
		return false
	}
	return true
}

// extension steps over one extension header (RFC 8200, section 4); more says that there was one and it is not the last.
func (s *seen) extension(b []byte) (more, ok bool) {
	end := min(s.end, len(b))
	var size int
	switch s.proto {
	case unix.IPPROTO_HOPOPTS, unix.IPPROTO_DSTOPTS, unix.IPPROTO_ROUTING, unix.IPPROTO_AH, unix.IPPROTO_FRAGMENT:
		if s.l4+8 > end || s.l4 > lastHeader {
			return false, false
		}
	}
	switch s.proto {
	case unix.IPPROTO_ROUTING:
		if b[s.l4+3] != 0 { // segments left: not at its destination
			return false, false
		}
		fallthrough
	case unix.IPPROTO_HOPOPTS, unix.IPPROTO_DSTOPTS:
		size = 8 * (int(b[s.l4+1]) + 1)
	case unix.IPPROTO_AH:
		size = 4 * (int(b[s.l4+1]) + 2)
	case unix.IPPROTO_FRAGMENT:
		size = 8
		word := binary.BigEndian.Uint16(b[s.l4+2:])
		switch {
		case word&0xfff8 != 0:
			s.fragment = later
		case word&1 != 0:
			s.fragment = first
		}
		s.id = binary.NativeEndian.Uint32(b[s.l4+4:])
	default:
		return false, true
	}
	if s.l4+size > end {
		return false, false
	}
	s.proto = b[s.l4]
	s.l4 += size
	return s.fragment != later, true
}

// transport reads ports and what else matters of TCP, UDP and ICMP; other protocols have nothing to read.
func (s *seen) transport(b []byte) bool {
	switch s.proto {
	case unix.IPPROTO_TCP:
		if s.l4 > lastHeader || s.l4+20 > s.end || b[s.l4+12]>>4 < 5 || s.l4+s.tcpLen(b) > s.end {
			return false
		}
		s.flags, s.ack = b[s.l4+13], binary.BigEndian.Uint32(b[s.l4+8:])
		s.ports(b)
	case unix.IPPROTO_UDP:
		if s.l4 > lastHeader || s.l4+8 > s.end {
			return false
		}
		s.ports(b)
	case s.icmpProto():
		if s.l4 > lastHeader || s.l4+8 > s.end {
			return false
		}
		s.icmp = b[s.l4]
	}
	return true
}

func (s *seen) ports(b []byte) {
	s.sport, s.dport = binary.BigEndian.Uint16(b[s.l4:]), binary.BigEndian.Uint16(b[s.l4+2:])
}

func (s *seen) tcpLen(b []byte) int { return int(b[s.l4+12]>>4) * 4 }

func (s *seen) icmpProto() byte {
	if s.family == unix.AF_INET {
		return unix.IPPROTO_ICMP
	}
	return unix.IPPROTO_ICMPV6
}

func (s *seen) etherType() uint16 {
	if s.family == unix.AF_INET {
		return etherIPv4
	}
	return etherIPv6
}

// isError says whether the packet is an ICMP error: those about a packet, not redirects (RFC 792, RFC 4443).
func (s *seen) isError() bool {
	if s.fragment != whole || s.proto != s.icmpProto() {
		return false
	}
	if s.family == unix.AF_INET {
		return s.icmp == 3 || s.icmp == 11 || s.icmp == 12
	}
	return s.icmp > 0 && s.icmp < 128
}

// len is the packet's own length in bytes.
func (s *seen) len() int { return s.end - s.l3 }

// checksum is where the transport checksum is, if the packet has one that covers addresses or ports.
func (s *seen) checksum() (at int, has bool) {
	switch {
	case s.fragment == later:
		return 0, false
	case s.proto == unix.IPPROTO_TCP:
		return s.l4 + 16, true
	case s.proto == unix.IPPROTO_UDP:
		return s.l4 + 6, true
	case s.proto == unix.IPPROTO_ICMPV6 && s.family == unix.AF_INET6:
		return s.l4 + 2, true
	}
	return 0, false
}

// tunnelled is what a UDP packet to the tunnel port holds, if it is beep's: our VNI, and our class in the first option.
type tunnelled struct {
	udp      int // where the outer UDP header is
	inner    int // where the inner packet begins, if the format is right
	isReturn bool
	target   netip.AddrPort
	wellMade bool
}

// tunnel reads a UDP packet to the tunnel port. ok is false if it is another system's, or too short to tell.
func tunnel(b []byte, s seen) (t tunnelled, ok bool) {
	const short, long = 8 + 8 + 4, 8 + 8 + 4 + 20 // UDP, Geneve, an option's header and, forward, its body
	t.udp = s.l4
	if s.l4+short > s.end {
		return t, false
	}
	h := b[s.l4:s.end]
	vni, class := binary.BigEndian.Uint32(h[12:])>>8, binary.BigEndian.Uint16(h[16:])
	words := int(h[8] & 63)
	if vni != 48873 || class != 0xffbe || words == 0 {
		return t, false
	}
	if h[8]>>6 != 0 || h[9] != 0x40 || h[6] != 0 || h[7] != 0 {
		return t, true
	}
	switch {
	case h[18] == 0x82 && h[19] == 0 && words == 1:
		t.isReturn, t.inner, t.wellMade = true, s.l4+short, true
	case h[18] == 0x81 && h[19] == 5 && words == 6 && len(h) >= long:
		t.target = netip.AddrPortFrom(netip.AddrFrom16([16]byte(h[20:])).Unmap(), binary.BigEndian.Uint16(h[36:]))
		t.inner, t.wellMade = s.l4+long, true
	}
	return t, true
}

// innerType is the EtherType of what a tunnel packet carries.
func innerType(b []byte, t tunnelled) uint16 { return binary.BigEndian.Uint16(b[t.udp+10:]) }
