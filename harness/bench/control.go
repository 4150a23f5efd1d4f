// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/beep-lb/beep/harness/cluster"
	"github.com/beep-lb/beep/harness/crowd"
	"github.com/beep-lb/beep/harness/kube"
	"github.com/beep-lb/beep/harness/proc"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/src/datapath/maps"
)

// Scale is what a real controller has to do with, a real API server beside it and simulated peers.
type Scale struct {
	Services []int // rising; each is started with, and changed
	Changes  int   // endpoints that change at each
	Nodes    []int // peers, rising, that are published in listed Services
	Listed   int
}

// crowded is one node with a controller in a crowd.
type crowded struct {
	*cluster.Cluster
	crowd *crowd.Crowd
	stops []func()
}

const crowdNode = "node-a"

// gather starts a control plane and one node, whose controller does not run yet.
func gather(peers, endpoints int, flags ...string) (*crowded, error) {
	c, err := cluster.Launch(cluster.Options{Plan: cluster.Plan(1, topo.Options{Families: topo.V4}), Datapath: flags, Idle: true})
	if err != nil {
		return nil, err
	}
	// What peers fail at, the figures show.
	return &crowded{Cluster: c, crowd: crowd.New(c.Control, crowdNode, peers, endpoints, slog.New(slog.DiscardHandler))}, nil
}

func (c *crowded) close() error {
	for _, stop := range c.stops {
		stop()
	}
	return c.Close()
}

// join has peers join, from a number up to another.
func (c *crowded) join(ctx context.Context, from, to int) error {
	stop, err := c.crowd.Simulate(ctx, from, to)
	if err == nil {
		c.stops = append(c.stops, stop)
	}
	return err
}

func (c *crowded) controller() *cluster.Controller { return c.Node(crowdNode).Controller }

// awaitPublished waits until so many Services list so many nodes.
func (c *crowded) awaitPublished(ctx context.Context, services, nodes int) error {
	for ask := time.NewTicker(100 * time.Millisecond); ; {
		list, err := c.Control.Client.CoreV1().Services(kube.Namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return fmt.Errorf("await %d nodes in %d services: %w", nodes, services, err)
		}
		published := 0
		for i := range list.Items {
			if len(list.Items[i].Status.LoadBalancer.Ingress) == nodes {
				published++
			}
		}
		if published >= services {
			return nil
		}
		select {
		case <-ask.C:
		case <-ctx.Done():
			return fmt.Errorf("await %d nodes in %d services, %d have them: %w", nodes, services, published, ctx.Err())
		}
	}
}

// costs are a controller's CPU time so far and its memory.
func (c *crowded) costs() (time.Duration, proc.Memory, error) {
	pid := c.controller().Pid()
	used, err := proc.CPUTime(pid)
	memory, err2 := proc.MemoryOf(pid)
	return used, memory, errors.Join(err, err2)
}

// reconciling measures a controller by Services.
func (s Scale) reconciling(ctx context.Context, out *Record, say func(string, ...any)) (err error) {
	const peers, endpoints = 10, 4
	most := s.Services[len(s.Services)-1]
	c, err := gather(peers, endpoints, fmt.Sprintf("--max-fronts=%d", most+64), "--pod-targets-max-entries=4096")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := c.join(ctx, 0, peers); err != nil {
		return err
	}
	restored := 0
	for _, services := range s.Services {
		say("a controller with %d Services", services)
		if err := c.crowd.Restore(ctx, restored, services); err != nil {
			return err
		}
		restored = services
		took, err := c.fresh(ctx)
		if err != nil {
			return err
		}
		if err := c.awaitPublished(ctx, services, peers+1); err != nil {
			return err
		}
		change, cpu, err := c.change(ctx, services, s.Changes)
		if err != nil {
			return err
		}
		_, memory, err := c.costs()
		if err != nil {
			return err
		}
		out.Sample(fmt.Sprintf("controller/services=%d", services), 1,
			Value{float64(took), "start-ns"}, Value{float64(change), "change-ns"},
			Value{float64(cpu), "change-cpu-ns"}, Value{float64(memory.All), "resident-bytes"})
		if err := c.controller().Kill9(); err != nil {
			return err
		}
	}
	return nil
}

// fresh starts the controller beside empty maps, as on a node that was just booted, and returns how long it took to fill them.
func (c *crowded) fresh(ctx context.Context) (time.Duration, error) {
	daemon := c.Node(crowdNode).Datapath
	if err := errors.Join(daemon.Kill9(), daemon.Wipe(), daemon.Restart()); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := c.controller().Start(); err != nil {
		return 0, err
	}
	err := c.controller().AwaitReady(ctx)
	return time.Since(began), err
}

// change changes endpoints one after the other, each when the one before is in the maps, and returns the median of how long that took
// and the controller's CPU time for one.
func (c *crowded) change(ctx context.Context, services, changes int) (median, cpu time.Duration, err error) {
	rows, err := maps.Open(c.Node(crowdNode).Datapath.PinDir())
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	before, _, err := c.costs()
	if err != nil {
		return 0, 0, err
	}
	var took []time.Duration
	for i := range changes {
		service := i * 7 % services
		began := time.Now()
		want, err := c.crowd.Toggle(ctx, service)
		if err != nil {
			return 0, 0, err
		}
		err = cluster.Await(ctx, func(context.Context) error { return holds(rows, crowd.PortOf(service), want) })
		if err != nil {
			return 0, 0, err
		}
		took = append(took, time.Since(began))
	}
	after, _, err := c.costs()
	slices.Sort(took)
	return took[len(took)/2], (after - before) / time.Duration(changes), err
}

// holds says whether the front of a port has so many endpoints.
func holds(rows *maps.Kernel, port uint16, endpoints int) error {
	fronts, err := rows.Fronts()
	if err != nil {
		return err
	}
	for _, front := range fronts {
		if front.Port == port && int(front.Count) == endpoints {
			return nil
		}
	}
	return fmt.Errorf("no front on port %d with %d endpoints", port, endpoints)
}

// publishing measures the elected controller by nodes.
func (s Scale) publishing(ctx context.Context, out *Record, say func(string, ...any)) (err error) {
	most := s.Nodes[len(s.Nodes)-1]
	c, err := gather(most, 1, fmt.Sprintf("--node-allow-max-entries=%d", most+64))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	err = errors.Join(c.crowd.Restore(ctx, 0, s.Listed), c.controller().Start(), c.awaitPublished(ctx, s.Listed, 1))
	joined := 0
	for _, nodes := range s.Nodes {
		if err != nil {
			return err
		}
		say("a publisher with %d nodes", nodes)
		before, _, err := c.costs()
		if err != nil {
			return err
		}
		began := time.Now()
		if err := errors.Join(c.join(ctx, joined, nodes), c.awaitPublished(ctx, s.Listed, nodes+1)); err != nil {
			return err
		}
		took := time.Since(began)
		joined = nodes
		after, memory, err := c.costs()
		if err != nil {
			return err
		}
		out.Sample(fmt.Sprintf("publisher/services=%d/nodes=%d", s.Listed, nodes), 1, Value{float64(took), "publish-ns"},
			Value{float64(after - before), "publish-cpu-ns"}, Value{float64(memory.All), "resident-bytes"})
	}
	return nil
}
