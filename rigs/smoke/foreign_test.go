// SPDX-License-Identifier: Apache-2.0

package smoke_test

import (
	"net"
	"net/netip"
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

var _ = Describe("what is not beep's on a node", Label("netns"), func() {
	for _, offload := range scene.Offloads {
		Context(offload.String(), func() {
			for _, family := range scene.Families {
				name := scene.FamilyName(family)
				It("passes untouched over "+name, func() {
					r := newRig(offload)
					By("an echo request to the node's address, which the host answers")
					r.ping(family)

					By("a server of the host, on a port that is no front's")
					host := r.front(family, 22)
					_, err := traffic.ServeHTTP(r.NS("node-a"), "host", host)
					Expect(err).NotTo(HaveOccurred())
					answer := r.get(r.from(family, 40000), host)
					Expect(answer).To(Equal(traffic.Answer{Server: "host", Client: r.from(family, 40000)}))
					echo := r.front(family, 123)
					_, err = traffic.ServeUDP(r.NS("node-a"), echo)
					Expect(err).NotTo(HaveOccurred())
					r.echo("client", echo, r.Addr("client", family))

					By("a port where nobody listens, which the host refuses")
					_, err = r.NS("client").DialFrom(r.Context(limit), "tcp", netip.AddrPort{}, r.front(family, 81))
					Expect(err).To(MatchError(ContainSubstring("connection refused")))

					By("connections that the node itself makes")
					outside := netip.AddrPortFrom(r.Addr("client", family), 8080)
					_, err = traffic.ServeHTTP(r.NS("client"), "outside", outside)
					Expect(err).NotTo(HaveOccurred())
					answer, err = traffic.Get(r.Context(limit), r.NS("node-a"), outside)
					Expect(err).NotTo(HaveOccurred())
					Expect(answer.Client.Addr()).To(Equal(r.Addr("node-a", family)))
					_, err = traffic.ServeUDP(r.NS("client"), outside)
					Expect(err).NotTo(HaveOccurred())
					r.echo("node-a", outside, r.Addr("node-a", family))

					By("connections that a pod makes")
					pod := r.Addr("pod-a1", family)
					Expect(r.ReplaceRoute("client", topo.Route{
						To: netip.PrefixFrom(pod, pod.BitLen()), Via: r.Addr("node-a", family)})).To(Succeed())
					answer, err = traffic.Get(r.Context(limit), r.NS("pod-a1"), outside)
					Expect(err).NotTo(HaveOccurred())
					Expect(answer.Client.Addr()).To(Equal(pod))

					Expect(r.Drops()).To(BeEmpty())
				})

				It("is not a tunnel from a stranger, which is dropped and counted, over "+name, func() {
					r := newRig(offload)
					wire, err := watch.Start(r.Topology, "pod-a1", "eth0")
					Expect(err).NotTo(HaveOccurred())
					target := netip.AddrPortFrom(r.Addr("pod-a1", family), web.TargetPort)
					client, node := r.Addr("client", family).String(), r.Addr("node-a", family).String()
					inner := []packet.Part{packet.IP(client, node), packet.TCP(40000, web.Port).Flags("S")}
					for range 3 {
						r.tunnel(family, packet.Outer(50000), packet.Forward(target.String()), inner...)
					}
					Eventually(r.Drops).WithTimeout(require.Within(5 * time.Second)).Should(Equal(map[string]uint64{"node-a unknown-peer": 3}))
					packets, err := wire.Packets()
					Expect(err).NotTo(HaveOccurred())
					for _, p := range packets { // neighbour discovery is all it may get
						Expect(p.TransportLayer()).To(BeNil(), p.String())
					}
				})

				It("is another system's Geneve, which the host gets, over "+name, func() {
					r := newRig(offload)
					socket, err := r.NS("node-a").ListenPacket(r.front(family, packet.GenevePort))
					Expect(err).NotTo(HaveOccurred())
					defer socket.Close()
					Expect(socket.SetReadDeadline(time.Now().Add(limit))).To(Succeed())
					client, node := r.Addr("client", family).String(), r.Addr("node-a", family).String()
					inner := []packet.Part{packet.IP(client, node), packet.TCP(40000, web.Port).Flags("S")}
					forward := packet.Forward(netip.AddrPortFrom(r.Addr("pod-a1", family), web.TargetPort).String())
					for _, header := range []packet.GeneveHeader{forward.VNI(4711), forward.Class(0x0104), packet.Geneve()} {
						// A socket takes no IPv6 datagram without a checksum unless told to.
						r.tunnel(family, packet.Outer(50000).RightChecksum(), header, inner...)
						_, from, err := socket.ReadFromUDPAddrPort(make([]byte, 1500))
						Expect(err).NotTo(HaveOccurred())
						Expect(from.Addr().Unmap()).To(Equal(r.Addr("client", family)))
					}
					Expect(r.Drops()).To(BeEmpty())
				})
			}
		})
	}
})

// echo sends some datagrams whose source the server must see.
func (r rig) echo(host string, at netip.AddrPort, source netip.Addr) {
	GinkgoHelper()
	tally, err := traffic.SendUDP(r.Context(limit), r.NS(host), at, traffic.Datagrams{Count: 20, Size: 1000, Patience: require.Within(time.Second)})
	Expect(err).NotTo(HaveOccurred())
	Expect(tally.Received).To(Equal(20), "%s", tally)
	for seen := range tally.Sources {
		Expect(seen.Addr()).To(Equal(source))
	}
}

// ping exchanges one echo request and reply with the node.
func (r rig) ping(family topo.Families) {
	GinkgoHelper()
	network, request, replyType := "ip4:icmp", gopacket.SerializableLayer(&layers.ICMPv4{
		TypeCode: layers.CreateICMPv4TypeCode(layers.ICMPv4TypeEchoRequest, 0), Id: 7, Seq: 1}), byte(layers.ICMPv4TypeEchoReply)
	if family == topo.V6 { // the kernel fills in the checksum of ICMPv6 (RFC 3542, section 3.1)
		network, request, replyType = "ip6:ipv6-icmp", gopacket.Payload{layers.ICMPv6TypeEchoRequest, 0, 0, 0, 0, 7, 0, 1}, layers.ICMPv6TypeEchoReply
	}
	bytes := gopacket.NewSerializeBuffer()
	Expect(gopacket.SerializeLayers(bytes, gopacket.SerializeOptions{ComputeChecksums: true}, request)).To(Succeed())
	var conn net.PacketConn
	Expect(r.NS("client").Do(func() (err error) {
		conn, err = net.ListenPacket(network, r.Addr("client", family).String())
		return err
	})).To(Succeed())
	defer conn.Close()
	Expect(conn.SetDeadline(time.Now().Add(limit))).To(Succeed())
	_, err := conn.WriteTo(bytes.Bytes(), &net.IPAddr{IP: r.Addr("node-a", family).AsSlice()})
	Expect(err).NotTo(HaveOccurred())
	for reply := make([]byte, 1500); ; { // neighbour discovery passes here too
		_, _, err := conn.ReadFrom(reply)
		Expect(err).NotTo(HaveOccurred(), "no echo reply")
		if reply[0] == replyType {
			return
		}
	}
}

// tunnel sends a tunnel packet from the client's own address, which is no peer's.
func (r rig) tunnel(family topo.Families, outer packet.UDPDatagram, header packet.GeneveHeader, inner ...packet.Part) {
	GinkgoHelper()
	mac := func(host string) string {
		link, err := r.NS(host).Netlink().LinkByName("eth0")
		Expect(err).NotTo(HaveOccurred())
		return link.Attrs().HardwareAddr.String()
	}
	parts := append([]packet.Part{packet.Eth(mac("client"), mac("node-a")),
		packet.IP(r.Addr("client", family).String(), r.Addr("node-a", family).String()).DF(),
		outer, header}, inner...)
	raw, err := traffic.OpenRaw(r.NS("client"), "eth0")
	Expect(err).NotTo(HaveOccurred())
	defer raw.Close()
	Expect(raw.Send(packet.Build(parts...))).To(Succeed())
}
