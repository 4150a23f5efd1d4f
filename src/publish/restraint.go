// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"net/netip"
	"slices"
	"time"

	"github.com/beep-lb/beep/src/model"
)

const (
	// contestedAfter is how many times in a row the same must be undone by somebody before it is a fight.
	contestedAfter = 3
	// firstRest and longestRest bound the time between two writes of what somebody undoes.
	firstRest   = time.Second
	longestRest = 5 * time.Minute
	// forgotten is after how long without a write of the same a fight is over.
	forgotten = 2 * longestRest
)

// restraint says when a status may be written: never on what is known to be old, and ever less often against somebody
// who undoes it.
type restraint struct {
	now func() time.Time
	// services are by UID.
	services map[string]*record
}

// record is what was done about one Service.
type record struct {
	// stale is the version that is known to be old: the watch has still to bring what was written after it.
	stale string
	// ours are the addresses that were written last, and last is when.
	ours []netip.Addr
	last time.Time
	// undone is how many times in a row the same was written.
	undone int
}

func newRestraint(now func() time.Time) *restraint {
	return &restraint{now: now, services: map[string]*record{}}
}

// keep forgets the Services that are no more.
func (r *restraint) keep(services []*model.Service) {
	there := make(map[string]bool, len(services))
	for _, service := range services {
		there[service.UID] = true
	}
	for uid := range r.services {
		if !there[uid] {
			delete(r.services, uid)
		}
	}
}

// may says whether the Service's status may be written now. If not, at is when to ask again; zero is when the watch
// brings something.
func (r *restraint) may(service *model.Service, ours []netip.Addr) (ok bool, at time.Time) {
	record := r.services[service.UID]
	if record == nil {
		return true, time.Time{}
	}
	if record.stale == service.ResourceVersion {
		return false, time.Time{}
	}
	if !slices.Equal(record.ours, ours) || r.now().Sub(record.last) >= forgotten {
		return true, time.Time{}
	}
	if at = record.last.Add(rest(record.undone)); r.now().Before(at) {
		return false, at
	}
	return true, time.Time{}
}

// rest is the time between two writes of the same.
func rest(undone int) time.Duration {
	if undone < 2 {
		return 0 // a type that flips and flips back is no fight
	}
	return min(longestRest, firstRest<<min(undone-2, 16))
}

// wrote notes a write of ours upon a version. contested says that somebody fights it, and only once a fight.
func (r *restraint) wrote(service *model.Service, ours []netip.Addr) (contested bool) {
	before := r.services[service.UID]
	next := &record{stale: service.ResourceVersion, ours: ours, last: r.now(), undone: 1}
	if before != nil && slices.Equal(before.ours, ours) && r.now().Sub(before.last) < forgotten {
		next.undone = before.undone + 1
	}
	r.services[service.UID] = next
	return next.undone == contestedAfter+1
}

// old notes that a version was refused: another one is there, or nothing.
func (r *restraint) old(service *model.Service) {
	if r.services[service.UID] == nil {
		r.services[service.UID] = &record{}
	}
	r.services[service.UID].stale = service.ResourceVersion
}
