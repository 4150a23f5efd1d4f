// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/beep-lb/beep/src/compile"
	"github.com/beep-lb/beep/src/model"
)

// TestWhatWasRememberedChangesNothing draws sequences of snapshots that share objects: one compiler for all of them
// says the same as a new one for each, and what it said before stays as it was.
func TestWhatWasRememberedChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawScenario(t)
		self := s.self("n0")
		var compiler compile.Compiler
		var earlier model.Desired
		var text string
		for range rapid.IntRange(1, 20).Draw(t, "changes") {
			got, gotReasons := compiler.Datapath(s.snapshot, self)
			want, wantReasons := compile.Datapath(s.snapshot, self)
			if diff := cmp.Diff(dumpDesired(want), dumpDesired(got)); diff != "" {
				t.Fatalf("datapath (-anew +from memory):\n%s", diff)
			}
			if !slices.Equal(wantReasons, gotReasons) {
				t.Fatalf("reasons from memory\n%v\nwant\n%v", gotReasons, wantReasons)
			}
			if now := dumpDesired(earlier); text != "" && now != text {
				t.Fatalf("what was returned became\n%s\nfrom\n%s", now, text)
			}
			for i := range earlier.Fronts {
				earlier.Fronts[i].Endpoints = nil // the lists are the caller's
			}
			clear(earlier.Targets)
			earlier, text = got, dumpDesired(got)
			changeSnapshot(t, s)
			if rapid.IntRange(0, 9).Draw(t, "other self") == 0 {
				self.NodeIPs = addrs(rapid.SampledFrom([][]string{nil, {"192.0.2.99"}}).Draw(t, "node ips"))
			}
		}
	})
}

// TestAPrecedentChangesNothing draws sequences of snapshots and leases that share objects: a publisher that remembers
// all says the same as one that knows only who was live and which addresses there were.
func TestAPrecedentChangesNothing(t *testing.T) {
	healthy := parseScenario(t, "node n0 192.0.2.1 2001:db8:b::1 pods=10.42.0.0/24,2001:db8:a:0::/64\n"+
		"node n1 192.0.2.2 pods=10.42.1.0/24\nnode n2 192.0.2.3 2001:db8:b::3 pods=10.42.2.0/24,2001:db8:a:2::/64\n").snapshot.Nodes
	rapid.Check(t, func(t *rapid.T) {
		s := drawScenario(t)
		if rapid.IntRange(0, 3).Draw(t, "healthy") > 0 {
			s.snapshot.Nodes = healthy
			s.leases = nil
			s.leaseAll()
		}
		for range rapid.IntRange(1, 20).Draw(t, "changes") {
			without := compile.Memory{Live: s.memory.Live, Known: s.memory.Known}
			want, wantReasons := compile.Publication(s.snapshot, s.leases, s.publishing(), without)
			got, gotReasons := compile.Publication(s.snapshot, s.leases, s.publishing(), s.memory)
			if diff := cmp.Diff(dumpPublished(want), dumpPublished(got)); diff != "" {
				t.Fatalf("publication (-anew +from memory):\n%s", diff)
			}
			if !slices.Equal(wantReasons, gotReasons) || !slices.Equal(want.Memory.Known, got.Memory.Known) ||
				!slices.Equal(want.Memory.Live, got.Memory.Live) {
				t.Fatalf("reasons or memory\n%v %v\nwant\n%v %v", gotReasons, got.Memory, wantReasons, want.Memory)
			}
			s.memory = got.Memory
			changeSnapshot(t, s)
			if rapid.IntRange(0, 4).Draw(t, "written") == 0 {
				s.snapshot = applied(s.snapshot, got)
			}
			changeLeases(t, s)
		}
	})
}

