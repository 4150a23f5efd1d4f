// SPDX-License-Identifier: Apache-2.0

// Package beep runs the real binary on the nodes of a topology: its fixtures, its daemon, its tools. Invariant: a
// Daemon's pin directory is on a bpffs of its own that lives as long as the node's namespace, so that neither the
// end of the process nor the end of the spec takes the maps away before the artifacts were written.
package beep

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/beep-lb/beep/harness/artifacts"
	"github.com/beep-lb/beep/harness/bpffs"
	"github.com/beep-lb/beep/harness/netns"
	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/transcript"
)

// EnvBinary names the environment variable that says where the binary is. Without it that is bin/beep in the root
// of the repository, where `make build` puts it.
const EnvBinary = "BEEP_BIN"

// DefaultSeed is the --flow-hash-seed of a run that names none; all nodes of a rig must share one.
const DefaultSeed = 1

// The waits end a spec that would otherwise hang; a start takes well below a second.
var (
	readyDeadline = require.Within(20 * time.Second)
	endDeadline   = require.Within(10 * time.Second)
	toolDeadline  = require.Within(20 * time.Second)
)

// metricsAddr is where the daemon tells whether it is ready: its default, on the loopback of its own namespace.
const metricsAddr = "127.0.0.1:9962"

// Options say how `beep run` is started. The zero value is a node with peers but no fronts.
type Options struct {
	Controlled bool                 // a beep-controller fills the maps: no fixtures, and no seed
	Services   []Service            // become fronts and targets, see Fixtures
	Underlay   topo.Families        // see Fixtures
	Fixtures   []string             // further values of --fixture
	Uplinks    []string             // values of --uplink-iface; nil is every device that the plan gives the node
	Seed       uint64               // --flow-hash-seed; 0 is DefaultSeed
	Args       []string             // further flags
	Evidence   *artifacts.Collector // gets dumps of status, fronts, flows, drops, nodes and the log; nil for none
}

// Daemon is `beep run` on one node: the process of the moment, and the pins that outlive it. Methods may be called
// from any goroutine, but not two that start or end the process at once.
type Daemon struct {
	node   string
	ns     *netns.NS
	binary string
	pinDir string
	args   []string
	log    transcript.Transcript

	mu      sync.Mutex
	process *netns.Process
}

// Start starts the daemon on a node and returns when it serves. The test fails if it does not.
func Start(tb require.TB, topology *topo.Topology, node string, o Options) *Daemon {
	tb.Helper()
	daemon, err := Launch(topology, node, o)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	return daemon
}

// StartAll starts the daemon on every node of the topology, all at once, and returns them by the node's name.
func StartAll(tb require.TB, topology *topo.Topology, o Options) map[string]*Daemon {
	tb.Helper()
	daemons, err := LaunchAll(topology, o)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	return daemons
}

// LaunchAll is StartAll for a program that has no test around it.
func LaunchAll(topology *topo.Topology, o Options) (map[string]*Daemon, error) {
	daemons := map[string]*Daemon{}
	var (
		starting sync.WaitGroup
		mu       sync.Mutex
		errs     []error
	)
	for _, host := range topology.Hosts {
		if host.Role != topo.Node {
			continue
		}
		starting.Go(func() {
			daemon, err := Launch(topology, host.Name, o)
			mu.Lock()
			defer mu.Unlock()
			daemons[host.Name] = daemon
			errs = append(errs, err)
		})
	}
	starting.Wait()
	return daemons, errors.Join(errs...)
}

// Launch starts the daemon for a program that has no test around it; topology.Close ends it and removes its pins.
func Launch(topology *topo.Topology, node string, o Options) (*Daemon, error) {
	binary, err := binaryPath()
	if err != nil {
		return nil, err
	}
	mount, unmount, err := bpffs.Mount()
	if err != nil {
		return nil, fmt.Errorf("beep on %s: %w", node, err)
	}
	d := &Daemon{node: node, ns: topology.NS(node), binary: binary, pinDir: filepath.Join(mount, "beep")}
	d.ns.OnClose(unmount)
	d.args = o.flags(topology, node)
	if o.Evidence != nil {
		d.Show(o.Evidence)
	}
	return d, d.Restart()
}

