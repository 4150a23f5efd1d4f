// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/beep-lb/beep/src/compile"
	"github.com/beep-lb/beep/src/model"
)

// cell is one kind of endpoint: its conditions and where it is.
type cell struct {
	ready, serving, terminating model.Condition
	local                       bool
}

// isReady, isServing and isTerminating are the conditions with the defaults of EndpointConditions (discovery/v1).
func (c cell) isReady() bool       { return c.ready != model.False }
func (c cell) isServing() bool     { return c.serving != model.False }
func (c cell) isTerminating() bool { return c.terminating == model.True }

// upstream says which of the endpoints kube-proxy's rule uses for external traffic without hints, as the documentation
// of Kubernetes tells it ("Traffic to terminating endpoints") and with beep's first deviation: where a Local Service
// has nothing here, the ready ones elsewhere are used. The second one, no refusal where there is none, is not its
// business. It is written from the rule, not from compile.
func upstream(cells []cell, local bool) []cell {
	only := func(pass func(cell) bool) []cell {
		return slices.DeleteFunc(slices.Clone(cells), func(c cell) bool { return !pass(c) })
	}
	ready := only(cell.isReady)
	fallback := only(func(c cell) bool { return !c.isReady() && c.isServing() && c.isTerminating() })
	here := func(list []cell) []cell {
		return slices.DeleteFunc(slices.Clone(list), func(c cell) bool { return !c.local })
	}
	if !local {
		if len(ready) > 0 {
			return ready
		}
		return fallback
	}
	for _, list := range [][]cell{here(ready), here(fallback)} {
		if len(list) > 0 {
			return list
		}
	}
	return ready
}

// allCells are the ready × serving × terminating × locality ones: 3·3·3·2.
func allCells() []cell {
	var cells []cell
	conditions := []model.Condition{model.Unset, model.False, model.True}
	for _, ready := range conditions {
		for _, serving := range conditions {
			for _, terminating := range conditions {
				for _, local := range []bool{true, false} {
					cells = append(cells, cell{ready, serving, terminating, local})
				}
			}
		}
	}
	return cells
}

// addrOfCell numbers the endpoints: the third byte is the node.
func addrOfCell(i int, local bool) netip.Addr {
	if local {
		return netip.AddrFrom4([4]byte{10, 42, 1, byte(i + 1)})
	}
	return netip.AddrFrom4([4]byte{10, 42, 2, byte(i + 1)})
}

