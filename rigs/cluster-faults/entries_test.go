// SPDX-License-Identifier: Apache-2.0

package clusterfaults_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/beep-lb/beep/harness/cluster"
	"github.com/beep-lb/beep/harness/kube"
)

var _ = Describe("the list of a Service", Label("cluster"), func() {
	It("C9 I1 is never touched where the class is foreign, and is beep's again when the class is gone", func() {
		r := newRig()
		foreign := []corev1.LoadBalancerIngress{{IP: "203.0.113.9"}, {Hostname: "elsewhere.example"}, {IP: r.addrs("node-a")[0].String()}}
		s := service("web", r.port)
		s.Spec.LoadBalancerClass = new("example.com/other")
		r.create(s)
		r.setStatus("web", foreign...)
		version := r.version("web")
		r.quiet(10*time.Second, func() []kube.Write { return r.writes() })
		r.gone("TCP", r.port)
		Expect(r.version("web")).To(Equal(version))

		// A class cannot change on a LoadBalancer; by way of another type it can.
		r.setType("web", corev1.ServiceTypeClusterIP)
		r.setType("web", corev1.ServiceTypeLoadBalancer)
		r.lists("web", r.addrs(everyNode...)...)
		r.setType("web", corev1.ServiceTypeClusterIP)
		r.update("web", func(s *corev1.Service) {
			s.Spec.Type, s.Spec.LoadBalancerClass = corev1.ServiceTypeLoadBalancer, new("example.com/other")
		})
		r.setStatus("web", foreign...)
		r.gone("TCP", r.port)
		r.quiet(still, func() []kube.Write { return r.statusWrites() })
	})

	It("C33 I7 keeps entries without a mode, in another text and of others, loses copies, and then nobody writes", func() {
		r := newRig()
		vip := new(corev1.LoadBalancerIPModeVIP)
		entry := func(i int) corev1.LoadBalancerIngress {
			return corev1.LoadBalancerIngress{IP: r.addrs(everyNode...)[i].String(), IPMode: vip}
		}
		var all, modeless, text []corev1.LoadBalancerIngress
		for i, addr := range r.addrs(everyNode...) {
			all = append(all, entry(i))
			modeless = append(modeless, corev1.LoadBalancerIngress{IP: addr.String()})
			e := entry(i)
			if addr.Is6() {
				e.IP = "2001:DB8:B:0:0:0:0:" + addr.String()[len("2001:db8:b::"):]
			}
			text = append(text, e)
		}
		lists := map[string][]corev1.LoadBalancerIngress{
			"modeless": modeless, "text": text,
			"twice":   append(append([]corev1.LoadBalancerIngress{}, all...), entry(0)),
			"foreign": append([]corev1.LoadBalancerIngress{{Hostname: "elsewhere.example"}, {IP: "203.0.113.9"}}, all...),
		}
		port := r.port
		for name := range lists {
			r.serve(service(name, port))
			port++
		}
		r.quiet(2*time.Second, func() []kube.Write { return r.writes() })
		before := len(r.statusWrites())
		for name, list := range lists {
			r.setStatus(name, list...)
		}
		r.lists("twice", r.addrs(everyNode...)...)
		// Longer than two renewals of a Lease, and than an election takes to be renewed ten times.
		r.quiet(25*time.Second, func() []kube.Write {
			return r.written(func(w kube.Write) bool { return w.Resource != "leases" && w.Resource != "events" })
		})
		Expect(r.statusWrites()[before:]).To(HaveLen(1), "the copy is removed, and no other list is written")
		for name, want := range lists {
			if name == "twice" {
				continue
			}
			got, err := r.listed(r.ctx, name)
			Expect(err).NotTo(HaveOccurred())
			Expect(got).To(HaveLen(len(want)), name)
			for i := range got {
				Expect(got[i].IP+got[i].Hostname).To(Equal(want[i].IP+want[i].Hostname), name)
			}
		}
		r.told("foreign", "ForeignStatus", "elsewhere.example")
		r.told("foreign", "ForeignStatus", "203.0.113.9")
	})

	It("I19 is written ever more rarely when somebody empties it again and again, and told of once", func() {
		r := newRig()
		r.serve(service("web", r.port))
		before := len(r.statusWrites())
		for end := time.Now().Add(15 * time.Second); time.Now().Before(end); {
			r.setStatus("web")
			ctx, cancel := context.WithDeadline(r.ctx, end)
			_ = cluster.Await(ctx, r.listsNow("web", r.addrs(everyNode...)...)) // or the time is over
			cancel()
		}
		// Two at once, then after 1, 2, 4 and 8 s.
		Expect(len(r.statusWrites()) - before).To(And(BeNumerically(">=", 3), BeNumerically("<=", 7)))
		r.told("web", "ForeignStatus", "undoes")
		r.lists("web", r.addrs(everyNode...)...)
	})
})

// version is that of a Service, which every write changes.
func (r *rig) version(name string) string {
	GinkgoHelper()
	s, err := r.services().Get(r.ctx, name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	return s.ResourceVersion
}
