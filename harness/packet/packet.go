// SPDX-License-Identifier: Apache-2.0

// Package packet builds the packets of a test from readable parts, and says of any packet what it is, whether it is
// well formed, and how it differs from another. It knows beep's tunnel (Geneve with one option) as it knows TCP.
// Invariant: a packet built from parts without a deliberate error passes Verify, and every bit of a packet shows in
// some field, so two different packets never have an empty Diff.
package packet

import (
	"fmt"
	"net/netip"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// MAC addresses for tests that do not care whose they are; both are unicast and locally administered.
const (
	MAC1 = "02:00:00:00:00:01"
	MAC2 = "02:00:00:00:00:02"
)

// Part is one header, or the payload, of a packet. Parts are values: each method returns a changed copy, so a part may be
// shared between the rows of a table. This package alone implements it.
type Part interface {
	// protocol is the number by which an IP header in front names this part; v6 is that header's family.
	protocol(v6 bool) layers.IPProtocol
	// inside returns what the parts behind this one see.
	inside(s scope) scope
	// prepend writes the part in front of what buf holds; next names the part behind it.
	prepend(buf gopacket.SerializeBuffer, s scope, next layers.IPProtocol) error
}

// scope is the pseudo-header of the nearest IP header in front; invalid addresses mean that there is none.
type scope struct{ src, dst netip.Addr }

func (s scope) v6() bool { return s.dst.Is6() }

// network is the IP header from which gopacket computes the pseudo-header.
func (s scope) network() gopacket.NetworkLayer {
	if s.v6() {
		return &layers.IPv6{SrcIP: s.src.AsSlice(), DstIP: s.dst.AsSlice()}
	}
	return &layers.IPv4{SrcIP: s.src.AsSlice(), DstIP: s.dst.AsSlice()}
}

// Build joins parts to a packet, outermost first. Lengths, checksums and the number that names the next header are filled in
// unless a part says otherwise. Parts that cannot stand together, such as TCP without an IP header in front, are a mistake
// in the test and panic. To truncate a packet, slice the result; to truncate what a tunnel carries, wrap the slice in Raw.
func Build(parts ...Part) []byte {
	scopes := make([]scope, len(parts))
	var s scope
	for i, p := range parts {
		scopes[i] = s
		s = p.inside(s)
	}
	buf := gopacket.NewSerializeBuffer()
	next := layers.IPProtocolNoNextHeader
	for i := len(parts) - 1; i >= 0; i-- {
		if err := parts[i].prepend(buf, scopes[i], next); err != nil {
			panic(fmt.Sprintf("packet: part %d (%T): %v", i, parts[i], err))
		}
		next = parts[i].protocol(scopes[i].v6())
	}
	return buf.Bytes()
}

// Bytes is a payload, or a piece of packet that was built elsewhere.
type Bytes struct{ data []byte }

// Payload is n bytes of a fixed pattern (0, 1, … 255, 0, …), which Describe recognises.
func Payload(n int) Bytes {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(i)
	}
	return Bytes{data}
}

// Raw is data as it stands: an application's payload, a truncated inner packet, or what an ICMP error quotes. If it begins
// like an IP header, the header in front names it as IP.
func Raw(data []byte) Bytes { return Bytes{data} }

func (b Bytes) protocol(bool) layers.IPProtocol {
	if len(b.data) > 0 {
		switch b.data[0] >> 4 {
		case 4:
			return layers.IPProtocolIPv4
		case 6:
			return layers.IPProtocolIPv6
		}
	}
	return layers.IPProtocolNoNextHeader
}

func (b Bytes) inside(s scope) scope { return s }

func (b Bytes) prepend(buf gopacket.SerializeBuffer, _ scope, _ layers.IPProtocol) error {
	return gopacket.Payload(b.data).SerializeTo(buf, gopacket.SerializeOptions{})
}

// etherType names an IP packet in an Ethernet or Geneve header, which have no protocol number for it.
func etherType(p layers.IPProtocol) layers.EthernetType {
	switch p {
	case layers.IPProtocolIPv4:
		return layers.EthernetTypeIPv4
	case layers.IPProtocolIPv6:
		return layers.EthernetTypeIPv6
	}
	return 0
}
