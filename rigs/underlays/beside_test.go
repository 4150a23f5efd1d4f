// SPDX-License-Identifier: Apache-2.0

package underlays_test

import (
	"net/netip"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/packet"
	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
)

// The ports of another system's servers, on its own device.
const (
	otherStream   = 9001
	otherDatagram = 9002
)

// other is another system's tunnel between the nodes, whose addresses are nobody else's.
func other(kind topo.TunnelKind) topo.Tunnel {
	return topo.Tunnel{
		Kind: kind, Outer: topo.V4, VNI: 4711,
		A: topo.End{Host: "node-a", Device: "other0", Addrs: []netip.Prefix{netip.MustParsePrefix("10.42.200.1/24")}},
		B: topo.End{Host: "node-b", Device: "other0", Addrs: []netip.Prefix{netip.MustParsePrefix("10.42.200.2/24")}},
	}
}

// carries expects another system's tunnel to carry TCP and UDP both ways.
func (r rig) carries(tunnel topo.Tunnel) {
	GinkgoHelper()
	for _, ends := range [][2]topo.End{{tunnel.A, tunnel.B}, {tunnel.B, tunnel.A}} {
		client, server := r.NS(ends[0].Host), ends[1].Addrs[0].Addr()
		got, err := traffic.Exchange(r.Context(limit), client, netip.AddrPortFrom(server, otherStream), load.Bytes, load.Bytes)
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Client.Addr()).To(Equal(ends[0].Addrs[0].Addr()))
		tally, err := traffic.SendUDP(r.Context(limit), client, netip.AddrPortFrom(server, otherDatagram),
			traffic.Datagrams{Count: load.Datagrams, Size: 1000, Patience: limit})
		Expect(err).NotTo(HaveOccurred())
		Expect(tally.Received).To(Equal(load.Datagrams), "%s", tally)
	}
}

// adds makes another system's tunnel with servers at both ends.
func (r rig) adds(tunnel topo.Tunnel) {
	GinkgoHelper()
	Expect(r.AddTunnel(tunnel)).To(Succeed())
	for _, end := range []topo.End{tunnel.A, tunnel.B} {
		addr := end.Addrs[0].Addr()
		_, err := traffic.ServeTCP(r.NS(end.Host), end.Host, netip.AddrPortFrom(addr, otherStream))
		Expect(err).NotTo(HaveOccurred())
		_, err = traffic.ServeUDP(r.NS(end.Host), netip.AddrPortFrom(addr, otherDatagram))
		Expect(err).NotTo(HaveOccurred())
	}
}

var _ = Describe("another system's device", Label("netns"), func() {
	for _, offload := range scene.Offloads {
		Context(offload.String(), func() {
			for _, first := range []bool{true, false} {
				name := "after beep"
				if first {
					name = "before beep"
				}
				It("is a geneve device on the same UDP port, made "+name+": each gets what is its own", func() {
					tunnel := other(topo.Geneve)
					topo.NeedDevice(GinkgoT(), string(tunnel.Kind))
					Expect(tunnel.VNI).NotTo(BeEquivalentTo(packet.DefaultVNI))
					r := newRig(topo.TwoNodes(topo.Options{}), offload)
					if first {
						r.adds(tunnel)
						r.carries(tunnel)
						r.serve()
					} else {
						r.serve()
						r.serves("eth0", topo.V4)
						r.adds(tunnel)
					}
					passed := r.tunnelsDuring([]string{tunnel.A.Device}, func() {
						r.carries(tunnel)
						r.serves("eth0", scene.Families...)
						r.carries(tunnel)
					})
					Expect(passed[0]).To(BeZero(), "beep's tunnels that the geneve device was given")
					r.clean()
				})
			}

			It("is an ipip device, as a CNI has between its nodes", func() {
				tunnel := other(topo.IPIP)
				topo.NeedDevice(GinkgoT(), string(tunnel.Kind))
				r := newRig(topo.TwoNodes(topo.Options{}), offload)
				r.adds(tunnel)
				r.serve()
				r.carries(tunnel)
				r.serves("eth0", scene.Families...)
				r.carries(tunnel)
				r.clean()
			})
		})
	}
})
