// SPDX-License-Identifier: Apache-2.0

package vmcluster_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podEnds deletes one pod in order and another at once.
func (r *rig) podEnds(ctx context.Context) {
	GinkgoHelper()
	before, err := r.webPods(ctx)
	Expect(err).NotTo(HaveOccurred())

	By("in order: it serves on until everybody has heard")
	clients := r.storm(ctx, false)
	r.kubectl(ctx, "delete", "pod", before["node-b"])
	r.replaced(ctx, "node-b", before["node-b"])
	clients.moves(ctx)
	clients.end("a pod was deleted")

	By("at once")
	r.on(ctx, "node-a", "pkill -KILL -x web")
	r.kubectl(ctx, "delete", "pod", before["node-a"], "--grace-period=0", "--force")
	r.replaced(ctx, "node-a", before["node-a"])
	r.served(ctx)
}

// replaced waits until a node has another ready pod of the Service than that one.
func (r *rig) replaced(ctx context.Context, node, pod string) {
	GinkgoHelper()
	await(ctx, "another pod on "+node, func(ctx context.Context) error {
		now, err := r.webPods(ctx)
		if err == nil && now[node] == pod {
			err = fmt.Errorf("%s still has %s", node, pod)
		}
		return err
	})
}

// reboot reboots a node in order, as for a new kernel.
func (r *rig) reboot(ctx context.Context) {
	GinkgoHelper()
	node := r.Node("node-b")
	begun := time.Now()
	Expect(node.Reboot(ctx)).To(Succeed())
	Expect(r.AwaitReady(ctx, node)).To(Succeed())
	figure("%s was rebooted and is ready after %v", node.Name, time.Since(begun).Round(time.Second))
	r.kubectl(ctx, "-n", namespace, "rollout", "status", "daemonset", "beep", "--timeout="+limit.String())
	r.published(ctx, "node-a", "node-b")
	r.served(ctx)
	figure("and serves after %v", time.Since(begun).Round(time.Second))
	// What strict filtering would break is loose from the boot on, before any pod runs.
	Expect(r.on(ctx, node.Name, "cat /etc/sysctl.d/60-beep.conf")).To(ContainSubstring("eth0"))
	Expect(r.on(ctx, node.Name, "cat /proc/sys/net/ipv4/conf/eth0/rp_filter")).To(Equal("2"))
}

// mistakes are what a new user gets wrong, and where they find it.
func (r *rig) mistakes(ctx context.Context) {
	GinkgoHelper()
	explain := func(what string) string {
		return r.kubectl(ctx, "-n", namespace, "exec", "daemonset/beep", "-c", "controller", "--", "/beep", "explain", what)
	}
	By("a label excludes a node")
	const label = "node.kubernetes.io/exclude-from-external-load-balancers"
	r.kubectl(ctx, "label", "node", "node-b", label+"=")
	r.published(ctx, "node-a")
	Expect(explain("node-b")).To(ContainSubstring(label))
	r.kubectl(ctx, "label", "node", "node-b", label+"-")
	r.published(ctx, "node-a", "node-b")

	By("a port is another Service's")
	r.kubectl(ctx, "expose", "deployment", "web", "--name=second", "--type=LoadBalancer", "--port=80", "--target-port=8080")
	await(ctx, "the explanation", func(ctx context.Context) error {
		if out := explain("default/second"); !strings.Contains(out, "default/web") {
			return fmt.Errorf("explain default/second: %s", out)
		}
		return nil
	})
	await(ctx, "the Event", func(ctx context.Context) error {
		events, err := r.Control.Client.CoreV1().Events(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=second,reason=PortConflict"})
		if err == nil && len(events.Items) == 0 {
			err = fmt.Errorf("no Event PortConflict of the Service second")
		}
		return err
	})
	r.kubectl(ctx, "delete", "service", "second")

	By("a pod that does not exist is drops that are counted")
	r.kubectl(ctx, "scale", "deployment", "web", "--replicas=0")
	await(ctx, "the drops", func(ctx context.Context) error {
		once, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		_, _ = r.ask(once, r.Fronts(80, families[0])[0])
		if out := r.beep(ctx, "node-a", "drops"); !strings.Contains(out, "no-endpoint") {
			return fmt.Errorf("drops: %s", out)
		}
		return nil
	})
	r.kubectl(ctx, "scale", "deployment", "web", "--replicas=2")
	r.served(ctx)
}
