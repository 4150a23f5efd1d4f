// SPDX-License-Identifier: Apache-2.0

package packettest

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/dchest/siphash"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/packet"
	"github.com/beep-lb/beep/harness/progrun"
	"github.com/beep-lb/beep/src/datapath/maps"
	"github.com/beep-lb/beep/src/maglev"
)

// pods are n endpoints on the peer, and their keys in the ring.
func pods(n int) (endpoints []string, keys [][]byte) {
	for i := range n {
		text := fmt.Sprintf("10.42.1.%d:%d@%s", 10+i, podPort, peer)
		endpoints = append(endpoints, text)
		keys = append(keys, []byte(text))
	}
	return endpoints, keys
}

// hash is what flow_hash in bpf/lib/select.h must give: SipHash-2-4 of the client's address and, without
// affinity, of ports and protocol.
func hash(from string, sport uint16, affinity bool) uint64 {
	addr := netip.MustParseAddr(from).As16()
	var ports uint64
	if !affinity {
		ports = uint64(sport)<<32 | frontPort<<16 | 6
	}
	message := binary.LittleEndian.AppendUint64(addr[:], ports)
	return siphash.Hash(binary.LittleEndian.Uint64(seed[:8]), binary.LittleEndian.Uint64(seed[8:]), message)
}

// chosen is the endpoint of the one new row of a client.
func (n *node) chosen(from string, sport uint16) maps.Flow {
	GinkgoHelper()
	to := self
	if netip.MustParseAddr(from).Is6() {
		to = self6
	}
	out := n.run(ingress, frame(packet.IP(from, to), packet.TCP(sport, frontPort).Flags("S")))
	Expect(out.Verdict).To(Equal(progrun.Redirect))
	row, err := n.maps.LookupFlow(maps.FlowPending, maps.FlowKey{Kind: maps.Forward, Proto: 6,
		Src: netip.MustParseAddrPort(at(from, sport)), Dst: netip.MustParseAddrPort(at(to, frontPort))})
	Expect(err).NotTo(HaveOccurred())
	return row
}

var _ = Describe("Choosing an endpoint", Label("bpf"), func() {
	for _, affinity := range []bool{false, true} {
		It(fmt.Sprintf("the ring slot is the client's keyed hash, affinity %v", affinity), func() {
			n := newNode()
			endpoints, keys := pods(7)
			n.front("tcp/"+at(self, frontPort), affinity, endpoints...)
			size := maglev.Size(len(keys))
			table, err := maglev.Table(seed, keys, size)
			Expect(err).NotTo(HaveOccurred())
			for port := uint16(1000); port < 1200; port++ {
				want := endpoint(endpoints[table[hash(client, port, affinity)%uint64(size)]])
				Expect(n.chosen(client, port).Nat.Addr()).To(Equal(want.Addr))
			}
		})
	}

	It("with affinity a client keeps its pod over every port, without it the pods share it", func() {
		for _, affinity := range []bool{false, true} {
			n := newNode()
			endpoints, _ := pods(5)
			n.front("tcp/"+at(self, frontPort), affinity, endpoints...)
			seen := map[netip.Addr]int{}
			for port := range uint16(100) {
				seen[n.chosen(client, 2000+port).Nat.Addr()]++
			}
			if affinity {
				Expect(seen).To(HaveLen(1))
			} else {
				Expect(seen).To(HaveLen(5))
			}
		}
	})

	It("tunnels of one client spread over source ports of the dynamic range, with affinity too", func() {
		n := newNode()
		n.front("tcp/"+at(self, frontPort), true, remote)
		ports := map[uint16]bool{}
		for port := range uint16(200) {
			row := n.chosen(client, 3000+port)
			Expect(row.TunnelPort).To(BeNumerically(">=", 49152))
			ports[row.TunnelPort] = true
		}
		Expect(len(ports)).To(BeNumerically(">", 150))
	})
})

