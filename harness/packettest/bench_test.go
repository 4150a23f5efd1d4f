// SPDX-License-Identifier: Apache-2.0

//go:build bench

package packettest

import (
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/cilium/ebpf"

	"github.com/beep-lb/beep/harness/packet"
	"github.com/beep-lb/beep/harness/progrun"
)

// Rounds and runs of a measurement: the machine is shared, so the best round is told beside the median.
const rounds, runs = 15, 5000

var _ = Describe("The time of one program run", Label("bench"), func() {
	measure := func(n *node, about string, prog *ebpf.Program, in []byte) {
		GinkgoHelper()
		var ns []float64
		for range rounds {
			timing, err := progrun.Inside(n.ns.Do).Bench(prog, progrun.In{Packet: in, Ifindex: n.eth0}, runs)
			Expect(err).NotTo(HaveOccurred())
			ns = append(ns, float64(timing.PerRun.Nanoseconds()))
		}
		slices.Sort(ns)
		fmt.Printf("%-44s best %4.0f ns, median %4.0f ns\n", about, ns[0], ns[rounds/2])
	}
	for _, w := range []walk{newWalk("udp", 4, 4), newWalk("udp", 6, 6)} {
		It("is printed: "+w.String(), func() {
			payload := packet.Payload(1300)
			a := newNode()
			measure(a, "a mark of ours (the clock's own cost)", a.egress, frame(packet.IP(w.client, w.front), packet.Echo(1, 1)))
			measure(a, "foreign TCP, in", a.ingress, frame(packet.IP(w.client, w.front), packet.TCP(1, 22)))
			measure(a, "foreign TCP, out", a.egress, frame(packet.IP(w.front, w.client), packet.TCP(22, 1)))
			a.front(w.frontName(), false, w.thereAt())
			request := frame(packet.IP(w.client, w.front), w.request, payload)
			reply := w.back(w.peer, w.self, packet.IP(w.front, w.client), w.reply, payload)
			a.run(ingress, request)
			a.run(ingress, reply)
			measure(a, "ingress node, client to tunnel (encap)", a.ingress, request)
			measure(a, "ingress node, tunnel to client", a.ingress, reply)
			b := newNode()
			b.allow(w.peer)
			b.target(w.hereName())
			request = w.forward(w.peer, w.self, at(w.here, podPort), packet.IP(w.client, w.frontOfPeer()), w.request, payload)
			reply = frame(packet.IP(w.here, w.client), w.fromPod, payload)
			b.run(ingress, request)
			b.run(egress, reply)
			measure(b, "backend node, tunnel to pod (decap, DNAT)", b.ingress, request)
			measure(b, "backend node, pod to tunnel", b.egress, reply)
			c := newNode()
			c.front(w.frontName(), false, at(w.here, podPort))
			request = frame(packet.IP(w.client, w.front), w.request, payload)
			c.run(ingress, request)
			c.run(egress, reply)
			measure(c, "one node, client to pod (DNAT)", c.ingress, request)
			measure(c, "one node, pod to client", c.egress, reply)
		})
	}
})
