// SPDX-License-Identifier: Apache-2.0

// Package k3s is the rig of an installation on k3s, in machines of Lima. Invariant: what it types is what deploy/README.md
// tells an operator of k3s to type.
package k3s_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/checkout"
	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/vm/lima"
)

// limit is for all of it, the first download of an image included.
const limit = 40 * time.Minute

func TestK3s(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "rig k3s")
}

var _ = AfterSuite(func() { require.Report(os.Stdout) })

// web is a Deployment and a Service whose pods tell who asked.
const web = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}
      containers:
      - {name: web, image: "localhost/web:v1", ports: [{containerPort: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  type: LoadBalancer
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080}]
`

var _ = Describe("beep on k3s", Label("vm"), Ordered, func() {
	var cluster *lima.Cluster
	var ctx context.Context
	kubectl := func(args string) string {
		GinkgoHelper()
		out, err := cluster.Kubectl(ctx, args)
		Expect(err).NotTo(HaveOccurred())
		return out
	}

	BeforeAll(func() {
		require.That(GinkgoT(), "machines of Lima", lima.Check())
		require.That(GinkgoT(), lima.EnvK3s, missing(lima.EnvK3s))
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.Background(), limit)
		DeferCleanup(cancel)
		var err error
		cluster, err = lima.Launch(ctx)
		if cluster != nil {
			DeferCleanup(func() { Expect(cluster.Close(context.Background())).To(Succeed()) })
		}
		Expect(err).NotTo(HaveOccurred())
	})

	It("is installed", func() {
		image, err := checkout.Path("build/image/beep.tar")
		Expect(err).NotTo(HaveOccurred())
		Expect(cluster.Import(ctx, image)).To(Succeed())
		kubectl("apply -k deploy/overlays/k3s")
		kubectl("-n beep-system rollout status daemonset beep --timeout=5m")
		Expect(kubectl("-n kube-system get daemonsets -o name")).NotTo(ContainSubstring("svclb"))
	})

	It("serves a Service", func() {
		Expect(cluster.Import(ctx, webImage(ctx))).To(Succeed())
		_, err := cluster.Nodes[0].RunWith(ctx, "k3s kubectl apply -f -", strings.NewReader(web))
		Expect(err).NotTo(HaveOccurred())
		kubectl("rollout status deployment web --timeout=5m")
		Eventually(func() []string {
			return strings.Fields(kubectl("get service web -o jsonpath='{.status.loadBalancer.ingress[*].ip}'"))
		}).WithContext(ctx).WithTimeout(2 * time.Minute).WithPolling(time.Second).Should(HaveLen(2))

		client, err := cluster.Client.Run(ctx, "hostname -I")
		Expect(err).NotTo(HaveOccurred())
		addresses := strings.Fields(client)
		Expect(addresses).NotTo(BeEmpty())
		for _, node := range strings.Fields(kubectl("get service web -o jsonpath='{.status.loadBalancer.ingress[*].ip}'")) {
			// Each a connection of its own: both pods are asked, but for once in half a million.
			answers, err := cluster.Client.Run(ctx, fmt.Sprintf("for i in $(seq 20); do curl --fail --silent --show-error --max-time 10 http://%s/; done", node))
			Expect(err).NotTo(HaveOccurred())
			Expect(strings.Count(answers, addresses[0])).To(BeNumerically(">=", 20), "the pods saw another address than the client's: %s", answers)
		}
	})

	It("is removed", func() {
		kubectl("delete -k deploy/overlays/k3s")
		kubectl("apply -k deploy/uninstall")
		kubectl("-n beep-uninstall rollout status daemonset beep-uninstall --timeout=5m")
		kubectl("delete -k deploy/uninstall")
		for _, node := range cluster.Nodes {
			_, err := node.Run(ctx, "! ls /sys/fs/bpf/beep /etc/sysctl.d/60-beep.conf 2>/dev/null | grep .")
			Expect(err).NotTo(HaveOccurred(), node.Name)
		}
	})
})

// missing is an error for an environment variable that is not set.
func missing(name string) error {
	if os.Getenv(name) == "" {
		return errors.New("it is not set: see rigs/k3s/README.md")
	}
	return nil
}

// webImage builds the image of the server in pods, for the machines' architecture, and returns its archive.
func webImage(ctx context.Context) string {
	GinkgoHelper()
	root, err := checkout.Root()
	Expect(err).NotTo(HaveOccurred())
	dir := GinkgoT().TempDir()
	archive := filepath.Join(dir, "web.tar")
	for _, step := range []struct {
		dir  string
		args []string
	}{
		{root, []string{"build", "-trimpath", "-buildvcs=false", "-o", filepath.Join(dir, "web"), "./harness/vm/node/image/web"}},
		{filepath.Join(root, "ci/image"), []string{"run", "-buildvcs=false", "./plain", "-program", filepath.Join(dir, "web"),
			"-name", "localhost/web:v1", "-out", archive}},
	} {
		cmd := exec.CommandContext(ctx, "go", step.args...)
		cmd.Dir, cmd.Env = step.dir, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOOS=linux")
		out, err := cmd.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), "go %s: %s", strings.Join(step.args, " "), out)
	}
	return archive
}
