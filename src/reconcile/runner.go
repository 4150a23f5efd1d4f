// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// The pauses of a Runner.
const (
	// firstPause and longestPause bound how long a failure waits for its retry, before jitter of one half: no two
	// nodes that fail together come back together.
	firstPause   = 250 * time.Millisecond
	longestPause = 30 * time.Second
	// spacing is the shortest time between two runs, so that a storm of changes is taken in gulps.
	spacing = 50 * time.Millisecond
)

// Runner decides when to make things as desired: at once after a change, when the work itself asks for it, and after
// a failure with growing pauses. A change that comes while a retry waits is tried at once, for it may be about
// something else, and whatever becomes of it the retry comes no later than it would have.
type Runner struct {
	// Do does the work. It returns when to do it again if nothing changes; the zero time is never.
	Do func(ctx context.Context) (again time.Time, err error)

	pauses backoff.BackOff
	// retry is when the last failure is tried again; zero if there was none.
	retry time.Time
}

// Run works once at every receipt from changed, which coalesces (capacity 1), until ctx ends. Errors are for Do to
// report.
func (r *Runner) Run(ctx context.Context, changed <-chan struct{}) {
	r.pauses = &backoff.ExponentialBackOff{InitialInterval: firstPause, MaxInterval: longestPause,
		RandomizationFactor: 0.5, Multiplier: 2}
	r.pauses.Reset()
	timer := time.NewTimer(0)
	timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-timer.C:
		}
		if next := r.run(ctx); next.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(time.Until(next))
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(spacing):
		}
	}
}

// run works once and returns when to work again if nothing changes; the zero time is never.
func (r *Runner) run(ctx context.Context) time.Time {
	again, err := r.Do(ctx)
	if err == nil {
		r.pauses.Reset()
		r.retry = time.Time{}
		return again
	}
	if now := time.Now(); !r.retry.After(now) {
		r.retry = now.Add(r.pauses.NextBackOff())
	}
	if again.IsZero() || r.retry.Before(again) {
		return r.retry
	}
	return again
}
