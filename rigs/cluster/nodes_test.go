// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/beep-lb/beep/src/publish"
	"github.com/beep-lb/beep/src/watch"
)

const (
	// excludedWithin, lostWithin and leftWithin are the product's own bounds: a label's effect, a silent loss, SIGTERM.
	excludedWithin = 30 * time.Second
	lostWithin     = 60 * time.Second
	leftWithin     = 5 * time.Second
	// busy is what a loaded machine may add to them.
	busy = 10 * time.Second
)

// patchNode changes a Node.
func (r *rig) patchNode(ctx context.Context, node, patch string) {
	GinkgoHelper()
	_, err := r.Control.Client.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// elected waits for a publisher and returns its node, and the others.
func (r *rig) elected() (publisher string, others []string) {
	GinkgoHelper()
	r.eventually(func(ctx context.Context) error {
		lease, err := r.Control.Client.CoordinationV1().Leases(watch.Namespace).Get(ctx, publish.ElectionLease, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
			return fmt.Errorf("nobody is elected: %+v", lease.Spec)
		}
		publisher, _, _ = strings.Cut(*lease.Spec.HolderIdentity, "_")
		return nil
	})
	return publisher, without(publisher)
}

// without are all nodes but one.
func without(node string) []string {
	return slices.DeleteFunc(slices.Clone(everyNode), func(other string) bool { return other == node })
}

// timed waits until these nodes are listed, as long as the product's bound and a busy machine allow.
func (r *rig) timed(within time.Duration, nodes ...string) {
	GinkgoHelper()
	start := time.Now()
	Eventually(func() error { return r.listed(r.ctx, nodes...) }).WithTimeout(within + busy).WithPolling(20 * time.Millisecond).Should(Succeed())
	AddReportEntry("time", fmt.Sprintf("after %v the Service lists %v alone", time.Since(start).Round(10*time.Millisecond), nodes))
}

var _ = Describe("a node", Label("cluster"), func() {
	DescribeTable("leaves the lists, and not its connections or its pods, when it is", func(set, unset string) {
		r := newRig()
		r.run(everyNode...)
		r.serve(r.allKinds(r.service()), everyNode...)
		held := r.hold(r.fronts(r.port+streamPort, "node-c")[0])
		r.moves(held)
		DeferCleanup(func(ctx context.Context) { r.patchNode(ctx, "node-c", unset) })
		r.patchNode(r.ctx, "node-c", set)
		r.timed(excludedWithin, "node-a", "node-b")
		r.moves(held)
		r.allAnswer(r.fronts(r.port, everyNode...)...)
		r.patchNode(r.ctx, "node-c", unset)
		r.lists(everyNode...)
		r.moves(held)
	},
		Entry("excluded by a label", `{"metadata":{"labels":{"node.kubernetes.io/exclude-from-external-load-balancers":""}}}`,
			`{"metadata":{"labels":{"node.kubernetes.io/exclude-from-external-load-balancers":null}}}`),
		Entry("tainted by an autoscaler that is about to delete it",
			`{"spec":{"taints":[{"key":"ToBeDeletedByClusterAutoscaler","value":"1","effect":"NoSchedule"}]}}`, `{"spec":{"taints":null}}`),
	)

	It("stays listed when it is cordoned, and when its label says that it is not excluded", func() {
		r := newRig()
		r.run("node-a")
		r.serve(r.service(), everyNode...)
		writes := len(r.statusWrites())
		const unset = `{"spec":{"unschedulable":null},"metadata":{"labels":{"node.kubernetes.io/exclude-from-external-load-balancers":null}}}`
		DeferCleanup(func(ctx context.Context) { r.patchNode(ctx, "node-b", unset) })
		r.patchNode(r.ctx, "node-b", `{"spec":{"unschedulable":true},"metadata":{"labels":{"node.kubernetes.io/exclude-from-external-load-balancers":"false"}}}`)
		// What comes later is seen later: when it has left, all before it was judged.
		r.patchNode(r.ctx, "node-c", `{"metadata":{"labels":{"node.kubernetes.io/exclude-from-external-load-balancers":""}}}`)
		r.lists("node-a", "node-b")
		r.patchNode(r.ctx, "node-c", `{"metadata":{"labels":{"node.kubernetes.io/exclude-from-external-load-balancers":null}}}`)
		r.lists(everyNode...)
		Expect(r.statusWrites()).To(HaveLen(writes + 2))
	})

	It("leaves the lists within a minute when its machine is lost, be it the publisher's; and comes back", func() {
		r := newRig()
		lost, others := r.elected()
		r.run(others...)
		r.serve(r.service(), everyNode...)
		writes := len(r.statusWrites())
		rest := r.fronts(r.port, others...)
		r.reached(rest...)
		load := r.begin(50, func() []netip.AddrPort { return rest })
		DeferCleanup(func(ctx context.Context) {
			if !r.Node(lost).Datapath.Running() {
				Expect(r.Node(lost).PowerOn(ctx)).To(Succeed())
			}
		})
		Expect(r.Node(lost).PowerOff()).To(Succeed())
		r.timed(lostWithin, others...)
		load.lossless()
		Expect(r.statusWrites()).To(HaveLen(writes+1), "one write for the loss")
		Expect(r.Node(lost).PowerOn(r.ctx)).To(Succeed())
		r.lists(everyNode...)
		r.allAnswer(r.fronts(r.port, everyNode...)...)
	})

	DescribeTable("leaves the lists within five seconds of SIGTERM", func(who func(publisher string, others []string) string) {
		r := newRig()
		r.run(everyNode...)
		r.serve(r.service(), everyNode...)
		left := who(r.elected())
		others := without(left)
		all := r.fronts(r.port, everyNode...)
		r.reached(all...)
		writes := len(r.statusWrites())
		load := r.begin(50, func() []netip.AddrPort { return all })
		controller := r.Node(left).Controller
		DeferCleanup(func() {
			if !controller.Running() {
				Expect(controller.Start()).To(Succeed())
			}
		})
		Expect(controller.Terminate()).To(Succeed())
		Expect(controller.Wait()).To(Succeed())
		r.timed(leftWithin, others...)
		Expect(controller.Start()).To(Succeed())
		r.lists(everyNode...)
		Expect(r.statusWrites()).To(HaveLen(writes+2), "one for the departure, one for the return")
		load.lossless()
	},
		Entry("the publisher", func(publisher string, _ []string) string { return publisher }),
		Entry("another one", func(_ string, others []string) string { return others[0] }),
	)
})
