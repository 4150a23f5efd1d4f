// SPDX-License-Identifier: Apache-2.0

package flood_test

import (
	"encoding/binary"
	"net/netip"
	"runtime"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/packet"
	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/src/model"
)

var _ = Describe("a node under a flood", Label("netns"), func() {
	for _, offload := range scene.Offloads {
		Context(offload.String(), func() {
			It("of spoofed datagrams that no pod answers keeps its UDP flows and connections", func() {
				r := newRig(offload)
				connections, dialogues := r.gather("tcp", 1000), r.gather("udp", 1000)
				others := r.watch()
				spoofed := r.newSpoofer(r.datagrams(topo.V6)...) // over IPv6 the pods have no server
				f := r.flood(spoofed, million/2, func(b []byte) { spoofed.source(b); mend(b) }, others)
				report("flood of unanswered datagrams", "%s\n%s\n%s\n%s", f, others,
					r.fill("node-a", "FLOW_TABLE", "FLOW_DATAGRAMS", "FLOW_PENDING"), r.fill("node-b", "FLOW_TABLE", "FLOW_DATAGRAMS", "FLOW_PENDING"))
				others.unhurt()
				r.intact(connections, model.TCP, 0)
				r.intact(dialogues, model.UDP, 0)
			})

			It("of spoofed datagrams that are answered evicts no connection, and dialogues go on", func() {
				r := newRig(offload)
				connections, dialogues := r.gather("tcp", 1000), r.gather("udp", 1000)
				others := r.watch()
				spoofed := r.newSpoofer(r.datagrams(topo.V4)...)
				f := r.flood(spoofed, million/2, func(b []byte) { spoofed.source(b); mend(b) }, others)
				report("flood of answered datagrams", "%s\n%s\n%s\n%s", f, others,
					r.fill("node-a", "FLOW_TABLE", "FLOW_DATAGRAMS", "FLOW_PENDING"), r.fill("node-b", "FLOW_TABLE", "FLOW_DATAGRAMS", "FLOW_PENDING"))
				others.unhurt()
				r.intact(connections, model.TCP, 0)
				// What an answer proves is that somebody lives at the pod, not at the source: rows may go, dialogues must not.
				r.intact(dialogues, model.UDP, len(dialogues))
			})

			It("of fragments keeps its flows, and whoever sends fragments is served again after it", func() {
				r := newRig(offload)
				for i, pod := range []string{"pod-a1", "pod-b1"} {
					Expect(r.large(fronts[i])).To(Succeed(), "without a flood")
					// The pods' kernels keep what they wait for, and take nothing else once that is much.
					Expect(r.NS(pod).Sysctl("net.ipv4.ipfrag_time", "1")).To(Succeed())
				}
				connections := r.gather("tcp", 1000)
				others := r.watch()
				first, tail := r.fragments()
				spoofed := r.newSpoofer(first, first, tail)
				f := r.flood(spoofed, million/4, func(b []byte) {
					spoofed.source(b)
					binary.BigEndian.PutUint16(b[18:], uint16(spoofed.random.Uint32()))
					b[24], b[25] = 0, 0
					binary.BigEndian.PutUint16(b[24:], ^fold(sum(b[14:34])))
				}, others)
				report("flood of fragments", "%s\n%s\n%s", f, others, r.fill("node-a", "FLOW_TABLE", "FLOW_PENDING", "FRAGMENTS"))
				others.unhurt()
				r.intact(connections, model.TCP, 0)
				for _, port := range fronts {
					Eventually(r.large).WithArguments(port).WithTimeout(limit).Should(Succeed(), "a datagram in three pieces to %d", port)
				}
			})

			It("of packets too large for the tunnel answers no more than its budget", func() {
				r := newRig(offload)
				connections := r.gather("tcp", 1000)
				large := r.frame(r.ip(topo.V4).DF(), packet.TCP(1024, portRemote), packet.Payload(1500-40))
				spoofed := r.newSpoofer(large)
				before := r.answers()
				f := r.flood(spoofed, million/4, func(b []byte) { spoofed.source(b); mend(b) }, nil) // nobody else, so that answers can be counted
				answers := float64(r.answers() - before)
				report("flood of large packets", "%s\n%.0f answers, %.0f a second\n%v", f, answers, answers/f.took.Seconds(), r.Drops())
				r.intact(connections, model.TCP, 0)
				Expect(answers).To(BeNumerically(">", 0))
				Expect(answers).To(BeNumerically("<=", float64(runtime.NumCPU())*(50+1000*(f.took+time.Second).Seconds())))
				Expect(r.Drops()["node-a too-big"]).To(BeNumerically(">=", million/4))
			})
		})
	}
})

// datagrams are UDP datagrams to both fronts.
func (r rig) datagrams(family topo.Families) (all [][]byte) {
	for _, port := range fronts {
		all = append(all, r.frame(r.ip(family), packet.UDP(1024, port), packet.Payload(20)))
	}
	return all
}

// fragments are a first fragment to a front, and one that has none before it.
func (r rig) fragments() (first, tail []byte) {
	first = r.frame(r.ip(topo.V4).Fragment(0, true), packet.UDP(1024, portLocal).Length(2000), packet.Payload(32))
	tail = r.frame(r.ip(topo.V4).Fragment(100, false).Proto(unix.IPPROTO_UDP), packet.Payload(40))
	return first, tail
}

// answers is how many packets have come back to the router.
func (r rig) answers() uint64 {
	GinkgoHelper()
	link, err := r.NS("router").Netlink().LinkByName("eth1")
	Expect(err).NotTo(HaveOccurred())
	return link.Attrs().Statistics.RxPackets
}

// large sends a datagram in three fragments to a front, and waits a while for its echo.
func (r rig) large(port uint16) error {
	dialogue, err := r.NS("client").DialFrom(r.Context(limit), "udp", netip.AddrPort{}, r.front(port))
	if err != nil {
		return err
	}
	defer dialogue.Close()
	return echo(dialogue, strings.Repeat("fragment", 500), time.Second)
}
