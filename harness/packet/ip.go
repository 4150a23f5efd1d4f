// SPDX-License-Identifier: Apache-2.0

package packet

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// ipProtocolEthernet is the number by which a part behind names an Ethernet header (RFC 8986, section 10.1).
const ipProtocolEthernet layers.IPProtocol = 143

// computed marks a header field that Build fills in.
const computed = -1

// Frame is an Ethernet header.
type Frame struct {
	src, dst net.HardwareAddr
	typ      int
}

// Eth is an Ethernet header with the source and destination MAC address; a packet of an L3-only device has none.
func Eth(src, dst string) Frame {
	return Frame{src: mustMAC(src), dst: mustMAC(dst), typ: computed}
}

// Type overrides the EtherType (host order), which otherwise follows from the part behind.
func (f Frame) Type(t uint16) Frame { f.typ = int(t); return f }

func mustMAC(s string) net.HardwareAddr {
	mac, err := net.ParseMAC(s)
	if err != nil {
		panic(fmt.Sprintf("packet: %v", err))
	}
	return mac
}

func (f Frame) protocol(bool) layers.IPProtocol { return ipProtocolEthernet }

func (f Frame) inside(scope) scope { return scope{} }

func (f Frame) prepend(buf gopacket.SerializeBuffer, _ scope, next layers.IPProtocol) error {
	eth := layers.Ethernet{SrcMAC: f.src, DstMAC: f.dst, EthernetType: etherType(next)}
	if f.typ != computed {
		eth.EthernetType = layers.EthernetType(f.typ)
	}
	// Serialised aside: gopacket pads every frame to 60 bytes, but a packet that the kernel hands to a program on egress, or
	// that a tunnel carries, has no such padding.
	var none gopacket.SerializeOptions
	aside := gopacket.NewSerializeBuffer()
	if err := eth.SerializeTo(aside, none); err != nil {
		return err
	}
	return gopacket.Payload(aside.Bytes()[:14]).SerializeTo(buf, none)
}

// IPPacket is an IPv4 or IPv6 header; its family is that of the addresses.
type IPPacket struct {
	src, dst      netip.Addr
	ttl, tos      uint8
	id, offset    uint16
	flags         layers.IPv4Flag
	flow          uint32
	options       []byte
	version, ihl  int
	length, proto int
	wrongChecksum bool
}

// IP is an IP header with TTL (or hop limit) 64, no DF and DSCP, ECN and IPv4 identification 0.
func IP(src, dst string) IPPacket {
	ip := IPPacket{src: mustAddr(src), dst: mustAddr(dst), ttl: 64,
		version: computed, ihl: computed, length: computed, proto: computed}
	if ip.src.Is4() != ip.dst.Is4() {
		panic(fmt.Sprintf("packet: %s and %s are of two families", src, dst))
	}
	return ip
}

func mustAddr(s string) netip.Addr {
	a, err := netip.ParseAddr(s)
	if err != nil {
		panic(fmt.Sprintf("packet: %v", err))
	}
	return a
}

// TTL sets the TTL or hop limit.
func (p IPPacket) TTL(n uint8) IPPacket { p.ttl = n; return p }

// DSCP sets the upper six bits of the TOS or traffic class byte (RFC 2474); n is 0 to 63.
func (p IPPacket) DSCP(n uint8) IPPacket { p.tos = n<<2 | p.tos&3; return p }

// ECN sets the lower two bits of the TOS or traffic class byte (RFC 3168): 0 not capable, 1 ECT(1), 2 ECT(0), 3 CE.
func (p IPPacket) ECN(n uint8) IPPacket { p.tos = p.tos&^3 | n&3; return p }

// DF forbids routers to fragment an IPv4 packet. IPv6 routers never do: nothing changes there.
func (p IPPacket) DF() IPPacket { p.flags |= layers.IPv4DontFragment; return p }

// ID sets the IPv4 identification. An IPv6 packet carries one in its Fragment part only.
func (p IPPacket) ID(id uint16) IPPacket { p.id = id; return p }

