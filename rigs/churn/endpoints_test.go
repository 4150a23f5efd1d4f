// SPDX-License-Identifier: Apache-2.0

package churn_test

import (
	"net"
	"net/netip"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
)

// steps are the pods behind x and y over time. A pod that goes from one to the other is in neither for a step: while
// it is anywhere, it keeps the flows that it has.
var steps = []struct{ x, y []string }{
	{[]string{"pod-a1"}, []string{"pod-b3"}},
	{[]string{"pod-a1", "pod-a2", "pod-a3", "pod-b1", "pod-b2"}, []string{"pod-b3"}},
	{nil, []string{"pod-b3"}},
	{[]string{"pod-a3", "pod-b1", "pod-b2"}, []string{"pod-a1", "pod-b3"}},
	{[]string{"pod-a3", "pod-b1"}, []string{"pod-a1", "pod-a2"}},
	{[]string{"pod-a3", "pod-b1", "pod-b2"}, []string{"pod-a1"}},
	{[]string{"pod-a2", "pod-b3"}, []string{"pod-a1"}},
	{[]string{"pod-b1"}, []string{"pod-a3"}},
}

// askAll asks both Services in every way.
func (r *rig) askAll(family topo.Families) (atX, atY []*asker) {
	ns := r.NS("client")
	all := func(port uint16) []*asker {
		at := r.front(family, port)
		return []*asker{
			datagrams(ns, netip.AddrPortFrom(r.Addr("client", family), 41000+port), at),
			requests(ns, at, true), requests(ns, at, false),
		}
	}
	return all(x), all(y)
}

var _ = Describe("endpoints that come and go", Label("netns"), func() {
	for _, offload := range scene.Offloads {
		Context(offload.String(), func() {
			It("flap, scale and are replaced, and a client is answered by none but its front's", func() {
				r := newRig(offload)
				r.begin(steps[0].x, steps[0].y)
				var atX, atY []*asker
				for _, family := range scene.Families {
					moreX, moreY := r.askAll(family)
					atX, atY = append(atX, moreX...), append(atY, moreY...)
				}
				for _, pods := range steps {
					r.change(pods.x, pods.y)
					now := time.Now()
					for _, a := range atX {
						if len(pods.x) > 0 {
							Eventually(a.since(now), limit, "5ms").ShouldNot(BeEmpty(), "%s, with pods %v", a.what, pods.x)
						}
					}
					for _, a := range atY {
						Eventually(a.since(now), limit, "5ms").ShouldNot(BeEmpty(), "%s, with pods %v", a.what, pods.y)
					}
				}
				for _, a := range atX {
					r.x.check(a.what, a.stop())
				}
				for _, a := range atY {
					r.y.check(a.what, a.stop())
				}
			})

			for _, pod := range []string{"pod-a1", "pod-b1"} {
				It("an address that another pod gets is not the first one's any more: "+pod, func() {
					r := newRig(offload)
					r.begin([]string{pod, "pod-a2"}, []string{"pod-a3"})
					atX, atY := r.askAll(topo.V4)
					moreX, moreY := r.askAll(topo.V6)
					atX, atY = append(atX, moreX...), append(atY, moreY...)
					for _, a := range atX {
						Eventually(a.since(time.Time{}), limit, "5ms").ShouldNot(BeEmpty(), a.what)
					}
					r.change([]string{"pod-a2"}, []string{"pod-a3"})
					r.pods[pod].stop()
					r.start(pod, "newcomer")
					// The fixtures call it by its address, and the servers by what it is.
					r.y.becomes([]string{"pod-a3", "newcomer"})
					r.change([]string{"pod-a2"}, []string{"pod-a3", pod})
					r.y.becomes([]string{"pod-a3", "newcomer"})
					Eventually(func() []string {
						answer, err := traffic.Get(r.Context(limit), r.NS("client"), r.front(topo.V4, y))
						Expect(err).NotTo(HaveOccurred())
						return []string{answer.Server}
					}, limit, "1ms").Should(ContainElement("newcomer"))
					for _, a := range atX {
						r.x.check(a.what, a.stop())
					}
					for _, a := range atY {
						r.y.check(a.what, a.stop())
					}
				})

				It("a UDP client with one source port leaves a pod that was killed: "+pod, func() {
					r := newRig(offload)
					r.begin([]string{pod}, nil)
					var askers []*asker
					for _, family := range scene.Families {
						askers = append(askers, datagrams(r.NS("client"), netip.AddrPortFrom(r.Addr("client", family), 0), r.front(family, x)))
					}
					for _, a := range askers {
						Eventually(a.since(time.Time{}), limit, "5ms").Should(ConsistOf(pod), a.what)
					}
					killed := time.Now()
					r.pods[pod].stop()
					r.change([]string{"pod-a2", "pod-b2"}, nil)
					changed := time.Now()
					for _, a := range askers {
						Eventually(a.since(changed), limit, "1ms").ShouldNot(BeEmpty(), a.what)
						GinkgoWriter.Printf("%s: answered again %s after the kill, %s after the change\n", a.what, time.Since(killed), time.Since(changed))
					}
					Expect(time.Since(changed)).To(BeNumerically("<", time.Second))
					for _, a := range askers {
						r.x.check(a.what, a.stop())
					}
				})

				It("a client's port that was used with a pod which is gone reaches the one that serves now: "+pod, func() {
					r := newRig(offload)
					r.begin([]string{pod}, nil)
					for _, serving := range []string{pod, "pod-a2", "pod-b2", "pod-a3"} {
						r.change([]string{serving}, nil)
						for _, family := range scene.Families {
							from := netip.AddrPortFrom(r.Addr("client", family), 45000)
							Expect(r.dial(from, r.front(family, x))).To(Equal(serving))
						}
					}
				})
			}
		})
	}
})

// dial asks on a connection from a port of the caller's choice, which it resets, so that the port is free at once.
func (r *rig) dial(from, at netip.AddrPort) string {
	GinkgoHelper()
	ctx := r.Context(limit)
	conn, err := r.NS("client").DialFrom(ctx, "tcp", from, at)
	Expect(err).NotTo(HaveOccurred())
	defer conn.Close()
	Expect(conn.(*net.TCPConn).SetLinger(0)).To(Succeed())
	name, err := askOn(conn)
	Expect(err).NotTo(HaveOccurred())
	return name
}
