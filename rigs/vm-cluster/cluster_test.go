// SPDX-License-Identifier: Apache-2.0

package vmcluster_test

import (
	"context"
	"os"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/kube"
	"github.com/beep-lb/beep/harness/vm/node"
)

// The specs are one story, of one cluster, in the order of an operator's day. Those that are labelled short are a story, too.
var _ = Describe("Two machines", Label("vm"), Ordered, func() {
	var r *rig
	BeforeAll(func() { r = newRig() })
	BeforeEach(func() { r.collect() })
	short := Label("short")
	// With flannel are run the short form and what another network of the pods might spoil.
	network := Label("network")

	It("are given beep by the commands of deploy/README.md", short, func() {
		r.installs(inTime())
	})
	It("serve a Service from outside: each leads to the pods of both, which see the client's address", short, func() {
		r.published(inTime(), "node-a", "node-b")
		r.served(inTime())
	})
	if cni() == node.Flannel {
		It("have pods that flannel leads to each other, and masquerades on their way out", network, func() {
			r.flannel(inTime())
		})
	}
	It("show what they do by beep's own tools, inside the containers", func() {
		r.tools(inTime())
	})
	It("hold both processes within their bounds of memory", func() {
		r.memory(inTime())
	})
	It("carry a MiB each way in full segments, through the tunnel, too", network, func() {
		r.carries(inTime())
	})
	It("lose no request when a pod ends in order, and go on when one is killed", network, func() {
		r.podEnds(inTime())
	})
	It("have NetworkPolicies enforced by the client's own address, behind the tunnel, too", network, func() {
		r.policy(inTime())
	})
	It("tell a stranger what is wrong", func() {
		r.mistakes(inTime())
	})
	It("are upgraded to another build under load, and back: no request fails, no connection is cut", func() {
		r.upgrade(inTime())
	})
	It("are given other options under load, and larger maps: no request fails, no connection is cut", func() {
		r.options(inTime())
	})
	It("come back from a reboot, and serve again", func() {
		r.reboot(inTime())
	})
	It("serve the same beside a kube-proxy that writes iptables", func() {
		ctx := inTime()
		for _, machine := range r.Nodes() {
			Expect(machine.SetProxyMode(ctx, kube.IPTables)).To(Succeed())
		}
		r.published(ctx, "node-a", "node-b")
		r.served(ctx)
	})
	It("serve the same with a client certificate instead of a token", func() {
		r.clientCertificate(inTime())
	})
	It("are rid of beep by the commands of deploy/README.md, and keep nothing of it", short, func() {
		r.uninstall(inTime())
	})
	It("have run every command of deploy/README.md", func() {
		Expect(r.unrun()).To(BeEmpty())
	})
})

// inTime is the time of one spec.
func inTime() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), specLimit)
	DeferCleanup(cancel)
	return ctx
}

// temporary is a directory of the spec's, below build/ of the repository: kustomizations name deploy/base by a relative path.
func temporary(root string) string {
	GinkgoHelper()
	dir, err := os.MkdirTemp(root, "rig-vm-cluster-")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(os.RemoveAll(dir)).To(Succeed()) })
	return dir
}