// flags are those of `beep run`, but for --pin-dir.
func (o *Options) flags(topology *topo.Topology, node string) []string {
	uplinks := o.Uplinks
	if uplinks == nil {
		for _, device := range topology.Devices() {
			if device.Host == node {
				uplinks = append(uplinks, device.Device)
			}
		}
	}
	flags := []string{"--metrics-addr", metricsAddr}
	for _, uplink := range uplinks {
		flags = append(flags, "--uplink-iface", uplink)
	}
	if o.Controlled {
		return append(flags, o.Args...)
	}
	flags = append(flags, "--flow-hash-seed", strconv.FormatUint(cmp.Or(o.Seed, DefaultSeed), 10))
	for _, fixture := range slices.Concat(Fixtures(&topology.Plan, node, o.Underlay, o.Services), o.Fixtures) {
		flags = append(flags, "--fixture", fixture)
	}
	return append(flags, o.Args...)
}

// Show has the collector show the daemon as it is when the spec has failed. Options.Evidence does so from the start.
func (d *Daemon) Show(evidence *artifacts.Collector) {
	for _, tool := range []string{"status", "nodes", "fronts", "flows", "drops"} {
		evidence.Register(d.node+"-beep-"+tool, func(w io.Writer) {
			out, err := d.Tool(tool)
			fmt.Fprint(w, out)
			if err != nil {
				fmt.Fprintf(w, "%v\n", err)
			}
		})
	}
	evidence.Register(d.node+"-beep-log", func(w io.Writer) {
		fmt.Fprintf(w, "beep run --pin-dir %s %s\n\n%s", d.pinDir, strings.Join(d.args, " "), d.Log())
	})
}

// PinDir is the value of --pin-dir.
func (d *Daemon) PinDir() string { return d.pinDir }

// RunArgs are the arguments with which Tool would start a second instance: run and all flags but --pin-dir.
func (d *Daemon) RunArgs() []string { return append([]string{"run"}, d.args...) }

// Restart starts the process, which must not run, on the pins that are there, and returns when it serves.
func (d *Daemon) Restart() error {
	if d.Running() {
		return fmt.Errorf("beep on %s: start: it runs already", d.node)
	}
	process, err := d.launch(nil)
	if err != nil {
		return err
	}
	if err := d.waitReady(process); err != nil {
		return fmt.Errorf("beep on %s: wait until it serves: %w\nlog:\n%s", d.node, err, d.Log())
	}
	return nil
}

// waitReady asks the process itself, since the pins of an earlier one would say that all is well; and then the
// operator's tool, which must agree.
func (d *Daemon) waitReady(process *netns.Process) error {
	client := &http.Client{Transport: &http.Transport{DialContext: d.ns.DialContext, DisableKeepAlives: true}}
	ctx, cancel := context.WithTimeout(context.Background(), readyDeadline)
	defer cancel()
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		select {
		case <-process.Done():
			return struct{}{}, backoff.Permanent(errors.Join(errors.New("it ended"), process.Wait()))
		default:
		}
		return struct{}{}, askReady(ctx, client)
	}, backoff.WithBackOff(backoff.NewConstantBackOff(5*time.Millisecond)), backoff.WithMaxElapsedTime(0))
	if err != nil {
		return err
	}
	_, err = d.Tool("status", "-o", "json")
	return err
}

func askReady(ctx context.Context, client *http.Client) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+metricsAddr+"/readyz", nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("not ready: %s", bytes.TrimSpace(body))
	}
	return errors.Join(err, response.Body.Close())
}

