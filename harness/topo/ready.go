// SPDX-License-Identifier: Apache-2.0

package topo

import (
	"fmt"
	"net/netip"
)

// Options vary the ready topologies. The zero value is dual stack, one pod a node, DefaultMTU.
type Options struct {
	Pods     int      // pods a node; 0 is one
	Families Families // of clients, fronts and pods; 0 is Dual
	Underlay Families // by which nodes reach each other (OneLAN only); 0 is the same as Families
	MTU      int      // bytes, of every link but the pods'; 0 is DefaultMTU
	PodMTU   int      // bytes; 0 is DefaultMTU
}

// The test networks of this repository. Topologies that need two subnets of one split it in halves.
var (
	clients4 = netip.MustParsePrefix("198.51.100.0/24")
	clients6 = netip.MustParsePrefix("2001:db8:c::/64")
	nodes4   = netip.MustParsePrefix("192.0.2.0/24")
	nodes6   = netip.MustParsePrefix("2001:db8:b::/64")
	pods4    = netip.MustParsePrefix("10.42.0.0/16")
	pods6    = netip.MustParsePrefix("2001:db8:a::/64")
)

// The host part of addresses: gateways end in 1 and 2, clients in 10, node-a in 11, node-b in 12 and so on.
const (
	firstGateway  = 1
	secondGateway = 2
	clientNumber  = 10
	firstNode     = 11
)

// PathTable is the routing table in which TwoPaths keeps the way by gw-2, for a policy rule to point at.
const PathTable = 100

// TwoNodes is OneLAN with node-a and node-b.
func TwoNodes(o Options) Plan { return OneLAN(2, o) }

// ThreeNodes is OneLAN with node-a, node-b and node-c.
func ThreeNodes(o Options) Plan { return OneLAN(3, o) }

// OneLAN is one client and n nodes (node-a, node-b…, each with pods pod-a1, pod-a2…) on one LAN, each on eth0.
// Client and nodes have subnets of their own and on-link routes to each other's. A family that Families has and
// Underlay lacks works between client and nodes but not between nodes: there the node has a host address only.
func OneLAN(n int, o Options) Plan {
	o = o.orDefaults()
	const lan = "lan"
	plan := Plan{
		Title: fmt.Sprintf("one client and %d nodes on one LAN", n),
		LANs:  []LAN{{Name: lan, MTU: o.MTU}},
		Hosts: []Host{{
			Name: "client", Role: Client,
			Ports:  []Port{{Device: "eth0", LAN: lan, Addrs: o.addrs(clients4, clients6, clientNumber)}},
			Routes: onLink(o.Families, nodes4, nodes6, "eth0"),
		}},
	}
	for i := range n {
		var addrs []netip.Prefix
		for _, subnet := range pick(o.Families|o.Underlay, nodes4, nodes6) {
			addr := at(subnet, firstNode+i)
			if !o.Underlay.Has(addr.Addr()) {
				addr = netip.PrefixFrom(addr.Addr(), addr.Addr().BitLen())
			}
			addrs = append(addrs, addr)
		}
		plan.addNode(i, o, Host{
			Ports:  []Port{{Device: "eth0", LAN: lan, Addrs: addrs}},
			Routes: onLink(o.Families, clients4, clients6, "eth0"),
		})
	}
	return plan
}

// BehindRouter is one client behind a router, and n nodes on the router's other LAN with their default route
// through it.
func BehindRouter(n int, o Options) Plan {
	o = o.orDefaults()
	plan := Plan{
		Title: fmt.Sprintf("one client behind a router, and %d nodes", n),
		LANs:  []LAN{{Name: "clients", MTU: o.MTU}, {Name: "nodes", MTU: o.MTU}},
		Hosts: []Host{{
			Name: "client", Role: Client,
			Ports:  []Port{{Device: "eth0", LAN: "clients", Addrs: o.addrs(clients4, clients6, clientNumber)}},
			Routes: o.defaults(clients4, clients6, firstGateway),
		}, {
			Name: "router", Role: Router,
			Ports: []Port{
				{Device: "eth0", LAN: "clients", Addrs: o.addrs(clients4, clients6, firstGateway)},
				{Device: "eth1", LAN: "nodes", Addrs: o.addrs(nodes4, nodes6, firstGateway)},
			},
		}},
	}
	for i := range n {
		plan.addNode(i, o, Host{
			Ports:  []Port{{Device: "eth0", LAN: "nodes", Addrs: o.addrs(nodes4, nodes6, firstNode+i)}},
			Routes: o.defaults(nodes4, nodes6, firstGateway),
		})
	}
	return plan
}

