// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/beep-lb/beep/src/datapath/maps"
	"github.com/beep-lb/beep/src/model"
)

// Grace is how long the rows of a generation outlive it: a program may have read FRONT_META just before the flip.
const Grace = 2 * time.Second

// ReadAgain is for how long Apply believes what it remembers of the maps.
const ReadAgain = 10 * time.Minute

// Reconciler applies plans to the maps of one node, and remembers what it must still clean up. It is for one
// goroutine; whoever uses it holds the pin directory's lock.
type Reconciler struct {
	maps maps.Maps
	now  func() time.Time
	// retired tells since when a generation is in force no more.
	retired map[Generation]time.Time
	// failed is when the last Apply failed; zero if it did not.
	failed time.Time
	// distrust says that a peer, a target or a source range may be gone without a new epoch.
	distrust bool
	// first draws numbers for State.First.
	first func() uint32
	// image is what the maps hold; nil if that is to be read from them.
	image *image
}

// New returns a reconciler. now is the clock, time.Now outside of tests. What an earlier process left behind is
// known to nobody any more, so the first Apply collects it at once; and raises the epoch, since that process may have
// ended between taking trust from somebody and saying so.
func New(m maps.Maps, now func() time.Time) *Reconciler {
	return &Reconciler{maps: m, now: now, retired: map[Generation]time.Time{}, distrust: true, first: firstGeneration}
}

// firstGeneration leaves room to count up from it.
func firstGeneration() uint32 { return 1 + rand.Uint32N(1<<31) }

// Apply makes the maps as desired, as far as they can hold it, and returns the steps that were made. It may be
// called at any time, and makes no step where nothing differs. The error joins everything that was refused by Plan
// and every step that failed; a step that failed left its object as it was, and is not returned, unless only the
// removal of what it replaced failed. Apply again when Due says so.
//
// What the lists in desired hold must not change any more: the next Apply finds what differs by comparing with them,
// and costs time by that alone. The maps are read as a whole the first time, after a write that failed, and at the first change
// that comes ReadAgain after the last time, in case somebody else wrote them.
func (r *Reconciler) Apply(desired model.Desired) ([]Step, error) {
	done, err := r.apply(desired)
	r.failed = time.Time{}
	if err != nil {
		r.failed = r.now()
	}
	return done, err
}

func (r *Reconciler) apply(desired model.Desired) ([]Step, error) {
	part, actual, err := r.look(desired)
	if err != nil {
		return nil, err
	}
	actual.Held, actual.Distrust, actual.First = r.held(), r.distrust, r.first()
	p := newPlanner(part, actual)
	steps, refused := p.plan()
	done, err := r.make(steps)
	if err != nil || !r.image.update(desired, p, done, r.retired) {
		r.image = nil
	}
	return done, errors.Join(refused, err)
}

// look returns what of the desired state is not in the maps, and the maps but for what stays; or all of both.
func (r *Reconciler) look(desired model.Desired) (part model.Desired, actual State, err error) {
	if r.image != nil && r.now().Sub(r.image.read) < ReadAgain {
		config, err := r.maps.Config()
		if err != nil {
			return part, actual, fmt.Errorf("read CONFIG: %w", err)
		}
		if part, actual, ok := r.image.difference(desired, config); ok {
			return part, actual, nil
		}
	}
	r.image = newImage(r.maps.Capacity(), r.now())
	actual, err = Read(r.maps)
	return desired, actual, err
}

// make makes the steps, and returns those that were made.
func (r *Reconciler) make(steps []Step) (done []Step, err error) {
	var errs []error
	for _, step := range steps {
		made, err := step.apply(r.maps)
		if err != nil {
			errs = append(errs, err)
			r.distrust = r.distrust || step.distrusts()
		}
		if !made {
			continue
		}
		if step.Object == configObject {
			r.distrust = false
		}
		for _, g := range step.retires {
			if g.Front != 0 {
				r.retired[g] = r.now()
			}
		}
		done = append(done, step)
	}
	return done, errors.Join(errs...)
}

// held forgets generations past their grace and returns the others.
func (r *Reconciler) held() map[Generation]bool {
	held := map[Generation]bool{}
	for g, since := range r.retired {
		if r.now().Sub(since) >= Grace {
			delete(r.retired, g)
			continue
		}
		held[g] = true
	}
	return held
}

// Due returns when Apply has something to do even if nothing new is desired: to collect the rows of a retired
// generation, or to try again what failed. ok is false if there is nothing.
func (r *Reconciler) Due() (at time.Time, ok bool) {
	consider := func(since time.Time) {
		if t := since.Add(Grace); !ok || t.Before(at) {
			at, ok = t, true
		}
	}
	for _, since := range r.retired {
		consider(since)
	}
	if !r.failed.IsZero() {
		consider(r.failed)
	}
	return at, ok
}
