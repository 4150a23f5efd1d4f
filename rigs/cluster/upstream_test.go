// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"fmt"
	"net/netip"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/beep-lb/beep/harness/cluster"
	"github.com/beep-lb/beep/harness/traffic"
)

// The specs of this file and the next are named as upstream's (k8s.io/kubernetes, test/e2e/network/loadbalancer.go) and
// ask for the same, in other words: what upstream has a cloud and a kubelet for, a client outside and namespaces do here.

// datagrams is the Service of the app's UDP servers.
func (r *rig) datagrams() *corev1.Service {
	service := r.service()
	service.Spec.Ports = []corev1.ServicePort{{
		Name: "datagram", Port: r.port, Protocol: corev1.ProtocolUDP, TargetPort: intstr.FromInt32(cluster.DatagramOn),
	}}
	return service
}

// nodePorts are the Service's NodePort on every node.
func (r *rig) nodePorts(service *corev1.Service) []netip.AddrPort {
	return r.fronts(service.Spec.Ports[0].NodePort, everyNode...)
}

// answersUDP waits until datagrams to each of these fronts are answered.
func (r *rig) answersUDP(fronts ...netip.AddrPort) {
	GinkgoHelper()
	r.each(fronts, func(ctx context.Context, at netip.AddrPort) error {
		tally, err := traffic.SendUDP(ctx, r.NS("client"), at, traffic.Datagrams{Count: 3, Window: 1, Patience: silence})
		if err == nil && tally.Received != 3 {
			err = fmt.Errorf("datagrams to %s: %s", at, tally)
		}
		return err
	})
}

// silentUDP waits until datagrams to each of these fronts are not answered; refused says that an ICMP error must tell so.
func (r *rig) silentUDP(refused bool, fronts ...netip.AddrPort) {
	GinkgoHelper()
	r.each(fronts, func(ctx context.Context, at netip.AddrPort) error {
		tally, err := traffic.SendUDP(ctx, r.NS("client"), at, traffic.Datagrams{Count: 1, Patience: silence})
		switch {
		case err != nil:
			return err
		case tally.Received > 0:
			return fmt.Errorf("datagrams to %s are answered: %s", at, tally)
		case refused && tally.Refused[syscall.ECONNREFUSED] == 0 && tally.Refused[syscall.EHOSTUNREACH] == 0:
			return fmt.Errorf("datagrams to %s are not refused: %s", at, tally)
		}
		return nil
	})
}

// mutable is what a Service of one protocol must go through.
type mutable struct {
	service   func(*rig) *corev1.Service
	reached   func(*rig, ...netip.AddrPort) // by beep
	answered  func(*rig, ...netip.AddrPort) // by kube-proxy
	refused   func(*rig, ...netip.AddrPort)
	unreached func(*rig, ...netip.AddrPort)
}

// mutate changes the type and the ports of a Service, there and back.
func (m mutable) mutate() {
	r := newRig()
	r.deploy(1)
	service := m.service(r)
	service.Spec.Type = corev1.ServiceTypeClusterIP
	_, err := r.services().Create(r.ctx, service, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())

	By("NodePort")
	service = r.update(func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort })
	nodePort := service.Spec.Ports[0].NodePort
	m.answered(r, r.nodePorts(service)...)
	By("LoadBalancer")
	service = r.update(func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeLoadBalancer })
	Expect(service.Spec.Ports[0].NodePort).To(Equal(nodePort))
	r.lists(everyNode...)
	m.answered(r, r.nodePorts(service)...)
	m.reached(r, r.fronts(r.port, everyNode...)...)
	By("another NodePort")
	// The API server draws numbers from the start of the range last of all.
	service = r.update(func(s *corev1.Service) { s.Spec.Ports[0].NodePort = 30000 + r.port%86 })
	m.answered(r, r.nodePorts(service)...)
	m.unreached(r, r.fronts(nodePort, everyNode...)...)
	m.reached(r, r.fronts(r.port, everyNode...)...)
	nodePort = service.Spec.Ports[0].NodePort
	By("another port")
	published, err := r.Published(r.ctx, r.namespace, app)
	Expect(err).NotTo(HaveOccurred())
	service = r.update(func(s *corev1.Service) { s.Spec.Ports[0].Port++ })
	Expect(service.Spec.Ports[0].NodePort).To(Equal(nodePort))
	fronts := r.fronts(r.port+1, everyNode...)
	m.reached(r, fronts...)
	m.unreached(r, r.fronts(r.port, everyNode...)...)
	Expect(r.Published(r.ctx, r.namespace, app)).To(Equal(published))
	By("no pods")
	r.scale(0)
	r.settled()
	m.refused(r, append(r.nodePorts(service), fronts...)...)
	By("a pod again")
	r.scale(1)
	r.settled()
	m.answered(r, r.nodePorts(service)...)
	m.reached(r, fronts...)
	By("ClusterIP")
	old := r.nodePorts(service)
	service = r.update(func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeClusterIP })
	Expect(service.Spec.Ports[0].NodePort).To(BeZero())
	r.lists()
	m.unreached(r, append(old, fronts...)...)
}

