// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	typedcoordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/beep-lb/beep/src/model"
)

// Peers knows which nodes' beep is attached, as the publisher last wrote it into the roster. A node watches that one
// Lease and not everybody's, of which every renewal would reach every node. Its methods may be called from any
// goroutine, but Mark, which is for one.
type Peers struct {
	leases typedcoordinationv1.LeaseInterface

	lock sync.Mutex
	// text is the list as it is written, and attached what it says; nil if no publisher has written one.
	text     string
	attached map[string]bool
	changed  func()

	// marked are the copies that Mark has made, by the Node they are of.
	marked map[*model.Node]*model.Node
}

var _ cache.ReflectorStore = (*Peers)(nil)

// OpenPeers reads the roster. It waits for an API server that cannot be reached, telling waits why, and fails if the
// right is missing.
func OpenPeers(
	ctx context.Context, leases typedcoordinationv1.LeaseInterface, log *slog.Logger, waits func(error),
) (*Peers, error) {
	p := &Peers{leases: leases, changed: func() {}}
	return p, insist(ctx, log.With("for", "the roster of nodes"), waits, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		lease, err := leases.Get(ctx, RosterLease, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil // no publisher has been there yet
		}
		if err != nil {
			return fmt.Errorf("read Lease %s: %w", RosterLease, err)
		}
		return p.Update(lease)
	})
}

// Run follows the roster until ctx ends, and calls changed when it says something else.
func (p *Peers) Run(ctx context.Context, changed func()) {
	p.lock.Lock()
	p.changed = changed
	p.lock.Unlock()
	only := fields.OneTermEqualSelector(metav1.ObjectNameField, RosterLease).String()
	ask := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = only
			return p.leases.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = only
			return p.leases.Watch(ctx, options)
		},
	}
	cache.NewReflectorWithOptions(ask, &coordinationv1.Lease{}, p, cache.ReflectorOptions{Name: "roster"}).RunWithContext(ctx)
}

// Mark returns the nodes with Detached set on those that are not known to be attached, and the others as they are. As
// long as no publisher has written a roster, nobody is marked. A Node that is passed again is marked by the same copy.
func (p *Peers) Mark(nodes []*model.Node) []*model.Node {
	p.lock.Lock()
	attached := p.attached
	p.lock.Unlock()
	earlier := p.marked
	p.marked = map[*model.Node]*model.Node{}
	if attached == nil {
		return nodes
	}
	marked := make([]*model.Node, 0, len(nodes))
	for _, node := range nodes {
		if attached[node.Name] {
			marked = append(marked, node)
			continue
		}
		copied := earlier[node]
		if copied == nil {
			other := *node
			other.Detached = true
			copied = &other
		}
		p.marked[node] = copied
		marked = append(marked, copied)
	}
	return marked
}

// Replace takes in the list of at most one Lease. One that is gone changes nothing: the next publisher writes it again.
func (p *Peers) Replace(objects []interface{}, _ string) error {
	for _, object := range objects {
		if err := p.Update(object); err != nil {
			return err
		}
	}
	return nil
}

// Add takes in the Lease that was created.
func (p *Peers) Add(object interface{}) error { return p.Update(object) }

// Update takes in the Lease that was written.
func (p *Peers) Update(object interface{}) error {
	lease, ok := object.(*coordinationv1.Lease)
	if !ok {
		return fmt.Errorf("roster: the API server sent a %T", object)
	}
	text, written := lease.Annotations[annotationAttachedNodes]
	p.lock.Lock()
	defer p.lock.Unlock()
	if !written || p.attached != nil && text == p.text {
		return nil
	}
	p.text, p.attached = text, map[string]bool{}
	for name := range strings.SplitSeq(text, ",") {
		p.attached[name] = true
	}
	p.changed()
	return nil
}

// Delete changes nothing, see Replace.
func (p *Peers) Delete(interface{}) error { return nil }

// Resync has nothing to do.
func (p *Peers) Resync() error { return nil }
