// SPDX-License-Identifier: Apache-2.0

// Package cluster is the rig of the whole: Services of a real API server, seen from outside of a cluster whose pods and
// nodes come and go. Invariant: all specs share one cluster, and each has a namespace, ports and evidence of its own and
// leaves the nodes as it found them.
package cluster_test

import (
	"context"
	"fmt"
	"log"
	"net/netip"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/beep-lb/beep/harness/artifacts"
	"github.com/beep-lb/beep/harness/cluster"
	"github.com/beep-lb/beep/harness/kube"
	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/topo"
)

const (
	// limit ends whatever a spec waits for, but for what it measures.
	limit = 60 * time.Second
	// specLimit ends a spec.
	specLimit = 4 * time.Minute
	// app is the name of every spec's Deployment and Service.
	app = "web"
)

// shared is the cluster of all specs; nil on a machine that cannot have one.
var shared *cluster.Cluster

// TestMain starts the cluster: the specs and the skeleton test share it.
func TestMain(m *testing.M) {
	code := 1
	err := start()
	if err == nil {
		code = m.Run()
		err = stop()
	}
	if err != nil {
		log.Print(err)
		code = 1
	}
	require.Report(os.Stdout)
	os.Exit(code)
}

// start starts the cluster if the machine can have one. If it cannot, each spec says so.
func start() (err error) {
	if os.Geteuid() != 0 {
		return nil
	}
	if _, err := kube.FindBinaries(); err != nil {
		return nil
	}
	shared, err = cluster.Launch(cluster.Options{
		Plan: plan(), Proxy: kube.NFTables, Control: kube.Options{Audit: true},
		// As kube-proxy answers for a Service without endpoints, and as upstream's specs expect.
		Datapath: []string{"--no-endpoints=reject"},
	})
	return err
}

func stop() error {
	if shared == nil {
		return nil
	}
	return shared.Close()
}

func TestCluster(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "rig cluster")
}

var _ = It("is drawn in its README", Label("cluster"), func() { scene.CheckReadme(GinkgoT(), plan()) })

// plan is three nodes, and two clients outside.
func plan() topo.Plan {
	plan := cluster.Plan(3, topo.Options{})
	stranger := *plan.Host("client")
	stranger.Name = "stranger"
	stranger.Ports = slices.Clone(stranger.Ports)
	stranger.Ports[0].Addrs = []netip.Prefix{netip.MustParsePrefix("198.51.100.20/24"), netip.MustParsePrefix("2001:db8:c::20/64")}
	plan.Hosts = slices.Insert(plan.Hosts, 1, stranger)
	return plan
}

// rig is the cluster as one spec has it.
type rig struct {
	*cluster.Cluster
	ctx       context.Context
	namespace string
	port      int32 // the first of a hundred that no other spec uses
}

// spaces counts the specs' namespaces.
var spaces atomic.Int32

func newRig() *rig {
	GinkgoHelper()
	cluster.Require(GinkgoT())
	number := spaces.Add(1)
	r := &rig{Cluster: shared, namespace: fmt.Sprintf("spec-%d", number), port: 10000 + 100*number}
	ctx, cancel := context.WithTimeout(context.Background(), specLimit)
	r.ctx = ctx
	DeferCleanup(cancel)
	namespaces := r.Control.Client.CoreV1().Namespaces()
	_, err := namespaces.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.namespace}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		// The namespace controller ends pods first and Services only when they are gone; the next spec need not see them.
		list, err := r.services().List(context.Background(), metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		for _, service := range list.Items {
			Expect(r.services().Delete(context.Background(), service.Name, metav1.DeleteOptions{})).To(Succeed())
		}
		Expect(namespaces.Delete(context.Background(), r.namespace, metav1.DeleteOptions{})).To(Succeed())
	})
	evidence := artifacts.New(GinkgoT(), r.Topology)
	r.Show(evidence)
	Expect(evidence.CaptureAll()).To(Succeed())
	return r
}

// eventually asks until there is no error.
func (r *rig) eventually(ask func(context.Context) error) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(r.ctx, limit)
	defer cancel()
	Expect(cluster.Await(ctx, ask)).To(Succeed())
}

