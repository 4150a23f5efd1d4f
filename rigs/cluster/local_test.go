// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"fmt"
	"net/netip"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
)

// pin has the Deployment's next pods run on one node.
func (r *rig) pin(node string) {
	GinkgoHelper()
	r.patchDeployment(fmt.Sprintf(`{"spec":{"template":{"spec":{"nodeSelector":{%q:%q}}}}}`, corev1.LabelHostname, node))
}

// local is the Service with externalTrafficPolicy Local.
func (r *rig) local() *corev1.Service {
	service := r.service()
	service.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	return service
}

var _ = Describe("externalTrafficPolicy Local", Label("cluster"), func() {
	It("is handed from node to node with the pod, and the list is never empty nor leads astray", func() {
		r := newRig()
		r.deploy(1)
		r.pin("node-a")
		r.settled()
		r.serve(r.local(), "node-a")
		r.reached(r.fronts(r.port, "node-a")...)
		history := r.follow()
		// Whoever dials what is listed at that moment is answered.
		load := r.begin(50, func() []netip.AddrPort {
			var fronts []netip.AddrPort
			for _, entry := range history.last() {
				fronts = append(fronts, netip.AddrPortFrom(netip.MustParseAddr(entry.IP), uint16(r.port)))
			}
			return fronts
		})
		for _, node := range []string{"node-b", "node-c", "node-a"} {
			r.pin(node)
			r.lists(node)
			r.settled()
		}
		load.lossless()

		By("no pod at all: every node, rather than none")
		r.scale(0)
		r.lists(everyNode...)
		r.refused(r.fronts(r.port, everyNode...)...)
		r.scale(1)
		r.lists("node-a")
		r.reached(r.fronts(r.port, "node-a")...)
		history.neverEmpty()
	})
})
