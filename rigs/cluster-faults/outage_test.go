// SPDX-License-Identifier: Apache-2.0

package clusterfaults_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/beep-lb/beep/harness/kube"
	"github.com/beep-lb/beep/harness/kube/faultproxy"
	"github.com/beep-lb/beep/src/publish"
	"github.com/beep-lb/beep/src/watch"
)

const (
	// leaseTime is how long a Lease counts, which an outage must last longer than, and nobody is pruned for so long after it.
	leaseTime = 40 * time.Second
	// retrying is how long retries are watched. client-go waits for 0.8 s first, twice as long each time, and at random up to twice
	// that (k8s.io/client-go, tools/cache, Reflector): of a process that has failed at nothing yet, three come within 11.2 s.
	retrying = 20 * time.Second
	// leaving is how soon a node is in no list after SIGTERM, and lost how soon after it has died.
	leaving, lost = 5 * time.Second, 60 * time.Second
)

var _ = Describe("an API server", Label("cluster"), func() {
	It("C14 I17 that goes away is asked for ever more rarely, by no two nodes in step", func() {
		r := newRig()
		r.restartAll()
		began := time.Now()
		r.killServer()
		time.Sleep(retrying)
		r.retriesAreJittered(began)
		r.startServer()
		r.follows(r.port)
	})

	It("C14 C15 I17 that nobody reaches, and then is not there at all, changes nothing, nor does its return", func() {
		r := newRig()
		r.restartAll()
		// By slices of the spec's own: Kubernetes calls the pods of lost nodes not ready, and means it.
		r.runPods("web", "node-a", "node-b")
		r.sliceOfPods("web", "node-a", "node-b")
		r.serve(service("web", r.port))
		r.reached(r.port)
		maps, before := r.dump(), len(r.statusWrites())

		cut := time.Now()
		for i, node := range r.Nodes() {
			DeferCleanup(proxies[i].Mend)
			Expect(proxies[i].Cut()).To(Succeed())
			r.Control.StopBeats(node.Name)
		}
		for _, node := range everyNode {
			r.eventually(r.nodeLost(node))
		}
		Expect(r.statusWrites()[before:]).To(BeEmpty(), "all nodes are lost, and nobody is withdrawn")
		Expect(r.unchanged(maps)(r.ctx)).To(Succeed())

		// From here on it is the API server that is away.
		r.killServer()
		for _, proxy := range proxies {
			Expect(proxy.Mend()).To(Succeed())
		}
		r.always(max(leaseTime+5*time.Second-time.Since(cut), 15*time.Second), func(ctx context.Context) error {
			for _, addr := range r.addrs(everyNode...) {
				if err := r.exchange(ctx, addr, r.port); err != nil {
					return fmt.Errorf("%s: %w", addr, err)
				}
			}
			return r.unchanged(maps)(ctx)
		})

		r.startServer()
		for _, node := range everyNode {
			r.eventually(func(ctx context.Context) error { return r.Control.ResumeBeats(ctx, node) })
		}
		r.always(leaseTime, func(ctx context.Context) error {
			if writes := r.statusWrites()[before:]; len(writes) > 0 {
				return fmt.Errorf("written: %v", writes)
			}
			return errors.Join(r.listsNow("web", r.addrs(everyNode...)...)(ctx), r.unchanged(maps)(ctx))
		})
		r.follows(r.port + 1)
	})

	It("that answers 410, 500 and 429, or late, is met with patience, and its word is taken when it comes", func() {
		r := newRig()
		r.restartAll()
		r.put(slice("web-1", "web", endpoint("10.42.1.50")))
		r.serve(service("web", r.port))
		r.sends4(r.port, "10.42.1.50")
		maps, before := r.dump(), len(r.statusWrites())
		for name, says := range map[string]*apierrors.StatusError{
			"410": apierrors.NewResourceExpired("too old"),
			"500": apierrors.NewInternalError(errors.New("disk full")),
			"429": apierrors.NewTooManyRequests("later", 1),
		} {
			By(name)
			var faults []*faultproxy.Fault
			for _, proxy := range proxies {
				for _, resource := range []string{"services", "endpointslices", "nodes", "leases"} {
					of := faultproxy.Match{Verb: "watch", Resource: resource}
					faults = append(faults, proxy.Answer(of, 1, says), proxy.Answer(faultproxy.Match{Verb: "list", Resource: resource}, 1, says))
					proxy.Break(of)
				}
			}
			for _, fault := range faults[:8] {
				DeferCleanup(fault.Lift)
			}
			Eventually(func() int { return faults[0].Met() + faults[2].Met() + faults[4].Met() }, limit).Should(BeNumerically(">=", 3))
			Expect(r.unchanged(maps)(r.ctx)).To(Succeed())
			for _, fault := range faults {
				fault.Lift()
			}
		}
		By("late")
		for _, proxy := range proxies {
			DeferCleanup(proxy.Delay(faultproxy.Match{Verb: "watch", Resource: "endpointslices"}, time.Second).Lift)
		}
		r.put(slice("web-1", "web", endpoint("10.42.2.50")))
		r.sends4(r.port, "10.42.2.50")
		Expect(r.statusWrites()[before:]).To(BeEmpty())
		r.lists("web", r.addrs(everyNode...)...)
	})
})

