// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/src/publish"
	"github.com/beep-lb/beep/src/watch"
)

// quiet is how long nothing must be written: longer than it takes to believe that a node left, or to renew every Lease.
const quiet = 12 * time.Second

// maps are the rows of a node's maps that a controller writes, as beep prints them.
func (r *rig) maps(node string) (string, error) {
	fronts, err := r.Node(node).Datapath.Tool("fronts")
	if err != nil {
		return "", err
	}
	nodes, err := r.Node(node).Datapath.Tool("nodes")
	return fronts + nodes, err
}

// frontRows are the rows of `beep fronts` below its headline.
func (r *rig) frontRows(node string) ([]string, error) {
	out, err := r.Node(node).Datapath.Tool("fronts")
	if err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimSpace(out), "\n")[1:], nil
}

// calm waits until earlier specs' Services have left the maps, so that only this spec's changes are seen.
func (r *rig) calm() {
	GinkgoHelper()
	r.eventually(func(ctx context.Context) error {
		all, err := r.Control.Client.CoreV1().Services("").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, service := range all.Items {
			if strings.HasPrefix(service.Namespace, "spec-") && service.Namespace != r.namespace {
				return fmt.Errorf("service %s/%s is there still", service.Namespace, service.Name)
			}
		}
		return nil
	})
}

// restart ends a controller by SIGTERM and starts it, and returns how long its Lease was given up at most.
func (r *rig) restart(node string) time.Duration {
	GinkgoHelper()
	controller := r.Node(node).Controller
	began := time.Now()
	Expect(controller.Terminate()).To(Succeed())
	Expect(controller.Start()).To(Succeed())
	r.eventually(func(ctx context.Context) error {
		lease, err := r.Control.Client.CoordinationV1().Leases(watch.Namespace).Get(ctx, node, metav1.GetOptions{})
		if err == nil && lease.Annotations[leftAnnotation] != "" {
			err = fmt.Errorf("the Lease of %s is given up", node)
		}
		return err
	})
	took := time.Since(began)
	Expect(controller.AwaitReady(r.ctx)).To(Succeed())
	return took
}

// leftAnnotation is how a Lease says that it was given up.
const leftAnnotation = "beep-lb/left"

var _ = Describe("a controller", Label("cluster"), func() {
	It("that restarts, or is killed and starts, changes nothing on the wire and writes nothing; nor does one that idles", func() {
		r := newRig()
		r.calm()
		r.run(everyNode...)
		r.serve(r.allKinds(r.service()), everyNode...)
		all := r.fronts(r.port, everyNode...)
		r.allAnswer(all...)
		holds := []*scene.Held{r.hold(r.fronts(r.port+streamPort, "node-a")[0]), r.hold(r.fronts(r.port+streamPort, "node-b")[1])}
		load := r.begin(50, func() []netip.AddrPort { return all })
		before := map[string]string{}
		for _, node := range everyNode {
			r.eventually(func(context.Context) (err error) { before[node], err = r.maps(node); return err })
		}
		writes := len(r.writes())
		By("killed")
		killed := r.Node("node-a").Controller
		Expect(killed.Kill9()).To(Succeed())
		Expect(killed.Start()).To(Succeed())
		Expect(killed.AwaitReady(r.ctx)).To(Succeed())
		for _, node := range everyNode {
			By("restarted on " + node)
			// Who is away for longer than that leaves the list, and rightly: then it was no quick restart, but a busy machine.
			for tries := 1; ; tries++ {
				if took := r.restart(node); took < leftWithin-time.Second {
					break
				}
				Expect(tries).To(BeNumerically("<", 5), "no restart within %v", leftWithin)
				r.lists(everyNode...)
				writes = len(r.writes())
			}
		}
		Consistently(func() []string {
			var texts []string
			for _, write := range r.writes()[writes:] {
				texts = append(texts, write.String())
			}
			return texts
		}).WithTimeout(quiet).WithPolling(time.Second).Should(BeEmpty())
		for _, held := range holds {
			r.moves(held)
		}
		load.lossless()
		for _, node := range everyNode {
			Expect(r.maps(node)).To(Equal(before[node]), node)
		}
	})
})

var _ = Describe("the deletion of everything", Label("cluster"), func() {
	It("leaves the maps, the statuses and the Leases empty", func() {
		r := newRig()
		r.calm()
		r.deploy(2)
		r.serve(r.allKinds(r.service()), everyNode...)
		r.allAnswer(r.fronts(r.port, everyNode...)...)
		held := r.hold(r.fronts(r.port+streamPort, "node-a")[0])
		r.moves(held)

		By("a Service that is none any more: its list")
		Expect(r.Control.Client.AppsV1().Deployments(r.namespace).Delete(r.ctx, app, metav1.DeleteOptions{})).To(Succeed())
		Expect(r.services().Delete(r.ctx, app, metav1.DeleteOptions{})).To(Succeed())
		for _, node := range everyNode {
			r.eventually(func(context.Context) error {
				rows, err := r.frontRows(node)
				if err == nil && len(rows) > 0 {
					err = fmt.Errorf("%s has fronts:\n%s", node, strings.Join(rows, "\n"))
				}
				return err
			})
		}
		By("the flows of pods that are gone")
		for _, node := range everyNode {
			r.eventually(func(context.Context) error {
				out, err := r.Node(node).Datapath.Tool("flows")
				if flows := strings.Split(strings.TrimSpace(out), "\n")[1:]; err == nil && len(flows) > 0 {
					err = fmt.Errorf("%s has flows:\n%s", node, strings.Join(flows, "\n"))
				}
				return err
			})
		}

		By("the controllers: their Leases")
		for _, node := range everyNode {
			controller := r.Node(node).Controller
			DeferCleanup(func() {
				Expect(controller.Start()).To(Succeed())
				ctx, cancel := context.WithTimeout(context.Background(), limit)
				defer cancel()
				Expect(controller.AwaitReady(ctx)).To(Succeed())
			})
			Expect(controller.Terminate()).To(Succeed())
			Expect(controller.Wait()).To(Succeed())
		}
		leases, err := r.Control.Client.CoordinationV1().Leases(watch.Namespace).List(r.ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		for _, node := range everyNode {
			i := slices.IndexFunc(leases.Items, func(l coordinationv1.Lease) bool { return l.Name == node })
			Expect(i).To(BeNumerically(">=", 0), node)
			Expect(leases.Items[i].Annotations).To(HaveKeyWithValue(leftAnnotation, "true"), node)
		}
		i := slices.IndexFunc(leases.Items, func(l coordinationv1.Lease) bool { return l.Name == publish.ElectionLease })
		Expect(i).To(BeNumerically(">=", 0), "nobody ever was elected")
		Expect(leases.Items[i].Spec.HolderIdentity).To(HaveValue(BeEmpty()), "the election is given up")
		for _, write := range r.writes() {
			Expect(write.Code).NotTo(Equal(http.StatusForbidden), "a right was missing: %s", write)
		}
	})
})