// chosenOf compiles a Service of the endpoints on node a, and returns the addresses of its front's endpoints.
func chosenOf(t *testing.T, cells []cell, local bool) []string {
	t.Helper()
	slice := &model.Slice{ObjectKey: model.ObjectKey{Namespace: "shop", Name: "web-1"}, Service: "web", Family: model.IPv4,
		Ports: []model.SlicePort{{Proto: model.TCP, Port: 8080}}}
	for i, c := range cells {
		node := "b"
		if c.local {
			node = "a"
		}
		slice.Endpoints = append(slice.Endpoints, model.SliceEndpoint{
			Addr: addrOfCell(i, c.local), Node: node, Ready: c.ready, Serving: c.serving, Terminating: c.terminating,
		})
	}
	desired, reasons := compile.Datapath(model.Snapshot{
		Services: []*model.Service{{ObjectKey: model.ObjectKey{Namespace: "shop", Name: "web"}, IPFamilies: []model.Family{model.IPv4},
			ExternalLocal: local, Ports: []model.ServicePort{{Proto: model.TCP, Port: 80}}}},
		Slices: []*model.Slice{slice},
		Nodes: []*model.Node{
			{Name: "a", InternalIPs: []netip.Addr{netip.MustParseAddr("192.0.2.1")}, PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.42.1.0/24")}},
			{Name: "b", InternalIPs: []netip.Addr{netip.MustParseAddr("192.0.2.2")}, PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.42.2.0/24")}},
		},
	}, compile.Self{Node: "a"})
	if len(desired.Fronts) != 1 {
		t.Fatalf("%d fronts, want one also without endpoints", len(desired.Fronts))
	}
	var got []string
	for _, endpoint := range desired.Fronts[0].Endpoints {
		got = append(got, endpoint.Addr.String())
	}
	explained := map[netip.Addr]bool{}
	for _, reason := range reasons {
		explained[reason.Addr] = true
	}
	for _, endpoint := range slice.Endpoints {
		if used := slices.Contains(got, endpoint.Addr.String()); used == explained[endpoint.Addr] {
			t.Errorf("%s: used %t, and a reason against it %t", endpoint.Addr, used, !used)
		}
	}
	return got
}

func wantedOf(cells []cell, local bool) []string {
	used := upstream(cells, local)
	var want []string
	for i, c := range cells {
		if slices.Contains(used, c) {
			want = append(want, addrOfCell(i, c.local).String())
		}
	}
	slices.SortFunc(want, func(a, b string) int { return netip.MustParseAddr(a).Compare(netip.MustParseAddr(b)) })
	return want
}

// TestI10Matrix compiles every cell under both policies, beside nothing, and beside every other cell: what is used
// depends on what else there is.
func TestI10Matrix(t *testing.T) {
	cells := allCells()
	tried := 0
	for _, local := range []bool{false, true} {
		for _, one := range cells {
			beside := [][]cell{{one}}
			for _, other := range cells {
				beside = append(beside, []cell{one, other})
			}
			for _, set := range beside {
				tried++
				if diff := cmp.Diff(wantedOf(set, local), chosenOf(t, set, local)); diff != "" {
					t.Errorf("externalTrafficPolicy Local %t, endpoints %+v (-want +got):\n%s", local, set, diff)
				}
			}
		}
	}
	// 3·3·3·2·2 = 108 cells alone, and each of them beside 54 others.
	if want := 108 + 108*54; tried != want {
		t.Errorf("%d sets tried, want %d", tried, want)
	}
}

// TestI10MatrixOfTwoFamilies is the same with the front's own family beside a ready endpoint of the other: that one
// is never used and never counts as ready.
func TestI10MatrixOfTwoFamilies(t *testing.T) {
	for _, local := range []bool{false, true} {
		for i, one := range allCells() {
			t.Run(fmt.Sprint(local, i), func(t *testing.T) {
				if diff := cmp.Diff(wantedOf([]cell{one}, local), dualChosen(t, one, local)); diff != "" {
					t.Errorf("%+v (-want +got):\n%s", one, diff)
				}
			})
		}
	}
}

// dualChosen compiles a dual-stack Service with the cell in IPv4 and a ready endpoint here in IPv6.
func dualChosen(t *testing.T, one cell, local bool) []string {
	t.Helper()
	node := map[bool]string{true: "a", false: "b"}[one.local]
	s := parseScenario(t, `
node a 192.0.2.1 2001:db8:b::1 pods=10.42.1.0/24,2001:db8:a:1::/64
node b 192.0.2.2 2001:db8:b::2 pods=10.42.2.0/24,2001:db8:a:2::/64
service shop/web 80/TCP families=IPv4,IPv6
slice shop/web-4 web IPv4 8080/TCP
slice shop/web-6 web IPv6 8080/TCP
endpoint 2001:db8:a:1::5 on=a ready=true
`)
	s.snapshot.Services[0].ExternalLocal = local
	s.snapshot.Slices[0].Endpoints = []model.SliceEndpoint{{
		Addr: addrOfCell(0, one.local), Node: node, Ready: one.ready, Serving: one.serving, Terminating: one.terminating,
	}}
	desired, _ := compile.Datapath(s.snapshot, s.self("a"))
	var got []string
	for _, front := range desired.Fronts {
		for _, endpoint := range front.Endpoints {
			if endpoint.Addr.Is4() != front.Addr.Is4() {
				t.Errorf("front %s has the endpoint %s", front.Socket, endpoint)
			}
			if front.Addr.Is4() {
				got = append(got, endpoint.Addr.String())
			}
		}
	}
	return got
}