// TwoUplinks is n nodes with two NICs. On eth0 (lan-1) is the default route, by a router that has client-1
// behind it. On eth1 (lan-2) is client-2, to which no node has a route but the default one, which leads astray:
// the router does not know client-2 and says so (ICMP unreachable). The nodes' addresses are in the lower
// halves of the test networks on lan-1 and in the upper halves on lan-2.
func TwoUplinks(n int, o Options) Plan {
	o = o.orDefaults()
	plan := twoUplinks(o, fmt.Sprintf("%d nodes with two uplinks", n))
	plan.LANs = append(plan.LANs, LAN{Name: "lan-2", MTU: o.MTU})
	client4, client6 := upper(clients4), upper(clients6)
	plan.Hosts = append(plan.Hosts, Host{
		Name: "client-2", Role: Client,
		Ports:  []Port{{Device: "eth0", LAN: "lan-2", Addrs: o.addrs(client4, client6, clientNumber)}},
		Routes: onLink(o.Families, upper(nodes4), upper(nodes6), "eth0"),
	})
	for i := range n {
		plan.addNode(i, o, Host{
			Ports: []Port{
				{Device: "eth0", LAN: "lan-1", Addrs: o.addrs(lower(nodes4), lower(nodes6), firstNode+i)},
				{Device: "eth1", LAN: "lan-2", Addrs: o.addrs(upper(nodes4), upper(nodes6), firstNode+i)},
			},
			Routes: o.defaults(lower(nodes4), lower(nodes6), firstGateway),
		})
	}
	return plan
}

// L3Uplink is TwoUplinks with two nodes, but client-2 reaches only node-a, over an L3-only wire (tun0 on both
// sides, host addresses). As there, node-a has no route to client-2 but the default one through eth0.
func L3Uplink(o Options) Plan {
	o = o.orDefaults()
	plan := twoUplinks(o, "two nodes, one with an L3-only second uplink")
	plan.Hosts = append(plan.Hosts, Host{
		Name: "client-2", Role: Client, Routes: onLink(o.Families, upper(nodes4), upper(nodes6), "tun0"),
	})
	for i := range 2 {
		plan.addNode(i, o, Host{
			Ports:  []Port{{Device: "eth0", LAN: "lan-1", Addrs: o.addrs(lower(nodes4), lower(nodes6), firstNode+i)}},
			Routes: o.defaults(lower(nodes4), lower(nodes6), firstGateway),
		})
	}
	plan.Wires = append(plan.Wires, Wire{
		A:   End{Host: "node-a", Device: "tun0", Addrs: hostAddrs(o.addrs(upper(nodes4), upper(nodes6), firstNode))},
		B:   End{Host: "client-2", Device: "tun0", Addrs: hostAddrs(o.addrs(upper(clients4), upper(clients6), clientNumber))},
		MTU: o.MTU, L3: true,
	})
	return plan
}

// twoUplinks is the first uplink's side: lan-1 with the router, and client-1 behind it.
func twoUplinks(o Options, title string) Plan {
	client4, client6 := lower(clients4), lower(clients6)
	return Plan{
		Title: title,
		LANs:  []LAN{{Name: "lan-1", MTU: o.MTU}},
		Hosts: []Host{
			{Name: "client-1", Role: Client, Routes: o.defaults(client4, client6, firstGateway)},
			{Name: "router", Role: Router, Ports: []Port{
				{Device: "eth0", LAN: "lan-1", Addrs: o.addrs(lower(nodes4), lower(nodes6), firstGateway)},
			}},
		},
		Wires: []Wire{{
			A:   End{Host: "client-1", Device: "eth0", Addrs: o.addrs(client4, client6, clientNumber)},
			B:   End{Host: "router", Device: "eth1", Addrs: o.addrs(client4, client6, firstGateway)},
			MTU: o.MTU,
		}},
	}
}

// TwoPaths is the client and node-a on lan-a, node-b on lan-b, and two gateways gw-1 and gw-2 that each join the
// LANs (eth0 on lan-a, eth1 on lan-b). The main tables of all hosts lead by gw-1. Table PathTable of both nodes
// leads to the other node's LAN by gw-2, so that a route change or a policy rule moves the tunnel.
func TwoPaths(o Options) Plan {
	o = o.orDefaults()
	near4, near6, far4, far6 := lower(nodes4), lower(nodes6), upper(nodes4), upper(nodes6)
	plan := Plan{
		Title: "two nodes that reach each other by either of two gateways",
		LANs:  []LAN{{Name: "lan-a", MTU: o.MTU}, {Name: "lan-b", MTU: o.MTU}},
		Hosts: []Host{{
			Name: "client", Role: Client,
			Ports: []Port{{Device: "eth0", LAN: "lan-a", Addrs: o.addrs(clients4, clients6, clientNumber)}},
			Routes: append(onLink(o.Families, near4, near6, "eth0"),
				o.via(far4, far6, near4, near6, firstGateway)...),
		}},
	}
	plan.addNode(0, o, Host{
		Ports: []Port{{Device: "eth0", LAN: "lan-a", Addrs: o.addrs(near4, near6, firstNode)}},
		Routes: append(append(onLink(o.Families, clients4, clients6, "eth0"),
			o.via(far4, far6, near4, near6, firstGateway)...),
			inTable(PathTable, o.via(far4, far6, near4, near6, secondGateway))...),
	})
	for i, name := range []string{"gw-1", "gw-2"} {
		plan.Hosts = append(plan.Hosts, Host{
			Name: name, Role: Router,
			Ports: []Port{
				{Device: "eth0", LAN: "lan-a", Addrs: o.addrs(near4, near6, firstGateway+i)},
				{Device: "eth1", LAN: "lan-b", Addrs: o.addrs(far4, far6, firstGateway+i)},
			},
			Routes: onLink(o.Families, clients4, clients6, "eth0"),
		})
	}
	plan.addNode(1, o, Host{
		Ports: []Port{{Device: "eth0", LAN: "lan-b", Addrs: o.addrs(far4, far6, firstNode+1)}},
		Routes: append(append(o.via(clients4, clients6, far4, far6, firstGateway),
			o.via(near4, near6, far4, far6, firstGateway)...),
			inTable(PathTable, o.via(near4, near6, far4, far6, secondGateway))...),
	})
	return plan
}