// FlowLabel sets the IPv6 flow label, 20 bits.
func (p IPPacket) FlowLabel(n uint32) IPPacket { p.flow = n; return p }

// Fragment makes the packet an IPv4 fragment: offset in units of 8 bytes, more says that others follow. For IPv6, put a
// Fragment part behind the header.
func (p IPPacket) Fragment(offset uint16, more bool) IPPacket {
	p.offset, p.flags = offset, p.flags&^layers.IPv4MoreFragments
	if more {
		p.flags |= layers.IPv4MoreFragments
	}
	return p
}

// Options sets the bytes of the IPv4 options (RFC 791), padded with End of List to a multiple of 4; at most 40.
func (p IPPacket) Options(b ...byte) IPPacket {
	p.options = slices.Grow(slices.Clone(b), 3)
	for len(p.options)%4 != 0 {
		p.options = append(p.options, 0)
	}
	return p
}

// Proto overrides the protocol (or next header) number, for a fragment's tail or on purpose.
func (p IPPacket) Proto(n uint8) IPPacket { p.proto = int(n); return p }

// Version overrides the version, 4 bits.
func (p IPPacket) Version(n uint8) IPPacket { p.version = int(n); return p }

// IHL overrides the IPv4 header length field, in units of 4 bytes.
func (p IPPacket) IHL(n uint8) IPPacket { p.ihl = int(n); return p }

// Length overrides the IPv4 total length or the IPv6 payload length field, in bytes.
func (p IPPacket) Length(n uint16) IPPacket { p.length = int(n); return p }

// WrongChecksum damages the IPv4 header checksum; IPv6 has none.
func (p IPPacket) WrongChecksum() IPPacket { p.wrongChecksum = true; return p }

func (p IPPacket) protocol(bool) layers.IPProtocol {
	if p.dst.Is6() {
		return layers.IPProtocolIPv6
	}
	return layers.IPProtocolIPv4
}

func (p IPPacket) inside(scope) scope { return scope{p.src, p.dst} }

func (p IPPacket) prepend(buf gopacket.SerializeBuffer, _ scope, next layers.IPProtocol) error {
	if p.proto != computed {
		next = layers.IPProtocol(p.proto)
	}
	if p.dst.Is6() {
		return p.prepend6(buf, next)
	}
	return p.prepend4(buf, next)
}

func (p IPPacket) prepend4(buf gopacket.SerializeBuffer, next layers.IPProtocol) error {
	if len(p.options) > 40 {
		return fmt.Errorf("%d bytes of IPv4 options, at most 40 fit", len(p.options))
	}
	ip := layers.IPv4{Version: 4, IHL: uint8(5 + len(p.options)/4), TOS: p.tos, Id: p.id, Flags: p.flags,
		Length: uint16(len(buf.Bytes()) + 20 + len(p.options)), FragOffset: p.offset, TTL: p.ttl, Protocol: next,
		SrcIP: p.src.AsSlice(), DstIP: p.dst.AsSlice(), Padding: p.options}
	if p.version != computed {
		ip.Version = uint8(p.version)
	}
	if p.ihl != computed {
		ip.IHL = uint8(p.ihl)
	}
	if p.length != computed {
		ip.Length = uint16(p.length)
	}
	if err := ip.SerializeTo(buf, gopacket.SerializeOptions{ComputeChecksums: true}); err != nil {
		return err
	}
	if p.wrongChecksum {
		buf.Bytes()[11] ^= 1
	}
	return nil
}

func (p IPPacket) prepend6(buf gopacket.SerializeBuffer, next layers.IPProtocol) error {
	if p.offset != 0 || p.flags&layers.IPv4MoreFragments != 0 || len(p.options) != 0 {
		return errors.New("fragment fields and options of IPv4 on an IPv6 header: use extension parts")
	}
	ip := layers.IPv6{Version: 6, TrafficClass: p.tos, FlowLabel: p.flow, HopLimit: p.ttl, NextHeader: next,
		Length: uint16(len(buf.Bytes())), SrcIP: p.src.AsSlice(), DstIP: p.dst.AsSlice()}
	if p.version != computed {
		ip.Version = uint8(p.version)
	}
	if p.length != computed {
		ip.Length = uint16(p.length)
	}
	return ip.SerializeTo(buf, gopacket.SerializeOptions{})
}

