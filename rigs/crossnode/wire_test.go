// SPDX-License-Identifier: Apache-2.0

package crossnode_test

import (
	"encoding/binary"
	"net/netip"
	"os/exec"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/packet"
	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
	"github.com/beep-lb/beep/harness/watch"
)

var _ = Describe("the wires of a tunnelled flow", Label("netns"), func() {
	for _, offload := range scene.Offloads {
		Context(offload.String(), func() {
			for _, w := range tunnel {
				It("hold our tunnel between the nodes, and no pod's address before the client, through "+w.node, func() {
					r := newRig(offload)
					// The client dials one node only, so all that passes the other one's device is between the nodes.
					between, client := r.watch(r.Pod(w.pod).Node), r.watch("client")
					_, err := traffic.Exchange(r.Context(limit), r.NS("client"), r.front(w, bulk), 1<<20, 1<<20)
					Expect(err).NotTo(HaveOccurred())
					tally, err := traffic.SendUDP(r.Context(limit), r.NS("client"), r.front(w, echo),
						traffic.Datagrams{Count: 100, Size: 1000, Patience: require.Within(time.Second)})
					Expect(err).NotTo(HaveOccurred())
					Expect(tally.Received).To(Equal(100), "%s", tally)

					nodes := map[string]int{}
					for _, s := range between.stop() {
						Expect(s.vni()).To(BeEquivalentTo(packet.DefaultVNI), s.String())
						nodes[s.source.Addr().String()+" "+s.target.Addr().String()]++
					}
					a, b := r.Addr("node-a", topo.V4).String(), r.Addr("node-b", topo.V4).String()
					Expect(nodes).To(And(HaveLen(2), HaveKey(a+" "+b), HaveKey(b+" "+a)))

					dialled := r.Addr(w.node, topo.V4)
					for _, s := range client.stop() {
						Expect([]netip.Addr{s.source.Addr(), s.target.Addr()}).To(ConsistOf(r.from(0).Addr(), dialled), s.String())
						Expect(s.target.Port()).NotTo(BeEquivalentTo(packet.GenevePort), s.String())
					}
				})

				It("carry what fits: the MSS of both sides is clamped, through "+w.node, func() {
					r := newRig(offload)
					client, pod := r.watch("client"), r.watch(w.pod)
					_, err := traffic.Get(r.Context(limit), r.NS("client"), r.front(w, web))
					Expect(err).NotTo(HaveOccurred())
					const headers = 20 + 20 // IPv4 and TCP
					atClient, atPod := client.stop(), pod.stop()
					Expect(mss(atClient, "SYN")).To(Equal(topo.DefaultMTU-headers), "as the client sends it")
					Expect(mss(atPod, "SYN")).To(Equal(topo.DefaultMTU-headers-40), "less the return tunnel")
					Expect(mss(atPod, "SYN-ACK")).To(Equal(topo.DefaultMTU-headers), "as the pod sends it")
					Expect(mss(atClient, "SYN-ACK")).To(Equal(topo.DefaultMTU-headers-60), "less the forward tunnel")
				})
			}

			It("carry whole segments where the pod is on the dialled node", func() {
				r := newRig(offload)
				client, pod := r.watch("client"), r.watch("pod-b1")
				_, err := traffic.Get(r.Context(limit), r.NS("client"), r.front(way{"node-b", "pod-b1"}, web))
				Expect(err).NotTo(HaveOccurred())
				atClient, atPod := client.stop(), pod.stop()
				for _, size := range []int{mss(atClient, "SYN"), mss(atPod, "SYN"), mss(atPod, "SYN-ACK"), mss(atClient, "SYN-ACK")} {
					Expect(size).To(Equal(topo.DefaultMTU - 40))
				}
			})

			for _, masqueraded := range []bool{false, true} {
				name := "by its own address"
				if masqueraded {
					name = "masqueraded to its node's, which is a peer's"
				}
				It("hold no tunnel that a pod makes, "+name, func() {
					r := newRig(offload)
					if masqueraded {
						r.masquerade("node-a", "pod-a1")
					}
					between, victim := r.watch("node-b"), r.watch("pod-b1")
					conn, err := r.NS("pod-a1").DialFrom(r.Context(limit), "udp", netip.AddrPort{},
						netip.AddrPortFrom(r.Addr("node-b", topo.V4), packet.GenevePort))
					Expect(err).NotTo(HaveOccurred())
					defer conn.Close()
					forged := r.forged("pod-b1")
					for range 3 {
						_, err := conn.Write(forged)
						Expect(err).NotTo(HaveOccurred())
					}
					Eventually(r.Drops).WithTimeout(require.Within(5 * time.Second)).Should(Equal(map[string]uint64{"node-a forged-tunnel": 3}))
					Expect(between.stop()).To(BeEmpty())
					Expect(victim.stop()).To(BeEmpty())
				})
			}
		})
	}
})

