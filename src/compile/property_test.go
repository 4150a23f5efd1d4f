// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/beep-lb/beep/src/compile"
	"github.com/beep-lb/beep/src/model"
)

// drawScenario draws a small cluster in which names, addresses, ports and hints collide often.
func drawScenario(t *rapid.T) *scenario {
	s := &scenario{rules: compile.Rules{ReservedPorts: []compile.PortRange{{Proto: model.TCP, First: 22, Last: 22}}}}
	nodes := rapid.IntRange(1, 4).Draw(t, "nodes")
	for i := range nodes {
		s.snapshot.Nodes = append(s.snapshot.Nodes, drawNode(t, i))
		if rapid.IntRange(0, 5).Draw(t, "leased") > 0 {
			s.leases = append(s.leases, &model.Lease{
				Node: fmt.Sprint("n", i), Attached: rapid.IntRange(0, 5).Draw(t, "attached") > 0, Left: rapid.IntRange(0, 5).Draw(t, "left") == 0,
				Late: rapid.Bool().Draw(t, "late"), Addresses: compile.Addresses(s.snapshot, s.self(fmt.Sprint("n", i))),
			})
		}
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "services") {
		s.snapshot.Services = append(s.snapshot.Services, drawService(t, i))
	}
	for i := range rapid.IntRange(0, 5).Draw(t, "slices") {
		s.snapshot.Slices = append(s.snapshot.Slices, drawSlice(t, i, nodes))
	}
	s.max = rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "max")
	s.mode = rapid.SampledFrom([]string{"", "VIP", "Proxy"}).Draw(t, "mode")
	return s
}

func drawNode(t *rapid.T, i int) *model.Node {
	node := &model.Node{Name: fmt.Sprint("n", i), Zone: rapid.SampledFrom([]string{"", "z1", "z2"}).Draw(t, "zone"),
		PodCIDRs: []netip.Prefix{netip.MustParsePrefix(fmt.Sprintf("10.42.%d.0/24", i)), netip.MustParsePrefix(fmt.Sprintf("2001:db8:a:%d::/64", i))}}
	v4, v6 := fmt.Sprintf("192.0.2.%d", i+1), fmt.Sprintf("2001:db8:b::%d", i+1)
	node.InternalIPs = addrs(rapid.SampledFrom([][]string{{v4}, {v6}, {v4, v6}, {v6, v4}, nil}).Draw(t, "internal"))
	if rapid.IntRange(0, 4).Draw(t, "external") == 0 {
		node.ExternalIPs = addrs([]string{fmt.Sprintf("203.0.113.%d", i+1)})
	}
	node.Exclude = rapid.SampledFrom([]model.Label{{}, {}, {}, {Set: true, Value: "false"}, {Set: true}}).Draw(t, "exclude")
	node.ToBeDeleted = rapid.IntRange(0, 7).Draw(t, "tainted") == 0
	node.Detached = rapid.IntRange(0, 7).Draw(t, "detached") == 0
	return node
}

func drawService(t *rapid.T, i int) *model.Service {
	s := &model.Service{
		ObjectKey: model.ObjectKey{Namespace: "shop", Name: fmt.Sprint("s", i)}, UID: fmt.Sprint("u", 9-i),
		Created:        int64(rapid.IntRange(0, 1).Draw(t, "created")),
		Class:          rapid.SampledFrom([]string{"", "", "", "other"}).Draw(t, "class"),
		Deleting:       rapid.IntRange(0, 7).Draw(t, "deleting") == 0,
		ExternalLocal:  rapid.Bool().Draw(t, "local"),
		PreferSameNode: rapid.Bool().Draw(t, "prefer"),
		IPFamilies: rapid.SampledFrom([][]model.Family{{model.IPv4}, {model.IPv6}, {model.IPv4, model.IPv6},
			{model.IPv6, model.IPv4}}).Draw(t, "families"),
	}
	for range rapid.IntRange(1, 2).Draw(t, "ports") {
		s.Ports = append(s.Ports, model.ServicePort{
			Name:  rapid.SampledFrom([]string{"", "http"}).Draw(t, "name"),
			Proto: rapid.SampledFrom([]model.Proto{model.TCP, model.UDP, model.SCTP}).Draw(t, "proto"),
			Port:  rapid.SampledFrom([]uint16{22, 80, 81}).Draw(t, "port"),
		})
	}
	for range rapid.IntRange(0, 3).Draw(t, "listed") {
		s.Ingress = append(s.Ingress, rapid.SampledFrom([]model.Ingress{
			{IP: "192.0.2.1", IPMode: "VIP"}, {IP: "192.0.2.2"}, {IP: "192.0.2.2", IPMode: "Proxy"}, {IP: "2001:DB8:B::1"},
			{Hostname: "elsewhere.example"}, {IP: "198.18.0.1", IPMode: "Proxy"}, {IP: "203.0.113.1"},
		}).Draw(t, "entry"))
	}
	return s
}

