// SPDX-License-Identifier: Apache-2.0

package packettest

import (
	"github.com/cilium/ebpf"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/packet"
	"github.com/beep-lb/beep/harness/progrun"
	"github.com/beep-lb/beep/src/datapath/maps"
)

// What each packet on its way counts as is in every sentence; these are the flows, and the ways by name.
var _ = Describe("What TRAFFIC counts", Label("bpf"), func() {
	// counted is what is not zero.
	counted := func(n *node) (traffic maps.Traffic, ways map[string]uint64) {
		GinkgoHelper()
		traffic, err := n.maps.Traffic()
		Expect(err).NotTo(HaveOccurred())
		ways = map[string]uint64{}
		for _, row := range traffic.Rows {
			if row.Packets > 0 {
				ways[row.From+">"+row.To] = row.Packets
				Expect(row.Bytes).To(BeNumerically(">=", 60*row.Packets), row.From)
			}
		}
		return traffic, ways
	}
	It("is new flows alone by default, and the packets that a program before it asks for", func() {
		n := newNode(func(spec *ebpf.CollectionSpec) {
			Expect(spec.Variables["cfg_count_packets"].Set(uint8(0))).To(Succeed())
		})
		w := newWalk("udp", 4, 4)
		n.front(w.frontName(), false, w.thereAt())
		request := progrun.In{Packet: frame(packet.IP(w.client, w.front), w.request, packet.Payload(50)), Ifindex: n.eth0}
		for range 3 {
			n.runOn(ingress, request)
		}
		traffic, ways := counted(n)
		Expect(ways).To(BeEmpty())
		Expect(traffic.NewFlows).To(BeEquivalentTo(1))
		request.Cb[0] = 0x62656570 // COUNT_ASKED of bpf/lib/counters.h
		n.runOn(ingress, request)
		_, ways = counted(n)
		Expect(ways).To(Equal(map[string]uint64{"client>tunnel": 1}))
	})
	for _, w := range walks() {
		It("is a new flow once, and the packets of both directions: "+w.String(), func() {
			payload := packet.Payload(50)
			n := newNode()
			n.front(w.frontName(), false, w.thereAt())
			n.allow(w.peer)
			n.target(w.hereName())
			for range 3 {
				n.run(ingress, frame(packet.IP(w.client, w.front), w.request, payload))
			}
			n.run(ingress, w.back(w.peer, w.self, packet.IP(w.front, w.client).TTL(63), w.reply, payload))
			traffic, ways := counted(n)
			Expect(ways).To(Equal(map[string]uint64{"client>tunnel": 3, "peer>client": 1}))
			Expect(traffic.NewFlows).To(BeEquivalentTo(1))
			Expect(traffic.NewFlowsHere).To(BeZero())

			forward := func(front string) {
				n.run(ingress, w.forward(w.peer, w.self, at(w.here, podPort), packet.IP(w.client, front), w.request, payload))
			}
			forward(w.frontOfPeer())
			forward(w.frontOfPeer())
			n.run(egress, frame(packet.IP(w.here, w.client).TTL(63), w.fromPod, payload))
			traffic, ways = counted(n)
			Expect(ways).To(Equal(map[string]uint64{"client>tunnel": 3, "peer>client": 1, "peer>endpoint": 2, "endpoint>redirect": 1}))
			Expect(traffic.NewFlowsHere).To(BeEquivalentTo(1))
			Expect(traffic.Remapped).To(BeZero())

			// The same client port by another front of the same pod.
			forward(w.front)
			traffic, _ = counted(n)
			Expect(traffic.NewFlowsHere).To(BeEquivalentTo(2))
			Expect(traffic.Remapped).To(BeEquivalentTo(1))
		})
	}
})
