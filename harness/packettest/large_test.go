// SPDX-License-Identifier: Apache-2.0

package packettest

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"time"

	"github.com/cilium/ebpf"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/packet"
	"github.com/beep-lb/beep/harness/progrun"
)

// quoted is how many bytes of a refused packet its sender gets back (QUOTE_MAX in bpf/lib/icmp.h).
const quoted = 96

// piece marks a copy for the egress program (MARK_PIECE in bpf/lib/config.h).
const piece = 0x62656500

// limits are the longest inner packets of a walk at an MTU of 1500: on forward and on return tunnels.
func (w walk) limits() (forward, back int) {
	if w.outer == 6 {
		return 1420, 1440
	}
	return 1440, 1460
}

// fill makes an inner packet of exactly that many bytes from its IP header on.
func (w walk) fill(ip packet.IPPacket, l4 packet.Part, length int) []byte {
	headers := 20
	if w.inner == 6 {
		headers = 40
	}
	headers += map[string]int{"tcp": 20, "udp": 8}[w.proto]
	return packet.Build(ip, l4, packet.Payload(length-headers))
}

// tooBig is the ICMP error about an IP packet, from the address it was sent to.
func tooBig(about []byte, from, to string, mtu int) []byte {
	message := packet.ICMP(3, 4)
	if about[0]>>4 == 6 {
		message = packet.ICMP(2, 0)
	}
	return packet.Build(packet.IP(from, to), message.Rest(uint32(mtu)), packet.Raw(about[:quoted]))
}

func ethernet(src, dst string, ip []byte) []byte {
	return packet.Build(packet.Eth(src, dst), packet.Raw(ip))
}