// Running says whether the process has not ended.
func (d *Daemon) Running() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.process == nil {
		return false
	}
	select {
	case <-d.process.Done():
		return false
	default:
		return true
	}
}

// Kill9 ends the process by SIGKILL and returns when it is gone.
func (d *Daemon) Kill9() error {
	if !d.Running() {
		return fmt.Errorf("beep on %s: kill: it does not run\nlog:\n%s", d.node, d.Log())
	}
	return d.process.Kill()
}

// Terminate asks the process to end (SIGTERM) and returns when it is gone. That it took too long, or did not exit
// with 0, is an error.
func (d *Daemon) Terminate() error {
	if !d.Running() {
		return fmt.Errorf("beep on %s: terminate: it does not run\nlog:\n%s", d.node, d.Log())
	}
	if err := d.process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("beep on %s: terminate: %w", d.node, err)
	}
	select {
	case <-d.process.Done():
	case <-time.After(endDeadline):
		return errors.Join(fmt.Errorf("beep on %s: it still runs %v after SIGTERM", d.node, endDeadline), d.process.Kill())
	}
	if err := d.process.Wait(); err != nil {
		return fmt.Errorf("beep on %s: end after SIGTERM: %w\nlog:\n%s", d.node, err, d.Log())
	}
	return nil
}

// Log is what all processes of this daemon have printed so far.
func (d *Daemon) Log() string { return d.log.String() }

// Tool runs `beep NAME FLAGS… --pin-dir DIR` on the node and returns its standard output, also beside an error.
// The error of a command that failed holds its standard error and wraps an *exec.ExitError.
func (d *Daemon) Tool(name string, flags ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(d.binary, append([]string{name, "--pin-dir", d.pinDir}, flags...)...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	ctx, cancel := context.WithTimeout(context.Background(), toolDeadline)
	defer cancel()
	if err := d.ns.Run(ctx, cmd); err != nil {
		return stdout.String(), fmt.Errorf("beep %s on %s: %w: %s", name, d.node, err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.String(), nil
}

// Drops are the packets dropped on the node since its maps were made, both directions, by the reason's short name
// (no-endpoint, unknown-peer…). Reasons without a packet are left out, so an empty map is a clean node.
func (d *Daemon) Drops() (map[string]uint64, error) {
	out, err := d.Tool("drops", "-o", "json")
	if err != nil {
		return nil, err
	}
	var rows []struct {
		Reason  string
		Packets uint64
	}
	if err := json.Unmarshal([]byte(out), &rows); err != nil {
		return nil, fmt.Errorf("beep drops on %s: read %q: %w", d.node, out, err)
	}
	drops := map[string]uint64{}
	for _, row := range rows {
		if row.Packets > 0 {
			drops[row.Reason] += row.Packets
		}
	}
	return drops, nil
}

// Binary finds one of beep's programs, beside the one that EnvBinary names.
func Binary(name string) (string, error) {
	beep, err := binaryPath()
	if err != nil {
		return "", err
	}
	path := filepath.Join(filepath.Dir(beep), name)
	if !exists(path) {
		return "", fmt.Errorf("no binary %s: run `make build`", path)
	}
	return path, nil
}

// binaryPath finds the binary. go test runs in the directory of the package, below the go.mod.
func binaryPath() (string, error) {
	path := os.Getenv(EnvBinary)
	if path == "" {
		dir, err := os.Getwd()
		if err != nil {
			return "", fmt.Errorf("find the repository: %w", err)
		}
		for path = filepath.Join(dir, "bin", "beep"); !exists(filepath.Join(dir, "go.mod")) && dir != filepath.Dir(dir); {
			dir = filepath.Dir(dir)
			path = filepath.Join(dir, "bin", "beep")
		}
	}
	if !exists(path) {
		return "", fmt.Errorf("no binary %s: run `make build`, or set %s", path, EnvBinary)
	}
	return path, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
