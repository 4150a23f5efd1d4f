// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/beep-lb/beep/harness/artifacts"
	"github.com/beep-lb/beep/harness/checkout"
	"github.com/beep-lb/beep/harness/kube"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/transcript"
)

// The hosts of every cluster's topology that are no machines, and the LAN of those that are.
const (
	Client = "client"
	router = "router"
	lan    = "nodes"
)

// CNI is what gives pods their network.
type CNI string

// Bridge is containernetworking's bridge plugin with routes between the nodes, and nothing is masqueraded. Flannel is flanneld
// as its own manifest has it, VXLAN between the nodes, and what pods send elsewhere is masqueraded; its plugin is that of Bridge,
// told what flannel's would tell it.
const (
	Bridge  CNI = "bridge"
	Flannel CNI = "flannel"
)

// Options say what a cluster consists of. The zero value is two nodes with Bridge whose kube-proxy writes nftables.
type Options struct {
	Nodes int            // node-a, node-b…; 0 is 2
	Proxy kube.ProxyMode // "" is NFTables
	CNI   CNI            // "" is Bridge
}

// Cluster is a running cluster: a client behind a router, the nodes on the router's other side, and the control plane, which
// the router leads to. The topology has all but the nodes. Its methods may be called from any goroutine.
type Cluster struct {
	*topo.Topology
	Control *kube.ControlPlane

	nodes []*Node
	dir   string
	admin string // kubeconfig
}

// Launch starts a cluster and returns when every node is ready; the caller calls Close. The context needs a deadline, and ends
// nothing but Launch: two nodes take about a minute on two cores without hardware acceleration. After an error nothing
// is left behind.
func Launch(ctx context.Context, o Options) (*Cluster, error) {
	c := &Cluster{}
	if o.Nodes == 0 {
		o.Nodes = 2
	}
	if o.Proxy == "" {
		o.Proxy = kube.NFTables
	}
	if o.CNI == "" {
		o.CNI = Bridge
	}
	if o.CNI != Bridge && o.CNI != Flannel {
		return nil, fmt.Errorf("start a cluster of machines: CNI %q: want %s or %s", o.CNI, Bridge, Flannel)
	}
	if err := c.launch(ctx, o); err != nil {
		return nil, errors.Join(fmt.Errorf("start a cluster of machines: %w", err), c.Close())
	}
	return c, nil
}

func (c *Cluster) launch(ctx context.Context, o Options) (err error) {
	image, err := FindImage()
	if err != nil {
		return err
	}
	if c.dir, err = os.MkdirTemp("", "beep-nodes-"); err != nil {
		return err
	}
	whole := topo.BehindRouter(o.Nodes, topo.Options{})
	plans := plansOf(&whole)
	whole.Title = fmt.Sprintf("one client behind a router; %d nodes, which are virtual machines, on the LAN nodes", o.Nodes)
	whole.Hosts = slices.DeleteFunc(whole.Hosts, func(h topo.Host) bool { return h.Role == topo.Node })
	whole.Pods = nil
	if c.Topology, err = topo.Build(whole); err != nil {
		return err
	}
	if c.Control, err = kube.Launch(kube.Options{Machines: true}); err != nil {
		return err
	}
	if c.admin, err = c.Control.Kubeconfig("admin", "system:masters"); err != nil {
		return err
	}
	if err := c.Control.RouteBy(c.Topology, router, plans[0].addrs[0].Masked()); err != nil {
		return err
	}
	var common map[string]file
	if o.CNI == Flannel {
		if common, err = c.admitFlannel(ctx); err != nil {
			return err
		}
	}
	for _, plan := range plans {
		if err := c.boot(ctx, image, plan, plans, o, common); err != nil {
			return err
		}
	}
	var group errgroup.Group
	for i, node := range c.nodes {
		group.Go(func() error { return c.join(ctx, node, plans[i].number) })
	}
	return group.Wait()
}

// plansOf are the plans of a topology's nodes, by which machines take the nodes' place.
func plansOf(whole *topo.Plan) []plan {
	var plans []plan
	for _, host := range whole.Hosts {
		if host.Role != topo.Node {
			continue
		}
		number := len(plans) + 1
		made := plan{name: host.Name, number: number, addrs: host.Ports[0].Addrs, podCIDRs: kube.PodCIDRsOfNumber(number)}
		for _, route := range host.Routes {
			if route.To.Bits() == 0 {
				made.gateways = append(made.gateways, route.Via)
			}
		}
		plans = append(plans, made)
	}
	return plans
}

