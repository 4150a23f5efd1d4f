// SPDX-License-Identifier: Apache-2.0

package packet

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	"pgregory.net/rapid"
)

const (
	client4, front4, pod4 = "198.51.100.7", "192.0.2.1", "10.42.1.5"
	client6, front6, pod6 = "2001:db8:c::7", "2001:db8:b::1", "2001:db8:a::5"
	nodeA4, nodeB4        = "192.0.2.1", "192.0.2.2"
	nodeA6, nodeB6        = "2001:db8:b::1", "2001:db8:b::2"
)

var (
	eth  = Eth(MAC1, MAC2)
	ip4  = IP(client4, front4)
	ip6  = IP(client6, front6)
	syn  = TCP(40000, 80).Flags("S").MSS(1460)
	out4 = IP(nodeA4, nodeB4).DF()
	out6 = IP(nodeA6, nodeB6)
)

// A well-formed packet of every kind passes Verify and prints as written here.
func TestDescribe(t *testing.T) {
	for _, tc := range []struct {
		name  string
		parts []Part
		want  string
	}{
		{"a SYN", []Part{eth, ip4.TTL(63).DSCP(46).ECN(2).DF(), syn}, `
eth src=02:00:00:00:00:01 dst=02:00:00:00:00:02 type=0x0800
ipv4 src=198.51.100.7 dst=192.0.2.1 proto=tcp len=44 ttl=63 dscp=46 ecn=2 flags=DF csum=ok
tcp sport=40000 dport=80 flags=S seq=1 ack=0 win=65535 mss=1460 options=020405b4 csum=ok
`},
		{"a datagram on an L3-only device", []Part{ip6, UDP(5353, 53), Payload(300)}, `
ipv6 src=2001:db8:c::7 dst=2001:db8:b::1 next=udp len=308 ttl=64
udp sport=5353 dport=53 len=308 csum=ok
payload len=300 data=pattern
`},
		{"an IPv4 datagram without a checksum", []Part{eth, ip4.ID(7), UDP(1, 2).NoChecksum(), Raw([]byte("hi"))}, `
eth src=02:00:00:00:00:01 dst=02:00:00:00:00:02 type=0x0800
ipv4 src=198.51.100.7 dst=192.0.2.1 proto=udp len=30 ttl=64 id=7 csum=ok
udp sport=1 dport=2 len=10 csum=none
payload len=2 data=6869
`},
		{"IPv4 options", []Part{eth, ip4.Options(148, 4, 0, 0), UDP(1, 2)}, `
eth src=02:00:00:00:00:01 dst=02:00:00:00:00:02 type=0x0800
ipv4 src=198.51.100.7 dst=192.0.2.1 proto=udp len=32 ttl=64 ihl=6 options=94040000 csum=ok
udp sport=1 dport=2 len=8 csum=ok
`},
		{"extension headers", []Part{ip6, HopByHop(2), Routing(1, nodeB6, pod6), DestOptions(1), Fragment(0, false, 9), TCP(1, 2)}, `
ipv6 src=2001:db8:c::7 dst=2001:db8:b::1 next=0 len=92 ttl=64
hopbyhop next=43 len=16 data=010c000000000000000000000000
routing next=60 len=40 data=crc32:199eedda
destopts next=44 len=8 data=010400000000
fragment next=tcp offset=0 more=0 id=9
tcp sport=1 dport=2 flags=A seq=1 ack=1 win=65535 csum=ok
`},
		{"the first fragment and the tail of a datagram", []Part{ip4.Fragment(0, true), UDP(1, 2), Payload(8)}, `
ipv4 src=198.51.100.7 dst=192.0.2.1 proto=udp len=36 ttl=64 flags=MF csum=ok
udp sport=1 dport=2 len=16 csum=0x077f(unchecked)
payload len=8 data=pattern
`},
		{"a tail", []Part{ip4.Fragment(185, false).Proto(17), Payload(8)}, `
ipv4 src=198.51.100.7 dst=192.0.2.1 proto=udp len=28 ttl=64 frag=185 csum=ok
payload len=8 data=pattern
`},
		{"a ping", []Part{ip6, Echo(1, 2), Payload(4)}, `
ipv6 src=2001:db8:c::7 dst=2001:db8:b::1 next=icmpv6 len=12 ttl=64
icmpv6 type=128 code=0 rest=0x00010002 csum=ok
payload len=4 data=pattern
`},
		{"an ICMP error with 8 bytes of the segment", []Part{ip4, ICMP(3, 4).Rest(1400),
			Raw(Build(IP(front4, client4), TCP(80, 40000), Payload(1400))[:28])}, `
ipv4 src=198.51.100.7 dst=192.0.2.1 proto=icmp len=56 ttl=64 csum=ok
icmp type=3 code=4 rest=0x00000578 csum=ok
quote.ipv4 src=192.0.2.1 dst=198.51.100.7 proto=tcp len=1440 ttl=64 csum=ok
quote.tcp sport=80 dport=40000 cut=00000001
`},
		{"a client's packet in the tunnel", []Part{eth, out4, Outer(50000), Forward(pod4 + ":8080"), ip4, syn}, `
eth src=02:00:00:00:00:01 dst=02:00:00:00:00:02 type=0x0800
ipv4 src=192.0.2.1 dst=192.0.2.2 proto=udp len=104 ttl=64 flags=DF csum=ok
udp sport=50000 dport=6081 len=84 csum=none
geneve vni=48873 type=0x0800 optlen=24 flags=C option1=forward(10.42.1.5,port:8080,flags:0x0000)
inner.ipv4 src=198.51.100.7 dst=192.0.2.1 proto=tcp len=44 ttl=64 csum=ok
inner.tcp sport=40000 dport=80 flags=S seq=1 ack=0 win=65535 mss=1460 options=020405b4 csum=ok
`},
		{"a reply in an IPv6 tunnel", []Part{out6, Outer(50000), Return(), IP(front6, client6), UDP(53, 5353), Payload(9)}, `
ipv6 src=2001:db8:b::1 dst=2001:db8:b::2 next=udp len=77 ttl=64
udp sport=50000 dport=6081 len=77 csum=none
geneve vni=48873 type=0x86dd optlen=4 flags=C option1=return()
inner.ipv6 src=2001:db8:b::1 dst=2001:db8:c::7 next=udp len=17 ttl=64
inner.udp sport=53 dport=5353 len=17 csum=ok
inner.payload len=9 data=pattern
`},
		{"foreign Geneve", []Part{out4, Outer(1), Geneve().VNI(5).Option(0x0102, 3, 1, 2, 3, 4), eth, ip4, UDP(1, 2)}, `
ipv4 src=192.0.2.1 dst=192.0.2.2 proto=udp len=86 ttl=64 flags=DF csum=ok
udp sport=1 dport=6081 len=66 csum=none
geneve vni=5 type=0x6558 optlen=8 option1=class:0x0102,type:0x03,body:01020304
inner.eth src=02:00:00:00:00:01 dst=02:00:00:00:00:02 type=0x0800
inner.ipv4 src=198.51.100.7 dst=192.0.2.1 proto=udp len=28 ttl=64 csum=ok
inner.udp sport=1 dport=2 len=8 csum=ok
`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := Build(tc.parts...)
			if err := Verify(p); err != nil {
				t.Errorf("Verify: %v", err)
			}
			if got := Describe(p); got != strings.TrimPrefix(tc.want, "\n") {
				t.Errorf("got:\n%s\nwant:%s", got, tc.want)
			}
		})
	}
}

