// SPDX-License-Identifier: Apache-2.0

package clusterfaults_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/beep-lb/beep/harness/artifacts"
	"github.com/beep-lb/beep/harness/cluster"
	"github.com/beep-lb/beep/harness/kube"
	"github.com/beep-lb/beep/harness/topo"
)

// crowd is thirty nodes, each with a datapath and a controller of its own.
func crowd() topo.Plan {
	plan := topo.OneLAN(30, topo.Options{})
	plan.Pods = nil
	for i := range plan.Hosts {
		if plan.Hosts[i].Role == topo.Node {
			plan.Hosts[i].Name = fmt.Sprintf("node-%02d", i) // there are not so many letters
		}
	}
	kube.RoutePods(&plan)
	return plan
}

var _ = Describe("thirty controllers", Label("cluster"), func() {
	It("C32 I6 that start at once list themselves in a Service, once each, and leave what others had listed", func() {
		c := cluster.Start(GinkgoT(), cluster.Options{Plan: crowd(), Control: kube.Options{Audit: true}, Idle: true,
			Datapath: []string{"--flow-table-max-entries=1024"}})
		ctx, cancel := context.WithTimeout(context.Background(), specLimit)
		DeferCleanup(cancel)
		r := &rig{Cluster: c, ctx: ctx, namespace: "spec", port: 80}
		r.makeNamespace()
		artifacts.New(GinkgoT(), c.Topology)
		r.create(service("web", r.port))
		foreign := []corev1.LoadBalancerIngress{{Hostname: "elsewhere.example"}, {IP: "203.0.113.9", IPMode: new(corev1.LoadBalancerIPModeProxy)}}
		r.setStatus("web", foreign...)
		var group errgroup.Group
		var want []netip.Addr
		for _, node := range c.Nodes() {
			group.Go(node.Controller.Start)
			want = append(want, c.Addrs(node.Name)...)
		}
		Expect(group.Wait()).To(Succeed())
		slices.SortFunc(want, netip.Addr.Compare)
		r.eventually(func(ctx context.Context) error {
			got, err := c.Published(ctx, r.namespace, "web")
			if err != nil {
				return err
			}
			got = slices.DeleteFunc(got, func(addr netip.Addr) bool { return addr.String() == foreign[1].IP })
			slices.SortFunc(got, netip.Addr.Compare)
			if !slices.Equal(got, want) {
				return fmt.Errorf("lists %d addresses, want %d: %v", len(got), len(want), got)
			}
			return nil
		})
		list, err := r.listed(ctx, "web")
		Expect(err).NotTo(HaveOccurred())
		Expect(list[:2]).To(Equal(foreign), "they keep their places and all that they say")
		for _, node := range c.Nodes() {
			r.eventually(node.Controller.AwaitReady)
		}
		r.quiet(still, func() []kube.Write { return r.statusWrites() })
		AddReportEntry("writes of the status", fmt.Sprint(len(r.statusWrites())))
		Expect(len(r.statusWrites())).To(BeNumerically("<=", 4), "thirty nodes that come one by one are written together")
	})
})
