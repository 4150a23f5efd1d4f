// SPDX-License-Identifier: Apache-2.0

package vmcluster_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// installs is what a new user does. Then there are a server on each node and a Service.
func (r *rig) installs(ctx context.Context) {
	GinkgoHelper()
	r.kubectl(ctx, "apply", "-f", "rigs/vm-cluster/testdata/web.yaml")
	r.follow(ctx, "install")
	r.kubectl(ctx, "rollout", "status", "deployment", "web", "--timeout="+limit.String())
	Expect(r.follow(ctx, "the-first-service")).To(ContainSubstring(`"Server":"web-`))
	// What the commands make has one family.
	r.kubectl(ctx, "patch", "service", "web", "--type=merge", "-p", `{"spec":{"ipFamilyPolicy":"RequireDualStack"}}`)
}

// tools are what an operator looks at.
func (r *rig) tools(ctx context.Context) {
	GinkgoHelper()
	said := r.follow(ctx, "looking-at-it")
	for _, addr := range r.Node("node-a").Addrs {
		Expect(said).To(ContainSubstring(addr.String()))
	}
	for _, node := range r.Nodes() {
		Expect(r.beep(ctx, node.Name, "status")).To(ContainSubstring("eth0"))
		fronts := r.beep(ctx, node.Name, "fronts")
		for _, addr := range node.Addrs {
			Expect(fronts).To(ContainSubstring(addr.String()))
		}
		GinkgoWriter.Println(r.beep(ctx, node.Name, "drops"))
	}
	Expect(r.kubectl(ctx, "-n", namespace, "logs", "daemonset/beep", "-c", "controller")).NotTo(BeEmpty())
}

// The bounds of resident memory (issue 5), in KiB.
const (
	datapathLimit   = 25 << 10
	controllerLimit = 45 << 10
)

// memory reads what the kernel of each node says of both processes, with one Service and nobody who asks it.
func (r *rig) memory(ctx context.Context) {
	GinkgoHelper()
	for _, node := range r.Nodes() {
		for name, most := range map[string]int{"beep": datapathLimit, "beep-controller": controllerLimit} {
			out := r.on(ctx, node.Name, "awk '/^VmRSS/ { print $2 }' /proc/$(pgrep -x "+name+")/status")
			resident, err := strconv.Atoi(out)
			Expect(err).NotTo(HaveOccurred())
			figure("%s: %s has %.1f MiB resident, of at most %d", node.Name, name, float64(resident)/1024, most>>10)
			Expect(resident).To(BeNumerically("<=", most), "%s on %s", name, node.Name)
		}
	}
}

// uninstall removes beep and looks for what it might have left.
func (r *rig) uninstall(ctx context.Context) {
	GinkgoHelper()
	r.follow(ctx, "removal")
	for _, node := range r.Nodes() {
		for what, command := range map[string]string{
			"pins":      "ls -A /sys/fs/bpf",
			"links":     "ip -d link show eth0; tc filter show dev eth0 ingress; tc filter show dev eth0 egress",
			"processes": "pgrep -a beep || true",
			"settings":  "ls /etc/sysctl.d; ls -A /run/beep 2>/dev/null || true",
		} {
			Expect(r.on(ctx, node.Name, command)).NotTo(ContainSubstring("beep"), "%s on %s", what, node.Name)
		}
	}
	await(ctx, "the namespaces are gone", func(ctx context.Context) error {
		spaces, err := r.Control.Client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, space := range spaces.Items {
			if strings.HasPrefix(space.Name, "beep") {
				return fmt.Errorf("namespace %s is still there", space.Name)
			}
		}
		return nil
	})
	service, err := r.Control.Client.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, "web", metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	Expect(service.Status.LoadBalancer.Ingress).To(BeEmpty())
	for _, front := range r.Fronts(80, families...) {
		_, err := r.ask(ctx, front)
		Expect(err).To(HaveOccurred(), "%s is still served", front)
	}
}
