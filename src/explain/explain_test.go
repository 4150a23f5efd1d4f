// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/beep-lb/beep/src/compile"
	"github.com/beep-lb/beep/src/explain"
	"github.com/beep-lb/beep/src/model"
)

// facts are two nodes, a and b, and the Service shop/web with a pod on each, as node a sees them.
func facts() *explain.Facts {
	node := func(name string, number byte) *model.Node {
		return &model.Node{Name: name, InternalIPs: []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, number})},
			PodCIDRs: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 42, number, 0}), 24)}}
	}
	return &explain.Facts{
		Self: compile.Self{Node: "a"},
		Snapshot: model.Snapshot{
			Nodes: []*model.Node{node("a", 1), node("b", 2)},
			Services: []*model.Service{{ObjectKey: model.ObjectKey{Namespace: "shop", Name: "web"}, UID: "1", IPFamilies: []model.Family{model.IPv4},
				Ports: []model.ServicePort{{Proto: model.TCP, Port: 80}}, Ingress: []model.Ingress{{IP: "192.0.2.1"}}}},
			Slices: []*model.Slice{{ObjectKey: model.ObjectKey{Namespace: "shop", Name: "web-1"}, Service: "web", Family: model.IPv4,
				Ports: []model.SlicePort{{Proto: model.TCP, Port: 8080}},
				Endpoints: []model.SliceEndpoint{
					{Addr: netip.MustParseAddr("10.42.1.5"), Node: "a", Target: "Pod shop/web-a"},
					{Addr: netip.MustParseAddr("10.42.2.5"), Node: "b", Target: "Pod shop/web-b"},
				}}},
		},
		Leases: []*model.Lease{
			{Node: "a", Attached: true, Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1")}},
			{Node: "b", Attached: true, Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.2")}},
		},
	}
}

// words is everything that the answer says.
func words(t *testing.T, f *explain.Facts, name string) string {
	t.Helper()
	answer, err := explain.Explain(*f, name)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	text, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "null") && answer.Node == nil {
		t.Errorf("a list of %s is null: %s", name, text)
	}
	return string(text)
}

