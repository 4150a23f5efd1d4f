// SPDX-License-Identifier: Apache-2.0

package vmcluster_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/checkout"
)

// next is the tag of the other build.
const next = "v0-next"

// upgrade brings another build to every node while clients ask, in the way that deploy/README.md describes: deploy/base with
// another image.
func (r *rig) upgrade(ctx context.Context) {
	GinkgoHelper()
	root, err := checkout.Root()
	Expect(err).NotTo(HaveOccurred())
	r.importImage(ctx, r.buildNext(ctx, root))
	overlay := temporary(filepath.Join(root, "build"))
	Expect(os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(`apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [../../deploy/base]
images: [{name: localhost/beep, newTag: `+next+`}]
`), 0o600)).To(Succeed())

	clients := r.storm(ctx, true)
	r.rollOut(ctx, "-k", overlay)
	clients.moves(ctx)
	for _, node := range r.Nodes() {
		Expect(r.beepOn(ctx, node.Name).Spec.Containers[0].Image).To(Equal("localhost/beep:" + next))
		Expect(r.beep(ctx, node.Name, "version")).To(ContainSubstring(next))
	}
	By("and back, as deploy/README.md says")
	r.follow(ctx, "upgrade")
	clients.moves(ctx)
	clients.end("another build rolled out on both nodes, and back")
}

// options changes the size of a map, by the commands of deploy/README.md, while clients ask.
func (r *rig) options(ctx context.Context) {
	GinkgoHelper()
	clients := r.storm(ctx, true)
	r.follow(ctx, "options")
	clients.moves(ctx)
	clients.end("every map of flows was replaced by a larger one on both nodes")
	for _, node := range r.Nodes() {
		// Three quarters of the table are of flows that were answered.
		Expect(r.beep(ctx, node.Name, "status")).To(MatchRegexp(`FLOW_TABLE +\d+ +98304`))
	}
}

// rollOut applies and waits until every pod is new and ready.
func (r *rig) rollOut(ctx context.Context, what ...string) {
	GinkgoHelper()
	begun := time.Now()
	r.kubectl(ctx, append([]string{"apply"}, what...)...)
	r.kubectl(ctx, "-n", namespace, "rollout", "status", "daemonset", "beep", "--timeout="+limit.String())
	figure("rolled out in %v", time.Since(begun).Round(time.Second))
}

// buildNext makes the image of another build, with a version of its own, and returns its directory.
func (r *rig) buildNext(ctx context.Context, root string) string {
	GinkgoHelper()
	dir := filepath.Join("build", "image-next")
	cmd := exec.CommandContext(ctx, "make", "image", "VERSION="+next, "IMAGE=localhost/beep:"+next, "IMAGE_DIR="+dir)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s: %s", cmd, out)
	return dir
}

// clientCertificate has the controllers use a certificate, by the commands of deploy/README.md.
func (r *rig) clientCertificate(ctx context.Context) {
	GinkgoHelper()
	r.follow(ctx, "kubeconfig")
	r.kubectl(ctx, "-n", namespace, "rollout", "status", "daemonset", "beep", "--timeout="+limit.String())
	for _, node := range r.Nodes() {
		pod := r.beepOn(ctx, node.Name)
		Expect(pod.Spec.Volumes).NotTo(ContainElement(HaveField("Name", "token")), "the pod has no token")
		Expect(fmt.Sprint(pod.Spec.Volumes)).To(ContainSubstring("beep-kubeconfig"))
	}
	r.published(ctx, "node-a", "node-b")
	r.served(ctx)
}
