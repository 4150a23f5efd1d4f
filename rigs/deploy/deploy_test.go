// SPDX-License-Identifier: Apache-2.0

// Package deploy is the rig of the installation: the manifests of deploy/ on a real API server, applied and deleted by
// kubectl, and controllers that have nothing but what those give their pods. Invariant: what a controller may do here
// is what deploy/base says, by a token of its own pod.
package deploy_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/beep-lb/beep/harness/beep"
	"github.com/beep-lb/beep/harness/cluster"
	"github.com/beep-lb/beep/harness/kube"
	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/topo"
)

// limit ends whatever a spec waits for.
const limit = 90 * time.Second

// namespace is where deploy/base puts everything.
const namespace = "beep-system"

func TestDeploy(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "rig deploy")
}

var _ = AfterSuite(func() { require.Report(os.Stdout) })

// rig is a cluster into which an operator installs beep. Its datapaths run; who runs the controllers is the spec.
type rig struct {
	*cluster.Cluster
	ctx   context.Context
	admin string // a kubeconfig
}

func newRig() *rig {
	GinkgoHelper()
	cluster.Require(GinkgoT())
	require.Tool(GinkgoT(), "unshare")
	c := cluster.Start(GinkgoT(), cluster.Options{
		Plan: cluster.Plan(2, topo.Options{}), Idle: true,
		Control: kube.Options{Audit: true, APIServerArgs: []string{"--allow-privileged"}}, // as every installer has it
	})
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	DeferCleanup(cancel)
	admin, err := c.Control.Kubeconfig("admin", "system:masters")
	Expect(err).NotTo(HaveOccurred())
	r := &rig{Cluster: c, ctx: ctx, admin: admin}
	// The rights that the fixture gives its own controllers, which do not run here.
	r.kubectl("delete", "--wait=true", "--timeout=60s", "namespace/"+namespace, "clusterrole/beep", "clusterrolebinding/beep")
	return r
}

// kubectl runs it as the operator does, in the root of the repository, and returns what it printed.
func (r *rig) kubectl(args ...string) string {
	GinkgoHelper()
	binaries, err := kube.FindBinaries()
	Expect(err).NotTo(HaveOccurred())
	cmd := exec.Command(filepath.Join(string(binaries), "kubectl"), append([]string{"--kubeconfig", r.admin}, args...)...)
	cmd.Dir = "../.."
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	Expect(r.Control.NS().Run(r.ctx, cmd)).To(Succeed(), "kubectl %s: %s", strings.Join(args, " "), &out)
	return out.String()
}

// await asks until there is no error.
func (r *rig) await(ask func(context.Context) error) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(r.ctx, limit)
	defer cancel()
	Expect(cluster.Await(ctx, ask)).To(Succeed())
}

// podOf waits for the DaemonSet's pod on a node.
func (r *rig) podOf(node string) (found *corev1.Pod) {
	GinkgoHelper()
	r.await(func(ctx context.Context) error {
		pods, err := r.Control.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=beep"})
		if err != nil {
			return err
		}
		for i := range pods.Items {
			if pods.Items[i].Spec.NodeName == node {
				found = &pods.Items[i]
				return nil
			}
		}
		return fmt.Errorf("no pod of the DaemonSet on %s among %d", node, len(pods.Items))
	})
	return found
}

// token is what the projected volume of a pod has: a ServiceAccount's, bound to the pod.
func (r *rig) token(pod *corev1.Pod) string {
	GinkgoHelper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
	}}
	answer, err := r.Control.Client.CoreV1().ServiceAccounts(namespace).CreateToken(r.ctx, pod.Spec.ServiceAccountName, request, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return answer.Status.Token
}

// client speaks to the API server as a pod's token lets it.
func (r *rig) client(token string) kubernetes.Interface {
	GinkgoHelper()
	config, err := r.Control.Config("nobody")
	Expect(err).NotTo(HaveOccurred())
	bare := rest.AnonymousClientConfig(config)
	bare.Dial, bare.BearerToken = config.Dial, token
	client, err := kubernetes.NewForConfig(bare)
	Expect(err).NotTo(HaveOccurred())
	return client
}