var _ = Describe("Two uplinks", Label("bpf"), func() {
	onEth1 := func(n *node, in []byte) progrun.Out {
		return n.runOn(ingress, progrun.In{Packet: in, Ifindex: n.eth1})
	}
	const neighbour = "198.51.100.200" // on eth1's LAN

	It("a flow remembers the uplink and the frame that its client's packets come in by", func() {
		n := newNode()
		web(n)
		onEth1(n, toFront)
		Expect(n.maps.Flows(func(f maps.Flow) bool {
			Expect(f.Uplink).To(BeEquivalentTo(n.eth1))
			Expect(f.ClientMAC).To(Equal([6]byte{2, 0, 0, 0, 0, 1}))
			Expect(f.UplinkMAC).To(Equal([6]byte{2, 0, 0, 0, 0, 2}))
			return true
		})).To(Succeed())
	})

	It("without a route through that uplink an answer goes to the frame's sender", func() {
		n := newNode()
		web(n)
		n.allow(peer)
		onEth1(n, toFront) // eth1 has no route to the client
		out := n.run(ingress, returned)
		Expect(out.Verdict).To(Equal(progrun.Redirect))
		Expect(out.Packet).To(packet.EqualPacket(packet.Build(packet.Eth(packet.MAC2, packet.MAC1),
			packet.IP(self, client), packet.TCP(frontPort, clientPort))))
	})

	It("with a route the kernel resolves the next hop", func() {
		n := newNode()
		web(n)
		n.allow(peer)
		onEth1(n, frame(packet.IP(neighbour, self), syn))
		in := tunnel(peer, self, packet.Return(), packet.IP(self, neighbour), packet.TCP(frontPort, clientPort))
		out := n.run(ingress, in)
		Expect(out.Verdict).To(Equal(progrun.Redirect))
		Expect(out.Packet).To(packet.EqualPacket(frame(packet.IP(self, neighbour), packet.TCP(frontPort, clientPort))))
	})

	It("a local pod's answer that the host sends elsewhere is led back to the flow's uplink", func() {
		n := newNode()
		n.front("tcp/"+at(self, frontPort), false, at(here, podPort))
		onEth1(n, toFront)
		answer := frame(packet.IP(here, client), packet.TCP(podPort, clientPort).Flags("SA"))
		Expect(n.run(egress, answer).Verdict).To(Equal(progrun.Redirect))
		Expect(n.runOn(egress, progrun.In{Packet: answer, Ifindex: n.eth1}).Verdict).To(Equal(progrun.Pass))
	})

	It("a flow whose client comes in by the other uplink is answered there, by a pod here too", func() {
		n := newNode()
		n.front("tcp/"+at(self, frontPort), false, at(here, podPort))
		n.run(ingress, toFront)
		answer := frame(packet.IP(here, client), packet.TCP(podPort, clientPort).Flags("SA"))
		Expect(n.run(egress, answer).Verdict).To(Equal(progrun.Pass))
		onEth1(n, frame(packet.IP(client, self), packet.TCP(clientPort, frontPort)))
		Expect(n.runOn(egress, progrun.In{Packet: answer, Ifindex: n.eth1}).Verdict).To(Equal(progrun.Pass))
		Expect(n.run(egress, answer).Verdict).To(Equal(progrun.Redirect))
	})

	It("an answer to a flow whose uplink is gone takes the host's route", func() {
		n := newNode()
		n.front("tcp/"+at(self, frontPort), false, at(here, podPort))
		n.run(ingress, toFront)
		n.uplinkGone(9999)
		answer := frame(packet.IP(here, client), packet.TCP(podPort, clientPort).Flags("SA"))
		out := n.run(egress, answer)
		Expect(out.Verdict).To(Equal(progrun.Redirect))
		Expect(out.Packet).To(packet.EqualPacket(frame(packet.IP(self, client), packet.TCP(frontPort, clientPort).Flags("SA"))))
	})
})
