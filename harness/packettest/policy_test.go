// SPDX-License-Identifier: Apache-2.0

package packettest

import (
	"fmt"
	"net/netip"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/packet"
	"github.com/beep-lb/beep/harness/progrun"
	"github.com/beep-lb/beep/src/datapath/maps"
)

var _ = Describe("Source ranges", Label("bpf"), func() {
	const name = "tcp/" + self + ":80"
	dial := func(n *node, from string, flags string) progrun.Out {
		GinkgoHelper()
		to := self
		if netip.MustParseAddr(from).Is6() {
			to = self6
		}
		return n.run(ingress, frame(packet.IP(from, to), packet.TCP(clientPort, frontPort).Flags(flags)))
	}
	for _, row := range []struct {
		ranges  []string
		from    string
		allowed bool
	}{
		{[]string{"198.51.100.0/24"}, client, true},
		{[]string{"198.51.100.7/32"}, client, true},
		{[]string{"198.51.100.8/32"}, client, false},
		{[]string{"10.0.0.0/8", "198.51.100.0/29"}, client, true},
		{[]string{"0.0.0.0/0"}, client, true},
		{[]string{"::/0"}, client, false},
		{nil, client, false},
	} {
		It(fmt.Sprintf("%v and client %s: %v", row.ranges, row.from, row.allowed), func() {
			n := newNode()
			n.front(name, false, remote)
			n.sources(name, row.ranges...)
			want := progrun.Shot
			if row.allowed {
				want = progrun.Redirect
			}
			Expect(dial(n, row.from, "S").Verdict).To(Equal(want))
		})
	}
	It("of one family open nothing in the other, nor another front", func() {
		n := newNode()
		n.front("tcp/"+at(self6, frontPort), false, at(there6, podPort)+"@"+peer6)
		n.front(name, false, remote)
		n.sources("tcp/"+at(self6, frontPort), "0.0.0.0/0", "2001:db8:c:8000::/49")
		Expect(dial(n, client6, "S").Verdict).To(Equal(progrun.Shot))
		Expect(dial(n, client, "S").Verdict).To(Equal(progrun.Redirect))
		Expect(dial(n, "2001:db8:c:8000::7", "S").Verdict).To(Equal(progrun.Redirect))
	})
	It("are checked before a flow is pinned, and leave no row", func() {
		n := newNode()
		n.front(name, false, remote)
		n.sources(name, "203.0.113.0/24")
		dial(n, client, "S")
		Expect(n.flows()).To(BeEmpty())
	})
	It("that change are checked again on flows that are there", func() {
		t := newTalk(atIngress, "tcp")
		t.client("S")
		t.pod("SA")
		t.client("A")
		t.n.sources(t.w.frontName(), "198.51.100.0/24")
		Expect(t.client("A").Verdict).To(Equal(progrun.Redirect), "still allowed")
		t.n.sources(t.w.frontName(), "203.0.113.0/24")
		Expect(t.n.maps.DeleteSource(maps.SourceKey{Front: 1, Prefix: netip.MustParsePrefix("198.51.100.0/24")})).To(Succeed())
		Expect(t.client("A").Verdict).To(Equal(progrun.Shot))
		Expect(t.n.drops()).To(Equal(map[string]uint64{"source-denied ingress": 1}))
		Expect(t.n.flows()).To(BeEmpty())
		Expect(t.pod("A").Verdict).To(Equal(progrun.Redirect), "an answer without a row comes from our front and is forwarded")
	})
})

var _ = Describe("Affinity", Label("bpf"), func() {
	const name = "tcp/" + self + ":80"
	second := "10.42.1.99:8080@" + peer
	It("keeps a client's pod while another joins, and forgets it after the timeout", func() {
		n := newNode()
		endpoints, _ := pods(4)
		n.front(name, true, endpoints...)
		n.timeout(name, 5)
		seen := map[netip.Addr]netip.Addr{}
		for i := range 60 {
			from := fmt.Sprintf("198.51.100.%d", 10+i)
			seen[netip.MustParseAddr(from)] = n.chosen(from, 1000).Nat.Addr()
		}
		n.regenerate(name, append(endpoints, second)...)
		for from, pod := range seen {
			Expect(n.chosen(from.String(), 1001).Nat.Addr()).To(Equal(pod))
		}
		n.ageAffinity(6)
		moved := 0
		for from, pod := range seen {
			if n.chosen(from.String(), 1002).Nat.Addr() != pod {
				moved++
			}
		}
		Expect(moved).To(BeNumerically(">", 0))
	})
	It("leaves a pod that serves no more", func() {
		n := newNode()
		endpoints, _ := pods(3)
		n.front(name, true, endpoints...)
		was := n.chosen(client, 1000).Nat.Addr()
		var rest []string
		for _, e := range endpoints {
			if endpoint(e).Addr != was {
				rest = append(rest, e)
			}
		}
		n.regenerate(name, rest...)
		is := n.chosen(client, 1001).Nat.Addr()
		Expect(is).NotTo(Equal(was))
		Expect(n.chosen(client, 1002).Nat.Addr()).To(Equal(is))
	})
	It("of one front says nothing about another", func() {
		n := newNode()
		endpoints, _ := pods(2)
		n.front(name, true, endpoints...)
		n.front("tcp/"+self+":81", true, second, "10.42.1.98:8080@"+peer)
		n.chosen(client, 1000)
		out := n.run(ingress, frame(packet.IP(client, self), packet.TCP(1000, 81).Flags("S")))
		Expect(out.Packet).NotTo(BeEmpty())
		Expect(n.maps.Flows(func(f maps.Flow) bool {
			if f.Dst.Port() == 81 {
				Expect(f.Nat.Addr().String()).To(Or(Equal("10.42.1.99"), Equal("10.42.1.98")))
			}
			return true
		})).To(Succeed())
	})
})
