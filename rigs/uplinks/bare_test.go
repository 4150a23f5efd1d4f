// SPDX-License-Identifier: Apache-2.0

package uplinks_test

import (
	"net/netip"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/beep"
	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/topo"
)

var _ = Describe("an uplink without a link layer", Label("netns"), func() {
	for _, offload := range scene.Offloads {
		Context(offload.String(), func() {
			It("is the way of a client, to a pod here and to one behind an Ethernet tunnel", func() {
				r := newRig(topo.L3Uplink(topo.Options{}), offload, beep.Options{})
				for _, family := range families {
					client := r.Addr("client-2", family)
					astray, right := r.watching("node-a", "eth0"), r.watching("node-a", "tun0")
					r.serves("client-2", r.on("node-a", "tun0", family))
					_, to, tunnels := passed(astray, client)
					Expect(to).To(BeZero(), "answers to client-2 that left through eth0")
					Expect(tunnels).To(BeNumerically(">", 2*load.Datagrams))
					from, to, _ := passed(right, client)
					Expect(from).To(BeNumerically(">", load.Datagrams))
					Expect(to).To(BeNumerically(">", load.Datagrams))
				}
				r.clean()
			})

			It("carries the tunnel for a client on Ethernet, whichever node it dials", func() {
				r := newRig(tunnelOverTun(), offload, beep.Options{})
				for _, family := range families {
					underlay := r.watching("node-a", "tun0")
					r.serves("client", r.Addr("node-a", family))
					r.serves("client", r.Addr("node-b", family))
					_, _, tunnels := passed(underlay, r.Addr("client", family))
					Expect(tunnels).To(BeNumerically(">", 2*2*load.Datagrams), "the tunnel passes tun0 both ways")
				}
				r.clean()
			})

			It("is all there is: of the client and of the tunnel", func() {
				r := newRig(tunOnly(), offload, beep.Options{})
				for _, family := range families {
					r.serves("client", r.Addr("node-a", family))
					r.serves("client", r.Addr("node-b", family))
				}
				r.clean()
			})
		})
	}
})

// tunnelOverTun is the client and node-a on a LAN, and node-b behind node-a on an L3-only wire. The client reaches
// node-b by node-a, which forwards as a router does.
func tunnelOverTun() topo.Plan {
	plan := topo.TwoNodes(topo.Options{})
	plan.Title = "a client and node-a on a LAN, and node-b behind node-a on an L3-only wire"
	behindNodeA(&plan)
	client := plan.Host("client")
	for _, family := range families {
		far := plan.Addr("node-b", family)
		client.Routes = append(client.Routes, topo.Route{To: netip.PrefixFrom(far, far.BitLen()), Via: plan.Addr("node-a", family)})
	}
	return plan
}

// tunOnly is tunnelOverTun without a LAN: the client, too, is on an L3-only wire.
func tunOnly() topo.Plan {
	plan := topo.TwoNodes(topo.Options{})
	plan.Title = "a client, node-a and node-b in a row, on L3-only wires"
	client, nodeA := plan.Host("client"), plan.Host("node-a")
	near := topo.End{Host: "node-a", Device: "tun1", Addrs: hostPrefixes(nodeA.Ports[0].Addrs)}
	wire := topo.Wire{L3: true, A: topo.End{Host: "client", Device: "tun0", Addrs: hostPrefixes(client.Ports[0].Addrs)}, B: near}
	for i := range client.Routes {
		client.Routes[i].Device = "tun0"
	}
	for i := range nodeA.Routes {
		nodeA.Routes[i].Device = "tun1"
	}
	client.Ports, nodeA.Ports, plan.LANs = nil, nil, nil
	plan.Wires = append(plan.Wires, wire)
	behindNodeA(&plan)
	return plan
}

// tunAddrs are what node-a has on the wire to node-b. On a device without an IPv4 address even a loose rp_filter drops
// every source that another device leads to (Linux, fib_validate_source), as the client's is when it leaves the tunnel.
var tunAddrs = []netip.Prefix{netip.MustParsePrefix("192.0.2.139/32"), netip.MustParsePrefix("2001:db8:b:0:8000::11/128")}

// behindNodeA takes node-b off its LAN and joins it to node-a by an L3-only wire, over which all its routes lead.
func behindNodeA(plan *topo.Plan) {
	nodeA, nodeB := plan.Host("node-a"), plan.Host("node-b")
	addrs := hostPrefixes(nodeB.Ports[0].Addrs)
	nodeB.Ports, nodeB.Routes = nil, nil
	plan.Wires = append(plan.Wires, topo.Wire{
		L3: true,
		A:  topo.End{Host: "node-a", Device: "tun0", Addrs: tunAddrs},
		B:  topo.End{Host: "node-b", Device: "tun0", Addrs: addrs},
	})
	for _, addr := range addrs {
		nodeA.Routes = append(nodeA.Routes, topo.Route{To: addr, Device: "tun0"})
		everything := topo.DefaultVia(addr.Addr()).To
		nodeB.Routes = append(nodeB.Routes, topo.Route{To: everything, Device: "tun0"})
	}
}

// hostPrefixes are the addresses alone, without their networks.
func hostPrefixes(prefixes []netip.Prefix) []netip.Prefix {
	var alone []netip.Prefix
	for _, prefix := range prefixes {
		alone = append(alone, netip.PrefixFrom(prefix.Addr(), prefix.Addr().BitLen()))
	}
	return alone
}
