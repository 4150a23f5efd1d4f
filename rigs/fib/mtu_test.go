// SPDX-License-Identifier: Apache-2.0

package fib_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/vishvananda/netlink"

	"github.com/beep-lb/beep/harness/fronts"
	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/watch"
)

// routeMTU is the MTU of a route that is below its device's, as towards a peer behind a narrower link.
const routeMTU = 1400

// announced are the segment sizes that fit routeMTU. Each end is told what the other may send: the pod's segments
// return through the short header (40 bytes outside of IPv4, 60 of IPv6), the client's go through the long one (60
// and 80); the inner headers take 40 and 60.
var announced = map[topo.Families]struct{ toPod, toClient uint16 }{
	topo.V4: {toPod: routeMTU - 40 - 40, toClient: routeMTU - 60 - 40},
	topo.V6: {toPod: routeMTU - 60 - 60, toClient: routeMTU - 80 - 60},
}

var _ = Describe("a route with an MTU of its own", Label("netns"), func() {
	for _, offload := range scene.Offloads {
		Context(offload.String(), func() {
			for _, node := range []string{"node-a", "node-b"} {
				It("lowers the segment size of new connections in both directions, set on "+node, func() {
					r := newRig(offload)
					for _, family := range families {
						r.narrow(node, family)
						atPod, err := watch.Start(r.Topology, pod, "eth0")
						Expect(err).NotTo(HaveOccurred())
						atClient, err := watch.Start(r.Topology, "client", "eth0")
						Expect(err).NotTo(HaveOccurred())
						Expect(fronts.Try(r.Context(limit), r.Topology, "client", r.Addr("node-a", family), pod,
							fronts.Load{Bytes: 4 << 20, Datagrams: 100})).To(Succeed())
						Expect(segmentSizes(atPod, false)).To(HaveEach(announced[family].toPod))
						Expect(segmentSizes(atClient, true)).To(HaveEach(announced[family].toClient))
						r.goesOn(family)
					}
					r.clean()
				})
			}
		})
	}
})

// narrow locks the MTU of a node's route to the other node: a bound, not what path MTU discovery may correct.
func (r rig) narrow(node string, family topo.Families) {
	GinkgoHelper()
	route := r.usual(node, family)
	Expect(r.NS(node).Netlink().RouteReplace(&netlink.Route{
		Dst: ipNet(route.To), Gw: route.Via.AsSlice(), MTU: routeMTU, MTULock: true,
	})).To(Succeed())
}

// segmentSizes are those that the SYNs, or the SYN-ACKs, of a watch announce; at least one must.
func segmentSizes(w *watch.Watch, ack bool) []uint16 {
	GinkgoHelper()
	sizes, err := w.SegmentSizes(ack)
	Expect(err).NotTo(HaveOccurred())
	Expect(sizes).NotTo(BeEmpty())
	return sizes
}
