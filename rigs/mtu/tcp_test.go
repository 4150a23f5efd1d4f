// SPDX-License-Identifier: Apache-2.0

package mtu_test

import (
	"net"
	"net/netip"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/vishvananda/netlink"

	"github.com/beep-lb/beep/harness/fronts"
	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/traffic"
	"github.com/beep-lb/beep/harness/watch"
)

// tcpHeader in bytes, without options.
const tcpHeader = 20

// bulk is how many bytes a stream moves each way.
const bulk = 4 << 20

// bulk moves a stream both ways at once through each tunnel, and looks at what its ends announced to each other.
func (r rig) bulk(l links) {
	GinkgoHelper()
	atPod, err := watch.Start(r.Topology, remotePod, "eth0")
	Expect(err).NotTo(HaveOccurred())
	atClient, err := watch.Start(r.Topology, "client", "eth0")
	Expect(err).NotTo(HaveOccurred())
	before := r.Drops()
	r.stream(remotePod)
	Expect(since(r.Drops(), before)).To(BeEmpty())
	headers := r.header() + tcpHeader
	Expect(announced(atPod, false)).To(HaveEach(uint16(min(l.uplink, r.back(l.uplink))-headers)), "the client's, as the pod has it")
	Expect(announced(atClient, true)).To(HaveEach(uint16(min(l.pod, r.forward(l.uplink))-headers)), "the pod's, as the client has it")
	r.stream(localPod)
}

// stream moves bytes both ways.
func (r rig) stream(pod string) {
	GinkgoHelper()
	transfer, err := traffic.Exchange(r.Context(limit), r.NS("client"), r.front(fronts.Stream, pod), bulk, bulk)
	Expect(err).NotTo(HaveOccurred())
	Expect(transfer.Client.Addr()).To(Equal(r.Addr("client", r.inner)))
}

// announced are the segment sizes in the SYNs, or the SYN-ACKs, of a watch.
func announced(w *watch.Watch, ack bool) []uint16 {
	GinkgoHelper()
	sizes, err := w.SegmentSizes(ack)
	Expect(err).NotTo(HaveOccurred())
	Expect(sizes).NotTo(BeEmpty())
	return sizes
}

// narrowed is the MTU of a path that shrinks, and of routes that are locked to it.
const narrowed = 1400

// narrow locks the MTU of a host's route, which the plan has written or the kernel has for its subnet.
func (r rig) narrow(host string, to netip.Prefix, via netip.Addr, mtu int) {
	GinkgoHelper()
	link, err := r.NS(host).Netlink().LinkByName(r.device(host))
	Expect(err).NotTo(HaveOccurred())
	route := &netlink.Route{
		Dst: &net.IPNet{IP: to.Addr().AsSlice(), Mask: net.CIDRMask(to.Bits(), to.Addr().BitLen())},
		MTU: mtu, MTULock: true, LinkIndex: link.Attrs().Index,
	}
	if via.IsValid() {
		route.Gw = via.AsSlice()
	} else {
		route.Scope = netlink.SCOPE_LINK
	}
	Expect(r.NS(host).Netlink().RouteReplace(route)).To(Succeed())
}

// narrowTunnel locks the MTU of the way from one of the nodes to the other.
func (r rig) narrowTunnel(node string, mtu int) {
	GinkgoHelper()
	peer := r.Addr(map[string]string{"node-a": "node-b", "node-b": "node-a"}[node], r.outer)
	r.narrow(node, netip.PrefixFrom(peer, peer.BitLen()), netip.Addr{}, mtu)
}

// The streams that are under way while an MTU changes.
const (
	long      = 24 << 20 // bytes each way
	perSecond = 24 << 20
	underWay  = 2 << 20
)

var _ = Describe("a TCP connection whose segment size is from before the MTU shrank", Label("netns"), func() {
	everywhere(func(w way, offload scene.Offload) {
		It("goes on when the way between the nodes becomes narrower", func() {
			r := onOneLAN(links{1500, 1500}, offload, w)
			transfer := r.Exchange(r.Context(limit), "client", r.front(fronts.Stream, remotePod), long, long, perSecond)
			Eventually(transfer.Moved).WithTimeout(limit).Should(BeNumerically(">", underWay))
			r.narrowTunnel("node-a", narrowed)
			r.narrowTunnel("node-b", narrowed)
			_, err := transfer.Wait()
			Expect(err).NotTo(HaveOccurred())
			Expect(r.Drops()).To(And(HaveLen(2), HaveKey("node-a too-big"), HaveKey("node-b too-big")), "each sender was told")
			r.expectRightChecksums()
		})

		for _, pod := range []string{localPod, remotePod} {
			if pod == localPod && w.inner != w.outer {
				continue
			}
			It("goes on when the pod's own link becomes narrower, "+pod, func() {
				r := onOneLAN(links{1500, 1500}, offload, w)
				transfer := r.Exchange(r.Context(limit), "client", r.front(fronts.Stream, pod), long, long, perSecond)
				Eventually(transfer.Moved).WithTimeout(limit).Should(BeNumerically(">", underWay))
				r.shrinkPod(pod, 1300)
				_, err := transfer.Wait()
				Expect(err).NotTo(HaveOccurred())
				Expect(r.Drops()).To(BeEmpty(), "it is the node's kernel that refuses")
				r.expectRightChecksums()
			})
		}
	})
})

// shrinkPod sets the MTU of both ends of a pod's link.
func (r rig) shrinkPod(pod string, mtu int) {
	GinkgoHelper()
	for host, device := range map[string]string{pod: "eth0", r.Pod(pod).Node: pod} {
		link, err := r.NS(host).Netlink().LinkByName(device)
		Expect(err).NotTo(HaveOccurred())
		Expect(r.NS(host).Netlink().LinkSetMTU(link, mtu)).To(Succeed())
	}
}
