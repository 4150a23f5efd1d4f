// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	typedcoordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/beep-lb/beep/src/compile"
	"github.com/beep-lb/beep/src/datapath/attach"
	"github.com/beep-lb/beep/src/datapath/pinfs"
	"github.com/beep-lb/beep/src/model"
	"github.com/beep-lb/beep/src/nodeprep"
	"github.com/beep-lb/beep/src/publish"
	"github.com/beep-lb/beep/src/reconcile"
	"github.com/beep-lb/beep/src/watch"
)

// voice is this node's part in the cluster. It hears of the seed and of which nodes are attached, and tells of this
// node: by its Lease, by Events about the Node, and, if it is elected, by the Services' statuses.
type voice struct {
	c         *controller
	secrets   typedcorev1.SecretInterface
	leases    typedcoordinationv1.LeaseInterface
	self      compile.Self
	lease     *publish.NodeLease
	publisher *publish.Publisher
	events    *publish.Events
	// last is what the worker came to; nil before its first success.
	last atomic.Pointer[outcome]
	// news receives when last is another, and begun is closed with the first.
	news, begun chan struct{}
	// doubts counts how many looks in a row found the datapath detached.
	doubts atomic.Int32
	// trouble is why the maps are not as desired; nil if they are, as far as the Services fit.
	trouble atomic.Pointer[trouble]
}

// errDetached is a datapath whose programs are on no uplink.
var errDetached = errors.New("the datapath is not attached: see beep status")

// trouble is a failure that goes on.
type trouble struct {
	since time.Time
	err   error
}

const (
	// lookAtLinks is how often it is looked whether the datapath is attached, and detachedAfter how many looks in a
	// row must find that it is not: a device that is made anew is attached again within a moment.
	lookAtLinks   = 2 * time.Second
	detachedAfter = 5
	// troubledAfter is how long the maps may resist before a person must know: an upgrade of beep run takes less.
	troubledAfter = 15 * time.Second
	// mapRestoreFailed is the reason of the Event about it.
	mapRestoreFailed = "MapRestoreFailed"
	// ipvsUnsupported is that of the Event about a kube-proxy beside which nothing may be published.
	ipvsUnsupported = "IPVSUnsupported"
)

// newVoice prepares one; beep lives in the namespace unless the flags say otherwise.
func newVoice(c *controller, client kubernetes.Interface, namespace string, source watch.Source) *voice {
	namespace = cmp.Or(c.flags.SeedNamespace, namespace)
	v := &voice{c: c, self: selfOf(c.flags), secrets: client.CoreV1().Secrets(namespace), news: make(chan struct{}, 1),
		begun: make(chan struct{})}
	namespace = cmp.Or(c.flags.LeaseNamespace, namespace)
	v.leases = client.CoordinationV1().Leases(namespace)
	v.lease = publish.NewNodeLease(v.leases, c.log)
	v.events = publish.NewEvents(client.CoreV1(), c.flags.NodeName)
	v.publisher = &publish.Publisher{
		Client: client, Namespace: namespace, Node: c.flags.NodeName, How: publishingOf(c.flags),
		Snapshot: source.Snapshot, Changed: source.Changed(), Reasons: v.reasons, Loop: loop, Observe: c.told, Log: c.log,
	}
	start := time.Now()
	c.told.LeaseAge(func() time.Duration {
		if renewed := v.lease.Renewed(); renewed.After(start) {
			return time.Since(renewed)
		}
		return time.Since(start)
	})
	return v
}

// loop has a runner work for a publisher.
func loop(ctx context.Context, do func(context.Context) (time.Time, error), changed <-chan struct{}) {
	(&reconcile.Runner{Do: do}).Run(ctx, changed)
}

// join readies the worker, which has then heard what it must know before its first run, and speaks and listens in the
// group. woken is called when there is something new to hear.
func (v *voice) join(ctx context.Context, group *errgroup.Group, w *worker, woken func()) error {
	seed, err := publish.OpenSeed(ctx, v.secrets, v.c.log, v.c.ready.because)
	if err != nil {
		return err
	}
	peers, err := publish.OpenPeers(ctx, v.leases, v.c.log, v.c.ready.because)
	if err != nil {
		return err
	}
	w.seed, w.mark = seed.Value, peers.Mark
	group.Go(func() error { seed.Run(ctx, woken); return nil })
	group.Go(func() error { peers.Run(ctx, woken); return nil })
	group.Go(func() error { return v.run(ctx) })
	return nil
}

// run speaks until ctx ends.
func (v *voice) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { v.lease.Run(ctx); return nil })
	group.Go(func() error { v.watchLinks(ctx); return nil })
	group.Go(func() error { return v.publish(ctx) })
	group.Go(func() error { loop(ctx, v.tell, v.news); return nil })
	return group.Wait()
}