// Extension is an IPv6 extension header (RFC 8200, section 4).
type Extension struct {
	kind         layers.IPProtocol
	units        int
	route        []netip.Addr
	segmentsLeft uint8
	offset       uint16
	more         bool
	id           uint32
	next         int
}

// HopByHop is a hop-by-hop options header of 8*units bytes, filled with padding; units is 1 to 32.
func HopByHop(units int) Extension {
	return Extension{kind: layers.IPProtocolIPv6HopByHop, units: units, next: computed}
}

// DestOptions is a destination options header of 8*units bytes, filled with padding; units is 1 to 32.
func DestOptions(units int) Extension {
	return Extension{kind: layers.IPProtocolIPv6Destination, units: units, next: computed}
}

// Routing is a routing header of type 0 over the addresses. With segments left, the last address is the final
// destination, and so the one that checksums behind it cover (RFC 8200, section 8.1).
func Routing(segmentsLeft uint8, route ...string) Extension {
	x := Extension{kind: layers.IPProtocolIPv6Routing, segmentsLeft: segmentsLeft, next: computed}
	for _, a := range route {
		x.route = append(x.route, mustAddr(a))
	}
	return x
}

// Fragment is a fragment header: offset in units of 8 bytes, more says that other fragments follow.
func Fragment(offset uint16, more bool, id uint32) Extension {
	return Extension{kind: layers.IPProtocolIPv6Fragment, offset: offset, more: more, id: id, next: computed}
}

// Next overrides the next header number, for a fragment's tail or on purpose.
func (x Extension) Next(n uint8) Extension { x.next = int(n); return x }

func (x Extension) protocol(bool) layers.IPProtocol { return x.kind }

func (x Extension) inside(s scope) scope {
	if x.segmentsLeft > 0 && len(x.route) > 0 {
		s.dst = x.route[len(x.route)-1]
	}
	return s
}

func (x Extension) prepend(buf gopacket.SerializeBuffer, s scope, next layers.IPProtocol) error {
	if !s.v6() {
		return errors.New("an extension header needs an IPv6 header in front")
	}
	if x.next != computed {
		next = layers.IPProtocol(x.next)
	}
	var none gopacket.SerializeOptions
	switch x.kind {
	case layers.IPProtocolIPv6Routing:
		h := layers.IPv6Routing{SegmentsLeft: x.segmentsLeft, Reserved: make([]byte, 4)}
		h.NextHeader = next
		for _, a := range x.route {
			h.SourceRoutingIPs = append(h.SourceRoutingIPs, a.AsSlice())
		}
		return h.SerializeTo(buf, none)
	case layers.IPProtocolIPv6Fragment:
		h := layers.IPv6Fragment{NextHeader: next, FragmentOffset: x.offset, MoreFragments: x.more, Identification: x.id}
		return h.SerializeTo(buf, none)
	}
	if x.units < 1 || x.units > 32 {
		return fmt.Errorf("an options header of %d units, want 1 to 32", x.units)
	}
	// One PadN option fills the header exactly: gopacket's own padding is wrong for any remainder but 4.
	pad := layers.IPv6HopByHopOption{OptionType: 1, OptionLength: uint8(8*x.units - 4), OptionData: make([]byte, 8*x.units-4)}
	if x.kind == layers.IPProtocolIPv6HopByHop {
		h := layers.IPv6HopByHop{Options: []*layers.IPv6HopByHopOption{&pad}}
		h.NextHeader, h.HeaderLength = next, uint8(x.units-1)
		return h.SerializeTo(buf, none)
	}
	h := layers.IPv6Destination{Options: []*layers.IPv6DestinationOption{(*layers.IPv6DestinationOption)(&pad)}}
	h.NextHeader, h.HeaderLength = next, uint8(x.units-1)
	return h.SerializeTo(buf, none)
}
