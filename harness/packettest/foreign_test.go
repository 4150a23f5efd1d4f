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

// passes completes a sentence about a packet that goes on unchanged.
func passes(about string, where hook, in []byte) sentence {
	return sentence{about: about + " passes unchanged", at: where, in: in, verdict: progrun.Pass, given: func(n *node) {
		web(n)
		n.front("udp/"+at6(53), false, at(there6, podPort)+"@"+peer)
		trusted(n)
	}}
}

func at6(port uint16) string { return at(self6, port) }

var _ = Describe("What is not ours", func() {
	chain := func(n int) []packet.Part {
		parts := []packet.Part{packet.IP(client6, self6)}
		for range n {
			parts = append(parts, packet.DestOptions(1))
		}
		return append(parts, packet.UDP(clientPort, 53), packet.Payload(8))
	}
	tell(
		passes("ARP", ingress, frame(packet.Raw(make([]byte, 28)))),
		passes("a VLAN frame", ingress, packet.Build(packet.Eth(packet.MAC1, packet.MAC2).Type(0x8100),
			packet.Raw(append([]byte{0, 5, 8, 0}, packet.Build(packet.IP(client, self), syn)...)))),
		passes("ping to the node", ingress, frame(packet.IP(client, self), packet.Echo(1, 1), packet.Payload(56))),
		passes("ping over IPv6", ingress, frame(packet.IP(client6, self6), packet.Echo(1, 1), packet.Payload(56))),
		passes("another port of the node", ingress, frame(packet.IP(client, self), packet.TCP(clientPort, 22).Flags("S"))),
		passes("the front's port of another protocol", ingress, frame(packet.IP(client, self), packet.UDP(clientPort, frontPort))),
		passes("the front's port of another address", ingress, frame(packet.IP(client, "192.0.2.9"), syn)),
		passes("a later fragment", ingress, frame(packet.IP(client, self).ID(7).Fragment(10, false).Proto(6), packet.Payload(64))),
		passes("an IPv4 header that says version 5", ingress, frame(packet.IP(client, self).Version(5), syn)),
		passes("an IPv4 header of 16 bytes", ingress, frame(packet.IP(client, self).IHL(4), syn)),
		passes("a TCP header of 16 bytes", ingress, frame(packet.IP(client, self), packet.TCP(clientPort, frontPort).DataOffset(4))),
		passes("an IP length beyond the packet", ingress, frame(packet.IP(client, self).Length(500), syn)),
		passes("a TCP header that lies in the padding", ingress, frame(packet.IP(client, self).Length(25), syn)),
		passes("an IPv6 routing header with segments left", ingress,
			frame(packet.IP(client6, self6), packet.Routing(1, self6), packet.UDP(clientPort, 53), packet.Payload(8))),
		passes("seven IPv6 extension headers", ingress, frame(chain(7)...)),
		passes("the tunnel port of another address", ingress,
			tunnel(peer, "192.0.2.9", packet.Forward(at(here, podPort)), inner...)),
		passes("Geneve with a VNI that differs in the first byte", ingress,
			tunnel(peer, self, packet.Forward(at(here, podPort)).VNI(0x30bee9), inner...)),
		passes("IPv6 with IPv4-mapped addresses", ingress, frame(packet.IP("::ffff:198.51.100.7", "::ffff:192.0.2.1"), syn)),
		passes("a TCP header that ends behind the packet", ingress, frame(packet.IP(client, self), packet.TCP(clientPort, frontPort).DataOffset(12))),
		passes("Geneve of our VNI without options that the host sends", egress,
			tunnel(self, peer, packet.Geneve(), packet.Raw([]byte{0xff, 0xbe, 0x81, 5, 0, 0, 0, 0}))),
		passes("Geneve with another VNI", ingress, tunnel(peer, self, packet.Forward(at(here, podPort)).VNI(5), inner...)),
		passes("Geneve with an option of another class", ingress,
			tunnel(peer, self, packet.Forward(at(here, podPort)).Class(0x0103), inner...)),
		passes("Geneve without options", ingress, tunnel(peer, self, packet.Geneve(), inner...)),
		passes("a datagram to the tunnel port that is no Geneve", ingress,
			frame(packet.IP(client, self), packet.UDP(1, packet.GenevePort), packet.Payload(4))),
		passes("what the host sends", egress, frame(packet.IP(self, client), packet.TCP(22, clientPort))),
		passes("what a pod sends for itself", egress, frame(packet.IP(here, client), packet.TCP(clientPort, 443).Flags("S"))),
		passes("Geneve of another VNI that the host sends", egress, tunnel(self, peer, packet.Forward(at(there, podPort)).VNI(5), inner...)),
		passes("a later fragment that leaves", egress, frame(packet.IP(here, client).ID(7).Fragment(10, false).Proto(6), packet.Payload(64))),
	)

	It("passes our own redirected packets where they leave, and takes the mark off", Label("bpf"), func() {
		n := newNode()
		in := tunnel(self, peer, packet.Forward(at(there, podPort)), inner...)
		out := n.runOn(egress, progrun.In{Packet: in, Ifindex: n.eth0, Mark: ours})
		Expect(out.Verdict).To(Equal(progrun.Pass))
		Expect(out.Packet).To(Equal(in))
		Expect(out.Mark).To(BeZero())
	})

	It("leaves a mark that is not ours alone", Label("bpf"), func() {
		n := newNode()
		out := n.runOn(egress, progrun.In{Packet: frame(packet.IP(self, client), packet.TCP(22, 1)), Ifindex: n.eth0, Mark: 7})
		Expect(out.Mark).To(BeEquivalentTo(7))
	})

	It("passes although every table is full", Label("bpf"), func() {
		n := newNode(func(spec *ebpf.CollectionSpec) {
			for _, table := range maps.FlowTables {
				spec.Maps[table].MaxEntries = 4
			}
		})
		web(n)
		for port := range uint16(300) {
			n.run(ingress, frame(packet.IP(client, self), packet.TCP(1+port, frontPort).Flags("S")))
		}
		Expect(n.run(ingress, frame(packet.IP(client, self), packet.TCP(clientPort, 22).Flags("S"))).Verdict).To(Equal(progrun.Pass))
		Expect(n.run(egress, frame(packet.IP(self, client), packet.TCP(22, clientPort).Flags("SA"))).Verdict).To(Equal(progrun.Pass))
	})
})

