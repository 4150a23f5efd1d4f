// SPDX-License-Identifier: Apache-2.0

package packetfuzz

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// upper is where the transport header of a frame begins, as far as its IP header says; len(b) if it does not.
func upper(b []byte) int {
	switch {
	case len(b) >= 34 && b[14]>>4 == 4:
		return min(len(b), 14+4*int(b[14]&15))
	case len(b) >= 54 && b[14]>>4 == 6:
		s := seen{l3: 14}
		if s.ipv6(b) {
			return min(len(b), s.l4)
		}
		return 54
	}
	return len(b)
}

// mend makes lengths and checksums of an IP packet right, inside a tunnel first, so that an input which has been twisted
// is well formed again.
func mend(b []byte) {
	if len(b) < 40 {
		return
	}
	v6 := b[0]>>4 == 6
	if v6 {
		binary.BigEndian.PutUint16(b[4:], uint16(len(b)-40))
	} else {
		binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	}
	etherType := uint16(etherIPv4)
	if v6 {
		etherType = etherIPv6
	}
	s, ok := parse(b, 0, etherType)
	if !ok {
		return
	}
	mendTransport(b, s)
	if !v6 {
		b[10], b[11] = 0, 0
		binary.BigEndian.PutUint16(b[10:], sum(b[:s.l4]))
	}
}

func mendTransport(b []byte, s seen) {
	if s.fragment != whole {
		return
	}
	body := b[s.l4:s.end]
	if s.proto == unix.IPPROTO_UDP {
		binary.BigEndian.PutUint16(body[4:], uint16(len(body)))
		if t, ours := tunnel(b, s); ours && t.wellMade {
			mend(b[t.inner:s.end])
			return
		}
	}
	at := map[byte]int{unix.IPPROTO_TCP: 16, unix.IPPROTO_UDP: 6, unix.IPPROTO_ICMP: 2, unix.IPPROTO_ICMPV6: 2}[s.proto]
	if at == 0 || at+2 > len(body) {
		return
	}
	body[at], body[at+1] = 0, 0
	var pseudo []byte
	if s.proto != unix.IPPROTO_ICMP {
		pseudo = append(s.src.AsSlice(), s.dst.AsSlice()...)
		pseudo = append(pseudo, 0, s.proto)
		pseudo = binary.BigEndian.AppendUint16(pseudo, uint16(len(body)))
	}
	binary.BigEndian.PutUint16(body[at:], sum(append(pseudo, body...)))
}

// sum is the Internet checksum (RFC 1071); of UDP's two forms of zero the one that says so.
func sum(b []byte) uint16 {
	total := words(b, false)
	for total>>16 != 0 {
		total = total&0xffff + total>>16
	}
	if total == 0xffff {
		return 0xffff
	}
	return ^uint16(total)
}
