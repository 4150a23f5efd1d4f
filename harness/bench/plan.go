// SPDX-License-Identifier: Apache-2.0

// Package bench measures what beep costs beside kube-proxy and beside no load balancer at all: networks that differ in nothing
// else carry the same packets in turn, and a record in Go's benchmark format says what each of them took. Invariant: a figure
// is written down only if all of its work was done, as counted by the pod, with the source address that this way must show.
package bench

import (
	"net/netip"

	"github.com/beep-lb/beep/harness/kube"
	"github.com/beep-lb/beep/harness/topo"
)

// The names of a plan's hosts and pods; those of the nodes follow the name of the stand, as all stands share an API server.
const (
	client = "client"
	podA   = "pod-a"
	podB   = "pod-b"
)

func nodeA(stand string) string { return stand + "-a" }

func nodeB(stand string) string { return stand + "-b" }

// The addresses: clients dial front, and the nodes reach each other by under.
var (
	clientAddrs = prefixes("198.51.100.10/24", "2001:db8:c::10/64")
	frontA      = prefixes("192.0.2.11/25", "2001:db8:b::11/65")
	underA      = prefixes("192.0.2.139/25", "2001:db8:b:0:8000::11/65")
	underB      = prefixes("192.0.2.140/25", "2001:db8:b:0:8000::12/65")
	podsA       = addresses("10.42.1.2", "2001:db8:a::1:2")
	podsB       = addresses("10.42.2.2", "2001:db8:a::2:2")
)

func prefixes(texts ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

func addresses(texts ...string) []netip.Addr {
	var all []netip.Addr
	for _, text := range texts {
		all = append(all, netip.MustParseAddr(text))
	}
	return all
}

// Plan is the network of one stand: a client on a cable to node-a, that on another one to node-b, and a pod on each node. Both ways
// between client and node-b lead over node-a whatever balances them, so that what a balancer adds is no way more; and node-a has
// a card for each side, since a router that sends packets back where they came from tries to tell their sender of a shorter way,
// which nobody can forbid it in IPv6. There is no bridge: it would cost every variant the same, and more than the balancers do.
func Plan(stand string) topo.Plan {
	a, b := nodeA(stand), nodeB(stand)
	plan := topo.Plan{
		Title: "a client, the node that it dials, and a node behind that one",
		Hosts: []topo.Host{{Name: client, Role: topo.Client}, {Name: a, Role: topo.Node}, {Name: b, Role: topo.Node}},
		Wires: []topo.Wire{
			{A: topo.End{Host: client, Device: "eth0", Addrs: clientAddrs}, B: topo.End{Host: a, Device: "eth0", Addrs: frontA}},
			{A: topo.End{Host: a, Device: "eth1", Addrs: underA}, B: topo.End{Host: b, Device: "eth0", Addrs: underB}},
		},
		Pods: []topo.Pod{{Name: podA, Node: a, Addrs: podsA}, {Name: podB, Node: b, Addrs: podsB}},
	}
	behindB := kube.PodCIDRsOf(kube.NodeOf(&plan, b))
	for i := range frontA {
		plan.Host(client).Routes = append(plan.Host(client).Routes,
			topo.Route{To: frontA[i].Masked(), Device: "eth0"}, topo.DefaultVia(frontA[i].Addr()))
		plan.Host(a).Routes = append(plan.Host(a).Routes,
			topo.Route{To: clientAddrs[i].Masked(), Device: "eth0"}, topo.Route{To: behindB[i], Via: underB[i].Addr()})
		plan.Host(b).Routes = append(plan.Host(b).Routes, topo.DefaultVia(underA[i].Addr()))
	}
	return plan
}
