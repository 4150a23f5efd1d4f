// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// identitySeparator ends a node's name in the identity of a candidate; no name of a Node has it (RFC 1123).
const identitySeparator = "_"

// ElectionLease is the name of the Lease that the publisher holds.
const ElectionLease = "beep-publisher"

// The times of the election are client-go's own.
const (
	electionLease = 15 * time.Second
	electionRenew = 10 * time.Second
	electionRetry = 2 * time.Second
)

// Run takes part in the election, and publishes for as long as this node is elected, until ctx ends. Then it gives the
// election up, so that another one begins at once.
func (p *Publisher) Run(ctx context.Context) error {
	for {
		if err := p.stand(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(jittered(electionRetry)):
		}
	}
}

// stand takes part in one election, to the end of a term that it wins.
func (p *Publisher) stand(ctx context.Context) error {
	// A process that comes after one of the same node is another candidate.
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, p.Namespace, ElectionLease, p.Client.CoreV1(), p.Client.CoordinationV1(),
		resourcelock.ResourceLockConfig{Identity: p.Node + identitySeparator + rand.Text()[:8]})
	if err != nil {
		return fmt.Errorf("election of the publisher: %w", err)
	}
	watched := &vigil{Interface: lock, now: time.Now}
	// client-go starts the callback and does not wait for it.
	started, over := make(chan context.Context, 1), make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: watched, Name: ElectionLease, ReleaseOnCancel: true,
		LeaseDuration: electionLease, RenewDeadline: electionRenew, RetryPeriod: electionRetry,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(term context.Context) { started <- term },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("election of the publisher: %w", err)
	}
	var group sync.WaitGroup
	group.Go(func() {
		select {
		case term := <-started:
			p.lead(term, watched.before())
		case <-over:
		}
	})
	elector.Run(ctx)
	close(over)
	group.Wait()
	return nil
}

// lead publishes until ctx, which is the term, ends. Before is who has published before and was silent.
func (p *Publisher) lead(ctx context.Context, before silence) {
	p.Log.Info("elected: this node publishes the Services' addresses")
	p.Observe.Leading(true)
	defer func() {
		p.judged.Store(nil)
		p.Observe.Leading(false)
		p.Log.Info("no longer elected")
	}()
	wake := make(chan struct{}, 1)
	ring := func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
	t := p.newTerm(before, ring)
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() { t.watchLeases(ctx) })
	group.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-p.Changed:
				ring()
			}
		}
	})
	p.Loop(ctx, t.publish, wake)
}

// watchLeases has the witness see the Leases of the nodes until ctx ends.
func (t *term) watchLeases(ctx context.Context) {
	leases := t.Client.CoordinationV1().Leases(t.Namespace)
	const ofNodes = labelComponent + "=" + componentNode
	ask := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = ofNodes
			return leases.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = ofNodes
			return leases.Watch(ctx, options)
		},
	}
	cache.NewReflectorWithOptions(ask, &coordinationv1.Lease{}, t.witness, cache.ReflectorOptions{Name: "Leases"}).RunWithContext(ctx)
}
