// SPDX-License-Identifier: Apache-2.0

// Package publish is all that beep writes to an API server: the hash seed's Secret, each node's Lease, and by the one
// node that is elected the Services' published addresses, the Events, and the roster of attached nodes. Invariant: a
// write is made only of what an API server said and the writer saw itself, never twice for the same difference, and
// nothing is written that is already so.
package publish

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// firstWait and longestWait bound the pause between two tries to reach the API server at start.
	firstWait   = time.Second
	longestWait = 30 * time.Second
	// complainEvery is how often a failure that goes on is logged.
	complainEvery = time.Minute
	// requestTimeout bounds one request.
	requestTimeout = 15 * time.Second
)

// permanent says that waiting does not help: a right is missing, or an object is not what it should be.
func permanent(err error) bool {
	var malformed *malformedError
	return errors.As(err, &malformed) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsInvalid(err)
}

// insist asks until it gets an answer, tells waits of every failure, and logs one a minute. It returns a permanent error
// at once, and that of ctx when it ends.
func insist(ctx context.Context, log *slog.Logger, waits func(error), ask func(context.Context) error) error {
	var complained time.Time
	for wait := firstWait; ; wait = min(2*wait, longestWait) {
		err := ask(ctx)
		if err == nil || permanent(err) {
			return err
		}
		waits(err)
		if time.Since(complained) >= complainEvery {
			log.Warn("waiting for the API server", "error", err)
			complained = time.Now()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(jittered(wait)):
		}
	}
}

// jittered is a pause between one half and three halves of d: no two nodes stay in step.
func jittered(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.5 + rand.Float64()))
}