var _ = Describe("Header chains are walked, never guessed", func() {
	udp6 := func(parts ...packet.Part) []byte {
		all := append([]packet.Part{packet.IP(client6, self6)}, parts...)
		return frame(append(all, packet.UDP(clientPort, 53), packet.Payload(8))...)
	}
	at6pod := func(parts ...packet.Part) []byte {
		all := append([]packet.Part{packet.IP(client6, here6)}, parts...)
		return frame(append(all, packet.UDP(clientPort, podPort), packet.Payload(8))...)
	}
	for about, chain := range map[string][]packet.Part{
		"hop-by-hop options":                         {packet.HopByHop(1)},
		"long hop-by-hop options":                    {packet.HopByHop(20)},
		"destination options":                        {packet.DestOptions(2)},
		"a routing header that has ended":            {packet.Routing(0, client6)},
		"an atomic fragment":                         {packet.Fragment(0, false, 9)},
		"hop-by-hop, routing, fragment, destination": {packet.HopByHop(1), packet.Routing(0, client6), packet.Fragment(0, false, 9), packet.DestOptions(1)},
		"six headers":                                {packet.HopByHop(1), packet.DestOptions(1), packet.DestOptions(1), packet.DestOptions(1), packet.DestOptions(1), packet.DestOptions(1)},
	} {
		It("IPv6 with "+about+" reaches the pod", Label("bpf"), func() {
			n := newNode()
			n.front("udp/"+at6(53), false, at(here6, podPort))
			out := n.run(ingress, udp6(chain...))
			Expect(out.Verdict).To(Equal(progrun.Pass))
			Expect(out.Packet).To(packet.EqualPacket(at6pod(chain...)))
			Expect(packet.Verify(out.Packet)).To(Succeed())
		})
	}
	tell(sentence{
		about: "IPv4 options are stepped over",
		given: func(n *node) { n.front("udp/"+at(self, 53), false, at(here, podPort)) },
		in:    frame(packet.IP(client, self).Options(148, 4, 0, 0), packet.UDP(clientPort, 53), packet.Payload(8)),
		out:   frame(packet.IP(client, here).Options(148, 4, 0, 0), packet.UDP(clientPort, podPort), packet.Payload(8)),
		flows: []string{
			walk{proto: "udp"}.row("pending", "forward", at(client, clientPort), at(self, 53), at(here, podPort), clientPort, "", "paired"),
			walk{proto: "udp"}.row("pending", "reverse", at(here, podPort), at(client, clientPort), at(self, 53), clientPort, "", "paired"),
		},
		verdict: progrun.Pass,
	})
})
