// SPDX-License-Identifier: Apache-2.0

package packet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// sum says what to put into a transport checksum.
type sum int

const (
	sumRight sum = iota
	sumWrong
	sumZero
	sumPartial
)

// apply replaces the right checksum at byte offset off of l4 (header and payload).
func (m sum) apply(l4 []byte, off int, s scope, proto layers.IPProtocol) {
	field := l4[off : off+2]
	switch m {
	case sumWrong:
		// Bit 8, because a UDP checksum must not become 0 ("none") by the damage; 0x0100 itself takes another bit.
		if field[0] ^= 1; field[0]|field[1] == 0 {
			field[0] = 2
		}
	case sumZero:
		field[0], field[1] = 0, 0
	case sumPartial:
		binary.BigEndian.PutUint16(field, pseudoSum(s, proto, len(l4)))
	}
}

// pseudoSum is the folded sum, not complemented, of the pseudo-header (RFC 9293, section 3.1; RFC 8200, section 8.1): what
// Linux leaves in the checksum field of a CHECKSUM_PARTIAL packet.
func pseudoSum(s scope, proto layers.IPProtocol, length int) uint16 {
	b := slices.Concat(s.src.AsSlice(), s.dst.AsSlice())
	b = binary.BigEndian.AppendUint32(b, uint32(length))
	b = binary.BigEndian.AppendUint32(b, uint32(proto))
	return ^gopacket.FoldChecksum(gopacket.ComputeChecksum(b, 0))
}

var errNoIP = errors.New("a transport header needs an IP header in front")

// TCPSegment is a TCP header.
type TCPSegment struct {
	tcp layers.TCP
	sum sum
}

// TCP is a TCP header with the ACK flag, sequence and acknowledgement number 1, window 65535 and no option. Ports are in host
// order, as everywhere in this package.
func TCP(src, dst uint16) TCPSegment {
	return TCPSegment{tcp: layers.TCP{SrcPort: layers.TCPPort(src), DstPort: layers.TCPPort(dst),
		Seq: 1, Ack: 1, Window: 65535, ACK: true}}
}

// tcpFlags are the letters of the flags, in the order of Describe.
const tcpFlags = "FSRPAUECN"

func flagBits(t *layers.TCP) [len(tcpFlags)]*bool {
	return [...]*bool{&t.FIN, &t.SYN, &t.RST, &t.PSH, &t.ACK, &t.URG, &t.ECE, &t.CWR, &t.NS}
}

// Flags replaces the flags by those whose letters are given: F, S, R, P, A, U, E (ECE), C (CWR), N (NS). A segment without A
// acknowledges nothing: its acknowledgement number becomes 0.
func (t TCPSegment) Flags(letters string) TCPSegment {
	for i, bit := range flagBits(&t.tcp) {
		*bit = strings.Contains(letters, tcpFlags[i:i+1])
	}
	if strings.Trim(letters, tcpFlags) != "" {
		panic(fmt.Sprintf("packet: TCP flags %q: want letters of %s", letters, tcpFlags))
	}
	if !t.tcp.ACK {
		t.tcp.Ack = 0
	}
	return t
}

// Seq sets the sequence number.
func (t TCPSegment) Seq(n uint32) TCPSegment { t.tcp.Seq = n; return t }

// Ack sets the acknowledgement number; the flag is set by Flags.
func (t TCPSegment) Ack(n uint32) TCPSegment { t.tcp.Ack = n; return t }

// Window sets the window field, unscaled.
func (t TCPSegment) Window(n uint16) TCPSegment { t.tcp.Window = n; return t }

// MSS appends a maximum segment size option, in bytes.
func (t TCPSegment) MSS(n uint16) TCPSegment {
	return t.Option(uint8(layers.TCPOptionKindMSS), binary.BigEndian.AppendUint16(nil, n)...)
}

// Option appends an option by its kind; kinds 0 (end) and 1 (no operation) have no length and take no data.
func (t TCPSegment) Option(kind uint8, data ...byte) TCPSegment {
	o := layers.TCPOption{OptionType: layers.TCPOptionKind(kind), OptionLength: uint8(2 + len(data)), OptionData: data}
	t.tcp.Options = append(slices.Clip(t.tcp.Options), o)
	return t
}

// OptionLength overrides the length byte of the option appended last.
func (t TCPSegment) OptionLength(n uint8) TCPSegment {
	t.tcp.Options = slices.Clone(t.tcp.Options)
	t.tcp.Options[len(t.tcp.Options)-1].OptionLength = n
	return t
}

// DataOffset overrides the header length field, in units of 4 bytes.
func (t TCPSegment) DataOffset(n uint8) TCPSegment { t.tcp.DataOffset = n; return t }

// WrongChecksum damages the checksum.
func (t TCPSegment) WrongChecksum() TCPSegment { t.sum = sumWrong; return t }

// PartialChecksum leaves the sum of the pseudo-header only, as Linux does in a packet of CHECKSUM_PARTIAL. A test run cannot
// tell the kernel so: there the packet is one whose checksum an update must keep equally far from right.
func (t TCPSegment) PartialChecksum() TCPSegment { t.sum = sumPartial; return t }

func (t TCPSegment) protocol(bool) layers.IPProtocol { return layers.IPProtocolTCP }

func (t TCPSegment) inside(scope) scope { return scope{} }

