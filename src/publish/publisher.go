// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"

	"golang.org/x/sync/errgroup"

	"github.com/beep-lb/beep/src/compile"
	"github.com/beep-lb/beep/src/model"
)

const (
	// writers is how many statuses are written at once.
	writers = 16
	// holdFor is how long a mass loss is held: so long after it, the nodes are lost indeed.
	holdFor = 15 * time.Minute
)

// Publisher writes the Services' published addresses and the Events about them, for as long as it is elected among
// all that run with the same Namespace.
type Publisher struct {
	Client kubernetes.Interface
	// Namespace holds the Leases.
	Namespace string
	// Node is the name of this node.
	Node string
	// How is what the operator wants.
	How compile.Publishing
	// Snapshot is what is known of the cluster; Changed receives when that changes.
	Snapshot func() (model.Snapshot, bool)
	Changed  <-chan struct{}
	// Reasons are why this node left something out: every node finds the same of Services.
	Reasons func() []compile.Reason
	// Loop calls do at receipts from changed, when do asks for it, and after its failures, until ctx ends.
	Loop func(ctx context.Context, do func(context.Context) (time.Time, error), changed <-chan struct{})
	// Observe is told what happens.
	Observe Observer
	Log     *slog.Logger

	// judged is what was last judged by while this node is elected; else nil.
	judged atomic.Pointer[judgement]
}

// Observer is told what a Publisher does; metrics are made of it.
type Observer interface {
	// Leading says whether this node is elected.
	Leading(is bool)
	// StatusWrite counts one write of a status: "written", "conflict" (another version is there), "refused" (the
	// Service is of another type or gone) or "failed".
	StatusWrite(result string)
	// Published says how many nodes are live, and how many of them are lost and held.
	Published(live, held int)
}

// term is the time of one election.
type term struct {
	*Publisher
	witness   *witness
	restraint *restraint
	events    *Events
	roster    *roster
	listing   *listing
	memory    compile.Memory
	// heldSince is when the mass loss began that is held; zero if there is none.
	heldSince time.Time
	// contested are the Services that somebody fights over, by UID, with the Event to tell of it.
	contested map[string]Event
	// complained is when a failure was logged.
	complained time.Time
}

func (p *Publisher) newTerm(before silence, changed func()) *term {
	return &term{
		Publisher: p, witness: newWitness(time.Now, before, changed), restraint: newRestraint(time.Now),
		events: NewEvents(p.Client.CoreV1(), p.Node), contested: map[string]Event{}, listing: newListing(),
		roster: &roster{leases: p.Client.CoordinationV1().Leases(p.Namespace), now: time.Now},
	}
}

// publish makes all statuses as they should be, as far as that is allowed now.
func (t *term) publish(ctx context.Context) (again time.Time, err error) {
	snapshot, complete := t.Snapshot()
	if !complete {
		return time.Time{}, nil
	}
	leases, again, complete := t.witness.leases(snapshot.Nodes, t.listing.take(snapshot.Services))
	if !complete {
		return time.Time{}, nil
	}
	if err := t.recall(ctx); err != nil {
		return time.Time{}, t.complain(ctx, err)
	}
	sooner := func(at time.Time) {
		if !at.IsZero() && (again.IsZero() || at.Before(again)) {
			again = at
		}
	}
	t.judged.Store(&judgement{leases, t.memory})
	published, reasons := compile.Publication(snapshot, leases, t.How, t.memory)
	t.memory = published.Memory
	// Before any status: whoever comes after a publisher that is lost in between must know what that one listed.
	attached, known := attachedOf(snapshot.Nodes, t.witness.attached()), t.listing.toRecall(t.memory.Known, published.Statuses)
	at, rosterErr := t.roster.write(ctx, attached, known)
	sooner(at)
	sooner(t.hold(published.Held))
	t.Observe.Published(len(published.Memory.Live), len(published.Held))
	t.restraint.keep(snapshot.Services)
	var due []compile.Status
	for _, status := range published.Statuses {
		if !status.Changed {
			continue
		}
		ok, at := t.restraint.may(status.Service, t.ours(status))
		if ok {
			due = append(due, status)
		}
		sooner(at)
	}
	err = t.writeAll(ctx, due)
	at, eventErr := t.events.Tell(ctx, t.about(snapshot, append(reasons, t.Reasons()...)))
	sooner(at)
	return again, t.complain(ctx, errors.Join(rosterErr, err, eventErr))
}

// complain logs a failure that goes on once in a while, and returns it.
func (t *term) complain(ctx context.Context, err error) error {
	if err != nil && ctx.Err() == nil && time.Since(t.complained) >= complainEvery {
		t.Log.Warn("not all is published, trying on", "error", err)
		t.complained = time.Now()
	}
	return err
}