// TestWhatAPrecedentDependsOn changes what a drawn sequence seldom does alone: where the pods are, and who is held.
func TestWhatAPrecedentDependsOn(t *testing.T) {
	const text = "node a 192.0.2.1 pods=10.42.1.0/24\nnode b 192.0.2.2 pods=10.42.2.0/24\nnode c 192.0.2.3\n" +
		"service shop/web 80/TCP local\nslice shop/web-1 web IPv4 8080/TCP\nendpoint "
	lists := func(s *scenario, want string) {
		t.Helper()
		published, _ := compile.Publication(s.snapshot, s.leases, s.publishing(), s.memory)
		s.memory = published.Memory
		var got []string
		for _, entry := range published.Statuses[0].Ingress {
			got = append(got, entry.IP)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("lists %v, want %s", got, want)
		}
	}
	s := parseScenario(t, text+"10.42.1.5 on=a\n")
	lists(s, "192.0.2.1")
	s.snapshot.Slices = parseScenario(t, text+"10.42.2.5 on=b\n").snapshot.Slices
	lists(s, "192.0.2.2")
	s.snapshot.Slices = nil
	lists(s, "192.0.2.1 192.0.2.2 192.0.2.3")
	s.leases = s.leases[:1]
	lists(s, "192.0.2.1") // the others are held: they stay where they are listed, and are not
}

// changeLeases has nodes say something else, or an operator want something else.
func changeLeases(t *rapid.T, s *scenario) {
	what := rapid.IntRange(0, 9).Draw(t, "else")
	switch {
	case what == 0:
		other := drawScenario(t)
		s.max, s.mode = other.max, other.mode
		s.rules.ReservedPorts = []compile.PortRange{{Proto: model.TCP, First: rapid.SampledFrom([]uint16{22, 80}).Draw(t, "reserved"), Last: 80}}
	case what == 1:
		s.memory.Known = addrs([]string{"198.18.0.1"})
	case what <= 3 && len(s.leases) > 0:
		i := rapid.IntRange(0, len(s.leases)-1).Draw(t, "lease")
		lease := *s.leases[i]
		switch rapid.IntRange(0, 2).Draw(t, "says") {
		case 0:
			lease.Attached = !lease.Attached
		case 1:
			lease.Refused = rapid.SampledFrom([][]model.ObjectKey{nil, {key("shop/s0")}, {key("shop/s1"), key("shop/s2")}}).Draw(t, "refused")
		case 2:
			lease.Addresses = addrs(rapid.SampledFrom([][]string{{"192.0.2.1"}, {"192.0.2.7"}, {"2001:db8:b::7", "192.0.2.7"}}).Draw(t, "addresses"))
		}
		s.leases = slices.Clone(s.leases)
		s.leases[i] = &lease
	}
}

// TestTheOwnerThatIsNamedIsTheOneOfNow: a Service that goes on without its port is told who has it now.
func TestTheOwnerThatIsNamedIsTheOneOfNow(t *testing.T) {
	s := parseScenario(t, "node a 192.0.2.1\nservice shop/old 80/TCP uid=u1\nservice shop/middle 80/TCP uid=u2\nservice shop/young 80/TCP uid=u3\n")
	var compiler compile.Compiler
	for _, want := range []string{"shop/old", "shop/middle"} {
		_, reasons := compiler.Datapath(s.snapshot, s.self("a"))
		is := func(r compile.Reason) bool {
			return r.Code == compile.PortConflict && r.Service == key("shop/young") && r.Detail == want
		}
		if !slices.ContainsFunc(reasons, is) {
			t.Errorf("owner %s is not in %v", want, reasons)
		}
		s.snapshot.Services = s.snapshot.Services[1:]
	}
}

// changeSnapshot puts other objects in the place of some, adds some and takes some away; the others are shared.
func changeSnapshot(t *rapid.T, s *scenario) {
	other := drawScenario(t)
	next := model.Snapshot{
		Services: slices.Clone(s.snapshot.Services), Slices: slices.Clone(s.snapshot.Slices), Nodes: slices.Clone(s.snapshot.Nodes),
	}
	for range rapid.IntRange(0, 2).Draw(t, "how many") {
		switch kind := rapid.IntRange(0, 9).Draw(t, "kind"); {
		case kind < 3:
			next.Services = change(t, next.Services, other.snapshot.Services, func(s *model.Service) string { return s.String() })
		case kind < 4:
			next.Nodes = change(t, next.Nodes, other.snapshot.Nodes, func(n *model.Node) string { return n.Name })
		default:
			next.Slices = change(t, next.Slices, other.snapshot.Slices, func(s *model.Slice) string { return s.String() })
		}
	}
	s.snapshot = next
}

