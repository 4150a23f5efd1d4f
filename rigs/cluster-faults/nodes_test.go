// SPDX-License-Identifier: Apache-2.0

package clusterfaults_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/beep-lb/beep/harness/kube"
)

// toBeDeleted is the taint by which the cluster autoscaler says that it removes a node.
const toBeDeleted = "ToBeDeletedByClusterAutoscaler"

var _ = Describe("a node", Label("cluster"), func() {
	It("C11 I9 leaves every list when it is excluded, and its pods serve on elsewhere", func() {
		r := newRig()
		r.put(slice("web-1", "web", endpoint("10.42.3.50")))
		r.serve(service("web", r.port))
		without, all := r.addrs("node-a", "node-b"), r.addrs(everyNode...)
		for _, value := range []string{"", "true", "banana"} {
			r.exclude("node-c", value)
			r.within(30*time.Second, r.listsNow("web", without...))
			r.sends4(r.port, "10.42.3.50")
			Expect(r.explain("node-a", "web")).To(ContainSubstring("exclude-from-external-load-balancers"), "value %q", value)
			r.exclude("node-c", "false")
			r.lists("web", all...)
		}
		r.exclude("node-c", "")
		r.lists("web", without...)
		r.include("node-c")
		r.lists("web", all...)
	})

	It("C12 stays when it is cordoned or not ready; C13 leaves when the autoscaler takes it, and forwards on", func() {
		r := newRig()
		r.runPods("web", "node-a", "node-b")
		r.serve(stream("web", r.port))
		r.reached(r.port)
		flow := r.hold(netip.AddrPortFrom(r.addrs("node-c")[0], uint16(r.port)))
		r.moves(flow)
		r.changeNode("node-c", func(n *corev1.Node) { n.Spec.Unschedulable = true })
		r.eventually(func(ctx context.Context) error {
			node, err := r.Control.Client.CoreV1().Nodes().Get(ctx, "node-c", metav1.GetOptions{})
			if err == nil && !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnschedulable }) {
				err = fmt.Errorf("not tainted: %v", node.Spec.Taints)
			}
			return err
		})
		Expect(r.Control.SetNodeReady(r.ctx, "node-c", false)).To(Succeed())
		DeferCleanup(func() { Expect(r.Control.SetNodeReady(context.Background(), "node-c", true)).To(Succeed()) })
		r.quiet(still, func() []kube.Write { return r.statusWrites() })
		r.lists("web", r.addrs(everyNode...)...)

		r.changeNode("node-c", func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: toBeDeleted, Effect: corev1.TaintEffectNoSchedule})
		})
		r.lists("web", r.addrs("node-a", "node-b")...)
		r.moves(flow)
	})

	It("C4 is listed by its ExternalIP if any node has one in that family, and only then; its fronts are on both", func() {
		r := newRig()
		r.put(slice("web-1", "web", endpoint("10.42.1.50")))
		r.serve(service("web", r.port))
		external := netip.MustParseAddr("192.0.2.111")
		r.changeNode("node-a", func(n *corev1.Node) {
			n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeExternalIP, Address: external.String()})
		})
		var six []netip.Addr
		for _, node := range everyNode {
			six = append(six, r.Addrs(node)[1])
		}
		r.lists("web", append(six, external)...)
		r.sends4(r.port, "10.42.1.50")
		r.eventually(func(context.Context) error {
			all, err := fronts(r.Node("node-a"))
			if _, there := all[at("TCP", external, r.port)]; err == nil && !there {
				err = fmt.Errorf("no front on %s", external)
			}
			return err
		})
	})

	It("C34 I8 whose address changes is listed by the new one, and of two of a family by the first, also after a restart", func() {
		r := newRig()
		r.put(slice("web-1", "web", endpoint("10.42.1.50")))
		s := service("web", r.port)
		s.Spec.IPFamilyPolicy, s.Spec.IPFamilies = new(corev1.IPFamilyPolicySingleStack), []corev1.IPFamily{corev1.IPv4Protocol}
		r.create(s)
		r.lists("web", r.addrs4(everyNode...)...)
		address := func(addrs ...string) func(*corev1.Node) {
			return func(n *corev1.Node) {
				n.Status.Addresses = nil
				for _, addr := range addrs {
					n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: addr})
				}
			}
		}
		moved := netip.MustParseAddr("192.0.2.113")
		want := append(r.addrs4("node-a", "node-b"), moved)
		onlyAt := func(addr netip.Addr) {
			GinkgoHelper()
			r.eventually(func(context.Context) error {
				all, err := fronts(r.Node("node-c"))
				var names []string
				for name := range all {
					if f := netip.MustParseAddrPort(name[len("TCP/"):]); f.Port() == uint16(r.port) {
						names = append(names, name)
					}
				}
				if err == nil && !slices.Equal(names, []string{at("TCP", addr, r.port)}) {
					err = fmt.Errorf("fronts %v, want that of %s", names, addr)
				}
				return err
			})
		}
		r.changeNode("node-c", address(moved.String()))
		r.lists("web", want...)
		onlyAt(moved)

		r.changeNode("node-c", address(moved.String(), "192.0.2.114"))
		r.quiet(still, func() []kube.Write { return r.statusWrites() })
		onlyAt(moved)
		controller := r.Node("node-c").Controller
		Expect(controller.Terminate()).To(Succeed())
		Expect(controller.Start()).To(Succeed())
		r.eventually(controller.AwaitReady)
		r.quiet(still, func() []kube.Write { return r.statusWrites() })
		onlyAt(moved)
		r.lists("web", want...)
	})

	It("C2 C7 is listed under Local while it has a usable pod, all are while there is none, and no hand-over passes nothing", func() {
		r := newRig()
		s := service("web", r.port)
		s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		r.serve(s)
		history := r.follow("web")
		r.put(slice("web-1", "web", endpoint("10.42.2.50")))
		r.put(slice("web-2", "web", endpoint("2001:db8:a::2:50")))
		r.lists("web", r.addrs("node-b")...)
		r.sends4(r.port, "10.42.2.50") // the others' clients are sent on rather than dropped
		r.sends6(r.port, "2001:db8:a::2:50")

		// Its pod ends while another begins elsewhere: it serves on while it drains.
		draining := when(new(false), new(true), new(true))
		r.put(slice("web-1", "web", endpoint("10.42.2.50", draining), endpoint("10.42.1.50")))
		r.put(slice("web-2", "web", endpoint("2001:db8:a::2:50", draining), endpoint("2001:db8:a::1:50")))
		r.sends4(r.port, "10.42.1.50", "node-a", "node-c")
		r.sends4(r.port, "10.42.2.50", "node-b")
		r.sends6(r.port, "2001:db8:a::2:50", "node-b")
		r.put(slice("web-1", "web", endpoint("10.42.1.50")))
		r.put(slice("web-2", "web", endpoint("2001:db8:a::1:50")))
		r.lists("web", r.addrs("node-a")...)
		r.sends4(r.port, "10.42.1.50")
		r.empty("web-1")
		r.empty("web-2")
		r.eventually(func(ctx context.Context) error {
			got, err := r.Published(ctx, r.namespace, "web")
			if err == nil && len(got) != len(r.addrs(everyNode...)) {
				err = fmt.Errorf("lists %v", got)
			}
			return err
		})
		r.sends4(r.port, none)
		for _, list := range history() {
			Expect(list).NotTo(BeEmpty())
		}
	})
})

// follow notes every list that a Service has from now on, which the returned function returns. A watch misses none.
func (r *rig) follow(name string) func() [][]corev1.LoadBalancerIngress {
	GinkgoHelper()
	s, err := r.services().Get(r.ctx, name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	var mu sync.Mutex
	lists := [][]corev1.LoadBalancerIngress{s.Status.LoadBalancer.Ingress}
	events, err := r.services().Watch(r.ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String(), ResourceVersion: s.ResourceVersion,
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(events.Stop)
	go func() {
		for event := range events.ResultChan() {
			if s, is := event.Object.(*corev1.Service); is {
				mu.Lock()
				lists = append(lists, s.Status.LoadBalancer.Ingress)
				mu.Unlock()
			}
		}
	}()
	return func() [][]corev1.LoadBalancerIngress {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(lists)
	}
}
