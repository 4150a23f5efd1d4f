// SPDX-License-Identifier: Apache-2.0

package crossnode_test

import (
	"net/netip"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/traffic"
)

// A veth hands an unfinished checksum on as it is, so that between namespaces nobody may ever finish it. A device without
// offloads does, in the middle of the way: before the tunnel, inside it or behind it.
var _ = Describe("checksums and segments that are finished on the way", Label("netns"), func() {
	for _, tt := range []struct {
		where  string
		simple []string // hosts whose devices have no offloads; all others have them
	}{
		{"where the tunnel begins", []string{"node-a"}},
		{"where the tunnel ends", []string{"node-b"}},
		{"by both nodes", []string{"node-a", "node-b"}},
		{"by client and pod, and joined by the nodes", []string{"client", "pod-b1"}},
	} {
		It("come out right: "+tt.where, func() {
			r := newRig(true)
			for _, name := range tt.simple {
				Expect(r.OffloadsOf(name, false)).To(Succeed())
			}
			for j, w := range []way{aToB, {"node-b", "pod-b1"}} {
				transfer, err := traffic.Exchange(r.Context(limit), r.NS("client"), r.front(w, bulk), 8<<20, 8<<20)
				Expect(err).NotTo(HaveOccurred())
				Expect(transfer.Client.Addr()).To(Equal(r.from(0).Addr()))
				for i, size := range []int{traffic.MinDatagram, traffic.MinDatagram + 1, largestDatagram} {
					from := r.from(uint16(41000 + 10*j + i))
					tally, err := traffic.SendUDP(r.Context(limit), r.NS("client"), r.front(w, echo),
						traffic.Datagrams{Count: 500, Size: size, From: from, Patience: require.Within(time.Second)})
					Expect(err).NotTo(HaveOccurred())
					Expect(tally.Received).To(Equal(500), "%d bytes: %s", size, tally)
					Expect(tally.Sources).To(Equal(map[netip.AddrPort]int{from: 500}))
				}
			}
			Expect(r.Drops()).To(BeEmpty())
			Expect(r.ChecksumErrors()).To(BeEmpty())
		})
	}
})
