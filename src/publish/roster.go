// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcoordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/beep-lb/beep/src/model"
)

// RosterLease is the name of the Lease in whose annotations the publisher leaves what others need: the other nodes,
// which nodes are attached, and its successor, which addresses nodes had. Nobody renews it: it is written when one of
// the two changes.
const RosterLease = "beep-roster"

// What the roster says; lists are separated by commas. Both annotations are there once a publisher has written.
const (
	annotationAttachedNodes = "beep-lb/attached-nodes"
	annotationKnown         = "beep-lb/known-addresses"
	componentRoster         = "beep-roster"
)

const (
	// rosterLimit bounds each of the two, in bytes: all annotations together may have 256 KiB. That is for about 5,000
	// nodes; what is cut off is used last, and forgotten with the publisher.
	rosterLimit = 120 << 10
	// rosterEvery is the shortest time between two writes of which nodes are attached: in a cluster that starts they
	// come one by one, and every node reads every write.
	rosterEvery = time.Second
	// lookAtRoster is how often the publisher reads what it has written: somebody may have removed it.
	lookAtRoster = time.Minute
)

// roster keeps the Lease for one term.
type roster struct {
	leases typedcoordinationv1.LeaseInterface
	now    func() time.Time

	// held is the Lease as it was last read or written; nil if it is to be read.
	held *coordinationv1.Lease
	// read and written are when.
	read, written time.Time
}

// recall reads what the publisher before knew: at the beginning, after a write that failed, and else once a minute.
func (r *roster) recall(ctx context.Context) (known []netip.Addr, err error) {
	if r.held != nil && r.now().Sub(r.read) < lookAtRoster {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	held, err := r.leases.Get(ctx, RosterLease, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		held = &coordinationv1.Lease{}
	case err != nil:
		return nil, fmt.Errorf("read Lease %s: %w", RosterLease, err)
	}
	r.held, r.read = held, r.now()
	return knownOf(held), nil
}

// knownOf are the addresses in a roster, sorted. Words that cannot be read are left out.
func knownOf(lease *coordinationv1.Lease) []netip.Addr {
	var known []netip.Addr
	for word := range strings.SplitSeq(lease.Annotations[annotationKnown], ",") {
		if addr, err := netip.ParseAddr(word); err == nil {
			known = append(known, addr.Unmap())
		}
	}
	slices.SortFunc(known, netip.Addr.Compare)
	return known
}

// write writes the two lists if the Lease says otherwise. again is when to ask again, if it is too soon.
func (r *roster) write(ctx context.Context, attached []string, known []netip.Addr) (again time.Time, err error) {
	says := map[string]string{
		annotationAttachedNodes: cut(strings.Join(attached, ","), rosterLimit),
		annotationKnown:         cut(join(known, netip.Addr.String), rosterLimit),
	}
	changed := func(annotation string) bool {
		now, there := r.held.Annotations[annotation]
		return !there || now != says[annotation]
	}
	if !changed(annotationKnown) {
		if !changed(annotationAttachedNodes) {
			return time.Time{}, nil
		}
		if at := r.written.Add(rosterEvery); r.now().Before(at) {
			return at, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	next := r.held.DeepCopy()
	next.Name = RosterLease
	next.Labels = map[string]string{labelComponent: componentRoster}
	next.Annotations = says
	if next.ResourceVersion == "" {
		next, err = r.leases.Create(ctx, next, metav1.CreateOptions{})
	} else {
		next, err = r.leases.Update(ctx, next, metav1.UpdateOptions{})
	}
	if err != nil {
		r.held = nil // whoever wrote it meanwhile knows something too
		return time.Time{}, fmt.Errorf("write Lease %s: %w", RosterLease, err)
	}
	r.held, r.written = next, r.now()
	return time.Time{}, nil
}

// cut shortens a list to a number of bytes, at a comma.
func cut(list string, limit int) string {
	if len(list) <= limit {
		return list
	}
	return list[:max(0, strings.LastIndexByte(list[:limit+1], ','))]
}

// attachedOf are the names of the Nodes whose Lease says that they are attached, sorted.
func attachedOf(nodes []*model.Node, attached map[string]bool) []string {
	var names []string
	for _, node := range nodes {
		if attached[node.Name] {
			names = append(names, node.Name)
		}
	}
	slices.Sort(names)
	return names
}
