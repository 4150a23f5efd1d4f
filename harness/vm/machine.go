// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/beep-lb/beep/harness/netns"
	"github.com/beep-lb/beep/harness/require"
)

// Machine is a running guest. Its methods may be called from any goroutine.
type Machine struct {
	name    string
	process *netns.Process
	console *console
	errors  *bytes.Buffer // QEMU's own; complete when the process is done
	ports   map[string]net.Conn
	ending  func() error // run once, by Stop
}

// New starts a machine for one test and stops it at the test's cleanup. The test fails if it does not start.
func New(ctx context.Context, tb require.TB, config Config) *Machine {
	tb.Helper()
	Require(tb)
	machine, err := Start(ctx, config)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	tb.Cleanup(func() {
		if err := machine.Stop(); err != nil {
			tb.Errorf("%v", err)
		}
	})
	return machine
}

// Start starts a machine for a program that has no test around it; the caller calls Stop. When it returns, QEMU runs
// and the guest begins: await what it prints. The context needs a deadline, and ends nothing but Start.
func Start(ctx context.Context, config Config) (*Machine, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	if _, bounded := ctx.Deadline(); !bounded {
		return nil, fmt.Errorf("machine %q: its start has no deadline: give the context one", config.Name)
	}
	machine := &Machine{name: config.Name, console: newConsole(), errors: new(bytes.Buffer), ports: make(map[string]net.Conn)}
	var closers []func() error
	machine.ending = sync.OnceValue(func() error {
		var errs []error
		for _, closer := range slices.Backward(closers) {
			errs = append(errs, closer())
		}
		return errors.Join(errs...)
	})
	err := machine.start(ctx, config, func(closer func() error) { closers = append(closers, closer) })
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start machine %s: %w", config.Name, err), machine.ending())
	}
	return machine, nil
}

// start hands what is to be undone to onStop, which runs it backwards.
func (m *Machine) start(ctx context.Context, config Config, onStop func(func() error)) error {
	if config.Log != "" {
		log, err := os.Create(config.Log)
		if err != nil {
			return fmt.Errorf("make its log: %w", err)
		}
		m.console.log = log
		onStop(log.Close)
	}
	ns := config.NS
	if ns == nil {
		var err error
		if ns, err = netns.Create("vm-" + config.Name); err != nil {
			return err
		}
		onStop(ns.Close)
	}
	listeners, sockets, err := listen(config.Ports, onStop)
	if err != nil {
		return err
	}
	cmd := exec.Command(emulator, config.args(sockets)...)
	cmd.Stdout, cmd.Stderr = m.console, m.errors
	if m.process, err = ns.Start(cmd); err != nil {
		return err
	}
	onStop(m.process.Kill)
	go func() {
		<-m.process.Done()
		m.console.end()
		// Whoever still waits for the machine to connect need not wait longer.
		for _, listener := range listeners {
			_ = listener.Close()
		}
	}()
	for i, listener := range listeners {
		conn, err := accept(ctx, listener)
		if err != nil {
			return fmt.Errorf("open port %s: %w%s", config.Ports[i], err, m.said())
		}
		m.ports[config.Ports[i]] = conn
		onStop(conn.Close)
	}
	return nil
}

// listen opens one unix socket a port, in a directory of their own.
func listen(ports []string, onStop func(func() error)) ([]*net.UnixListener, []string, error) {
	if len(ports) == 0 {
		return nil, nil, nil
	}
	dir, err := os.MkdirTemp("", "beep-vm-")
	if err != nil {
		return nil, nil, fmt.Errorf("make a directory for its ports: %w", err)
	}
	onStop(func() error { return os.RemoveAll(dir) })
	var listeners []*net.UnixListener
	var sockets []string
	for _, port := range ports {
		path := filepath.Join(dir, port)
		listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			return nil, nil, fmt.Errorf("listen for port %s: %w", port, err)
		}
		listeners, sockets = append(listeners, listener), append(sockets, path)
	}
	return listeners, sockets, nil
}

// accept takes the one connection that comes, and closes the listener.
func accept(ctx context.Context, listener *net.UnixListener) (net.Conn, error) {
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	conn, err := listener.Accept()
	_ = listener.Close()
	if err != nil {
		return nil, errors.Join(err, ctx.Err())
	}
	return conn, nil
}

// Port is the host's end of a port that Config names: what the guest writes is read here, and the other way round. A
// name that Config does not have is a mistake of the caller: it panics.
func (m *Machine) Port(name string) net.Conn {
	conn, ok := m.ports[name]
	if !ok {
		panic(fmt.Sprintf("vm: machine %s has no port %q", m.name, name))
	}
	return conn
}

// Done is closed when the machine has ended: powered off, panicked, or stopped.
func (m *Machine) Done() <-chan struct{} { return m.process.Done() }

// Pid is the process id of QEMU.
func (m *Machine) Pid() int { return m.process.Pid() }

// Serial is what the guest has printed on its console so far.
func (m *Machine) Serial() string { return m.console.text() }

// Wait waits until the guest has powered off. That QEMU failed, or the context ended first, is an error.
func (m *Machine) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return fmt.Errorf("machine %s has not powered off: %w%s", m.name, ctx.Err(), m.said())
	case <-m.process.Done():
	}
	if err := m.process.Wait(); err != nil {
		return fmt.Errorf("machine %s: %s: %w%s", m.name, emulator, err, m.said())
	}
	return nil
}

// AwaitSerial waits until what the guest has printed on its console matches, and returns the match and its groups as
// regexp.FindStringSubmatch does. That the machine ended, or the context, which needs a deadline, is an error with the
// last lines of the console.
func (m *Machine) AwaitSerial(ctx context.Context, pattern *regexp.Regexp) ([]string, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		return nil, fmt.Errorf("machine %s: waiting for %q has no deadline: give the context one", m.name, pattern)
	}
	for {
		text, ended, more := m.console.state()
		if match := pattern.FindStringSubmatch(text); match != nil {
			return match, nil
		}
		if ended {
			return nil, fmt.Errorf("machine %s ended and has not printed %q%s", m.name, pattern, m.said())
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil, fmt.Errorf("machine %s has not printed %q: %w%s", m.name, pattern, ctx.Err(), m.said())
		}
	}
}

// Stop ends the machine as pulling its plug does, and removes what belongs to it. A second call does nothing and
// returns the first one's error.
func (m *Machine) Stop() error {
	if err := m.ending(); err != nil {
		return fmt.Errorf("stop machine %s: %w", m.name, err)
	}
	return nil
}

// said is the end of an error: the console's last lines, and what QEMU itself had to say.
func (m *Machine) said() string {
	const lines = 15
	var said strings.Builder
	if text := strings.TrimSpace(m.Serial()); text != "" {
		all := strings.Split(text, "\n")
		fmt.Fprintf(&said, "\nits console's last lines:\n%s", strings.Join(all[max(0, len(all)-lines):], "\n"))
	}
	if m.process == nil {
		return said.String()
	}
	select {
	case <-m.process.Done():
		if m.errors.Len() > 0 {
			fmt.Fprintf(&said, "\n%s said: %s", emulator, strings.TrimSpace(m.errors.String()))
		}
	default:
	}
	return said.String()
}
