// SPDX-License-Identifier: Apache-2.0

package lima

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/beep-lb/beep/harness/checkout"
)

// EnvK3s names the environment variable with the path of a k3s, the program that k3s's releases consist of.
const EnvK3s = "BEEP_K3S"

// token is what a node joins with. Whoever reaches the machines' network, which is the host's alone, may join.
const token = "beep-rig"

// Cluster is a k3s of a server and an agent, and a client outside of it. Its methods may be called from any goroutine.
type Cluster struct {
	// Nodes are the server and the agent.
	Nodes []*Machine
	// Client is a machine beside them.
	Client *Machine
}

// Launch starts a cluster as deploy/README.md asks for one, and returns when both nodes are ready; the caller calls Close,
// also after an error, unless there is no cluster.
func Launch(ctx context.Context) (*Cluster, error) {
	if err := Check(); err != nil {
		return nil, err
	}
	program := os.Getenv(EnvK3s)
	if program == "" {
		return nil, fmt.Errorf("%s is not set: give it the path of the k3s of a release (ci/fetch-k3s gets one)", EnvK3s)
	}
	return launch(ctx, program)
}

func launch(ctx context.Context, program string) (*Cluster, error) {
	c := &Cluster{Nodes: make([]*Machine, 2)}
	group, starting := errgroup.WithContext(ctx)
	for i, to := range []**Machine{&c.Nodes[0], &c.Nodes[1], &c.Client} {
		name := []string{"k3s-server", "k3s-agent", "k3s-client"}[i]
		group.Go(func() (err error) {
			*to, err = Start(starting, name, "k3s")
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return c, err
	}
	for i, node := range c.Nodes {
		if err := c.install(ctx, node, program, i == 0); err != nil {
			return c, err
		}
	}
	root, err := checkout.Path("deploy")
	if err != nil {
		return c, err
	}
	if err := c.Nodes[0].CopyTree(ctx, root, inMachine+"/deploy"); err != nil {
		return c, err
	}
	return c, c.awaitNodes(ctx)
}

// install puts k3s on a machine and starts it there.
func (c *Cluster) install(ctx context.Context, node *Machine, program string, server bool) error {
	path, err := node.Copy(ctx, program)
	if err != nil {
		return err
	}
	role, config := "agent", "server: https://"+c.Nodes[0].Host()+":6443\ntoken: "+token+"\n"
	if server {
		// As deploy/README.md says, and Traefik would have taken ports 80 and 443.
		role, config = "server", "disable: [servicelb, traefik]\ntoken: "+token+"\n"
	}
	_, err = node.RunWith(ctx, "mkdir -p /etc/rancher/k3s && cat >/etc/rancher/k3s/config.yaml && "+
		"install -m 755 "+path+" /usr/local/bin/k3s && echo ROLE="+role+" >/etc/default/k3s && "+
		"systemctl daemon-reload && systemctl enable --now k3s", strings.NewReader(config))
	return err
}

// awaitNodes waits until both nodes are ready.
func (c *Cluster) awaitNodes(ctx context.Context) error {
	for {
		out, err := c.Kubectl(ctx, "get nodes -o jsonpath='{.items[*].status.conditions[?(@.type==\"Ready\")].status}'")
		if err == nil && out == "True True" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the nodes are not ready (%q): %w", out, errors.Join(ctx.Err(), err))
		case <-time.After(2 * time.Second):
		}
	}
}

// Kubectl runs kubectl with arguments as a shell has them, as the administrator, where deploy/ of this checkout is, and
// returns what it printed.
func (c *Cluster) Kubectl(ctx context.Context, args string) (string, error) {
	return c.Nodes[0].Run(ctx, "cd "+inMachine+" && k3s kubectl "+args)
}

// Import imports an image's archive on every node.
func (c *Cluster) Import(ctx context.Context, path string) error {
	for _, node := range c.Nodes {
		at, err := node.Copy(ctx, path)
		if err != nil {
			return err
		}
		if _, err := node.Run(ctx, "k3s ctr images import "+at); err != nil {
			return err
		}
	}
	return nil
}

// Close removes all machines.
func (c *Cluster) Close(ctx context.Context) error {
	var errs []error
	for _, machine := range append([]*Machine{c.Client}, c.Nodes...) {
		if machine != nil {
			errs = append(errs, machine.Delete(ctx))
		}
	}
	return errors.Join(errs...)
}
