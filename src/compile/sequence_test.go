// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/beep-lb/beep/src/compile"
	"github.com/beep-lb/beep/src/model"
)

const twoNodes = `
node a 192.0.2.1 pods=10.42.1.0/24
node b 192.0.2.2 pods=10.42.2.0/24
`

// dumpDeparted is what is swept, one line a kind.
func dumpDeparted(d compile.Departed) string {
	var lines []string
	if len(d.Addrs) > 0 {
		lines = append(lines, fmt.Sprint("all of ", d.Addrs))
	}
	if len(d.Sockets) > 0 {
		lines = append(lines, fmt.Sprint("sockets ", d.Sockets))
	}
	if len(d.UDP) > 0 {
		lines = append(lines, fmt.Sprint("udp ", d.UDP))
	}
	return strings.Join(lines, "; ")
}

func TestDepartures(t *testing.T) {
	web := "slice shop/web-1 web IPv4 8080/TCP:http\n"
	for _, tt := range []struct{ name, before, after, want string }{
		{"C28 a pod leaves the only slice", web + "endpoint 10.42.1.5 uid=p1\nendpoint 10.42.1.6 uid=p2", web + "endpoint 10.42.1.6 uid=p2", "all of [10.42.1.5]"},
		{"C28 the slice goes", web + "endpoint 10.42.1.5 uid=p1", "", "all of [10.42.1.5]"},
		{"I14 an endpoint moves to another slice", web + "endpoint 10.42.1.5 uid=p1", "slice shop/web-2 web IPv4 8080/TCP:http\nendpoint 10.42.1.5 uid=p1", ""},
		{"I14 it is in both for a while", web + "endpoint 10.42.1.5 uid=p1\nslice shop/web-2 web IPv4 8080/TCP:http\nendpoint 10.42.1.5 uid=p1", web + "endpoint 10.42.1.5 uid=p1", ""},
		{"I14 the slice's Service is another", web + "endpoint 10.42.1.5 uid=p1", "slice shop/web-1 other IPv4 8080/TCP:http\nendpoint 10.42.1.5 uid=p1", ""},
		{"readiness flaps", web + "endpoint 10.42.1.5 uid=p1 ready=true", web + "endpoint 10.42.1.5 uid=p1 ready=false serving=false", ""},
		{"it terminates", web + "endpoint 10.42.1.5 uid=p1 ready=true", web + "endpoint 10.42.1.5 uid=p1 ready=false serving=true terminating=true", ""},
		{"the address has another pod now", web + "endpoint 10.42.1.5 uid=p1", web + "endpoint 10.42.1.5 uid=p2", "all of [10.42.1.5]"},
		{"a slice by hand names no pod", web + "endpoint 10.42.1.5 uid=p1", web + "endpoint 10.42.1.5", ""},
		{"hostNetwork: one of two pods at an address", web + "endpoint 192.0.2.1 uid=p1\nslice shop/dns-1 dns IPv4 53/UDP\nendpoint 192.0.2.1 uid=p2",
			"slice shop/dns-1 dns IPv4 53/UDP\nendpoint 192.0.2.1 uid=p2", "sockets [TCP/192.0.2.1:8080]"},
		{"I13 the port has another name", web + "endpoint 10.42.1.5 uid=p1", "slice shop/web-1 web IPv4 8080/TCP:web\nendpoint 10.42.1.5 uid=p1", ""},
		{"I13 the port has another number: the pod is there still", web + "endpoint 10.42.1.5 uid=p1", "slice shop/web-1 web IPv4 8081/TCP:http\nendpoint 10.42.1.5 uid=p1", ""},
		{"D48 UDP terminates beside a ready one", "slice shop/dns-1 dns IPv4 53/UDP\nendpoint 10.42.1.5 uid=p1 ready=true\nendpoint 10.42.2.5 uid=p2 ready=true",
			"slice shop/dns-1 dns IPv4 53/UDP\nendpoint 10.42.1.5 uid=p1 ready=false terminating=true\nendpoint 10.42.2.5 uid=p2 ready=true", "udp [UDP/10.42.1.5:53]"},
		{"D48 UDP terminates and nothing is ready", "slice shop/dns-1 dns IPv4 53/UDP\nendpoint 10.42.1.5 uid=p1 ready=true",
			"slice shop/dns-1 dns IPv4 53/UDP\nendpoint 10.42.1.5 uid=p1 ready=false terminating=true", ""},
		{"D48 a ready one comes later, in another slice", "slice shop/dns-1 dns IPv4 53/UDP\nendpoint 10.42.1.5 uid=p1 ready=false terminating=true",
			"slice shop/dns-1 dns IPv4 53/UDP\nendpoint 10.42.1.5 uid=p1 ready=false terminating=true\nslice shop/dns-2 dns IPv4 53/UDP\nendpoint 10.42.2.5 uid=p2 ready=true", "udp [UDP/10.42.1.5:53]"},
		{"D48 it is said once", "slice shop/dns-1 dns IPv4 53/UDP\nendpoint 10.42.1.5 ready=false terminating=true\nendpoint 10.42.2.5 ready=true",
			"slice shop/dns-1 dns IPv4 53/UDP\nendpoint 10.42.1.5 ready=false terminating=true\nendpoint 10.42.2.5 ready=true\nendpoint 10.42.2.6 ready=true", ""},
		{"D48 a copy in another slice does not terminate", "slice shop/dns-1 dns IPv4 53/UDP\nendpoint 10.42.1.5 ready=true",
			"slice shop/dns-1 dns IPv4 53/UDP\nendpoint 10.42.1.5 ready=false terminating=true\nslice shop/dns-2 dns IPv4 53/UDP\nendpoint 10.42.1.5 ready=true", ""},
		{"D48 publishNotReadyAddresses: terminating and ready is ready", "slice shop/dns-1 dns IPv4 53/UDP\nendpoint 10.42.1.5 ready=true\nendpoint 10.42.2.5 ready=true",
			"slice shop/dns-1 dns IPv4 53/UDP\nendpoint 10.42.1.5 ready=true terminating=true\nendpoint 10.42.2.5 ready=true", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := dumpDeparted(compile.Departures(parseScenario(t, tt.before).snapshot, parseScenario(t, tt.after).snapshot))
			if got != tt.want {
				t.Errorf("swept %q, want %q", got, tt.want)
			}
		})
	}
}

