// SPDX-License-Identifier: Apache-2.0

// Package dualstack is the rig of both families: what clients and pods speak (inner), and what the nodes speak to each
// other (outer), in every combination and in bulk. Invariant: whatever moves is compared at its end, byte by
// byte for TCP and by a checksum of its own for every datagram, so that "nothing lost" means "nothing changed" too.
package dualstack_test

import (
	"fmt"
	"net/netip"
	"os"
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

func TestDualstack(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "rig dualstack")
}

var _ = AfterSuite(func() { require.Report(GinkgoWriter) })

// The measurements of all specs, for people: machines differ too much for a limit.
var _ = ReportAfterSuite("measured", func(report Report) {
	for _, spec := range report.SpecReports {
		for _, entry := range spec.ReportEntries {
			fmt.Fprintf(os.Stdout, "measured: %s: %s\n", entry.Name, entry.StringRepresentation())
		}
	}
})

var _ = It("is drawn in its README", func() { scene.CheckReadme(GinkgoT(), topo.TwoNodes(topo.Options{})) })

// limit ends whatever a spec waits for.
const limit = 3 * time.Minute

// port is that of all fronts and servers; specs that need two services use the next one as well.
const port = 8000

// services are TCP and UDP of one port, served by the pod, with tunnels over one family.
func services(port uint16, underlay topo.Families, pods ...string) []beep.Service {
	return []beep.Service{
		{Proto: model.TCP, Port: port, Pods: pods, Underlay: underlay},
		{Proto: model.UDP, Port: port, Pods: pods, Underlay: underlay},
	}
}

type rig struct{ *scene.Scene }

// serve starts the servers of a pod on all of its addresses and returns the echo of each family.
func (r rig) serve(pod string, port uint16) map[topo.Families]*traffic.Echo {
	GinkgoHelper()
	echoes := map[topo.Families]*traffic.Echo{}
	for _, family := range scene.Families {
		addr := r.Addr(pod, family)
		if !addr.IsValid() {
			continue
		}
		_, err := traffic.ServeTCP(r.NS(pod), pod, netip.AddrPortFrom(addr, port))
		Expect(err).NotTo(HaveOccurred())
		echoes[family], err = traffic.ServeUDP(r.NS(pod), netip.AddrPortFrom(addr, port))
		Expect(err).NotTo(HaveOccurred())
	}
	return echoes
}

// front is where a client dials a node.
func (r rig) front(node string, family topo.Families, port uint16) netip.AddrPort {
	return netip.AddrPortFrom(r.Addr(node, family), port)
}

// expectClean wants no drop of beep's and no checksum error of any kernel.
func (r rig) expectClean() {
	GinkgoHelper()
	Expect(r.Drops()).To(BeEmpty())
	Expect(r.ChecksumErrors()).To(BeEmpty())
}

// largest is the UDP payload in bytes that fits the MTU inside a forward tunnel.
func largest(inner, outer topo.Families) int {
	const udp = 8
	ip := map[topo.Families]int{topo.V4: 20, topo.V6: 40}
	overhead := map[topo.Families]int{topo.V4: 60, topo.V6: 80} // of a forward tunnel, see docs/ARCHITECTURE.md
	return topo.DefaultMTU - overhead[outer] - ip[inner] - udp
}
