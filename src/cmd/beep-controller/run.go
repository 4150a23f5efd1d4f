// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/signal"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/beep-lb/beep/src/compile"
	"github.com/beep-lb/beep/src/config"
	"github.com/beep-lb/beep/src/datapath/sweep"
	"github.com/beep-lb/beep/src/explain"
	"github.com/beep-lb/beep/src/model"
	"github.com/beep-lb/beep/src/reconcile"
	"github.com/beep-lb/beep/src/telemetry"
	"github.com/beep-lb/beep/src/watch"
)

// controller is one process.
type controller struct {
	flags *config.Controller
	log   *slog.Logger
	pins  *pins
	ready *readyFile
	told  *telemetry.Controller
	// voice is this node's part in the cluster; nil with manifests.
	voice *voice
}

// run is the process from its flags to its end.
func run(flags *config.Controller, log *slog.Logger) error {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	klog.SetSlogLogger(slog.New(quiet{log.Handler()}).With("from", "client-go"))
	// First of all: it tells a second controller that has the same files from the first, whose they are.
	asked, err := explain.Listen(flags.Socket())
	if err != nil {
		return err
	}
	defer asked.Close()
	ready, err := newReadyFile(flags.ReadyFile)
	if err != nil {
		return err
	}
	c := &controller{flags: flags, log: log, pins: &pins{path: flags.PinDir}, ready: ready}
	defer c.pins.close()
	c.told = telemetry.NewController(version, ready.err)
	// Before anything is asked of anybody: an address in use is a refusal like a wrong flag.
	server, err := c.listen()
	if err != nil {
		return err
	}
	w, tell, err := c.open()
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	if server != nil {
		group.Go(func() error { return server.Serve(ctx, c.told.Handler()) })
	}
	group.Go(func() error {
		return telemetry.At(asked).Serve(ctx, explain.Handler((&explainer{c, w, tell}).explain))
	})
	group.Go(func() error { return c.work(ctx, w) })
	log.Info("running", "version", version, "node", flags.NodeName, "pin_dir", flags.PinDir)
	err = group.Wait()
	log.Info("stopped, the node goes on forwarding")
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return errors.Join(err, ready.remove())
}

// listen takes the address of the metrics; nil if there is none.
func (c *controller) listen() (*telemetry.Server, error) {
	if c.flags.MetricsAddr == "" {
		return nil, nil
	}
	return telemetry.Listen(c.flags.MetricsAddr)
}

// open says where the objects come from, and who knows of the other nodes. Nobody is asked yet.
func (c *controller) open() (*worker, testimony, error) {
	if c.flags.Manifests != "" {
		return c.openManifests()
	}
	config, namespace, err := watch.Connect(c.flags.Kubeconfig, "beep-controller/"+version)
	if err != nil {
		return nil, nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("API server %s: %w", config.Host, err)
	}
	expect := watch.Expectations{Node: c.flags.NodeName, Serving: c.pins.serving}
	w := &worker{source: watch.NewCluster(client, expect, c.log)}
	c.voice = newVoice(c, client, namespace, w.source)
	w.after, w.failed = c.voice.say, c.voice.failed
	return w, c.voice.testimony, nil
}

// openManifests opens the manifests, and the seed that is kept beside them.
func (c *controller) openManifests() (*worker, testimony, error) {
	directory, err := watch.OpenDirectory(c.flags.Manifests, c.log)
	if err != nil {
		return nil, nil, err
	}
	seed, err := directory.Seed()
	if err != nil {
		return nil, nil, err
	}
	status := newStatusFile(c.flags.Manifests, c.flags.NodeName, publishingOf(c.flags), directory)
	return &worker{source: directory, seed: func() [16]byte { return seed }, after: status.write}, status.testimony, nil
}

// work has a worker bring the maps to what its source says until ctx ends.
func (c *controller) work(ctx context.Context, w *worker) error {
	group, ctx := errgroup.WithContext(ctx)
	wake := make(chan struct{}, 1)
	wake <- struct{}{} // what is known already is a change too
	if err := c.pins.wait(ctx, c.log, c.ready.because); err != nil {
		return err
	}
	if c.voice != nil {
		if err := c.voice.join(ctx, group, w, func() { ring(wake) }); err != nil {
			return err
		}
	}
	w.self, w.rows, w.departures = selfOf(c.flags), c.pins.current, c.departures()
	w.ready, w.told, w.log = c.ready, c.told, c.log
	changed := w.source.Changed()
	group.Go(func() error { w.source.Run(ctx); return nil })
	group.Go(func() error { c.pins.watch(ctx, func() { ring(wake) }); return nil })
	group.Go(func() error { pass(ctx, changed, wake); return nil })
	group.Go(func() error { (&reconcile.Runner{Do: w.run}).Run(ctx, wake); return nil })
	return group.Wait()
}

// pass rings at every receipt until ctx ends.
func pass(ctx context.Context, from <-chan struct{}, bell chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-from:
			ring(bell)
		}
	}
}

// ring wakes whoever listens, and waits for nobody.
func ring(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}

// departures sweeps the maps that are pinned now, and counts.
func (c *controller) departures() *departures {
	c.told.Swept(string(sweep.Pinned), 0) // the series is there from the start
	d := newDepartures()
	d.remove = func(gone []model.Socket) (sweep.Departures, error) {
		rows, _, err := c.pins.current()
		if err != nil {
			return failed(gone, err), err
		}
		result, err := sweep.Departed(rows, gone)
		c.told.Swept(string(sweep.Pinned), result.Rows())
		return result, err
	}
	d.removeStrangers = func(known func(model.Socket) bool) (sweep.Departures, error) {
		rows, _, err := c.pins.current()
		if err != nil {
			return sweep.Departures{}, err
		}
		result, err := sweep.Strangers(rows, known)
		c.told.Swept(string(sweep.Pinned), result.Rows())
		return result, err
	}
	return d
}

// failed says of every socket that its flows may still be there.
func failed(gone []model.Socket, err error) sweep.Departures {
	result := sweep.Departures{Failed: map[model.Socket]error{}}
	for _, socket := range gone {
		result.Failed[socket] = err
	}
	return result
}

// selfOf is who this node is by the flags.
func selfOf(flags *config.Controller) compile.Self {
	return compile.Self{Rules: rulesOf(flags), Node: flags.NodeName, NodeIPs: flags.Addresses()}
}

// publishingOf is how the flags want the addresses published.
func publishingOf(flags *config.Controller) compile.Publishing {
	return compile.Publishing{Rules: rulesOf(flags), IPMode: flags.IngressIPMode, MaxNodes: flags.MaxPublishedNodes}
}

// rulesOf are the flags that are alike on every node.
func rulesOf(flags *config.Controller) compile.Rules {
	return compile.Rules{LoadBalancerClass: flags.LoadBalancerClass, PodCIDRs: flags.Pods(),
		ReservedPorts: ranges(flags.Reserved()), NodePorts: ranges(flags.NodePorts()), OwnPorts: ranges(flags.OwnPorts())}
}

func ranges(of []config.PortRange) []compile.PortRange {
	var list []compile.PortRange
	for _, ports := range of {
		list = append(list, compile.PortRange(ports))
	}
	return list
}