var _ = Describe("controllers", Label("cluster"), func() {
	It("C1 C8 C30 I1 I16 write nothing before all lists are there; what changed while there were none is then made up for", func() {
		r := newRig()
		port := func(i int32) int32 { return r.port + i }
		for i, name := range []string{"live", "deleted", "turned"} {
			r.put(slice(name+"-1", name, endpoint("10.42.1.50")))
			r.older(r.serve(service(name, port(int32(i)))))
			r.sends4(port(int32(i)), "10.42.1.50")
		}
		loser := r.create(service("loser", port(0)))
		r.told("loser", "PortConflict", "live")
		foreign := service("foreign", port(3))
		foreign.Spec.LoadBalancerClass = new("example.com/other")
		r.create(foreign)
		r.setStatus("foreign", corev1.LoadBalancerIngress{IP: r.addrs("node-a")[0].String()})
		version := r.version("foreign")
		live := r.generations(port(0))

		for _, node := range r.Nodes() {
			Expect(node.Controller.Kill9()).To(Succeed())
		}
		all := func() []kube.Write { return r.written(func(kube.Write) bool { return true }) }
		ours := func() []kube.Write { return r.statusWrites("live", "deleted", "turned", "foreign", "loser") }
		before, statuses := len(all()), len(ours())
		r.remove("deleted")
		r.setType("turned", corev1.ServiceTypeClusterIP)
		lift := holdAll(faultproxy.Match{Resource: "endpointslices"}) // a list is asked for as a watch of today
		for _, node := range r.Nodes() {
			Expect(node.Controller.Start()).To(Succeed())
		}
		for _, node := range r.Nodes() {
			r.eventually(func(ctx context.Context) error { // a process that was killed has left its file
				if node.Controller.Ready(ctx) == nil {
					return fmt.Errorf("%s says it is ready", node.Name)
				}
				return nil
			})
		}
		maps := r.dump()
		r.always(10*time.Second, func(ctx context.Context) error {
			for _, node := range r.Nodes() {
				if node.Controller.Ready(ctx) == nil {
					return fmt.Errorf("%s says it is ready", node.Name)
				}
			}
			return r.unchanged(maps)(ctx)
		})
		Expect(all()[before:]).To(BeEmpty(), "no write of any kind")
		lift()
		for _, node := range r.Nodes() {
			r.eventually(node.Controller.AwaitReady)
		}
		r.gone("TCP", port(1))
		r.gone("TCP", port(2))
		r.gone("TCP", port(3))
		r.lists("turned")
		r.sends4(port(0), "10.42.1.50")
		Expect(r.generations(port(0))).To(Equal(live), "the front that was right is not written again")
		r.follows(port(4))
		Expect(ours()).To(HaveLen(statuses), "no status of before is written")
		Expect(r.version("foreign")).To(Equal(version))
		r.lists("loser")
		r.remove("live")
		r.lists(loser.Name, r.addrs(everyNode...)...)
	})

	It("I18 that die are in no list within a minute, that end within five seconds, and that restart never leave", func() {
		r := newRig()
		var names []string
		for i := range 10 {
			names = append(names, fmt.Sprintf("web-%d", i))
			r.create(service(names[i], r.port+int32(i)))
		}
		all := func(want ...netip.Addr) func(context.Context) error {
			return func(ctx context.Context) error {
				for _, name := range names {
					if err := r.listsNow(name, want...)(ctx); err != nil {
						return err
					}
				}
				return nil
			}
		}
		r.eventually(all(r.addrs(everyNode...)...))
		victim := slices.IndexFunc(everyNode, func(node string) bool { return node != r.publisher() })
		controller := r.Node(everyNode[victim]).Controller
		others := r.addrs(slices.Delete(slices.Clone(everyNode), victim, victim+1)...)
		back := append(slices.Clone(others), r.addrs(everyNode[victim])...)

		before := len(r.statusWrites())
		Expect(controller.Terminate()).To(Succeed())
		Expect(controller.Start()).To(Succeed())
		r.eventually(controller.AwaitReady)
		r.quiet(leaving+time.Second, func() []kube.Write { return r.statusWrites()[before:] })
		Expect(r.statusWrites()[before:]).To(BeEmpty(), "a restart")

		died := time.Now()
		Expect(controller.Kill9()).To(Succeed())
		r.within(lost, all(others...))
		AddReportEntry("in no list after a kill", time.Since(died).String())
		Expect(len(r.statusWrites())-before).To(BeNumerically("<=", 12), "1.2 patches a Service")
		Expect(controller.Start()).To(Succeed())
		r.eventually(all(back...))

		before = len(r.statusWrites())
		ended := time.Now()
		Expect(controller.Terminate()).To(Succeed())
		r.eventually(all(others...))
		writes := r.statusWrites()[before:]
		Expect(len(writes)).To(BeNumerically("<=", 12))
		AddReportEntry("in no list after SIGTERM", writes[len(writes)-1].At.Sub(ended).String())
		Expect(writes[len(writes)-1].At).To(BeTemporally("<", ended.Add(leaving)))
		Expect(controller.Start()).To(Succeed())
		r.eventually(all(back...))
	})
})

