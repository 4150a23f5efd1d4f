// SPDX-License-Identifier: Apache-2.0

package clusterfaults_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	typeddiscoveryv1 "k8s.io/client-go/kubernetes/typed/discovery/v1"
	"k8s.io/client-go/util/retry"

	"github.com/beep-lb/beep/harness/cluster"
	"github.com/beep-lb/beep/harness/kube"
)

// target is the port of the endpoints that nobody runs: what is asserted of them is where clients would be sent.
const target = 8080

func (r *rig) services() typedcorev1.ServiceInterface {
	return r.Control.Client.CoreV1().Services(r.namespace)
}

func (r *rig) slices() typeddiscoveryv1.EndpointSliceInterface {
	return r.Control.Client.DiscoveryV1().EndpointSlices(r.namespace)
}

// service is a dual-stack Service whose EndpointSlices the spec writes.
func service(name string, port int32) *corev1.Service {
	s := cluster.Service(name, port)
	s.Spec.Selector = nil
	return s
}

func (r *rig) create(s *corev1.Service) *corev1.Service {
	GinkgoHelper()
	created, err := r.services().Create(r.ctx, s, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return created
}

// serve creates a Service and waits until all nodes are listed.
func (r *rig) serve(s *corev1.Service) *corev1.Service {
	GinkgoHelper()
	created := r.create(s)
	r.lists(s.Name, r.addrs(everyNode...)...)
	return created
}

// older waits until what is created from now on is younger than a Service: the API server counts seconds.
func (r *rig) older(s *corev1.Service) {
	GinkgoHelper()
	r.eventually(func(context.Context) error {
		if !time.Now().After(s.CreationTimestamp.Add(time.Second)) {
			return fmt.Errorf("service %s is of this second", s.Name)
		}
		return nil
	})
}

func (r *rig) update(name string, change func(*corev1.Service)) {
	GinkgoHelper()
	Expect(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		s, err := r.services().Get(r.ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(s)
		_, err = r.services().Update(r.ctx, s, metav1.UpdateOptions{})
		return err
	})).To(Succeed())
}

// setType changes a Service's type as kubectl does, without the ClusterIP's node ports.
func (r *rig) setType(name string, to corev1.ServiceType) {
	GinkgoHelper()
	r.update(name, func(s *corev1.Service) {
		s.Spec.Type = to
		for i := range s.Spec.Ports {
			s.Spec.Ports[i].NodePort = 0
		}
		if to == corev1.ServiceTypeClusterIP {
			s.Spec.ExternalTrafficPolicy, s.Spec.AllocateLoadBalancerNodePorts, s.Spec.LoadBalancerClass = "", nil, nil
		}
	})
}

func (r *rig) remove(name string) {
	GinkgoHelper()
	Expect(r.services().Delete(r.ctx, name, metav1.DeleteOptions{})).To(Succeed())
}

// setStatus writes what a Service lists, as another load balancer would.
func (r *rig) setStatus(name string, entries ...corev1.LoadBalancerIngress) {
	GinkgoHelper()
	Expect(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		s, err := r.services().Get(r.ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		s.Status.LoadBalancer.Ingress = entries
		_, err = r.services().UpdateStatus(r.ctx, s, metav1.UpdateOptions{})
		return err
	})).To(Succeed())
}

// endpoint is one of a slice, on the node that its pod address belongs to: 10.42.2.50 is on node-b.
func endpoint(addr string, change ...func(*discoveryv1.Endpoint)) discoveryv1.Endpoint {
	e := discoveryv1.Endpoint{Addresses: []string{addr}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}
	if node := nodeOfPod(netip.MustParseAddr(addr)); node != "" {
		e.NodeName = &node
	}
	for _, c := range change {
		c(&e)
	}
	return e
}

// when is an endpoint's conditions; each may be nil.
func when(ready, serving, terminating *bool) func(*discoveryv1.Endpoint) {
	return func(e *discoveryv1.Endpoint) {
		e.Conditions = discoveryv1.EndpointConditions{Ready: ready, Serving: serving, Terminating: terminating}
	}
}

// empty has a slice without endpoints, of whatever family.
func (r *rig) empty(name string) {
	GinkgoHelper()
	s, err := r.slices().Get(r.ctx, name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	s.Endpoints = nil
	r.put(s)
}

// slice is an EndpointSlice of a Service, of the family of its first endpoint.
func slice(name, service string, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	family := discoveryv1.AddressTypeIPv4
	if len(endpoints) > 0 && netip.MustParseAddr(endpoints[0].Addresses[0]).Is6() {
		family = discoveryv1.AddressTypeIPv6
	}
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			discoveryv1.LabelServiceName: service, discoveryv1.LabelManagedBy: "spec",
		}},
		AddressType: family, Endpoints: endpoints,
		Ports: []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(target)), Protocol: new(corev1.ProtocolTCP)}},
	}
}

// put creates a slice, or replaces the one of its name.
func (r *rig) put(s *discoveryv1.EndpointSlice) {
	GinkgoHelper()
	old, err := r.slices().Get(r.ctx, s.Name, metav1.GetOptions{})
	if err == nil {
		s.ResourceVersion = old.ResourceVersion
		_, err = r.slices().Update(r.ctx, s, metav1.UpdateOptions{})
	} else {
		_, err = r.slices().Create(r.ctx, s, metav1.CreateOptions{})
	}
	Expect(err).NotTo(HaveOccurred())
	s.ResourceVersion = ""
}

