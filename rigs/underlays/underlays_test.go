// SPDX-License-Identifier: Apache-2.0

// Package underlays is the rig of devices that only kernels with modules have: as the way between nodes, and beside
// beep. Invariant: each spec has namespaces, maps and daemons of its own, and needs of the kernel what its topology has.
package underlays_test

import (
	"net/netip"
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/beep"
	"github.com/beep-lb/beep/harness/fronts"
	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
	"github.com/beep-lb/beep/harness/watch"
	"github.com/beep-lb/beep/src/model"
)

func TestUnderlays(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "rig underlays")
}

var _ = AfterSuite(func() { require.Report(os.Stdout) })

// limit ends whatever a spec waits for. Kernels with modules run in emulated machines, beside others.
const limit = 3 * time.Minute

// load is what each client sends to each pod over each family.
var load = fronts.Load{Bytes: 256 << 10, Datagrams: 60, Patience: limit}

// pods are one on each node.
var pods = []string{"pod-a1", "pod-b1"}

// talk is the service of a socket that a spec opens itself.
var talk = beep.Service{Proto: model.UDP, Port: 7000, Pods: []string{"pod-b1"}}

// The bytes that beep's tunnel adds, by the family outside (docs/ARCHITECTURE.md).
var (
	forwardBytes = map[topo.Families]int{topo.V4: 60, topo.V6: 80}
	returnBytes  = map[topo.Families]int{topo.V4: 40, topo.V6: 60}
)

// headerBytes are those of an IP header.
var headerBytes = map[topo.Families]int{topo.V4: 20, topo.V6: 40}

const (
	tcpHeader = 20
	udpHeader = 8
)

// rig is a topology whose pods serve and whose nodes run beep.
type rig struct{ *scene.Scene }

// newRig builds the topology; serve starts the rest.
func newRig(plan topo.Plan, offload scene.Offload) rig {
	GinkgoHelper()
	for _, tunnel := range plan.Tunnels {
		topo.NeedDevice(GinkgoT(), string(tunnel.Kind))
	}
	r := rig{scene.New(GinkgoT(), plan, offload)}
	Expect(r.Evidence.CaptureAll()).To(Succeed())
	return r
}

// serve starts servers in the pods and beep on the nodes.
func (r rig) serve() {
	GinkgoHelper()
	_, err := fronts.Serve(r.Topology)
	Expect(err).NotTo(HaveOccurred())
	r.Beep(beep.Options{Services: append(fronts.Services(&r.Plan, pods...), talk)})
}

// on is the address of one device of a host.
func (r rig) on(host, device string, family topo.Families) netip.Addr {
	GinkgoHelper()
	for _, end := range r.Devices() {
		for _, prefix := range end.Addrs {
			if end.Host == host && end.Device == device && family.Has(prefix.Addr()) {
				return prefix.Addr()
			}
		}
	}
	Fail("no address on " + host + " " + device)
	return netip.Addr{}
}

// serves expects both pods to serve the client through both nodes' addresses on a device.
func (r rig) serves(device string, families ...topo.Families) {
	GinkgoHelper()
	for _, family := range families {
		for _, node := range []string{"node-a", "node-b"} {
			for _, pod := range pods {
				at := r.on(node, device, family)
				Expect(fronts.Try(r.Context(limit), r.Topology, "client", at, pod, load)).To(Succeed(), "%s by %s", pod, at)
			}
		}
	}
}

// clean expects that no node dropped and no kernel complained.
func (r rig) clean() {
	GinkgoHelper()
	Expect(r.Drops()).To(BeEmpty())
	Expect(r.ChecksumErrors()).To(BeEmpty())
}

// tunnelsDuring counts beep's tunnel packets that pass devices of node-a in the clear while f runs.
func (r rig) tunnelsDuring(devices []string, f func()) []int {
	GinkgoHelper()
	var watches []*watch.Watch
	for _, device := range devices {
		w, err := watch.Start(r.Topology, "node-a", device)
		Expect(err).NotTo(HaveOccurred())
		watches = append(watches, w)
	}
	f()
	counts := make([]int, len(devices))
	for i, w := range watches {
		packets, err := w.Packets()
		Expect(err).NotTo(HaveOccurred())
		for _, p := range packets {
			if watch.IsTunnel(p) {
				counts[i]++
			}
		}
	}
	return counts
}

// fits expects beep to know how much fits between the nodes, whose uplink is of an MTU: both segment sizes are clamped to
// it, a datagram of just that size arrives, and the sender of one byte more learns the limit.
func (r rig) fits(mtu int, at netip.Addr, family topo.Families) {
	GinkgoHelper()
	header := headerBytes[family]
	atPod, err := watch.Start(r.Topology, "pod-b1", "eth0")
	Expect(err).NotTo(HaveOccurred())
	atClient, err := watch.Start(r.Topology, "client", r.clientDevice())
	Expect(err).NotTo(HaveOccurred())
	_, err = traffic.Get(r.Context(limit), r.NS("client"), fronts.At(&r.Plan, at, fronts.HTTP, "pod-b1"))
	Expect(err).NotTo(HaveOccurred())
	Expect(atPod.SegmentSizes(false)).To(HaveEach(BeEquivalentTo(mtu-returnBytes[family]-header-tcpHeader)), "what the pod is told")
	Expect(atClient.SegmentSizes(true)).To(HaveEach(BeEquivalentTo(mtu-forwardBytes[family]-header-tcpHeader)), "what the client is told")

	dialogue, err := traffic.OpenDialogue(traffic.Talk{
		Client: r.NS("client"), From: netip.AddrPortFrom(r.Addr("client", family), 0), Dialled: netip.AddrPortFrom(at, talk.Port),
		Server: r.NS("pod-b1"), At: netip.AddrPortFrom(r.Addr("pod-b1", family), talk.Port),
		ClientOptions: traffic.SocketOptions{Fragment: traffic.ProbePath}, Patience: limit,
	})
	Expect(err).NotTo(HaveOccurred())
	longest := mtu - forwardBytes[family]
	ask := func(length int) traffic.Leg {
		GinkgoHelper()
		size := length - header - udpHeader
		fate, err := dialogue.Ask(traffic.Burst{Size: size, Count: 1}, traffic.Burst{Size: 1, Count: 1})
		Expect(err).NotTo(HaveOccurred())
		return fate.Question
	}
	leg := ask(longest)
	Expect(leg.Whole()).To(BeTrue(), "a packet of %d bytes: %s", longest, leg)
	leg = ask(longest + 1)
	Expect(leg.Refusal).NotTo(BeNil(), "a packet of %d bytes: %s", longest+1, leg)
	Expect(leg.Refusal.MTU).To(Equal(longest))
	Expect(leg.Refusal.From).To(Equal(at))
	Expect(dialogue.Close()).To(Succeed())
}

// clientDevice is where the client hears of nodes.
func (r rig) clientDevice() string { return r.Host("client").Ports[0].Device }
