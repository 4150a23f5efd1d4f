// SPDX-License-Identifier: Apache-2.0

package packetfuzz

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/packet"
)

// twist is one change to a frame: what, and with which three bytes. A list of them is the second part of an input, so
// that the fuzzer changes a packet by its structure as well as by its bits.
type twist [4]byte

// The changes. Their numbers are in the corpus.
const (
	twistNone = iota
	twistTruncate
	twistByte
	twistBit
	twistLength
	twistSource
	twistDestination
	twistSourcePort
	twistDestinationPort
	twistExtension
	twistTail
	twistFragment
	twistFlags
	twistOptions
	twistQuote
	twistTunnel
	twistMend
	twistGrow
	twistAnswer
	twistTOS
	twistSend
	twists
)

var (
	twistAddrs = func() (all [2][]netip.Addr) {
		for i, f := range families {
			all[i] = []netip.Addr{f.self, f.peer, f.client, f.outside, f.here, f.there}
		}
		all[0] = append(all[0], addr(third4), addr("192.0.2.99"), addr("0.0.0.0"), addr("224.0.0.1"))
		all[1] = append(all[1], addr("2001:db8:b::99"), addr("::ffff:192.0.2.1"), addr("::ffff:198.51.100.7"), addr("::"), addr("ff02::1"))
		return all
	}()
	twistPorts = []uint16{portHere, portThere, portBoth, portNone, portLimited, portCrossing, portTight, podPort, 6081, 9,
		portEstablished, portEstablished + 1, portEstablished + 2, portPending, portPending + 1, portPending + 2,
		portClosed, portClosed + 1, portClosed + 2, tunnelPort, portAnswered, portAnswered + 1, portAnswered + 2}
	twistExtensions = []byte{unix.IPPROTO_HOPOPTS, unix.IPPROTO_DSTOPTS, unix.IPPROTO_ROUTING, unix.IPPROTO_AH,
		unix.IPPROTO_FRAGMENT, unix.IPPROTO_NONE}
)

// list splits bytes into twists.
func list(b []byte) (all []twist) {
	for len(b) >= 4 && len(all) < 32 {
		all = append(all, twist(b))
		b = b[4:]
	}
	return all
}

// apply returns the frame with the change; one that does not fit the frame is none.
func (c twist) apply(b []byte) []byte {
	at, arg := int(binary.BigEndian.Uint16(c[1:])), c[3]
	if len(b) < 34 {
		return b
	}
	v6 := b[14]>>4 == 6 && len(b) >= 54
	switch c[0] % twists {
	case twistTruncate:
		return b[:at%(len(b)+1)]
	case twistByte:
		b[at%len(b)] = arg
	case twistBit:
		b[at%len(b)] ^= 1 << (arg % 8)
	case twistLength:
		field := b[16:]
		if v6 {
			field = b[18:]
		}
		binary.BigEndian.PutUint16(field, binary.BigEndian.Uint16(field)+uint16(int8(arg)))
	case twistSource, twistDestination:
		setAddress(b, v6, c[0]%twists == twistSource, arg)
	case twistSourcePort, twistDestinationPort:
		if off := upper(b) + 2*int(c[0]%twists-twistSourcePort); off+2 <= len(b) {
			binary.BigEndian.PutUint16(b[off:], twistPorts[int(arg)%len(twistPorts)])
		}
	case twistTail:
		return append(b, bytes.Repeat([]byte{arg}, at%64)...)
	case twistFlags:
		if off := upper(b) + 13; off < len(b) {
			b[off] = arg
		}
	case twistGrow:
		return append(b, bytes.Repeat([]byte{arg}, at%3000)...)
	case twistTOS:
		if v6 {
			b[14], b[15] = 6<<4|arg>>4, arg<<4|b[15]&15
		} else {
			b[15] = arg
		}
	case twistMend:
		mend(b[14:])
	default:
		return c.reshape(b, v6)
	}
	return b
}