func (r *rig) services() typedcorev1.ServiceInterface {
	return r.Control.Client.CoreV1().Services(r.namespace)
}

func (r *rig) pods() typedcorev1.PodInterface { return r.Control.Client.CoreV1().Pods(r.namespace) }

// deploy creates a Deployment of so many pods and waits until they serve.
func (r *rig) deploy(replicas int32) {
	GinkgoHelper()
	_, err := r.Control.Client.AppsV1().Deployments(r.namespace).Create(r.ctx, cluster.Deployment(app, replicas), metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	r.settled()
}

// settled waits until the Deployment consists of the pods it asks for.
func (r *rig) settled() {
	GinkgoHelper()
	r.eventually(func(ctx context.Context) error {
		d, err := r.Control.Client.AppsV1().Deployments(r.namespace).Get(ctx, app, metav1.GetOptions{})
		if err != nil {
			return err
		}
		s, want := d.Status, *d.Spec.Replicas
		if s.ObservedGeneration < d.Generation || s.UpdatedReplicas != want || s.Replicas != want || s.AvailableReplicas != want {
			return fmt.Errorf("deployment of %d: %+v", want, s)
		}
		return nil
	})
}

// run creates pods on these nodes, named after them, and waits until they serve.
func (r *rig) run(nodes ...string) {
	GinkgoHelper()
	for _, node := range nodes {
		r.runPod(cluster.Pod("on-"+node, app, node))
	}
}

func (r *rig) runPod(pod *corev1.Pod) {
	GinkgoHelper()
	_, err := r.pods().Create(r.ctx, pod, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	r.eventually(func(ctx context.Context) error {
		got, err := r.pods().Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range got.Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("pod %s: %+v", pod.Name, got.Status)
	})
}

// service is a Service of the spec's app, on its first port.
func (r *rig) service() *corev1.Service { return cluster.Service(app, r.port) }

// serve creates the Service and waits until every node is listed.
func (r *rig) serve(service *corev1.Service, nodes ...string) *corev1.Service {
	GinkgoHelper()
	created, err := r.services().Create(r.ctx, service, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	r.lists(nodes...)
	return created
}

// update changes the Service.
func (r *rig) update(change func(*corev1.Service)) *corev1.Service {
	GinkgoHelper()
	var updated *corev1.Service
	r.eventually(func(ctx context.Context) error {
		service, err := r.services().Get(ctx, app, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(service)
		updated, err = r.services().Update(ctx, service, metav1.UpdateOptions{})
		return err
	})
	return updated
}

// everyNode names all nodes.
var everyNode = []string{"node-a", "node-b", "node-c"}

// addrs are all addresses of nodes.
func (r *rig) addrs(nodes ...string) []netip.Addr {
	var addrs []netip.Addr
	for _, node := range nodes {
		addrs = append(addrs, r.Addrs(node)...)
	}
	return addrs
}

// fronts are a port on all addresses of nodes.
func (r *rig) fronts(port int32, nodes ...string) []netip.AddrPort {
	var fronts []netip.AddrPort
	for _, addr := range r.addrs(nodes...) {
		fronts = append(fronts, netip.AddrPortFrom(addr, uint16(port)))
	}
	return fronts
}

// listed fails unless EXTERNAL-IP is the addresses of these nodes, in any order.
func (r *rig) listed(ctx context.Context, nodes ...string) error {
	got, err := r.Published(ctx, r.namespace, app)
	if err != nil {
		return err
	}
	want := r.addrs(nodes...)
	sorted := slices.Clone(got)
	slices.SortFunc(sorted, netip.Addr.Compare)
	slices.SortFunc(want, netip.Addr.Compare)
	if !slices.Equal(sorted, want) {
		return fmt.Errorf("the Service lists %v, want those of %v", got, nodes)
	}
	return nil
}

// lists waits until EXTERNAL-IP is the addresses of these nodes.
func (r *rig) lists(nodes ...string) {
	GinkgoHelper()
	r.eventually(func(ctx context.Context) error { return r.listed(ctx, nodes...) })
}
