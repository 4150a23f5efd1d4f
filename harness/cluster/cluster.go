// SPDX-License-Identifier: Apache-2.0

// Package cluster is a whole cluster as a fixture: a real control plane, and on each node of a topology a real
// `beep run`, a real beep-controller and, if asked for, a real kube-proxy, with pods that come and go as Deployments ask.
// Invariant: what a person would have to install is upstream's or beep's own program; only the kubelet and the
// scheduler are this package's, and they do nothing that upstream's would not.
//
// A spec uses it like this (tb is *testing.T or GinkgoT()):
//
//	c := cluster.Start(tb, cluster.Options{Plan: cluster.Plan(3, topo.Options{})})
//	_, err := c.Control.Client.AppsV1().Deployments("default").Create(ctx, deployment, metav1.CreateOptions{})
//	_, err = c.Control.Client.CoreV1().Services("default").Create(ctx, service, metav1.CreateOptions{})
//	err = cluster.Await(ctx, func(ctx context.Context) error { … c.Published(ctx, "default", "web") … })
//	answer, err := c.Ask(ctx, "client", netip.AddrPortFrom(c.Addr("node-a", topo.V4), 80))
//	err = c.Node("node-b").Controller.Kill9()
package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/beep-lb/beep/harness/artifacts"
	"github.com/beep-lb/beep/harness/beep"
	"github.com/beep-lb/beep/harness/kube"
	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
)

// Options say what a cluster consists of. Only Plan is needed.
type Options struct {
	Plan    topo.Plan      // its nodes are the cluster's; pods that it has are left to the spec
	Control kube.Options   // of the control plane; its Evidence is not used, see Cluster.Show
	Proxy   kube.ProxyMode // of the kube-proxy on each node; empty for none

	Datapath   []string // further flags of every `beep run`
	Controller []string // further flags of every beep-controller
	// Idle leaves it to the spec to start the controllers (Controller.Start), for instance by way of something that
	// stands between them and the API server.
	Idle bool
}

// Cluster is a running cluster. Its methods may be called from any goroutine, but not two that start or end the same
// program at once.
type Cluster struct {
	*topo.Topology
	Control *kube.ControlPlane

	nodes    []*Node
	kubelets *kubelets
	dir      string // ready files
}

// startDeadline bounds what has no deadline of its own when a cluster starts.
const startDeadline = 2 * time.Minute

// Plan is n nodes and a client on one LAN, as topo.OneLAN, without pods, and with a routing CNI's routes.
func Plan(n int, o topo.Options) topo.Plan {
	plan := topo.OneLAN(n, o)
	plan.Pods = nil
	kube.RoutePods(&plan)
	return plan
}

// Start starts a cluster for one test and ends it at the test's cleanup, after its evidence was written if the test has
// failed. It needs root, TCX and the Kubernetes programs.
func Start(tb require.TB, o Options) *Cluster {
	tb.Helper()
	Require(tb)
	c, err := Launch(o)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	tb.Cleanup(func() {
		if err := c.Close(); err != nil {
			tb.Errorf("%v", err)
		}
	})
	c.Show(artifacts.New(tb, c.Topology))
	return c
}

// Require states what every cluster needs of the machine.
func Require(tb require.TB) {
	tb.Helper()
	require.Root(tb)
	require.TCX(tb)
	_, err := kube.FindBinaries()
	require.That(tb, "Kubernetes programs", err)
}

// Launch is Start for a program that has no test around it, or for several specs that share a cluster; the caller calls
// Close. When it returns, every datapath and kube-proxy serves, and the controllers have begun (Controller.AwaitReady). After an
// error nothing is left behind.
func Launch(o Options) (*Cluster, error) {
	c := &Cluster{}
	if err := c.launch(o); err != nil {
		return nil, errors.Join(fmt.Errorf("start a cluster: %w", err), c.Close())
	}
	return c, nil
}