// change takes one object away, or takes one over from another list, or has another object say the same.
func change[T any](t *rapid.T, list, other []*T, name func(*T) string) []*T {
	what := rapid.IntRange(0, 3).Draw(t, "what")
	switch {
	case what == 0 && len(list) > 0:
		i := rapid.IntRange(0, len(list)-1).Draw(t, "which")
		return slices.Delete(list, i, i+1)
	case what == 1 && len(list) > 0:
		i := rapid.IntRange(0, len(list)-1).Draw(t, "which")
		again := *list[i]
		list[i] = &again
	case len(other) > 0:
		object := rapid.SampledFrom(other).Draw(t, "object")
		list = slices.DeleteFunc(list, func(o *T) bool { return name(o) == name(object) })
		return append(list, object)
	}
	return list
}

// sizedScenario is so many Services of ten endpoints, on a hundred nodes.
func sizedScenario(tb testing.TB, services int) *scenario {
	s := parseScenario(tb, "")
	for i := range 100 {
		s.snapshot.Nodes = append(s.snapshot.Nodes, &model.Node{Name: fmt.Sprint("n", i), InternalIPs: []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)})},
			PodCIDRs: []netip.Prefix{netip.MustParsePrefix(fmt.Sprintf("10.42.%d.0/24", i))}})
	}
	for i := range services {
		name := fmt.Sprint("s", i)
		s.snapshot.Services = append(s.snapshot.Services, &model.Service{ObjectKey: model.ObjectKey{Namespace: "shop", Name: name}, UID: name,
			IPFamilies: []model.Family{model.IPv4}, Ports: []model.ServicePort{{Proto: model.TCP, Port: uint16(1000 + i)}}})
		slice := &model.Slice{ObjectKey: model.ObjectKey{Namespace: "shop", Name: name}, Service: name, Family: model.IPv4,
			Ports: []model.SlicePort{{Proto: model.TCP, Port: 8080}}}
		for j := range 10 {
			node := (i + j) % 100
			slice.Endpoints = append(slice.Endpoints, model.SliceEndpoint{Addr: netip.AddrFrom4([4]byte{10, 42, byte(node), byte(1 + i%200)}),
				Node: fmt.Sprint("n", node), TargetUID: fmt.Sprint(i, "-", j), Ready: model.True})
		}
		s.snapshot.Slices = append(s.snapshot.Slices, slice)
	}
	s.leaseAll()
	return s
}

// BenchmarkOneChange compiles many Services of ten endpoints on 100 nodes after one endpoint changed, by their number.
func BenchmarkOneChange(b *testing.B) {
	for _, services := range []int{10, 100, 1000, 10000} {
		s := sizedScenario(b, services)
		next := s.snapshot
		next.Slices = slices.Clone(next.Slices)
		changed := *next.Slices[services/2]
		changed.Endpoints = changed.Endpoints[1:]
		next.Slices[services/2] = &changed
		both := []model.Snapshot{s.snapshot, next}
		b.Run(fmt.Sprint("anew/", services), func(b *testing.B) {
			for b.Loop() {
				compile.Datapath(next, s.self("n1"))
			}
		})
		b.Run(fmt.Sprint("datapath/", services), func(b *testing.B) {
			var compiler compile.Compiler
			for i := 0; b.Loop(); i++ {
				compiler.Datapath(both[i%2], s.self("n1"))
			}
		})
		b.Run(fmt.Sprint("departures/", services), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				compile.Departures(both[i%2], both[(i+1)%2])
			}
		})
		b.Run(fmt.Sprint("publication/", services), func(b *testing.B) {
			published, _ := compile.Publication(s.snapshot, s.leases, s.publishing(), s.memory)
			for i := 0; b.Loop(); i++ {
				published, _ = compile.Publication(both[i%2], s.leases, s.publishing(), published.Memory)
			}
		})
	}
}