// runPods runs a real pod on each of these nodes, named after it, and waits until they serve.
func (r *rig) runPods(app string, nodes ...string) {
	GinkgoHelper()
	pods := r.Control.Client.CoreV1().Pods(r.namespace)
	for _, node := range nodes {
		_, err := pods.Create(r.ctx, cluster.Pod("on-"+node, app, node), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
	for _, node := range nodes {
		r.eventually(func(ctx context.Context) error {
			pod, err := pods.Get(ctx, "on-"+node, metav1.GetOptions{})
			if err == nil && pod.Status.Phase != corev1.PodRunning {
				err = fmt.Errorf("pod %s: %+v", pod.Name, pod.Status)
			}
			return err
		})
	}
}

// sliceOfPods writes the slices, one a family, of the stream servers of the pods that runPods has made on these nodes.
func (r *rig) sliceOfPods(service string, nodes ...string) {
	GinkgoHelper()
	lists := [2][]discoveryv1.Endpoint{}
	for _, node := range nodes {
		pod, err := r.Control.Client.CoreV1().Pods(r.namespace).Get(r.ctx, "on-"+node, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		for i, ip := range pod.Status.PodIPs {
			lists[i] = append(lists[i], endpoint(ip.IP))
		}
	}
	for i, list := range lists {
		s := slice(fmt.Sprintf("%s-%d", service, i), service, list...)
		s.Ports[0].Port = new(int32(cluster.StreamOn))
		r.put(s)
	}
}

// changeNode changes a Node until the spec's end; what the spec changed is then as before.
func (r *rig) changeNode(name string, change func(*corev1.Node)) {
	GinkgoHelper()
	nodes := r.Control.Client.CoreV1().Nodes()
	apply := func(ctx context.Context, change func(*corev1.Node)) error {
		return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			node, err := nodes.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			change(node)
			status := node.Status
			if node, err = nodes.Update(ctx, node, metav1.UpdateOptions{}); err != nil {
				return err
			}
			node.Status.Addresses = status.Addresses
			_, err = nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{})
			return err
		})
	}
	before, err := nodes.Get(r.ctx, name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		Expect(apply(context.Background(), func(node *corev1.Node) {
			node.Labels, node.Spec.Taints, node.Spec.Unschedulable = before.Labels, before.Spec.Taints, before.Spec.Unschedulable
			node.Status.Addresses = before.Status.Addresses
		})).To(Succeed())
	})
	Expect(apply(r.ctx, change)).To(Succeed())
}

// exclude sets the label that keeps a node out of load balancers.
func (r *rig) exclude(node, value string) {
	GinkgoHelper()
	r.changeNode(node, func(n *corev1.Node) { n.Labels[corev1.LabelNodeExcludeBalancers] = value })
}

func (r *rig) include(node string) {
	GinkgoHelper()
	r.changeNode(node, func(n *corev1.Node) { delete(n.Labels, corev1.LabelNodeExcludeBalancers) })
}

// addrs are all addresses of nodes, in the order in which a new Service lists them.
func (r *rig) addrs(nodes ...string) []netip.Addr {
	var addrs []netip.Addr
	for _, node := range nodes {
		addrs = append(addrs, r.Addrs(node)...)
	}
	return addrs
}

// addrs4 are those of IPv4.
func (r *rig) addrs4(nodes ...string) []netip.Addr {
	return slices.DeleteFunc(r.addrs(nodes...), netip.Addr.Is6)
}

// nodeOfPod is whose pod CIDR an address is in; empty if nobody's.
func nodeOfPod(addr netip.Addr) string {
	p := plan()
	for _, name := range everyNode {
		for _, cidr := range kube.PodCIDRsOf(kube.NodeOf(&p, name)) {
			if cidr.Contains(addr) {
				return name
			}
		}
	}
	return ""
}

// listed is what a Service lists.
func (r *rig) listed(ctx context.Context, name string) ([]corev1.LoadBalancerIngress, error) {
	s, err := r.services().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return s.Status.LoadBalancer.Ingress, nil
}

// listsNow fails unless a Service lists these addresses in this order.
func (r *rig) listsNow(name string, want ...netip.Addr) func(context.Context) error {
	return func(ctx context.Context) error {
		got, err := r.Published(ctx, r.namespace, name)
		if err == nil && !slices.Equal(got, want) {
			err = fmt.Errorf("service %s lists %v, want %v", name, got, want)
		}
		return err
	}
}

// lists waits until a Service lists these addresses in this order.
func (r *rig) lists(name string, want ...netip.Addr) {
	GinkgoHelper()
	r.eventually(r.listsNow(name, want...))
}

// told waits until there is exactly one Event of a reason about a Service that says so.
func (r *rig) told(service, reason, says string) {
	GinkgoHelper()
	r.eventually(func(ctx context.Context) error {
		list, err := r.Control.Client.CoreV1().Events(r.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		count := 0
		for _, event := range list.Items {
			if event.InvolvedObject.Name == service && event.Reason == reason && event.Type == corev1.EventTypeWarning &&
				strings.Contains(event.Message, says) {
				count++
			}
		}
		if count != 1 {
			return fmt.Errorf("%d events %s about %s that say %q", count, reason, service, says)
		}
		return nil
	})
}