// Every deliberate error is found and named with its layer.
func TestVerifyNamesWhatIsWrong(t *testing.T) {
	tunnel := func(g GeneveHeader) []byte { return Build(eth, out4, Outer(50000), g, ip4, syn) }
	forward := Forward(pod4 + ":8080")
	whole := tunnel(forward)
	for _, tc := range []struct {
		name   string
		packet []byte
		want   string
	}{
		{"IPv4 checksum", Build(eth, ip4.WrongChecksum(), syn), "ipv4: checksum"},
		{"IPv4 length too long", Build(eth, ip4.Length(99), syn), "ipv4: length says 99 bytes, 44"},
		{"IPv4 length too short", Build(eth, ip4.Length(40), TCP(1, 2), Payload(30)), "ipv4: length says 40 bytes, 70"},
		{"IPv4 header length", Build(eth, ip4.IHL(4), syn), "ipv4: malformed"},
		{"version", Build(eth, ip4.Version(5), syn), "unknown: neither"},
		{"IPv6 length", Build(eth, ip6.Length(30), syn), "ipv6: length says 30 bytes, 24"},
		{"extension header past the end", Build(eth, ip6, HopByHop(1))[:14+40+4], "ipv6: malformed"},
		{"TCP checksum", Build(eth, ip6, syn.WrongChecksum()), "tcp: checksum"},
		{"TCP header length", Build(eth, ip4, syn.DataOffset(15)), "tcp: malformed"},
		{"partial TCP checksum", Build(eth, ip4, syn.PartialChecksum(), Payload(10)), "tcp: the checksum is the pseudo-header's"},
		{"partial UDP checksum", Build(eth, ip6, UDP(1, 2).PartialChecksum(), Payload(10)), "udp: the checksum is the pseudo-header's"},
		{"UDP checksum", Build(eth, ip4, UDP(1, 2).WrongChecksum()), "udp: checksum"},
		{"UDP without checksum on IPv6", Build(eth, ip6, UDP(1, 2).NoChecksum()), "udp: no checksum"},
		{"UDP length", Build(eth, ip4, UDP(1, 2).Length(9), Payload(8)), "udp: length says 9 bytes, 16"},
		{"ICMP checksum", Build(eth, ip4, Echo(1, 2).WrongChecksum()), "icmp: checksum"},
		{"ICMPv6 checksum", Build(eth, ip6, Echo(1, 2).WrongChecksum()), "icmpv6: checksum"},
		{"truncated", Build(eth, ip4, syn)[:50], "ipv4: length says 44 bytes, 36"},
		{"Geneve version", tunnel(forward.Version(1)), "geneve: version 1"},
		{"Geneve options past the end", tunnel(forward.OptionWords(63)), "geneve: malformed"},
		{"Geneve options too short", tunnel(forward.OptionWords(1)), "geneve: the options are 24 bytes, the header says 4"},
		{"option too long", tunnel(forward.BodyWords(6)), "geneve: the options are 28 bytes, the header says 24"},
		{"C bit missing", tunnel(forward.Critical(false)), "geneve: the C bit"},
		{"protocol type", tunnel(forward.ProtocolType(0x86dd)), "geneve: type says IPv6"},
		{"non-zero outer checksum, wrong", Build(out4, Outer(1).WrongChecksum(), forward, ip4, syn), "udp: checksum"},
		{"inner checksum", Build(out6, Outer(1), forward, ip4, syn.WrongChecksum()), "inner.tcp: checksum"},
		{"inner length", Build(out6, Outer(1), forward, ip4.Length(45), syn), "inner.ipv4: length says 45"},
		{"truncated inside the tunnel", Build(out4, Outer(1), forward, Raw(whole[len(whole)-44:][:30])),
			"inner.ipv4: length says 44 bytes, 30"},
		{"nothing inside", Build(out4, Outer(1), forward.ProtocolType(0x0800)), "geneve: type says IPv4, but no such header"},
		{"empty", nil, "malformed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := Verify(tc.packet)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q in it, of:\n%s", err, tc.want, Describe(tc.packet))
			}
		})
	}
}

