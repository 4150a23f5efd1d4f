// SPDX-License-Identifier: Apache-2.0

package packet

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// checked is a transport header whose checksum covers a pseudo-header.
type checked interface {
	SetNetworkLayerForChecksum(gopacket.NetworkLayer) error
	VerifyChecksum() (error, gopacket.ChecksumVerificationResult)
}

// segment is where a transport header stands.
type segment struct {
	network gopacket.NetworkLayer
	proto   layers.IPProtocol
	// whole says that the bytes are all that the checksum covers: no fragment, not cut.
	whole bool
}

// verify prints the checksum of c over size bytes; actual is its field, for when it cannot be checked.
func (w *walker) verify(l *layer, c checked, s segment, size int, actual uint16) {
	if !s.whole {
		l.set("csum", "0x%04x(unchecked)", actual)
		return
	}
	if err := c.SetNetworkLayerForChecksum(s.network); err != nil {
		l.fault("%v", err)
		return
	}
	err, result := c.VerifyChecksum()
	if err != nil {
		l.fault("%v", err)
		return
	}
	if s.proto == layers.IPProtocolUDP && actual == 0 {
		l.set("csum", "none")
		// On IPv6 only a tunnel may go without (RFC 8200, section 8.1; RFC 6935).
		if _, v6 := s.network.(*layers.IPv6); v6 && !w.quoted {
			l.fault("no checksum, which IPv6 allows to tunnels only")
		}
		return
	}
	w.checksum(l, result, pseudoSum(scopeOf(s.network), s.proto, size))
}

// transport continues with what an IP header carries; a fragment's tail has no header to read.
func (w *walker) transport(proto layers.IPProtocol, data []byte, n gopacket.NetworkLayer, whole, tail bool) {
	s := segment{n, proto, whole}
	switch {
	case tail || len(data) == 0:
		w.payload(data)
	case w.quoted && w.cut(proto, data):
	case proto == layers.IPProtocolTCP:
		w.tcp(data, s)
	case proto == layers.IPProtocolUDP:
		w.udp(data, s)
	case proto == layers.IPProtocolICMPv4, proto == layers.IPProtocolICMPv6:
		w.icmp(data, s)
	case proto == layers.IPProtocolIPv4, proto == layers.IPProtocolIPv6:
		w.ip(data)
	default:
		w.payload(data)
	}
}

// cut prints a quoted transport header of which only a part is there: RFC 792 guarantees 8 bytes.
func (w *walker) cut(proto layers.IPProtocol, data []byte) bool {
	if proto != layers.IPProtocolTCP || len(data) < 4 || len(data) >= 20 && len(data) >= int(data[12]>>4)*4 {
		return false
	}
	l := w.add(protocolName(proto))
	l.set("sport", "%d", binary.BigEndian.Uint16(data))
	l.set("dport", "%d", binary.BigEndian.Uint16(data[2:]))
	l.set("cut", "%x", data[4:])
	return true
}

func (w *walker) tcp(data []byte, s segment) {
	var tcp layers.TCP
	if !w.decode("tcp", &tcp, data) {
		return
	}
	l := w.add("tcp")
	l.set("sport", "%d", tcp.SrcPort)
	l.set("dport", "%d", tcp.DstPort)
	var flags strings.Builder
	for i, bit := range flagBits(&tcp) {
		if *bit {
			flags.WriteByte(tcpFlags[i])
		}
	}
	l.set("flags", "%s", flags.String())
	l.set("seq", "%d", tcp.Seq)
	l.set("ack", "%d", tcp.Ack)
	l.set("win", "%d", tcp.Window)
	l.setUnless(0, "urg", int(tcp.Urgent))
	l.setUnless(0, "reserved", int(data[12]>>1&7))
	mss := ""
	for _, o := range tcp.Options {
		if o.OptionType == layers.TCPOptionKindMSS && len(o.OptionData) == 2 {
			mss = fmt.Sprint(binary.BigEndian.Uint16(o.OptionData))
		}
	}
	l.set("mss", "%s", mss)
	l.set("options", "%x", tcp.Contents[20:])
	w.verify(l, &tcp, s, len(data), tcp.Checksum)
	w.payload(tcp.Payload)
}

func (w *walker) udp(data []byte, s segment) {
	var udp layers.UDP
	if !w.decode("udp", &udp, data) {
		return
	}
	l := w.add("udp")
	l.set("sport", "%d", udp.SrcPort)
	l.set("dport", "%d", udp.DstPort)
	l.set("len", "%d", udp.Length)
	tunnel := udp.DstPort == GenevePort
	switch {
	case tunnel && udp.Checksum == 0:
		l.set("csum", "none")
	default:
		w.verify(l, &udp, s, int(udp.Length), udp.Checksum)
	}
	if s.whole && !w.quoted && int(udp.Length) != len(data) {
		l.fault("length says %d bytes, %d are there", udp.Length, len(data))
	}
	if tunnel && (s.whole || w.quoted) { // of a fragment, what is inside goes on elsewhere
		w.geneve(udp.Payload)
	} else {
		w.payload(udp.Payload)
	}
	w.trailer(data, len(data)-max(8+len(udp.Payload), 8))
}

