// SPDX-License-Identifier: Apache-2.0

// Package vmcluster is the rig of an installation as an operator has it: the image that `make image` built, deploy/base, kubectl, and
// two nodes that are virtual machines of a distribution, with kubelet, containerd, kube-proxy and CNI plugins. Invariant: what
// beep is given here, deploy/README.md says; its commands are read from there and run.
package vmcluster_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/beep-lb/beep/harness/artifacts"
	"github.com/beep-lb/beep/harness/checkout"
	"github.com/beep-lb/beep/harness/cluster"
	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
	"github.com/beep-lb/beep/harness/vm/node"
)

// The waits end a spec that would hang. Emulated machines on a busy host take many times what hardware takes.
const (
	launchLimit = 15 * time.Minute
	specLimit   = 40 * time.Minute
	limit       = 10 * time.Minute // of one thing that is waited for
	askLimit    = 15 * time.Second
)

// namespace is where deploy/base puts everything.
const namespace = "beep-system"

// families are those of the nodes, the pods and the client.
var families = []topo.Families{topo.V4, topo.V6}

func TestVMCluster(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "rig vm-cluster")
}

var _ = AfterSuite(func() { require.Report(os.Stdout) })

// rig is the cluster of all specs.
type rig struct {
	*node.Cluster
	blocks []*block
	desk   string // a directory of the operator's, which has a copy of deploy/
}

// cni is what BEEP_VM_CNI names: bridge, which is the default, or flannel.
func cni() node.CNI { return node.CNI(os.Getenv("BEEP_VM_CNI")) }

// newRig starts the cluster. Its nodes have what the image has: nothing of beep.
func newRig() *rig {
	GinkgoHelper()
	node.Require(GinkgoT())
	ctx, cancel := context.WithTimeout(context.Background(), launchLimit)
	defer cancel()
	begun := time.Now()
	c, err := node.Launch(ctx, node.Options{CNI: cni()})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(c.Close)
	figure("two nodes are ready after %v", time.Since(begun).Round(time.Second))
	manifests, err := checkout.Path("deploy")
	Expect(err).NotTo(HaveOccurred())
	desk := GinkgoT().TempDir()
	Expect(os.CopyFS(filepath.Join(desk, "deploy"), os.DirFS(manifests))).To(Succeed())
	return &rig{Cluster: c, blocks: blocks(), desk: desk}
}

// collect has what failed be kept.
func (r *rig) collect() { r.Show(artifacts.New(GinkgoT(), r.Topology)) }

// figure prints a line for people.
func figure(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	AddReportEntry("figures", text)
	fmt.Println(text)
}

// kubectl runs it as the operator does, in the root of the repository, and returns what it printed.
func (r *rig) kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	out, err := r.Kubectl(ctx, args...)
	Expect(err).NotTo(HaveOccurred())
	return out
}

// on runs a command on a node.
func (r *rig) on(ctx context.Context, node, command string) string {
	GinkgoHelper()
	out, err := r.Node(node).Run(ctx, command)
	Expect(err).NotTo(HaveOccurred())
	return strings.TrimSpace(out)
}

// await asks until there is no error.
func await(ctx context.Context, what string, ask func(context.Context) error) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	Expect(cluster.Await(ctx, ask)).To(Succeed(), what)
}

// beepOn is the DaemonSet's pod on a node.
func (r *rig) beepOn(ctx context.Context, node string) *corev1.Pod {
	GinkgoHelper()
	pods, err := r.Control.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{
		LabelSelector: "app.kubernetes.io/name=beep", FieldSelector: "spec.nodeName=" + node,
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(pods.Items).To(HaveLen(1), "beep's pods on %s", node)
	return &pods.Items[0]
}

// beep runs beep's own tool in the datapath container of a node's pod.
func (r *rig) beep(ctx context.Context, node string, args ...string) string {
	GinkgoHelper()
	pod := r.beepOn(ctx, node)
	return r.kubectl(ctx, append([]string{"-n", namespace, "exec", pod.Name, "-c", "datapath", "--", "/beep"}, args...)...)
}

// webPods are the names of the ready pods of the Service, by their node.
func (r *rig) webPods(ctx context.Context) (map[string]string, error) {
	pods, err := r.Control.Client.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, pod := range pods.Items {
		ready := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
		if ready && pod.DeletionTimestamp == nil {
			found[pod.Spec.NodeName] = pod.Name
		}
	}
	if len(found) != len(r.Nodes()) {
		return found, fmt.Errorf("ready pods of web by node: %v", found)
	}
	return found, nil
}

// published waits until EXTERNAL-IP of the Service lists these nodes, by all of their addresses, and no others.
func (r *rig) published(ctx context.Context, nodes ...string) {
	GinkgoHelper()
	var want []string
	for _, name := range nodes {
		for _, addr := range r.Node(name).Addrs {
			want = append(want, addr.String())
		}
	}
	slices.Sort(want)
	await(ctx, "EXTERNAL-IP", func(ctx context.Context) error {
		service, err := r.Control.Client.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		var got []string
		for _, entry := range service.Status.LoadBalancer.Ingress {
			got = append(got, entry.IP)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("EXTERNAL-IP of web: %v, want %v", got, want)
		}
		return nil
	})
}

// ask asks a front once, on a connection of its own. A pod that saw another address than the client's is an error.
func (r *rig) ask(ctx context.Context, at netip.AddrPort) (traffic.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	answer, err := traffic.Get(ctx, r.NS(node.Client), at)
	if err == nil && !slices.Contains(r.Addrs(node.Client), answer.Client.Addr()) {
		err = fmt.Errorf("the client asked %s, and pod %s saw %s", at, answer.Server, answer.Client)
	}
	return answer, err
}

// served asks every front of the Service from outside until the pods of all nodes have answered there: both nodes lead to
// both pods, over IPv4 and IPv6, and the pods see the client.
func (r *rig) served(ctx context.Context) {
	GinkgoHelper()
	var pods map[string]string
	await(ctx, "the pods", func(ctx context.Context) (err error) {
		pods, err = r.webPods(ctx)
		return err
	})
	for _, front := range r.Fronts(80, families...) {
		missing := map[string]bool{}
		for _, pod := range pods {
			missing[pod] = true
		}
		await(ctx, "front "+front.String(), func(ctx context.Context) error {
			answer, err := r.ask(ctx, front)
			if err != nil {
				return err
			}
			delete(missing, answer.Server)
			if len(missing) > 0 {
				return fmt.Errorf("%s has not led to %v yet", front, missing)
			}
			return nil
		})
	}
}

// importImage imports an archive that make image wrote, on every node.
func (r *rig) importImage(ctx context.Context, dir string) {
	GinkgoHelper()
	path, err := checkout.Path(dir, "beep.tar")
	Expect(err).NotTo(HaveOccurred())
	Expect(r.Import(ctx, path)).To(Succeed(), "%s: make image", path)
}
