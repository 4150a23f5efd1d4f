// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/beep-lb/beep/harness/cluster"
	"github.com/beep-lb/beep/harness/traffic"
)

// healthy waits until the Service's health check says of each node whether it has a pod: of these it does.
func (r *rig) healthy(service *corev1.Service, nodes ...string) {
	GinkgoHelper()
	client := traffic.HTTPClient(r.NS("client"))
	client.Timeout = 2 * time.Second
	for _, node := range everyNode {
		want := http.StatusServiceUnavailable
		if slices.Contains(nodes, node) {
			want = http.StatusOK
		}
		at := r.fronts(service.Spec.HealthCheckNodePort, node)[0]
		r.eventually(func(ctx context.Context) error {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at.String()+"/healthz", nil)
			if err != nil {
				return err
			}
			response, err := client.Do(request)
			if err != nil {
				return err
			}
			if err := response.Body.Close(); err != nil {
				return err
			}
			if response.StatusCode != want {
				return fmt.Errorf("health of %s: %s, want %d", node, response.Status, want)
			}
			return nil
		})
	}
}

var _ = Describe("LoadBalancers ExternalTrafficPolicy: Local", Label("cluster", "upstream"), func() {
	It("should work for type=LoadBalancer", func() {
		r := newRig()
		r.run("node-a")
		service := r.serve(r.local(), "node-a")
		Expect(service.Spec.HealthCheckNodePort).NotTo(BeZero())
		r.healthy(service, "node-a")
		// Ask fails if the pod saw anybody else than the client.
		r.allAnswer(r.fronts(r.port, "node-a")...)
		r.update(func(s *corev1.Service) {
			s.Spec.Type, s.Spec.ExternalTrafficPolicy = corev1.ServiceTypeClusterIP, ""
		})
		r.lists()
		r.unreached("client", r.fronts(service.Spec.HealthCheckNodePort, "node-a")...)
		r.unreached("client", r.fronts(r.port, everyNode...)...)
	})

	It("should only target nodes with endpoints", func() {
		r := newRig()
		r.run("node-a")
		service := r.serve(r.local(), "node-a")
		previous := "node-a"
		for _, node := range []string{"node-b", "node-c"} {
			r.run(node)
			Expect(r.Control.RemovePod(r.ctx, r.namespace, "on-"+previous)).To(Succeed())
			r.lists(node)
			r.healthy(service, node)
			r.allAnswer(r.fronts(r.port, node)...)
			previous = node
		}
	})

	It("should work from pods", func() {
		r := newRig()
		r.run("node-a")
		r.serve(r.local(), "node-a")
		r.reached(r.fronts(r.port, "node-a")...)
		for _, node := range everyNode {
			name := "client-on-" + node
			r.runPod(cluster.Pod(name, "client", node))
			pod, err := r.PodNS(r.namespace, name)
			Expect(err).NotTo(HaveOccurred())
			own, err := r.podAddrs(name)
			Expect(err).NotTo(HaveOccurred())
			for _, at := range r.fronts(r.port, "node-a") {
				r.eventually(func(ctx context.Context) error {
					ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
					defer cancel()
					answer, err := traffic.Get(ctx, pod, at)
					if err == nil && !slices.Contains(own, answer.Client.Addr()) {
						err = fmt.Errorf("pod %s dialled %s, and pod %s saw %s", name, at, answer.Server, answer.Client)
					}
					return err
				})
			}
		}
	})
})

// podAddrs are a pod's addresses.
func (r *rig) podAddrs(name string) ([]netip.Addr, error) {
	pod, err := r.pods().Get(r.ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	var addrs []netip.Addr
	for _, ip := range pod.Status.PodIPs {
		addr, err := netip.ParseAddr(ip.IP)
		if err != nil {
			return nil, err
		}
		addrs = append(addrs, addr)
	}
	return addrs, nil
}
