// SPDX-License-Identifier: Apache-2.0

package packet

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"net/netip"
	"strings"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// field is one value of a header as Describe prints it; an empty value is the usual one and is not printed.
type field struct{ name, value string }

// layer is one header, or the payload, taken apart.
type layer struct {
	name   string
	fields []field
	faults []string
}

func (l *layer) set(name, format string, args ...any) {
	l.fields = append(l.fields, field{name, fmt.Sprintf(format, args...)})
}

// setUnless leaves the value empty where it is the usual one.
func (l *layer) setUnless(usual int, name string, value int) {
	if value == usual {
		l.set(name, "")
		return
	}
	l.set(name, "%d", value)
}

func (l *layer) fault(format string, args ...any) {
	l.faults = append(l.faults, fmt.Sprintf(format, args...))
}

func (l *layer) String() string {
	var b strings.Builder
	b.WriteString(l.name)
	for _, f := range l.fields {
		if f.value != "" {
			fmt.Fprintf(&b, " %s=%s", f.name, f.value)
		}
	}
	return b.String()
}

// walker takes a packet apart, outermost layer first. gopacket decodes the headers; which one is next is decided here, because
// gopacket guesses application protocols from ports and fails on what merely looks like them.
type walker struct {
	layers []*layer
	// prefix marks the layers inside a tunnel ("inner.") and those that an ICMP error quotes ("quote.").
	prefix string
	// quoted packets may be cut anywhere: their lengths are not faults.
	quoted bool
}

// dissect takes a whole packet apart, with or without an Ethernet header.
func dissect(data []byte) []*layer {
	var w walker
	if isFrame(data) {
		w.frame(data)
	} else {
		w.ip(data)
	}
	return w.layers
}

// isFrame tells an Ethernet frame from a packet of an L3-only device: by an EtherType that agrees with the IP version behind it,
// else by a first nibble that no IP header has.
func isFrame(data []byte) bool {
	if len(data) > 14 {
		switch layers.EthernetType(binary.BigEndian.Uint16(data[12:])) {
		case layers.EthernetTypeIPv4:
			return data[14]>>4 == 4
		case layers.EthernetTypeIPv6:
			return data[14]>>4 == 6
		}
	}
	return len(data) == 0 || data[0]>>4 != 4 && data[0]>>4 != 6
}

func (w *walker) add(name string) *layer {
	l := &layer{name: w.prefix + name}
	w.layers = append(w.layers, l)
	return l
}

// feedback is gopacket's report that a header claims more bytes than there are.
type feedback struct{ truncated bool }

func (f *feedback) SetTruncated() { f.truncated = true }

// decode runs gopacket's decoder; what it refuses becomes a layer that shows the error and the bytes.
func (w *walker) decode(name string, d gopacket.DecodingLayer, data []byte) bool {
	if err := d.DecodeFromBytes(data, &feedback{}); err != nil {
		l := w.add(name)
		l.set("malformed", "%q", err.Error())
		l.set("bytes", "%s", blob(data))
		if !w.quoted {
			l.fault("malformed: %v", err)
		}
		return false
	}
	return true
}

// blob prints bytes shortly: as the pattern of Payload, in full, or by length and CRC-32.
func blob(b []byte) string {
	pattern := len(b) > 0
	for i := range b {
		pattern = pattern && b[i] == b[0]+byte(i)
	}
	switch {
	case len(b) > 3 && pattern && b[0] == 0:
		return "pattern"
	case len(b) > 3 && pattern:
		return fmt.Sprintf("pattern-from-%d", b[0])
	case len(b) <= 32:
		return hex.EncodeToString(b)
	}
	return fmt.Sprintf("crc32:%08x", crc32.ChecksumIEEE(b))
}

// bytes is what no header explains: a payload, or bytes behind the end of a packet.
func (w *walker) bytes(name string, data []byte) *layer {
	l := w.add(name)
	l.set("len", "%d", len(data))
	l.set("data", "%s", blob(data))
	return l
}

