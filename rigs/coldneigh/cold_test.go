// SPDX-License-Identifier: Apache-2.0

package coldneigh_test

import (
	"github.com/gopacket/gopacket/layers"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/vishvananda/netlink"

	"github.com/beep-lb/beep/harness/fronts"
	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
	"github.com/beep-lb/beep/harness/watch"
)

var _ = Describe("an empty neighbour cache", Label("netns"), func() {
	for _, offload := range scene.Offloads {
		Context(offload.String(), func() {
			It("costs the very first packets nothing, on one LAN", func() {
				r := newRig(topo.TwoNodes(topo.Options{}), offload, "client", "eth0")
				r.firstPacketsArrive(false)
			})

			It("costs no packet when it was emptied in operation, on one LAN", func() {
				r := newRig(topo.TwoNodes(topo.Options{}), offload, "client", "eth0")
				r.firstPacketsArrive(true)
			})

			It("costs no packet where the client is behind a router", func() {
				r := newRig(topo.BehindRouter(2, topo.Options{}), offload, "client", "eth0")
				r.firstPacketsArrive(false)
				r.firstPacketsArrive(true)
			})

			It("costs no packet where the answer leaves by another uplink than the routes say", func() {
				r := newRig(topo.TwoUplinks(2, topo.Options{}), offload, "client-2", "eth1")
				r.secondDefault()
				r.firstPacketsArrive(false)
				r.firstPacketsArrive(true)
			})
		})
	}
})

// firstPacketsArrive asks each pod over each family, with empty caches each time if forgetful, and expects that no
// SYN or SYN-ACK is repeated and no datagram lost.
func (r rig) firstPacketsArrive(forgetful bool) {
	GinkgoHelper()
	for _, family := range families {
		for _, pod := range pods {
			if forgetful {
				r.forget()
			}
			w, err := watch.Start(r.Topology, r.client, "eth0")
			Expect(err).NotTo(HaveOccurred())
			answer, err := traffic.Get(r.Context(limit), r.NS(r.client), r.front(family, fronts.HTTP, pod))
			Expect(err).NotTo(HaveOccurred())
			Expect(answer.Server).To(Equal(pod))
			Expect(handshake(w)).To(Equal([2]int{1, 1}), "SYNs and SYN-ACKs on the client's wire, %s", pod)
			if forgetful {
				r.forget()
			}
			Expect(r.burst(family, pod)).To(Succeed())
		}
	}
	r.clean()
}

// handshake counts the SYNs and the SYN-ACKs of a watch.
func handshake(w *watch.Watch) (count [2]int) {
	GinkgoHelper()
	packets, err := w.Packets()
	Expect(err).NotTo(HaveOccurred())
	for _, p := range packets {
		if tcp, ok := p.TransportLayer().(*layers.TCP); ok && tcp.SYN {
			if tcp.ACK {
				count[1]++
			} else {
				count[0]++
			}
		}
	}
	return count
}

// secondDefault gives the nodes a default route out of eth1, too, worse than the one out of eth0, with client-2 as its
// gateway: so the kernel must resolve a neighbour on eth1 for what its own routes send to eth0.
func (r rig) secondDefault() {
	GinkgoHelper()
	const worse = 2048
	for _, node := range []string{"node-a", "node-b"} {
		nl := r.NS(node).Netlink()
		eth1, err := nl.LinkByName("eth1")
		Expect(err).NotTo(HaveOccurred())
		for _, family := range families {
			Expect(nl.RouteAdd(&netlink.Route{
				LinkIndex: eth1.Attrs().Index, Gw: r.Addr(r.client, family).AsSlice(), Priority: worse, Flags: int(netlink.FLAG_ONLINK),
			})).To(Succeed())
		}
	}
}
