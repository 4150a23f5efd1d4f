// SPDX-License-Identifier: Apache-2.0

package packettest

import (
	"net/netip"

	"github.com/cilium/ebpf"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/packet"
	"github.com/beep-lb/beep/harness/progrun"
	"github.com/beep-lb/beep/src/datapath/bpfobj"
	"github.com/beep-lb/beep/src/datapath/maps"
)

var (
	syn      = packet.TCP(clientPort, frontPort).Flags("S")
	toFront  = frame(packet.IP(client, self), syn)
	remote   = at(there, podPort) + "@" + peer
	remote6  = at(there, podPort) + "@" + peer6
	inner    = []packet.Part{packet.IP(client, peer), syn}
	fromPeer = tunnel(peer, self, packet.Forward(at(here, podPort)), inner...)
	returned = tunnel(peer, self, packet.Return(), packet.IP(self, client), packet.TCP(frontPort, clientPort))
)

// trusted is a node that takes the peer's tunnels to its pod.
func trusted(n *node) {
	n.allow(peer)
	n.target("tcp/"+at(here, podPort), "udp/"+at(here, podPort))
}

// web is a node with one front, whose endpoint is on the peer.
func web(n *node) { n.front("tcp/"+at(self, frontPort), false, remote) }

// dropped completes a sentence about a counted drop.
func dropped(about, reason string, at hook, in []byte, given func(*node)) sentence {
	return sentence{about: about, given: given, at: at, in: in, verdict: progrun.Shot, reason: reason}
}