// The fields of the tunnel's header are where RFC 8926 puts them.
func TestTunnelBytes(t *testing.T) {
	g := Forward("[2001:db8:a::5]:8080").Flags(0x8001).OAM().VNI(0x010203)
	got := fmt.Sprintf("%x", Build(g, ip6))
	want := "06c086dd01020300" + "ffbe8105" + "20010db8000a00000000000000000005" + "1f90" + "8001"
	if !strings.HasPrefix(got, want) {
		t.Errorf("forward:\n got %s\nwant %s", got[:len(want)], want)
	}
	got = fmt.Sprintf("%x", Build(Forward(pod4+":80").Class(0x1234).Type(0x83).Reserved(7), ip4))
	if want = "0640080000bee900" + "123483e5" + "00000000000000000000ffff0a2a0105" + "0050" + "0000"; !strings.HasPrefix(got, want) {
		t.Errorf("made wrong:\n got %s\nwant %s", got[:len(want)], want)
	}
	if got, want = fmt.Sprintf("%x", Build(Return())), "0140"+"0000"+"00bee900"+"ffbe8200"; got != want {
		t.Errorf("return: got %s, want %s", got, want)
	}
}

// Parts are values: a row of a table cannot change another row's packet.
func TestPartsAreValues(t *testing.T) {
	base := TCP(1, 2).MSS(1)
	a, b := base.Option(1), base.Option(8, 0, 0, 0, 1, 0, 0, 0, 2)
	c := base.OptionLength(9)
	forward := Forward(pod4 + ":80")
	_ = forward.Flags(7).Class(1)
	for i, p := range [][2][]byte{
		{Build(ip4, a), Build(ip4, TCP(1, 2).MSS(1).Option(1))},
		{Build(ip4, b), Build(ip4, TCP(1, 2).MSS(1).Option(8, 0, 0, 0, 1, 0, 0, 0, 2))},
		{Build(ip4, base), Build(ip4, TCP(1, 2).MSS(1))},
		{Build(ip4, c), Build(ip4, TCP(1, 2).MSS(1).OptionLength(9))},
		{Build(forward, ip4), Build(Forward(pod4+":80"), ip4)},
	} {
		if d := Diff(p[1], p[0]); d != "" {
			t.Errorf("row %d: %s", i, d)
		}
	}
}