// boot starts a node's machine, which has its own files and those of every node.
func (c *Cluster) boot(ctx context.Context, image Image, plan plan, all []plan, o Options, common map[string]file) error {
	ns, err := c.AddTap(lan, plan.tap())
	if err != nil {
		return err
	}
	credentials, err := c.Control.CredentialsOf(plan.name, plan.bare())
	if err != nil {
		return err
	}
	files, err := filesOf(plan, all, o, credentials)
	if err != nil {
		return err
	}
	maps.Copy(files, common)
	node, err := start(ctx, image, plan, files, ns, c.NS(router), c.dir)
	if err != nil {
		return err
	}
	c.nodes = append(c.nodes, node)
	return nil
}

// join waits until a node's kubelet has registered it, gives it its pods, and waits until it is ready.
func (c *Cluster) join(ctx context.Context, node *Node, number int) error {
	if err := node.awaitShell(ctx); err != nil {
		return err
	}
	_, err := retry(ctx, func() (*corev1.Node, error) {
		return c.Control.Client.CoreV1().Nodes().Get(ctx, node.Name, metav1.GetOptions{})
	})
	if err != nil {
		return fmt.Errorf("node %s: wait until its kubelet registers it: %w", node.Name, err)
	}
	if err := c.Control.GivePodCIDRs(ctx, node.Name, number); err != nil {
		return err
	}
	return c.AwaitReady(ctx, node)
}

// AwaitReady waits until a node's kubelet says that it is ready.
func (c *Cluster) AwaitReady(ctx context.Context, node *Node) error {
	_, err := retry(ctx, func() (struct{}, error) {
		object, err := c.Control.Client.CoreV1().Nodes().Get(ctx, node.Name, metav1.GetOptions{})
		if err != nil {
			return struct{}{}, err
		}
		for _, condition := range object.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				return struct{}{}, nil
			}
		}
		return struct{}{}, fmt.Errorf("node %s is not ready: %+v", node.Name, object.Status.Conditions)
	})
	return err
}

// Close pulls the plug of every node, ends the control plane, and removes all. It may be called twice.
func (c *Cluster) Close() error {
	var errs []error
	for _, node := range c.nodes {
		errs = append(errs, node.stop())
	}
	if c.Control != nil {
		errs = append(errs, c.Control.Close())
	}
	if c.Topology != nil {
		errs = append(errs, c.Topology.Close())
	}
	if c.dir != "" {
		errs = append(errs, os.RemoveAll(c.dir))
	}
	return errors.Join(errs...)
}

// Nodes are all nodes, node-a first.
func (c *Cluster) Nodes() []*Node { return slices.Clone(c.nodes) }

// Node is the node of that name. One that there is not is a mistake of the spec: it panics.
func (c *Cluster) Node(name string) *Node {
	for _, node := range c.nodes {
		if node.Name == name {
			return node
		}
	}
	panic(fmt.Sprintf("node: no machine %q", name))
}

// Fronts are a port of every node, by its addresses of these families.
func (c *Cluster) Fronts(port uint16, families ...topo.Families) []netip.AddrPort {
	var fronts []netip.AddrPort
	for _, node := range c.nodes {
		for _, family := range families {
			fronts = append(fronts, netip.AddrPortFrom(node.Addr(family), port))
		}
	}
	return fronts
}

// Import imports an image's archive on every node.
func (c *Cluster) Import(ctx context.Context, path string) error {
	var group errgroup.Group
	for _, node := range c.nodes {
		group.Go(func() error { return node.Import(ctx, path) })
	}
	return group.Wait()
}

// Kubectl runs kubectl as the administrator, in the root of the repository, and returns what it printed.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) (string, error) {
	root, err := checkout.Root()
	if err != nil {
		return "", err
	}
	out, err := c.Script(ctx, root, `exec kubectl "$@"`, args...)
	if err != nil {
		return out, fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return out, nil
}

// Script runs a script of sh(1) in a directory, on the administrator's own machine: kubectl is on its PATH and has the
// administrator's rights. It returns what was printed, both streams of it.
func (c *Cluster) Script(ctx context.Context, dir, script string, args ...string) (string, error) {
	binaries, err := kube.FindBinaries()
	if err != nil {
		return "", err
	}
	cmd := exec.Command("sh", append([]string{"-euc", script, "sh"}, args...)...)
	var out transcript.Transcript
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &out
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.admin, "PATH="+string(binaries)+string(filepath.ListSeparator)+os.Getenv("PATH"))
	err = c.Control.NS().Run(ctx, cmd)
	return out.String(), err
}

// Show has a collector show the cluster as it is when the spec has failed.
func (c *Cluster) Show(evidence *artifacts.Collector) {
	c.Control.Show(evidence)
	for _, node := range c.nodes {
		node.show(evidence)
	}
}