func (w *walker) payload(data []byte) {
	if len(data) > 0 {
		w.bytes("payload", data)
	}
}

func (w *walker) frame(data []byte) {
	var eth layers.Ethernet
	if !w.decode("eth", &eth, data) {
		return
	}
	l := w.add("eth")
	l.set("src", "%s", eth.SrcMAC)
	l.set("dst", "%s", eth.DstMAC)
	typ := binary.BigEndian.Uint16(data[12:])
	l.set("type", "0x%04x", typ)
	w.byEtherType(typ, data[14:], l)
}

// byEtherType continues with what the layer l names by an EtherType.
func (w *walker) byEtherType(typ uint16, data []byte, l *layer) {
	version := uint8(0)
	switch layers.EthernetType(typ) {
	case layers.EthernetTypeIPv4:
		version = 4
	case layers.EthernetTypeIPv6:
		version = 6
	case layers.EthernetTypeTransparentEthernetBridging:
		w.frame(data)
		return
	default:
		w.payload(data)
		return
	}
	if len(data) == 0 || data[0]>>4 != version {
		l.fault("type says IPv%d, but no such header follows", version)
		w.payload(data)
		return
	}
	w.ip(data)
}

func (w *walker) ip(data []byte) {
	switch {
	case len(data) > 0 && data[0]>>4 == 4:
		w.ip4(data)
	case len(data) > 0 && data[0]>>4 == 6:
		w.ip6(data)
	default:
		w.bytes("unknown", data).fault("neither Ethernet nor IP")
	}
}

// length checks a header's length field against the bytes that are there, and prints the bytes behind the packet's end. Zeros up
// to Ethernet's 60 bytes are padding of the frame and no fault.
func (w *walker) length(l *layer, claimed, have int, data []byte) (whole bool) {
	if claimed > have {
		if !w.quoted {
			l.fault("length says %d bytes, %d are there", claimed, have)
		}
		return false
	}
	rest := data[len(data)-(have-claimed):]
	padding := w.prefix == "" && w.layers[0].name == "eth" && len(data)+14 <= 60 && strings.Trim(string(rest), "\x00") == ""
	if len(rest) > 0 && !padding && !w.quoted {
		l.fault("length says %d bytes, %d are there", claimed, have)
	}
	return true
}

func (w *walker) trailer(data []byte, n int) {
	if n > 0 && n <= len(data) {
		w.bytes("trailer", data[len(data)-n:])
	}
}

func (w *walker) ip4(data []byte) {
	var ip layers.IPv4
	if !w.decode("ipv4", &ip, data) {
		return
	}
	claimed := int(binary.BigEndian.Uint16(data[2:]))
	l := w.add("ipv4")
	l.set("src", "%s", ip.SrcIP)
	l.set("dst", "%s", ip.DstIP)
	l.set("proto", "%s", protocolName(ip.Protocol))
	l.set("len", "%d", claimed)
	l.set("ttl", "%d", ip.TTL)
	l.setUnless(0, "dscp", int(ip.TOS>>2))
	l.setUnless(0, "ecn", int(ip.TOS&3))
	l.setUnless(0, "id", int(ip.Id))
	l.set("flags", "%s", ip.Flags)
	l.setUnless(0, "frag", int(ip.FragOffset))
	l.setUnless(5, "ihl", int(ip.IHL))
	l.set("options", "%x", ip.Contents[20:])
	_, result := ip.VerifyChecksum()
	w.checksum(l, result, notPartial)
	whole := w.length(l, claimed, len(data), data)
	fragment := ip.FragOffset != 0 || ip.Flags&layers.IPv4MoreFragments != 0
	w.transport(ip.Protocol, ip.Payload, &ip, whole && !fragment, ip.FragOffset != 0)
	if claimed >= 20 {
		w.trailer(data, len(data)-claimed)
	}
}