// certificate is a client by a certificate of a user.
func (r *rig) certificate(user string) kubernetes.Interface {
	GinkgoHelper()
	config, err := r.Control.Config(user)
	Expect(err).NotTo(HaveOccurred())
	client, err := kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	return client
}

// mountScript has a controller find its token where a container does, in a mount namespace of its own. Its arguments
// are the files' directory and the program with its flags.
const mountScript = `set -e; files=$1; shift; exec 3<"$files"
mount -t tmpfs beep-rig /run; mkdir -p /run/secrets/kubernetes.io/serviceaccount
mount -t tmpfs beep-rig /var/run/secrets/kubernetes.io/serviceaccount
cp /proc/self/fd/3/* /var/run/secrets/kubernetes.io/serviceaccount; exec 3<&-; exec "$@"`

// controller starts beep-controller on a node as the container of that pod runs it. environment is NAME=VALUE.
func (r *rig) controller(node, token string, environment ...string) *kube.Program {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	config, err := r.Control.Config("nobody")
	Expect(err).NotTo(HaveOccurred())
	for name, content := range map[string][]byte{"token": []byte(token), "ca.crt": config.CAData, "namespace": []byte(namespace)} {
		Expect(os.WriteFile(filepath.Join(dir, name), content, 0o600)).To(Succeed())
	}
	return r.launch(node, slices.Concat([]string{"unshare", "--mount", "sh", "-c", mountScript, "sh", dir, "env"}, environment, []string{
		"KUBERNETES_SERVICE_HOST=" + kube.Server.Addr().String(), fmt.Sprintf("KUBERNETES_SERVICE_PORT=%d", kube.Server.Port())}))
}

// certified starts beep-controller on a node as that of overlays/client-cert, by a certificate of that user.
func (r *rig) certified(node, user string) *kube.Program {
	GinkgoHelper()
	kubeconfig, err := r.Control.Kubeconfig(user)
	Expect(err).NotTo(HaveOccurred())
	return r.launch(node, []string{"env", "KUBECONFIG=" + kubeconfig}, "--seed-namespace="+namespace)
}

// launch starts beep-controller through a command before it, and returns when it is ready.
func (r *rig) launch(node string, through []string, args ...string) *kube.Program {
	GinkgoHelper()
	binary, err := beep.Binary("beep-controller")
	Expect(err).NotTo(HaveOccurred())
	ready := filepath.Join(GinkgoT().TempDir(), "ready")
	args = append([]string{binary, "--pin-dir", r.Node(node).Datapath.PinDir(), "--node-name", node, "--ready-file", ready}, args...)
	command := slices.Concat(through, args)
	program := kube.NewProgram(r.NS(node), node, command[0], command[1:]...)
	Expect(program.Start()).To(Succeed())
	DeferCleanup(func() {
		if program.Running() {
			Expect(program.Terminate()).To(Succeed())
		}
	})
	r.await(func(context.Context) error {
		if !program.Running() {
			return fmt.Errorf("it has ended: %s", program.Log())
		}
		_, err := os.Stat(ready)
		return err
	})
	return program
}

// served waits until a Service lists all nodes, and asks each from outside.
func (r *rig) served(port int32) {
	GinkgoHelper()
	r.await(func(ctx context.Context) error {
		addrs, err := r.Published(ctx, metav1.NamespaceDefault, "web")
		if err == nil && len(addrs) != 2*len(r.Nodes()) {
			err = fmt.Errorf("published: %v", addrs)
		}
		return err
	})
	for _, node := range r.Nodes() {
		r.await(func(ctx context.Context) error {
			_, err := r.Ask(ctx, "client", netip.AddrPortFrom(r.Addr(node.Name, topo.V4), uint16(port)))
			return err
		})
	}
}