// cases bring up every reason once: what is done to the facts, and what is then asked for.
var cases = map[compile.Code]struct {
	ask    string
	change func(*explain.Facts)
}{
	compile.ForeignClass: {"web", web(func(s *model.Service) { s.Class = "other.example/lb" })},
	compile.ForeignProxy: {"web", web(func(s *model.Service) { s.OtherProxy = true })},
	compile.Deleting:     {"web", web(func(s *model.Service) { s.Deleting = true })},
	compile.NoAddressFamily: {"web", web(func(s *model.Service) {
		s.IPFamilies = []model.Family{model.IPv6}
	})},
	compile.InvalidSourceRange:    {"web", web(func(s *model.Service) { s.SourceRanges = []string{"everybody"} })},
	compile.LoadBalancerIPIgnored: {"web", web(func(s *model.Service) { s.LoadBalancerIP = "192.0.2.77" })},
	compile.ForeignStatus:         {"web", web(func(s *model.Service) { s.Ingress = []model.Ingress{{Hostname: "elsewhere.example"}} })},
	compile.NoEndpoints:           {"web", func(f *explain.Facts) { f.Snapshot.Slices = nil }},

	compile.SCTPUnsupported: {"web", web(func(s *model.Service) { s.Ports[0].Proto = model.SCTP })},
	compile.PortReserved: {"web", func(f *explain.Facts) {
		f.Self.ReservedPorts = []compile.PortRange{{Proto: model.TCP, First: 80, Last: 80}}
		f.How.Rules = f.Self.Rules
	}},
	compile.PortConflict: {"web", func(f *explain.Facts) {
		older := *f.Snapshot.Services[0]
		older.Name, older.UID = "older", "0"
		f.Snapshot.Services = append(f.Snapshot.Services, &older)
	}},
	compile.PortDuplicate: {"web", web(func(s *model.Service) { s.Ports = append(s.Ports, s.Ports[0]) })},

	compile.SliceOfNames:     {"web", slice(func(s *model.Slice) { s.Family, s.Endpoints = 0, nil })},
	compile.SliceOtherFamily: {"web", slice(func(s *model.Slice) { s.Family = model.IPv6 })},
	compile.SliceWithoutPort: {"web", slice(func(s *model.Slice) { s.Ports[0].Name = "other" })},

	compile.EndpointNoAddress:   {"web", slice(func(s *model.Slice) { s.Endpoints[1].Addr = netip.Addr{} })},
	compile.EndpointNoNode:      {"web", slice(func(s *model.Slice) { s.Endpoints[1].Node = "" })},
	compile.EndpointUnknownNode: {"web", slice(func(s *model.Slice) { s.Endpoints[1].Node = "c" })},
	compile.EndpointOutside:     {"web", slice(func(s *model.Slice) { s.Endpoints[1].Addr = netip.MustParseAddr("203.0.113.5") })},
	compile.EndpointUnreachable: {"web", func(f *explain.Facts) {
		f.Snapshot.Nodes[1].InternalIPs = []netip.Addr{netip.MustParseAddr("2001:db8:b::2")}
	}},
	compile.EndpointDetached:    {"web", func(f *explain.Facts) { f.Snapshot.Nodes[1].Detached = true }},
	compile.EndpointNotReady:    {"web", slice(func(s *model.Slice) { s.Endpoints[1].Ready = model.False })},
	compile.EndpointTerminating: {"web", slice(func(s *model.Slice) { s.Endpoints[1].Ready, s.Endpoints[1].Terminating = model.False, model.True })},
	compile.EndpointNotLocal:    {"web", web(func(s *model.Service) { s.ExternalLocal = true })},
	compile.EndpointOtherNode: {"web", slice(func(s *model.Slice) {
		s.Endpoints[0].NodeHints, s.Endpoints[1].NodeHints = []string{"a"}, []string{"b"}
	})},
	compile.EndpointOtherZone: {"web", func(f *explain.Facts) {
		f.Snapshot.Nodes[0].Zone = "z"
		f.Snapshot.Slices[0].Endpoints[0].ZoneHints, f.Snapshot.Slices[0].Endpoints[1].ZoneHints = []string{"z"}, []string{"y"}
	}},

	compile.NodeUnknown:     {"a", func(f *explain.Facts) { f.Snapshot.Nodes = f.Snapshot.Nodes[1:] }},
	compile.NoUnderlay:      {"a", func(f *explain.Facts) { f.Snapshot.Nodes[0].InternalIPs = nil }},
	compile.PeerUnreachable: {"b", func(f *explain.Facts) { f.Snapshot.Nodes[1].InternalIPs = nil }},

	compile.NodeExcluded:    {"b", func(f *explain.Facts) { f.Snapshot.Nodes[1].Exclude = model.Label{Set: true} }},
	compile.NodeToBeDeleted: {"b", func(f *explain.Facts) { f.Snapshot.Nodes[1].ToBeDeleted = true }},
	compile.NodeDeleting:    {"b", func(f *explain.Facts) { f.Snapshot.Nodes[1].Deleting = true }},
	compile.NodeNotAttached: {"b", func(f *explain.Facts) { f.Leases[1].Attached = false }},
	compile.NodeLeft:        {"b", func(f *explain.Facts) { f.Leases[1].Left = true }},
	compile.NodeLost:        {"b", func(f *explain.Facts) { f.Leases = f.Leases[:1] }},
	compile.MassLossHeld: {"b", func(f *explain.Facts) {
		f.Leases, f.Memory.Live = nil, []string{"a", "b"}
	}},

	compile.MapFull: {"b", func(f *explain.Facts) { f.Leases[1].Refused = []model.ObjectKey{{Namespace: "shop", Name: "web"}} }},
	compile.NodeWithoutFamily: {"b", web(func(s *model.Service) {
		s.IPFamilies = []model.Family{model.IPv4, model.IPv6}
	})},
	compile.NodeWithoutExternalIP: {"b", func(f *explain.Facts) {
		f.Snapshot.Nodes[0].ExternalIPs = []netip.Addr{netip.MustParseAddr("203.0.113.1")}
	}},
	compile.NodeWithoutPod: {"b", func(f *explain.Facts) {
		f.Snapshot.Services[0].ExternalLocal = true
		f.Snapshot.Slices[0].Endpoints = f.Snapshot.Slices[0].Endpoints[:1]
	}},
	compile.NodeNotChosen: {"", func(f *explain.Facts) { f.How.MaxNodes = 1 }},
}

