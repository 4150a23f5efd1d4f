// SPDX-License-Identifier: Apache-2.0

package flood_test

import (
	"net/netip"
	"os/exec"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/packet"
	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
	"github.com/beep-lb/beep/harness/watch"
)

// forgery is a tunnel packet that must not be believed.
type forgery struct {
	what   string
	parts  []packet.Part // behind the Ethernet header
	reason string
}

var _ = Describe("a forged tunnel", Label("netns"), func() {
	for _, offload := range scene.Offloads {
		Context(offload.String(), func() {
			It("is dropped for what is wrong with it, and no pod sees it", func() {
				r := newRig(offload)
				wire, err := watch.Start(r.Topology, "pod-a1", "eth0")
				Expect(err).NotTo(HaveOccurred())
				raw, err := traffic.OpenRaw(r.NS("router"), "eth1")
				Expect(err).NotTo(HaveOccurred())
				want := map[string]uint64{}
				for _, forged := range r.forgeries() {
					By(forged.what)
					Expect(raw.Send(r.frame(forged.parts...))).To(Succeed())
					want["node-a "+forged.reason]++
					Eventually(r.Drops).WithTimeout(5 * time.Second).Should(Equal(want))
				}
				packets, err := wire.Packets()
				Expect(err).NotTo(HaveOccurred())
				for _, p := range packets { // neighbour discovery is all it may get
					Expect(p.TransportLayer()).To(BeNil(), p.String())
				}
				report("forged tunnels", "%v", want)
			})

			It("is stopped on its way out of a pod's node in fragments, too", func() {
				r := newRig(offload)
				rule := exec.Command("iptables", "-w", "-t", "nat", "-A", "POSTROUTING", "-o", "eth0",
					"-s", r.Addr("pod-a1", topo.V4).String(), "-j", "MASQUERADE")
				process, err := r.NS("node-a").Start(rule)
				Expect(err).NotTo(HaveOccurred())
				Expect(process.Wait()).To(Succeed(), "%s", rule)
				victim, err := watch.Start(r.Topology, "pod-b1", "eth0")
				Expect(err).NotTo(HaveOccurred())
				conn, err := r.NS("pod-a1").DialFrom(r.Context(limit), "udp", netip.AddrPort{},
					netip.AddrPortFrom(r.Addr("node-b", topo.V4), packet.GenevePort))
				Expect(err).NotTo(HaveOccurred())
				defer conn.Close()
				whole := packet.Build(r.tunnel("node-b", "node-a", r.toPod("pod-b1"), packet.TCP(1024, portRemote), packet.Payload(3000))...)
				_, err = conn.Write(whole[20+8:])
				Expect(err).NotTo(HaveOccurred())
				Eventually(r.Drops).WithTimeout(5 * time.Second).Should(Equal(map[string]uint64{"node-a forged-tunnel": 1}))
				packets, err := victim.Packets()
				Expect(err).NotTo(HaveOccurred())
				for _, p := range packets {
					Expect(p.TransportLayer()).To(BeNil(), p.String())
				}
			})
		})
	}
})

// tunnel is a packet from one node to another: a spoofed client's to the front of the sender.
func (r rig) tunnel(to, from string, header packet.GeneveHeader, inner ...packet.Part) []packet.Part {
	front := r.Addr(from, topo.V4).String()
	return append([]packet.Part{packet.IP(front, r.Addr(to, topo.V4).String()).DF(), packet.Outer(50000), header, packet.IP(from4, front)},
		inner...)
}

func (r rig) toPod(pod string) packet.GeneveHeader {
	return packet.Forward(netip.AddrPortFrom(r.Addr(pod, topo.V4), portPod).String())
}

// forgeries are tunnel packets for the pod here; all but those of the first kind seem to be from node-b, as a spoofer on
// the underlay can make them seem.
func (r rig) forgeries() (all []forgery) {
	syn, good := packet.TCP(1024, portLocal).Flags("S"), r.toPod("pod-a1")
	for _, name := range []string{"router", "client", "pod-b1", "node-a"} {
		source := r.Addr(name, topo.V4).String()
		parts := r.tunnel("node-a", "node-b", good, syn)
		parts[0] = packet.IP(source, r.Addr("node-a", topo.V4).String()).DF()
		all = append(all, forgery{"from " + source + ", which is no other node's", parts, "unknown-peer"})
	}
	for what, header := range map[string]packet.GeneveHeader{
		"of another version":                good.Version(1),
		"whose option is not said critical": good.Critical(false),
		"of the control kind":               good.OAM(),
		"of an unknown option":              good.Type(0x83),
		"whose option is too short":         good.BodyWords(4),
		"whose option is too long":          good.BodyWords(6),
		"whose options are too short":       good.OptionWords(5),
		"whose options are too long":        good.OptionWords(7),
		"whose option has reserved bits":    good.Reserved(1),
		"with a second option":              good.Option(0x0104, 1),
	} {
		all = append(all, forgery{what, r.tunnel("node-a", "node-b", header, syn), "tunnel-malformed"})
	}
	checked := r.tunnel("node-a", "node-b", good, syn)
	checked[1] = packet.Outer(50000).RightChecksum()
	all = append(all, forgery{"with a checksum, which no beep sends", checked, "tunnel-malformed"},
		forgery{"that holds a ping", r.tunnel("node-a", "node-b", good, packet.Echo(1, 1)), "tunnel-inner"},
		forgery{"that holds another family than it says", r.tunnel("node-a", "node-b", good.ProtocolType(0x86dd), syn), "tunnel-inner"},
		forgery{"that holds a packet longer than itself", append(r.tunnel("node-a", "node-b", good)[:3],
			packet.IP(from4, r.Addr("node-b", topo.V4).String()).Length(1400), syn), "tunnel-inner"})
	host := r.Addr("node-a", topo.V4)
	for _, target := range []netip.AddrPort{
		netip.AddrPortFrom(r.Addr("pod-a1", topo.V4), portPod+1),
		netip.AddrPortFrom(r.Addr("pod-b1", topo.V4), portPod),
		netip.AddrPortFrom(host, portHost),
		netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), 9962),
		netip.AddrPortFrom(r.Addr("pod-a1", topo.V6), portPod),
	} {
		all = append(all, forgery{"for " + target.String() + ", which is no pod's of this packet",
			r.tunnel("node-a", "node-b", packet.Forward(target.String()), syn), "unknown-target"})
	}
	return append(all, forgery{"that brings an answer to nobody", []packet.Part{
		packet.IP(r.Addr("node-b", topo.V4).String(), host.String()).DF(), packet.Outer(50000), packet.Return(),
		packet.IP("192.0.2.99", from4), packet.TCP(9, 1024).Flags("SA")}, "no-flow"})
}
