// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
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
	p, err := newPlan(&r.Datapath, c)
	if err != nil {
		return err
	}
	defer p.host.Close()
	n, err := p.start(ctx)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	if err != nil {
		return err
	}
	defer n.close()
	return n.serve(ctx)
}

type loadCommand struct{ config.Datapath }

// Run is the daemon's start, and then only what must not be left behind.
func (l *loadCommand) Run(c console) error {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	p, err := newPlan(&l.Datapath, c)
	if err != nil {
		return err
	}
	defer p.host.Close()
	n, err := p.start(ctx)
	if err != nil {
		return err
	}
	defer n.close()
	for {
		if _, due := n.reconciler.Due(); !due {
			return nil
		}
		if err := n.waitDue(ctx); err != nil {
			return err
		}
		if err := n.apply(); err != nil {
			return err
		}
	}
}

// serve does what needs a process until ctx ends: uplinks that come back, flows that go, rows to collect, metrics.
func (n *node) serve(ctx context.Context) error {
	events, err := n.host.Watch(ctx)
	if err != nil {
		return err
	}
	told := telemetry.New(n.datapath.Maps, telemetry.Node{Version: version, Uplinks: n.uplinkStates, Ready: n.ready})
	group, ctx := errgroup.WithContext(ctx)
	if addr := n.flags.MetricsAddr; addr != "" {
		server, err := telemetry.Listen(addr, told.Handler())
		if err != nil {
			return err
		}
		group.Go(func() error { return server.Serve(ctx) })
	}
	group.Go(func() error { n.attached.Follow(ctx, events); return nil })
	group.Go(func() error { return n.collect(ctx) })
	sweeper := sweep.Runner{Maps: n.datapath.Maps, Policy: sweep.PolicyOf(n.flags), Log: n.log,
		Observe: func(result sweep.Result, _ time.Duration) {
			for cause, rows := range result.Removed {
				told.Swept(string(cause), rows)
			}
		}}
	group.Go(func() error { sweeper.Run(ctx); return nil })
	n.log.Info("running", "version", version, "pin_dir", n.dir.Path(), "uplinks", n.uplinkNames())
	err = group.Wait()
	n.log.Info("stopped, the programs go on forwarding")
	return err
}

// collect applies again whenever something is left to do.
func (n *node) collect(ctx context.Context) error {
	for {
		if _, due := n.reconciler.Due(); !due {
			return nil
		}
		if n.waitDue(ctx) != nil {
			return nil // asked to stop
		}
		if err := n.apply(); err != nil {
			n.log.Error("maps are not as desired, trying on", "error", err)
		}
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
