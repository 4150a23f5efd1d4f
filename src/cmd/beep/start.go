// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/beep-lb/beep/src/config"
	"github.com/beep-lb/beep/src/datapath/attach"
	"github.com/beep-lb/beep/src/datapath/bpfobj"
	"github.com/beep-lb/beep/src/datapath/load"
	"github.com/beep-lb/beep/src/datapath/maps"
	"github.com/beep-lb/beep/src/datapath/migrate"
	"github.com/beep-lb/beep/src/datapath/pinfs"
	"github.com/beep-lb/beep/src/datapath/probe"
	"github.com/beep-lb/beep/src/model"
	"github.com/beep-lb/beep/src/netdev"
	"github.com/beep-lb/beep/src/reconcile"
)

// lockTries and lockPause outlast the moment in which `beep status` looks whether the lock is free.
const (
	lockTries = 5
	lockPause = 20 * time.Millisecond
	// fillTries bounds how often a start waits for room in the maps: once for the rows that go, once for luck.
	fillTries = 3
)

// plan is what a command line asks of this node, checked as far as it can be without changing anything.
type plan struct {
	flags    *config.Datapath
	settings load.Settings
	// desired is the fixtures', without its seed.
	desired model.Desired
	host    *netdev.Host
	uplinks []netdev.Link
	// warnings are the probe's, for the log of a start that succeeds.
	warnings []string
	log      *slog.Logger
}

// newPlan looks at the kernel, the devices and the fixtures. The caller closes the plan.
func newPlan(flags *config.Datapath, c console) (*plan, error) {
	p := &plan{flags: flags, settings: load.SettingsOf(flags), log: newLogger(flags, c)}
	report := probe.Run()
	if err := report.Err(); err != nil {
		return nil, err
	}
	p.warnings = report.Warnings
	var err error
	if p.settings.Faults, err = migrate.FaultsOf(os.Getenv, p.log); err != nil {
		return nil, err
	}
	if p.desired, err = flags.FixtureState(); err != nil {
		return nil, err
	}
	// As if the maps were empty: what does not fit then never will.
	_, err = reconcile.Plan(p.desired, reconcile.State{Capacity: p.settings.Sizes})
	if err != nil {
		return nil, err
	}
	if p.host, err = netdev.Open(); err != nil {
		return nil, err
	}
	if err := p.lookAtUplinks(); err != nil {
		p.host.Close()
		return nil, err
	}
	return p, nil
}

func (p *plan) lookAtUplinks() (err error) {
	if p.uplinks, err = findUplinks(p.host, p.flags, p.desired); err != nil {
		return err
	}
	p.settings.Handover, err = p.host.HandsOver(p.uplinks)
	return err
}

// node is what a process that holds the lock works on.
type node struct {
	*plan
	dir        *pinfs.Dir
	held       *pinfs.Lock
	datapath   *load.Datapath
	reconciler *reconcile.Reconciler
	attached   *attach.Uplinks
	// strangers are the rows that the start swept, and owesSweep says that it left some.
	strangers int
	owesSweep bool
}

// take makes the pin directory and locks it. The caller closes the node, which leaves everything in place.
func (p *plan) take() (*node, error) {
	dir, err := pinfs.Create(p.flags.PinDir)
	if err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		held, err := dir.Lock()
		switch {
		case err == nil:
			return &node{plan: p, dir: dir, held: held}, nil
		case !errors.Is(err, pinfs.ErrLocked) || try == lockTries:
			return nil, err
		}
		time.Sleep(lockPause)
	}
}

// instance is the programs for an uplink, which gets the offloads that they need.
func (n *node) instance(link netdev.Link) (*bpfobj.BeepPrograms, error) {
	handsOver, err := n.host.HandsOver([]netdev.Link{link})
	changed := false
	if err == nil && handsOver {
		changed, err = n.host.CutUDP(link)
	}
	if err != nil {
		n.log.Warn("an uplink's offloads stay as they are", "uplink", link.Name, "error", err)
	} else if changed {
		n.log.Info("the kernel cuts UDP_SEGMENT packets up before this uplink from now on (tx-udp-segmentation off)", "uplink", link.Name)
	}
	return n.datapath.Instance(link)
}

// start loads, fills and attaches, in this order: a packet that meets the programs finds the maps filled.
func (n *node) start(ctx context.Context) (err error) {
	if n.datapath, err = load.Load(n.dir, n.settings, n.uplinks, n.log); err != nil {
		return err
	}
	n.reconciler = reconcile.New(n.datapath.Maps, time.Now)
	if n.flags.FixtureRun() {
		if err := n.fill(ctx); err != nil {
			return err
		}
	}
	n.datapath.Reach(migrate.MapsFilled)
	n.attached = attach.New(n.dir, n.instance, n.log)
	if err := n.attached.Attach(n.uplinks, n.datapath); err != nil {
		return err
	}
	if n.flags.FixtureRun() {
		n.strangers = n.sweepStrangers()
	}
	for _, warning := range n.warnings {
		n.log.Warn(warning)
	}
	return nil
}

// close ends this process's part; pins, programs and rows stay.
func (n *node) close() {
	if n.datapath != nil {
		n.datapath.Close()
	}
	n.held.Unlock() //nolint:errcheck // the end of the process unlocks too
}

// fill brings the maps to the state of the fixtures. What was refused may fit once the rows that it replaces are
// collected, so it is tried again.
func (n *node) fill(ctx context.Context) error {
	if n.flags.FlowHashSeed == nil {
		// A seed of its own at every start would send the flows that no row pins elsewhere.
		before, err := n.datapath.Maps.Config()
		if err != nil {
			return err
		}
		if before.Seed != [16]byte{} {
			n.desired.Seed = before.Seed
		}
	}
	for try := 1; ; try++ {
		err := n.apply()
		passing := errors.Is(err, maps.ErrCapacity) || errors.Is(err, maps.ErrNoMemory)
		if !passing || try == fillTries {
			return err
		}
		if err := n.waitDue(ctx); err != nil {
			return err
		}
	}
}

// apply makes the maps as desired, and logs what changed, a line each.
func (n *node) apply() error {
	steps, err := n.reconciler.Apply(n.desired)
	for _, step := range steps {
		level := slog.LevelInfo
		switch step.Action {
		case reconcile.Collected, reconcile.Renewed: // the line of what changed told of it
			level = slog.LevelDebug
		}
		attributes := []slog.Attr{slog.String("name", step.Name)}
		if step.Detail != "" {
			attributes = append(attributes, slog.String("now", step.Detail))
		}
		n.log.LogAttrs(context.Background(), level, step.Object+" "+string(step.Action), attributes...)
	}
	return err
}

// due is when something is left to do: for the reconciler, or of a sweep.
func (n *node) due() (time.Time, bool) {
	at, due := n.reconciler.Due()
	if !due && n.owesSweep {
		return time.Now().Add(reconcile.Grace), true
	}
	return at, due
}

// waitDue sleeps until something is left to do, or ctx ends.
func (n *node) waitDue(ctx context.Context) error {
	at, due := n.due()
	if !due {
		return nil
	}
	select {
	case <-ctx.Done():
		return fmt.Errorf("interrupted: %w", ctx.Err())
	case <-time.After(time.Until(at)):
		return nil
	}
}

func newLogger(flags *config.Datapath, c console) *slog.Logger {
	options := &slog.HandlerOptions{Level: flags.Level()}
	if flags.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(c.err, options))
	}
	return slog.New(slog.NewTextHandler(c.err, options))
}
