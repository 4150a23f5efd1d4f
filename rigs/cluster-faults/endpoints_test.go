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
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/beep-lb/beep/harness/cluster"
)

var _ = Describe("an endpoint", Label("cluster"), func() {
	It("C20 C24 I14 is used once, whatever slices name it in whatever order, and in the family of its slice", func() {
		r := newRig()
		r.create(service("web", r.port))
		notReady := when(new(false), new(false), new(false))
		for _, names := range [][2]string{{"web-1", "web-2"}, {"web-2", "web-1"}} {
			r.put(slice(names[0], "web", endpoint("10.42.1.50", notReady)))
			r.put(slice(names[1], "web", endpoint("10.42.1.50"), endpoint("10.42.2.50")))
			r.put(slice("web-6", "web", endpoint("2001:db8:a::1:50")))
			r.sends4(r.port, "10.42.1.50 10.42.2.50")
			r.sends6(r.port, "2001:db8:a::1:50")
		}
		// It moves: first it is in both slices, then in the other; and back, with the old event first.
		var empty sync.WaitGroup
		stop := r.neverNone(&empty, r.port)
		r.put(slice("web-1", "web", endpoint("10.42.1.50")))
		r.put(slice("web-2", "web", endpoint("10.42.2.50")))
		r.sends4(r.port, "10.42.1.50 10.42.2.50")
		r.put(slice("web-2", "web"))
		r.put(slice("web-1", "web", endpoint("10.42.1.50"), endpoint("10.42.2.50")))
		r.sends4(r.port, "10.42.1.50 10.42.2.50")
		stop()
		empty.Wait()

		// The slice is another Service's now, and then headless.
		other := slice("web-1", "shop", endpoint("10.42.1.50"))
		r.put(other)
		r.sends4(r.port, none)
		r.create(service("shop", r.port+1)) // the slice was there before its Service
		r.sends4(r.port+1, "10.42.1.50")
		other.Labels[corev1.IsHeadlessService] = ""
		r.put(other)
		r.sends4(r.port+1, none)
	})

	It("I14 of an odd slice is left out, without harm to the rest", func() {
		r := newRig()
		r.create(service("web", r.port))
		names := slice("names", "web")
		names.AddressType = discoveryv1.AddressTypeFQDN
		names.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{"web.example"}}}
		noPort, noNumber, second := slice("no-port", "web", endpoint("10.42.1.60")), slice("no-number", "web", endpoint("10.42.1.61")), slice("second", "web", endpoint("10.42.1.62"))
		noPort.Ports[0].Port = new(int32(0))
		noNumber.Ports[0].Port = nil
		second.Endpoints[0].Addresses = []string{"10.42.1.62", "10.42.1.63"}
		nameless := slice("nameless", "web", endpoint("10.42.1.64"))
		nameless.Ports[0].Name = nil
		for _, s := range []*discoveryv1.EndpointSlice{names, noPort, noNumber, nameless, second} {
			r.offer(s)
		}
		r.put(slice("web-1", "web", endpoint("10.42.1.50")))
		r.sends4(r.port, "10.42.1.50 10.42.1.62")
		r.always(time.Second, r.sends("TCP", r.port, "10.42.1.50 10.42.1.62", netip.Addr.Is4, everyNode...))

		// Of a Service that names no port, the port without a name is the one.
		s := service("plain", r.port+1)
		s.Spec.Ports[0].Name = ""
		r.create(s)
		plain := slice("plain-1", "plain", endpoint("10.42.1.65"))
		plain.Ports[0].Name = nil
		r.put(plain)
		r.sends4(r.port+1, "10.42.1.65")
	})

	It("C21 has the port number of its own pod where the Service's targetPort is a name", func() {
		r := newRig()
		for i, node := range []string{"node-a", "node-b"} {
			pod := cluster.Pod("on-"+node, "web", node)
			pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "web", ContainerPort: int32(9000 + i)}}
			_, err := r.Control.Client.CoreV1().Pods(r.namespace).Create(r.ctx, pod, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
		s := cluster.Service("web", r.port)
		s.Spec.Ports[0].TargetPort = intstr.FromString("web")
		r.serve(s)
		answered := map[string]bool{}
		r.eventually(func(ctx context.Context) error {
			for _, addr := range r.addrs(everyNode...) {
				answer, err := r.Ask(ctx, "client", netip.AddrPortFrom(addr, uint16(r.port)))
				if err != nil {
					return err
				}
				answered[answer.Server] = true
			}
			if len(answered) != 2 {
				return fmt.Errorf("answers of %v", answered)
			}
			return nil
		})
		for _, node := range []string{"node-a", "node-b"} {
			all, err := fronts(r.Node("node-c"))
			Expect(err).NotTo(HaveOccurred())
			f := all[at("TCP", r.Addr("node-c", 1), r.port)]
			Expect(f.Endpoints).To(HaveLen(2), node)
			for _, e := range f.Endpoints {
				want := map[string]uint16{"node-a": 9000, "node-b": 9001}[nodeOfPod(e.Address.Addr())]
				Expect(e.Address.Port()).To(Equal(want), "%s", e.Address)
			}
		}
	})

	It("C22 of a slice by hand is used where its address is at home, and elsewhere told of and left out", func() {
		r := newRig()
		nowhere := func(e *discoveryv1.Endpoint) { e.NodeName = nil }
		r.put(slice("web-1", "web", endpoint("203.0.113.80"), endpoint("10.42.1.50", nowhere), endpoint("10.42.2.50")))
		r.serve(service("web", r.port))
		r.sends4(r.port, "10.42.1.50 10.42.2.50", "node-a")
		r.sends4(r.port, "10.42.2.50", "node-b", "node-c")
		r.told("web", "EndpointNoNode", "it has no nodeName") // one for all endpoints of a port
	})

	It("C28 leaves the maps of all nodes when it leaves its slice", func() {
		r := newRig()
		r.create(service("web", r.port))
		var took []time.Duration
		for range 5 {
			r.put(slice("web-1", "web", endpoint("10.42.1.50"), endpoint("10.42.2.50")))
			r.sends4(r.port, "10.42.1.50 10.42.2.50")
			start := time.Now()
			r.put(slice("web-1", "web", endpoint("10.42.2.50")))
			r.sends4(r.port, "10.42.2.50")
			took = append(took, time.Since(start))
		}
		AddReportEntry("from the slice's change to the maps of three nodes", fmt.Sprint(took))
		Expect(slices.Min(took)).To(BeNumerically("<", time.Second), "a busy machine is late now and then, not always")
	})

	It("C39 is one of a thousand in ten slices, and no change of all of them passes an empty set", func() {
		r := newRig()
		s := service("web", r.port)
		s.Spec.IPFamilyPolicy, s.Spec.IPFamilies = new(corev1.IPFamilyPolicySingleStack), []corev1.IPFamily{corev1.IPv4Protocol}
		r.create(s)
		// A node has 250 addresses for pods: two ports of each make up the number.
		write := func(base int32) {
			for i := range 10 {
				var list []discoveryv1.Endpoint
				for n := range 100 {
					list = append(list, endpoint(fmt.Sprintf("10.42.%d.%d", 1+i%5/2, 1+100*(i%5%2)+n)))
				}
				s := slice(fmt.Sprintf("web-%d", i), "web", list...)
				s.Ports[0].Port = new(base + int32(i/5))
				r.put(s)
			}
		}
		counts := func(base uint16) func(context.Context) error {
			return func(context.Context) error {
				for _, node := range r.Nodes() {
					all, err := fronts(node)
					if err != nil {
						return err
					}
					f := all[at("TCP", r.addrs4(node.Name)[0], r.port)]
					got := 0
					for _, e := range f.Endpoints {
						if e.Address.Port() == base || e.Address.Port() == base+1 {
							got++
						}
					}
					if got != 1000 || len(f.Endpoints) != 1000 {
						return fmt.Errorf("%s has %d of %d endpoints", node.Name, got, len(f.Endpoints))
					}
				}
				return nil
			}
		}
		write(8000)
		r.eventually(counts(8000))
		var looking sync.WaitGroup
		stop := r.neverNone(&looking, r.port)
		write(9000)
		r.eventually(counts(9000))
		stop()
		looking.Wait()
	})

	It("I10 is used as its conditions, its place, the policy and its family say, in every cell", func() {
		r := newRig()
		type cell struct {
			ready, serving, terminating *bool
			local                       bool
		}
		three := []*bool{nil, new(true), new(false)}
		var cells []cell
		for _, ready := range three {
			for _, serving := range three {
				for _, terminating := range three {
					cells = append(cells, cell{ready, serving, terminating, false}, cell{ready, serving, terminating, true})
				}
			}
		}
		for i, c := range cells {
			name := fmt.Sprintf("cell-%d", i)
			s := service(name, r.port+int32(i))
			if c.local {
				s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
			}
			r.put(slice(name+"-4", name, endpoint("10.42.1.50", when(c.ready, c.serving, c.terminating))))
			r.put(slice(name+"-6", name, endpoint("2001:db8:a::1:50", when(c.ready, c.serving, c.terminating))))
			r.create(s)
		}
		is := func(condition *bool, otherwise bool) bool {
			if condition == nil {
				return otherwise
			}
			return *condition
		}
		for i, c := range cells {
			ready := is(c.ready, true)
			draining := is(c.serving, true) && is(c.terminating, false)
			here := ready || draining
			there := ready || draining && !c.local // deviation: a ready pod elsewhere serves Local too, rather than nobody
			for _, place := range []struct {
				node string
				used bool
			}{{"node-a", here}, {"node-b", there}} {
				four, six := none, none
				if place.used {
					four, six = "10.42.1.50", "2001:db8:a::1:50"
				}
				r.sends4(r.port+int32(i), four, place.node)
				r.sends6(r.port+int32(i), six, place.node)
			}
		}
	})
})

// offer creates a slice that the API server may refuse: then nobody meets it.
func (r *rig) offer(s *discoveryv1.EndpointSlice) {
	GinkgoHelper()
	if _, err := r.slices().Create(r.ctx, s, metav1.CreateOptions{}); err != nil {
		AddReportEntry("refused by the API server: "+s.Name, err.Error())
	}
}

// neverNone looks at a port's IPv4 front on node-a until stop, and fails if it ever has no endpoint.
func (r *rig) neverNone(looking *sync.WaitGroup, port int32) (stop func()) {
	ctx, cancel := context.WithCancel(r.ctx)
	looks := 0
	looking.Go(func() {
		defer GinkgoRecover()
		for ctx.Err() == nil {
			all, err := fronts(r.Node("node-a"))
			Expect(err).NotTo(HaveOccurred())
			Expect(all[at("TCP", r.addrs4("node-a")[0], port)].Endpoints).NotTo(BeEmpty())
			looks++
		}
		AddReportEntry("looks", looks)
	})
	return cancel
}
