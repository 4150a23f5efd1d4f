// SPDX-License-Identifier: Apache-2.0

// Package clusterfaults is the rig of what goes wrong between Kubernetes and beep: an API server that is slow, refuses or is
// away, controllers that die, and objects that nobody would write. Invariant: all specs share one cluster, whose
// controllers reach the API server by fault proxies alone; each has a namespace and ports of its own, and leaves the
// nodes as it found them.
package clusterfaults_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/netip"
	"os"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/beep-lb/beep/harness/artifacts"
	"github.com/beep-lb/beep/harness/cluster"
	"github.com/beep-lb/beep/harness/kube"
	"github.com/beep-lb/beep/harness/kube/faultproxy"
	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/topo"
)

const (
	// limit ends whatever a spec waits for, but for what it measures.
	limit = 60 * time.Second
	// specLimit ends a spec.
	specLimit = 4 * time.Minute
	// firstProxy is the port of node-a's way to the API server.
	firstProxy = 7001
	// portsOfSpec is how many ports a spec has for itself.
	portsOfSpec = 100
	// lostNode is after what silence of its kubelet the node lifecycle controller calls a Node lost.
	lostNode = 15 * time.Second
)

// shared is the cluster of all specs, and proxies are its nodes' ways to the API server; nil on a machine that cannot
// have one.
var (
	shared  *cluster.Cluster
	proxies []*faultproxy.Proxy
)

// TestMain starts the cluster that the specs share.
func TestMain(m *testing.M) {
	code := 1
	err := start()
	if err == nil {
		code = m.Run()
	}
	if err = errors.Join(err, stop()); err != nil {
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
		Plan: plan(), Idle: true,
		Control: kube.Options{Audit: true, ControllerManagerArgs: []string{
			fmt.Sprintf("--node-monitor-grace-period=%v", lostNode), "--node-monitor-period=1s",
		}},
	})
	if err != nil {
		return err
	}
	for i, node := range shared.Nodes() {
		proxy, err := faultproxy.Launch(shared.Control, firstProxy+uint16(i))
		if err != nil {
			return err
		}
		proxies = append(proxies, proxy)
		if err := errors.Join(node.Controller.UseServer(proxy.Addr()), node.Controller.Start()); err != nil {
			return err
		}
	}
	return nil
}

func stop() error {
	var errs []error
	for _, proxy := range proxies {
		errs = append(errs, proxy.Close())
	}
	if shared != nil {
		errs = append(errs, shared.Close())
	}
	return errors.Join(errs...)
}

func TestClusterFaults(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "rig cluster-faults")
}

var _ = It("is drawn in its README", Label("cluster"), func() { scene.CheckReadme(GinkgoT(), plan()) })

func plan() topo.Plan { return cluster.Plan(3, topo.Options{}) }

// everyNode names all nodes.
var everyNode = []string{"node-a", "node-b", "node-c"}

// rig is the cluster as one spec has it.
type rig struct {
	*cluster.Cluster
	ctx       context.Context
	namespace string
	port      int32 // the first of portsOfSpec that no other spec uses
}

// spaces counts the specs' namespaces.
var spaces atomic.Int32

// newRig returns when all controllers have done their part, and a Service that is made then lists all nodes.
func newRig() *rig {
	GinkgoHelper()
	cluster.Require(GinkgoT())
	number := spaces.Add(1)
	r := &rig{Cluster: shared, namespace: fmt.Sprintf("spec-%d", number), port: 10000 + portsOfSpec*number}
	ctx, cancel := context.WithTimeout(context.Background(), specLimit)
	r.ctx = ctx
	DeferCleanup(cancel)
	r.makeNamespace()
	r.Show(artifacts.New(GinkgoT(), r.Topology))
	for _, node := range r.Nodes() {
		r.eventually(node.Controller.AwaitReady)
	}
	r.caughtUp()
	return r
}

// caughtUp returns when every controller has seen what was written so far, its own writes included, and all nodes are listed in what
// comes: a watch brings events in their order.
func (r *rig) caughtUp() {
	GinkgoHelper()
	r.create(service("last", r.port+portsOfSpec-1))
	r.eventually(func(ctx context.Context) error {
		got, err := r.Published(ctx, r.namespace, "last")
		if err == nil && len(got) != len(r.addrs(everyNode...)) {
			err = fmt.Errorf("lists %v", got)
		}
		return err
	})
	r.eventually(r.sends("TCP", r.port+portsOfSpec-1, none, netip.Addr.IsValid, everyNode...))
	r.remove("last")
	r.gone("TCP", r.port+portsOfSpec-1)
}

func (r *rig) makeNamespace() {
	GinkgoHelper()
	namespaces := r.Control.Client.CoreV1().Namespaces()
	_, err := namespaces.Create(r.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.namespace}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		Expect(namespaces.Delete(context.Background(), r.namespace, metav1.DeleteOptions{})).To(Succeed())
	})
}

// eventually asks until there is no error.
func (r *rig) eventually(ask func(context.Context) error) {
	GinkgoHelper()
	r.within(limit, ask)
}

func (r *rig) within(limit time.Duration, ask func(context.Context) error) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(r.ctx, limit)
	defer cancel()
	// The last error may be that of a question which the end has cut short: the one before tells more.
	var last error
	Expect(cluster.Await(ctx, func(ctx context.Context) error {
		err := ask(ctx)
		if err != nil && ctx.Err() == nil {
			last = err
		}
		return err
	})).To(Succeed(), func() string { return fmt.Sprintf("after %v: %v", limit, last) })
}

// always asks for so long and expects that there never is an error.
func (r *rig) always(long time.Duration, ask func(context.Context) error) {
	GinkgoHelper()
	Consistently(func() error { return ask(r.ctx) }, long, 200*time.Millisecond).Should(Succeed())
}

// holdAll has every proxy hold the answers that match; the returned function lets them come.
func holdAll(of faultproxy.Match) (lift func()) {
	var faults []*faultproxy.Fault
	for _, proxy := range proxies {
		faults = append(faults, proxy.Hold(of))
	}
	lift = func() {
		for _, fault := range faults {
			fault.Lift()
		}
	}
	DeferCleanup(lift)
	return lift
}
