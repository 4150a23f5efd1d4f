// SPDX-License-Identifier: Apache-2.0

package beep

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/src/model"
)

// Service is one port of a Kubernetes Service: a front on every address of every node, with the same endpoints.
type Service struct {
	Proto      model.Proto
	Port       uint16        // that clients dial
	TargetPort uint16        // that the pods listen on; 0 is Port
	Pods       []string      // and nodes, of which hostNetwork pods have the address; none makes fronts without endpoint
	Affinity   bool          // sessionAffinity: ClientIP
	Timeout    int           // of the affinity, in seconds; 0 is the default
	Sources    []string      // ranges of clients; nil is everybody, and an empty list nobody
	Underlay   topo.Families // of its tunnels; 0 is that of the call
}

// Fixtures are the values of --fixture that one node of a plan needs to play its part in the services: its tunnel
// addresses, its peers, the pods it runs, and the fronts of all its addresses. A front has the pods' addresses of
// its own family. Underlay is V4 or V6 to have all tunnels of one family; 0 and Dual take the front's own family,
// and the other one where the pod's node lacks it.
func Fixtures(plan *topo.Plan, node string, underlay topo.Families, services []Service) []string {
	underlay = cmp.Or(underlay, topo.Dual)
	fixtures := nodeFixtures(plan, node, underlay)
	for _, service := range services {
		for _, name := range service.Pods {
			if homeOf(plan, name) == node {
				for _, addr := range plan.Addrs(name) {
					target := "target=" + service.socket(addr, service.targetPort()).String()
					if !slices.Contains(fixtures, target) { // another service may have it, too
						fixtures = append(fixtures, target)
					}
				}
			}
		}
		for _, addr := range plan.Addrs(node) {
			fixtures = append(fixtures, frontFixtures(plan, node, cmp.Or(service.Underlay, underlay), service, addr)...)
			fixtures = append(fixtures, sourceFixtures(service, addr)...)
		}
	}
	return fixtures
}

// homeOf is the node where an endpoint runs: a pod's, or the node itself.
func homeOf(plan *topo.Plan, name string) string {
	if pod := plan.Pod(name); pod != nil {
		return pod.Node
	}
	return name
}

// nodeFixtures are the tunnel addresses of the node and of all others.
func nodeFixtures(plan *topo.Plan, node string, underlay topo.Families) []string {
	var fixtures []string
	for _, host := range plan.Hosts {
		kind := "peer="
		if host.Name == node {
			kind = "node="
		}
		for _, family := range []topo.Families{topo.V4, topo.V6} {
			addr := plan.Addr(host.Name, family)
			if host.Role == topo.Node && addr.IsValid() && underlay.Has(addr) {
				fixtures = append(fixtures, kind+addr.String())
			}
		}
	}
	return fixtures
}

func frontFixtures(plan *topo.Plan, node string, underlay topo.Families, service Service, front netip.Addr) []string {
	suffix := ""
	if service.Affinity {
		suffix = ":affinity"
	}
	if service.Timeout > 0 {
		suffix += fmt.Sprintf("=%d", service.Timeout)
	}
	name := "front=" + service.socket(front, service.Port).String()
	if len(service.Pods) == 0 {
		return []string{name + suffix}
	}
	var fixtures []string
	for _, pod := range service.Pods {
		addr := plan.Addr(pod, familyOf(front))
		if !addr.IsValid() {
			continue
		}
		endpoint := model.Endpoint{Addr: addr, Port: service.targetPort()}
		if host := homeOf(plan, pod); host != node {
			endpoint.Peer = tunnelAddr(plan, host, underlay, front)
		}
		fixtures = append(fixtures, fmt.Sprintf("%s,%s%s", name, endpoint, suffix))
	}
	return fixtures
}

func sourceFixtures(service Service, front netip.Addr) []string {
	if service.Sources == nil {
		return nil
	}
	name := "source=" + service.socket(front, service.Port).String()
	if len(service.Sources) == 0 {
		return []string{name}
	}
	var fixtures []string
	for _, source := range service.Sources {
		fixtures = append(fixtures, name+","+source)
	}
	return fixtures
}

// tunnelAddr is the address of a node that a front's tunnels go to.
func tunnelAddr(plan *topo.Plan, node string, underlay topo.Families, front netip.Addr) netip.Addr {
	own := familyOf(front)
	for _, family := range []topo.Families{own, topo.Dual &^ own} {
		if addr := plan.Addr(node, family); addr.IsValid() && underlay.Has(addr) {
			return addr
		}
	}
	return netip.Addr{}
}

func familyOf(addr netip.Addr) topo.Families {
	if addr.Is4() {
		return topo.V4
	}
	return topo.V6
}

func (s *Service) socket(addr netip.Addr, port uint16) model.Socket {
	return model.Socket{Proto: s.Proto, Addr: addr, Port: port}
}

func (s *Service) targetPort() uint16 { return cmp.Or(s.TargetPort, s.Port) }
