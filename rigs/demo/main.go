// SPDX-License-Identifier: Apache-2.0

// Command demo shows beep at work in about three screens: three nodes, two pods and a client as network namespaces,
// manifests that become fronts, requests over both families and both protocols, and a forged tunnel packet. Invariant:
// it leaves nothing behind, neither when it ends nor when it is interrupted, and its exit code is 0 only if all was as
// it should be.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/beep"
	"github.com/beep-lb/beep/harness/fronts"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
)

// service is what the demo asks a Service of the manifests for.
type service struct {
	kind fronts.Kind
	port uint16
}

// The Services: one of each protocol, by both pods.
var (
	pods     = []string{"pod-a1", "pod-b1"}
	web      = service{fronts.HTTP, 80}
	dns      = service{fronts.Datagram, 53}
	nodes    = []string{"node-a", "node-b", "node-c"}
	families = []topo.Families{topo.V4, topo.V6}
)

func main() {
	// A pipe that nobody reads any longer loses words, not the cleanup. It is no reason to end either: Go tells of connections
	// that a peer has closed by the same signal.
	signal.Ignore(unix.SIGPIPE)
	// Whatever a person ends a program by: each must find the way through the cleanup.
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	began := time.Now()
	d := &demo{out: os.Stdout}
	err := errors.Join(d.show(ctx), d.close())
	interrupted := ctx.Err() != nil
	stop() // not before the cleanup is done, so that a second signal cannot cut it short
	switch {
	case err != nil:
		fmt.Fprintf(os.Stderr, "\ndemo: %v\n", err)
	case interrupted:
		fmt.Fprintln(os.Stderr, "\ndemo: interrupted; what it had made is removed")
	case len(d.problems) > 0:
		fmt.Printf("\nNOT as it should be:\n  %s\n", strings.Join(d.problems, "\n  "))
	default:
		fmt.Printf("\nAll is as it should be: %d of %d requests were answered, both pods took part, every server saw the client's own\n"+
			"address, the forged packet was dropped and nothing else, and all of this is removed again (%.1f s).\n",
			d.answered, d.asked, time.Since(began).Seconds())
		return
	}
	os.Exit(1)
}

// demo is the state of one run.
type demo struct {
	out             io.Writer
	topology        *topo.Topology
	dir             string // of the manifests
	echoes          map[string][]*traffic.Echo
	daemons         map[string]*beep.Daemon
	asked, answered int
	problems        []string // what is not as it should be, for a person
}

// show runs the demo up to its verdict. An error says that it could not go on; the end of ctx is none.
func (d *demo) show(ctx context.Context) (err error) {
	if unix.Geteuid() != 0 {
		return errors.New("namespaces and eBPF need root: run it as root")
	}
	if d.topology, err = topo.Build(plan()); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{
		d.draw, d.serve, d.start, d.control, d.ask, d.showFronts, d.explain, d.showFlows, d.forge, d.judge,
	} {
		if ctx.Err() != nil {
			return nil
		}
		// What fails while the signal that reached us reached the daemons, too, is no news.
		if err := step(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// close removes all that was made: namespaces, and with them processes, devices and pins; and then the manifests.
func (d *demo) close() error {
	if d.topology == nil {
		return nil
	}
	return errors.Join(d.topology.Close(), d.removeManifests())
}

// plan is three nodes, of which the last has no pod: whoever dials it is served by another node.
func plan() topo.Plan {
	plan := topo.ThreeNodes(topo.Options{})
	plan.Title = "A client, three nodes, and two pods. No node has a route to another node's pods."
	plan.Pods = plan.Pods[:len(pods)]
	return plan
}

func (d *demo) draw(context.Context) error {
	d.topology.Draw(d.out)
	return nil
}

func (d *demo) serve(context.Context) (err error) {
	d.echoes, err = fronts.Serve(d.topology)
	return err
}

func (d *demo) start(context.Context) (err error) {
	d.daemons, err = beep.LaunchAll(d.topology, beep.Options{Controlled: true})
	return err
}

// heading begins a part of the output.
func (d *demo) heading(format string, args ...any) {
	fmt.Fprintf(d.out, "\n── "+format+"\n\n", args...)
}

// problem notes something that is not as it should be.
func (d *demo) problem(format string, args ...any) {
	d.problems = append(d.problems, fmt.Sprintf(format, args...))
}

// tool runs beep's own tool on a node and shows what a person would see.
func (d *demo) tool(node, name string, flags ...string) error {
	text, err := d.daemons[node].Tool(name, flags...)
	if err != nil {
		return err
	}
	fmt.Fprintf(d.out, "%s# beep %s\n%s", node,
		strings.Join(append([]string{name, "--pin-dir", d.daemons[node].PinDir()}, flags...), " "), text)
	return nil
}

func (d *demo) showFronts(context.Context) error {
	d.heading("What a node without pods holds: its fronts, and which node runs each endpoint.")
	return d.tool("node-c", "fronts")
}

func (d *demo) showFlows(context.Context) error {
	d.heading("What became of the requests: the same connections, at the node that was dialled and at the pod's.")
	front := d.topology.Addr("node-c", topo.V4).String()
	if err := d.tool("node-c", "flows", "--front", front); err != nil {
		return err
	}
	fmt.Fprintln(d.out)
	return d.tool("node-b", "flows", "--front", front)
}
