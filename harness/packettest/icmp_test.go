// SPDX-License-Identifier: Apache-2.0

package packettest

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/packet"
	"github.com/beep-lb/beep/harness/progrun"
)

// router is a machine between client and nodes that makes errors of its own.
func (w walk) router() string {
	if w.inner == 6 {
		return "2001:db8:c::fe"
	}
	return "198.51.100.254"
}

// fragNeeded is the message that a packet was too long, at the start of an ICMP packet.
func (w walk) fragNeeded() packet.ICMPMessage {
	if w.inner == 6 {
		return packet.ICMP(2, 0).Rest(1300)
	}
	return packet.ICMP(3, 4).Rest(1300)
}

// quote is what an error quotes of a packet: all of it, or no more of TCP or UDP than RFC 792 asks.
func quote(short bool, parts ...packet.Part) packet.Part {
	whole := packet.Build(parts...)
	if !short {
		return packet.Raw(whole)
	}
	headers := 20
	if whole[0]>>4 == 6 {
		headers = 40
	}
	return packet.Raw(whole[:headers+8])
}

var _ = Describe("ICMP errors about our flows", Label("bpf"), func() {
	for _, w := range walks() {
		for _, short := range []bool{false, true} {
			about := w.String()
			if short {
				about += ", quoting 8 bytes"
			}
			// From the client's side: it quotes what the front sent, and must say what the pod sent.
			fromRouter := func(w walk, front string) []packet.Part {
				return []packet.Part{packet.IP(w.router(), front), w.fragNeeded(),
					quote(short, packet.IP(front, w.client), w.reply, packet.Payload(40))}
			}
			forPod := []packet.Part{packet.IP(w.router(), w.here), w.fragNeeded(),
				quote(short, packet.IP(w.here, w.client), w.fromPod, packet.Payload(40))}

			It("from the client's side reach a pod here: "+about, func() {
				n := newNode()
				n.front(w.frontName(), false, at(w.here, podPort))
				n.run(ingress, frame(packet.IP(w.client, w.front), w.first))
				out := n.run(ingress, frame(fromRouter(w, w.front)...))
				Expect(out.Verdict).To(Equal(progrun.Pass))
				Expect(out.Packet).To(packet.EqualPacket(frame(forPod...)))
				Expect(packet.Verify(out.Packet)).To(Succeed())
			})
			It("from the client's side travel to the pod's node as they are: "+about, func() {
				n := newNode()
				n.front(w.frontName(), false, w.thereAt())
				n.run(ingress, frame(packet.IP(w.client, w.front), w.first))
				out := n.run(ingress, frame(fromRouter(w, w.front)...))
				Expect(out.Verdict).To(Equal(progrun.Redirect))
				Expect(out.Packet).To(packet.EqualPacket(w.forward(w.self, w.peer, at(w.there, podPort), fromRouter(w, w.front)...), "udp.sport"))
			})
			It("are translated where the pod runs: "+about, func() {
				n := newNode()
				n.allow(w.peer)
				n.target(w.hereName())
				n.run(ingress, w.forward(w.peer, w.self, at(w.here, podPort), packet.IP(w.client, w.frontOfPeer()), w.first))
				out := n.run(ingress, w.forward(w.peer, w.self, at(w.here, podPort), fromRouter(w, w.frontOfPeer())...))
				Expect(out.Verdict).To(Equal(progrun.Pass))
				Expect(out.Packet).To(packet.EqualPacket(frame(forPod...)))
				Expect(packet.Verify(out.Packet)).To(Succeed())
			})

			// From the pod's side: it quotes what the client sent as the pod saw it.
			fromPod := func(w walk) []byte {
				return frame(packet.IP(w.here, w.client), w.fragNeeded(),
					quote(short, packet.IP(w.client, w.here), w.atPod, packet.Payload(40)))
			}
			forClient := func(w walk, front string) []packet.Part {
				return []packet.Part{packet.IP(front, w.client), w.fragNeeded(),
					quote(short, packet.IP(w.client, front), w.request, packet.Payload(40))}
			}
			It("from a pod here say the front to the client: "+about, func() {
				n := newNode()
				n.front(w.frontName(), false, at(w.here, podPort))
				n.run(ingress, frame(packet.IP(w.client, w.front), w.first))
				out := n.run(egress, fromPod(w))
				Expect(out.Verdict).To(Equal(progrun.Pass))
				Expect(out.Packet).To(packet.EqualPacket(frame(forClient(w, w.front)...)))
				Expect(packet.Verify(out.Packet)).To(Succeed())
			})
			It("from a pod go back through the tunnel: "+about, func() {
				n := newNode()
				n.allow(w.peer)
				n.target(w.hereName())
				n.run(ingress, w.forward(w.peer, w.self, at(w.here, podPort), packet.IP(w.client, w.frontOfPeer()), w.first))
				out := n.run(egress, fromPod(w))
				Expect(out.Verdict).To(Equal(progrun.Redirect))
				Expect(out.Packet).To(packet.EqualPacket(w.back(w.self, w.peer, forClient(w, w.frontOfPeer())...)))
				Expect(packet.Verify(out.Packet)).To(Succeed())
			})
			It("that came back through the tunnel go to the client: "+about, func() {
				n := newNode()
				n.front(w.frontName(), false, w.thereAt())
				n.run(ingress, frame(packet.IP(w.client, w.front), w.first))
				out := n.run(ingress, w.back(w.peer, w.self, forClient(w, w.front)...))
				Expect(out.Verdict).To(Equal(progrun.Redirect))
				Expect(out.Packet).To(packet.EqualPacket(frame(forClient(w, w.front)...)))
			})
		}
	}

	It("from this node about the way to a pod say the front, too", func() {
		n := newNode()
		n.allow(peer)
		n.target("udp/" + at(here, podPort))
		w := newWalk("udp", 4, 4)
		n.run(ingress, w.forward(peer, self, at(here, podPort), packet.IP(client, peer), w.request))
		out := n.run(egress, frame(packet.IP(self, client), packet.ICMP(3, 1), packet.Raw(packet.Build(packet.IP(client, here), w.atPod))))
		Expect(out.Packet).To(packet.EqualPacket(w.back(self, peer, packet.IP(peer, client), packet.ICMP(3, 1),
			packet.Raw(packet.Build(packet.IP(client, peer), w.request)))))
	})

	It("translate the port of a flow whose client port was taken", func() {
		n := newNode()
		n.allow(peer, "192.0.2.3")
		n.target("tcp/" + at(here, podPort))
		for _, from := range []string{peer, "192.0.2.3"} {
			n.run(ingress, tunnel(from, self, packet.Forward(at(here, podPort)), packet.IP(client, from), syn))
		}
		port := n.clientPort("backend", "192.0.2.3")
		message := packet.ICMP(3, 4).Rest(1300)
		out := n.run(ingress, tunnel("192.0.2.3", self, packet.Forward(at(here, podPort)), packet.IP("198.51.100.254", "192.0.2.3"), message,
			packet.Raw(packet.Build(packet.IP("192.0.2.3", client), packet.TCP(frontPort, clientPort)))))
		Expect(out.Packet).To(packet.EqualPacket(frame(packet.IP("198.51.100.254", here), message,
			packet.Raw(packet.Build(packet.IP(here, client), packet.TCP(podPort, port))))))
		back := n.run(egress, frame(packet.IP(here, client), message, packet.Raw(packet.Build(packet.IP(client, here), packet.TCP(port, podPort)))))
		Expect(back.Packet).To(packet.EqualPacket(tunnel(self, "192.0.2.3", packet.Return(), packet.IP("192.0.2.3", client), message,
			packet.Raw(packet.Build(packet.IP(client, "192.0.2.3"), packet.TCP(clientPort, frontPort))))))
	})
})

