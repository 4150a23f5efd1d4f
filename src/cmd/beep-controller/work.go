// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/beep-lb/beep/src/compile"
	"github.com/beep-lb/beep/src/datapath/maps"
	"github.com/beep-lb/beep/src/model"
	"github.com/beep-lb/beep/src/reconcile"
	"github.com/beep-lb/beep/src/telemetry"
	"github.com/beep-lb/beep/src/watch"
)

// errNodeUnknown keeps a controller that does not know its node from emptying the maps of it.
var errNodeUnknown = errors.New("the maps stay as they are")

// worker brings the maps to what the source says. Its methods are for one goroutine.
type worker struct {
	source watch.Source
	self   compile.Self
	seed   func() [16]byte
	// mark, if set, marks the nodes that expect no tunnel.
	mark func([]*model.Node) []*model.Node
	// rows returns the maps to work on.
	rows       func() (*maps.Kernel, *reconcile.Reconciler, error)
	departures *departures
	ready      *readyFile
	told       *telemetry.Controller
	log        *slog.Logger
	// after, if set, gets what every run came to.
	after func(outcome) error
	// failed, if set, gets what every run failed with, but for Services that do not fit; nil if it did not.
	failed func(error)
	// seen is the snapshot of the last run; nil before the first.
	seen atomic.Pointer[model.Snapshot]
	// fault is what that run failed with.
	fault atomic.Pointer[error]

	// detached are the names of the nodes that expect no tunnel, as they were last told.
	detached string
	compiler compile.Compiler
	reasons  map[compile.Reason]bool
	// failure is the last one, and logged is when it was: one that goes on is logged once in a while.
	failure string
	logged  time.Time
}

// outcome is what one run came to.
type outcome struct {
	snapshot model.Snapshot
	reasons  []compile.Reason
	// refused are the Services that do not fit into the maps.
	refused []model.ObjectKey
}

// run is the work of a reconcile.Runner.
func (w *worker) run(context.Context) (again time.Time, err error) {
	snapshot, complete := w.source.Snapshot()
	if !complete {
		w.ready.because(w.source.Fault())
		return time.Time{}, nil
	}
	if w.mark != nil {
		snapshot.Nodes = w.mark(snapshot.Nodes)
	}
	w.tellDetached(snapshot.Nodes)
	w.seen.Store(&snapshot)
	start := time.Now()
	again, err = w.apply(snapshot)
	w.told.Reconciled(time.Since(start), err)
	w.complain(err)
	w.fault.Store(&err)
	if err != nil && !onlyCapacity(err) {
		w.tellFailure(err)
		w.ready.because(err)
		return again, err
	}
	w.tellFailure(nil)
	created, readyErr := w.ready.create()
	if created {
		w.log.Info("ready: the maps are as desired")
	}
	return again, errors.Join(err, readyErr)
}

// tellFailure passes a failure on. That there is no Node has a reason of its own.
func (w *worker) tellFailure(err error) {
	if w.failed != nil && !errors.Is(err, errNodeUnknown) {
		w.failed(err)
	}
}

// tellDetached counts the nodes that expect no tunnel, and logs when they are others.
func (w *worker) tellDetached(nodes []*model.Node) {
	var names []string
	for _, node := range nodes {
		if node.Detached && node.Name != w.self.Node {
			names = append(names, node.Name)
		}
	}
	w.told.Detached(len(names))
	slices.Sort(names)
	text := strings.Join(names, " ")
	switch text {
	case w.detached:
	case "":
		w.log.Info("beep is attached on every node")
	default:
		w.log.Info("endpoints on nodes where beep is not known to be attached are used last", "nodes", text)
	}
	w.detached = text
}