func (w *walker) ip6(data []byte) {
	var ip layers.IPv6
	if !w.decode("ipv6", &ip, data) {
		return
	}
	l := w.add("ipv6")
	l.set("src", "%s", ip.SrcIP)
	l.set("dst", "%s", ip.DstIP)
	l.set("next", "%s", protocolName(ip.NextHeader))
	l.set("len", "%d", ip.Length)
	l.set("ttl", "%d", ip.HopLimit)
	l.setUnless(0, "dscp", int(ip.TrafficClass>>2))
	l.setUnless(0, "ecn", int(ip.TrafficClass&3))
	l.setUnless(0, "flow", int(ip.FlowLabel))
	whole := w.length(l, int(ip.Length), len(data)-40, data)
	end := min(len(data), 40+int(ip.Length))
	w.extensions(&ip, data[40:end], whole)
	w.trailer(data, len(data)-end)
}

// extensions walks IPv6 extension headers in any order and number, then the transport header.
func (w *walker) extensions(ip *layers.IPv6, data []byte, whole bool) {
	next, tail := ip.NextHeader, false
	for !tail {
		name := ""
		size := 8
		switch next {
		case layers.IPProtocolIPv6HopByHop:
			name = "hopbyhop"
		case layers.IPProtocolIPv6Routing:
			name = "routing"
		case layers.IPProtocolIPv6Destination:
			name = "destopts"
		case layers.IPProtocolIPv6Fragment:
			name = "fragment"
		}
		if name == "" {
			break
		}
		if len(data) >= 8 && name != "fragment" {
			size = 8 + 8*int(data[1])
		}
		if len(data) < size {
			l := w.bytes(name, data)
			if !w.quoted {
				l.fault("header of %d bytes, %d are there", size, len(data))
			}
			return
		}
		l := w.add(name)
		l.set("next", "%s", protocolName(layers.IPProtocol(data[0])))
		if name == "fragment" {
			offset := binary.BigEndian.Uint16(data[2:])
			l.set("offset", "%d", offset>>3)
			l.set("more", "%d", offset&1)
			l.set("id", "%d", binary.BigEndian.Uint32(data[4:]))
			l.setUnless(0, "reserved", int(data[1])<<2|int(offset>>1&3))
			tail, whole = offset>>3 != 0, whole && offset&^6 == 0
		} else {
			l.set("len", "%d", size)
			l.set("data", "%s", blob(data[2:size]))
		}
		next, data = layers.IPProtocol(data[0]), data[size:]
	}
	w.transport(next, data, ip, whole, tail)
}

func protocolName(p layers.IPProtocol) string {
	switch p {
	case layers.IPProtocolTCP:
		return "tcp"
	case layers.IPProtocolUDP:
		return "udp"
	case layers.IPProtocolICMPv4:
		return "icmp"
	case layers.IPProtocolICMPv6:
		return "icmpv6"
	}
	return fmt.Sprint(uint8(p))
}

// notPartial stands for the pseudo-header's sum where there is no pseudo-header.
const notPartial = 0xffff

// checksum prints a checksum: ok, partial, or the value beside the right one. All but ok are faults.
func (w *walker) checksum(l *layer, r gopacket.ChecksumVerificationResult, partial uint16) {
	switch {
	case r.Actual == r.Correct:
		l.set("csum", "ok")
	case r.Valid:
		// 0 and 0xffff are the same number in one's complement, but not the same bytes.
		l.set("csum", "ok(0x%04x)", r.Actual)
	case partial != notPartial && r.Actual == uint32(partial):
		l.set("csum", "partial")
		l.fault("the checksum is the pseudo-header's sum only (CHECKSUM_PARTIAL), right is 0x%04x", r.Correct)
	default:
		l.set("csum", "0x%04x(right:0x%04x)", r.Actual, r.Correct)
		l.fault("checksum 0x%04x, right is 0x%04x", r.Actual, r.Correct)
	}
}

// scopeOf is the pseudo-header of a decoded header.
func scopeOf(n gopacket.NetworkLayer) scope {
	src, dst := n.NetworkFlow().Endpoints()
	s, _ := netip.AddrFromSlice(src.Raw())
	d, _ := netip.AddrFromSlice(dst.Raw())
	return scope{s, d}
}
