// SPDX-License-Identifier: Apache-2.0

// Package artifacts keeps what a person needs to understand a failed spec: the topology, the state of every
// namespace, captures, and what the spec registers. Invariant: a failed spec leaves exactly one directory, whose
// path is in its log, and one that passed leaves none.
package artifacts

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/beep-lb/beep/harness/checkout"
	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
)

// EnvDir names the environment variable that says below which directory specs leave theirs. Without it that is
// build/artifacts in the root of the repository.
const EnvDir = "BEEP_ARTIFACTS"

// captureLimits keep all headers of a tunnelled packet, and bound what a spec that moves gigabytes may write.
var captureLimits = traffic.CaptureLimits{Snap: 256, Total: 32 << 20}

// Collector gathers the artifacts of one spec. Its methods may be called from any goroutine.
type Collector struct {
	spec     string
	topology *topo.Topology

	mu       sync.Mutex
	dir      string // empty until something is to be written
	dumpers  []dumper
	captures []*traffic.Capture
}

type dumper struct {
	name string
	dump func(io.Writer)
}

// New dumps at the test's cleanup if the test has failed. Call it after topo.New, so that it runs before the
// topology is removed, and before whatever Register is to show is started.
func New(tb require.TB, topology *topo.Topology) *Collector {
	tb.Helper()
	c := &Collector{spec: tb.Name(), topology: topology}
	tb.Cleanup(func() {
		if !tb.Failed() {
			if err := c.discard(); err != nil {
				tb.Errorf("%v", err)
			}
			return
		}
		dir, err := c.Dump()
		if err != nil {
			tb.Logf("artifacts are incomplete: %v", err)
		}
		tb.Logf("artifacts: %s", dir)
	})
	return c
}

// Register adds a file NAME.txt to the dump, written by dump when the spec has failed: beep's maps, drop
// counters, a daemon's log. The last registration of a name holds.
func (c *Collector) Register(name string, dump func(io.Writer)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.dumpers {
		if c.dumpers[i].name == name {
			c.dumpers[i].dump = dump
			return
		}
	}
	c.dumpers = append(c.dumpers, dumper{name, dump})
}

// Path is the path of a file NAME of the spec's directory, for what is written as it comes: it then is there even if
// the process does not live to dump.
func (c *Collector) Path(name string) (string, error) {
	dir, err := c.directory()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, fileName(name)), nil
}

// CaptureAll starts a capture of every device of every host and pod, into HOST-DEVICE.pcap: the first 256 bytes of
// each frame, at most 32 MiB a device. A device that is recreated later is not followed.
func (c *Collector) CaptureAll() error {
	devices := c.topology.Devices()
	for _, pod := range c.topology.Pods {
		devices = append(devices, topo.End{Host: pod.Name, Device: "eth0"})
	}
	for _, device := range devices {
		path, err := c.Path(device.Host + "-" + device.Device + ".pcap")
		if err != nil {
			return err
		}
		capture, err := traffic.StartCapture(c.topology.NS(device.Host), device.Device, path, captureLimits)
		if err != nil {
			return err
		}
		c.mu.Lock()
		c.captures = append(c.captures, capture)
		c.mu.Unlock()
	}
	return nil
}

// Dump writes everything now and ends the captures, whether or not the spec has failed. It returns the directory
// even beside an error, which then names every part that is missing.
func (c *Collector) Dump() (string, error) {
	dir, err := c.directory()
	if err != nil {
		return "", err
	}
	errs := []error{c.stopCaptures()}
	errs = append(errs, write(dir, "topology", c.topology.Draw))
	for _, member := range c.topology.Members() {
		name := member.Name
		if member.LAN {
			name = "lan-" + name
		}
		errs = append(errs, write(dir, name, func(w io.Writer) { dumpNamespace(w, member.NS) }))
	}
	c.mu.Lock()
	dumpers := append([]dumper(nil), c.dumpers...)
	c.mu.Unlock()
	for _, d := range dumpers {
		errs = append(errs, write(dir, d.name, d.dump))
	}
	return dir, errors.Join(errs...)
}

func (c *Collector) stopCaptures() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, capture := range c.captures {
		_, err := capture.Stop()
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (c *Collector) discard() error {
	err := c.stopCaptures()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dir == "" {
		return err
	}
	return errors.Join(err, os.RemoveAll(c.dir))
}

// directory makes the spec's directory at its first use. A name that is taken, by an earlier run or by the same
// spec of another suite, gets a number.
func (c *Collector) directory() (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dir != "" {
		return c.dir, nil
	}
	root, err := root()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return "", fmt.Errorf("make the artifacts directory: %w", err)
	}
	name := filepath.Join(root, fileName(c.spec))
	for number := 1; ; number++ {
		dir := name
		if number > 1 {
			dir = fmt.Sprintf("%s.%d", name, number)
		}
		err := os.Mkdir(dir, 0o755)
		if err == nil {
			c.dir = dir
			return dir, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("make the artifacts directory: %w", err)
		}
	}
}

// root is the directory of all specs.
func root() (string, error) {
	if dir := os.Getenv(EnvDir); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := checkout.Path("build", "artifacts")
	if err != nil {
		return "", fmt.Errorf("%w: set %s", err, EnvDir)
	}
	return dir, nil
}

var unfit = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// fileName makes a name that every file system and upload action takes.
func fileName(name string) string {
	const longest = 120
	name = strings.Trim(unfit.ReplaceAllString(name, "-"), "-.")
	return name[:min(len(name), longest)]
}

func write(dir, name string, dump func(io.Writer)) (err error) {
	file, err := os.Create(filepath.Join(dir, fileName(name)+".txt"))
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	buffer := bufio.NewWriter(file)
	dump(buffer)
	if err := buffer.Flush(); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