// apply makes the maps as the snapshot asks.
func (w *worker) apply(snapshot model.Snapshot) (again time.Time, err error) {
	w.told.Known(len(snapshot.Services), len(snapshot.Slices), len(snapshot.Nodes))
	desired, reasons := w.compiler.Datapath(snapshot, w.self)
	w.report(reasons)
	for _, reason := range reasons {
		if reason.Code == compile.NodeUnknown {
			return time.Time{}, fmt.Errorf("%w: %s", errNodeUnknown, reason)
		}
	}
	desired.Seed = w.seed()
	rows, reconciler, err := w.rows()
	if err != nil {
		return time.Time{}, err
	}
	earlier, err := rows.Targets()
	if err != nil {
		return time.Time{}, err
	}
	desired.Targets = append(desired.Targets, compile.Lingering(snapshot, w.self, desired.Targets, earlier)...)
	slices.SortFunc(desired.Targets, model.Socket.Compare)
	w.departures.take(snapshot)
	sweepErr := w.departures.before(&desired)
	steps, applyErr := reconciler.Apply(desired)
	for _, step := range steps {
		w.told.Stepped(step.Object, string(step.Action))
		w.logStep(step)
	}
	err = errors.Join(applyErr, sweepErr, w.departures.after(snapshot))
	if w.after != nil {
		result := outcome{snapshot: snapshot, reasons: reasons}
		if applyErr != nil { // else the maps hold every front
			held, readErr := rows.Fronts()
			if readErr != nil {
				return time.Time{}, errors.Join(err, readErr)
			}
			result.refused = refused(snapshot, desired, held, reasons)
		}
		err = errors.Join(err, w.after(result))
	}
	if err != nil {
		return time.Time{}, err // the runner's pauses decide
	}
	again, due := reconciler.Due()
	if late := w.departures.due(); !late.IsZero() && (!due || late.Before(again)) {
		again = late
	}
	return again, nil
}

func (w *worker) logStep(step reconcile.Step) {
	level := slog.LevelInfo
	if step.Action == reconcile.Collected {
		level = slog.LevelDebug // the line of the front's change told of it
	}
	attributes := []slog.Attr{slog.String("name", step.Name)}
	if step.Detail != "" {
		attributes = append(attributes, slog.String("now", step.Detail))
	}
	w.log.LogAttrs(context.Background(), level, step.Object+" "+string(step.Action), attributes...)
}

// report counts what is left out, and logs what was not before: a line each for what a person must act on.
func (w *worker) report(reasons []compile.Reason) {
	counts := map[string]int{}
	now := make(map[compile.Reason]bool, len(reasons))
	for _, reason := range reasons {
		counts[reason.Code.String()]++
		now[reason] = true
		if w.reasons[reason] {
			continue
		}
		level := slog.LevelDebug
		if reason.Code.Event() {
			level = slog.LevelWarn
		}
		w.log.Log(context.Background(), level, "left out", "reason", reason.Code.String(), "what", reason.Subject(),
			"why", reason.Text(), "remedy", reason.Remedy())
	}
	w.reasons = now
	w.told.LeftOut(counts)
}

// complain logs a failure that is new or goes on for long, and its end.
func (w *worker) complain(err error) {
	switch {
	case err == nil && w.failure != "":
		w.log.Info("the maps are as desired again")
		w.failure = ""
	case err == nil, err.Error() == w.failure && time.Since(w.logged) < patience:
	default:
		w.log.Error("the maps are not as desired, trying on", "error", err)
		w.failure, w.logged = err.Error(), time.Now()
	}
}

// onlyCapacity says that all that failed does not fit: what fits is in force, and waiting does not help.
func onlyCapacity(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, part := range joined.Unwrap() {
			if part != nil && !onlyCapacity(part) {
				return false
			}
		}
		return true
	}
	return errors.Is(err, maps.ErrCapacity)
}

// claim is a port of a Service, or with Port 0 all of it.
type claim struct {
	service model.ObjectKey
	proto   model.Proto
	port    uint16
}

// refused are the Services of which a front is desired and not in the maps, sorted.
func refused(snapshot model.Snapshot, desired model.Desired, held []maps.FrontMeta, reasons []compile.Reason) []model.ObjectKey {
	there := make(map[model.Socket]bool, len(held))
	for _, front := range held {
		there[front.Socket] = true
	}
	lacking := map[claim]bool{} // of nobody yet
	for _, front := range desired.Fronts {
		if !there[front.Socket] {
			lacking[claim{proto: front.Proto, port: front.Port}] = true
		}
	}
	if len(lacking) == 0 {
		return nil
	}
	not := map[claim]bool{}
	for _, reason := range reasons {
		switch reason.Code {
		case compile.ForeignClass, compile.ForeignProxy, compile.Deleting:
			not[claim{service: reason.Service}] = true
		case compile.PortConflict:
			not[claim{reason.Service, reason.Proto, reason.Port}] = true
		}
	}
	var keys []model.ObjectKey
	for _, service := range snapshot.Services {
		owns := func(port model.ServicePort) bool {
			return lacking[claim{proto: port.Proto, port: port.Port}] && !not[claim{service.ObjectKey, port.Proto, port.Port}]
		}
		if !not[claim{service: service.ObjectKey}] && slices.ContainsFunc(service.Ports, owns) {
			keys = append(keys, service.ObjectKey)
		}
	}
	slices.SortFunc(keys, model.ObjectKey.Compare)
	return keys
}
