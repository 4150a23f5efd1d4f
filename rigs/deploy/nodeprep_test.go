// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"os/exec"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/beep"
	"github.com/beep-lb/beep/harness/kube"
)

// prepare runs node-prep on a node, on an /etc/sysctl.d of its own, and returns what it printed.
func (r *rig) prepare(node string) string {
	GinkgoHelper()
	binary, err := beep.Binary("beep")
	Expect(err).NotTo(HaveOccurred())
	cmd := exec.Command("unshare", "--mount", "sh", "-c", `mount -t tmpfs beep-rig /etc/sysctl.d && exec "$@"`, "sh",
		binary, "node-prep", "--uplink-iface=eth0", "--pin-dir", r.Node(node).Datapath.PinDir())
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	Expect(r.NS(node).Run(r.ctx, cmd)).To(Succeed(), out.String())
	return out.String()
}

var _ = Describe("beep node-prep", Label("cluster"), func() {
	It("asks a real kube-proxy for its mode, and warns where there is none", func() {
		r := newRig()
		Expect(r.prepare("node-a")).To(ContainSubstring("warning: no kube-proxy answers"))
		for _, mode := range kube.ProxyModes {
			proxy, err := r.Control.StartProxy(r.Topology, "node-a", kube.ProxyOptions{Mode: mode})
			Expect(err).NotTo(HaveOccurred())
			Expect(r.prepare("node-a")).NotTo(ContainSubstring("kube-proxy"), "beside one in mode %s", mode)
			Expect(proxy.Terminate()).To(Succeed())
		}
	})
})