func web(change func(*model.Service)) func(*explain.Facts) {
	return func(f *explain.Facts) { change(f.Snapshot.Services[0]) }
}

func slice(change func(*model.Slice)) func(*explain.Facts) {
	return func(f *explain.Facts) { change(f.Snapshot.Slices[0]) }
}

func TestEveryReasonIsExplained(t *testing.T) {
	for code := compile.ForeignClass; code <= compile.NodeNotChosen; code++ {
		brought, ok := cases[code]
		if !ok {
			t.Errorf("%s: no case brings it up", code)
			continue
		}
		f := facts()
		before := words(t, f, "web") + words(t, f, "a") + words(t, f, "b")
		brought.change(f)
		asked := []string{brought.ask}
		switch {
		case brought.ask == "": // one of the two nodes
			asked = []string{"a", "b"}
		case code >= compile.MapFull: // of a node and of the Service alike
			asked = append(asked, "web")
		}
		var after string
		for _, name := range asked {
			said := words(t, f, name)
			if brought.ask != "" && !strings.Contains(said, `"code":"`+code.String()+`","text":"`) {
				t.Errorf("%s is not said of %s: %s", code, name, said)
			}
			after += said
		}
		if strings.Contains(before, code.String()) || !strings.Contains(after, code.String()) {
			t.Errorf("%s: said before: %t, after: %t", code, strings.Contains(before, code.String()), strings.Contains(after, code.String()))
		}
	}
}

// apply makes both changes, if the second still finds what it changes.
func apply(f *explain.Facts, first, second func(*explain.Facts)) (done bool) {
	defer func() { done = recover() == nil }()
	first(f)
	second(f)
	return
}

// TestTwoReasonsAtOnce makes every two of the changes, and looks whether the answer has all that compile says of the
// Service and of the nodes.
func TestTwoReasonsAtOnce(t *testing.T) {
	for first, one := range cases {
		for second, other := range cases {
			f := facts()
			if !apply(f, one.change, other.change) {
				continue
			}
			_, reasons := compile.Datapath(f.Snapshot, f.Self)
			_, published := compile.Publication(f.Snapshot, f.Leases, f.How, f.Memory)
			reasons = append(reasons, published...)
			reasons = append(reasons, compile.Unpublished(f.Snapshot, f.Leases, f.How, f.Memory, func(model.ObjectKey, string) bool { return true })...)
			service, nodes := words(t, f, "web"), words(t, f, "a")
			if slices.ContainsFunc(f.Snapshot.Nodes, func(n *model.Node) bool { return n.Name == "b" }) {
				nodes += words(t, f, "b")
			}
			for _, reason := range reasons {
				of := service
				if reason.Service.Name == "" {
					of = nodes
				}
				if reason.Service.Name == "older" || reason.Node == "c" {
					continue
				}
				if text, _ := json.Marshal(reason.Text()); !strings.Contains(of, string(text)) {
					t.Errorf("%s and %s: the answer lacks %s", first, second, reason)
				}
			}
			answer, err := explain.Explain(*f, "web")
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range answer.Service.Endpoints {
				drains := slices.ContainsFunc(e.Why, func(w explain.Why) bool { return strings.Contains(w.Text, "serves on") })
				if e.Used != (len(e.Why) == 0 || drains) {
					t.Errorf("%s and %s: %+v", first, second, e)
				}
			}
		}
	}
}