// reshape applies the changes that move headers.
func (c twist) reshape(b []byte, v6 bool) []byte {
	switch c[0] % twists {
	case twistExtension:
		if v6 {
			kind, units := twistExtensions[int(c[1])%len(twistExtensions)], int(c[2]%4)
			header := make([]byte, 8*(units+1))
			header[0], header[1], header[3] = b[20], byte(units), c[3]
			b[20] = kind
			b = slices.Concat(b[:54], header, b[54:])
		}
	case twistFragment:
		word := binary.BigEndian.Uint16(c[1:])
		if !v6 {
			binary.BigEndian.PutUint16(b[20:], word)
			binary.BigEndian.PutUint16(b[18:], uint16(c[3]))
			return b
		}
		header := binary.BigEndian.AppendUint16([]byte{b[20], 0}, word<<3|word>>13)
		header = binary.BigEndian.AppendUint32(header, uint32(c[3]))
		b[20] = unix.IPPROTO_FRAGMENT
		b = slices.Concat(b[:54], header, b[54:])
	case twistOptions:
		if words := int(c[1] % 11); !v6 && b[14]&15 == 5 {
			b[14] = 0x45 + byte(words)
			b = slices.Concat(b[:34], bytes.Repeat([]byte{c[3]}, 4*words), b[34:])
		}
	case twistQuote:
		return quoteOf(b, v6, c)
	case twistTunnel:
		return tunnelOf(b, c)
	case twistAnswer:
		source, size := 26, 4
		if v6 {
			source, size = 22, 16
		}
		pair := slices.Concat(b[source+size:source+2*size], b[source:source+size])
		copy(b[source:], pair)
		if off := upper(b); off+4 <= len(b) {
			copy(b[off:], slices.Concat(b[off+2:off+4], b[off:off+2]))
		}
	}
	return b
}

func setAddress(b []byte, v6, source bool, which byte) {
	at, all := 30, twistAddrs[0]
	if v6 {
		at, all = 38, twistAddrs[1]
	}
	a := all[int(which)%len(all)].AsSlice()
	if source {
		at -= len(a)
	}
	copy(b[at:], a)
}

// quoteOf makes the frame an ICMP error about its IP packet: c[1] is the type, c[2] where the quote is cut, c[3] who
// says so.
func quoteOf(b []byte, v6 bool, c twist) []byte {
	quoted, to := b[14:], netip.AddrFrom4([4]byte(b[26:]))
	all := twistAddrs[0]
	if v6 {
		to, all = netip.AddrFrom16([16]byte(b[22:])), twistAddrs[1]
	}
	quoted = quoted[:min(len(quoted), 28+int(c[2]))]
	return packet.Build(packet.Eth(packet.MAC1, packet.MAC2), rawIP(all[int(c[3])%len(all)], to), packet.ICMP(c[1], 0), packet.Raw(quoted))
}

// rawIP is an IP header of two addresses of one family, IPv4-mapped ones as IPv6.
func rawIP(src, dst netip.Addr) packet.IPPacket {
	if src.Is4() != dst.Is4() {
		dst = src
	}
	return packet.IP(src.String(), dst.String())
}

// tunnelOf puts the frame's IP packet into a tunnel: c[1] says by whom, c[2] which option, c[3] which target.
func tunnelOf(b []byte, c twist) []byte {
	f := families[c[1]&1]
	from := twistAddrs[c[1]&1][int(c[1]>>1)%len(twistAddrs[0])]
	if from.Is4() != f.self.Is4() {
		from = f.peer
	}
	if c[1]>>1 == 0 {
		from = f.peer
	}
	targets := []netip.Addr{families[0].here, families[1].here, families[0].there, families[1].self}
	header := packet.Forward(netip.AddrPortFrom(targets[int(c[3])%len(targets)], podPort).String())
	switch c[2] % 8 {
	case 1, 2, 3:
		header = packet.Return()
	case 4:
		header = header.VNI(4711)
	case 5:
		header = header.Class(0x0104)
	case 6:
		header = header.BodyWords(c[3])
	case 7:
		header = header.Version(1)
	}
	return packet.Build(packet.Eth(packet.MAC1, packet.MAC2), rawIP(from, f.self), packet.Outer(tunnelPort), header, packet.Raw(b[14:]))
}