func TestDiffAndMatcher(t *testing.T) {
	g := gomega.NewWithT(t)
	a := Build(eth, out4, Outer(50000), Forward(pod4+":8080"), ip4, syn)
	b := Build(eth, out4, Outer(50001), Forward(pod4+":8080"), ip4.TTL(63), TCP(40000, 80).Flags("S"))
	g.Expect(Diff(a, a)).To(gomega.BeEmpty())
	g.Expect(Diff(a, b)).To(gomega.Equal(`ipv4.len: want 104, got 100
udp.sport: want 50000, got 50001
udp.len: want 84, got 80
inner.ipv4.len: want 44, got 40
inner.ipv4.ttl: want 64, got 63
inner.tcp.mss: want 1460, got (usual)
inner.tcp.options: want 020405b4, got (usual)
`))
	one, other := Build(eth, out4, Outer(7), Return(), ip4, syn), Build(eth, out4, Outer(8), Return(), ip4, syn)
	g.Expect(one).To(EqualPacket(other, "udp.sport"))
	g.Expect(Build(ip4, syn)).NotTo(EqualPacket(a))
	g.Expect(Diff(Build(ip4, syn), Build(ip4, UDP(1, 2)))).To(gomega.ContainSubstring("- tcp sport=40000"))
	_, err := EqualPacket(a).Match("text")
	g.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("not string")))
}

// anyPacket draws a well-formed packet of any kind.
func anyPacket(t *rapid.T) []byte {
	one := func(label string, of ...Part) Part { return rapid.SampledFrom(of).Draw(t, label) }
	var parts []Part
	if rapid.Bool().Draw(t, "frame") {
		parts = append(parts, eth)
	}
	if rapid.Bool().Draw(t, "tunnel") {
		parts = append(parts, one("outer", out4, out6), Outer(rapid.Uint16().Draw(t, "entropy")),
			one("option", Forward(pod4+":8080"), Forward("["+pod6+"]:53").Flags(3), Return()))
	}
	v6 := rapid.Bool().Draw(t, "v6")
	ip := IP(client4, front4).ID(rapid.Uint16().Draw(t, "id"))
	if v6 {
		ip = IP(client6, front6).FlowLabel(rapid.Uint32Max(1<<20-1).Draw(t, "flow"))
	}
	ip = ip.TTL(rapid.Uint8().Draw(t, "ttl")).DSCP(rapid.Uint8Max(63).Draw(t, "dscp")).ECN(rapid.Uint8Max(3).Draw(t, "ecn"))
	parts = append(parts, ip)
	if v6 {
		extensions := []Part{HopByHop(1), HopByHop(3), DestOptions(2), Routing(0), Routing(2, pod6, nodeA6), Fragment(0, false, 5)}
		parts = append(parts, rapid.SliceOfN(rapid.SampledFrom(extensions), 0, 4).Draw(t, "extensions")...)
	}
	return Build(append(parts,
		one("transport", TCP(1, 2).Seq(9).Flags("FPAU"), syn.Option(3, 7).Option(4), UDP(3, 4), Echo(5, 6), EchoReply(7, 8)),
		Raw(rapid.SliceOfN(rapid.Byte(), 1, 70).Draw(t, "payload")))...)
}

func TestBuiltPacketsVerify(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if p := anyPacket(t); Verify(p) != nil {
			t.Fatalf("%v\n%s", Verify(p), Describe(p))
		}
	})
}

// The package's invariant: no bit is without a field, so Diff with exceptions misses none either.
func TestEveryBitShowsInAField(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyPacket(t)
		q := slices.Clone(p)
		bit := rapid.IntRange(0, 8*len(p)-1).Draw(t, "bit")
		q[bit/8] ^= 1 << (bit % 8)
		if Diff(p, q, "no.such") == "" {
			t.Fatalf("bit %d of byte %d shows in no field of\n%s", bit%8, bit/8, Describe(p))
		}
	})
}

// Verify, Describe and Diff never panic, whatever a program wrote.
func TestAnyBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyPacket(t)
		q := slices.Clone(p[:rapid.IntRange(0, len(p)).Draw(t, "cut")])
		for range rapid.IntRange(0, 8).Draw(t, "damage") {
			if len(q) > 0 {
				q[rapid.IntRange(0, len(q)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
			}
		}
		_, _, _ = Verify(q), Describe(q), Diff(p, q)
	})
}
