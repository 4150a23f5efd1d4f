// SPDX-License-Identifier: Apache-2.0

// Package coldneigh is the rig of neighbours that are not known, or no longer where they were. Invariant: each spec
// has namespaces, maps and daemons of its own.
package coldneigh_test

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/vishvananda/netlink"

	"github.com/beep-lb/beep/harness/beep"
	"github.com/beep-lb/beep/harness/fronts"
	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
)

func TestColdNeighbours(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "rig coldneigh")
}

var _ = AfterSuite(func() { require.Report(os.Stdout) })

// limit ends whatever a spec waits for.
const limit = 30 * time.Second

// pods are one on each node.
var pods = []string{"pod-a1", "pod-b1"}

var families = []topo.Families{topo.V4, topo.V6}

// rig is a topology whose pods serve a client that dials node-a, by the address of one of its devices.
type rig struct {
	*scene.Scene
	client, device string
}

func newRig(plan topo.Plan, offload scene.Offload, client, device string) rig {
	GinkgoHelper()
	r := rig{scene.New(GinkgoT(), plan, offload), client, device}
	Expect(r.Evidence.CaptureAll()).To(Succeed())
	_, err := fronts.Serve(r.Topology)
	Expect(err).NotTo(HaveOccurred())
	r.Beep(beep.Options{Services: fronts.Services(&r.Plan, pods...)})
	return r
}

// front is node-a's, on the device that the client dials.
func (r rig) front(family topo.Families, kind fronts.Kind, pod string) netip.AddrPort {
	GinkgoHelper()
	for _, end := range r.Devices() {
		for _, prefix := range end.Addrs {
			if end.Host == "node-a" && end.Device == r.device && family.Has(prefix.Addr()) {
				return fronts.At(&r.Plan, prefix.Addr(), kind, pod)
			}
		}
	}
	Fail("node-a has no address on " + r.device)
	return netip.AddrPort{}
}

// forget empties the neighbour caches of the nodes, but for what was set by hand.
func (r rig) forget() {
	GinkgoHelper()
	for _, host := range r.Hosts {
		if host.Role != topo.Node {
			continue
		}
		nl := r.NS(host.Name).Netlink()
		for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
			neighbours, err := nl.NeighList(0, family)
			Expect(err).NotTo(HaveOccurred())
			for _, neighbour := range neighbours {
				if neighbour.State&(netlink.NUD_PERMANENT|netlink.NUD_NOARP) == 0 {
					Expect(nl.NeighDel(&neighbour)).To(Succeed())
				}
			}
		}
	}
}

func (r rig) clean() {
	GinkgoHelper()
	Expect(r.Drops()).To(BeEmpty())
	Expect(r.ChecksumErrors()).To(BeEmpty())
}

// stream is a UDP flow that runs while a spec does something to the nodes, and a connection that stays open.
type stream struct {
	r      rig
	stop   context.CancelFunc
	result chan traffic.Tally
	client *http.Client
	family topo.Families
	pod    string
	source netip.AddrPort
}

// every is the pace of a stream, and so the unit in which its losses tell the time.
const every = 5 * time.Millisecond

func (r rig) stream(family topo.Families, pod string) *stream {
	GinkgoHelper()
	s := &stream{r: r, result: make(chan traffic.Tally, 1), client: traffic.HTTPClient(r.NS(r.client)), family: family, pod: pod}
	answer, err := traffic.Ask(r.Context(limit), s.client, r.front(family, fronts.HTTP, pod))
	Expect(err).NotTo(HaveOccurred())
	s.source = answer.Client
	Expect(r.burst(family, pod)).To(Succeed())
	var ctx context.Context
	ctx, s.stop = context.WithCancel(r.Context(limit))
	go func() {
		defer GinkgoRecover()
		tally, err := traffic.SendUDP(ctx, r.NS(r.client), r.front(family, fronts.Datagram, pod),
			traffic.Datagrams{Every: every, Window: 10000, Patience: 200 * time.Millisecond})
		Expect(err).NotTo(HaveOccurred())
		s.result <- tally
	}()
	return s
}

// burst sends some datagrams in a flow of their own and fails if one is lost.
func (r rig) burst(family topo.Families, pod string) error {
	const datagrams = 20
	tally, err := traffic.SendUDP(r.Context(limit), r.NS(r.client), r.front(family, fronts.Datagram, pod),
		traffic.Datagrams{Count: datagrams, Every: every, Patience: 100 * time.Millisecond})
	if err == nil && tally.Received != datagrams {
		err = fmt.Errorf("%s", tally)
	}
	return err
}

// recovers waits until new flows lose nothing, then ends the stream, expects that its flow and the open connection
// go on, and reports what was lost meanwhile.
func (s *stream) recovers(within time.Duration) {
	GinkgoHelper()
	began := time.Now()
	Eventually(func() error { return s.r.burst(s.family, s.pod) }, within, every).Should(Succeed())
	took := time.Since(began)
	s.stop()
	tally := <-s.result
	answer, err := traffic.Ask(s.r.Context(limit), s.client, s.r.front(s.family, fronts.HTTP, s.pod))
	Expect(err).NotTo(HaveOccurred())
	Expect(answer).To(Equal(traffic.Answer{Server: s.pod, Client: s.source}), "the open connection goes on")
	AddReportEntry(fmt.Sprintf("%s to %s: lost %d of %d datagrams, one each %v; whole again after %v",
		s.source.Addr(), s.pod, tally.Lost, tally.Sent, every, took.Round(time.Millisecond)), ReportEntryVisibilityAlways)
	Expect(time.Duration(tally.Lost) * every).To(BeNumerically("<", within))
	Expect(tally.Duplicated + tally.Corrupted).To(BeZero())
}
