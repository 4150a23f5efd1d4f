// SPDX-License-Identifier: Apache-2.0

package packettest

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/packet"
	"github.com/beep-lb/beep/harness/progrun"
)

var _ = Describe("Traffic class across the tunnel", Label("bpf"), func() {
	for _, w := range walks() {
		if w.proto == "tcp" {
			continue
		}
		It("DSCP and ECN are copied outside: "+w.String(), func() {
			for ecn := range uint8(4) {
				n := newNode()
				n.front(w.frontName(), false, w.thereAt())
				out := n.run(ingress, frame(packet.IP(w.client, w.front).DSCP(46).ECN(ecn), w.request))
				Expect(out.Packet).To(packet.EqualPacket(frame(packet.IP(w.self, w.peer).DF().DSCP(46).ECN(ecn),
					packet.Outer(tunnelPort), packet.Forward(at(w.there, podPort)),
					packet.IP(w.client, w.front).DSCP(46).ECN(ecn), w.request), "udp.sport"))
			}
		})
		// RFC 6040, figure 4: rows are inner, columns outer Not-ECT, ECT(1), ECT(0), CE; -1 is a drop.
		result := [4][4]int{
			0: {0, 0, 0, -1},
			1: {1, 1, 1, 3},
			2: {2, 1, 2, 3},
			3: {3, 3, 3, 3},
		}
		It("ECN is combined inside, DSCP inside stays: "+w.String(), func() {
			for in, row := range result {
				for out, want := range row {
					n := newNode()
					n.allow(w.peer)
					n.target(w.hereName())
					got := n.run(ingress, frame(packet.IP(w.peer, w.self).DF().DSCP(10).ECN(uint8(out)),
						packet.Outer(tunnelPort), packet.Forward(at(w.here, podPort)),
						packet.IP(w.client, w.frontOfPeer()).DSCP(46).ECN(uint8(in)), w.request))
					about := fmt.Sprintf("inner %d, outer %d", in, out)
					if want < 0 {
						Expect(got.Verdict).To(Equal(progrun.Shot), about)
						continue
					}
					Expect(got.Packet).To(packet.EqualPacket(frame(
						packet.IP(w.client, w.here).DSCP(46).ECN(uint8(want)), w.atPod)), about)
					Expect(packet.Verify(got.Packet)).To(Succeed(), about)
				}
			}
		})
	}
})

var _ = Describe("Checksums", Label("bpf"), func() {
	It("a UDP checksum that is absent stays absent", func() {
		n := newNode()
		n.front("udp/"+at(self, 53), false, at(here, podPort))
		out := n.run(ingress, frame(packet.IP(client, self), packet.UDP(clientPort, 53).NoChecksum(), packet.Payload(9)))
		Expect(out.Packet).To(packet.EqualPacket(frame(packet.IP(client, here), packet.UDP(clientPort, podPort).NoChecksum(), packet.Payload(9))))
	})
	for _, w := range walks() {
		It("a wrong checksum stays wrong: "+w.String(), func() {
			n := newNode()
			n.allow(w.peer)
			n.target(w.hereName())
			wrong := packet.Part(packet.TCP(clientPort, frontPort).WrongChecksum())
			if w.proto == "udp" {
				wrong = packet.UDP(clientPort, frontPort).WrongChecksum()
			}
			out := n.run(ingress, w.forward(w.peer, w.self, at(w.here, podPort), packet.IP(w.client, w.frontOfPeer()), wrong, packet.Payload(31)))
			Expect(out.Verdict).To(Equal(progrun.Pass))
			Expect(packet.Verify(out.Packet)).NotTo(Succeed())
		})
	}
	It("every payload, odd and even, comes out with the right one", func() {
		w := newWalk("udp", 6, 6)
		n := newNode()
		n.allow(w.peer)
		n.target(w.hereName())
		for size := range 64 {
			out := n.run(ingress, w.forward(w.peer, w.self, at(w.here, podPort),
				packet.IP(w.client, w.frontOfPeer()), w.request, packet.Payload(size)))
			Expect(packet.Verify(out.Packet)).To(Succeed())
		}
	})
})

var _ = Describe("What encapsulation writes, decapsulation reads", Label("bpf"), func() {
	for _, w := range walks() {
		It("the packet comes to the pod as if its node had been dialled: "+w.String(), func() {
			a := newNode()
			a.front(w.frontName(), false, w.thereAt())
			sent := a.run(ingress, frame(packet.IP(w.client, w.front).TTL(61).DSCP(12).ECN(2), w.first, packet.Payload(77)))
			Expect(sent.Verdict).To(Equal(progrun.Redirect))
			b := newNode()
			b.swap()
			b.allow(w.self)
			b.target(w.proto + "/" + at(w.there, podPort))
			got := b.run(ingress, sent.Packet)
			Expect(got.Verdict).To(Equal(progrun.Pass))
			want := packet.Part(packet.UDP(clientPort, podPort))
			if w.proto == "tcp" {
				want = packet.TCP(clientPort, podPort).Flags("S")
			}
			Expect(got.Packet).To(packet.EqualPacket(frame(packet.IP(w.client, w.there).TTL(61).DSCP(12).ECN(2), want, packet.Payload(77))))

			reply := b.run(egress, frame(packet.IP(w.there, w.client).TTL(62), w.fromPod, packet.Payload(33)))
			Expect(reply.Verdict).To(Equal(progrun.Redirect))
			a.allow(w.peer)
			back := a.run(ingress, reply.Packet)
			Expect(back.Verdict).To(Equal(progrun.Redirect))
			Expect(back.Packet).To(packet.EqualPacket(frame(packet.IP(w.front, w.client).TTL(62), w.reply, packet.Payload(33))))
		})
	}
})
