// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"fmt"
	"net/netip"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/beep-lb/beep/harness/cluster"
	"github.com/beep-lb/beep/harness/traffic"
)

// The ports of a Service of all kinds, beside the first.
const (
	streamPort   = 1
	datagramPort = 2
)

// allKinds adds ports for TCP streams and datagrams.
func (r *rig) allKinds(service *corev1.Service) *corev1.Service {
	service.Spec.Ports = append(service.Spec.Ports,
		corev1.ServicePort{Name: cluster.StreamPort, Port: r.port + streamPort, TargetPort: intstr.FromInt32(cluster.StreamOn)},
		corev1.ServicePort{Name: "datagram", Port: r.port + datagramPort, Protocol: corev1.ProtocolUDP, TargetPort: intstr.FromInt32(cluster.DatagramOn)})
	return service
}

// scale has the Deployment want so many pods.
func (r *rig) scale(replicas int32) {
	GinkgoHelper()
	r.patchDeployment(fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
}

func (r *rig) patchDeployment(patch string) *appsv1.Deployment {
	GinkgoHelper()
	patched, err := r.Control.Client.AppsV1().Deployments(r.namespace).Patch(r.ctx, app, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
	return patched
}

var _ = Describe("a Service, from outside", Label("cluster"), func() {
	It("is served by every node, over both families and protocols, by the pods of all nodes, who see the client", func() {
		r := newRig()
		r.deploy(3)
		r.serve(r.allKinds(r.service()), everyNode...)
		Expect(r.Published(r.ctx, r.namespace, app)).To(Equal(r.addrs(everyNode...)), "the order of nodes, IPv4 first within each")
		r.allAnswer(r.fronts(r.port, everyNode...)...)
		for _, at := range r.fronts(r.port+streamPort, everyNode...) {
			transfer, err := traffic.Exchange(r.ctx, r.NS("client"), at, 1<<20, 1<<20)
			Expect(err).NotTo(HaveOccurred(), "%s", at)
			Expect(r.Addrs("client")).To(ContainElement(transfer.Client.Addr()), "%s", at)
		}
		for _, at := range r.fronts(r.port+datagramPort, everyNode...) {
			tally, err := traffic.SendUDP(r.ctx, r.NS("client"), at, traffic.Datagrams{Count: 50, Patience: patience})
			Expect(err).NotTo(HaveOccurred(), "%s", at)
			Expect(tally.Received).To(Equal(50), "%s: %s", at, tally)
			for source := range tally.Sources {
				Expect(r.Addrs("client")).To(ContainElement(source.Addr()), "%s", at)
			}
		}
	})

	It("follows its pods from 1 to 5 to none to 3, and is published all the time", func() {
		r := newRig()
		r.deploy(1)
		r.serve(r.service(), everyNode...)
		fronts := r.fronts(r.port, everyNode...)
		r.allAnswer(fronts...)
		r.scale(5)
		r.settled()
		r.allAnswer(fronts...)
		r.scale(0)
		r.settled()
		r.refused(fronts...)
		r.scale(3)
		r.settled()
		r.allAnswer(fronts...)
		Expect(r.statusWrites()).To(HaveLen(1), "the list was written once")
	})

	It("loses no request of 100 a second in a rolling update of five generations", func() {
		r := newRig()
		r.deploy(3)
		r.serve(r.service(), everyNode...)
		fronts := r.fronts(r.port, everyNode...)
		r.reached(fronts...)
		load := r.begin(100, func() []netip.AddrPort { return fronts })
		for generation := range 5 {
			r.patchDeployment(fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"generation":"%d"}}}}}`, generation))
			r.settled()
		}
		r.allAnswer(fronts...)
		load.lossless()
		Expect(r.statusWrites()).To(HaveLen(1), "the list was written once")
	})
})
