// SPDX-License-Identifier: Apache-2.0

package mtu_test

import (
	"net/netip"

	"github.com/gopacket/gopacket/layers"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
	"github.com/beep-lb/beep/harness/watch"
)

var _ = Describe("a datagram that its sender's kernel fragments", Label("netns"), func() {
	everywhere(func(w way, offload scene.Offload) {
		It("reaches the pod whole, and so does one that comes back, every fragment of it from the front", func() {
			r := onOneLAN(links{1500, 1500}, offload, w)
			atClient, err := watch.Start(r.Topology, "client", "eth0")
			Expect(err).NotTo(HaveOccurred())
			for _, pod := range []string{localPod, remotePod} {
				// Of the last one fifteen fragments are cut in two on the way into the tunnel.
				for _, size := range []int{1473, 2000, 4096, 8000, 20000} {
					t := r.open(pod, mayFragment[r.inner], mayFragment[r.inner])
					for _, d := range both {
						Expect(t.insist(d, size+r.header()+udpHeader, 2)).To(Succeed(), "%s, %s", pod, d)
					}
					t.end()
				}
			}
			if r.inner == topo.V4 {
				Expect(r.Drops()).To(BeEmpty())
			} else { // while a kernel learns the path MTU: first fragments that are refused, and the tails that they leave
				for reason := range r.Drops() {
					Expect(reason).To(MatchRegexp("^node-[ab] (too-big|fragment-orphan)$"))
				}
			}
			packets, err := atClient.Packets()
			Expect(err).NotTo(HaveOccurred())
			fragments := 0
			for _, p := range packets {
				src, dst, ok := watch.Ends(p)
				if !ok || dst != r.Addr("client", r.inner) || !isFragment(p.NetworkLayer(), p.Layer(layers.LayerTypeIPv6Fragment) != nil) {
					continue
				}
				fragments++
				Expect(src).To(Equal(r.dialled()), p.String())
			}
			Expect(fragments).To(BeNumerically(">=", 2*(2+2+3+6+14)))
			r.expectRightChecksums()
		})

		It("reaches one pod with all its fragments where a front has several", func() {
			r := onOneLAN(links{1500, 1500}, offload, w)
			count := map[string]int{}
			front := netip.AddrPortFrom(r.dialled(), sharedPort)
			const clients, each, size = 24, 4, 4096
			ask := func(datagrams traffic.Datagrams) traffic.Tally {
				tally, err := traffic.SendUDP(r.Context(limit), r.NS("client"), front, datagrams)
				Expect(err).NotTo(HaveOccurred())
				return tally
			}
			for range 2 * clients { // until each kernel has learned the path MTU, an IPv6 datagram may be lost
				if r.inner == topo.V6 {
					ask(traffic.Datagrams{Count: 1, Size: size, Patience: patience})
				}
			}
			before := map[string]int{}
			for pod, echo := range r.shared {
				before[pod] = echo.Count().Answered
			}
			for range clients {
				tally := ask(traffic.Datagrams{Count: each, Size: size})
				Expect(tally.Received).To(Equal(each), "%s", tally)
			}
			for pod, echo := range r.shared {
				count[pod] = echo.Count().Answered - before[pod]
				Expect(echo.Count().Foreign).To(BeZero())
				Expect(count[pod]%each).To(BeZero(), "a flow keeps its pod")
				Expect(count[pod]).To(BeNumerically(">", 0), "%s had its share", pod)
			}
			Expect(count[localPod] + count[remotePod]).To(Equal(clients * each))
			r.expectRightChecksums()
		})
	})
})

// isFragment tells by the network header of IPv4, and by an extension header of IPv6.
func isFragment(layer any, extension bool) bool {
	ip, v4 := layer.(*layers.IPv4)
	return extension || v4 && (ip.FragOffset != 0 || ip.Flags&layers.IPv4MoreFragments != 0)
}