var _ = Describe("Every drop has its reason", func() {
	noSpace := func(spec *ebpf.CollectionSpec) {
		// An LRU map always makes room; a plain one of a single row does not.
		pending := spec.Maps["FLOW_PENDING"]
		pending.Type, pending.MaxEntries = ebpf.Hash, 1
	}
	fillPending := func(n *node) {
		n.front("udp/"+at(self, 53), false, remote)
		n.run(ingress, frame(packet.IP(client, self), packet.UDP(1, 53)))
	}
	full := dropped("a new flow for which no row can be made", "flow-insert", ingress, toFront,
		func(n *node) { web(n); fillPending(n) })
	full.tweak = noSpace
	full.flows = []string{walk{proto: "udp"}.row("pending", "forward", at(client, 1), at(self, 53), at(there, podPort), 1, peer, "")}

	gso := dropped("a GSO packet that the kernel cannot encapsulate", "kernel-refused", ingress,
		frame(packet.IP(client, self), packet.TCP(clientPort, frontPort), packet.Payload(2000)), web)
	gso.gso = 1000
	gso.flows = []string{walk{proto: "tcp"}.row("pending", "forward", at(client, clientPort), at(self, frontPort), at(there, podPort), clientPort, peer, "")}

	row := gso.flows
	keeps := func(s sentence) sentence { s.flows = row; return s }
	tell(
		dropped("a new flow through a front without endpoints", "no-endpoint", ingress, toFront,
			func(n *node) { n.front("tcp/"+at(self, frontPort), false) }),
		dropped("a front whose endpoint row is missing", "front-incomplete", ingress, toFront, func(n *node) {
			web(n)
			Expect(n.maps.DeleteEndpoint(maps.EndpointKey{Front: 1, Generation: 1})).To(Succeed())
		}),
		dropped("a front whose ring block is missing", "front-incomplete", ingress, toFront, func(n *node) {
			n.front("tcp/"+at(self, frontPort), false, remote, at("10.42.1.6", podPort)+"@"+peer)
			blocks, err := n.maps.RingBlocks()
			Expect(err).NotTo(HaveOccurred())
			for key := range blocks {
				Expect(n.maps.DeleteRingBlock(key)).To(Succeed())
			}
		}),
		dropped("a later fragment in a tunnel, whose first one was not seen", "fragment-orphan", ingress,
			tunnel(peer, self, packet.Forward(at(here, podPort)), packet.IP(client, peer).ID(9).Fragment(4, false).Proto(17), packet.Payload(64)),
			trusted),
		dropped("a client in none of the front's source ranges", "source-denied", ingress, toFront, func(n *node) {
			web(n)
			n.sources("tcp/"+at(self, frontPort), "198.51.100.0/30", "203.0.113.0/24")
		}),
		full,
		keeps(dropped("a peer of a family that this node has no underlay address of", "no-underlay", ingress, toFront, func(n *node) {
			n.front("tcp/"+at(self, frontPort), false, remote6)
			Expect(n.maps.SetConfig(maps.Config{Underlay4: netip.MustParseAddr(self), ABI: maps.ABI})).To(Succeed())
		})).via(peer6),
		keeps(dropped("a peer that no route leads to", "no-route", ingress, toFront, func(n *node) {
			n.front("tcp/"+at(self, frontPort), false, at(there, podPort)+"@203.0.113.9")
			n.unroute("0.0.0.0/0")
		})).via("203.0.113.9"),
		keeps(dropped("forwarding is off in the kernel", "forwarding-off", ingress, toFront, func(n *node) {
			web(n)
			Expect(n.ns.Sysctl("net.ipv4.ip_forward", "0")).To(Succeed())
		})),
		gso,
		dropped("a tunnel from a stranger", "unknown-peer", ingress, fromPeer,
			func(n *node) { n.target("tcp/" + at(here, podPort)) }),
		dropped("a tunnel from this node's own address", "unknown-peer", ingress,
			tunnel(self, self, packet.Forward(at(here, podPort)), inner...), trusted),
		dropped("a returned packet from a stranger", "unknown-peer", ingress, returned, nil),
		dropped("an endpoint on a node that is no peer", "unknown-peer", ingress, toFront, func(n *node) {
			web(n)
			Expect(n.maps.DeletePeer(netip.MustParseAddr(peer))).To(Succeed())
		}),
		dropped("a tunnel to a socket that is no pod here", "unknown-target", ingress, fromPeer,
			func(n *node) { n.allow(peer); n.target("udp/"+at(here, podPort), "tcp/"+at(here, 9090)) }),
		dropped("a tunnel whose target is of another family", "unknown-target", ingress,
			tunnel(peer, self, packet.Forward(at(here6, podPort)), inner...),
			func(n *node) { n.allow(peer); n.target("tcp/" + at(here6, podPort)) }),
		dropped("an ICMP error in a forward tunnel about no flow", "no-flow", ingress,
			tunnel(peer, self, packet.Forward(at(here, podPort)), packet.IP("203.0.113.1", peer), packet.ICMP(3, 4).Rest(1400),
				packet.Raw(packet.Build(packet.IP(peer, client), packet.TCP(frontPort, clientPort)))), trusted),
		dropped("a return without a flow and without a front", "no-flow", ingress, returned, func(n *node) { n.allow(peer) }),
		dropped("congestion marked outside a packet that cannot tell", "ecn", ingress,
			frame(packet.IP(peer, self).DF().ECN(3), packet.Outer(tunnelPort), packet.Forward(at(here, podPort)), inner[0], inner[1]),
			trusted).pair(),
		dropped("our tunnel format, made by somebody else on this node", "forged-tunnel", egress,
			tunnel(self, peer, packet.Forward(at(there, podPort)), inner...), nil),
		dropped("our return format, made by somebody else on this node", "forged-tunnel", egress,
			tunnel(self, peer, packet.Return(), inner...), nil),
	)

	It("a return from another peer than the flow's is dropped", Label("bpf"), func() {
		n := newNode()
		web(n)
		n.allow(peer, "192.0.2.3")
		n.run(ingress, toFront)
		s := dropped("a return from another peer than the flow's", "wrong-peer", ingress,
			tunnel("192.0.2.3", self, packet.Return(), packet.IP(self, client), packet.TCP(frontPort, clientPort)), nil)
		told = append(told, s)
		s.expect(n, n.run(ingress, s.in))
	})

	It("a flow whose every source port towards the pod is taken is refused", Label("bpf"), func() {
		n := newNode(func(spec *ebpf.CollectionSpec) {
			spec.Maps["FLOW_TABLE"].Type, spec.Maps["FLOW_TABLE"].MaxEntries = ebpf.Hash, 1<<17
		})
		trusted(n)
		takeAllPorts(n)
		s := dropped("no source port is free", "remap-exhausted", ingress, fromPeer, nil)
		s.expect(n, n.run(ingress, s.in))
	})
	told = append(told, sentence{reason: "too-big"}, sentence{reason: "remap-exhausted", verdict: progrun.Shot}, sentence{reason: "wrong-peer", verdict: progrun.Shot})
})