// frontsOn are the fronts of node a as text.
func frontsOn(t *testing.T, text string) string {
	t.Helper()
	s := parseScenario(t, text)
	desired, _ := compile.Datapath(s.snapshot, s.self("a"))
	desired.Peers, desired.Targets, desired.Underlay4 = nil, nil, netip.Addr{}
	return dumpDesired(desired)
}

func TestI20WhatChangesNoMap(t *testing.T) {
	slice := "\nslice shop/web-1 web IPv4 8080/TCP:http\nendpoint 10.42.1.5 on=a\n"
	before := frontsOn(t, twoNodes+"service shop/web 80/TCP:http"+slice)
	for name, service := range map[string]string{
		"a loadBalancerIP": "service shop/web 80/TCP:http loadBalancerIP=203.0.113.1",
		"a new status":     "service shop/web 80/TCP:http ingress=192.0.2.1/VIP",
		"another UID":      "service shop/web 80/TCP:http uid=u2 created=9",
	} {
		if diff := cmp.Diff(before, frontsOn(t, twoNodes+service+slice)); diff != "" {
			t.Errorf("%s (-before +after):\n%s", name, diff)
		}
	}
	affine := frontsOn(t, twoNodes+"service shop/web 80/TCP:http affinity=1m"+slice)
	if want := strings.Replace(before, " →", " affinity 1m0s →", 1); affine != want {
		t.Errorf("affinity: %s, want %s", affine, want)
	}
	renamed := frontsOn(t, twoNodes+"service shop/web 80/TCP:web"+strings.ReplaceAll(slice, "http", "web"))
	if diff := cmp.Diff(before, renamed); diff != "" {
		t.Errorf("I13 a port with another name (-before +after):\n%s", diff)
	}
}