func drawSlice(t *rapid.T, i, nodes int) *model.Slice {
	slice := &model.Slice{
		ObjectKey: model.ObjectKey{Namespace: "shop", Name: fmt.Sprint("slice", i)},
		Service:   fmt.Sprint("s", rapid.IntRange(0, 3).Draw(t, "of")),
		Family:    rapid.SampledFrom([]model.Family{model.IPv4, model.IPv4, model.IPv6, 0}).Draw(t, "family"),
	}
	for _, name := range []string{"", "http"} {
		slice.Ports = append(slice.Ports, model.SlicePort{Name: name, Proto: rapid.SampledFrom([]model.Proto{model.TCP, model.UDP}).Draw(t, "proto"),
			Port: rapid.SampledFrom([]uint16{0, 8080, 8081}).Draw(t, "number")})
	}
	conditions := rapid.SampledFrom([]model.Condition{model.Unset, model.False, model.True})
	names := rapid.SampledFrom([][]string{nil, {"n0"}, {"n1", "n2"}})
	for range rapid.IntRange(0, 4).Draw(t, "endpoints") {
		on := rapid.IntRange(0, nodes).Draw(t, "on") // one more than there are
		host := rapid.IntRange(1, 3).Draw(t, "host")
		addr := netip.MustParseAddr(fmt.Sprintf("10.42.%d.%d", on, host))
		if rapid.IntRange(0, 3).Draw(t, "v6") == 0 || slice.Family == model.IPv6 {
			addr = netip.MustParseAddr(fmt.Sprintf("2001:db8:a:%d::%d", on, host))
		}
		slice.Endpoints = append(slice.Endpoints, model.SliceEndpoint{
			Addr: addr, Node: rapid.SampledFrom([]string{fmt.Sprint("n", on), ""}).Draw(t, "node"),
			TargetUID: rapid.SampledFrom([]string{"", "p1", "p2"}).Draw(t, "uid"),
			Ready:     conditions.Draw(t, "ready"), Serving: conditions.Draw(t, "serving"), Terminating: conditions.Draw(t, "terminating"),
			NodeHints: names.Draw(t, "forNodes"), ZoneHints: rapid.SampledFrom([][]string{nil, {"z1"}, {"z2"}}).Draw(t, "forZones"),
		})
	}
	return slice
}

// shuffled is the scenario with everything whose order means nothing in another order.
func shuffled(s *scenario, seed uint64) *scenario {
	r := rand.New(rand.NewPCG(seed, 1))
	other := *s
	other.snapshot = model.Snapshot{Services: slices.Clone(s.snapshot.Services), Nodes: slices.Clone(s.snapshot.Nodes)}
	other.leases = slices.Clone(s.leases)
	for _, slice := range s.snapshot.Slices {
		c := *slice
		c.Endpoints, c.Ports = slices.Clone(slice.Endpoints), slices.Clone(slice.Ports)
		r.Shuffle(len(c.Endpoints), func(i, j int) { c.Endpoints[i], c.Endpoints[j] = c.Endpoints[j], c.Endpoints[i] })
		r.Shuffle(len(c.Ports), func(i, j int) { c.Ports[i], c.Ports[j] = c.Ports[j], c.Ports[i] })
		other.snapshot.Slices = append(other.snapshot.Slices, &c)
	}
	services, sl, nodes := other.snapshot.Services, other.snapshot.Slices, other.snapshot.Nodes
	r.Shuffle(len(services), func(i, j int) { services[i], services[j] = services[j], services[i] })
	r.Shuffle(len(sl), func(i, j int) { sl[i], sl[j] = sl[j], sl[i] })
	r.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	r.Shuffle(len(other.leases), func(i, j int) { other.leases[i], other.leases[j] = other.leases[j], other.leases[i] })
	return &other
}

func TestOrderOfInputMeansNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawScenario(t)
		other := shuffled(s, rapid.Uint64().Draw(t, "seed"))
		for _, node := range s.snapshot.Nodes {
			want, wantReasons := compile.Datapath(s.snapshot, s.self(node.Name))
			got, gotReasons := compile.Datapath(other.snapshot, s.self(node.Name))
			if diff := cmp.Diff(dumpDesired(want), dumpDesired(got)); diff != "" {
				t.Fatalf("datapath of %s (-one order +another):\n%s", node.Name, diff)
			}
			if !slices.Equal(wantReasons, gotReasons) {
				t.Fatalf("reasons of %s:\n%v\n%v", node.Name, wantReasons, gotReasons)
			}
		}
		want, wantReasons := compile.Publication(s.snapshot, s.leases, s.publishing(), s.memory)
		got, gotReasons := compile.Publication(other.snapshot, other.leases, s.publishing(), s.memory)
		if diff := cmp.Diff(dumpPublished(want), dumpPublished(got)); diff != "" {
			t.Fatalf("publication (-one order +another):\n%s", diff)
		}
		if diff := cmp.Diff(want.Memory.Live, got.Memory.Live); diff != "" || !slices.Equal(wantReasons, gotReasons) {
			t.Fatalf("memory or reasons of the publication depend on the order:\n%s\n%v\n%v", diff, wantReasons, gotReasons)
		}
	})
}

// TestEveryNodeGivesAPortToTheSameService compares (protocol, port) over the nodes, and the fronts with what each may
// have: no reserved port, no endpoint of another family, no front or endpoint twice.
func TestEveryNodeGivesAPortToTheSameService(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawScenario(t)
		conflicts := map[string][]compile.Reason{}
		for _, node := range s.snapshot.Nodes {
			desired, reasons := compile.Datapath(s.snapshot, s.self(node.Name))
			checkDesired(t, desired)
			conflicts[node.Name] = slices.DeleteFunc(reasons, func(r compile.Reason) bool { return r.Code != compile.PortConflict })
		}
		_, reasons := compile.Publication(s.snapshot, s.leases, s.publishing(), s.memory)
		published := slices.DeleteFunc(reasons, func(r compile.Reason) bool { return r.Code != compile.PortConflict })
		for node, found := range conflicts {
			if !slices.Equal(found, published) {
				t.Fatalf("conflicts on %s: %v, and for the publisher: %v", node, found, published)
			}
		}
	})
}

func checkDesired(t *rapid.T, desired model.Desired) {
	for i, front := range desired.Fronts {
		if i > 0 && desired.Fronts[i-1].Compare(front.Socket) >= 0 {
			t.Fatalf("fronts %s and %s are not in order", desired.Fronts[i-1].Socket, front.Socket)
		}
		if front.Proto == model.SCTP || front.Port == 22 && front.Proto == model.TCP {
			t.Fatalf("front %s is on a port that is not to be served", front.Socket)
		}
		for j, endpoint := range front.Endpoints {
			if endpoint.Addr.Is4() != front.Addr.Is4() || endpoint.Port == 0 {
				t.Fatalf("front %s has the endpoint %s", front.Socket, endpoint)
			}
			if j > 0 && front.Endpoints[j-1].Compare(endpoint) >= 0 {
				t.Fatalf("endpoints %s and %s of %s are not in order", front.Endpoints[j-1], endpoint, front.Socket)
			}
			if endpoint.Peer.IsValid() && !slices.Contains(desired.Peers, endpoint.Peer) {
				t.Fatalf("front %s has an endpoint on %s, which is no peer", front.Socket, endpoint.Peer)
			}
		}
	}
	if !slices.IsSortedFunc(desired.Targets, model.Socket.Compare) || !slices.IsSortedFunc(desired.Peers, netip.Addr.Compare) {
		t.Fatalf("targets or peers are not in order: %s", dumpDesired(desired))
	}
}

