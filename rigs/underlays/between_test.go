// SPDX-License-Identifier: Apache-2.0

package underlays_test

import (
	"fmt"
	"net/netip"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/fronts"
	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/topo"
)

// wireGuardMTU is what wg(8)'s tools choose: 1500 less an outer IPv6 header and WireGuard's own bytes.
const wireGuardMTU = 1420

// overTunnel is two nodes on a LAN that know each other by addresses on a tunnel between them.
func overTunnel(tunnel topo.Tunnel, families topo.Families) topo.Plan {
	plan := topo.TwoNodes(topo.Options{})
	plan.Title = fmt.Sprintf("two nodes that reach each other by %s", tunnel.Kind)
	tunnel.A = topo.End{Host: "node-a", Device: "tunnel0"}
	tunnel.B = topo.End{Host: "node-b", Device: "tunnel0"}
	for _, ends := range []struct {
		end  *topo.End
		addr []string
	}{
		{&tunnel.A, []string{"192.0.2.139/32", "2001:db8:b:0:8000::11/128"}},
		{&tunnel.B, []string{"192.0.2.140/32", "2001:db8:b:0:8000::12/128"}},
	} {
		for _, text := range ends.addr {
			if prefix := netip.MustParsePrefix(text); families.Has(prefix.Addr()) {
				ends.end.Addrs = append(ends.end.Addrs, prefix)
			}
		}
	}
	plan.Tunnels = []topo.Tunnel{tunnel}
	for _, ends := range [][2]topo.End{{tunnel.A, tunnel.B}, {tunnel.B, tunnel.A}} {
		host := plan.Host(ends[0].Host)
		for _, to := range ends[1].Addrs {
			host.Routes = append(host.Routes, topo.Route{To: to, Device: ends[0].Device})
		}
	}
	return plan
}

func wireGuard(outer topo.Families) topo.Plan {
	return overTunnel(topo.Tunnel{Kind: topo.WireGuard, Outer: outer, MTU: wireGuardMTU}, topo.Dual)
}

func ipip() topo.Plan { return overTunnel(topo.Tunnel{Kind: topo.IPIP, Outer: topo.V4}, topo.V4) }

// tagged is two nodes and a client on a LAN on which all they say has a tag.
func tagged() topo.Plan {
	plan := topo.TwoNodes(topo.Options{})
	plan.Title = "a client and two nodes on a VLAN"
	for i := range plan.Hosts {
		host := &plan.Hosts[i]
		host.Ports[0].Device, host.Ports[0].VLAN = "eth0.5", 5
		for j := range host.Routes {
			host.Routes[j].Device = "eth0.5"
		}
	}
	return plan
}

var _ = Describe("the way between the nodes", Label("netns"), func() {
	It("is drawn in the README", func() {
		scene.CheckReadme(GinkgoT(), wireGuard(topo.V4))
		scene.CheckReadme(GinkgoT(), tagged())
	})

	for _, offload := range scene.Offloads {
		Context(offload.String(), func() {
			for _, outer := range scene.Families {
				It("is WireGuard over "+scene.FamilyName(outer)+", and nothing of the tunnel is in the clear outside of it", func() {
					r := newRig(wireGuard(outer), offload)
					r.serve()
					passed := r.tunnelsDuring([]string{"tunnel0", "eth0"}, func() { r.serves("eth0", scene.Families...) })
					Expect(passed[0]).To(BeNumerically(">", 2*load.Datagrams), "tunnels on the device of WireGuard")
					Expect(passed[1]).To(BeZero(), "tunnels on the LAN")
					r.clean()
					for _, family := range scene.Families {
						r.fits(wireGuardMTU, r.on("node-a", "eth0", family), family)
					}
				})
			}

			It("is IPIP", func() {
				r := newRig(ipip(), offload)
				r.serve()
				passed := r.tunnelsDuring([]string{"tunnel0"}, func() { r.serves("eth0", topo.V4) })
				Expect(passed[0]).To(BeNumerically(">", 2*load.Datagrams))
				r.clean()
				const ipipMTU = 1480
				r.fits(ipipMTU, r.on("node-a", "eth0", topo.V4), topo.V4)
			})

			It("is a VLAN, and so is the client's way", func() {
				topo.NeedDevice(GinkgoT(), topo.VLAN)
				r := newRig(tagged(), offload)
				r.serve()
				passed := r.tunnelsDuring([]string{"eth0.5"}, func() { r.serves("eth0.5", scene.Families...) })
				Expect(passed[0]).To(BeNumerically(">", 2*load.Datagrams))
				r.clean()
				for _, family := range scene.Families {
					r.fits(topo.DefaultMTU, r.on("node-a", "eth0.5", family), family)
				}
			})
		})
	}

	It("is a WireGuard device that was deleted and came back, and is served again in seconds", func() {
		r := newRig(wireGuard(topo.V4), true)
		r.serve()
		r.serves("eth0", topo.V4)
		Expect(r.Recreate("node-a", "tunnel0")).To(Succeed())
		Eventually(func() error {
			at := r.on("node-a", "eth0", topo.V4)
			return fronts.Try(r.Context(limit), r.Topology, "client", at, "pod-b1", fronts.Load{Datagrams: 10, Patience: time.Second})
		}).WithTimeout(require.Within(5 * time.Second)).WithPolling(100 * time.Millisecond).Should(Succeed())
		r.serves("eth0", scene.Families...)
	})
})
