// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/cenkalti/backoff/v5"
	"sigs.k8s.io/yaml"

	"github.com/beep-lb/beep/harness/beep"
	"github.com/beep-lb/beep/harness/netns"
)

// manifests are what the controllers read. There is no Kubernetes here, so its controllers' objects are among them.
//
//go:embed manifests
var manifests embed.FS

const (
	// seed is the hash seed of the demo, in the file that the controllers would otherwise draw theirs into.
	seed     = "b0000000000000000000000000000111\n"
	seedFile = ".beep-seed"
	// settled bounds the wait for the controllers.
	settled = 20 * time.Second
)

// control runs a controller on each node, all by the same files, and shows what they make of them.
func (d *demo) control(ctx context.Context) error {
	if err := d.writeManifests(); err != nil {
		return err
	}
	services, err := manifests.ReadFile("manifests/services.yaml")
	if err != nil {
		return err
	}
	d.heading("beep-controller --manifests DIR runs on each node. DIR holds Nodes, EndpointSlices and these Services:")
	fmt.Fprintf(d.out, "%s", services)
	binary, err := beep.Binary("beep-controller")
	if err != nil {
		return err
	}
	var started []*controller
	for _, node := range nodes {
		c, err := d.startController(binary, node)
		if err != nil {
			return err
		}
		started = append(started, c)
	}
	for _, c := range started {
		if err := c.await(ctx); err != nil {
			return err
		}
	}
	return d.showStatus()
}

// writeManifests writes the files into a directory of their own.
func (d *demo) writeManifests() (err error) {
	if d.dir, err = os.MkdirTemp("", "beep-demo-"); err != nil {
		return err
	}
	entries, err := fs.ReadDir(manifests, "manifests")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		text, err := manifests.ReadFile("manifests/" + entry.Name())
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(d.dir, entry.Name()), text, 0o600); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(d.dir, seedFile), []byte(seed), 0o600)
}

// controller is beep-controller on one node.
type controller struct {
	node      string
	process   *netns.Process
	readyFile string
	log       bytes.Buffer // to be read when it has ended
}

func (d *demo) startController(binary, node string) (*controller, error) {
	c := &controller{node: node, readyFile: d.readyFile(node)}
	cmd := exec.Command(binary, "--node-name", node, "--pin-dir", d.daemons[node].PinDir(), "--manifests", d.dir,
		"--ready-file", c.readyFile)
	cmd.Stdout, cmd.Stderr = &c.log, &c.log
	var err error
	c.process, err = d.topology.NS(node).Start(cmd)
	return c, err
}

// readyFile is hidden from the controllers, which read the directory.
func (d *demo) readyFile(node string) string { return filepath.Join(d.dir, "."+node+"-ready") }

// await waits until the node's maps are as the manifests ask.
func (c *controller) await(ctx context.Context) error {
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		select {
		case <-c.process.Done():
			return struct{}{}, backoff.Permanent(fmt.Errorf("it ended: %s", bytes.TrimSpace(c.log.Bytes())))
		default:
		}
		_, err := os.Stat(c.readyFile)
		return struct{}{}, err
	}, backoff.WithBackOff(backoff.NewConstantBackOff(10*time.Millisecond)), backoff.WithMaxElapsedTime(settled))
	if err != nil {
		return fmt.Errorf("beep-controller on %s: wait until it is ready: %w", c.node, err)
	}
	return nil
}

// showStatus prints what a Service would list, from the file that the controller of node-a writes beside the manifests.
func (d *demo) showStatus() error {
	name := nodes[0] + ".status.yaml"
	text, err := os.ReadFile(filepath.Join(d.dir, name))
	if err != nil {
		return err
	}
	var status struct {
		Services []struct {
			Name    string
			Ingress []struct{ IP string }
		}
		LeftOut []string
	}
	if err := yaml.Unmarshal(text, &status); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	d.heading("Every node has the fronts now. The status beside the manifests (%s) says where the Services are:", name)
	table := tabwriter.NewWriter(d.out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "SERVICE\tEXTERNAL-IP")
	for _, service := range status.Services {
		var addrs []string
		for _, entry := range service.Ingress {
			addrs = append(addrs, entry.IP)
		}
		fmt.Fprintf(table, "%s\t%s\n", service.Name, strings.Join(addrs, ", "))
		if want := len(nodes) * len(families); len(addrs) != want {
			d.problem("Service %s lists %d addresses, want %d", service.Name, len(addrs), want)
		}
	}
	for _, reason := range status.LeftOut {
		d.problem("left out: %s", reason)
	}
	return table.Flush()
}

// explain asks a controller about a Service, as a person would.
func (d *demo) explain(ctx context.Context) error {
	const node = "node-c"
	binary, err := beep.Binary("beep")
	if err != nil {
		return err
	}
	d.heading("Why it is so, from the controller of that node.")
	var out, errout bytes.Buffer
	cmd := exec.Command(binary, "explain", "shop/web", "--ready-file", d.readyFile(node))
	cmd.Stdout, cmd.Stderr = &out, &errout
	if err := d.topology.NS(node).Run(ctx, cmd); err != nil {
		return fmt.Errorf("beep explain: %w: %s", err, bytes.TrimSpace(errout.Bytes()))
	}
	fmt.Fprintf(d.out, "%s# beep explain shop/web\n%s", node, out.String())
	return nil
}

// removeManifests removes the directory with all that was written beside the manifests.
func (d *demo) removeManifests() error {
	if d.dir == "" {
		return nil
	}
	return os.RemoveAll(d.dir)
}