func (t TCPSegment) prepend(buf gopacket.SerializeBuffer, s scope, _ layers.IPProtocol) error {
	if !s.dst.IsValid() {
		return errNoIP
	}
	tcp := t.tcp
	size := 20
	for _, o := range tcp.Options {
		if size++; o.OptionType > layers.TCPOptionKindNop {
			size += 1 + len(o.OptionData)
		}
	}
	tcp.Padding = make([]byte, -size&3)
	if size += len(tcp.Padding); size > 60 {
		return fmt.Errorf("%d bytes of TCP options, at most 40 fit", size-20)
	}
	if tcp.DataOffset == 0 {
		tcp.DataOffset = uint8(size / 4)
	}
	if err := tcp.SetNetworkLayerForChecksum(s.network()); err != nil {
		return err
	}
	if err := tcp.SerializeTo(buf, gopacket.SerializeOptions{ComputeChecksums: true}); err != nil {
		return err
	}
	t.sum.apply(buf.Bytes(), 16, s, layers.IPProtocolTCP)
	return nil
}

// UDPDatagram is a UDP header.
type UDPDatagram struct {
	src, dst uint16
	length   int
	sum      sum
}

// UDP is a UDP header; ports are in host order.
func UDP(src, dst uint16) UDPDatagram { return UDPDatagram{src: src, dst: dst, length: computed} }

// NoChecksum sends checksum 0. It is legal on IPv4, and on IPv6 for tunnels only (RFC 6935).
func (u UDPDatagram) NoChecksum() UDPDatagram { u.sum = sumZero; return u }

// RightChecksum computes the checksum, also where the default is none, as in Outer.
func (u UDPDatagram) RightChecksum() UDPDatagram { u.sum = sumRight; return u }

// WrongChecksum damages the checksum; it is never 0 by that.
func (u UDPDatagram) WrongChecksum() UDPDatagram { u.sum = sumWrong; return u }

// PartialChecksum is TCPSegment.PartialChecksum for UDP.
func (u UDPDatagram) PartialChecksum() UDPDatagram { u.sum = sumPartial; return u }

// Length overrides the length field, in bytes with the header.
func (u UDPDatagram) Length(n uint16) UDPDatagram { u.length = int(n); return u }

func (u UDPDatagram) protocol(bool) layers.IPProtocol { return layers.IPProtocolUDP }

func (u UDPDatagram) inside(scope) scope { return scope{} }

func (u UDPDatagram) prepend(buf gopacket.SerializeBuffer, s scope, _ layers.IPProtocol) error {
	if !s.dst.IsValid() {
		return errNoIP
	}
	udp := layers.UDP{SrcPort: layers.UDPPort(u.src), DstPort: layers.UDPPort(u.dst), Length: uint16(len(buf.Bytes()) + 8)}
	if u.length != computed {
		udp.Length = uint16(u.length)
	}
	if err := udp.SetNetworkLayerForChecksum(s.network()); err != nil {
		return err
	}
	if err := udp.SerializeTo(buf, gopacket.SerializeOptions{ComputeChecksums: true}); err != nil {
		return err
	}
	u.sum.apply(buf.Bytes(), 6, s, layers.IPProtocolUDP)
	return nil
}

// ICMPMessage is the 8 bytes that open an ICMP or ICMPv6 message.
type ICMPMessage struct {
	typ4, typ6, code uint8
	rest             uint32
	sum              sum
}

// ICMP is an ICMP message, or an ICMPv6 message behind an IPv6 header, by its type and code. What an error quotes goes behind
// it as Raw.
func ICMP(typ, code uint8) ICMPMessage { return ICMPMessage{typ4: typ, typ6: typ, code: code} }

// Echo is an echo request of the family of the IP header in front (type 8 or 128).
func Echo(id, seq uint16) ICMPMessage {
	return ICMPMessage{typ4: 8, typ6: 128, rest: uint32(id)<<16 | uint32(seq)}
}

// EchoReply is the answer to Echo (type 0 or 129).
func EchoReply(id, seq uint16) ICMPMessage {
	return ICMPMessage{typ4: 0, typ6: 129, rest: uint32(id)<<16 | uint32(seq)}
}

// Rest sets bytes 4 to 7 (host order): an MTU, identifier and sequence, or unused.
func (m ICMPMessage) Rest(n uint32) ICMPMessage { m.rest = n; return m }

// WrongChecksum damages the checksum.
func (m ICMPMessage) WrongChecksum() ICMPMessage { m.sum = sumWrong; return m }

func (m ICMPMessage) protocol(v6 bool) layers.IPProtocol {
	if v6 {
		return layers.IPProtocolICMPv6
	}
	return layers.IPProtocolICMPv4
}

func (m ICMPMessage) inside(scope) scope { return scope{} }

func (m ICMPMessage) prepend(buf gopacket.SerializeBuffer, s scope, _ layers.IPProtocol) error {
	if !s.dst.IsValid() {
		return errNoIP
	}
	opts := gopacket.SerializeOptions{ComputeChecksums: true}
	if !s.v6() {
		icmp := layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(m.typ4, m.code), Id: uint16(m.rest >> 16), Seq: uint16(m.rest)}
		if err := icmp.SerializeTo(buf, opts); err != nil {
			return err
		}
	} else {
		rest, err := buf.PrependBytes(4)
		if err != nil {
			return err
		}
		binary.BigEndian.PutUint32(rest, m.rest)
		icmp := layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(m.typ6, m.code)}
		if err := icmp.SetNetworkLayerForChecksum(s.network()); err != nil {
			return err
		}
		if err := icmp.SerializeTo(buf, opts); err != nil {
			return err
		}
	}
	m.sum.apply(buf.Bytes(), 2, s, m.protocol(s.v6()))
	return nil
}
