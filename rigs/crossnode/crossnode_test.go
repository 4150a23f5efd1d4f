// SPDX-License-Identifier: Apache-2.0

// Package crossnode is the rig of two nodes and IPv4: the tunnel between them, seen from both of its ends and on the
// wire. Invariant: every service has its only pod on one node, so that dialling the other one means the tunnel.
package crossnode_test

import (
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/beep"
	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
	"github.com/beep-lb/beep/src/model"
)

func TestCrossnode(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "rig crossnode")
}

var _ = AfterSuite(func() { require.Report(GinkgoWriter) })

var _ = It("is drawn in its README", func() { scene.CheckReadme(GinkgoT(), plan()) })

// limit ends whatever a spec waits for.
var limit = require.Within(30 * time.Second)

// way is a node that a client dials, and where the pod is.
type way struct{ node, pod string }

// The ways through the tunnel, and the local one for comparison.
var (
	aToB   = way{"node-a", "pod-b1"}
	bToA   = way{"node-b", "pod-a1"}
	tunnel = []way{aToB, bToA}
)

// ports are the fronts' ports of one pod: pod-a1 is served by 1 + these on every node, pod-b1 by 2 + these.
const (
	web    = 8000 // TCP, an HTTP server
	bulk   = 8010 // TCP, traffic.ServeTCP
	again  = 8040 // TCP, another front of the same server
	echo   = 8000 // UDP, traffic.ServeUDP
	closed = 8020 // TCP, where no server listens
	mirror = 8030 // UDP, where a spec may put a server of its own
)

// target is the port in the pod of all of a front's.
func target(port uint16) uint16 { return port + 1000 }

func plan() topo.Plan { return topo.TwoNodes(topo.Options{Families: topo.V4}) }

type rig struct{ *scene.Scene }

func newRig(offload scene.Offload) rig {
	r := rig{scene.New(GinkgoT(), plan(), offload)}
	Expect(r.Evidence.CaptureAll()).To(Succeed())
	var services []beep.Service
	for _, w := range tunnel {
		ns, addr := r.NS(w.pod), r.Addr(w.pod, topo.V4)
		_, err := traffic.ServeHTTP(ns, w.pod, netip.AddrPortFrom(addr, target(web)))
		Expect(err).NotTo(HaveOccurred())
		_, err = traffic.ServeTCP(ns, w.pod, netip.AddrPortFrom(addr, target(bulk)))
		Expect(err).NotTo(HaveOccurred())
		_, err = traffic.ServeUDP(ns, netip.AddrPortFrom(addr, target(echo)))
		Expect(err).NotTo(HaveOccurred())
		for _, port := range []uint16{web, bulk, closed} {
			services = append(services, service(model.TCP, port, w.pod))
		}
		second := service(model.TCP, again, w.pod)
		second.TargetPort = target(bulk)
		services = append(services, second, service(model.UDP, echo, w.pod), service(model.UDP, mirror, w.pod))
	}
	r.Beep(beep.Options{Services: services})
	return r
}

func service(proto model.Proto, port uint16, pod string) beep.Service {
	return beep.Service{Proto: proto, Port: frontPort(port, pod), TargetPort: target(port), Pods: []string{pod}}
}

func frontPort(port uint16, pod string) uint16 {
	if pod == "pod-a1" {
		return port + 1
	}
	return port + 2
}

// front is where a client dials to go that way.
func (r rig) front(w way, port uint16) netip.AddrPort {
	return netip.AddrPortFrom(r.Addr(w.node, topo.V4), frontPort(port, w.pod))
}

// from is a port of the client's own choice, so that the server can be asked whether it saw just that.
func (r rig) from(port uint16) netip.AddrPort {
	return netip.AddrPortFrom(r.Addr("client", topo.V4), port)
}
