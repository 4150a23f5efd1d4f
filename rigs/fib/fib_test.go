// SPDX-License-Identifier: Apache-2.0

// Package fib is the rig of the tunnel's way: it is the kernel's routes that lead it, packet by packet. Invariant:
// each spec has namespaces, maps and daemons of its own.
package fib_test

import (
	"net/http"
	"net/netip"
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/beep"
	"github.com/beep-lb/beep/harness/fronts"
	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
	"github.com/beep-lb/beep/harness/watch"
)

func TestFIB(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "rig fib")
}

var _ = AfterSuite(func() { require.Report(os.Stdout) })

// limit ends whatever a spec waits for.
const limit = 30 * time.Second

// pod is behind the tunnel of a client that dials node-a.
const pod = "pod-b1"

var families = []topo.Families{topo.V4, topo.V6}

// rig is two paths between the nodes, and for each family a connection of the client that stays open through node-a
// to the pod on node-b.
type rig struct {
	*scene.Scene
	open map[topo.Families]connection
}

// connection is an HTTP client with its one connection, and how the pod sees it.
type connection struct {
	*http.Client
	source netip.AddrPort
}

func newRig(offload scene.Offload) rig {
	GinkgoHelper()
	r := rig{scene.New(GinkgoT(), topo.TwoPaths(topo.Options{}), offload), map[topo.Families]connection{}}
	Expect(r.Evidence.CaptureAll()).To(Succeed())
	_, err := fronts.Serve(r.Topology)
	Expect(err).NotTo(HaveOccurred())
	r.Beep(beep.Options{Services: fronts.Services(&r.Plan, pod)})
	for _, family := range families {
		client := traffic.HTTPClient(r.NS("client"))
		answer, err := traffic.Ask(r.Context(limit), client, r.front(family, fronts.HTTP))
		Expect(err).NotTo(HaveOccurred())
		Expect(answer.Client.Addr()).To(Equal(r.Addr("client", family)))
		r.open[family] = connection{client, answer.Client}
	}
	return r
}

// front is node-a's.
func (r rig) front(family topo.Families, kind fronts.Kind) netip.AddrPort {
	return fronts.At(&r.Plan, r.Addr("node-a", family), kind, pod)
}

// carried expects the tunnels of a family to go there (node-a to node-b) and back by these gateways and by no other,
// that the open connection goes on, and that no datagram is lost.
func (r rig) carried(family topo.Families, there, back string) {
	GinkgoHelper()
	const datagrams = 50
	watches := map[string]*watch.Watch{}
	for _, gateway := range []string{"gw-1", "gw-2"} {
		w, err := watch.Start(r.Topology, gateway, "eth0")
		Expect(err).NotTo(HaveOccurred())
		watches[gateway] = w
	}
	r.goesOn(family)
	tally, err := traffic.SendUDP(r.Context(limit), r.NS("client"), r.front(family, fronts.Datagram), traffic.Datagrams{Count: datagrams})
	Expect(err).NotTo(HaveOccurred())
	Expect(tally.Lost).To(BeZero(), "%s", tally)
	for gateway, w := range watches {
		packets, err := w.Packets()
		Expect(err).NotTo(HaveOccurred())
		var forward, reverse int
		for _, p := range packets {
			switch src, _, _ := watch.Ends(p); {
			case !watch.IsTunnel(p) || !family.Has(src):
			case src == r.Addr("node-a", family):
				forward++
			case src == r.Addr("node-b", family):
				reverse++
			}
		}
		expectWay(gateway == there, forward, datagrams, gateway+" to node-b")
		expectWay(gateway == back, reverse, datagrams, gateway+" to node-a")
	}
}

func expectWay(wanted bool, packets, atLeast int, name string) {
	GinkgoHelper()
	if wanted {
		Expect(packets).To(BeNumerically(">", atLeast), "tunnel packets by %s", name)
	} else {
		Expect(packets).To(BeZero(), "tunnel packets by %s", name)
	}
}

// goesOn asks once on the connection that is open.
func (r rig) goesOn(family topo.Families) {
	GinkgoHelper()
	answer, err := traffic.Ask(r.Context(limit), r.open[family].Client, r.front(family, fronts.HTTP))
	Expect(err).NotTo(HaveOccurred())
	Expect(answer).To(Equal(traffic.Answer{Server: pod, Client: r.open[family].source}))
}

// detour is a node's route to the other node by gw-2, as the plan has it in topo.PathTable.
func (r rig) detour(node string, family topo.Families) topo.Route {
	GinkgoHelper()
	for _, route := range r.Host(node).Routes {
		if route.Table == topo.PathTable && family.Has(route.To.Addr()) {
			route.Table = 0
			return route
		}
	}
	Fail("no route of " + node + " in the second table")
	return topo.Route{}
}

// usual is the same route by gw-1, as the plan has it in the main table.
func (r rig) usual(node string, family topo.Families) topo.Route {
	GinkgoHelper()
	route := r.detour(node, family)
	route.Via = route.Via.Prev()
	return route
}

func (r rig) clean() {
	GinkgoHelper()
	Expect(r.Drops()).To(BeEmpty())
	Expect(r.ChecksumErrors()).To(BeEmpty())
}