// follows expects that a new Service is served and published: all controllers are well.
func (r *rig) follows(port int32) {
	GinkgoHelper()
	name := fmt.Sprintf("new-%d", port)
	r.put(slice(name+"-1", name, endpoint("10.42.1.50")))
	r.serve(service(name, port))
	r.sends4(port, "10.42.1.50")
}

// nodeLost fails unless the node lifecycle controller knows nothing of a node.
func (r *rig) nodeLost(name string) func(context.Context) error {
	return func(ctx context.Context) error {
		node, err := r.Control.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionUnknown {
				return nil
			}
		}
		return fmt.Errorf("node %s: %v", name, node.Status.Conditions)
	}
}

// restartAll has every controller be one that has failed at nothing yet: for two minutes, what a process was refused makes it wait for
// longer before it asks again, a minute at last.
func (r *rig) restartAll() {
	GinkgoHelper()
	for _, node := range r.Nodes() {
		Expect(node.Controller.Kill9()).To(Succeed())
		Expect(node.Controller.Start()).To(Succeed())
	}
	for _, node := range r.Nodes() {
		r.eventually(node.Controller.AwaitReady)
	}
}

// killServer kills the API server, which is there again when the spec has ended, however it ends.
func (r *rig) killServer() {
	GinkgoHelper()
	DeferCleanup(func() {
		if !r.Control.APIServer.Running() {
			r.startServer()
		}
	})
	Expect(r.Control.APIServer.Kill9()).To(Succeed())
}

func (r *rig) startServer() {
	GinkgoHelper()
	Expect(r.Control.APIServer.Start()).To(Succeed())
	r.eventually(func(ctx context.Context) error {
		_, err := r.services().List(ctx, metav1.ListOptions{})
		return err
	})
}

// retriesAreJittered expects of what was asked for since then that it was asked for again, but not in haste, and that no two
// nodes keep step.
func (r *rig) retriesAreJittered(began time.Time) {
	GinkgoHelper()
	elapsed := time.Since(began)
	steps := map[string]string{}
	for i, proxy := range proxies {
		for _, resource := range []string{"services", "endpointslices", "nodes"} {
			var pauses []string
			asked := slices.DeleteFunc(proxy.Requests(faultproxy.Match{Resource: resource}), func(q faultproxy.Request) bool { return q.At.Before(began) })
			for j := 1; j < len(asked); j++ {
				pauses = append(pauses, asked[j].At.Sub(asked[j-1].At).Round(time.Millisecond).String())
			}
			AddReportEntry(everyNode[i]+" "+resource, strings.Join(pauses, " "))
			Expect(len(asked)).To(And(BeNumerically(">=", 3), BeNumerically("<=", int(elapsed/time.Second))), "%s: %s in %v", everyNode[i], resource, elapsed)
			key := resource + ": " + strings.Join(pauses, " ")
			Expect(steps).NotTo(HaveKey(key), "%s and %s keep step", everyNode[i], steps[key])
			steps[key] = everyNode[i]
		}
	}
}

// publisher is the node that is elected.
func (r *rig) publisher() string {
	GinkgoHelper()
	lease, err := r.Control.Client.CoordinationV1().Leases(watch.Namespace).Get(r.ctx, publish.ElectionLease, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	node, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
	return node
}

// generations are a port's fronts on all nodes, with what changes at every write.
func (r *rig) generations(port int32) map[string][2]int {
	GinkgoHelper()
	generations := map[string][2]int{}
	Expect(r.everyFront(port, func(_ netip.Addr, f front) error {
		generations[f.Front] = [2]int{f.ID, f.Generation}
		return nil
	})(r.ctx)).To(Succeed())
	return generations
}

// explain is what `beep explain` answers about a Service of the spec.
func (r *rig) explain(node, service string) string {
	GinkgoHelper()
	answer, err := r.Node(node).Controller.Explain(r.ctx, r.namespace+"/"+service)
	Expect(err).NotTo(HaveOccurred())
	return fmt.Sprintf("%+v", *answer.Service)
}
