// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"net/netip"
	"slices"

	"github.com/beep-lb/beep/src/compile"
	"github.com/beep-lb/beep/src/model"
)

// Node is why a node is listed as it is.
type Node struct {
	Name string `json:"name"`
	// Listable says that nothing keeps the node out of all Services; else Why says what does.
	Listable bool  `json:"listable"`
	Why      []Why `json:"why"`

	InternalIPs []netip.Addr   `json:"internalIPs"`
	ExternalIPs []netip.Addr   `json:"externalIPs"`
	PodCIDRs    []netip.Prefix `json:"podCIDRs"`
	Zone        string         `json:"zone"`
	// Attached says that other nodes tunnel to it: its beep is known to be attached, or nobody knows of any.
	Attached bool `json:"attached"`

	// Lease is what the node says of itself; nil if it has none.
	Lease    *Lease        `json:"lease"`
	Services []NodeService `json:"services"`
}

// Lease is what a node says of itself.
type Lease struct {
	// AgeSeconds is how long ago it was renewed, if both nodes' clocks are right.
	AgeSeconds float64 `json:"ageSeconds"`
	// Addresses are those that it has fronts on.
	Addresses []netip.Addr `json:"addresses"`
	// Attached says that its datapath is, and that its maps were made as desired once.
	Attached bool `json:"attached"`
	// Left says that its controller was stopped in order.
	Left bool `json:"left"`
	// Refused are the Services that do not fit into its maps.
	Refused []string `json:"refused"`
}

// NodeService is what a Service lists of a node.
type NodeService struct {
	// Name is NAMESPACE/NAME.
	Name string `json:"name"`
	// Addresses are the node's that the Service lists, or should.
	Addresses []string `json:"addresses"`
	Why       []Why    `json:"why"`
}

func explainNode(facts Facts, name string) *Node {
	answer := &Node{Name: name, InternalIPs: []netip.Addr{}, ExternalIPs: []netip.Addr{}, PodCIDRs: []netip.Prefix{},
		Lease: leaseOf(facts.Said[name]), Services: []NodeService{}}
	_, reasons := compile.Datapath(facts.Snapshot, facts.Self)
	published, more := compile.Publication(facts.Snapshot, facts.Leases, facts.How, facts.Memory)
	reasons = append(reasons, more...)
	answer.Why = whys(reasons, func(r compile.Reason) bool { return r.Node == name && r.Service.Name == "" })
	node := nodeOf(facts, name)
	if node == nil {
		if len(answer.Why) == 0 { // compile looks for this controller's own Node alone
			answer.Why = []Why{whyOf(compile.Reason{Code: compile.NodeUnknown, Node: name})}
		}
		return answer
	}
	answer.InternalIPs = append(answer.InternalIPs, node.InternalIPs...)
	answer.ExternalIPs = append(answer.ExternalIPs, node.ExternalIPs...)
	answer.PodCIDRs = append(answer.PodCIDRs, node.PodCIDRs...)
	answer.Zone, answer.Attached = node.Zone, !node.Detached
	answer.Listable = !slices.ContainsFunc(more, func(r compile.Reason) bool {
		return r.Node == name && r.Service.Name == "" && r.Code != compile.MassLossHeld
	})
	ofService := compile.Unpublished(facts.Snapshot, facts.Leases, facts.How, facts.Memory,
		func(_ model.ObjectKey, of string) bool { return of == name })
	for _, status := range published.Statuses {
		s := NodeService{Name: status.Service.String(), Addresses: []string{}}
		for _, entry := range status.Ingress {
			if addr, err := netip.ParseAddr(entry.IP); err == nil && has(facts, node, addr.Unmap()) {
				s.Addresses = append(s.Addresses, entry.IP)
			}
		}
		s.Why = whys(ofService, func(r compile.Reason) bool { return r.Service == status.Service.ObjectKey })
		if answer.Listable && len(s.Addresses)+len(s.Why) == 0 {
			s.Why = []Why{{Text: "it is about the Service and not about this node", Remedy: "see `beep explain " + s.Name + "`"}}
		}
		answer.Services = append(answer.Services, s)
	}
	return answer
}

// has says whether the address is the node's.
func has(facts Facts, node *model.Node, addr netip.Addr) bool {
	return slices.Contains(node.InternalIPs, addr) || slices.Contains(node.ExternalIPs, addr) ||
		slices.ContainsFunc(facts.Leases, func(l *model.Lease) bool { return l.Node == node.Name && slices.Contains(l.Addresses, addr) })
}

func leaseOf(said Statement) *Lease {
	if said.Node == "" {
		return nil
	}
	lease := &Lease{AgeSeconds: said.Age.Round(100 * 1e6).Seconds(), Addresses: append([]netip.Addr{}, said.Addresses...),
		Attached: said.Attached, Left: said.Left, Refused: []string{}}
	for _, service := range said.Refused {
		lease.Refused = append(lease.Refused, service.String())
	}
	return lease
}
