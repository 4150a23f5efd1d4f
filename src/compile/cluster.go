// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"net/netip"
	"slices"

	"github.com/beep-lb/beep/src/model"
)

// cluster is a snapshot by name, as every node sees it alike.
type cluster struct {
	nodes map[string]*model.Node
	// slices are those of a Service, by name: also of Services that are not in the snapshot.
	slices map[model.ObjectKey][]*model.Slice
	// podCIDRs are Rules.PodCIDRs.
	podCIDRs []netip.Prefix
}

func newCluster(snapshot model.Snapshot, podCIDRs []netip.Prefix) cluster {
	c := cluster{
		nodes:    make(map[string]*model.Node, len(snapshot.Nodes)),
		slices:   make(map[model.ObjectKey][]*model.Slice, len(snapshot.Services)),
		podCIDRs: podCIDRs,
	}
	for _, node := range snapshot.Nodes {
		c.nodes[node.Name] = node
	}
	for _, slice := range snapshot.Slices {
		c.addSlice(slice)
	}
	return c
}

// addSlice adds a slice to its Service, if it has one. Those of a Service are in the order of their names.
func (c *cluster) addSlice(slice *model.Slice) {
	if slice.Service == "" {
		return
	}
	of := c.slices[serviceOf(slice)]
	at, _ := slices.BinarySearchFunc(of, slice, func(a, b *model.Slice) int { return a.Compare(b.ObjectKey) })
	c.slices[serviceOf(slice)] = slices.Insert(of, at, slice)
}

// removeSlice takes out what addSlice added.
func (c *cluster) removeSlice(slice *model.Slice) {
	of := c.slices[serviceOf(slice)]
	if of = slices.DeleteFunc(of, func(s *model.Slice) bool { return s == slice }); len(of) > 0 {
		c.slices[serviceOf(slice)] = of
	} else {
		delete(c.slices, serviceOf(slice))
	}
}

// underlay is a node's tunnel address of each family; the zero Addr is none.
type underlay struct{ v4, v6 netip.Addr }

// underlayOf takes the first InternalIP of each family; the Node may be nil.
func underlayOf(node *model.Node) underlay {
	if node == nil {
		return underlay{}
	}
	return underlay{first(node.InternalIPs, model.IPv4), first(node.InternalIPs, model.IPv6)}
}

// between is where a tunnel from a node to another ends: at its IPv4 address if both have one, whose header is the
// smaller, else at its IPv6 address; the zero Addr if they have no family in common. Both ends decide alike.
func between(from, to underlay) netip.Addr {
	switch {
	case from.v4.IsValid() && to.v4.IsValid():
		return to.v4
	case from.v6.IsValid():
		return to.v6
	}
	return netip.Addr{}
}

// underlay fills in this node's tunnel addresses and the peers that may send to it. Both addresses of a dual-stack
// peer are trusted by a dual-stack node, though it sends from one: flows that began before it had the other go on.
func (v *view) underlay(desired *model.Desired) {
	desired.Underlay4, desired.Underlay6 = v.tunnel.v4, v.tunnel.v6
	switch {
	case v.own == nil:
		v.note(Reason{Code: NodeUnknown, Node: v.self.Node})
	case v.tunnel == underlay{}:
		v.note(Reason{Code: NoUnderlay, Node: v.self.Node})
	}
	for name, node := range v.nodes {
		if name == v.self.Node {
			continue
		}
		peer := underlayOf(node)
		if !between(v.tunnel, peer).IsValid() {
			v.note(Reason{Code: PeerUnreachable, Node: name, Detail: v.self.Node})
			continue
		}
		for _, pair := range [][2]netip.Addr{{v.tunnel.v4, peer.v4}, {v.tunnel.v6, peer.v6}} {
			if own, addr := pair[0], pair[1]; own.IsValid() && addr.IsValid() && own != addr {
				desired.Peers = append(desired.Peers, addr)
			}
		}
	}
	slices.SortFunc(desired.Peers, netip.Addr.Compare)
	desired.Peers = slices.Compact(desired.Peers)
}

