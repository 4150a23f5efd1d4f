// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/beep-lb/beep/src/model"
)

// Cluster is a Source of an API server. It lists and watches the Services of type LoadBalancer, the EndpointSlices
// that are not headless, and the Nodes; while the API server is away, what was known stays.
type Cluster struct {
	bell
	services *table[*corev1.Service, *model.Service]
	slices   *table[*discoveryv1.EndpointSlice, *model.Slice]
	nodes    *table[*corev1.Node, *model.Node]
	feeds    []func(context.Context)
}

// Expectations are what a list is judged by that says more than it should.
type Expectations struct {
	// Node is the name of this node: a list without it is held back.
	Node string
	// Serving says that the maps hold fronts: a list without any Service is held back.
	Serving func() bool
}

// NewCluster prepares to watch. Nothing is asked of the API server before Run.
func NewCluster(client kubernetes.Interface, expect Expectations, log *slog.Logger) *Cluster {
	c := &Cluster{
		services: &table[*corev1.Service, *model.Service]{
			kind: "Services", strip: stripService, convert: convertService,
			weigh: func(*model.Service) int { return 1 },
			doubt: func(list map[string]*model.Service) string {
				if len(list) == 0 && expect.Serving() {
					return "none is left, and the maps hold fronts"
				}
				return ""
			},
		},
		slices: &table[*discoveryv1.EndpointSlice, *model.Slice]{
			kind: "EndpointSlices", strip: stripSlice, convert: convertSlice,
			weigh: func(slice *model.Slice) int { return len(slice.Endpoints) },
		},
		nodes: &table[*corev1.Node, *model.Node]{
			kind: "Nodes", strip: stripNode, convert: convertNode,
			weigh: func(*model.Node) int { return 1 },
			doubt: func(list map[string]*model.Node) string {
				if _, known := list[expect.Node]; !known {
					return "this node, " + expect.Node + ", is not among them"
				}
				return ""
			},
		},
	}
	onlyBalanced := func(options *metav1.ListOptions) {
		options.FieldSelector = "spec.type=" + string(corev1.ServiceTypeLoadBalancer)
	}
	notHeadless := func(options *metav1.ListOptions) { options.LabelSelector = "!" + labelHeadless }
	all := func(*metav1.ListOptions) {}
	core, discovery := client.CoreV1(), client.DiscoveryV1()
	c.feeds = []func(context.Context){
		feed(c.services, &corev1.Service{}, resource{adapt(core.Services("").List), core.Services("").Watch, onlyBalanced}, &c.bell, log),
		feed(c.slices, &discoveryv1.EndpointSlice{},
			resource{adapt(discovery.EndpointSlices("").List), discovery.EndpointSlices("").Watch, notHeadless}, &c.bell, log),
		feed(c.nodes, &corev1.Node{}, resource{adapt(core.Nodes().List), core.Nodes().Watch, all}, &c.bell, log),
	}
	return c
}

// adapt hides the type of a list.
func adapt[L runtime.Object](list func(context.Context, metav1.ListOptions) (L, error)) listFunc {
	return func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return list(ctx, options)
	}
}

// Run watches until ctx ends.
func (c *Cluster) Run(ctx context.Context) {
	var group sync.WaitGroup
	for _, run := range c.feeds {
		group.Go(func() { run(ctx) })
	}
	group.Wait()
}

// Snapshot returns what is known.
func (c *Cluster) Snapshot() (model.Snapshot, bool) {
	services, complete1 := c.services.values()
	slices, complete2 := c.slices.values()
	nodes, complete3 := c.nodes.values()
	return model.Snapshot{Services: services, Slices: slices, Nodes: nodes}, complete1 && complete2 && complete3
}

// Fault says which lists are not as the API server has them, and why.
func (c *Cluster) Fault() error {
	return errors.Join(c.services.fault(), c.slices.fault(), c.nodes.fault())
}

// String names the source for a person.
func (c *Cluster) String() string { return "the API server" }
