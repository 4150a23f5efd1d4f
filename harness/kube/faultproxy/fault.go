// SPDX-License-Identifier: Apache-2.0

package faultproxy

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Always is how often a fault happens that goes on until it is lifted.
const Always = -1

// Fault is something that goes wrong until it is lifted.
type Fault struct {
	p     *Proxy
	of    Match
	after time.Duration   // what is held comes so long after it was there; 0 holds until Lift
	says  *metav1.Status  // the answer in the API server's place; nil for none
	left  int             // answers to come
	met   atomic.Int32    // requests that it happened to
	over  <-chan struct{} // closed by Lift
	lift  context.CancelFunc
}

// Hold keeps answers back until Lift. Of a watch that is under way, or begins, it keeps back the events.
func (p *Proxy) Hold(of Match) *Fault { return p.add(&Fault{of: of}) }

// Delay has every answer come so much later, and of a watch each piece.
func (p *Proxy) Delay(of Match, by time.Duration) *Fault { return p.add(&Fault{of: of, after: by}) }

// Answer answers so many times in the API server's place, or Always, with the error of its kind that apierrors makes:
// NewConflict, NewResourceExpired, NewInvalid, NewTooManyRequests, NewInternalError.
func (p *Proxy) Answer(of Match, times int, says *apierrors.StatusError) *Fault {
	status := says.Status()
	return p.add(&Fault{of: of, says: &status, left: times})
}

// Met is how many requests it has happened to. A watch whose events are held counts when there is one to hold.
func (f *Fault) Met() int { return int(f.met.Load()) }

// Lift ends the fault. It may be called twice.
func (f *Fault) Lift() {
	f.lift()
	f.p.mu.Lock()
	defer f.p.mu.Unlock()
	f.p.faults = slices.DeleteFunc(f.p.faults, func(other *Fault) bool { return other == f })
}

func (p *Proxy) add(f *Fault) *Fault {
	ctx, cancel := context.WithCancel(context.Background())
	f.p, f.over, f.lift = p, ctx.Done(), cancel
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, f)
	return f
}

// failure is the answer to a request that is not to reach the API server; nil for one that is.
func (p *Proxy) failure(r Request) *metav1.Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, fault := range p.faults {
		if fault.says == nil || fault.left == 0 || !fault.of.matches(r) {
			continue
		}
		if fault.left > 0 {
			fault.left--
		}
		fault.met.Add(1)
		return fault.says
	}
	return nil
}

// wait returns when no fault holds the request's answer back, or with the end of the request.
func (p *Proxy) wait(ctx context.Context, r Request) error {
	p.mu.Lock()
	faults := slices.Clone(p.faults)
	p.mu.Unlock()
	for _, fault := range faults {
		if fault.says != nil || !fault.of.matches(r) {
			continue
		}
		fault.met.Add(1)
		var due <-chan time.Time
		if fault.after > 0 {
			due = time.After(fault.after)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-fault.over:
		case <-due:
		}
	}
	return ctx.Err()
}

// write answers with a status.
func write(w http.ResponseWriter, status *metav1.Status) {
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	_ = json.NewEncoder(w).Encode(status) // a client that is gone needs no answer
}
