// SPDX-License-Identifier: Apache-2.0

package churn_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/beep"
	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/topo"
)

// limitTo has Service x take these ranges from the next change on; nil is everybody.
func (r *rig) limitTo(ranges []string) {
	r.edit = func(service *beep.Service) { service.Sources = ranges }
}

// ranges are lists that take both clients, only the one of the plan, and nobody of the family.
func ranges(family topo.Families) (both, first, other []string) {
	if family == topo.V4 {
		return []string{"198.51.100.0/24"}, []string{"198.51.100.10/32", "203.0.113.0/24"}, []string{"::/0"}
	}
	return []string{"2001:db8:c::/64"}, []string{"2001:db8:c::10/128", "2001:db8:ff::/48"}, []string{"0.0.0.0/0"}
}

// unreached says that a connection from the address is not answered.
func (r *rig) unreached(from netip.Addr, at netip.AddrPort) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	conn, err := r.NS("client").DialFrom(ctx, "tcp", netip.AddrPortFrom(from, 0), at)
	if err == nil {
		conn.Close()
	}
	var failure net.Error
	Expect(errors.As(err, &failure) && failure.Timeout()).To(BeTrue(), "%s is dropped in silence: %v", from, err)
}

// podOf spreads the pods, here and on another node, over the specs.
var podOf = map[scene.Offload]map[topo.Families]string{
	true:  {topo.V4: "pod-a1", topo.V6: "pod-b1"},
	false: {topo.V4: "pod-b1", topo.V6: "pod-a1"},
}

var _ = Describe("source ranges that change while flows run", Label("netns"), func() {
	for _, offload := range scene.Offloads {
		for _, family := range scene.Families {
			pod := podOf[offload][family]
			It("end the flows of those who may come no more, and no others: "+offload.String()+", "+scene.FamilyName(family)+", "+pod, func() {
				r := newRig(offload)
				both, first, other := ranges(family)
				r.limitTo(both)
				r.begin([]string{pod}, nil)
				at, denied := r.front(family, x), r.addClients(family, 1)[0]
				stays := datagrams(r.NS("client"), netip.AddrPortFrom(r.Addr("client", family), 0), at)
				goes := datagrams(r.NS("client"), netip.AddrPortFrom(denied, 0), at)
				for _, a := range []*asker{stays, goes} {
					Eventually(a.since(time.Time{}), limit, "5ms").Should(ConsistOf(pod))
				}
				// The connection was made before, and is used after.
				ctx := r.Context(limit)
				kept, err := r.NS("client").DialFrom(ctx, "tcp", netip.AddrPortFrom(r.Addr("client", family), 0), at)
				Expect(err).NotTo(HaveOccurred())
				DeferCleanup(kept.Close)

				r.limitTo(first)
				r.change([]string{pod}, nil)
				changed := time.Now()
				Expect(askOn(kept)).To(Equal(pod))
				Eventually(stays.since(changed), limit, "5ms").Should(ConsistOf(pod))
				r.unreached(denied, at)
				Expect(goes.since(changed)()).To(BeEmpty(), "questions that came after the change")
				Expect(r.Drops()).To(HaveKey("node-a source-denied"))
				// Nothing of what is allowed was lost on the way: each question has its answer.
				Eventually(func() []time.Duration { return stays.unanswered(changed) }, limit).Should(BeEmpty())

				r.limitTo(other)
				r.change([]string{pod}, nil)
				r.unreached(r.Addr("client", family), at)
				r.limitTo([]string{})
				r.change([]string{pod}, nil)
				r.unreached(r.Addr("client", family), at)

				r.limitTo(nil)
				r.change([]string{pod}, nil)
				changed = time.Now()
				for _, a := range []*asker{stays, goes} {
					Eventually(a.since(changed), limit, "5ms").Should(ConsistOf(pod), "everybody comes again")
				}
			})
		}
	}
})
