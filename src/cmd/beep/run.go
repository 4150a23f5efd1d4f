// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"runtime/debug"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/src/config"
	"github.com/beep-lb/beep/src/datapath/sweep"
	"github.com/beep-lb/beep/src/telemetry"
)

type runCommand struct{ config.Datapath }

// Run is the daemon.
func (r *runCommand) Run(c console) error {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	return withNode(&r.Datapath, c, func(n *node) error {
		n.avoidHugePages()
		// Before anything is loaded: an address in use is a refusal like the others.
		server, err := n.listen()
		if err != nil {
			return err
		}
		if err := n.start(ctx); err != nil {
			if errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		}
		return n.serve(ctx, server)
	})
}

type loadCommand struct{ config.Datapath }

// Run is the daemon's start, and then only what must not be left behind.
func (l *loadCommand) Run(c console) error {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	return withNode(&l.Datapath, c, func(n *node) error {
		if err := n.start(ctx); err != nil {
			return err
		}
		return n.finish(ctx)
	})
}

// withNode checks what the flags ask, takes the lock, and gives both up at the end.
func withNode(flags *config.Datapath, c console, do func(*node) error) error {
	p, err := newPlan(flags, c)
	if err != nil {
		return err
	}
	defer p.host.Close()
	n, err := p.take()
	if err != nil {
		return err
	}
	defer n.close()
	return do(n)
}

// finish waits for what the start left to do.
func (n *node) finish(ctx context.Context) error {
	for {
		if _, due := n.due(); !due {
			return nil
		}
		if err := n.waitDue(ctx); err != nil {
			return err
		}
		if err := n.apply(); err != nil {
			return err
		}
		n.sweepStrangers()
	}
}

// avoidHugePages keeps the process as small as what it uses. Where transparent huge pages are always on, as in Debian's kernels,
// each page that Go touches in its sparse areas would cost 2 MiB: 33 MiB resident instead of 20.
func (n *node) avoidHugePages() {
	if err := unix.Prctl(unix.PR_SET_THP_DISABLE, 1, 0, 0, 0); err != nil {
		n.log.Warn("transparent huge pages stay on, and this process large", "error", err)
	}
}

// listen takes the address of the metrics; nil if there is none.
func (n *node) listen() (*telemetry.Server, error) {
	if n.flags.MetricsAddr == "" {
		return nil, nil
	}
	return telemetry.Listen(n.flags.MetricsAddr)
}

// serve does what needs a process until ctx ends: uplinks that come back, flows that go, rows to collect, metrics.
func (n *node) serve(ctx context.Context, server *telemetry.Server) error {
	events, err := n.host.Watch(ctx)
	if err != nil {
		return err
	}
	told := telemetry.New(n.datapath.Maps, telemetry.Node{
		Version: version, CountsPackets: n.flags.CountPackets, Uplinks: n.uplinkStates, Ready: n.ready,
	})
	group, ctx := errgroup.WithContext(ctx)
	if server != nil {
		group.Go(func() error { return server.Serve(ctx, told.Handler()) })
	}
	group.Go(func() error { n.attached.Follow(ctx, events); return nil })
	group.Go(func() error { return n.collect(ctx, told) })
	group.Go(func() error { n.sweep(ctx, told); return nil })
	// A start reads the object and the kernel's types, ten times what it keeps. Nothing here allocates fast enough to have that
	// collected soon, and an operator would see it for hours.
	debug.FreeOSMemory()
	n.log.Info("running", "version", version, "pin_dir", n.dir.Path(), "uplinks", n.uplinkNames())
	err = group.Wait()
	n.log.Info("stopped, the programs go on forwarding")
	return err
}

// sweep removes idle flows until ctx ends, and counts them.
func (n *node) sweep(ctx context.Context, told *telemetry.Telemetry) {
	// Every series is there from the start, at zero: the first rise is a rise.
	for _, cause := range []sweep.Cause{sweep.HalfOpen, sweep.Closed, sweep.IdleUDP, sweep.IdleTCP} {
		told.Swept(string(cause), 0)
	}
	told.Swept(string(sweep.Pinned), n.strangers)
	sweeper := sweep.Runner{Maps: n.datapath.Maps, Policy: sweep.PolicyOf(n.flags), Log: n.log}
	sweeper.Observe = func(result sweep.Result, _ time.Duration) {
		for cause, rows := range result.Removed {
			told.Swept(string(cause), rows)
		}
	}
	sweeper.Run(ctx)
}

// collect applies again whenever something is left to do.
func (n *node) collect(ctx context.Context, told *telemetry.Telemetry) error {
	for {
		if _, due := n.due(); !due {
			return nil
		}
		if n.waitDue(ctx) != nil {
			return nil // asked to stop
		}
		if err := n.apply(); err != nil {
			n.log.Error("maps are not as desired, trying on", "error", err)
		}
		// What a program that read the last endpoints has pinned since.
		told.Swept(string(sweep.Pinned), n.sweepStrangers())
	}
}

func (n *node) uplinkNames() []string {
	var names []string
	for _, link := range n.uplinks {
		names = append(names, link.Name)
	}
	return names
}

// uplinkStates says which uplinks have both programs.
func (n *node) uplinkStates() (map[string]bool, error) {
	states := map[string]bool{}
	for _, name := range n.uplinkNames() {
		states[name] = false
	}
	uplinks, err := attachedUplinks(n.dir)
	for _, uplink := range uplinks {
		if _, ours := states[uplink.Device]; ours {
			states[uplink.Device] = uplink.attached()
		}
	}
	return states, err
}

// ready is nil if every uplink has both programs.
func (n *node) ready() error {
	states, err := n.uplinkStates()
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range n.uplinkNames() {
		if !states[name] {
			errs = append(errs, fmt.Errorf("uplink %s is not attached", name))
		}
	}
	return errors.Join(errs...)
}