func (c *Cluster) launch(o Options) (err error) {
	if c.dir, err = os.MkdirTemp("", "beep-cluster-"); err != nil {
		return err
	}
	if c.Topology, err = topo.Build(o.Plan); err != nil {
		return err
	}
	if c.Control, err = kube.Launch(o.Control); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startDeadline)
	defer cancel()
	if err := c.Control.JoinAll(ctx, c.Topology); err != nil {
		return err
	}
	if err := c.grantRights(ctx); err != nil {
		return err
	}
	for _, host := range c.Hosts {
		if host.Role == topo.Node {
			c.nodes = append(c.nodes, &Node{Name: host.Name, c: c})
		}
	}
	if c.kubelets, err = startKubelets(ctx, c); err != nil {
		return err
	}
	var group errgroup.Group
	// The verifier keeps a core busy for each: with thirty at once, every one would be late.
	group.SetLimit(2 * runtime.NumCPU())
	for _, node := range c.nodes {
		group.Go(func() error { return node.launch(o) })
	}
	return group.Wait()
}

// Close ends everything and removes it. It may be called twice.
func (c *Cluster) Close() error {
	var errs []error
	if c.kubelets != nil {
		c.kubelets.close()
	}
	// Before the API server, which they would wait for, and with it their say in the cluster.
	for _, node := range c.nodes {
		if node.Controller != nil && node.Controller.Running() {
			errs = append(errs, node.Controller.Kill9())
		}
	}
	if c.Control != nil {
		errs = append(errs, c.Control.Close())
	}
	if c.Topology != nil {
		errs = append(errs, c.Topology.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(c.dir))...)
}

// Show has a collector show the cluster as it is when the spec has failed: objects, maps, logs. Start does so; specs
// that share a cluster each have a collector of their own.
func (c *Cluster) Show(evidence *artifacts.Collector) {
	c.Control.Show(evidence)
	for _, node := range c.nodes {
		node.Datapath.Show(evidence)
		node.Controller.Show(evidence, node.Name+"-beep-controller")
		if node.Proxy != nil {
			node.Proxy.Show(evidence, node.Name+"-kube-proxy")
		}
	}
}

// Nodes are all nodes in the order of the plan.
func (c *Cluster) Nodes() []*Node { return slices.Clone(c.nodes) }

// Node is the node of that name. One that the plan does not have is a mistake of the spec: it panics.
func (c *Cluster) Node(name string) *Node {
	for _, node := range c.nodes {
		if node.Name == name {
			return node
		}
	}
	panic(fmt.Sprintf("cluster: plan %q has no node %q", c.Title, name))
}

// Published is what a Service's status lists as EXTERNAL-IP, in its order; what is no address is left out.
func (c *Cluster) Published(ctx context.Context, namespace, service string) ([]netip.Addr, error) {
	object, err := c.Control.Client.CoreV1().Services(namespace).Get(ctx, service, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("status of service %s: %w", service, err)
	}
	var addrs []netip.Addr
	for _, entry := range object.Status.LoadBalancer.Ingress {
		if addr, err := netip.ParseAddr(entry.IP); err == nil {
			addrs = append(addrs, addr)
		}
	}
	return addrs, nil
}

// Ask asks an HTTP front from a host of the topology, on a connection of its own. It fails if the pod saw another
// address than one of the host's.
func (c *Cluster) Ask(ctx context.Context, from string, at netip.AddrPort) (traffic.Answer, error) {
	answer, err := traffic.Get(ctx, c.NS(from), at)
	if err == nil && !slices.Contains(c.Addrs(from), answer.Client.Addr()) {
		err = fmt.Errorf("%s asked %s, and pod %s saw %s", from, at, answer.Server, answer.Client)
	}
	return answer, err
}

// Await asks until there is no error or ctx ends, and then returns the last one.
func Await(ctx context.Context, ask func(context.Context) error) error {
	_, err := backoff.Retry(ctx, func() (struct{}, error) { return struct{}{}, ask(ctx) },
		backoff.WithBackOff(backoff.NewConstantBackOff(25*time.Millisecond)), backoff.WithMaxElapsedTime(0))
	return err
}

// daemonOptions are those of the datapath of every node.
func (o *Options) daemonOptions() beep.Options {
	return beep.Options{Controlled: true, Args: o.Datapath}
}
