// SPDX-License-Identifier: Apache-2.0

package packettest

import (
	"errors"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/packet"
	"github.com/beep-lb/beep/harness/progrun"
	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/src/datapath/bpfobj"
	"github.com/beep-lb/beep/src/datapath/load"
)

// A card that hands the sum of a packet over with it (CHECKSUM_COMPLETE) has it judged by the stack that delivers to the pod: what
// the programs change must be in that sum. The kernel's test run compares it with the packet.
var _ = Describe("What a device has summed up", Label("bpf"), func() {
	summed := func(n *node, at hook, in []byte) []byte {
		GinkgoHelper()
		prog := n.ingress
		if at == egress {
			prog = n.egress
		}
		out, err := progrun.Inside(n.ns.Do).Run(prog, progrun.In{Packet: in, Ifindex: n.eth0, Summed: true})
		if errors.Is(err, unix.EINVAL) {
			require.That(GinkgoT(), "test runs of summed packets (Linux 6.11)", err)
		}
		Expect(err).NotTo(HaveOccurred())
		Expect(out.Verdict).To(Equal(progrun.Pass))
		Expect(packet.Verify(out.Packet)).To(Succeed())
		return out.Packet
	}
	// An older kernel cannot keep the sum of an IPv6 packet right, whatever it is told.
	node := func(w walk) *node {
		GinkgoHelper()
		knows, err := load.KnowsCsumIPv6()
		Expect(err).NotTo(HaveOccurred())
		if w.inner == 6 && knows == 0 {
			Skip("this kernel's bpf_l4_csum_replace has no BPF_F_IPV6")
		}
		return newNode(func(spec *ebpf.CollectionSpec) {
			Expect(spec.Variables[bpfobj.BeepVarCfgCsumIpv6].Set(knows)).To(Succeed())
		})
	}
	payload := packet.Payload(37)
	for _, w := range walks() {
		if w.inner == w.outer {
			It("is right after translation on one node: "+w.String(), func() {
				n := node(w)
				n.front(w.frontName(), false, at(w.here, podPort))
				n.run(ingress, frame(packet.IP(w.client, w.front), w.first))
				got := summed(n, ingress, frame(packet.IP(w.client, w.front), w.request, payload))
				Expect(got).To(packet.EqualPacket(frame(packet.IP(w.client, w.here), w.atPod, payload)))
				got = summed(n, egress, frame(packet.IP(w.here, w.client), w.fromPod, payload))
				Expect(got).To(packet.EqualPacket(frame(packet.IP(w.front, w.client), w.reply, payload)))
			})
		}
		It("is right after the tunnel and translation: "+w.String(), func() {
			n := node(w)
			n.allow(w.peer)
			n.target(w.hereName())
			into := func(parts ...packet.Part) []byte {
				return w.forward(w.peer, w.self, at(w.here, podPort), append([]packet.Part{packet.IP(w.client, w.frontOfPeer())}, parts...)...)
			}
			n.run(ingress, into(w.first))
			got := summed(n, ingress, into(w.request, payload))
			Expect(got).To(packet.EqualPacket(frame(packet.IP(w.client, w.here), w.atPod, payload)))
		})
	}
})