// publish stands for election as soon as there is something to publish by: whoever waits for a list would be elected
// in vain, and nothing is to be written before the lists are there.
func (v *voice) publish(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-v.begun:
		return v.publisher.Run(ctx)
	}
}

// say takes in what the worker came to.
func (v *voice) say(o outcome) error {
	if v.last.Swap(&o) == nil {
		close(v.begun)
		if v.unfit(context.Background()) != nil {
			v.doubts.Store(detachedAfter) // there is nothing to be patient for
		}
	}
	ring(v.news)
	v.state()
	return nil
}

// failed takes in what a run of the worker failed with; nil if it did not.
func (v *voice) failed(err error) {
	was := v.trouble.Load()
	switch {
	case err == nil && was == nil:
		return
	case err == nil:
		v.trouble.Store(nil)
	case was == nil:
		v.trouble.Store(&trouble{time.Now(), err})
	default:
		v.trouble.Store(&trouble{was.since, err})
	}
	ring(v.news)
}

// state has the Lease say how this node is.
func (v *voice) state() {
	last := v.last.Load()
	if last == nil {
		return
	}
	for _, node := range last.snapshot.Nodes {
		if node.Name == v.self.Node {
			v.lease.Say(model.Lease{
				Node: node.Name, Addresses: compile.Addresses(last.snapshot, v.self),
				Attached: v.doubts.Load() < detachedAfter, Refused: last.refused,
			}, node.UID)
		}
	}
}

// watchLinks looks at the datapath's links until ctx ends.
func (v *voice) watchLinks(ctx context.Context) {
	ticks := time.NewTicker(lookAtLinks)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		err := v.unfit(ctx)
		switch {
		case err == nil:
			if v.doubts.Swap(0) >= detachedAfter {
				v.c.log.Info("the datapath is attached")
				v.state()
				ring(v.news)
			}
		case v.doubts.Add(1) == detachedAfter:
			v.c.log.Warn("this node leaves the Services", "error", err)
			v.state()
			ring(v.news)
		}
	}
}

// unfit is why nobody should be sent to this node; nil if it is fit. IPVS is looked for here too: on a node that has
// just started, kube-proxy may start after node-prep has looked.
func (v *voice) unfit(ctx context.Context) error {
	if err := v.attached(); err != nil {
		return err
	}
	return nodeprep.CheckIPVS(ctx)
}

// attached fails unless an uplink has both programs.
func (v *voice) attached() error {
	dir, err := pinfs.Open(v.c.flags.PinDir)
	if err != nil {
		return err
	}
	links, err := attach.Attached(dir)
	if err != nil {
		return err
	}
	sides := map[int]int{}
	for _, link := range links {
		if !link.Severed {
			sides[link.Ifindex]++
		}
	}
	for _, count := range sides {
		if count == 2 {
			return nil
		}
	}
	return errDetached
}

// reasons are why this node left something out.
func (v *voice) reasons() []compile.Reason {
	if last := v.last.Load(); last != nil {
		return last.reasons
	}
	return nil
}

// tell writes the Events about this Node: nobody else knows of them.
func (v *voice) tell(ctx context.Context) (time.Time, error) {
	about := publish.OfNode(v.self.Node)
	var events []publish.Event
	var soon time.Time
	if last := v.last.Load(); last != nil {
		events = v.about(about, last)
	}
	if now := v.trouble.Load(); now != nil {
		if soon = now.since.Add(troubledAfter); !time.Now().Before(soon) {
			soon = time.Time{}
			events = append(events, publish.Event{About: about, Reason: mapRestoreFailed, Message: fmt.Sprintf(
				"Node %s: its maps cannot be brought to what the Services ask for: %v; see `beep status` there, and whether beep run runs",
				v.self.Node, now.err)})
		}
	}
	if err := nodeprep.CheckIPVS(ctx); err != nil {
		events = append(events, publish.Event{About: about, Reason: ipvsUnsupported, Message: fmt.Sprintf("Node %s: %v", v.self.Node, err)})
	}
	again, err := v.events.Tell(ctx, events)
	if again.IsZero() || !soon.IsZero() && soon.Before(again) {
		again = soon
	}
	return again, err
}

// about makes Events of what a run came to, as far as it is about this Node.
func (v *voice) about(node corev1.ObjectReference, last *outcome) []publish.Event {
	var events []publish.Event
	for _, reason := range last.reasons {
		if reason.Code.Event() && reason.Node == v.self.Node && reason.Service.Name == "" {
			events = append(events, publish.EventOf(node, reason))
		}
	}
	for _, service := range last.refused {
		event := publish.EventOf(node, compile.Reason{Code: compile.MapFull, Service: service, Node: v.self.Node})
		event.Key = service.String()
		events = append(events, event)
	}
	return events
}