// said is a Service's answer, in lines.
func said(t *testing.T, f *explain.Facts) string {
	t.Helper()
	answer, err := explain.Explain(*f, "shop/web")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	code := func(why []explain.Why) string {
		var codes []string
		for _, w := range why {
			codes = append(codes, w.Code)
		}
		return strings.Join(codes, "+")
	}
	line := func(words ...string) {
		words = slices.DeleteFunc(words, func(w string) bool { return w == "" })
		lines = append(lines, strings.Join(words, " "))
	}
	yes := map[bool]string{true: "yes", false: "no"}
	line("served", yes[answer.Service.Served], code(answer.Service.Why))
	for _, p := range answer.Service.Ports {
		line("port", p.Port, yes[p.Served], code(p.Why))
	}
	for _, a := range answer.Service.Addresses {
		line("address", a.Address, strings.Join(a.Families, "+"), a.Node, string(a.State), code(a.Why))
	}
	for _, e := range answer.Service.Endpoints {
		line("endpoint", e.Port, e.Endpoint, e.Node, e.Target, e.Slice, yes[e.Used], code(e.Why))
	}
	return strings.Join(lines, "\n")
}

func TestAService(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*explain.Facts)
		want   string
	}{
		{"all is well, and one address is on its way", func(*explain.Facts) {}, `
served yes
port 80/TCP yes
address 192.0.2.1 a published
address 192.0.2.2 b to be added
endpoint 80/TCP 10.42.1.5:8080 a Pod shop/web-a web-1 yes
endpoint 80/TCP 10.42.2.5:8080 b Pod shop/web-b web-1 yes`},
		{"with manifests nobody else lists anything", func(f *explain.Facts) { f.Manifests, f.Snapshot.Services[0].Ingress = true, nil }, `
served yes
port 80/TCP yes
address 192.0.2.1 a published
address 192.0.2.2 b published
endpoint 80/TCP 10.42.1.5:8080 a Pod shop/web-a web-1 yes
endpoint 80/TCP 10.42.2.5:8080 b Pod shop/web-b web-1 yes`},
		{"a foreign Service is not touched", func(f *explain.Facts) { f.Snapshot.Services[0].Class = "other.example/lb" }, `
served no ForeignClass
port 80/TCP no
address 192.0.2.1 a foreign`},
		{"one that is deleted leaves", func(f *explain.Facts) { f.Snapshot.Services[0].Deleting = true }, `
served no Deleting
port 80/TCP no
address 192.0.2.1 a to be removed`},
		{"a port twice: the first counts", func(f *explain.Facts) {
			f.Snapshot.Services[0].Ports = append(f.Snapshot.Services[0].Ports, f.Snapshot.Services[0].Ports[0])
			f.Snapshot.Slices = nil
		}, `
served yes
port 80/TCP yes NoEndpoints
port 80/TCP no PortDuplicate
address 192.0.2.1 a published
address 192.0.2.2 b to be added`},
		{"no port left: published nowhere", func(f *explain.Facts) { f.Snapshot.Services[0].Ports[0].Proto = model.SCTP }, `
served no
port 80/SCTP no SCTPUnsupported
address 192.0.2.1 a to be removed`},
		{"entries of others, excluded nodes, a second family", func(f *explain.Facts) {
			f.Snapshot.Services[0].IPFamilies = []model.Family{model.IPv4, model.IPv6}
			f.Snapshot.Services[0].Ingress = append(f.Snapshot.Services[0].Ingress, model.Ingress{Hostname: "elsewhere.example"})
			f.Snapshot.Nodes[1].Exclude = model.Label{Set: true}
		}, `
served yes NoAddressFamily+ForeignStatus
port 80/TCP yes NoEndpoints
address 192.0.2.1 a published
address elsewhere.example foreign ForeignStatus
address IPv6 a not published NodeWithoutFamily
address IPv4+IPv6 b not published NodeExcluded
endpoint 80/TCP 10.42.1.5:8080 a Pod shop/web-a web-1 yes
endpoint 80/TCP 10.42.2.5:8080 b Pod shop/web-b web-1 yes`},
		{"a copy that does not count has the other's reason; a family without a front", func(f *explain.Facts) {
			copied := *f.Snapshot.Slices[0]
			copied.Name = "web-2"
			copied.Endpoints = []model.SliceEndpoint{copied.Endpoints[1]}
			copied.Endpoints[0].Ready, copied.Endpoints[0].Terminating = model.False, model.True
			f.Snapshot.Slices[0].Endpoints[1].Ready = model.False
			f.Snapshot.Services[0].IPFamilies = []model.Family{model.IPv4, model.IPv6}
			f.Snapshot.Slices = append(f.Snapshot.Slices, &copied, &model.Slice{ObjectKey: model.ObjectKey{Namespace: "shop", Name: "web-3"}, Service: "web",
				Family: model.IPv6, Ports: []model.SlicePort{{Proto: model.TCP, Port: 8080}},
				Endpoints: []model.SliceEndpoint{{Addr: netip.MustParseAddr("2001:db8:a::5"), Node: "a"}}})
			f.Snapshot.Nodes[0].PodCIDRs = append(f.Snapshot.Nodes[0].PodCIDRs, netip.MustParsePrefix("2001:db8:a::/64"))
		}, `
served yes NoAddressFamily
port 80/TCP yes
address 192.0.2.1 a published
address 192.0.2.2 b to be added
address IPv6 a not published NodeWithoutFamily
address IPv6 b not published NodeWithoutFamily
endpoint 80/TCP 10.42.1.5:8080 a Pod shop/web-a web-1 yes
endpoint 80/TCP 10.42.2.5:8080 b Pod shop/web-b web-1 no EndpointNotReady
endpoint 80/TCP 10.42.2.5:8080 b Pod shop/web-b web-2 no EndpointNotReady
endpoint 80/TCP [2001:db8:a::5]:8080 a web-3 no`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := facts()
			tt.change(f)
			if got := said(t, f); got != strings.TrimPrefix(tt.want, "\n") {
				t.Errorf("got\n%s\nwant%s", got, tt.want)
			}
		})
	}
}

