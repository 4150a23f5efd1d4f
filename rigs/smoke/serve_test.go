// SPDX-License-Identifier: Apache-2.0

package smoke_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
)

var _ = Describe("a node with its pods", Label("netns"), func() {
	for _, offload := range scene.Offloads {
		Context(offload.String(), func() {
			for _, family := range scene.Families {
				name := scene.FamilyName(family)
				It("serves TCP from its pods, which see the client's address and port over "+name, func() {
					r := newRig(offload)
					answers := map[string]int{}
					for i := range 64 {
						from := r.from(family, uint16(40000+i))
						answer := r.get(from, r.front(family, web.Port))
						Expect(answer.Client).To(Equal(from))
						answers[answer.Server]++
					}
					Expect(answers).To(HaveLen(2), "64 ports of a client reach both pods")
					Expect(answers).To(And(HaveKey("pod-a1 web"), HaveKey("pod-a2 web")))
					Expect(r.Drops()).To(BeEmpty())
					Expect(r.ChecksumErrors()).To(BeEmpty())
				})

				It("serves UDP from its pods, which see the client's address and port over "+name, func() {
					r := newRig(offload)
					for i := range 8 {
						from := r.from(family, uint16(40000+i))
						tally, err := traffic.SendUDP(r.Context(limit), r.NS("client"), r.front(family, dns.Port),
							traffic.Datagrams{Count: 500, Size: 1200, From: from, Patience: require.Within(time.Second)})
						Expect(err).NotTo(HaveOccurred())
						Expect(tally.Received).To(Equal(500), "%s", tally)
						Expect(tally.Sources).To(Equal(map[netip.AddrPort]int{from: 500}))
					}
					Expect(r.Drops()).To(BeEmpty())
					Expect(r.ChecksumErrors()).To(BeEmpty())
				})

				It("moves bulk data both ways whole over "+name, func() {
					r := newRig(offload)
					transfer, err := traffic.Exchange(r.Context(limit), r.NS("client"), r.front(family, bulk.Port), 64<<20, 64<<20)
					Expect(err).NotTo(HaveOccurred())
					Expect(transfer.Client.Addr()).To(Equal(r.Addr("client", family)))
					Expect(r.Drops()).To(BeEmpty())
					Expect(r.ChecksumErrors()).To(BeEmpty())
				})

				It("keeps the ports and protocols of a Service apart over "+name, func() {
					r := newRig(offload)
					Expect(r.get(r.from(family, 40000), r.front(family, web.Port)).Server).To(HaveSuffix(" web"))
					Expect(r.get(r.from(family, 40001), r.front(family, admin.Port)).Server).To(HaveSuffix(" admin"))
					from := r.from(family, 40002)
					conn, err := r.NS("client").DialFrom(r.Context(limit), "tcp", from, r.front(family, bulk.Port))
					Expect(err).NotTo(HaveOccurred())
					transfer, err := traffic.ExchangeOn(r.Context(limit), conn, 1000, 1000)
					Expect(err).NotTo(HaveOccurred())
					Expect(transfer.Server).To(HaveSuffix(" bulk"))
					tally, err := traffic.SendUDP(r.Context(limit), r.NS("client"), r.front(family, dns.Port),
						traffic.Datagrams{Count: 10, From: from, Patience: require.Within(time.Second)})
					Expect(err).NotTo(HaveOccurred())
					Expect(tally.Received).To(Equal(10), "%s", tally)
				})

				It("drops what goes to a front without endpoints, silently but counted, over "+name, func() {
					r := newRig(offload)
					ctx, cancel := context.WithTimeout(r.Context(limit), 300*time.Millisecond)
					defer cancel()
					_, err := r.NS("client").DialFrom(ctx, "tcp", netip.AddrPort{}, r.front(family, 9))
					var timeout net.Error
					Expect(errors.As(err, &timeout) && timeout.Timeout()).To(BeTrue(), "a reset or an ICMP error came back: %v", err)

					tally, err := traffic.SendUDP(r.Context(limit), r.NS("client"), r.front(family, 9),
						traffic.Datagrams{Count: 5, Patience: 100 * time.Millisecond})
					Expect(err).NotTo(HaveOccurred())
					Expect(tally.Lost).To(Equal(5), "%s", tally)
					Expect(tally.Refused).To(BeEmpty(), "an ICMP error came back")

					drops := r.Drops()
					Expect(drops).To(HaveLen(1))
					Expect(drops["node-a no-endpoint"]).To(BeNumerically(">=", 6))
				})
			}

			It("serves a device that was deleted and came back, with the same daemon", func() {
				r := newRig(offload)
				client := traffic.HTTPClient(r.NS("client"))
				before, err := traffic.Ask(r.Context(limit), client, r.front(topo.V4, web.Port))
				Expect(err).NotTo(HaveOccurred())
				Expect(r.Recreate("node-a", "eth0")).To(Succeed())
				r.forgetNode()
				for _, family := range scene.Families {
					Eventually(func() error {
						ctx, cancel := context.WithTimeout(r.Context(limit), require.Within(500*time.Millisecond))
						defer cancel()
						_, err := traffic.Get(ctx, r.NS("client"), r.front(family, web.Port))
						return err
					}, require.Within(5*time.Second), 10*time.Millisecond).Should(Succeed())
				}
				Expect(r.node().Running()).To(BeTrue())
				after, err := traffic.Ask(r.Context(require.Within(5*time.Second)), client, r.front(topo.V4, web.Port))
				Expect(err).NotTo(HaveOccurred())
				Expect(after).To(Equal(before), "the connection that was open goes on")
			})
		})
	}
})

// get asks a web server once, from a source of the spec's choice.
func (r rig) get(from, at netip.AddrPort) traffic.Answer {
	GinkgoHelper()
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return r.NS("client").DialFrom(ctx, network, from, at)
		},
	}}
	answer, err := traffic.Ask(r.Context(limit), client, at)
	Expect(err).NotTo(HaveOccurred())
	return answer
}

// forgetNode empties the client's neighbour cache, as the gratuitous ARP of a network daemon would.
func (r rig) forgetNode() {
	GinkgoHelper()
	nl := r.NS("client").Netlink()
	neighbours, err := nl.NeighList(0, 0)
	Expect(err).NotTo(HaveOccurred())
	for _, neighbour := range neighbours {
		if addr, ok := netip.AddrFromSlice(neighbour.IP); ok && addr.Unmap().IsGlobalUnicast() {
			Expect(nl.NeighDel(&neighbour)).To(Succeed())
		}
	}
}
