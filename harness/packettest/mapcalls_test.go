// SPDX-License-Identifier: Apache-2.0

package packettest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/mapcalls"
	"github.com/beep-lb/beep/harness/packet"
)

// counting is a node whose programs count their calls for maps, and the calls of what is run.
func counting() (n *node, calls func(run func()) map[mapcalls.Call]uint64) {
	GinkgoHelper()
	var counter *mapcalls.Counter
	n = newNode(func(spec *ebpf.CollectionSpec) {
		var err error
		Expect(spec.Variables["cfg_count_packets"].Set(uint8(0))).To(Succeed()) // as beep has it by default
		counter, err = mapcalls.Count(spec)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(counter.Close)
	})
	return n, func(run func()) map[mapcalls.Call]uint64 {
		before, err := counter.Calls()
		Expect(err).NotTo(HaveOccurred())
		run()
		after, err := counter.Calls()
		Expect(err).NotTo(HaveOccurred())
		for call, count := range before {
			if after[call] -= count; after[call] == 0 {
				delete(after, call)
			}
		}
		return after
	}
}

// sum adds up the calls of one kind for maps whose name begins so, and lists them all for people.
func sum(calls map[mapcalls.Call]uint64, prefix, op string) (sum uint64, all string) {
	var lines []string
	for call, count := range calls {
		lines = append(lines, fmt.Sprintf("%d %s", count, call))
		if strings.HasPrefix(call.Map, prefix) && call.Op == op {
			sum += count
		}
	}
	slices.Sort(lines)
	return sum, strings.Join(lines, ", ")
}

var _ = Describe("A packet of a flow that is established", Label("bpf"), func() {
	for _, w := range []walk{newWalk("udp", 4, 4), newWalk("udp", 6, 6), newWalk("tcp", 4, 4), newWalk("tcp", 6, 6)} {
		It("reads one row of a flow, is counted nowhere, and no map gets or loses a row: "+w.String(), func() {
			// The first packet of a second writes the time, and reads the flow's other row for it: any but that one is meant.
			check := func(about string, of func(func()) map[mapcalls.Call]uint64, run func()) {
				GinkgoHelper()
				calls := of(run)
				for range 10 {
					if lookups, _ := sum(calls, "FLOW_", "lookup"); lookups == 1 {
						break
					}
					calls = of(run)
				}
				lookups, all := sum(calls, "FLOW_", "lookup")
				GinkgoWriter.Printf("%-40s %s\n", about, all)
				Expect(lookups).To(BeEquivalentTo(1), "%s: %s", about, all)
				counts, all := sum(calls, "TRAFFIC", "lookup")
				Expect(counts).To(BeZero(), "%s: %s", about, all)
				for _, op := range []string{"update", "delete"} {
					count, all := sum(calls, "", op)
					Expect(count).To(BeZero(), "%s: %s", about, all)
				}
			}
			payload := packet.Payload(64)
			// TCP proves itself by an acknowledgement of the pod's SYN-ACK, UDP by any answer.
			agreed, agreedByPod := w.reply, w.fromPod
			if w.proto == "tcp" {
				agreed, agreedByPod = packet.TCP(frontPort, clientPort).Flags("SA").Seq(1), packet.TCP(podPort, clientPort).Flags("SA").Seq(1)
				w.request = packet.TCP(clientPort, frontPort).Flags("A").Ack(2)
			}
			a, calls := counting()
			a.front(w.frontName(), false, w.thereAt())
			first := frame(packet.IP(w.client, w.front), w.first, payload)
			request := frame(packet.IP(w.client, w.front), w.request, payload)
			reply := w.back(w.peer, w.self, packet.IP(w.front, w.client), w.reply, payload)
			a.run(ingress, first)
			a.run(ingress, w.back(w.peer, w.self, packet.IP(w.front, w.client), agreed))
			a.run(ingress, request)
			check("ingress node, client to tunnel", calls, func() { a.run(ingress, request) })
			check("ingress node, tunnel to client", calls, func() { a.run(ingress, reply) })

			b, calls := counting()
			b.allow(w.peer)
			b.target(w.hereName())
			first = w.forward(w.peer, w.self, at(w.here, podPort), packet.IP(w.client, w.frontOfPeer()), w.first, payload)
			request = w.forward(w.peer, w.self, at(w.here, podPort), packet.IP(w.client, w.frontOfPeer()), w.request, payload)
			answer := frame(packet.IP(w.here, w.client), w.fromPod, payload)
			b.run(ingress, first)
			b.run(egress, frame(packet.IP(w.here, w.client), agreedByPod))
			b.run(ingress, request)
			check("backend node, tunnel to pod", calls, func() { b.run(ingress, request) })
			check("backend node, pod to tunnel", calls, func() { b.run(egress, answer) })
		})
	}
})
