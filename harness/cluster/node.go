// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/beep-lb/beep/harness/beep"
	"github.com/beep-lb/beep/harness/kube"
	"github.com/beep-lb/beep/src/explain"
)

// Node is one node of a cluster and what runs on it.
type Node struct {
	Name       string
	Datapath   *beep.Daemon
	Controller *Controller
	Proxy      *kube.Proxy // nil without Options.Proxy

	c *Cluster
}

// launch starts all programs of a node that has joined.
func (n *Node) launch(o Options) (err error) {
	if n.Datapath, err = beep.Launch(n.c.Topology, n.Name, o.daemonOptions()); err != nil {
		return err
	}
	if n.Controller, err = newController(n, o.Controller); err != nil {
		return err
	}
	if o.Proxy != "" {
		if n.Proxy, err = n.c.Control.StartProxy(n.c.Topology, n.Name, kube.ProxyOptions{Mode: o.Proxy}); err != nil {
			return err
		}
	}
	if o.Idle {
		return nil
	}
	return n.Controller.Start()
}

// PowerOff is the end of a machine: its cables are dead, its kubelet is silent, its processes are gone and with them
// what they had pinned. Its pods are where nobody reaches them.
func (n *Node) PowerOff() error {
	errs := []error{n.c.SetCables(n.Name, false), n.c.Control.SetCable(n.Name, false)}
	n.c.Control.StopBeats(n.Name)
	n.c.kubelets.set(n.Name, false)
	if n.Controller.Running() {
		errs = append(errs, n.Controller.Kill9())
	}
	if n.Proxy != nil && n.Proxy.Running() {
		errs = append(errs, n.Proxy.Kill9())
	}
	if n.Datapath.Running() {
		errs = append(errs, n.Datapath.Kill9())
	}
	return errors.Join(append(errs, n.Datapath.Wipe())...)
}

// PowerOn starts the machine again, with everything that runs on it. Pods that nobody deleted meanwhile are back.
func (n *Node) PowerOn(ctx context.Context) error {
	if err := errors.Join(n.c.SetCables(n.Name, true), n.c.Control.SetCable(n.Name, true)); err != nil {
		return err
	}
	if err := n.Datapath.Restart(); err != nil {
		return err
	}
	if err := n.Controller.Start(); err != nil {
		return err
	}
	if n.Proxy != nil {
		if err := n.Proxy.Restart(); err != nil {
			return err
		}
	}
	n.c.kubelets.set(n.Name, true)
	return n.c.Control.ResumeBeats(ctx, n.Name)
}

// Controller is beep-controller on one node. Terminate and Kill9 are those of a program.
type Controller struct {
	*kube.Program
	node  *Node
	extra []string // flags beside those that every one has
	ready string
}

func newController(n *Node, extra []string) (*Controller, error) {
	binary, err := beep.Binary("beep-controller")
	if err != nil {
		return nil, err
	}
	c := &Controller{
		Program: kube.NewProgram(n.c.NS(n.Name), n.Name, binary), node: n, extra: extra,
		ready: filepath.Join(n.c.dir, n.Name+"-ready"),
	}
	return c, c.UseServer(kube.Server)
}

// Start starts the process, which must not run, where no earlier one has left a ready file: a container that starts has
// an empty file system.
func (c *Controller) Start() error {
	if err := os.Remove(c.ready); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: remove the ready file: %w", c, err)
	}
	return c.Program.Start()
}

// UseServer has the next Start look for the API server at another address: that of something which stands between.
func (c *Controller) UseServer(at netip.AddrPort) error {
	kubeconfig, err := c.node.c.Control.KubeconfigAt(at, c.User(), controllers)
	if err != nil {
		return err
	}
	args := []string{"--pin-dir", c.node.Datapath.PinDir(), "--node-name", c.node.Name, "--kubeconfig", kubeconfig, "--ready-file", c.ready}
	c.SetArgs(append(args, c.extra...)...)
	return nil
}

// User is who the API server takes the controller for, as kube.Write has it.
func (c *Controller) User() string { return UserPrefix + c.node.Name }

// Ready is nil if the ready file says that this node's maps were made as desired.
func (c *Controller) Ready(context.Context) error {
	if _, err := os.Stat(c.ready); err != nil {
		return fmt.Errorf("%s is not ready: %w", c, err)
	}
	return nil
}

// AwaitReady waits until Ready is nil. It fails early if the process ends.
func (c *Controller) AwaitReady(ctx context.Context) error { return c.Await(ctx, c.Ready) }

// Explain is what `beep explain` answers on this node about a Service (NAMESPACE/NAME) or a Node.
func (c *Controller) Explain(ctx context.Context, name string) (explain.Answer, error) {
	return explain.Ask(ctx, c.ready+".sock", name)
}
