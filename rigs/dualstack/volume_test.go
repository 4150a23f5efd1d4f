// SPDX-License-Identifier: Apache-2.0

package dualstack_test

import (
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"

	"github.com/beep-lb/beep/harness/beep"
	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
)

// The volume of one spec.
const (
	stream    = int64(1) << 30 // bytes each way over one TCP connection
	datagrams = 100_000        // each answered, in equal parts of every size
)

// patience is when an answer counts as lost: late enough for a machine whose cores are busy with the start of daemons.
const patience = 30 * time.Second

// slow is how many bytes a second the stream moves each way while daemons are killed and started.
const slow = 100 << 20

var _ = Describe("in bulk, from a client through one node to a pod on the other", Label("netns"), func() {
	for _, offload := range scene.Offloads {
		for _, inner := range scene.Families {
			for _, outer := range scene.Families {
				name := fmt.Sprintf("%s over an %s underlay, %s", scene.FamilyName(inner), scene.FamilyName(outer), offload)
				Context(name, func() {
					It("1 GiB each way over TCP arrives whole, across kill -9 and restart", func() {
						r, _ := newPair(offload, inner, outer)
						transfer := r.Exchange(r.Context(limit), "client", r.front("node-a", inner, port), stream, stream, slow)
						r.killAll(transfer.Moved, 16<<20)
						Expect(transfer.Ended()).To(BeFalse(), "the transfer was under way all the time")
						finish := r.measure(transfer, name)
						result, err := transfer.Wait()
						Expect(err).NotTo(HaveOccurred())
						Expect([]int64{result.Up, result.Down}).To(HaveEach(stream))
						Expect(result.Client.Addr()).To(Equal(r.Addr("client", inner)))
						r.expectClean()
						finish()
					})

					It("100,000 datagrams of several sizes come back, across kill -9 and restart", func() {
						r, echo := newPair(offload, inner, outer)
						sizes := []int{traffic.MinDatagram, 512, 1200, largest(inner, outer)}
						from := netip.AddrPortFrom(r.Addr("client", inner), 40000)
						var ended atomic.Bool
						var sending errgroup.Group
						answered := func() int64 {
							if ended.Load() {
								Expect(sending.Wait()).To(Succeed())
							}
							return int64(echo.Count().Answered)
						}
						started := time.Now()
						sending.Go(func() error {
							defer ended.Store(true)
							for _, size := range sizes {
								tally, err := traffic.SendUDP(r.Context(limit), r.NS("client"), r.front("node-a", inner, port),
									traffic.Datagrams{Count: datagrams / len(sizes), Size: size, From: from, Patience: patience})
								if err != nil || tally.Received != datagrams/len(sizes) || tally.Duplicated+tally.Corrupted+len(tally.Refused) > 0 ||
									tally.Sources[from] != tally.Received {
									return fmt.Errorf("%d bytes: %s: %w", size, tally, err)
								}
							}
							return nil
						})
						r.killAll(answered, 1000)
						Expect(ended.Load()).To(BeFalse(), "the datagrams were under way all the time")
						Expect(sending.Wait()).To(Succeed())
						Expect(echo.Count()).To(Equal(traffic.Echoed{Answered: datagrams}))
						r.expectClean()
						AddReportEntry(name, ReportEntryVisibilityFailureOrVerbose, fmt.Sprintf("UDP %.0f datagrams/s, each answered", datagrams/time.Since(started).Seconds()))
					})
				})
			}
		}
		It("plain routing over the same hops moves 1 GiB each way, for comparison, "+offload.String(), func() {
			r := rig{scene.New(GinkgoT(), topo.TwoNodes(topo.Options{Families: topo.V4}), offload)}
			r.serve("pod-b1", port)
			r.routeThrough("pod-b1", "client", "node-a", "node-b")
			r.routeThrough("client", "node-b", "node-a")
			transfer := r.Exchange(r.Context(limit), "client", r.front("pod-b1", topo.V4, port), stream, stream, slow)
			finish := r.measure(transfer, "no beep, IPv4, "+offload.String())
			_, err := transfer.Wait()
			Expect(err).NotTo(HaveOccurred())
			finish()
		})
	}
})

// routeThrough has each host send what is for the target to the next one.
func (r rig) routeThrough(target string, hosts ...string) {
	GinkgoHelper()
	to := netip.PrefixFrom(r.Addr(target, topo.V4), 32)
	for i := range hosts[1:] {
		Expect(r.ReplaceRoute(hosts[i], topo.Route{To: to, Via: r.Addr(hosts[i+1], topo.V4)})).To(Succeed())
	}
}

// newPair is two nodes that speak outer to each other, and inner to everybody else; pod-b1 serves. Nothing is captured:
// a capture would be full long before a spec of this size fails, and slows what is measured.
func newPair(offload scene.Offload, inner, outer topo.Families) (rig, *traffic.Echo) {
	GinkgoHelper()
	r := rig{scene.New(GinkgoT(), topo.TwoNodes(topo.Options{Families: inner, Underlay: outer}), offload)}
	echo := r.serve("pod-b1", port)[inner]
	r.Beep(beep.Options{Services: services(port, 0, "pod-b1"), Underlay: outer})
	return r, echo
}

// measure notes how fast the rest of a transfer goes, once it is released and has been waited for. TCP sends some
// segments again here, over plain routing in the same range as through beep, while no device counts a drop. Needless
// are those that the receiver reports as duplicates (DSACK, RFC 2883), which counts one a report, not one a segment.
func (r rig) measure(transfer *scene.Transfer, name string) (finish func()) {
	GinkgoHelper()
	count := func(counter string) int64 { return r.Counters("client")[counter] + r.Counters("pod-b1")[counter] }
	const resent, needless = "Tcp.RetransSegs", "TcpExt.TCPDSACKRecv"
	started, moved, resentBefore, needlessBefore := time.Now(), transfer.Moved(), count(resent), count(needless)
	return func() {
		GinkgoHelper()
		rate := 8e-9 * float64(transfer.Moved()-moved) / time.Since(started).Seconds()
		AddReportEntry(name, ReportEntryVisibilityFailureOrVerbose, fmt.Sprintf(
			"TCP %.2f Gbit/s, both ways together; %d segments sent again, %d of them needlessly",
			rate, count(resent)-resentBefore, count(needless)-needlessBefore))
	}
}

// killAll waits for progress, kills every daemon, waits for progress without them, starts them again, and waits once
// more.
func (r rig) killAll(moved func() int64, step int64) {
	GinkgoHelper()
	progress := func() {
		now := moved()
		Eventually(moved).WithTimeout(limit).WithPolling(time.Millisecond).Should(BeNumerically(">", now+step))
	}
	progress()
	for _, node := range r.Nodes {
		Expect(node.Kill9()).To(Succeed())
	}
	progress()
	var starting errgroup.Group
	for _, node := range r.Nodes {
		starting.Go(node.Restart)
	}
	Expect(starting.Wait()).To(Succeed())
	progress()
}