func TestWhatDrainsSaysSo(t *testing.T) {
	f := facts()
	for i := range f.Snapshot.Slices[0].Endpoints {
		e := &f.Snapshot.Slices[0].Endpoints[i]
		e.Ready, e.Terminating = model.False, model.True
	}
	const drains = "it is terminating, and serves on while none is ready"
	if got := words(t, f, "web"); strings.Count(got, drains) != 2 {
		t.Errorf("want two endpoints of which %q: %s", drains, got)
	}
	copied := *f.Snapshot.Slices[0]
	copied.Name, copied.Endpoints = "web-2", slices.Clone(copied.Endpoints[:1])
	copied.Endpoints[0].Ready, copied.Endpoints[0].Terminating = model.True, model.False
	f.Snapshot.Slices = append(f.Snapshot.Slices, &copied)
	if got := words(t, f, "web"); strings.Contains(got, drains) {
		t.Errorf("one is ready: %s", got)
	}
}

func TestANode(t *testing.T) {
	f := facts()
	f.Said = map[string]explain.Statement{"b": {Lease: model.Lease{Node: "b", Attached: true, Addresses: f.Leases[1].Addresses,
		Refused: []model.ObjectKey{{Namespace: "shop", Name: "big"}}}, Age: 3 * time.Second}}
	f.Warnings, f.Publisher = []string{"no"}, "b"
	answer, err := explain.Explain(*f, "b")
	if err != nil {
		t.Fatal(err)
	}
	b := answer.Node
	if answer.By != "a" || answer.Publisher != "b" || len(answer.Warnings) != 1 || !b.Listable || !b.Attached || b.Lease == nil ||
		b.Lease.AgeSeconds != 3 || !b.Lease.Attached || strings.Join(b.Lease.Refused, "") != "shop/big" || len(b.Why) != 0 ||
		len(b.Services) != 1 || strings.Join(b.Services[0].Addresses, "") != "192.0.2.2" {
		t.Errorf("%+v %+v", answer, b)
	}
	f.Snapshot.Services[0].Ports[0].Proto = model.SCTP
	answer, _ = explain.Explain(*f, "b")
	if s := answer.Node.Services[0]; len(s.Addresses) != 0 || len(s.Why) != 1 || s.Why[0].Remedy != "see `beep explain shop/web`" {
		t.Errorf("%+v", s)
	}
	f.Leases[1].Left = true
	answer, _ = explain.Explain(*f, "node/b")
	if b := answer.Node; b.Listable || len(b.Services[0].Addresses) != 0 || b.Why[0].Code != "NodeLeft" {
		t.Errorf("%+v", b)
	}
	// One that is gone and has a Lease yet.
	f.Snapshot.Nodes = f.Snapshot.Nodes[:1]
	answer, err = explain.Explain(*f, "b")
	if err != nil || answer.Node.Listable || answer.Node.Why[0].Code != "NodeUnknown" || answer.Node.Lease == nil {
		t.Errorf("%+v, %v", answer.Node, err)
	}
}

