// SPDX-License-Identifier: Apache-2.0

package packetfuzz

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
)

// draft is a packet that the oracle expects, made out of the one that went in; sums are the checksums in it, of which
// 0 and 0xffff say the same.
type draft struct {
	b    []byte
	sums []int
}

// clone is a draft that equals b.
func clone(b []byte) *draft { return &draft{b: bytes.Clone(b)} }

// put writes bytes, and keeps the checksums at the given places in step (RFC 1624, equation 3). The bytes must begin at
// an even distance from each checksum's start, or be swapped: odd says which.
func (d *draft) put(at int, to []byte, odd bool, sums ...int) {
	from := bytes.Clone(d.b[at : at+len(to)])
	copy(d.b[at:], to)
	for _, sum := range sums {
		field := ^binary.BigEndian.Uint16(d.b[sum:])
		total := uint32(field) + words(to, odd) + 0xffff*uint32(len(to)/2+1) - words(from, odd)
		for total>>16 != 0 {
			total = total&0xffff + total>>16
		}
		binary.BigEndian.PutUint16(d.b[sum:], ^uint16(total))
		if !slices.Contains(d.sums, sum) {
			d.sums = append(d.sums, sum)
		}
	}
}

// words adds up 16-bit words; odd: of bytes that stand at an odd offset.
func words(b []byte, odd bool) (sum uint32) {
	for i, v := range b {
		if (i%2 == 1) == odd {
			sum += uint32(v) << 8
		} else {
			sum += uint32(v)
		}
	}
	return sum
}

// rewrite is what addresses and ports become.
type rewrite struct {
	addr         netip.Addr
	source       bool // the address is the source, not the destination
	sport, dport uint16
}

// place is where the address of one side is, and where the IPv4 header's checksum.
func (s *seen) place(source bool) (at int, sums []int) {
	switch {
	case s.family == unix.AF_INET && source:
		return s.l3 + 12, []int{s.l3 + 10}
	case s.family == unix.AF_INET:
		return s.l3 + 16, []int{s.l3 + 10}
	case source:
		return s.l3 + 8, nil
	}
	return s.l3 + 24, nil
}

// translate rewrites a packet of a flow; an absent UDP checksum stays absent.
func (d *draft) translate(s seen, to rewrite) {
	at, sums := s.place(to.source)
	sum, has := s.checksum()
	if has && s.proto == unix.IPPROTO_UDP && d.b[sum] == 0 && d.b[sum+1] == 0 {
		has = false
	}
	if has {
		sums = append(sums, sum)
	}
	d.put(at, to.addr.AsSlice(), false, sums...)
	if s.fragment == later || s.proto == s.icmpProto() {
		return
	}
	sums = sums[:0]
	if has {
		sums = append(sums, sum)
	}
	d.put(s.l4, binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, to.sport), to.dport), false, sums...)
}

// translateError rewrites an ICMP error and its quote q; outside the address of the other side follows.
func (d *draft) translateError(s, q seen, to rewrite) {
	before := bytes.Clone(d.b[q.l3:s.end])
	inside := &draft{b: d.b[:s.end]}
	at, sums := q.place(to.source)
	if sum, has := q.checksum(); has && sum+2 <= s.end &&
		(q.proto != unix.IPPROTO_UDP || d.b[sum] != 0 || d.b[sum+1] != 0) {
		sums = append(sums, sum)
		inside.put(at, to.addr.AsSlice(), false, sums...)
		inside.put(q.l4, binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, to.sport), to.dport), false, sum)
	} else {
		inside.put(at, to.addr.AsSlice(), false, sums...)
		inside.put(q.l4, binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, to.sport), to.dport), false)
	}
	after := bytes.Clone(d.b[q.l3:s.end])
	copy(d.b[q.l3:], before)
	d.put(q.l3, after, (q.l3-s.l4)%2 == 1, s.l4+2)
	d.sums = append(d.sums, inside.sums...)
	d.translate(s, rewrite{addr: to.addr, source: !to.source})
}

// clamp lowers the MSS option of a SYN (RFC 9293, section 3.7.1).
func (d *draft) clamp(s seen, mss int) {
	if s.proto != unix.IPPROTO_TCP || s.fragment == later || s.flags&2 == 0 {
		return
	}
	options := d.b[s.l4+20 : s.l4+s.tcpLen(d.b)]
	for i := 0; i+4 <= len(options); {
		switch kind, size := options[i], int(options[i+1]); {
		case kind == 1:
			i++
			continue
		case kind == 2 && size == 4 && int(binary.BigEndian.Uint16(options[i+2:])) > mss:
			d.put(s.l4+20+i+2, binary.BigEndian.AppendUint16(nil, uint16(mss)), i%2 == 1, s.l4+16)
			return
		case kind == 0 || kind == 2 || size < 2:
			return
		default:
			i += size
		}
	}
}

// mark writes the combined congestion field of a tunnel packet's end (RFC 6040, figure 4).
func (d *draft) mark(s seen, tos byte) {
	if s.family == unix.AF_INET {
		d.put(s.l3, []byte{d.b[s.l3], tos}, false, s.l3+10)
		return
	}
	d.put(s.l3, []byte{6<<4 | tos>>4, tos<<4 | d.b[s.l3+1]&15}, false)
}

// ecn combines the fields; drop says that the packet must not go on.
func ecn(inner, outer byte) (tos byte, drop bool) {
	switch in, out := inner&3, outer&3; {
	case out == 3 && in == 0:
		return 0, true
	case out == 3:
		return inner&^3 | 3, false
	case out == 1 && in == 2:
		return inner&^3 | 1, false
	}
	return inner, false
}

// compare says where what came differs from the draft.
func (d *draft) compare(got []byte) error {
	want := bytes.Clone(d.b)
	if len(want) != len(got) {
		return fmt.Errorf("%d bytes came, want %d", len(got), len(want))
	}
	for _, at := range d.sums {
		if have := binary.BigEndian.Uint16(got[at:]); have == 0 || have == 0xffff {
			if v := binary.BigEndian.Uint16(want[at:]); v == 0 || v == 0xffff {
				copy(want[at:at+2], got[at:at+2])
			}
		}
	}
	for i := range want {
		if want[i] != got[i] {
			return fmt.Errorf("byte %d is %#02x, want %#02x (of %d bytes)\ncame %x\nwant %x", i, got[i], want[i], len(got), got, want)
		}
	}
	return nil
}
