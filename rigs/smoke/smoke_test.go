// SPDX-License-Identifier: Apache-2.0

// Package smoke is the rig of one node: what beep does where no tunnel is involved, and what it leaves alone.
// Invariant: each spec has namespaces, maps and a daemon of its own.
package smoke_test

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

func TestSmoke(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "rig smoke")
}

var _ = AfterSuite(func() { require.Report(GinkgoWriter) })

// limit ends whatever a spec waits for.
var limit = require.Within(30 * time.Second)

// The services of the node. One is of several ports, two of which are the same number for two protocols; one has no
// endpoint.
var (
	pods  = []string{"pod-a1", "pod-a2"}
	web   = beep.Service{Proto: model.TCP, Port: 80, TargetPort: 8080, Pods: pods}
	admin = beep.Service{Proto: model.TCP, Port: 8443, Pods: pods}
	bulk  = beep.Service{Proto: model.TCP, Port: 53, TargetPort: 5353, Pods: pods}
	dns   = beep.Service{Proto: model.UDP, Port: 53, TargetPort: 5353, Pods: pods}
	empty = []beep.Service{{Proto: model.TCP, Port: 9}, {Proto: model.UDP, Port: 9}}
)

func plan() topo.Plan { return topo.OneLAN(1, topo.Options{Pods: len(pods)}) }

var _ = It("is drawn in its README", func() { scene.CheckReadme(GinkgoT(), plan()) })

// rig is one node with two pods, whose servers run and tell their names.
type rig struct{ *scene.Scene }

func newRig(offload scene.Offload) rig {
	r := rig{scene.New(GinkgoT(), plan(), offload)}
	Expect(r.Evidence.CaptureAll()).To(Succeed())
	for _, pod := range pods {
		for _, family := range scene.Families {
			addr := r.Addr(pod, family)
			_, err := traffic.ServeHTTP(r.NS(pod), pod+" web", netip.AddrPortFrom(addr, web.TargetPort))
			Expect(err).NotTo(HaveOccurred())
			_, err = traffic.ServeHTTP(r.NS(pod), pod+" admin", netip.AddrPortFrom(addr, admin.Port))
			Expect(err).NotTo(HaveOccurred())
			_, err = traffic.ServeTCP(r.NS(pod), pod+" bulk", netip.AddrPortFrom(addr, bulk.TargetPort))
			Expect(err).NotTo(HaveOccurred())
			_, err = traffic.ServeUDP(r.NS(pod), netip.AddrPortFrom(addr, dns.TargetPort))
			Expect(err).NotTo(HaveOccurred())
		}
	}
	r.Beep(beep.Options{Services: append([]beep.Service{web, admin, bulk, dns}, empty...)})
	return r
}

// node is the daemon under test.
func (r rig) node() *beep.Daemon { return r.Nodes["node-a"] }

// front is a port of the node.
func (r rig) front(family topo.Families, port uint16) netip.AddrPort {
	return netip.AddrPortFrom(r.Addr("node-a", family), port)
}

// from is a port of the client's own choice, so that the server can be asked whether it saw just that.
func (r rig) from(family topo.Families, port uint16) netip.AddrPort {
	return netip.AddrPortFrom(r.Addr("client", family), port)
}
