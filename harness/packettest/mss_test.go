// SPDX-License-Identifier: Apache-2.0

package packettest

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/packet"
	"github.com/beep-lb/beep/harness/progrun"
)

// fits is the largest MSS that fits an MTU of 1500: of what travels on forward tunnels, and on return tunnels.
func (w walk) fits() (forward, back uint16) {
	overhead, headers := uint16(60), uint16(40)
	if w.outer == 6 {
		overhead = 80
	}
	if w.inner == 6 {
		headers = 60
	}
	return 1500 - overhead - headers, 1500 - (overhead - 20) - headers
}

var _ = Describe("The MSS of a tunnelled flow is clamped to what fits the tunnel", Label("bpf"), func() {
	for _, w := range walks() {
		if w.proto == "udp" {
			continue
		}
		forward, back := w.fits()
		synWith := func(mss uint16) packet.Part { return packet.TCP(clientPort, frontPort).Flags("S").MSS(mss) }
		It("in the SYN, at both nodes: "+w.String(), func() {
			a := newNode()
			a.front(w.frontName(), false, w.thereAt())
			out := a.run(ingress, frame(packet.IP(w.client, w.front), synWith(8960)))
			Expect(out.Packet).To(packet.EqualPacket(w.forward(w.self, w.peer, at(w.there, podPort),
				packet.IP(w.client, w.front), synWith(back)), "udp.sport"))

			b := newNode()
			b.allow(w.peer)
			b.target(w.hereName())
			out = b.run(ingress, w.forward(w.peer, w.self, at(w.here, podPort),
				packet.IP(w.client, w.frontOfPeer()), synWith(8960)))
			Expect(out.Packet).To(packet.EqualPacket(frame(packet.IP(w.client, w.here),
				packet.TCP(clientPort, podPort).Flags("S").MSS(back))))
			Expect(packet.Verify(out.Packet)).To(Succeed())
		})
		It("in the SYN-ACK, at both nodes: "+w.String(), func() {
			b := newNode()
			b.allow(w.peer)
			b.target(w.hereName())
			b.run(ingress, w.forward(w.peer, w.self, at(w.here, podPort),
				packet.IP(w.client, w.frontOfPeer()), synWith(1460)))
			out := b.run(egress, frame(packet.IP(w.here, w.client), packet.TCP(podPort, clientPort).Flags("SA").MSS(8960)))
			Expect(out.Packet).To(packet.EqualPacket(w.back(w.self, w.peer, packet.IP(w.frontOfPeer(), w.client),
				packet.TCP(frontPort, clientPort).Flags("SA").MSS(forward))))

			a := newNode()
			a.front(w.frontName(), false, w.thereAt())
			a.allow(w.peer)
			a.run(ingress, frame(packet.IP(w.client, w.front), synWith(1460)))
			out = a.run(ingress, w.back(w.peer, w.self, packet.IP(w.front, w.client),
				packet.TCP(frontPort, clientPort).Flags("SA").MSS(8960)))
			Expect(out.Packet).To(packet.EqualPacket(frame(packet.IP(w.front, w.client),
				packet.TCP(frontPort, clientPort).Flags("SA").MSS(forward))))
			Expect(packet.Verify(out.Packet)).To(Succeed())
		})
	}

	w := newWalk("tcp", 4, 4)
	_, back := w.fits()
	through := func(in packet.Part) packet.Part { return in }
	for about, row := range map[string]struct{ in, out packet.TCPSegment }{
		"behind one filler byte":                {tcpSyn().Option(1).MSS(8960), tcpSyn().Option(1).MSS(back)},
		"behind other options":                  {tcpSyn().Option(4).Option(8, 1, 2, 3, 4, 5, 6, 7, 8).MSS(1461), tcpSyn().Option(4).Option(8, 1, 2, 3, 4, 5, 6, 7, 8).MSS(back)},
		"equal to the limit":                    {tcpSyn().MSS(back), tcpSyn().MSS(back)},
		"one above the limit":                   {tcpSyn().MSS(back + 1), tcpSyn().MSS(back)},
		"lower than the limit":                  {tcpSyn().MSS(536), tcpSyn().MSS(536)},
		"missing":                               {tcpSyn().Option(4), tcpSyn().Option(4)},
		"without any option":                    {tcpSyn(), tcpSyn()},
		"behind the end of the list":            {tcpSyn().Option(0).MSS(8960), tcpSyn().Option(0).MSS(8960)},
		"of a wrong length":                     {tcpSyn().MSS(8960).OptionLength(3), tcpSyn().MSS(8960).OptionLength(3)},
		"behind an option of length 0":          {tcpSyn().Option(8, 1, 2).OptionLength(0).MSS(8960), tcpSyn().Option(8, 1, 2).OptionLength(0).MSS(8960)},
		"behind an option longer than the list": {tcpSyn().Option(8, 1, 2).OptionLength(200).MSS(8960), tcpSyn().Option(8, 1, 2).OptionLength(200).MSS(8960)},
		"in a packet that is no SYN":            {packet.TCP(clientPort, frontPort).MSS(8960), packet.TCP(clientPort, frontPort).MSS(8960)},
		"with a partial checksum":               {tcpSyn().MSS(8960).PartialChecksum(), tcpSyn().MSS(back)},
	} {
		except := []string{"udp.sport"}
		if about == "with a partial checksum" {
			except = append(except, "inner.tcp.csum")
		}
		s := sentence{about: "an MSS " + about + " comes out right",
			given: web,
			in:    frame(packet.IP(client, self), through(row.in)),
			out: w.forward(self, peer, at(there, podPort), packet.IP(client, self),
				through(row.out)),
			except: except, verdict: progrun.Redirect}
		It(s.about, func() {
			n := newNode()
			s.given(n)
			out := n.run(ingress, s.in)
			Expect(out.Verdict).To(Equal(s.verdict))
			Expect(out.Packet).To(packet.EqualPacket(s.out, s.except...))
		})
	}

	It("to the MTU of the route to this peer, where it is lower than the device's", func() {
		n := newNode()
		web(n)
		n.routeMTU(peer+"/32", "192.0.2.250", 1400)
		out := n.run(ingress, frame(packet.IP(client, self), tcpSyn().MSS(8960)))
		Expect(out.Packet).To(packet.EqualPacket(w.forward(self, peer, at(there, podPort),
			packet.IP(client, self), tcpSyn().MSS(back-100)), "udp.sport"))
	})

	It("and not at all for a pod here", func() {
		n := newNode()
		n.front("tcp/"+at(self, frontPort), false, at(here, podPort))
		out := n.run(ingress, frame(packet.IP(client, self), tcpSyn().MSS(8960)))
		Expect(out.Packet).To(packet.EqualPacket(frame(packet.IP(client, here), packet.TCP(clientPort, podPort).Flags("S").MSS(8960))))
	})
})

func tcpSyn() packet.TCPSegment { return packet.TCP(clientPort, frontPort).Flags("S") }
