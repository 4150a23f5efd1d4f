// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/beep-lb/beep/src/model"
)

// candidate is an endpoint of one port and family of a Service, before policy. Conditions that are left out are
// filled in: ready, serving, not terminating.
type candidate struct {
	addr                        netip.Addr
	port                        uint16
	node, slice                 string
	peer                        netip.Addr
	ready, serving, terminating bool
	nodeHints, zoneHints        []string
}

// draining says that the endpoint still serves while it terminates.
func (c candidate) draining() bool { return !c.ready && c.serving && c.terminating }

// skip is a candidate that is not used.
type skip struct {
	candidate
	code   Code
	detail string
}

// candidates gathers the endpoints of one port and family from the Service's slices, each (address, port) once and in
// that order, and those that are no addresses. The family is that of the slice, and the port is matched by name and
// protocol and has the slice's number.
func (c *cluster) candidates(service *model.Service, port model.ServicePort, family model.Family) (found []candidate, skipped []skip) {
	for _, slice := range c.slices[service.ObjectKey] {
		if slice.Family != family {
			continue
		}
		matched := false
		for _, numbered := range slice.Ports {
			if numbered.Name != port.Name || numbered.Proto != port.Proto || numbered.Port == 0 {
				continue
			}
			matched = true
			found = slices.Grow(found, len(slice.Endpoints))
			for i := range slice.Endpoints {
				endpoint := newCandidate(slice, &slice.Endpoints[i], numbered.Port)
				if model.FamilyOf(endpoint.addr) != family {
					endpoint.addr = netip.Addr{}
					skipped = append(skipped, skip{candidate: endpoint, code: EndpointNoAddress})
					continue
				}
				found = append(found, endpoint)
			}
		}
		if !matched && len(slice.Endpoints) > 0 {
			skipped = append(skipped, skip{candidate: candidate{slice: slice.Name}, code: SliceWithoutPort})
		}
	}
	slices.SortStableFunc(found, prefer)
	return slices.CompactFunc(found, func(a, b candidate) bool { return a.addr == b.addr && a.port == b.port }), skipped
}

func newCandidate(slice *model.Slice, endpoint *model.SliceEndpoint, port uint16) candidate {
	return candidate{
		addr: endpoint.Addr, port: port, node: endpoint.Node, slice: slice.Name,
		ready: endpoint.Ready.Or(true), serving: endpoint.Serving.Or(true), terminating: endpoint.Terminating.Or(false),
		nodeHints: endpoint.NodeHints, zoneHints: endpoint.ZoneHints,
	}
}

// prefer orders candidates by address and port, and among the copies of one puts that first which counts: one that is
// not terminating, then one that is ready, one that is serving, one that says where it is. What is left is only there
// to make the order total, so that the slices' order does not matter.
func prefer(a, b candidate) int {
	return cmp.Or(
		a.addr.Compare(b.addr), cmp.Compare(a.port, b.port),
		falseFirst(a.terminating, b.terminating), falseFirst(!a.ready, !b.ready), falseFirst(!a.serving, !b.serving),
		falseFirst(a.node == "", b.node == ""), cmp.Compare(a.node, b.node), cmp.Compare(a.slice, b.slice),
		slices.Compare(a.nodeHints, b.nodeHints), slices.Compare(a.zoneHints, b.zoneHints))
}

func falseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// choose applies the Service's policy as kube-proxy's CategorizeEndpoints does (pkg/proxy/topology.go), but for two
// things: with externalTrafficPolicy Local and no pod here the ready ones elsewhere are used, and where there is none
// at all the front stays, with no endpoint. It returns why a candidate is not used, none if it is.
func choose(candidates []candidate, service *model.Service, node, zone string) func(candidate) Code {
	var ready, localReady, localDraining bool
	for _, c := range candidates {
		local := c.node == node && node != ""
		ready = ready || c.ready
		localReady = localReady || local && c.ready
		localDraining = localDraining || local && c.draining()
	}
	switch {
	case service.ExternalLocal && localReady:
		return readyIf(func(c candidate) bool { return c.node == node }, EndpointNotLocal)
	case service.ExternalLocal && (localDraining || !ready):
		return drainingIf(func(c candidate) bool { return c.node == node && node != "" }, EndpointNotLocal)
	case service.ExternalLocal:
		return readyIf(everyone, none)
	case !ready:
		return drainingIf(everyone, none)
	}
	return nearest(candidates, service, node, zone, localReady)
}

// nearest chooses among ready candidates by their hints. A kind of hint counts only if every ready candidate has one
// and one of them is for this node or zone; where nobody hints (a slice managed by hand), PreferSameNode is enough.
func nearest(candidates []candidate, service *model.Service, node, zone string, localReady bool) func(candidate) Code {
	nodeHinted, zoneHinted, forNode, forZone, hinted := true, true, false, false, false
	for _, c := range candidates {
		if !c.ready {
			continue
		}
		nodeHinted = nodeHinted && len(c.nodeHints) > 0
		zoneHinted = zoneHinted && len(c.zoneHints) > 0
		hinted = hinted || len(c.nodeHints) > 0 || len(c.zoneHints) > 0
		forNode = forNode || slices.Contains(c.nodeHints, node)
		forZone = forZone || zone != "" && slices.Contains(c.zoneHints, zone)
	}
	switch {
	case nodeHinted && forNode:
		return readyIf(func(c candidate) bool { return slices.Contains(c.nodeHints, node) }, EndpointOtherNode)
	case zoneHinted && forZone:
		return readyIf(func(c candidate) bool { return slices.Contains(c.zoneHints, zone) }, EndpointOtherZone)
	case !hinted && service.PreferSameNode && localReady:
		return readyIf(func(c candidate) bool { return c.node == node }, EndpointNotLocal)
	}
	return readyIf(everyone, none)
}

func everyone(candidate) bool { return true }

// readyIf uses the ready candidates that pass; otherwise says why another ready one is not used.
func readyIf(pass func(candidate) bool, otherwise Code) func(candidate) Code {
	return func(c candidate) Code {
		switch {
		case c.draining():
			return EndpointTerminating
		case !c.ready:
			return EndpointNotReady
		case !pass(c):
			return otherwise
		}
		return none
	}
}

// drainingIf uses the draining candidates that pass; otherwise says why another one is not used.
func drainingIf(pass func(candidate) bool, otherwise Code) func(candidate) Code {
	return func(c candidate) Code {
		switch {
		case !c.ready && !c.draining():
			return EndpointNotReady
		case !c.draining() || !pass(c):
			return otherwise
		}
		return none
	}
}
