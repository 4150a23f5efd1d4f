// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/beep-lb/beep/src/model"
)

const (
	// lostAfter is how long a node is live after the last renewal that was seen.
	lostAfter = leaseDuration * time.Second
	// lateAfter is after how long two renewals were missed.
	lateAfter = 2*renewEvery + renewEvery/2
	// leaveAfter is how long after it was given up a Lease counts: whoever restarts is back before. It is shorter for
	// a witness that has just begun, since the Lease may have been given up while there was none: an election takes
	// up to 2.4 s.
	leaveAfter      = 4200 * time.Millisecond
	leaveAfterFirst = 2500 * time.Millisecond
	// gather is the time in which nodes that appear are brought into the lists together, so that a cluster that starts
	// does not write every status once a node; and provedAfter is when everybody alive has renewed.
	gather      = 3 * time.Second
	provedAfter = renewEvery + time.Second
)

// witness notes when the renewals of Leases are seen, by its own clock alone: those of other nodes may be wrong. It
// sees for one term of a publisher, and is the store of a client-go reflector.
type witness struct {
	now     func() time.Time
	changed func()
	// before is a node whose silence was seen before it began.
	before silence

	lock  sync.Mutex
	began time.Time
	// complete says that the list of Leases was read.
	complete bool
	nodes    map[string]*sighting
	// asked says that it was found out whether any node was listed when it began.
	asked bool
}

// sighting is what was seen of a node's Lease.
type sighting struct {
	says    model.Lease
	renewed string // spec.renewTime, only compared
	at      time.Time
	// proven says that a renewal was seen, and not only a Lease that may be old.
	proven bool
	// first says that it was in the first list.
	first bool
	// joins is when the Lease may bring its node into lists.
	joins time.Time
	// left is when it was first seen that the Lease was given up, and waits how long it counts on.
	left  time.Time
	waits time.Duration
	// deleted says that there is no such Lease any more; whoever is alive writes it again.
	deleted bool
}

var _ cache.ReflectorStore = (*witness)(nil)

func newWitness(now func() time.Time, before silence, changed func()) *witness {
	return &witness{now: now, before: before, changed: changed, began: now(), nodes: map[string]*sighting{}}
}

// see takes in one Lease; first says that it is of the first list, in which it may have been lying for long.
func (w *witness) see(object interface{}, first bool) error {
	lease, ok := object.(*coordinationv1.Lease)
	if !ok {
		return fmt.Errorf("list of Leases: the API server sent a %T", object)
	}
	says, renewed := readStatement(lease), fmt.Sprint(lease.Spec.RenewTime)
	seen, known := w.nodes[says.Node]
	if !known {
		seen = &sighting{at: w.now(), proven: !first, first: first, joins: w.began.Add(provedAfter)}
		if first && says.Node == w.before.node {
			seen.at = w.before.since
		}
		if !first {
			waves := (w.now().Sub(w.began) + gather - 1) / gather
			seen.joins = w.began.Add(waves * gather)
		}
		w.nodes[says.Node] = seen
	} else if renewed != seen.renewed {
		seen.at, seen.proven = w.now(), true
	}
	if says.Left && !seen.says.Left {
		seen.left, seen.waits = w.now(), leaveAfter
		if first {
			seen.waits = leaveAfterFirst
		}
	}
	seen.says, seen.renewed, seen.deleted = says, renewed, false
	return nil
}

// Replace takes in the list.
func (w *witness) Replace(objects []interface{}, _ string) error {
	w.lock.Lock()
	defer w.changed()
	defer w.lock.Unlock()
	for _, seen := range w.nodes {
		seen.deleted = true
	}
	for _, object := range objects {
		if err := w.see(object, !w.complete); err != nil {
			return err
		}
	}
	w.complete = true
	return nil
}

// Add takes in a Lease that was created.
func (w *witness) Add(object interface{}) error { return w.Update(object) }