// recall reads the roster if it is time to.
func (t *term) recall(ctx context.Context) error {
	known, err := t.roster.recall(ctx)
	if err != nil || len(known) == 0 {
		return err
	}
	known = append(known, t.memory.Known...)
	slices.SortFunc(known, netip.Addr.Compare)
	t.memory.Known = slices.Compact(known)
	return nil
}

// hold notes a mass loss, and ends it when it has lasted. It returns when to look again.
func (t *term) hold(held []string) time.Time {
	switch {
	case len(held) == 0:
		if !t.heldSince.IsZero() {
			t.Log.Info("the mass loss of nodes is over")
		}
		t.heldSince = time.Time{}
		return time.Time{}
	case t.heldSince.IsZero():
		t.heldSince = time.Now()
		t.Log.Warn("more than half of the nodes are lost at once, and stay published", "nodes", held, "for", holdFor)
	}
	until := t.heldSince.Add(holdFor)
	if time.Now().Before(until) {
		return until
	}
	t.Log.Warn("the lost nodes have not come back, and are withdrawn", "nodes", held)
	t.memory.Live = slices.DeleteFunc(t.memory.Live, func(node string) bool { return slices.Contains(held, node) })
	t.heldSince = time.Time{}
	return time.Now()
}

// writeAll writes the statuses, several at once. Each is one request, whatever comes of it.
func (t *term) writeAll(ctx context.Context, due []compile.Status) error {
	var lock sync.Mutex
	var errs []error
	var group errgroup.Group
	group.SetLimit(writers)
	for _, status := range due {
		group.Go(func() error {
			version, err := write(ctx, t.Client.CoreV1(), status.Service, status.Ingress)
			lock.Lock()
			defer lock.Unlock()
			if err := t.wrote(status, version, err); err != nil {
				errs = append(errs, err)
			}
			return nil
		})
	}
	group.Wait() //nolint:errcheck // it is nil: errs has them
	return errors.Join(errs...)
}

// wrote takes in what came of a write.
func (t *term) wrote(status compile.Status, version string, err error) error {
	service := status.Service
	switch {
	case err == nil:
		t.Observe.StatusWrite("written")
		t.Log.Info("published", "service", service.String(), "addresses", texts(status.Ingress))
		if t.restraint.wrote(service, t.ours(status)) {
			t.Log.Warn("somebody undoes the status of a Service again and again", "service", service.String())
			t.contested[service.UID] = contest(service)
		}
		if version == service.ResourceVersion {
			t.restraint.services[service.UID].stale = "" // the API server found nothing to change: no watch will tell
		}
		return nil
	case apierrors.IsConflict(err):
		t.Observe.StatusWrite("conflict")
	case apierrors.IsInvalid(err), apierrors.IsNotFound(err):
		t.Observe.StatusWrite("refused") // it is of another type by now, or gone
	default:
		t.Observe.StatusWrite("failed")
		return err
	}
	t.Log.Debug("a status waits for the watch", "service", service.String(), "error", err)
	t.restraint.old(service)
	return nil
}

// ours are the addresses of a status that nodes have or had, in its order.
func (t *term) ours(status compile.Status) []netip.Addr {
	var addrs []netip.Addr
	for _, entry := range status.Ingress {
		addr, err := netip.ParseAddr(entry.IP)
		if err != nil {
			continue
		}
		if _, known := slices.BinarySearchFunc(t.memory.Known, addr.Unmap(), netip.Addr.Compare); known {
			addrs = append(addrs, addr.Unmap())
		}
	}
	return addrs
}

// about makes Events of the reasons that are about Services, and of mass losses.
func (t *term) about(snapshot model.Snapshot, reasons []compile.Reason) []Event {
	services := make(map[model.ObjectKey]*model.Service, len(snapshot.Services))
	present := make(map[string]bool, len(snapshot.Services))
	for _, service := range snapshot.Services {
		services[service.ObjectKey] = service
		present[service.UID] = true
	}
	var events []Event
	for _, reason := range reasons {
		if !reason.Code.Event() {
			continue
		}
		if service := services[reason.Service]; service != nil {
			events = append(events, EventOf(OfService(service), reason))
		} else if reason.Code == compile.MassLossHeld {
			events = append(events, EventOf(OfNode(reason.Node), reason))
		}
	}
	for uid, event := range t.contested {
		if !present[uid] {
			delete(t.contested, uid)
			continue
		}
		events = append(events, event)
	}
	return events
}

// contest is the Event of a status that somebody undoes again and again.
func contest(service *model.Service) Event {
	return Event{OfService(service), compile.ForeignStatus.String(), "contested", fmt.Sprintf(
		"Service %s: somebody undoes what beep writes to status.loadBalancer, which it now writes ever more rarely; "+
			"have beep alone write it (disable the other load balancer), or give the Service its loadBalancerClass", service.ObjectKey)}
}

func texts(ingress []model.Ingress) []string {
	list := make([]string, 0, len(ingress))
	for _, entry := range ingress {
		list = append(list, entry.IP+entry.Hostname)
	}
	return list
}
