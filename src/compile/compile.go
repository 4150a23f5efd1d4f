// SPDX-License-Identifier: Apache-2.0

// Package compile turns a Snapshot into what one node's datapath should hold, what changed since the last one, and
// what every Service's status should list; and it says why something is left out. Invariant: it is pure, so the same
// objects in any order give the same answer on every node, and it sees no clock, client, map or logger.
package compile

import (
	"net/netip"
	"slices"

	"github.com/beep-lb/beep/src/model"
)

// Rules are what an operator configures alike on every node.
type Rules struct {
	// LoadBalancerClass is the class of the Services that are ours; empty takes those without a class.
	LoadBalancerClass string
	// ReservedPorts are --reserved-ports, NodePorts is the API server's nodePort range, and OwnPorts are those that
	// beep itself listens on. No front is ever on any of them.
	ReservedPorts, NodePorts, OwnPorts []PortRange
	// PodCIDRs are --pod-cidr; see Self.
	PodCIDRs []netip.Prefix
}

// Self is who this node is.
//
// An endpoint is admitted if its address is one of its own node's, or in a pod CIDR: that of its Node, or one of
// Rules.PodCIDRs, which on this node takes the place of the Node's of the same family.
type Self struct {
	Rules
	// Node is the name of this node's Node.
	Node string
	// NodeIPs are --node-ip: each takes the place of the Node's InternalIP of its family as an address of fronts. The
	// underlay keeps the Node's, which is what the peers know, unless it has none.
	NodeIPs []netip.Addr
}

// Datapath is what this node's maps should hold, all but the Seed, and why the rest is left out. Endpoints that are
// no longer ready stay in Targets as long as any slice names them, since the flows of a peer may be pinned to them.
func Datapath(snapshot model.Snapshot, self Self) (model.Desired, []Reason) {
	return new(Compiler).Datapath(snapshot, self)
}

// view is a snapshot as one node sees it.
type view struct {
	cluster
	self Self
	// own is this node's Node, nil if there is none.
	own *model.Node
	// addrs are those of fronts.
	addrs []netip.Addr
	// tunnel is this node's underlay address of each family.
	tunnel  underlay
	reasons []Reason
}

func newView(snapshot model.Snapshot, self Self) *view {
	v := &view{cluster: newCluster(snapshot, self.PodCIDRs), self: self, addrs: Addresses(snapshot, self)}
	v.own = v.nodes[self.Node]
	v.tunnel = underlayOf(v.own)
	if !v.tunnel.v4.IsValid() {
		v.tunnel.v4 = first(self.NodeIPs, model.IPv4)
	}
	if !v.tunnel.v6.IsValid() {
		v.tunnel.v6 = first(self.NodeIPs, model.IPv6)
	}
	return v
}

func (v *view) note(r Reason) { v.reasons = append(v.reasons, r) }

// fronts makes those of one Service, and notes which sockets of this node they and the peers' deliver to.
func (v *view) fronts(service *model.Service, ports []portVerdict, targets map[model.Socket]bool) []model.Front {
	var fronts []model.Front
	sources := v.sources(service)
	if service.LoadBalancerIP != "" {
		v.note(Reason{Code: LoadBalancerIPIgnored, Service: service.ObjectKey, Detail: service.LoadBalancerIP})
	}
	families := familiesOf(service)
	served := false
	for _, family := range families {
		addrs := ofFamily(v.addrs, family)
		if len(addrs) == 0 {
			v.note(Reason{Code: NodeWithoutFamily, Service: service.ObjectKey, Node: v.self.Node, Detail: family.String()})
		}
		for _, port := range ports {
			if port.code != none {
				continue
			}
			served = true
			endpoints := v.endpoints(service, port.ServicePort, family, targets)
			for _, addr := range addrs {
				front := model.Front{
					Socket:    model.Socket{Addr: addr, Port: port.Port, Proto: port.Proto},
					Endpoints: endpoints, Sources: sources, ClientIPAffinity: service.ClientIPAffinity,
				}
				if service.ClientIPAffinity {
					front.AffinityTimeout = service.AffinityTimeout
					front.AffinityTimeout = front.AffinityFor()
				}
				fronts = append(fronts, front)
			}
		}
	}
	if served {
		v.noteSlices(service, families)
	}
	return fronts
}

// endpoints are those that new flows of one port and family go to from this node.
func (v *view) endpoints(
	service *model.Service, port model.ServicePort, family model.Family, targets map[model.Socket]bool,
) []model.Endpoint {
	candidates, skipped := v.candidates(service, port, family)
	admitted := make([]candidate, 0, len(candidates))
	for _, c := range candidates {
		peer, code, detail := v.reach(c)
		if code != none {
			skipped = append(skipped, skip{c, code, detail})
			continue
		}
		c.peer = peer
		admitted = append(admitted, c)
		if c.node == v.self.Node {
			targets[model.Socket{Addr: c.addr, Port: c.port, Proto: port.Proto}] = true
		}
	}
	usable, waiting, chosen := v.choose(admitted, service)
	skipped = append(skipped, waiting...)
	endpoints := make([]model.Endpoint, 0, len(usable))
	for _, c := range usable {
		if code := chosen(c); code != none {
			skipped = append(skipped, skip{c, code, c.node})
			continue
		}
		endpoints = append(endpoints, model.Endpoint{Addr: c.addr, Port: c.port, Peer: c.peer})
	}
	for _, s := range skipped {
		v.note(Reason{
			Code: s.code, Service: service.ObjectKey, Port: port.Port, Proto: port.Proto, Slice: s.slice, Addr: s.addr, Detail: s.detail,
		})
	}
	if len(endpoints) == 0 {
		v.note(Reason{Code: NoEndpoints, Service: service.ObjectKey, Port: port.Port, Proto: port.Proto, Detail: family.String()})
	}
	slices.SortFunc(endpoints, model.Endpoint.Compare)
	return endpoints
}

func (v *view) zone() string {
	if v.own == nil {
		return ""
	}
	return v.own.Zone
}

// noteSlices says which slices of the Service no front looks into.
func (v *view) noteSlices(service *model.Service, families []model.Family) {
	for _, slice := range v.slices[service.ObjectKey] {
		reason := Reason{Service: service.ObjectKey, Slice: slice.Name, Detail: slice.Family.String()}
		switch {
		case slice.Family == 0:
			reason.Code, reason.Detail = SliceOfNames, ""
		case !slices.Contains(families, slice.Family):
			reason.Code = SliceOtherFamily
		default:
			continue
		}
		v.note(reason)
	}
}
