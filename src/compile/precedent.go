// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"maps"
	"net/netip"
	"reflect"
	"slices"

	"github.com/beep-lb/beep/src/model"
)

// precedent is what a Publication came to, by the objects that it was made of: a Service of which nothing is another
// one comes to the same. It is not changed once it is made.
type precedent struct {
	how      Publishing
	nodes    map[string]*model.Node
	listable []*listable
	known    map[netip.Addr]bool
	services map[*model.Service]verdict
	assigned *assignment
}

// assignment is who owns which port, by the Services that it was made of.
type assignment struct {
	rules    Rules
	services map[*model.Service]bool
	ports    map[*model.Service][]portVerdict
	refusals []Reason
}

// assignment gives the ports away, or takes over what came of it before if it was for the same Services.
func (before *precedent) assignment(rules Rules, services []*model.Service) *assignment {
	if before != nil && len(before.assigned.services) == len(services) && reflect.DeepEqual(before.assigned.rules, rules) &&
		!slices.ContainsFunc(services, func(s *model.Service) bool { return !before.assigned.services[s] }) {
		return before.assigned
	}
	a := &assignment{rules: rules, services: make(map[*model.Service]bool, len(services))}
	a.ports = rules.assign(services, func(r Reason) { a.refusals = append(a.refusals, r) })
	for _, service := range services {
		a.services[service] = true
	}
	return a
}

// verdict is what one Service came to, and what it came of beside the facts that all share.
type verdict struct {
	ports []portVerdict
	// slices are those of the Service, if it matters who has a pod.
	slices []*model.Slice

	status  Status
	reasons []Reason
}

// precedent begins a new one, of the facts that all Services share.
func (p *publisher) precedent() *precedent {
	return &precedent{
		how: p.how, nodes: p.nodes, listable: p.listable, assigned: p.assigned,
		known:    p.known, // remember may forget some, which no status lists
		services: make(map[*model.Service]verdict, len(p.ports)),
	}
}

// holds says whether the facts that all Services share are these.
func (before *precedent) holds(p *publisher) bool {
	return before != nil && reflect.DeepEqual(before.how, p.how) &&
		maps.Equal(before.known, p.known) && p.sameNodes(slices.Collect(maps.Values(before.nodes))) &&
		slices.EqualFunc(before.listable, p.listable, func(a, b *listable) bool {
			return a.Name == b.Name && a.held == b.held && maps.Equal(a.addrs, b.addrs) && slices.Equal(a.refused, b.refused)
		})
}

// judge makes the verdict on one Service that is ours, or takes it over.
func (p *publisher) judge(service *model.Service, is standing, before *precedent) verdict {
	next := verdict{ports: p.ports[service]}
	if service.ExternalLocal {
		next.slices = p.slices[service.ObjectKey]
	}
	if before != nil {
		last, known := before.services[service]
		if known && slices.Equal(last.ports, next.ports) && slices.Equal(last.slices, next.slices) {
			return last
		}
	}
	others := p.reasons
	p.reasons = nil
	next.status = Status{Service: service}
	next.status.Ingress = p.merge(service, p.entries(service, is, func(Reason) {}), p.ingressPorts(service))
	next.status.Changed = !slices.EqualFunc(next.status.Ingress, service.Ingress, model.Ingress.Equal)
	if !next.status.Changed {
		next.status.Ingress = service.Ingress // one list in memory, not two
	}
	next.reasons, p.reasons = p.reasons, others
	return next
}