// applied is the snapshot after every status was written.
func applied(snapshot model.Snapshot, published compile.Published) model.Snapshot {
	of := map[model.ObjectKey][]model.Ingress{}
	for _, status := range published.Statuses {
		of[status.Service.ObjectKey] = status.Ingress
	}
	next := snapshot
	next.Services = nil
	for _, service := range snapshot.Services {
		c := *service
		if ingress, ours := of[service.ObjectKey]; ours {
			c.Ingress = ingress
		}
		next.Services = append(next.Services, &c)
	}
	return next
}

// TestC33I7WhatIsPublishedIsWrittenOnce publishes again after the writes, with and without what a publisher remembers:
// there is nothing to write.
func TestC33I7WhatIsPublishedIsWrittenOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawScenario(t)
		first, _ := compile.Publication(s.snapshot, s.leases, s.publishing(), s.memory)
		after := applied(s.snapshot, first)
		second, _ := compile.Publication(after, s.leases, s.publishing(), first.Memory)
		for _, status := range second.Statuses {
			if status.Changed {
				t.Fatalf("%s is written again: %v, %v", status.Service, status.Service.Ingress, status.Ingress)
			}
		}
		for i, status := range first.Statuses {
			checkForeign(t, s.snapshot, status)
			if !slices.EqualFunc(status.Ingress, second.Statuses[i].Ingress, model.Ingress.Equal) {
				t.Fatalf("%s: %v, then %v", status.Service, status.Ingress, second.Statuses[i].Ingress)
			}
		}
	})
}

// checkForeign says whether entries of others are as they were, and in their order.
func checkForeign(t *rapid.T, snapshot model.Snapshot, status compile.Status) {
	ours := map[string]bool{"2001:DB8:B::1": false}
	for _, node := range snapshot.Nodes {
		for _, addr := range slices.Concat(node.InternalIPs, node.ExternalIPs) {
			ours[addr.String()] = true
			ours["2001:DB8:B::1"] = ours["2001:DB8:B::1"] || addr == netip.MustParseAddr("2001:db8:b::1")
		}
	}
	foreign := func(list []model.Ingress) []model.Ingress {
		return slices.DeleteFunc(slices.Clone(list), func(e model.Ingress) bool { return e.Hostname == "" && ours[e.IP] })
	}
	if was, is := foreign(status.Service.Ingress), foreign(status.Ingress); !slices.EqualFunc(was, is, model.Ingress.Equal) {
		t.Fatalf("%s: foreign entries %v became %v", status.Service, was, is)
	}
}

// TestC28DeparturesAreThoseThatLeftAllSlices checks on random changes that no pod which is still named is swept, and that none that left is kept.
func TestC28DeparturesAreThoseThatLeftAllSlices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawScenario(t)
		next := s.snapshot
		next.Slices = slices.Clone(next.Slices)
		if len(next.Slices) > 0 {
			next.Slices[rapid.IntRange(0, len(next.Slices)-1).Draw(t, "changed")] = drawSlice(t, 7, 3)
		}
		departed := compile.Departures(s.snapshot, next)
		was, is := uids(s.snapshot), uids(next)
		for addr, before := range was {
			stayed := 0
			for uid := range before {
				if is[addr][uid] || is[addr][""] || uid == "" && len(is[addr]) > 0 {
					stayed++
				}
			}
			if swept := slices.Contains(departed.Addrs, addr); swept != (stayed == 0) {
				t.Fatalf("%s swept %t: was %v, is %v", addr, swept, before, is[addr])
			}
		}
		if same := compile.Departures(next, next); !same.Empty() {
			t.Fatalf("nothing changed, and %+v departed", same)
		}
	})
}

func uids(snapshot model.Snapshot) map[netip.Addr]map[string]bool {
	of := map[netip.Addr]map[string]bool{}
	for _, slice := range snapshot.Slices {
		for _, endpoint := range slice.Endpoints {
			if of[endpoint.Addr] == nil {
				of[endpoint.Addr] = map[string]bool{}
			}
			of[endpoint.Addr][endpoint.TargetUID] = true
		}
	}
	return of
}