var _ = Describe("Large packets", Label("bpf"), func() {
	for _, w := range walks() {
		forward, back := w.limits()
		It("the longest that fits the forward tunnel goes, one byte more and DF is refused to its sender: "+w.String(), func() {
			n := newNode()
			n.front(w.frontName(), false, w.thereAt())
			fits := w.fill(packet.IP(w.client, w.front).DF(), w.request, forward)
			out := n.run(ingress, ethernet(packet.MAC1, packet.MAC2, fits))
			Expect(out.Verdict).To(Equal(progrun.Redirect))
			Expect(out.Packet).To(HaveLen(14 + 1500))
			Expect(n.drops()).To(BeEmpty())

			long := w.fill(packet.IP(w.client, w.front).DF(), w.request, forward+1)
			out = n.run(ingress, ethernet(packet.MAC1, packet.MAC2, long))
			Expect(out.Verdict).To(Equal(progrun.Redirect))
			Expect(out.Packet).To(packet.EqualPacket(ethernet(packet.MAC2, packet.MAC1, tooBig(long, w.front, w.client, forward))))
			Expect(packet.Verify(out.Packet)).To(Succeed())
			Expect(n.drops()).To(Equal(map[string]uint64{"too-big ingress": 1}))
			expectMark(out)
		})
		It("the longest that fits the return tunnel goes, one byte more and DF is refused to the pod: "+w.String(), func() {
			n := newNode()
			n.allow(w.peer)
			n.target(w.hereName())
			n.run(ingress, w.forward(w.peer, w.self, at(w.here, podPort), packet.IP(w.client, w.frontOfPeer()), w.request))
			fits := w.fill(packet.IP(w.here, w.client).DF(), w.fromPod, back)
			out := n.run(egress, ethernet(packet.MAC1, packet.MAC2, fits))
			Expect(out.Verdict).To(Equal(progrun.Redirect))
			Expect(out.Packet).To(HaveLen(14 + 1500))

			long := w.fill(packet.IP(w.here, w.client).DF(), w.fromPod, back+1)
			out = n.run(egress, ethernet(packet.MAC1, packet.MAC2, long))
			Expect(out.Verdict).To(Equal(progrun.Redirect))
			// As it comes from the client, and to this node's own link-layer address.
			Expect(out.Packet).To(packet.EqualPacket(ethernet(packet.MAC2, packet.MAC1, tooBig(long, w.client, w.here, back))))
			Expect(packet.Verify(out.Packet)).To(Succeed())
			Expect(n.drops()).To(Equal(map[string]uint64{"too-big egress": 1}))
			Expect(out.Mark).To(BeZero())
		})
		It("an answer too long for the client's uplink is refused to the pod behind the tunnel: "+w.String(), func() {
			n := newNode()
			n.front(w.frontName(), false, w.thereAt())
			n.allow(w.peer)
			n.run(ingress, frame(packet.IP(w.client, w.front), w.first))
			n.mtu("eth0", 1300)
			long := w.fill(packet.IP(w.front, w.client).DF(), w.reply, 1301)
			out := n.run(ingress, w.back(w.peer, w.self, packet.Raw(long)))
			Expect(out.Verdict).To(Equal(progrun.Redirect))
			// As it comes from the client's side: the next run sends it through the tunnel.
			Expect(out.Packet).To(packet.EqualPacket(ethernet(packet.MAC1, packet.MAC2, tooBig(long, w.client, w.front, 1300))))
			n.mtu("eth0", 1500)
			again := n.run(ingress, out.Packet)
			Expect(again.Verdict).To(Equal(progrun.Redirect))
			Expect(again.Packet).To(packet.EqualPacket(w.forward(w.self, w.peer, at(w.there, podPort), packet.Raw(out.Packet[14:])), "udp.sport"))
		})
	}

	for _, w := range walks() {
		if w.inner == 6 {
			continue
		}
		forward, back := w.limits()
		It("without DF it is cut into pieces that the pod puts together: "+w.String(), func() {
			n := newNode()
			n.front(w.frontName(), false, w.thereAt())
			whole := w.fill(packet.IP(w.client, w.front).ID(77), w.request, 3000)
			out := n.run(ingress, ethernet(packet.MAC1, packet.MAC2, whole))
			Expect(out.Verdict).To(Equal(progrun.Redirect))
			Expect(n.drops()).To(BeEmpty())
			Expect(out.Mark).To(BeEquivalentTo(piece|2), "two copies went before")
			var inners [][]byte
			for i := range uint32(3) {
				got := n.runOn(egress, progrun.In{Packet: ethernet(packet.MAC1, packet.MAC2, whole), Ifindex: n.eth0, Mark: piece | i})
				Expect(got.Verdict).To(Equal(progrun.Redirect))
				Expect(packet.Verify(got.Packet)).To(Succeed())
				Expect(len(got.Packet) - 14).To(BeNumerically("<=", 1500))
				inners = append(inners, got.Packet[len(got.Packet)-innerLen(got.Packet, w, true):])
			}
			Expect(reassemble(inners)).To(Equal(whole))
			Expect(len(inners[0])).To(BeNumerically(">", forward-8))
		})
		It("a pod's packet without DF too: "+w.String(), func() {
			n := newNode()
			n.allow(w.peer)
			n.target(w.hereName())
			n.run(ingress, w.forward(w.peer, w.self, at(w.here, podPort), packet.IP(w.client, w.frontOfPeer()), w.request))
			whole := w.fill(packet.IP(w.here, w.client).ID(78), w.fromPod, back+40)
			out := n.run(egress, ethernet(packet.MAC1, packet.MAC2, whole))
			Expect(out.Mark).To(BeEquivalentTo(piece | 1))
			var inners [][]byte
			for i := range uint32(2) {
				got := n.runOn(egress, progrun.In{Packet: ethernet(packet.MAC1, packet.MAC2, whole), Ifindex: n.eth0, Mark: piece | i})
				Expect(got.Verdict).To(Equal(progrun.Redirect))
				Expect(packet.Verify(got.Packet)).To(Succeed())
				inners = append(inners, got.Packet[len(got.Packet)-innerLen(got.Packet, w, false):])
			}
			Expect(reassemble(inners)).To(Equal(w.fill(packet.IP(w.frontOfPeer(), w.client).ID(78), w.reply, back+40)))
		})
	}

	It("a packet of more pieces than a mark can number is refused", func() {
		n := newNode()
		web(n)
		n.mtu("eth0", 200)
		w := newWalk("tcp", 4, 4)
		Expect(n.run(ingress, ethernet(packet.MAC1, packet.MAC2, w.fill(packet.IP(client, self), w.request, 3000))).Verdict).To(Equal(progrun.Shot))
		Expect(n.drops()).To(Equal(map[string]uint64{"too-big ingress": 1}))
	})

	It("answers are rationed, the drops are all counted", func() {
		n := newNode()
		web(n)
		w := newWalk("tcp", 4, 4)
		long := ethernet(packet.MAC1, packet.MAC2, w.fill(packet.IP(client, self).DF(), w.request, 1460))
		answered, began := 0, time.Now()
		for range 400 {
			if n.run(ingress, long).Verdict == progrun.Redirect {
				answered++
			}
		}
		// 50 at once and 1000 a second, a CPU; a machine so slow that all 400 are within that proves nothing.
		allowed := (50 + 1000*time.Since(began).Seconds()) * float64(runtime.NumCPU())
		Expect(answered).To(And(BeNumerically(">=", 50), BeNumerically("<=", allowed)))
		Expect(n.drops()).To(Equal(map[string]uint64{"too-big ingress": 400}))
	})

	It("a GSO packet is judged by its segments, and quoted as one", func() {
		n := newNode()
		web(n)
		w := newWalk("tcp", 4, 4)
		super := w.fill(packet.IP(client, self).DF(), w.request, 3000)
		out := n.runOn(ingress, progrun.In{Packet: ethernet(packet.MAC1, packet.MAC2, super), Ifindex: n.eth0, GSOSize: 1460, GSOSegs: 3})
		Expect(out.Verdict).To(Equal(progrun.Redirect))
		one := w.fill(packet.IP(client, self).DF(), w.request, 1500)
		Expect(out.Packet).To(packet.EqualPacket(ethernet(packet.MAC2, packet.MAC1, tooBig(one, self, client, 1440)), "quote.tcp.csum"))
	})

	It("an IPv6 sender is never told less than 1280", func() {
		n := newNode()
		n.front("tcp/"+at(self6, frontPort), false, at(there6, podPort)+"@"+peer6)
		n.mtu("eth0", 1300)
		w := newWalk("tcp", 6, 6)
		long := w.fill(packet.IP(client6, self6), w.request, 1290)
		out := n.run(ingress, ethernet(packet.MAC1, packet.MAC2, long))
		Expect(out.Packet).To(packet.EqualPacket(ethernet(packet.MAC2, packet.MAC1, tooBig(long, self6, client6, 1280))))
	})
})

