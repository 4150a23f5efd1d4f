// SPDX-License-Identifier: Apache-2.0

// Package mtu is the rig of what does not fit: links, routes and tunnels of every MTU that operators have, and packets
// of every size through them. Invariant: a datagram that a spec sends is accounted for, one by one: it arrives as it
// was sent, or its sender is told why not by an ICMP error that the spec has read byte by byte.
package mtu_test

import (
	"fmt"
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
)

func TestMTU(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "rig mtu")
}

var _ = AfterSuite(func() { require.Report(os.Stdout) })

// The measurements of all specs, for people.
var _ = ReportAfterSuite("measured", func(report Report) {
	for _, spec := range report.SpecReports {
		for _, entry := range spec.ReportEntries {
			fmt.Fprintf(os.Stdout, "measured: %s: %s\n", entry.Name, entry.StringRepresentation())
		}
	}
})

var _ = It("is drawn in its README", func() {
	scene.CheckReadme(GinkgoT(), topo.TwoNodes(topo.Options{}))
	scene.CheckReadme(GinkgoT(), topo.BehindRouter(2, topo.Options{}))
})

// limit ends whatever a spec waits for.
const limit = 30 * time.Second

// The client dials node-a; there is one pod there and one behind the tunnel.
const (
	localPod  = "pod-a1"
	remotePod = "pod-b1"
)

// links are the MTUs of a setup in bytes.
type links struct {
	uplink int // of client, nodes and whatever is between them
	pod    int
}

func (l links) String() string { return fmt.Sprintf("MTU %d, pods %d", l.uplink, l.pod) }

// setups are Ethernet, PPPoE, a cloud's overlay, WireGuard, and jumbo frames with and without pods that have them.
var setups = []links{{1500, 1500}, {1492, 1500}, {1472, 1500}, {1420, 1500}, {9000, 1500}, {9000, 9000}}

// way is which families a spec speaks: client and pod the inner one, tunnels the outer one.
type way struct{ inner, outer topo.Families }

func (w way) String() string {
	return fmt.Sprintf("%s over an %s underlay", scene.FamilyName(w.inner), scene.FamilyName(w.outer))
}

// ways are all of them.
func ways() []way {
	var all []way
	for _, inner := range scene.Families {
		for _, outer := range scene.Families {
			all = append(all, way{inner, outer})
		}
	}
	return all
}

// header is the length in bytes of the inner IP header.
func (w way) header() int { return map[topo.Families]int{topo.V4: 20, topo.V6: 40}[w.inner] }

// forward and back are the longest inner packets in bytes on tunnels of an MTU, see docs/ARCHITECTURE.md: 24 bytes
// of option to the pod, 4 on the way back, behind IP, UDP and Geneve.
func (w way) forward(mtu int) int {
	return mtu - map[topo.Families]int{topo.V4: 20, topo.V6: 40}[w.outer] - 8 - 8 - 24
}

func (w way) back(mtu int) int {
	return mtu - map[topo.Families]int{topo.V4: 20, topo.V6: 40}[w.outer] - 8 - 8 - 4
}

type rig struct {
	*scene.Scene
	way
	offload scene.Offload
	shared  map[string]*traffic.Echo // behind the front of both pods, by pod
}

// start builds the plan, has every pod serve, and starts beep on every node.
func start(plan topo.Plan, offload scene.Offload, w way) rig {
	GinkgoHelper()
	r := rig{scene.New(GinkgoT(), plan, offload), w, offload, map[string]*traffic.Echo{}}
	_, err := fronts.Serve(r.Topology)
	Expect(err).NotTo(HaveOccurred())
	services := fronts.Services(&r.Plan, localPod, remotePod)
	for pod, port := range closedFronts {
		services = append(services, beep.Service{Proto: fronts.Datagram.Proto(), Port: port, TargetPort: closedPort, Pods: []string{pod}})
	}
	for pod, port := range talkFronts {
		services = append(services, beep.Service{Proto: fronts.Datagram.Proto(), Port: port, TargetPort: talkPort, Pods: []string{pod}})
	}
	for _, pod := range []string{localPod, remotePod} {
		r.shared[pod], err = traffic.ServeUDP(r.NS(pod), netip.AddrPortFrom(r.Addr(pod, w.inner), sharedPort))
		Expect(err).NotTo(HaveOccurred())
	}
	services = append(services, beep.Service{Proto: fronts.Datagram.Proto(), Port: sharedPort, Pods: []string{localPod, remotePod}})
	r.Beep(beep.Options{Services: services, Underlay: w.outer})
	return r
}

// onOneLAN is two nodes on a LAN with the client.
func onOneLAN(l links, offload scene.Offload, w way) rig {
	GinkgoHelper()
	return start(topo.TwoNodes(topo.Options{Families: w.inner, Underlay: w.outer, MTU: l.uplink, PodMTU: l.pod}), offload, w)
}

// front is where the client dials.
func (r rig) front(kind fronts.Kind, pod string) netip.AddrPort {
	return fronts.At(&r.Plan, r.Addr("node-a", r.inner), kind, pod)
}

// dialled is the address of the fronts.
func (r rig) dialled() netip.Addr { return r.Addr("node-a", r.inner) }

// expectRightChecksums wants no kernel to have met a wrong checksum.
func (r rig) expectRightChecksums() {
	GinkgoHelper()
	Expect(r.ChecksumErrors()).To(BeEmpty())
}

// everywhere names specs by families and offloads.
func everywhere(spec func(way, scene.Offload)) {
	for _, offload := range scene.Offloads {
		for _, w := range ways() {
			Context(w.String()+", "+offload.String(), func() { spec(w, offload) })
		}
	}
}