// BenchmarkExplain asks about one of 1,000 Services of 10 endpoints on 100 nodes, and about one of the nodes.
func BenchmarkExplain(b *testing.B) {
	f := facts()
	f.Snapshot = model.Snapshot{}
	f.Leases = nil
	for i := range 100 {
		node := &model.Node{Name: fmt.Sprint("n", i), InternalIPs: []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)})},
			PodCIDRs: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 42, byte(i), 0}), 24)}}
		f.Snapshot.Nodes = append(f.Snapshot.Nodes, node)
		f.Leases = append(f.Leases, &model.Lease{Node: node.Name, Attached: true, Addresses: node.InternalIPs})
	}
	for i := range 1000 {
		key := model.ObjectKey{Namespace: "shop", Name: fmt.Sprint("s", i)}
		slice := &model.Slice{ObjectKey: key, Service: key.Name, Family: model.IPv4, Ports: []model.SlicePort{{Proto: model.TCP, Port: 8080}}}
		for j := range 10 {
			slice.Endpoints = append(slice.Endpoints, model.SliceEndpoint{Addr: netip.AddrFrom4([4]byte{10, 42, byte((i + j) % 100), byte(1 + i%200)}),
				Node: fmt.Sprint("n", (i+j)%100), Ready: model.Condition(1 + j%2)})
		}
		f.Snapshot.Slices = append(f.Snapshot.Slices, slice)
		f.Snapshot.Services = append(f.Snapshot.Services, &model.Service{ObjectKey: key, UID: key.Name, IPFamilies: []model.Family{model.IPv4},
			Ports: []model.ServicePort{{Proto: model.TCP, Port: uint16(1000 + i)}}})
	}
	f.Self.Node = "n1"
	for _, name := range []string{"shop/s500", "n7"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := explain.Explain(*f, name); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestNames(t *testing.T) {
	f := facts()
	named := func(namespace, name string) *model.Service {
		return &model.Service{ObjectKey: model.ObjectKey{Namespace: namespace, Name: name}}
	}
	f.Snapshot.Services = append(f.Snapshot.Services, named("one", "dns"), named("two", "dns"), named("shop", "b"), named("node", "x"))
	for _, tt := range []struct{ name, service, node, fault string }{
		{"web", "shop/web", "", ""},
		{"shop/web", "shop/web", "", ""},
		{"a", "", "a", ""},
		{"node/b", "", "b", ""},
		{"shop/b", "shop/b", "", ""},
		{"node/x", "node/x", "", ""},
		{"dns", "", "", `not known: "dns" may be one/dns or two/dns: name one of them`},
		{"b", "", "", `not known: "b" may be shop/b or node/b: name one of them`},
		{"shop/dns", "", "", `not known: no Service of type LoadBalancer and no Node is called "shop/dns": name one as in`},
		{"", "", "", `no Node is called ""`},
	} {
		answer, err := explain.Explain(*f, tt.name)
		switch {
		case tt.fault != "":
			if !errors.Is(err, explain.ErrUnknown) || !strings.Contains(err.Error(), tt.fault) {
				t.Errorf("%s: %v, want %s", tt.name, err, tt.fault)
			}
		case err != nil, tt.service != "" && (answer.Service == nil || answer.Service.Name != tt.service),
			tt.node != "" && (answer.Node == nil || answer.Node.Name != tt.node):
			t.Errorf("%s: %+v, %v", tt.name, answer, err)
		}
	}
}