func (w *walker) icmp(data []byte, s segment) {
	if s.proto == layers.IPProtocolICMPv4 {
		var icmp layers.ICMPv4
		if !w.decode("icmp", &icmp, data) {
			return
		}
		l := w.icmpHeader("icmp", data)
		if _, result := icmp.VerifyChecksum(); s.whole {
			w.checksum(l, result, notPartial)
		} else {
			l.set("csum", "0x%04x(unchecked)", icmp.Checksum)
		}
		w.quote(data, data[0] == 3 || data[0] == 4 || data[0] == 5 || data[0] == 11 || data[0] == 12)
		return
	}
	var icmp layers.ICMPv6
	if !w.decode("icmpv6", &icmp, data) {
		return
	}
	if len(data) < 8 {
		w.bytes("icmpv6", data).fault("%d bytes, a message has at least 8", len(data))
		return
	}
	w.verify(w.icmpHeader("icmpv6", data), &icmp, s, len(data), icmp.Checksum)
	w.quote(data, data[0] < 128)
}

func (w *walker) icmpHeader(name string, data []byte) *layer {
	l := w.add(name)
	l.set("type", "%d", data[0])
	l.set("code", "%d", data[1])
	l.set("rest", "0x%08x", binary.BigEndian.Uint32(data[4:]))
	return l
}

// quote continues behind the 8 bytes of an ICMP header: with the quoted packet of an error, else with a payload.
func (w *walker) quote(data []byte, isError bool) {
	if !isError || w.quoted || len(data) <= 8 {
		w.payload(data[8:])
		return
	}
	inner := walker{prefix: w.prefix + "quote.", quoted: true}
	inner.ip(data[8:])
	w.layers = append(w.layers, inner.layers...)
}

func (w *walker) geneve(data []byte) {
	var g layers.Geneve
	if !w.decode("geneve", &g, data) {
		return
	}
	l := w.add("geneve")
	l.setUnless(0, "version", int(g.Version))
	l.set("vni", "%d", g.VNI)
	l.set("type", "0x%04x", uint16(g.Protocol))
	l.set("optlen", "%d", g.OptionsLength)
	flags := ""
	if g.OAMPacket {
		flags += "O"
	}
	if g.CriticalOption {
		flags += "C"
	}
	l.set("flags", "%s", flags)
	l.setUnless(0, "reserved", int(data[1]&0x3f)<<8|int(data[7]))
	critical, size := false, 0
	for i, o := range g.Options {
		name := fmt.Sprintf("option%d", i+1)
		l.set(name, "%s", geneveOptionString(o))
		critical = critical || o.Type&0x80 != 0
		size += int(o.Length)
	}
	if size != int(g.OptionsLength) {
		l.fault("the options are %d bytes, the header says %d", size, g.OptionsLength)
	}
	if critical != g.CriticalOption {
		l.fault("the C bit and the options disagree about a critical option")
	}
	if g.Version != 0 {
		l.fault("version %d", g.Version)
	}
	inner := walker{prefix: w.prefix + "inner.", quoted: w.quoted}
	inner.byEtherType(uint16(g.Protocol), data[min(len(data), 8+size):], l)
	w.layers = append(w.layers, inner.layers...)
}

// geneveOptionString prints beep's options in words and every other one by class, type and body.
func geneveOptionString(o *layers.GeneveOption) string {
	reserved := ""
	if o.Flags != 0 {
		reserved = fmt.Sprintf(",reserved:%d", o.Flags)
	}
	switch {
	case o.Class == OptionClass && o.Type == OptionForward && len(o.Data) == 20:
		addr := netip.AddrFrom16([16]byte(o.Data[:16]))
		text := addr.String()
		if addr.Is4In6() {
			text = addr.Unmap().String()
		} else if addr.Is4() {
			text = "malformed"
		}
		return fmt.Sprintf("forward(%s,port:%d,flags:0x%04x%s)", text, binary.BigEndian.Uint16(o.Data[16:]),
			binary.BigEndian.Uint16(o.Data[18:]), reserved)
	case o.Class == OptionClass && o.Type == OptionReturn && len(o.Data) == 0:
		return "return(" + strings.TrimPrefix(reserved, ",") + ")"
	}
	return fmt.Sprintf("class:0x%04x,type:0x%02x,body:%x%s", o.Class, o.Type, o.Data, reserved)
}