var _ = Describe("LoadBalancers", Label("cluster", "upstream"), func() {
	It("should be able to change the type and ports of a TCP service", func() {
		mutable{
			service: (*rig).service, reached: (*rig).reached, answered: (*rig).answered, refused: (*rig).refused,
			unreached: func(r *rig, fronts ...netip.AddrPort) { r.unreached("client", fronts...) },
		}.mutate()
	})

	It("should be able to change the type and ports of a UDP service", func() {
		mutable{
			service: (*rig).datagrams, reached: (*rig).answersUDP, answered: (*rig).answersUDP,
			refused:   func(r *rig, fronts ...netip.AddrPort) { r.silentUDP(true, fronts...) },
			unreached: func(r *rig, fronts ...netip.AddrPort) { r.silentUDP(false, fronts...) },
		}.mutate()
	})

	It("should only allow access from service loadbalancer source ranges", func() {
		r := newRig()
		r.run("node-a", "node-b")
		service := r.service()
		alone := func(host string) []string {
			var ranges []string
			for _, addr := range r.Addrs(host) {
				ranges = append(ranges, netip.PrefixFrom(addr, addr.BitLen()).String())
			}
			return ranges
		}
		service.Spec.LoadBalancerSourceRanges = alone("client")
		r.serve(service, everyNode...)
		fronts := r.fronts(r.port, everyNode...)
		r.reached(fronts...)
		r.unreached("stranger", fronts...)
		By("the other way round")
		r.update(func(s *corev1.Service) { s.Spec.LoadBalancerSourceRanges = alone("stranger") })
		r.unreached("client", fronts...)
		r.eventually(func(ctx context.Context) error { return r.asksAll(ctx, "stranger", fronts) })
		By("everybody")
		r.update(func(s *corev1.Service) { s.Spec.LoadBalancerSourceRanges = nil })
		r.reached(fronts...)
		r.eventually(func(ctx context.Context) error { return r.asksAll(ctx, "stranger", fronts) })
	})

	for _, policy := range []corev1.ServiceExternalTrafficPolicy{corev1.ServiceExternalTrafficPolicyLocal, corev1.ServiceExternalTrafficPolicyCluster} {
		affine := func() *rig {
			r := newRig()
			// Two pods on node-a, so that there is a choice also for Local.
			for name, node := range map[string]string{"first": "node-a", "second": "node-a", "third": "node-b"} {
				r.runPod(cluster.Pod(name, app, node))
			}
			return r
		}
		It(fmt.Sprintf("should have session affinity work for LoadBalancer service with %s traffic policy", policy), func() {
			affine().affinity(policy, corev1.ServiceAffinityClientIP)
		})
		It(fmt.Sprintf("should be able to switch session affinity for LoadBalancer service with %s traffic policy", policy), func() {
			affine().affinity(policy, corev1.ServiceAffinityNone, corev1.ServiceAffinityClientIP, corev1.ServiceAffinityNone)
		})
	}

	It("should be able to create LoadBalancer Service without NodePort and change it", func() {
		r := newRig()
		r.run("node-a", "node-b")
		service := r.service()
		service.Spec.AllocateLoadBalancerNodePorts = new(false)
		service = r.serve(service, everyNode...)
		Expect(service.Spec.Ports[0].NodePort).To(BeZero())
		r.reached(r.fronts(r.port, everyNode...)...)
		service = r.update(func(s *corev1.Service) { s.Spec.AllocateLoadBalancerNodePorts = new(true) })
		Expect(service.Spec.Ports[0].NodePort).NotTo(BeZero())
		r.answered(r.nodePorts(service)...)
		r.reached(r.fronts(r.port, everyNode...)...)
	})

	for where, nodes := range map[string][2]string{
		"different nodes": {"node-a", "node-b"},
		"the same nodes":  {"node-b", "node-b"},
	} {
		It("should be able to preserve UDP traffic when server pod cycles for a LoadBalancer service on "+where, func() {
			r := newRig()
			r.runPod(cluster.Pod("first", app, nodes[0]))
			r.serve(r.datagrams(), everyNode...)
			// One source address and port through each node and family, for the whole time.
			var streams []func() (traffic.Tally, error)
			for _, at := range r.fronts(r.port, everyNode...) {
				r.answersUDP(at)
				streams = append(streams, r.stream(at))
			}
			r.answering("first", len(streams))
			By("the second pod comes, the first one is gone at once")
			r.runPod(cluster.Pod("second", app, nodes[1]))
			Expect(r.Control.RemovePod(r.ctx, r.namespace, "first")).To(Succeed())
			r.answering("second", len(streams))
			By("back")
			r.runPod(cluster.Pod("third", app, nodes[0]))
			Expect(r.Control.RemovePod(r.ctx, r.namespace, "second")).To(Succeed())
			r.answering("third", len(streams))
			for _, stop := range streams {
				tally, err := stop()
				Expect(err).NotTo(HaveOccurred())
				AddReportEntry("stream", tally.String())
			}
		})
	}

	for _, policy := range []corev1.ServiceExternalTrafficPolicy{corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal} {
		It(fmt.Sprintf("should not have connectivity disruption during rolling update with externalTrafficPolicy=%s", policy), func() {
			r := newRig()
			r.deployEverywhere()
			service := r.service()
			service.Spec.ExternalTrafficPolicy = policy
			r.serve(service, everyNode...)
			all := r.fronts(r.port, everyNode...)
			r.reached(all...)
			load := r.begin(100, func() []netip.AddrPort { return all })
			r.rollEverywhere()
			load.lossless()
		})
	}
})