// TestC39AThousandEndpoints replaces a thousand endpoints in ten slices, one slice after the other: no moment has an
// empty front, and what is swept is what left.
func TestC39AThousandEndpoints(t *testing.T) {
	s := parseScenario(t, twoNodes+"service shop/web 80/TCP\n")
	s.snapshot.Nodes[0].PodCIDRs = []netip.Prefix{netip.MustParsePrefix("10.42.0.0/16")}
	for i := range 10 {
		s.snapshot.Slices = append(s.snapshot.Slices, sliceOfHundred(i, 0))
	}
	for i := range 10 {
		next := s.snapshot
		next.Slices = slices.Clone(next.Slices)
		next.Slices[i] = sliceOfHundred(i, 100)
		desired, _ := compile.Datapath(next, s.self("a"))
		if n := len(desired.Fronts[0].Endpoints); n != 1000 {
			t.Fatalf("%d endpoints after slice %d, want 1000", n, i)
		}
		if departed := compile.Departures(s.snapshot, next); len(departed.Addrs) != 100 {
			t.Fatalf("%d departed with slice %d, want 100", len(departed.Addrs), i)
		}
		s.snapshot = next
	}
}

func sliceOfHundred(i, offset int) *model.Slice {
	slice := &model.Slice{ObjectKey: model.ObjectKey{Namespace: "shop", Name: fmt.Sprint("web-", i)}, Service: "web", Family: model.IPv4,
		Ports: []model.SlicePort{{Proto: model.TCP, Port: 8080}}}
	for j := range 100 {
		slice.Endpoints = append(slice.Endpoints, model.SliceEndpoint{
			Addr: netip.AddrFrom4([4]byte{10, 42, byte(i), byte(offset + j)}), Node: "a", Ready: model.True,
		})
	}
	return slice
}

// TestC1TargetsLinger follows a pod whose Service stops being ours: the target stays until the pod leaves its slices.
func TestC1TargetsLinger(t *testing.T) {
	const slice = "slice shop/web-1 web IPv4 8080/TCP\nendpoint 10.42.1.5 on=a\n"
	before := parseScenario(t, twoNodes+"service shop/web 80/TCP\n"+slice)
	was, _ := compile.Datapath(before.snapshot, before.self("a"))
	for _, tt := range []struct{ name, text, want string }{
		{"the Service is another type", twoNodes + slice, "[TCP/10.42.1.5:8080]"},
		{"the pod is not ready", twoNodes + strings.Replace(slice, "on=a", "on=a ready=false", 1), "[TCP/10.42.1.5:8080]"},
		{"the pod left", twoNodes, "[]"},
		{"the pod is elsewhere", twoNodes + strings.Replace(slice, "on=a", "on=b", 1), "[]"},
		{"nothing changed", twoNodes + "service shop/web 80/TCP\n" + slice, "[]"},
	} {
		s := parseScenario(t, tt.text)
		desired, _ := compile.Datapath(s.snapshot, s.self("a"))
		if got := fmt.Sprint(compile.Lingering(s.snapshot, s.self("a"), desired.Targets, was.Targets)); got != tt.want {
			t.Errorf("%s: %s linger, want %s", tt.name, got, tt.want)
		}
	}
}

// publisherOf publishes, writes and remembers, as the elected one does.
type publisherOf struct {
	*scenario
	t *testing.T
}

