// SPDX-License-Identifier: Apache-2.0

package packettest

import (
	"github.com/cilium/ebpf"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/packet"
	"github.com/beep-lb/beep/harness/progrun"
)

// segment marks a copy for the egress program (MARK_SEGMENT in bpf/lib/config.h).
const segment = 0x62656600

// handover is a node whose uplinks give packets to their receiver as the kernel has them.
func handover(spec *ebpf.CollectionSpec) {
	Expect(spec.Variables["cfg_handover"].Set(uint8(1))).To(Succeed())
}

var _ = Describe("Where an uplink hands packets over as they are", Label("bpf"), func() {
	for _, w := range walks() {
		It("the tunnel's bytes are the same, both ways: "+w.String(), func() {
			n := newNode(handover)
			n.front(w.frontName(), false, w.thereAt())
			n.target(w.hereName())
			payload := packet.Payload(101)
			out := n.run(ingress, frame(packet.IP(w.client, w.front), w.first, payload))
			Expect(out.Verdict).To(Equal(progrun.Redirect))
			Expect(out.Packet).To(packet.EqualPacket(
				w.forward(w.self, w.peer, at(w.there, podPort), packet.IP(w.client, w.front), w.first, payload), "udp.sport"))

			n.run(ingress, w.forward(w.peer, w.self, at(w.here, podPort), packet.IP(w.client, w.frontOfPeer()), w.request))
			out = n.run(egress, frame(packet.IP(w.here, w.client), w.fromPod, payload))
			Expect(out.Verdict).To(Equal(progrun.Redirect))
			Expect(out.Packet).To(packet.EqualPacket(
				w.back(w.self, w.peer, packet.IP(w.frontOfPeer(), w.client), w.reply, payload), "udp.sport"))
		})
	}
})

// burst is a UDP GSO packet of datagrams whose checksums are finished; a test run knows no other. Nor are its copies
// sent there (EBADMSG, as it has no GSO type): that they are is for rig mtu to show, what becomes of one is here.
type burst struct {
	walk
	ip      packet.IPPacket
	ports   packet.Part
	sizes   []int // of payload in bytes; all but the last are the same
	payload []byte
}

func (w walk) burst(ip packet.IPPacket, ports packet.Part, sizes ...int) burst {
	total := 0
	for _, size := range sizes {
		total += size
	}
	headers := map[int]int{4: 28, 6: 48}[w.inner]
	return burst{w, ip, ports, sizes, w.fill(ip, ports, headers+total)[headers:]}
}

// in is the packet as a program gets it, with a mark.
func (b burst) in(n *node, mark uint32) progrun.In {
	return progrun.In{Packet: ethernet(packet.MAC1, packet.MAC2, packet.Build(b.ip, b.ports, packet.Raw(b.payload))),
		Ifindex: n.eth0, Mark: mark, GSOSize: uint32(b.sizes[0]), GSOSegs: uint32(len(b.sizes))}
}

// datagram is number i of the burst, with other ports and addresses if those are translated.
func (b burst) datagram(i int, ip packet.IPPacket, ports packet.Part) []packet.Part {
	at := i * b.sizes[0]
	return []packet.Part{ip.ID(uint16(700 + i)), ports, packet.Raw(b.payload[at : at+b.sizes[i]])}
}

var _ = Describe("A UDP GSO packet that nobody behind the tunnel could cut up", Label("bpf"), func() {
	for _, w := range walks() {
		if w.proto != "udp" {
			continue
		}
		It("becomes datagrams on its way to a pod elsewhere: "+w.String(), func() {
			n := newNode()
			n.front(w.frontName(), false, w.thereAt())
			b := w.burst(packet.IP(w.client, w.front).DF().ID(700), w.request, 1001, 1001, 503)
			n.run(ingress, frame(packet.IP(w.client, w.front), w.first))
			for i := range b.sizes {
				out := n.runOn(egress, b.in(n, segment|uint32(i)))
				Expect(out.Verdict).To(Equal(progrun.Redirect))
				Expect(out.Packet).To(packet.EqualPacket(w.forward(w.self, w.peer, at(w.there, podPort),
					b.datagram(i, packet.IP(w.client, w.front).DF(), w.request)...), "udp.sport"))
				Expect(packet.Verify(out.Packet)).To(Succeed())
				expectMark(out)
			}
			Expect(n.drops()).To(BeEmpty())
		})
		It("becomes datagrams on its way back to the client's node: "+w.String(), func() {
			n := newNode()
			n.allow(w.peer)
			n.target(w.hereName())
			n.run(ingress, w.forward(w.peer, w.self, at(w.here, podPort), packet.IP(w.client, w.frontOfPeer()), w.request))
			b := w.burst(packet.IP(w.here, w.client).DF().ID(700), w.fromPod, 1200, 1200)
			for i := range b.sizes {
				out := n.runOn(egress, b.in(n, segment|uint32(i)))
				Expect(out.Verdict).To(Equal(progrun.Redirect))
				Expect(out.Packet).To(packet.EqualPacket(w.back(w.self, w.peer,
					b.datagram(i, packet.IP(w.frontOfPeer(), w.client).DF(), w.reply)...), "udp.sport"))
				Expect(packet.Verify(out.Packet)).To(Succeed())
			}
			Expect(n.drops()).To(BeEmpty())
		})
	}
	It("is refused like one packet where its datagrams do not fit", func() {
		n := newNode()
		w := newWalk("udp", 4, 4)
		n.front(w.frontName(), false, w.thereAt())
		b := w.burst(packet.IP(w.client, w.front).DF().ID(700), w.request, 1413, 1413)
		out := n.runOn(ingress, b.in(n, 0))
		Expect(out.Verdict).To(Equal(progrun.Redirect))
		expectMark(out)
		Expect(n.drops()).To(Equal(map[string]uint64{"too-big ingress": 1}))
	})
	It("becomes datagrams that become pieces, where they do not fit and DF is clear", func() {
		n := newNode()
		w := newWalk("udp", 4, 4)
		n.front(w.frontName(), false, w.thereAt())
		b := w.burst(packet.IP(w.client, w.front).ID(700), w.request, 1413, 1413)
		n.run(ingress, frame(packet.IP(w.client, w.front), w.first))
		Expect(n.runOn(egress, b.in(n, segment|1)).Mark).To(BeEquivalentTo(piece|1), "one piece went before")
		Expect(n.drops()).To(BeEmpty())
	})
	It("a copy that stands for no datagram of it is dropped and counted", func() {
		n := newNode()
		w := newWalk("udp", 4, 4)
		n.front(w.frontName(), false, w.thereAt())
		b := w.burst(packet.IP(w.client, w.front).DF().ID(700), w.request, 1000, 1000)
		n.run(ingress, frame(packet.IP(w.client, w.front), w.first))
		Expect(n.runOn(egress, b.in(n, segment|2)).Verdict).To(Equal(progrun.Shot))
		Expect(n.drops()).To(Equal(map[string]uint64{"kernel-refused egress": 1}))
	})
})
