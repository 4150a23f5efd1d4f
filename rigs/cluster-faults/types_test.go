// SPDX-License-Identifier: Apache-2.0

package clusterfaults_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/beep-lb/beep/harness/cluster"
	"github.com/beep-lb/beep/harness/kube"
	"github.com/beep-lb/beep/harness/kube/faultproxy"
	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/traffic"
)

// still is how long nothing must happen, where something would happen at once.
const still = 3 * time.Second

// hold keeps a connection to a front busy until the spec's end.
func (r *rig) hold(at netip.AddrPort) *scene.Held {
	GinkgoHelper()
	conn, err := r.NS("client").DialContext(r.ctx, "tcp", at.String())
	Expect(err).NotTo(HaveOccurred())
	h := scene.Hold(r.ctx, conn)
	DeferCleanup(h.Close)
	return h
}

// moves waits until more bytes have passed.
func (r *rig) moves(h *scene.Held) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(r.ctx, limit)
	defer cancel()
	Expect(h.Moves(ctx)).To(Succeed())
}

// stream is a Service of real pods behind which connections live long.
func stream(name string, port int32) *corev1.Service {
	s := cluster.Service(name, port)
	s.Spec.Ports[0].TargetPort = intstr.FromInt32(cluster.StreamOn)
	return s
}

