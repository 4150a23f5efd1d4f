// SPDX-License-Identifier: Apache-2.0

package mtu_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
)

// The sockets of specs. DF of IPv4 is a wish of the sender's; an IPv6 packet always has it, so the other choice
// there is a kernel that learns the path MTU and then fragments.
var (
	dontFragment = traffic.SocketOptions{Fragment: traffic.ProbePath}
	mayFragment  = map[topo.Families]traffic.SocketOptions{topo.V4: {Fragment: traffic.MayFragment}, topo.V6: {}}
)

var _ = Describe("links of one MTU", Label("netns"), func() {
	everywhere(func(w way, offload scene.Offload) {
		for _, l := range setups {
			It("carry UDP of every size, UDP_SEGMENT and TCP, there and back: "+l.String(), func() {
				r := onOneLAN(l, offload, w)
				started := time.Now()
				remote := map[direction][]bound{
					toPod:    {{l.uplink, nil}, {w.forward(l.uplink), r.only(r.dialled())}, {l.pod, r.only(r.dialled())}},
					toClient: {{l.pod, nil}, {l.uplink, r.Addrs("node-b")}, {w.back(l.uplink), r.only(r.Addr("client", w.inner))}},
				}
				By("TCP, first, while no end has learned a path MTU that would lower what it announces")
				r.bulk(l)
				By("every size of UDP, to a remote pod and back, arrives or its sender learns the limit")
				sent := r.sweep(remotePod, remote, map[string]direction{"node-a": toPod, "node-b": toClient})
				if w.inner == w.outer {
					By("every size of UDP, to a local pod and back, arrives or its sender learns the limit")
					sent += r.sweep(localPod, map[direction][]bound{
						toPod:    {{l.uplink, nil}, {l.pod, r.only(r.dialled())}},
						toClient: {{l.pod, nil}, {l.uplink, r.Addrs("node-a")}},
					}, nil)
				}
				By("UDP_SEGMENT is judged by its segments")
				for _, d := range both {
					r.segments(d, remote[d])
				}
				r.expectRightChecksums()
				AddReportEntry(fmt.Sprintf("%s, %s, %s", r.way, l, offload), ReportEntryVisibilityFailureOrVerbose,
					fmt.Sprintf("%d datagrams of the sizes and all in %v", sent, time.Since(started).Round(time.Millisecond)))
			})
		}
	})
})

func (rig) only(addr netip.Addr) []netip.Addr { return []netip.Addr{addr} }

// sweep sends datagrams of all sizes in both directions, with DF and without, and returns how many. The tunnel's
// ends are the nodes that refuse what exceeds a tunnel's bound in a direction, and must count exactly that.
func (r rig) sweep(pod string, bounds map[direction][]bound, ends map[string]direction) int {
	GinkgoHelper()
	before, due := r.Drops(), map[string]uint64{}
	var wrong []string
	sent := 0
	for _, d := range both {
		t := r.open(pod, dontFragment, dontFragment)
		lengths := r.lengths(bounds[d])
		sent += 2 * len(lengths)
		for _, length := range lengths {
			if err := t.try(d, bounds[d], length); err != nil {
				wrong = append(wrong, fmt.Sprintf("DF, %s: %v", d, err))
			}
		}
		for node, end := range ends {
			if refused := r.refused(d, bounds[d], lengths); end == d && refused > 0 {
				due[node+" too-big"] = refused
			}
		}
		t.end()
	}
	Expect(few(wrong)).To(BeEmpty())
	Expect(since(r.Drops(), before)).To(Equal(due), "packets that beep counts as too long")
	r.forgetPaths("client", pod)
	for _, d := range both {
		t := r.open(pod, mayFragment[r.inner], mayFragment[r.inner])
		for _, length := range r.lengths(bounds[d]) {
			if err := t.insist(d, length, len(bounds[d])); err != nil {
				wrong = append(wrong, fmt.Sprintf("no DF, %s: %v", d, err))
			}
		}
		t.end()
	}
	Expect(few(wrong)).To(BeEmpty())
	return sent
}

// forgetPaths has kernels forget the IPv4 path MTUs that errors taught them: by those they would cut packets
// themselves that are to be cut on the way. IPv6 has nobody cut on the way.
func (r rig) forgetPaths(hosts ...string) {
	GinkgoHelper()
	for _, host := range hosts {
		Expect(r.NS(host).Sysctl("net.ipv4.route.flush", "1")).To(Succeed())
	}
}

// try sends a packet of a length, not to be fragmented, and says what is wrong with its fate.
func (t *talk) try(d direction, bounds []bound, length int) error {
	size := length - t.header() - udpHeader
	leg, frames, err := t.send(d, traffic.Burst{Size: size, Count: 1})
	if err != nil {
		return err
	}
	return t.judge(d, bounds, leg, frames, size)
}

// insist sends a datagram until it arrives; with every limit on the way an IPv6 sender may meet one error.
func (t *talk) insist(d direction, length, tries int) error {
	size := length - t.header() - udpHeader
	if t.inner == topo.V4 {
		tries = 0
	}
	for {
		leg, _, err := t.send(d, traffic.Burst{Size: size, Count: 1})
		if err != nil || leg.Whole() {
			return err
		}
		if tries == 0 || leg.Refusal == nil {
			return fmt.Errorf("%d bytes: %s", length, leg)
		}
		tries--
	}
}

// refused is how many of the packets a tunnel is too narrow for: the second bound towards the pod, the third back.
func (r rig) refused(d direction, bounds []bound, lengths []int) (count uint64) {
	tunnel := bounds[len(bounds)-1]
	if d == toPod {
		tunnel = bounds[1]
	}
	for _, length := range lengths {
		if b, bounded := first(bounds, length); bounded && b.longest == tunnel.longest && b.by != nil {
			count++
		}
	}
	return count
}

// since is what counters have gained.
func since(now, before map[string]uint64) map[string]uint64 {
	gained := map[string]uint64{}
	for name, count := range now {
		if count > before[name] {
			gained[name] = count - before[name]
		}
	}
	return gained
}

// lengths are those of the packets that a sweep sends, from one byte of payload to one more than the sender's link
// takes: all of them up to those of Ethernet; of jumbo frames all around each limit, and some in between.
func (r rig) lengths(bounds []bound) []int {
	const near, step = 16, 97
	longest := bounds[0].longest + 1
	var lengths []int
	for length := r.header() + udpHeader + 1; length <= longest; length++ {
		around := slices.ContainsFunc(bounds, func(b bound) bool { return max(length-b.longest, b.longest-length) <= near })
		if longest <= 1501 || length%step == 0 || around || length < 100 {
			lengths = append(lengths, length)
		}
	}
	return lengths
}

// few are the first lines of a long list.
func few(lines []string) string {
	const shown = 5
	if len(lines) > shown {
		lines = append(lines[:shown:shown], fmt.Sprintf("and %d more", len(lines)-shown))
	}
	return strings.Join(lines, "\n")
}
