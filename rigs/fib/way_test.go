// SPDX-License-Identifier: Apache-2.0

package fib_test

import (
	"net"
	"net/netip"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/vishvananda/netlink"

	"github.com/beep-lb/beep/harness/fronts"
	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
)

var _ = Describe("the tunnel's way", Label("netns"), func() {
	for _, offload := range scene.Offloads {
		Context(offload.String(), func() {
			It("follows a route that changes, there and back on their own, and open connections go on", func() {
				r := newRig(offload)
				for _, family := range families {
					r.carried(family, "gw-1", "gw-1")
					Expect(r.ReplaceRoute("node-a", r.detour("node-a", family))).To(Succeed())
					r.carried(family, "gw-2", "gw-1")
					Expect(r.ReplaceRoute("node-b", r.detour("node-b", family))).To(Succeed())
					r.carried(family, "gw-2", "gw-2")
					Expect(r.ReplaceRoute("node-a", r.usual("node-a", family))).To(Succeed())
					r.carried(family, "gw-1", "gw-2")
				}
				r.clean()
			})

			It("follows a more specific route that comes and goes", func() {
				r := newRig(offload)
				for _, family := range families {
					host := r.detour("node-a", family)
					host.To = netip.PrefixFrom(r.Addr("node-b", family), r.Addr("node-b", family).BitLen())
					Expect(r.ReplaceRoute("node-a", host)).To(Succeed())
					r.carried(family, "gw-2", "gw-1")
					Expect(r.DeleteRoute("node-a", host)).To(Succeed())
					r.carried(family, "gw-1", "gw-1")
				}
				r.clean()
			})

			It("changes in the middle of a transfer, which arrives whole", func() {
				r := newRig(offload)
				for _, family := range families {
					conn, err := r.NS("client").DialFrom(r.Context(limit), "tcp", netip.AddrPort{}, r.front(family, fronts.Stream))
					Expect(err).NotTo(HaveOccurred())
					slow := scene.NewBrake(conn, 20<<20)
					done := make(chan error)
					go func() {
						_, err := traffic.ExchangeOn(r.Context(limit), slow, 16<<20, 16<<20)
						done <- err
					}()
					moved := int64(0)
					for i := range 8 {
						Eventually(slow.Moved, limit).Should(BeNumerically(">", moved), "the transfer is under way")
						moved = slow.Moved()
						for _, node := range []string{"node-a", "node-b"} {
							route := r.usual(node, family)
							if i%2 == 0 {
								route = r.detour(node, family)
							}
							Expect(r.ReplaceRoute(node, route)).To(Succeed())
						}
					}
					slow.Release()
					Expect(<-done).To(Succeed())
				}
				r.clean()
			})

			for name, rule := range map[string]func(topo.Route, netip.Addr) *netlink.Rule{
				"to the peer's network":       func(route topo.Route, _ netip.Addr) *netlink.Rule { return &netlink.Rule{Dst: ipNet(route.To)} },
				"from its own tunnel address": func(_ topo.Route, own netip.Addr) *netlink.Rule { return &netlink.Rule{Src: ipNet(host(own))} },
				"of what the node itself sends": func(route topo.Route, _ netip.Addr) *netlink.Rule {
					return &netlink.Rule{Dst: ipNet(route.To), IifName: "lo"}
				},
			} {
				It("follows a policy rule "+name, func() {
					r := newRig(offload)
					for _, family := range families {
						wanted := rule(r.detour("node-a", family), r.Addr("node-a", family))
						r.addRule("node-a", wanted, family)
						r.carried(family, "gw-2", "gw-1")
						Expect(r.NS("node-a").Netlink().RuleDel(wanted)).To(Succeed())
						r.carried(family, "gw-1", "gw-1")
					}
					r.clean()
				})
			}

			It("takes a next hop of the other family: IPv4 by a gateway that has an IPv6 address", func() {
				r := newRig(offload)
				nl := r.NS("node-a").Netlink()
				eth0, err := nl.LinkByName("eth0")
				Expect(err).NotTo(HaveOccurred())
				Expect(nl.RouteReplace(&netlink.Route{
					LinkIndex: eth0.Attrs().Index, Dst: ipNet(r.detour("node-a", topo.V4).To),
					Via: &netlink.Via{AddrFamily: netlink.FAMILY_V6, Addr: r.detour("node-a", topo.V6).Via.AsSlice()},
				})).To(Succeed())
				r.carried(topo.V4, "gw-2", "gw-1")
				r.clean()
			})
		})
	}
})

// addRule adds a rule in front of the main table, which leads to topo.PathTable.
func (r rig) addRule(node string, rule *netlink.Rule, family topo.Families) {
	GinkgoHelper()
	const priority = 1000
	wanted := netlink.NewRule()
	wanted.Src, wanted.Dst, wanted.IifName = rule.Src, rule.Dst, rule.IifName
	wanted.Priority, wanted.Table, wanted.Family = priority, topo.PathTable, netlink.FAMILY_V4
	if family == topo.V6 {
		wanted.Family = netlink.FAMILY_V6
	}
	*rule = *wanted
	Expect(r.NS(node).Netlink().RuleAdd(rule)).To(Succeed())
}

func host(addr netip.Addr) netip.Prefix { return netip.PrefixFrom(addr, addr.BitLen()) }

func ipNet(prefix netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: prefix.Addr().AsSlice(), Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen())}
}
