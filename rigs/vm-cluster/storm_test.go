// SPDX-License-Identifier: Apache-2.0

package vmcluster_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/traffic"
	"github.com/beep-lb/beep/harness/vm/node"
)

const (
	// pause is between two requests of one client; a node that is emulated has other things to do, too.
	pause = 200 * time.Millisecond
	// slow is a request that waited for a second SYN, or for an emulated machine.
	slow = 900 * time.Millisecond
)

// storm is what clients do in the background: by every front, one makes a connection for each request, and another asks by
// one connection all the time.
type storm struct {
	cancel context.CancelFunc
	going  sync.WaitGroup
	ways   []*way
}

// way is one client.
type way struct {
	front     netip.AddrPort
	one       bool // all by one connection
	asked     atomic.Int64
	slow      atomic.Int64
	mu        sync.Mutex
	errs      []error
	source    netip.AddrPort // of the one connection, as its pod saw it
	connected string         // that pod
}

// storm begins, and returns when every client has been answered. held connections are for a time in which no pod ends: with a
// server that ends, HTTP has them end, too.
func (r *rig) storm(ctx context.Context, held bool) *storm {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(ctx)
	s := &storm{cancel: cancel}
	DeferCleanup(s.stop)
	for _, front := range r.Fronts(80, families...) {
		s.ways = append(s.ways, &way{front: front})
		if held {
			s.ways = append(s.ways, &way{front: front, one: true})
		}
	}
	for _, w := range s.ways {
		s.going.Go(func() { w.run(ctx, r) })
	}
	s.moves(ctx)
	return s
}

// moves waits until every client has been answered anew.
func (s *storm) moves(ctx context.Context) {
	GinkgoHelper()
	for _, w := range s.ways {
		before := w.asked.Load()
		await(ctx, "the clients", func(context.Context) error {
			if w.asked.Load() < before+3 {
				return fmt.Errorf("%s: %d requests", w, w.asked.Load())
			}
			return nil
		})
	}
}

func (s *storm) stop() {
	s.cancel()
	s.going.Wait()
}

// end stops the clients and returns what they saw: nothing may have failed.
func (s *storm) end(what string) {
	GinkgoHelper()
	s.stop()
	var asked, late int64
	var errs []error
	for _, w := range s.ways {
		asked += w.asked.Load()
		late += w.slow.Load()
		w.mu.Lock()
		errs = append(errs, w.errs...)
		w.mu.Unlock()
	}
	figure("%s: %d requests by %d clients, %d failed, %d took longer than %v", what, asked, len(s.ways), len(errs), late, slow)
	Expect(errors.Join(errs...)).NotTo(HaveOccurred(), what)
}

func (w *way) run(ctx context.Context, r *rig) {
	client := &http.Client{Transport: &http.Transport{
		DialContext: r.NS(node.Client).DialContext, DisableKeepAlives: !w.one, MaxIdleConnsPerHost: 1, IdleConnTimeout: 0,
	}}
	defer client.CloseIdleConnections()
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		begun := time.Now()
		once, cancel := context.WithTimeout(ctx, 2*askLimit)
		answer, err := traffic.Ask(once, client, w.front)
		cancel()
		if ctx.Err() != nil {
			return // stopped in the middle
		}
		w.count(r, answer, err, time.Since(begun))
	}
}

// count notes one request.
func (w *way) count(r *rig, answer traffic.Answer, err error, took time.Duration) {
	w.asked.Add(1)
	if took > slow {
		w.slow.Add(1)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil && !isOf(r, answer.Client.Addr()) {
		err = fmt.Errorf("pod %s saw %s", answer.Server, answer.Client)
	}
	if err == nil && w.one {
		if w.connected == "" {
			w.source, w.connected = answer.Client, answer.Server
		}
		if w.source != answer.Client || w.connected != answer.Server {
			err = fmt.Errorf("the connection of %s with %s has become one of %s with %s", w.source, w.connected, answer.Client, answer.Server)
			w.source, w.connected = answer.Client, answer.Server
		}
	}
	if err != nil {
		w.errs = append(w.errs, fmt.Errorf("%s at %s: %w", w, time.Now().Format(time.TimeOnly), err))
	}
}

func isOf(r *rig, addr netip.Addr) bool {
	for _, own := range r.Addrs(node.Client) {
		if own == addr {
			return true
		}
	}
	return false
}

// String is for failures.
func (w *way) String() string {
	if w.one {
		return "one connection to " + w.front.String()
	}
	return "new connections to " + w.front.String()
}
