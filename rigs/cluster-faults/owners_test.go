// SPDX-License-Identifier: Apache-2.0

package clusterfaults_test

import (
	"net/netip"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/beep-lb/beep/harness/kube"
)

// tcp and udp are one port of each protocol.
func tcp(port int32) corev1.ServicePort {
	return corev1.ServicePort{Name: "http", Port: port, TargetPort: intstr.FromInt32(target)}
}

func udp(port int32) corev1.ServicePort {
	return corev1.ServicePort{Name: "udp", Port: port, Protocol: corev1.ProtocolUDP, TargetPort: intstr.FromInt32(target)}
}

var _ = Describe("a port", Label("cluster"), func() {
	It("C8 I11 has the oldest Service, then the lowest UID, as its owner; the next takes over when that goes", func() {
		r := newRig()
		r.put(slice("oldest-1", "oldest", endpoint("10.42.1.50")))
		r.put(slice("second-1", "second", endpoint("10.42.1.51")))
		r.put(slice("third-1", "third", endpoint("10.42.1.52")))
		r.older(r.serve(service("oldest", r.port)))
		// Two that are made in one second are as old as each other.
		var second, third *corev1.Service
		for try := 0; ; try++ {
			Expect(try).To(BeNumerically("<", 20), "two Services of one second")
			second, third = r.create(service("second", r.port)), r.create(service("third", r.port))
			if second.CreationTimestamp.Equal(&third.CreationTimestamp) {
				break
			}
			r.remove("second")
			r.remove("third")
		}
		next, last, sends := "second", "third", "10.42.1.51"
		if third.UID < second.UID {
			next, last, sends = "third", "second", "10.42.1.52"
		}
		r.told("second", "PortConflict", "oldest")
		r.told("third", "PortConflict", "oldest")
		r.sends4(r.port, "10.42.1.50")
		r.lists("second")
		r.lists("third")

		r.remove("oldest")
		r.sends4(r.port, sends)
		r.lists(next, r.addrs(everyNode...)...)
		r.lists(last)
		r.remove(next)
		r.lists(last, r.addrs(everyNode...)...)
	})

	It("C35 I11 of TCP and the same of UDP are two, in one Service and in two", func() {
		r := newRig()
		both := service("both", r.port)
		both.Spec.Ports = []corev1.ServicePort{tcp(r.port), udp(r.port)}
		one, other := service("one", r.port+1), service("other", r.port+1)
		other.Spec.Ports = []corev1.ServicePort{udp(r.port + 1)}
		for _, s := range []*corev1.Service{both, one, other} {
			r.serve(s)
		}
		for _, port := range []int32{r.port, r.port + 1} {
			for _, proto := range []string{"TCP", "UDP"} {
				r.eventually(r.sends(proto, port, none, netip.Addr.IsValid, everyNode...))
			}
		}
		for _, name := range []string{"both", "one", "other"} {
			list, err := r.listed(r.ctx, name)
			Expect(err).NotTo(HaveOccurred())
			for _, entry := range list {
				for _, port := range entry.Ports {
					Expect(port.Error).To(BeNil(), "%s: %v", name, entry)
				}
			}
		}
	})
})