var _ = Describe("a Service that becomes another", Label("cluster"), func() {
	It("C1 I2 leaves with its type, its flows drain, and it comes back once, in its order", func() {
		r := newRig()
		r.runPods("web", "node-a", "node-b")
		r.serve(stream("web", r.port))
		r.reached(r.port)
		flows := []*scene.Held{}
		for _, addr := range r.addrs("node-c") {
			flows = append(flows, r.hold(netip.AddrPortFrom(addr, uint16(r.port))))
		}
		for _, flow := range flows {
			r.moves(flow)
		}
		before := len(r.statusWrites())
		r.setType("web", corev1.ServiceTypeClusterIP)
		r.gone("TCP", r.port)
		r.lists("web")
		for _, flow := range flows {
			r.moves(flow)
		}
		Expect(r.statusWrites()[before:]).To(BeEmpty(), "the API server empties the list itself")

		r.setType("web", corev1.ServiceTypeLoadBalancer)
		r.lists("web", r.addrs(everyNode...)...)
		before = len(r.statusWrites())
		r.setType("web", corev1.ServiceTypeClusterIP)
		r.setType("web", corev1.ServiceTypeLoadBalancer)
		r.lists("web", r.addrs(everyNode...)...)
		r.quiet(still, func() []kube.Write { return r.statusWrites() })
		Expect(done(r.statusWrites()[before:])).To(HaveLen(1), "entries are added again once")
		for _, flow := range flows {
			r.moves(flow)
		}
	})

	It("I3 is refused one write while the watch is late, and is then left alone until it comes", func() {
		r := newRig()
		r.serve(service("web", r.port))
		r.caughtUp() // a publisher that waits to see its own write tries nothing
		lift := holdAll(faultproxy.Match{Verb: "watch", Resource: "services"})
		r.setType("web", corev1.ServiceTypeClusterIP)
		before := len(r.statusWrites())
		r.exclude("node-c", "")
		r.eventually(func(context.Context) error {
			if len(r.statusWrites()) == before {
				return errors.New("nothing is tried")
			}
			return nil
		})
		r.quiet(still, func() []kube.Write { return r.statusWrites() })
		tried := r.statusWrites()[before:]
		Expect(tried).To(HaveLen(1))
		Expect(tried[0].Code).To(BeElementOf(409, 422), "a write on a version that is no more")
		lift()
		r.gone("TCP", r.port)
		r.quiet(still, func() []kube.Write { return r.statusWrites() })
		r.lists("web")
	})

	It("I3 takes a 422 as the API server's word, once, until the watch brings another version", func() {
		r := newRig()
		r.serve(service("web", r.port))
		of := faultproxy.Match{Verb: "patch", Resource: "services/status", Namespace: r.namespace}
		for _, proxy := range proxies {
			DeferCleanup(proxy.Answer(of, 1, apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "web", nil)).Lift)
		}
		patches := func() []faultproxy.Request {
			var all []faultproxy.Request
			for _, proxy := range proxies {
				all = append(all, proxy.Requests(of)...)
			}
			return all
		}
		before := len(patches())
		r.exclude("node-c", "true")
		Eventually(patches, limit).Should(HaveLen(before + 1))
		Consistently(patches, still, 200*time.Millisecond).Should(HaveLen(before + 1))
		r.update("web", func(s *corev1.Service) { s.Annotations = map[string]string{"touched": "yes"} })
		r.lists("web", r.addrs("node-a", "node-b")...)
	})

	It("I4 is deleted and made again under its name while the watch is late: the old front goes, the new one comes", func() {
		r := newRig()
		r.put(slice("web-1", "web", endpoint("10.42.1.50")))
		old := r.serve(service("web", r.port))
		r.sends4(r.port, "10.42.1.50")
		r.caughtUp()
		lift := holdAll(faultproxy.Match{Verb: "watch", Resource: "services"})
		r.remove("web")
		created := r.create(service("web", r.port+1))
		Expect(created.UID).NotTo(Equal(old.UID))
		before := len(r.statusWrites())
		r.exclude("node-c", "") // something to write about, and the version that is known is no more
		r.quiet(still, func() []kube.Write { return done(r.statusWrites()) })
		Expect(len(r.statusWrites())-before).To(BeNumerically("<=", 1), "one write that is refused")
		lift()
		r.sends4(r.port+1, "10.42.1.50")
		r.gone("TCP", r.port)
		r.lists("web", r.addrs("node-a", "node-b")...)
	})

	It("I5 is withdrawn when it is deleted, though a foreign finalizer keeps it, and stays so", func() {
		r := newRig()
		s := service("web", r.port)
		s.Finalizers = []string{"example.com/hold"}
		r.put(slice("web-1", "web", endpoint("10.42.1.50")))
		r.serve(s)
		r.sends4(r.port, "10.42.1.50")
		r.remove("web")
		r.gone("TCP", r.port)
		r.lists("web")
		r.update("web", func(s *corev1.Service) { s.Annotations = map[string]string{"touched": "yes"} })
		r.quiet(still, func() []kube.Write { return r.statusWrites() })
		r.gone("TCP", r.port)
		r.update("web", func(s *corev1.Service) { s.Finalizers = nil })
		r.eventually(func(ctx context.Context) error {
			_, err := r.services().Get(ctx, "web", metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("it is still there: %w", err)
		})
	})

	It("I13 moves to another port before it leaves the old one, and a port's name resets nothing", func() {
		r := newRig()
		r.runPods("web", "node-a", "node-b")
		r.serve(stream("web", r.port))
		r.reached(r.port)
		flow := r.hold(netip.AddrPortFrom(r.addrs("node-c")[0], uint16(r.port)))
		r.moves(flow)
		r.update("web", func(s *corev1.Service) { s.Spec.Ports[0].Name = "other" })
		r.eventually(r.sliceNames("other"))
		r.reached(r.port)
		r.moves(flow)

		since := r.logged()
		r.update("web", func(s *corev1.Service) { s.Spec.Ports[0].Port = r.port + 1 })
		r.reached(r.port + 1)
		r.gone("TCP", r.port)
		for _, node := range r.Nodes() {
			done := r.steps(node, since[node.Name])
			for _, addr := range r.Addrs(node.Name) {
				added := slices.Index(done, "added "+at("TCP", addr, r.port+1))
				removed := slices.Index(done, "removed "+at("TCP", addr, r.port))
				Expect(added).To(BeNumerically(">=", 0), "%s: %v", node.Name, done)
				Expect(removed).To(BeNumerically(">", added), "%s: %v", node.Name, done)
			}
		}
		r.moves(flow)
	})
})

// reached waits until the client reaches a port of real pods by all addresses of all nodes.
func (r *rig) reached(port int32) {
	GinkgoHelper()
	for _, addr := range r.addrs(everyNode...) {
		r.eventually(func(ctx context.Context) error {
			return r.exchange(ctx, addr, port)
		})
	}
}

// exchange has the client exchange a byte with a pod.
func (r *rig) exchange(ctx context.Context, addr netip.Addr, port int32) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err := traffic.Exchange(ctx, r.NS("client"), netip.AddrPortFrom(addr, uint16(port)), 1, 1)
	return err
}

// sliceNames fails unless all slices name their port so.
func (r *rig) sliceNames(name string) func(context.Context) error {
	return func(ctx context.Context) error {
		list, err := r.slices().List(ctx, metav1.ListOptions{})
		for _, s := range list.Items {
			if len(s.Ports) != 1 || *s.Ports[0].Name != name {
				err = errors.Join(err, fmt.Errorf("slice %s has ports %v", s.Name, s.Ports))
			}
		}
		return err
	}
}

// done are the writes that were taken.
func done(writes []kube.Write) []kube.Write {
	return slices.DeleteFunc(writes, func(w kube.Write) bool { return w.Code != 200 })
}