// Addresses are those that this node has fronts on, and says of itself in its Lease: its first InternalIP of each
// family, or the one that Self gives in its place, and its first ExternalIP of each, IPv4 before IPv6.
func Addresses(snapshot model.Snapshot, self Self) []netip.Addr {
	var own model.Node
	for _, node := range snapshot.Nodes {
		if node.Name == self.Node {
			own = *node
		}
	}
	var addrs []netip.Addr
	add := func(addr netip.Addr) {
		if addr.IsValid() && !slices.Contains(addrs, addr) {
			addrs = append(addrs, addr)
		}
	}
	for _, family := range []model.Family{model.IPv4, model.IPv6} {
		given, internal := first(self.NodeIPs, family), first(own.InternalIPs, family)
		if given.IsValid() {
			internal = given
		}
		add(internal)
	}
	for _, family := range []model.Family{model.IPv4, model.IPv6} {
		add(first(own.ExternalIPs, family))
	}
	return addrs
}

// first is the first unicast address of a family that is routed.
func first(addrs []netip.Addr, family model.Family) netip.Addr {
	for _, addr := range addrs {
		if model.FamilyOf(addr) == family && addr.IsGlobalUnicast() && addr.Zone() == "" {
			return addr
		}
	}
	return netip.Addr{}
}

func ofFamily(addrs []netip.Addr, family model.Family) []netip.Addr {
	var of []netip.Addr
	for _, addr := range addrs {
		if model.FamilyOf(addr) == family {
			of = append(of, addr)
		}
	}
	return of
}

// admits says whether an endpoint on the Node may have the address: a pod's, or the Node's own (hostNetwork).
func (c *cluster) admits(node *model.Node, addr netip.Addr) bool {
	return contains(node.PodCIDRs, addr) || contains(c.podCIDRs, addr) || owns(node, addr)
}

func contains(prefixes []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(addr) })
}

func owns(node *model.Node, addr netip.Addr) bool {
	return slices.Contains(node.InternalIPs, addr) || slices.Contains(node.ExternalIPs, addr)
}

// admitsHere is admits for this node, whose pod CIDRs an operator may give.
func (v *view) admitsHere(addr netip.Addr) bool {
	if slices.Contains(v.self.NodeIPs, addr) || v.own != nil && owns(v.own, addr) {
		return true
	}
	for _, prefix := range v.podCIDRs {
		if model.FamilyOf(prefix.Addr()) == model.FamilyOf(addr) {
			return contains(v.podCIDRs, addr)
		}
	}
	return v.own != nil && contains(v.own.PodCIDRs, addr)
}

// reach is the way to an endpoint: the peer that runs it, the zero Addr for this node, or why there is none. An
// endpoint that names no node is reached only if its address is certainly of this one.
func (v *view) reach(c candidate) (peer netip.Addr, code Code, detail string) {
	switch c.node {
	case "":
		if slices.Contains(v.self.NodeIPs, c.addr) || v.own != nil && (owns(v.own, c.addr) || contains(v.own.PodCIDRs, c.addr)) {
			return netip.Addr{}, none, ""
		}
		return netip.Addr{}, EndpointNoNode, ""
	case v.self.Node:
		if !v.admitsHere(c.addr) {
			return netip.Addr{}, EndpointOutside, c.node
		}
		return netip.Addr{}, none, ""
	}
	node, known := v.nodes[c.node]
	if !known {
		return netip.Addr{}, EndpointUnknownNode, c.node
	}
	if !v.admits(node, c.addr) {
		return netip.Addr{}, EndpointOutside, c.node
	}
	if peer = between(v.tunnel, underlayOf(node)); !peer.IsValid() {
		return netip.Addr{}, EndpointUnreachable, c.node
	}
	return peer, none, ""
}
