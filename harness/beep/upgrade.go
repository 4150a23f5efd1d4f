// SPDX-License-Identifier: Apache-2.0

package beep

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/beep-lb/beep/harness/netns"
)

// UseBinary has the next start, and all tools from now on, use another build; "" is the one that EnvBinary names.
func (d *Daemon) UseBinary(path string) error {
	if path == "" {
		var err error
		if path, err = binaryPath(); err != nil {
			return err
		}
	}
	d.binary = path
	return nil
}

// SetFlag has the next start use another value of a flag, written as --max-fronts.
func (d *Daemon) SetFlag(name, value string) {
	if i := slices.Index(d.args, name); i >= 0 {
		d.args = slices.Clone(d.args)
		d.args[i+1] = value
		return
	}
	d.args = append(d.args, name, value)
}

// RunToEnd starts the process, which must not run, with further environment variables (NAME=value), and returns how
// it ended, which it must do by itself: an *exec.ExitError, or nil after exit status 0. Log has what it printed.
func (d *Daemon) RunToEnd(env ...string) error {
	if d.Running() {
		return fmt.Errorf("beep on %s: start: it runs already", d.node)
	}
	process, err := d.launch(env)
	if err != nil {
		return err
	}
	select {
	case <-process.Done():
		return process.Wait()
	case <-time.After(readyDeadline):
		return errors.Join(fmt.Errorf("beep on %s: it still runs after %v with %v", d.node, readyDeadline, env), process.Kill())
	}
}

// launch starts the process.
func (d *Daemon) launch(env []string) (*netns.Process, error) {
	cmd := exec.Command(d.binary, append([]string{"run", "--pin-dir", d.pinDir}, d.args...)...)
	cmd.Stdout, cmd.Stderr = &d.log, &d.log
	if env != nil {
		cmd.Env = append(os.Environ(), env...)
	}
	process, err := d.ns.Start(cmd)
	if err != nil {
		return nil, fmt.Errorf("beep on %s: %w", d.node, err)
	}
	d.mu.Lock()
	d.process = process
	d.mu.Unlock()
	return process, nil
}

// Wipe removes everything that is pinned, as a reboot of the machine does: no program is attached any more, and no map
// is left. The process must not run.
func (d *Daemon) Wipe() error {
	if d.Running() {
		return fmt.Errorf("beep on %s: wipe its pins: it runs", d.node)
	}
	if err := os.RemoveAll(d.pinDir); err != nil {
		return fmt.Errorf("beep on %s: wipe its pins: %w", d.node, err)
	}
	return nil
}