var _ = Describe("A tunnel that is ours must be well formed", func() {
	forward := func() packet.GeneveHeader { return packet.Forward(at(here, podPort)) }
	for about, in := range map[string][]byte{
		"version 1":                          tunnel(peer, self, forward().Version(1), inner...),
		"the control bit":                    tunnel(peer, self, forward().OAM(), inner...),
		"no critical bit":                    tunnel(peer, self, forward().Critical(false), inner...),
		"an unknown type":                    tunnel(peer, self, forward().Type(0x83), inner...),
		"a type that is not critical":        tunnel(peer, self, forward().Type(0x01), inner...),
		"an option body that is too short":   tunnel(peer, self, forward().BodyWords(4), inner...),
		"an option body that is too long":    tunnel(peer, self, forward().BodyWords(6), inner...),
		"an option length that is short":     tunnel(peer, self, forward().OptionWords(5), inner...),
		"an option length that is long":      tunnel(peer, self, forward().OptionWords(7), inner...),
		"a second option":                    tunnel(peer, self, forward().Option(0x0103, 1), inner...),
		"a return with a body":               tunnel(peer, self, packet.Geneve().Critical(true).Option(packet.OptionClass, packet.OptionReturn, 0, 0, 0, 0), inner...),
		"reserved bits of the option":        tunnel(peer, self, forward().Reserved(1), inner...),
		"an outer checksum":                  frame(packet.IP(peer, self).DF(), packet.UDP(tunnelPort, packet.GenevePort), forward(), inner[0], inner[1]),
		"an end in the middle of the option": tunnel(peer, self, forward(), inner...)[:14+20+8+8+10],
	} {
		s := dropped("a tunnel with "+about, "tunnel-malformed", ingress, in, trusted)
		if len(in) < 70 {
			s.in = resize(in)
		}
		tell(s)
	}
	for about, in := range map[string][]byte{
		"another protocol than IP":            tunnel(peer, self, forward().ProtocolType(0x6558), inner...),
		"IPv6 that is said to be IPv4":        tunnel(peer, self, forward().ProtocolType(0x0800), packet.IP(client6, peer6), syn),
		"an ICMP packet":                      tunnel(peer, self, forward(), packet.IP(client, peer), packet.Echo(1, 1)),
		"half an inner header":                tunnel(peer, self, forward(), packet.Raw(packet.Build(inner...)[:30])),
		"an inner length beyond the packet":   tunnel(peer, self, forward(), packet.IP(client, peer).Length(400), syn),
		"an inner length short of its header": tunnel(peer, self, forward(), packet.IP(client, peer).Length(25), syn),
		"nothing inside":                      tunnel(peer, self, forward().ProtocolType(0x0800)),
	} {
		tell(dropped("a tunnel that carries "+about, "tunnel-inner", ingress, in, trusted))
	}
})

// via is the sentence's row with another peer.
func (s sentence) via(peer string) sentence {
	s.flows = []string{walk{proto: "tcp"}.row("pending", "forward", at(client, clientPort), at(self, frontPort), at(there, podPort), clientPort, peer, "")}
	return s
}

// pair says that the rows of the peer's tunnel were made before the drop.
func (s sentence) pair() sentence {
	w := walk{proto: "tcp"}
	s.flows = []string{
		w.row("pending", "backend", at(client, clientPort), at(peer, frontPort), at(here, podPort), clientPort, peer, "paired,tunnelled"),
		w.row("pending", "reverse", at(here, podPort), at(client, clientPort), at(peer, frontPort), clientPort, peer, "paired,tunnelled"),
	}
	return s
}

// resize makes the lengths of a truncated tunnel's outer headers agree with what is left of it.
func resize(in []byte) []byte {
	rest := packet.Raw(in[14+20+8:])
	return frame(packet.IP(peer, self).DF(), packet.Outer(tunnelPort), rest)
}

var _ = Describe("The tables of sentences", func() {
	It("has one for every drop reason and every verdict", func() {
		reasons, verdicts := map[string]bool{}, map[progrun.Verdict]bool{}
		for _, s := range told {
			reasons[s.reason] = true
			verdicts[s.verdict] = true
		}
		for r := bpfobj.BeepDropReasonDROP_UNUSED + 1; r < bpfobj.BeepDropReasonDROP_REASONS; r++ {
			name := maps.Reason(r).String()
			Expect(reasons).To(HaveKey(name), "no sentence drops with %s", name)
		}
		Expect(verdicts).To(And(HaveKey(progrun.Pass), HaveKey(progrun.Shot), HaveKey(progrun.Redirect)))
	})
})