// Update takes in a Lease that was written. It tells of it only if it says something else.
func (w *witness) Update(object interface{}) error {
	w.lock.Lock()
	defer w.lock.Unlock()
	lease, ok := object.(*coordinationv1.Lease)
	news := true
	if ok {
		seen, known := w.nodes[lease.Name]
		says := readStatement(lease)
		news = !known || !seen.proven || w.now().Sub(seen.at) >= lateAfter || !seen.says.Equal(&says)
	}
	if err := w.see(object, false); err != nil {
		return err
	}
	if news {
		w.changed()
	}
	return nil
}

// Delete notes that a Lease is gone. The node is lost only when its time is over.
func (w *witness) Delete(object interface{}) error {
	key, err := cache.DeletionHandlingObjectToName(object)
	if err != nil {
		return fmt.Errorf("list of Leases: %w", err)
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	if seen, known := w.nodes[key.Name]; known {
		seen.deleted = true
		w.changed()
	}
	return nil
}

// Resync has nothing to do.
func (w *witness) Resync() error { return nil }

// leases are those that count now, and when to ask again if nothing is seen until then. listed are the addresses in
// any status: a Lease that may be old counts for a node that is listed, and brings none into a list, unless nobody is
// listed at all. For as long as a Lease lasts, a node that is listed and has none counts too.
func (w *witness) leases(nodes []*model.Node, listed map[netip.Addr]bool) (live []*model.Lease, next time.Time, ok bool) {
	w.lock.Lock()
	defer w.lock.Unlock()
	if !w.complete {
		return nil, time.Time{}, false
	}
	now := w.now()
	consider := func(at time.Time) {
		if at.After(now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	isListed := func(addrs []netip.Addr) bool {
		return slices.ContainsFunc(addrs, func(addr netip.Addr) bool { return listed[addr] })
	}
	if !w.asked {
		w.asked = true
		cold := true
		for _, seen := range w.nodes {
			cold = cold && !isListed(seen.says.Addresses)
		}
		for _, seen := range w.nodes {
			if cold && seen.first { // nobody is kept out; others are about to appear
				seen.proven, seen.joins = true, w.began.Add(gather)
			}
		}
	}
	for name, seen := range w.nodes {
		if now.Sub(seen.at) >= lostAfter {
			if seen.deleted {
				delete(w.nodes, name)
			}
			continue
		}
		consider(seen.at.Add(lostAfter))
		consider(seen.at.Add(lateAfter))
		if !isListed(seen.says.Addresses) && !w.mayJoin(seen, now) {
			consider(seen.joins)
			continue
		}
		lease := seen.says
		lease.Late = now.Sub(seen.at) >= lateAfter
		if until := seen.left.Add(seen.waits); lease.Left && now.Before(until) {
			lease.Left = false
			consider(until)
		}
		live = append(live, &lease)
	}
	live = append(live, w.unheard(nodes, isListed, now)...)
	consider(w.began.Add(lostAfter))
	slices.SortFunc(live, func(a, b *model.Lease) int { return cmp.Compare(a.Node, b.Node) })
	return live, next, true
}

// attached are the nodes whose Lease says that their datapath is attached, however old it is: one whose controller is
// gone forwards on. A Lease goes with its Node.
func (w *witness) attached() map[string]bool {
	w.lock.Lock()
	defer w.lock.Unlock()
	nodes := make(map[string]bool, len(w.nodes))
	for name, seen := range w.nodes {
		if seen.says.Attached && !seen.deleted {
			nodes[name] = true
		}
	}
	return nodes
}

// mayJoin says whether a Lease may bring its node into lists.
func (w *witness) mayJoin(seen *sighting, now time.Time) bool {
	return seen.proven && !now.Before(seen.joins)
}

// unheard are the nodes that are listed and have no Lease, for as long as one would last.
func (w *witness) unheard(nodes []*model.Node, isListed func([]netip.Addr) bool, now time.Time) (live []*model.Lease) {
	if !now.Before(w.began.Add(lostAfter)) {
		return nil
	}
	for _, node := range nodes {
		addrs := slices.Concat(node.InternalIPs, node.ExternalIPs)
		if _, seen := w.nodes[node.Name]; !seen && isListed(addrs) {
			live = append(live, &model.Lease{Node: node.Name, Addresses: addrs, Attached: true})
		}
	}
	return live
}