var _ = Describe("ICMP that is not about our flows", func() {
	about := packet.Raw(packet.Build(packet.IP(self, client), packet.TCP(22, clientPort)))
	tell(
		passes("an error about the host's own connection", ingress, frame(packet.IP("198.51.100.254", self), packet.ICMP(3, 4).Rest(1300), about)),
		passes("an error of the host's own", egress, frame(packet.IP(self, client), packet.ICMP(3, 3), packet.Raw(packet.Build(packet.IP(client, self), packet.UDP(1, 2))))),
		passes("a redirect", ingress, frame(packet.IP("198.51.100.254", self), packet.ICMP(5, 1), about)),
		passes("an error that quotes a later fragment", ingress, frame(packet.IP("198.51.100.254", self), packet.ICMP(3, 4).Rest(1300),
			packet.Raw(packet.Build(packet.IP(self, client).Fragment(10, false).Proto(6), packet.Payload(20))))),
		passes("an error that quotes half a header", ingress, frame(packet.IP("198.51.100.254", self), packet.ICMP(3, 4), packet.Raw(packet.Build(packet.IP(self, client), syn)[:14]))),
		passes("a ping's answer", egress, frame(packet.IP(self, client), packet.EchoReply(1, 1), packet.Payload(56))),
		passes("neighbour discovery", ingress, frame(packet.IP(peer6, self6), packet.ICMP(135, 0), packet.Payload(20))),
	)
})