func (p *publisherOf) publish() (ingress string, writes int) {
	published, _ := compile.Publication(p.snapshot, p.leases, p.publishing(), p.memory)
	for _, status := range published.Statuses {
		if status.Changed {
			writes++
		}
		var entries []string
		for _, entry := range status.Ingress {
			entries = append(entries, dumpEntry(entry))
		}
		ingress = strings.Join(entries, " ")
	}
	p.snapshot, p.memory = applied(p.snapshot, published), published.Memory
	return ingress, writes
}

func (p *publisherOf) expect(what, want string, writes int) {
	p.t.Helper()
	if got, n := p.publish(); got != want || n != writes {
		p.t.Errorf("%s: %q in %d writes, want %q in %d", what, got, n, want, writes)
	}
}

func (p *publisherOf) lease(name string) *model.Lease {
	for _, lease := range p.leases {
		if lease.Node == name {
			return lease
		}
	}
	return nil
}

func TestC34I8AnAddressChangesOnARunningNode(t *testing.T) {
	p := &publisherOf{parseScenario(t, twoNodes+"service shop/web 80/TCP\n"), t}
	p.expect("at first", "192.0.2.1/VIP 192.0.2.2/VIP", 1)
	node := *p.snapshot.Nodes[0]
	node.InternalIPs = addrs([]string{"192.0.2.11"})
	p.snapshot.Nodes = []*model.Node{&node, p.snapshot.Nodes[1]}
	p.expect("the Node is first to say so: its maps have the old front still", "192.0.2.1/VIP 192.0.2.2/VIP", 0)
	p.lease("a").Addresses = node.InternalIPs
	p.expect("the Lease follows", "192.0.2.2/VIP 192.0.2.11/VIP", 1)
	p.expect("afterwards", "192.0.2.2/VIP 192.0.2.11/VIP", 0)
}

// TestC7C2HandOver moves the only pod of a Local Service, one event after the other: the list is never empty.
func TestC7C2HandOver(t *testing.T) {
	p := &publisherOf{parseScenario(t, twoNodes+"service shop/web 80/TCP local\n"), t}
	slice := func(endpoints string) {
		p.snapshot.Slices = parseScenario(t, "slice shop/web-1 web IPv4 8080/TCP\n"+endpoints).snapshot.Slices
	}
	slice("endpoint 10.42.1.5 on=a ready=true")
	p.expect("one pod", "192.0.2.1/VIP", 1)
	slice("endpoint 10.42.1.5 on=a ready=true\nendpoint 10.42.2.5 on=b ready=false")
	p.expect("the next one starts", "192.0.2.1/VIP", 0)
	slice("endpoint 10.42.1.5 on=a ready=true\nendpoint 10.42.2.5 on=b ready=true")
	p.expect("both are ready", "192.0.2.1/VIP 192.0.2.2/VIP", 1)
	slice("endpoint 10.42.1.5 on=a ready=false serving=true terminating=true\nendpoint 10.42.2.5 on=b ready=true")
	p.expect("the old one drains: clients have its grace to follow the list", "192.0.2.2/VIP", 1)
	slice("endpoint 10.42.2.5 on=b ready=true")
	p.expect("the old one is gone", "192.0.2.2/VIP", 0)
	slice("endpoint 10.42.2.5 on=b ready=false serving=true terminating=true\nendpoint 10.42.1.6 on=a ready=false")
	p.expect("the last one drains, and the next one is not ready", "192.0.2.2/VIP", 0)
	slice("")
	p.expect("there is none", "192.0.2.2/VIP 192.0.2.1/VIP", 1)
}