var _ = Describe("A front without endpoints that rejects", Label("bpf"), func() {
	reject := func(spec *ebpf.CollectionSpec) { Expect(spec.Variables["cfg_reject"].Set(uint8(1))).To(Succeed()) }
	for _, w := range walks() {
		if w.outer != w.inner {
			continue
		}
		It("answers port unreachable: "+w.String(), func() {
			n := newNode(reject)
			n.front(w.frontName(), false)
			in := packet.Build(packet.IP(w.client, w.front), w.first, packet.Payload(5))
			out := n.run(ingress, ethernet(packet.MAC1, packet.MAC2, in))
			Expect(out.Verdict).To(Equal(progrun.Redirect))
			message := packet.ICMP(3, 3)
			if w.inner == 6 {
				message = packet.ICMP(1, 4)
			}
			Expect(out.Packet).To(packet.EqualPacket(ethernet(packet.MAC2, packet.MAC1,
				packet.Build(packet.IP(w.front, w.client), message, packet.Raw(in)))))
			Expect(packet.Verify(out.Packet)).To(Succeed())
			Expect(n.drops()).To(Equal(map[string]uint64{"no-endpoint ingress": 1}))
		})
	}
	It("does not answer a reset", func() {
		n := newNode(reject)
		n.front("tcp/"+at(self, frontPort), false)
		Expect(n.run(ingress, frame(packet.IP(client, self), packet.TCP(clientPort, frontPort).Flags("R"))).Verdict).To(Equal(progrun.Shot))
	})
})

// innerLen is the length of what a tunnel packet carries.
func innerLen(frame []byte, w walk, forward bool) int {
	overhead := 40
	if forward {
		overhead = 60
	}
	if w.outer == 6 {
		overhead += 20
	}
	return len(frame) - 14 - overhead
}

// reassemble puts IPv4 fragments together, as a receiver does (RFC 791, section 3.2).
func reassemble(fragments [][]byte) []byte {
	GinkgoHelper()
	whole := append([]byte{}, fragments[0]...)
	for i, f := range fragments {
		field := binary.BigEndian.Uint16(f[6:])
		Expect(int(field&0x1fff)*8).To(Equal(len(whole)-20-map[bool]int{true: len(whole) - 20, false: 0}[i == 0]), fmt.Sprintf("offset of piece %d", i))
		Expect(field&0x2000 != 0).To(Equal(i < len(fragments)-1), "more fragments")
		Expect(binary.BigEndian.Uint16(f[2:])).To(BeEquivalentTo(len(f)))
		if i > 0 {
			whole = append(whole, f[20:]...)
		}
	}
	binary.BigEndian.PutUint16(whole[2:], uint16(len(whole)))
	whole[6], whole[7], whole[10], whole[11] = 0, 0, 0, 0
	var sum uint32
	for i := 0; i < 20; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(whole[i:]))
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	binary.BigEndian.PutUint16(whole[10:], ^uint16(sum))
	return whole
}