// asksAll asks by every front from a host.
func (r *rig) asksAll(ctx context.Context, host string, fronts []netip.AddrPort) error {
	for _, at := range fronts {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		_, err := r.Ask(ctx, host, at)
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

// affinity switches the Service's session affinity through these, and waits for what each must do to one client. The
// pods are on node-a and node-b.
func (r *rig) affinity(policy corev1.ServiceExternalTrafficPolicy, steps ...corev1.ServiceAffinity) {
	GinkgoHelper()
	service := r.service()
	service.Spec.ExternalTrafficPolicy, service.Spec.SessionAffinity = policy, steps[0]
	listed := everyNode
	if policy == corev1.ServiceExternalTrafficPolicyLocal {
		listed = []string{"node-a", "node-b"}
	}
	r.serve(service, listed...)
	for _, step := range steps {
		r.update(func(s *corev1.Service) {
			s.Spec.SessionAffinity, s.Spec.SessionAffinityConfig = step, nil
		})
		for _, at := range r.fronts(r.port, "node-a") {
			r.eventually(func(ctx context.Context) error {
				pods, err := r.answerers(ctx, at)
				if err == nil && (step == corev1.ServiceAffinityClientIP) != (len(pods) == 1) {
					err = fmt.Errorf("affinity %s by %s: %v answer", step, at, pods)
				}
				return err
			})
		}
	}
}

// stream sends a datagram every 20 ms from one source until it is stopped.
func (r *rig) stream(at netip.AddrPort) (stop func() (traffic.Tally, error)) {
	ctx, cancel := context.WithCancel(r.ctx)
	DeferCleanup(cancel)
	var tally traffic.Tally
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		tally, err = traffic.SendUDP(ctx, r.NS("client"), at, traffic.Datagrams{Every: 20 * time.Millisecond, Patience: silence})
	}()
	return func() (traffic.Tally, error) {
		cancel()
		<-done
		return tally, err
	}
}

// answering waits until a pod answers all of so many streams.
func (r *rig) answering(pod string, streams int) {
	GinkgoHelper()
	r.eventually(func(context.Context) error {
		if before := r.Answered(r.namespace, pod); before < 20*streams {
			return fmt.Errorf("pod %s has answered %d datagrams", pod, before)
		}
		return nil
	})
}

// deployEverywhere runs a pod on every node by a DaemonSet, and waits until all serve.
func (r *rig) deployEverywhere() {
	GinkgoHelper()
	deployment := cluster.Deployment(app, 0)
	_, err := r.Control.Client.AppsV1().DaemonSets(r.namespace).Create(r.ctx, &appsv1.DaemonSet{
		ObjectMeta: deployment.ObjectMeta,
		Spec: appsv1.DaemonSetSpec{
			Selector: deployment.Spec.Selector, Template: deployment.Spec.Template,
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{RollingUpdate: &appsv1.RollingUpdateDaemonSet{
				MaxUnavailable: new(intstr.FromInt32(0)), MaxSurge: new(intstr.FromInt32(1)),
			}},
		},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	r.everywhere()
}

// rollEverywhere updates the pods of every node, one node at a time.
func (r *rig) rollEverywhere() {
	GinkgoHelper()
	r.eventually(func(ctx context.Context) error {
		set, err := r.Control.Client.AppsV1().DaemonSets(r.namespace).Get(ctx, app, metav1.GetOptions{})
		if err != nil {
			return err
		}
		set.Spec.Template.Annotations = map[string]string{"generation": "next"}
		_, err = r.Control.Client.AppsV1().DaemonSets(r.namespace).Update(ctx, set, metav1.UpdateOptions{})
		return err
	})
	r.everywhere()
}

// everywhere waits until the DaemonSet is as it should be, and nothing is left of another generation.
func (r *rig) everywhere() {
	GinkgoHelper()
	r.eventually(func(ctx context.Context) error {
		set, err := r.Control.Client.AppsV1().DaemonSets(r.namespace).Get(ctx, app, metav1.GetOptions{})
		if err != nil {
			return err
		}
		pods, err := r.pods().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		s, want := set.Status, int32(len(everyNode))
		if s.ObservedGeneration < set.Generation || s.UpdatedNumberScheduled != want || s.NumberAvailable != want || len(pods.Items) != len(everyNode) {
			return fmt.Errorf("daemon set: %+v, %d pods", s, len(pods.Items))
		}
		return nil
	})
}
