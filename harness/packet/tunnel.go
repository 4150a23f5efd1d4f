// SPDX-License-Identifier: Apache-2.0

package packet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// beep's tunnel on the wire: Geneve (RFC 8926) with one critical option of an experimental class, whose inner packet starts
// at IP.
const (
	// GenevePort is the UDP destination port (host order).
	GenevePort = 6081
	// DefaultVNI is the virtual network identifier, 24 bits.
	DefaultVNI = 48873
	// OptionClass is the option's class, of the experimental range of RFC 8926, section 7.
	OptionClass = 0xFFBE
	// OptionForward is the type of the option of a client's packet; the top bit says critical.
	OptionForward = 0x81
	// OptionReturn is the type of the option of a pod's reply.
	OptionReturn = 0x82
)

// GeneveHeader is a Geneve header with its options.
type GeneveHeader struct {
	geneve  layers.Geneve
	options []geneveOption
	typ     int
	words   int
}

// geneveOption is an option and the length that its header claims, in units of 4 bytes.
type geneveOption struct {
	class    uint16
	typ      uint8
	reserved uint8
	body     []byte
	words    int
}

// Outer is the UDP header of a tunnel: to GenevePort, without a checksum. The source port is the flow's entropy.
func Outer(src uint16) UDPDatagram { return UDP(src, GenevePort).NoChecksum() }

// Geneve is a Geneve header without options: version 0, DefaultVNI, protocol type by the IP packet behind it.
func Geneve() GeneveHeader {
	return GeneveHeader{geneve: layers.Geneve{VNI: DefaultVNI}, typ: computed, words: computed}
}

// Forward is a Geneve header with the option of a client's packet: deliver to target, an address and port such as
// 10.42.1.5:8080. The option's flags are 0.
func Forward(target string) GeneveHeader {
	ap, err := netip.ParseAddrPort(target)
	if err != nil {
		panic(fmt.Sprintf("packet: %v", err))
	}
	addr := ap.Addr().As16()
	body := binary.BigEndian.AppendUint16(addr[:], ap.Port())
	return Geneve().Critical(true).Option(OptionClass, OptionForward, append(body, 0, 0)...)
}

// Return is a Geneve header with the option of a pod's reply.
func Return() GeneveHeader { return Geneve().Critical(true).Option(OptionClass, OptionReturn) }

// Option appends an option. A body that is no multiple of 4 bytes cannot be told on the wire and panics.
func (g GeneveHeader) Option(class uint16, typ uint8, body ...byte) GeneveHeader {
	if len(body)%4 != 0 {
		panic(fmt.Sprintf("packet: a Geneve option body of %d bytes: want a multiple of 4", len(body)))
	}
	g.options = append(slices.Clip(g.options), geneveOption{class: class, typ: typ, body: body, words: len(body) / 4})
	return g
}

// edit changes the first option, in a copy.
func (g GeneveHeader) edit(f func(o *geneveOption)) GeneveHeader {
	if len(g.options) == 0 {
		panic("packet: this Geneve header has no option to change")
	}
	g.options = slices.Clone(g.options)
	f(&g.options[0])
	return g
}

// Flags sets the 16 flag bits (host order) of a forward option.
func (g GeneveHeader) Flags(n uint16) GeneveHeader {
	return g.edit(func(o *geneveOption) {
		o.body = slices.Clone(o.body)
		binary.BigEndian.PutUint16(o.body[18:], n)
	})
}

// Class overrides the class of the first option.
func (g GeneveHeader) Class(n uint16) GeneveHeader {
	return g.edit(func(o *geneveOption) { o.class = n })
}

// Type overrides the type of the first option.
func (g GeneveHeader) Type(n uint8) GeneveHeader { return g.edit(func(o *geneveOption) { o.typ = n }) }

// Reserved sets the three reserved bits in front of the length of the first option.
func (g GeneveHeader) Reserved(n uint8) GeneveHeader {
	return g.edit(func(o *geneveOption) { o.reserved = n & 7 })
}

// BodyWords overrides the length field of the first option, in units of 4 bytes without the option's header, 0 to 31; the
// bytes stay.
func (g GeneveHeader) BodyWords(n uint8) GeneveHeader {
	return g.edit(func(o *geneveOption) { o.words = int(n & 31) })
}

// OptionWords overrides the length field of all options, in units of 4 bytes, 0 to 63; the bytes stay.
func (g GeneveHeader) OptionWords(n uint8) GeneveHeader { g.words = int(n & 63); return g }

// Version sets the version, 2 bits.
func (g GeneveHeader) Version(n uint8) GeneveHeader { g.geneve.Version = n & 3; return g }

// VNI sets the virtual network identifier, 24 bits.
func (g GeneveHeader) VNI(n uint32) GeneveHeader { g.geneve.VNI = n; return g }

// OAM sets the O bit: a control packet.
func (g GeneveHeader) OAM() GeneveHeader { g.geneve.OAMPacket = true; return g }

// Critical sets or clears the C bit: some option is critical.
func (g GeneveHeader) Critical(c bool) GeneveHeader { g.geneve.CriticalOption = c; return g }

// ProtocolType overrides the EtherType (host order) of what the tunnel carries.
func (g GeneveHeader) ProtocolType(n uint16) GeneveHeader { g.typ = int(n); return g }

func (g GeneveHeader) protocol(bool) layers.IPProtocol { return layers.IPProtocolNoNextHeader }

func (g GeneveHeader) inside(scope) scope { return scope{} }

func (g GeneveHeader) prepend(buf gopacket.SerializeBuffer, _ scope, next layers.IPProtocol) error {
	h, size := g.geneve, 0
	for _, o := range g.options {
		size += 4 + len(o.body)
		h.Options = append(h.Options, &layers.GeneveOption{Class: o.class, Type: o.typ, Flags: o.reserved,
			Length: uint8(4 + 4*o.words), Data: o.body})
	}
	if size > 63*4 {
		return errors.New("more than 252 bytes of Geneve options")
	}
	h.OptionsLength = uint8(size)
	if g.words != computed {
		h.OptionsLength = uint8(4 * g.words)
	}
	h.Protocol = etherType(next)
	switch {
	case g.typ != computed:
		h.Protocol = layers.EthernetType(g.typ)
	case next == ipProtocolEthernet:
		h.Protocol = layers.EthernetTypeTransparentEthernetBridging
	}
	return h.SerializeTo(buf, gopacket.SerializeOptions{})
}
