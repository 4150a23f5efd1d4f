// SPDX-License-Identifier: Apache-2.0

package packetfuzz

import (
	"bytes"
	"slices"

	"github.com/beep-lb/beep/harness/packet"
)

// found are packets of one family that were misread once; each kind of finding has one, written as people read it.
func found(f family) (seeds []input) {
	syn := func(port uint16) packet.Part { return packet.TCP(39000, port).Flags("S").MSS(1460) }
	inner := []packet.Part{ip(f.client, f.frontOfPeer), syn(portHere)}
	about := packet.Build(ip(f.self, f.client), packet.TCP(portHere, portEstablished))[:f.header()+8]
	behind := bytes.Repeat([]byte{0x55}, 24) // link-layer padding that is not zero
	add := func(at hook, frame []byte) { seeds = append(seeds, input{frame, nil, byte(at)}) }

	// A VNI that differs in its first byte only, and our own with something in the byte behind it.
	add(ingress, f.fromPeer(f.forward().VNI(0x30bee9), inner...))
	reserved := f.fromPeer(f.forward(), inner...)
	reserved[14+f.header()+8+7] = 0xff
	add(ingress, reserved)
	// A tunnel, and an inner packet, that lie behind the end of the outer packet.
	for _, length := range []int{8, 8 + 20, 8 + 40} {
		short := f.fromPeer(f.forward(), inner...)
		add(ingress, twist{twistLength, 0, 0, byte(14 + f.header() + length - len(short))}.apply(short))
	}
	// A quote whose checksum would be behind the end of the error, and one that is there itself.
	quoting := frame(ip(f.outside, f.self), packet.ICMP(3, 1), packet.Raw(about))
	add(ingress, slices.Concat(quoting, behind))
	empty := frame(ip(f.outside, f.self), packet.ICMP(3, 1))
	add(ingress, slices.Concat(empty, about))
	// An error about a front's packet that goes to somebody else.
	add(ingress, frame(ip(f.outside, f.here), packet.ICMP(3, 1), packet.Raw(about)))
	// TCP options that go on behind the end of the packet.
	add(ingress, slices.Concat(frame(ip(f.client, f.self), packet.TCP(39000, portThere).Flags("S").DataOffset(6)), []byte{2, 4, 5, 180}))
	// Geneve of ours without an option, whose payload begins like one.
	add(egress, frame(ip(f.here, f.peer), packet.Outer(tunnelPort), packet.Geneve(), packet.Raw([]byte{0xff, 0xbe, 0x81, 5})))
	// An error longer than the tunnel takes.
	add(ingress, frame(ip(f.outside, f.self), packet.ICMP(3, 1),
		packet.Raw(packet.Build(ip(f.self, f.client), packet.TCP(portThere, portEstablished+1), packet.Payload(1400)))))
	// Who must get no answer.
	for _, nobody := range []string{"0.0.0.0", "127.0.0.1", "224.0.0.1", "255.255.255.255", "::", "::1", "ff02::1"} {
		if from := addr(nobody); from.Is4() == f.self.Is4() {
			add(ingress, frame(ip(from, f.self), syn(portNone)))
		}
	}
	return append(seeds, f.mapped()...)
}

// mapped are IPv6 packets whose addresses are those of IPv4 machines.
func (f family) mapped() (seeds []input) {
	if f.self.Is4() {
		return nil
	}
	v4 := families[0]
	from, to := v4.client.As16(), v4.self.As16()
	plain := frame(ip(f.client, f.self), packet.TCP(portEstablished, portHere).Flags("R"))
	copy(plain[14+8:], from[:])
	copy(plain[14+24:], to[:])
	peer := v4.peer.As16()
	tunnel := f.fromPeer(f.forward(), ip(f.client, f.frontOfPeer), packet.TCP(39000, portHere).Flags("S"))
	copy(tunnel[14+8:], peer[:])
	return []input{{plain, nil, 0}, {tunnel, nil, 0}}
}

// header is the length of the family's plain IP header.
func (f family) header() int {
	if f.self.Is4() {
		return 20
	}
	return 40
}