// addNode appends the i-th node, named by letter, and its pods.
func (p *Plan) addNode(i int, o Options, host Host) {
	letter := string(rune('a' + i))
	host.Name, host.Role = "node-"+letter, Node
	p.Hosts = append(p.Hosts, host)
	for number := 1; number <= o.Pods; number++ {
		var addrs []netip.Addr
		for _, subnet := range pick(o.Families, pods4, pods6) {
			addrs = append(addrs, at(subnet, (i+1)<<8|firstNode-1+number).Addr())
		}
		p.Pods = append(p.Pods, Pod{
			Name: fmt.Sprintf("pod-%s%d", letter, number), Node: host.Name, Addrs: addrs, MTU: o.PodMTU,
		})
	}
}

func (o Options) orDefaults() Options {
	if o.Pods == 0 {
		o.Pods = 1
	}
	if o.Families == 0 {
		o.Families = Dual
	}
	if o.Underlay == 0 {
		o.Underlay = o.Families
	}
	return o
}

// addrs are the addresses of one number in a v4 and a v6 subnet, with the subnets' lengths.
func (o Options) addrs(subnet4, subnet6 netip.Prefix, number int) []netip.Prefix {
	var addrs []netip.Prefix
	for _, subnet := range pick(o.Families, subnet4, subnet6) {
		addrs = append(addrs, at(subnet, number))
	}
	return addrs
}

// defaults are the default routes by a gateway's number in its subnets.
func (o Options) defaults(subnet4, subnet6 netip.Prefix, gateway int) []Route {
	var routes []Route
	for _, addr := range o.addrs(subnet4, subnet6, gateway) {
		routes = append(routes, DefaultVia(addr.Addr()))
	}
	return routes
}

// via are the routes to a pair of networks by a gateway's number in its subnets.
func (o Options) via(to4, to6, subnet4, subnet6 netip.Prefix, gateway int) []Route {
	routes := o.defaults(subnet4, subnet6, gateway)
	for i, to := range pick(o.Families, to4, to6) {
		routes[i].To = to
	}
	return routes
}

func inTable(table int, routes []Route) []Route {
	for i := range routes {
		routes[i].Table = table
	}
	return routes
}

func onLink(families Families, to4, to6 netip.Prefix, device string) []Route {
	var routes []Route
	for _, to := range pick(families, to4, to6) {
		routes = append(routes, Route{To: to, Device: device})
	}
	return routes
}

func pick(families Families, prefix4, prefix6 netip.Prefix) []netip.Prefix {
	var picked []netip.Prefix
	for _, prefix := range []netip.Prefix{prefix4, prefix6} {
		if families.Has(prefix.Addr()) {
			picked = append(picked, prefix)
		}
	}
	return picked
}

// at is the address of a number below 65536 in a subnet, with the subnet's length. In IPv6 the number is read as
// people write it: its decimal digits, a byte a group (2001:db8:a::1:11 is number 1<<8|11).
func at(subnet netip.Prefix, number int) netip.Prefix {
	bytes := subnet.Addr().AsSlice()
	last := len(bytes) - 1
	if subnet.Addr().Is4() {
		bytes[last] += byte(number)
		bytes[last-1] += byte(number >> 8)
	} else {
		bytes[last] = byte(number&0xff/10%10<<4 | number&0xff%10)
		bytes[last-1] = byte(number & 0xff / 100)
		bytes[last-2] = byte(number >> 8)
	}
	addr, _ := netip.AddrFromSlice(bytes)
	return netip.PrefixFrom(addr, subnet.Bits())
}

func hostAddrs(prefixes []netip.Prefix) []netip.Prefix {
	for i, prefix := range prefixes {
		prefixes[i] = netip.PrefixFrom(prefix.Addr(), prefix.Addr().BitLen())
	}
	return prefixes
}

// lower and upper are the halves of a network.
func lower(network netip.Prefix) netip.Prefix {
	return netip.PrefixFrom(network.Addr(), network.Bits()+1)
}

func upper(network netip.Prefix) netip.Prefix {
	bytes := network.Addr().AsSlice()
	bytes[network.Bits()/8] |= 0x80 >> (network.Bits() % 8)
	addr, _ := netip.AddrFromSlice(bytes)
	return netip.PrefixFrom(addr, network.Bits()+1)
}
