// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/src/datapath/maps"
)

// longest bounds the time between two sweeps, so that a long idle time does not leave ended flows lying.
const longest = 30 * time.Second

// Interval is the time between two sweeps: half of the shortest idle time, and at most 30 seconds.
func (p Policy) Interval() time.Duration {
	return min(longest, min(p.UDP, p.TCP, p.HalfOpen, p.Closed)/2)
}

// Now is the programs' clock (bpf_ktime_get_coarse_ns) in whole seconds.
func Now() (uint32, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC_COARSE, &now); err != nil {
		return 0, fmt.Errorf("read the coarse monotonic clock: %w", err)
	}
	return uint32(now.Sec), nil
}

// Runner sweeps at the policy's interval. The state is in the rows alone, so a restart changes nothing.
type Runner struct {
	Maps   *maps.Kernel
	Policy Policy
	Log    *slog.Logger
	// Observe, if set, gets the result of every sweep; metrics are made of it.
	Observe func(Result, time.Duration)
}

// Run sweeps at once and then at every interval until ctx ends. It never gives up: an error is logged, and the
// next sweep tries again.
func (r *Runner) Run(ctx context.Context) {
	ticks := time.NewTicker(r.Policy.Interval())
	defer ticks.Stop()
	for {
		r.sweep()
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
	}
}

func (r *Runner) sweep() {
	start := time.Now()
	now, err := Now()
	if err != nil {
		r.Log.Error("sweep of idle flows", "error", err)
		return
	}
	result, err := Idle(r.Maps, now, r.Policy)
	took := time.Since(start)
	if err != nil {
		r.Log.Error("sweep of idle flows", "rows", result.Errors, "error", err)
	}
	if len(result.Removed) > 0 {
		r.Log.Debug("swept", "scanned", result.Scanned, "removed", result.Removed, "took", took)
	}
	if r.Observe != nil {
		r.Observe(result, took)
	}
}
