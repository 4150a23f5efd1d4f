// SPDX-License-Identifier: Apache-2.0

package packettest

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/packet"
	"github.com/beep-lb/beep/harness/progrun"
)

// datagram is a UDP datagram in two fragments, between addresses of one family.
type datagram struct{ first, later []packet.Part }

func fragments(from, to string, sport, dport uint16) datagram {
	whole := packet.Build(packet.IP(from, to), packet.UDP(sport, dport), packet.Payload(72))
	six := whole[0]>>4 == 6
	headers := 20
	if six {
		headers = 40
	}
	l4 := whole[headers:]
	cut := func(offset uint16, more bool, bytes []byte) []packet.Part {
		if six {
			return []packet.Part{packet.IP(from, to), packet.Fragment(offset, more, 99).Next(17), packet.Raw(bytes)}
		}
		return []packet.Part{packet.IP(from, to).ID(99).Fragment(offset, more).Proto(17), packet.Raw(bytes)}
	}
	return datagram{first: cut(0, true, l4[:48]), later: cut(6, false, l4[48:])}
}

var _ = Describe("Fragments", Label("bpf"), func() {
	for _, w := range walks() {
		if w.proto == "tcp" {
			continue
		}
		request, atPod := fragments(w.client, w.front, clientPort, frontPort), fragments(w.client, w.here, clientPort, podPort)
		fromPod, reply := fragments(w.here, w.client, podPort, clientPort), fragments(w.front, w.client, frontPort, clientPort)

		It("of a datagram all reach a pod here, and its answer's the client: "+w.String(), func() {
			n := newNode()
			n.front(w.frontName(), false, at(w.here, podPort))
			out := n.run(ingress, frame(request.first...))
			Expect(out.Verdict).To(Equal(progrun.Pass))
			Expect(out.Packet).To(packet.EqualPacket(frame(atPod.first...)))
			Expect(n.run(ingress, frame(request.later...)).Packet).To(packet.EqualPacket(frame(atPod.later...)))
			Expect(n.run(egress, frame(fromPod.first...)).Packet).To(packet.EqualPacket(frame(reply.first...)))
			Expect(n.run(egress, frame(fromPod.later...)).Packet).To(packet.EqualPacket(frame(reply.later...)))
		})
		It("travel through the tunnel, both ways: "+w.String(), func() {
			a := newNode()
			a.front(w.frontName(), false, w.thereAt())
			for _, parts := range [][]packet.Part{request.first, request.later} {
				out := a.run(ingress, frame(parts...))
				Expect(out.Verdict).To(Equal(progrun.Redirect))
				Expect(out.Packet).To(packet.EqualPacket(w.forward(w.self, w.peer, at(w.there, podPort), parts...), "udp.sport"))
			}
			for _, parts := range [][]packet.Part{reply.first, reply.later} {
				out := a.run(ingress, w.back(w.peer, w.self, parts...))
				Expect(out.Verdict).To(Equal(progrun.Redirect))
				Expect(out.Packet).To(packet.EqualPacket(frame(parts...)))
			}
			Expect(a.drops()).To(BeEmpty())

			b := newNode()
			b.allow(w.peer)
			b.target(w.hereName())
			peers := fragments(w.client, w.frontOfPeer(), clientPort, frontPort)
			Expect(b.run(ingress, w.forward(w.peer, w.self, at(w.here, podPort), peers.first...)).Packet).To(packet.EqualPacket(frame(atPod.first...)))
			Expect(b.run(ingress, w.forward(w.peer, w.self, at(w.here, podPort), peers.later...)).Packet).To(packet.EqualPacket(frame(atPod.later...)))
			answer := fragments(w.frontOfPeer(), w.client, frontPort, clientPort)
			Expect(b.run(egress, frame(fromPod.first...)).Packet).To(packet.EqualPacket(w.back(w.self, w.peer, answer.first...)))
			Expect(b.run(egress, frame(fromPod.later...)).Packet).To(packet.EqualPacket(w.back(w.self, w.peer, answer.later...)))
			Expect(b.drops()).To(BeEmpty())
		})
		It("whose first one was not seen are left to the host outside, and dropped in a tunnel: "+w.String(), func() {
			n := newNode()
			n.front(w.frontName(), false, w.thereAt())
			n.target(w.hereName())
			Expect(n.run(ingress, frame(request.later...)).Verdict).To(Equal(progrun.Pass))
			Expect(n.run(egress, frame(fromPod.later...)).Verdict).To(Equal(progrun.Pass))
			Expect(n.drops()).To(BeEmpty())
			Expect(n.run(ingress, w.forward(w.peer, w.self, at(w.here, podPort), request.later...)).Verdict).To(Equal(progrun.Shot))
			Expect(n.run(ingress, w.back(w.peer, w.self, reply.later...)).Verdict).To(Equal(progrun.Shot))
			Expect(n.drops()).To(Equal(map[string]uint64{"fragment-orphan ingress": 2}))
		})
		It("of the host's own datagrams pass: "+w.String(), func() {
			n := newNode()
			n.front(w.frontName(), false, w.thereAt())
			other := fragments(w.client, w.front, clientPort, 5353)
			for _, parts := range [][]packet.Part{other.first, other.later} {
				in := frame(parts...)
				out := n.run(ingress, in)
				Expect(out.Verdict).To(Equal(progrun.Pass))
				Expect(out.Packet).To(Equal(in))
			}
		})
	}

	It("that look like ports are never read", func() {
		n := newNode()
		n.front("udp/"+at(self, frontPort), false, at(here, podPort))
		in := frame(packet.IP(client, self).ID(1).Fragment(3, false).Proto(17), packet.Raw([]byte{0x9c, 0x40, 0, 80, 0, 8, 0, 0}))
		out := n.run(ingress, in)
		Expect(out.Verdict).To(Equal(progrun.Pass))
		Expect(out.Packet).To(Equal(in))
		Expect(n.flows()).To(BeEmpty())
	})

	It("too long for the tunnel are cut again", func() {
		n := newNode()
		n.front("udp/"+at(self, frontPort), false, remote)
		long := packet.Build(packet.IP(client, self).ID(5).Fragment(0, true), packet.UDP(clientPort, frontPort).Length(4000), packet.Payload(1472))
		out := n.run(ingress, ethernet(packet.MAC1, packet.MAC2, long))
		Expect(out.Verdict).To(Equal(progrun.Redirect))
		Expect(out.Mark).To(BeEquivalentTo(piece | 1))
		tail := packet.Build(packet.IP(client, self).ID(5).Fragment(185, false).Proto(17), packet.Payload(1480))
		out = n.run(ingress, ethernet(packet.MAC1, packet.MAC2, tail))
		Expect(out.Mark).To(BeEquivalentTo(piece | 1))
		got := n.runOn(egress, progrun.In{Packet: ethernet(packet.MAC1, packet.MAC2, tail), Ifindex: n.eth0, Mark: piece})
		want := packet.Build(packet.IP(client, self).ID(5).Fragment(185, true).Proto(17), packet.Payload(1416))
		Expect(got.Packet[14+60:]).To(Equal(want))
		Expect(n.drops()).To(BeEmpty())
	})
})