var _ = Describe("families and source ranges", Label("cluster"), func() {
	It("C5 C6 I15 are those of spec.ipFamilies, in its order where a node comes new, and what is listed keeps its place", func() {
		r := newRig()
		s := service("web", r.port)
		s.Spec.IPFamilyPolicy, s.Spec.IPFamilies = new(corev1.IPFamilyPolicySingleStack), []corev1.IPFamily{corev1.IPv4Protocol}
		r.put(slice("web-4", "web", endpoint("10.42.1.50")))
		r.put(slice("web-6", "web", endpoint("2001:db8:a::1:50")))
		r.create(s)
		r.lists("web", r.addrs4(everyNode...)...)
		r.sends4(r.port, "10.42.1.50")
		r.sends6(r.port, absent)

		r.update("web", func(s *corev1.Service) { s.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicyPreferDualStack) })
		r.sends6(r.port, "2001:db8:a::1:50")
		r.sends4(r.port, "10.42.1.50")
		Eventually(func() ([]netip.Addr, error) { return r.Published(r.ctx, r.namespace, "web") }, limit).Should(
			And(HaveLen(6), ContainElements(r.addrs(everyNode...))))
		now, err := r.Published(r.ctx, r.namespace, "web")
		Expect(err).NotTo(HaveOccurred())
		Expect(now[:3]).To(Equal(r.addrs4(everyNode...)), "what was listed keeps its place")

		r.update("web", func(s *corev1.Service) {
			s.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicySingleStack)
			s.Spec.IPFamilies, s.Spec.ClusterIPs = s.Spec.IPFamilies[:1], s.Spec.ClusterIPs[:1]
		})
		r.lists("web", r.addrs4(everyNode...)...)
		r.sends6(r.port, absent)

		flipped := service("flipped", r.port+1)
		flipped.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol}
		r.create(flipped)
		var want []netip.Addr
		for _, node := range everyNode {
			own := r.Addrs(node)
			want = append(want, own[1], own[0])
		}
		r.lists("flipped", want...)
	})

	It("C36 I15 IPv6 alone is not listed where a node has none of it, and nowhere, with an Event, where no node has", func() {
		r := newRig()
		onlyIPv4 := func(n *corev1.Node) {
			n.Status.Addresses = slices.DeleteFunc(n.Status.Addresses, func(a corev1.NodeAddress) bool {
				addr, err := netip.ParseAddr(a.Address)
				return err == nil && addr.Is6()
			})
		}
		r.changeNode("node-c", onlyIPv4)
		s := service("web", r.port)
		s.Spec.IPFamilyPolicy, s.Spec.IPFamilies = new(corev1.IPFamilyPolicySingleStack), []corev1.IPFamily{corev1.IPv6Protocol}
		r.create(s)
		r.lists("web", r.Addrs("node-a")[1], r.Addrs("node-b")[1])
		r.sends6(r.port, none, "node-a", "node-b")
		r.sends6(r.port, absent, "node-c")
		r.sends4(r.port, absent)
		r.changeNode("node-a", onlyIPv4)
		r.changeNode("node-b", onlyIPv4)
		r.lists("web")
		r.gone("TCP", r.port)
		r.told("web", "NoAddressFamily", "IPv6")
	})

	It("I12 are trimmed and kept to their family; /0 opens it; the annotation counts alone; none is everybody", func() {
		r := newRig()
		r.serve(service("web", r.port))
		admits := func(want4, want6 []string) {
			GinkgoHelper()
			r.eventually(r.admits(r.port, want4, want6))
		}
		set := func(ranges ...string) {
			r.update("web", func(s *corev1.Service) { s.Spec.LoadBalancerSourceRanges = ranges })
		}
		everybody := []string(nil)
		admits(everybody, everybody)
		set(" 10.0.0.0/8 ", "198.51.100.0/24")
		admits([]string{"10.0.0.0/8", "198.51.100.0/24"}, []string{})
		set("0.0.0.0/0")
		admits(everybody, []string{})
		set("10.0.0.0/8", "2001:db8:c::/64")
		admits([]string{"10.0.0.0/8"}, []string{"2001:db8:c::/64"})
		set()
		r.update("web", func(s *corev1.Service) {
			s.Annotations = map[string]string{corev1.AnnotationLoadBalancerSourceRangesKey: "10.1.0.0/16, 10.2.0.0/16"}
		})
		admits([]string{"10.1.0.0/16", "10.2.0.0/16"}, []string{})
		r.update("web", func(s *corev1.Service) { s.Annotations = nil })
		admits(everybody, everybody)
	})

	It("I20 an affinity changes fronts; appProtocol, externalIPs and node ports change no map and no status", func() {
		r := newRig()
		r.put(slice("web-1", "web", endpoint("10.42.1.50")))
		r.serve(service("web", r.port))
		r.sends4(r.port, "10.42.1.50")
		r.update("web", func(s *corev1.Service) {
			s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
			s.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(int32(77))}}
		})
		r.eventually(r.affinity(r.port, "client-ip", 77))
		r.update("web", func(s *corev1.Service) {
			s.Spec.SessionAffinity, s.Spec.SessionAffinityConfig = corev1.ServiceAffinityNone, nil
		})
		r.eventually(r.affinity(r.port, "none", 0))
		r.sends4(r.port, "10.42.1.50")

		before, since := r.dump(), r.logged()
		r.update("web", func(s *corev1.Service) {
			s.Spec.Ports[0].AppProtocol, s.Spec.Ports[0].NodePort = new("kubernetes.io/h2c"), 0
			s.Spec.ExternalIPs = []string{"203.0.113.77"}
		})
		r.update("web", func(s *corev1.Service) { s.Spec.AllocateLoadBalancerNodePorts = new(false) })
		r.quiet(still, func() []kube.Write { return r.statusWrites() })
		Expect(r.unchanged(before)(r.ctx)).To(Succeed())
		for _, node := range r.Nodes() {
			Expect(r.steps(node, since[node.Name])).To(BeEmpty(), node.Name)
		}
	})
})