// forged is the payload of a UDP datagram that is our tunnel's forward packet to the pod.
func (r rig) forged(pod string) []byte {
	client, front := r.from(40000), r.front(aToB, web)
	whole := packet.Build(packet.IP("192.0.2.1", "192.0.2.2"), packet.Outer(50000),
		packet.Forward(netip.AddrPortFrom(r.Addr(pod, topo.V4), target(web)).String()),
		packet.IP(client.Addr().String(), front.Addr().String()), packet.TCP(client.Port(), front.Port()).Flags("S"))
	return whole[20+8:] // behind the outer IPv4 and UDP headers
}

// masquerade has the node give its own address to what the pod sends, as a CNI does for traffic that leaves the
// cluster.
func (r rig) masquerade(node, pod string) {
	GinkgoHelper()
	rule := exec.Command("iptables", "-w", "-t", "nat", "-A", "POSTROUTING", "-s", r.Addr(pod, topo.V4).String(), "-j", "MASQUERADE")
	process, err := r.NS(node).Start(rule)
	Expect(err).NotTo(HaveOccurred())
	Expect(process.Wait()).To(Succeed(), "%s", rule)
}

// wire is what passes eth0 of a host or pod.
type wire struct{ *watch.Watch }

func (r rig) watch(host string) wire {
	GinkgoHelper()
	w, err := watch.Start(r.Topology, host, "eth0")
	Expect(err).NotTo(HaveOccurred())
	return wire{w}
}

// sighting is one IPv4 packet.
type sighting struct {
	gopacket.Packet
	source, target netip.AddrPort // of the outermost headers; the port is 0 where there is none
}

// stop ends the watch and returns the IPv4 packets.
func (w wire) stop() []sighting {
	GinkgoHelper()
	packets, err := w.Packets()
	Expect(err).NotTo(HaveOccurred())
	var seen []sighting
	for _, p := range packets {
		source, target, ok := watch.Ends(p)
		if !ok || !source.Is4() { // kernels say something in IPv6 now and then
			continue
		}
		var sport, dport uint16
		if transport := p.TransportLayer(); transport != nil {
			flow := transport.TransportFlow()
			sport, dport = binary.BigEndian.Uint16(flow.Src().Raw()), binary.BigEndian.Uint16(flow.Dst().Raw())
		}
		seen = append(seen, sighting{p, netip.AddrPortFrom(source, sport), netip.AddrPortFrom(target, dport)})
	}
	return seen
}

// tcp is the outermost TCP header; nil if there is none.
func (s sighting) tcp() *layers.TCP {
	tcp, _ := s.TransportLayer().(*layers.TCP)
	return tcp
}

// vni is the network identifier of a Geneve packet; 0 if it is none.
func (s sighting) vni() uint32 {
	if geneve, ok := s.Layer(layers.LayerTypeGeneve).(*layers.Geneve); ok {
		return geneve.VNI
	}
	return 0
}

// mss is the maximum segment size that the SYN or SYN-ACK announces.
func mss(seen []sighting, kind string) int {
	GinkgoHelper()
	for _, s := range seen {
		if tcp := s.tcp(); tcp != nil && tcp.SYN && tcp.ACK == (kind == "SYN-ACK") {
			size, announced := watch.MSS(s)
			Expect(announced).To(BeTrue(), s.String())
			return int(size)
		}
	}
	Fail("no " + kind)
	return 0
}