// TestC14C15AMassLossIsHeldAndReleased loses three of four nodes, one after the other as their Leases run out.
func TestC14C15AMassLossIsHeldAndReleased(t *testing.T) {
	p := &publisherOf{parseScenario(t, twoNodes+"node c 192.0.2.3\nnode d 192.0.2.4\nservice shop/web 80/TCP\n"), t}
	all := "192.0.2.1/VIP 192.0.2.2/VIP 192.0.2.3/VIP 192.0.2.4/VIP"
	p.expect("at first", all, 1)
	leases := p.leases
	for _, lease := range leases[1:] {
		lease.Late = true
	}
	for n := 3; n >= 1; n-- {
		p.leases = leases[:n]
		p.expect(fmt.Sprint(n, " left"), all, 0)
	}
	p.leases = leases
	for _, lease := range leases {
		lease.Late = false
	}
	p.expect("all are back", all, 0)
	p.leases = leases[:3]
	p.expect("one alone is lost", "192.0.2.1/VIP 192.0.2.2/VIP 192.0.2.3/VIP", 1)
	p.leases = leases[:1]
	p.expect("two of three are lost", "192.0.2.1/VIP 192.0.2.2/VIP 192.0.2.3/VIP", 0)
	p.memory.Live = []string{"a"}
	p.expect("the caller has confirmed it", "192.0.2.1/VIP", 1)
}

// TestI2I9OrderIsKept takes nodes out and lets them in again: what is listed never moves.
func TestI2I9OrderIsKept(t *testing.T) {
	p := &publisherOf{parseScenario(t, twoNodes+"node c 192.0.2.3\nservice shop/web 80/TCP\n"), t}
	p.expect("at first", "192.0.2.1/VIP 192.0.2.2/VIP 192.0.2.3/VIP", 1)
	exclude := func(label model.Label) {
		node := *p.snapshot.Nodes[0]
		node.Exclude = label
		p.snapshot.Nodes = append([]*model.Node{&node}, p.snapshot.Nodes[1:]...)
	}
	exclude(model.Label{Set: true})
	p.expect("a is excluded", "192.0.2.2/VIP 192.0.2.3/VIP", 1)
	exclude(model.Label{Set: true, Value: "false"})
	p.expect("a is included", "192.0.2.2/VIP 192.0.2.3/VIP 192.0.2.1/VIP", 1)
	service := *p.snapshot.Services[0]
	service.Ingress = nil // as the API server does when the type changes
	p.snapshot.Services = []*model.Service{&service}
	p.expect("the Service left and came back", "192.0.2.1/VIP 192.0.2.2/VIP 192.0.2.3/VIP", 1)
}

// TestRendezvousMovesOneNode takes a published node of many away: the others stay, and one comes in its place.
func TestRendezvousMovesOneNode(t *testing.T) {
	var text strings.Builder
	for i := range 50 {
		fmt.Fprintf(&text, "node n%02d 192.0.2.%d\n", i, i+1)
	}
	p := &publisherOf{parseScenario(t, "rules max=5\n"+text.String()+"service shop/web 80/TCP uid=u1\n"), t}
	before, _ := p.publish()
	gone := strings.Fields(before)[2]
	for _, lease := range p.leases {
		if lease.Addresses[0].String()+"/VIP" == gone {
			lease.Left = true
		}
	}
	after, _ := p.publish()
	kept := slices.DeleteFunc(strings.Fields(before), func(e string) bool { return e == gone })
	if got := strings.Fields(after); len(got) != 5 || !slices.Equal(got[:4], kept) {
		t.Errorf("%s became %s, want the same without %s and one more at the end", before, after, gone)
	}
}

// TestEveryCodeHasWords checks the table of reasons, which events and metrics take their names from.
func TestEveryCodeHasWords(t *testing.T) {
	seen := map[string]bool{}
	for code := compile.ForeignClass; code <= compile.NodeNotChosen; code++ {
		r := compile.Reason{Code: code, Service: key("shop/web"), Detail: "x"}
		if code.String() == "" || seen[code.String()] || r.Text() == "" || r.Remedy() == "" || strings.Contains(r.Text(), "%") {
			t.Errorf("code %d: %s", code, r)
		}
		seen[code.String()] = true
	}
	for _, name := range []string{"PortConflict", "PortReserved", "NoAddressFamily", "SCTPUnsupported", "ForeignStatus"} {
		if !seen[name] {
			t.Errorf("the Event %s of the operator's documentation has no code", name)
		}
	}
}
