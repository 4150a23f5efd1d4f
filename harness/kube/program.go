// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/beep-lb/beep/harness/artifacts"
	"github.com/beep-lb/beep/harness/netns"
	"github.com/beep-lb/beep/harness/transcript"
)

// endDeadline is how long a program may take to end after SIGTERM.
const endDeadline = 20 * time.Second

// Program is one program of a cluster in a namespace: the process of the moment, and the log of all before it. Methods
// may be called from any goroutine, but not two that start or end the process at once.
type Program struct {
	ns    *netns.NS
	place string // for people: where it runs
	path  string
	args  []string
	log   transcript.Transcript

	mu      sync.Mutex
	process *netns.Process
}

// NewProgram is a program that does not run yet; place says to people where it will.
func NewProgram(ns *netns.NS, place, path string, args ...string) *Program {
	return &Program{ns: ns, place: place, path: path, args: args}
}

// String names the program and where it runs.
func (p *Program) String() string { return filepath.Base(p.path) + " on " + p.place }

// SetArgs has the next Start use other arguments.
func (p *Program) SetArgs(args ...string) { p.args = args }

// Start starts the process, which must not run. It does not wait until the program serves.
func (p *Program) Start() error {
	if p.Running() {
		return fmt.Errorf("%s: start: it runs already", p)
	}
	cmd := exec.Command(p.path, p.args...)
	cmd.Stdout, cmd.Stderr = &p.log, &p.log
	process, err := p.ns.Start(cmd)
	if err != nil {
		return fmt.Errorf("%s: %w", p, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.process = process
	return nil
}

// Running says whether the process has not ended.
func (p *Program) Running() bool {
	process := p.current()
	if process == nil {
		return false
	}
	select {
	case <-process.Done():
		return false
	default:
		return true
	}
}

// Kill9 ends the process by SIGKILL and returns when it is gone.
func (p *Program) Kill9() error {
	if !p.Running() {
		return fmt.Errorf("%s: kill: it does not run\nits log ends:\n%s", p, tail(p.Log(), 4<<10))
	}
	return p.current().Kill()
}

// Terminate asks the process to end (SIGTERM) and returns when it is gone. With what code it ends is its own affair:
// upstream's programs differ.
func (p *Program) Terminate() error {
	if !p.Running() {
		return fmt.Errorf("%s: terminate: it does not run\nits log ends:\n%s", p, tail(p.Log(), 4<<10))
	}
	process := p.current()
	if err := process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("%s: terminate: %w", p, err)
	}
	select {
	case <-process.Done():
		return nil
	case <-time.After(endDeadline):
		return errors.Join(fmt.Errorf("%s: it still runs %v after SIGTERM", p, endDeadline), process.Kill())
	}
}

// Signal sends a signal to the process: SIGSTOP and SIGCONT make a program that hangs.
func (p *Program) Signal(signal syscall.Signal) error {
	if !p.Running() {
		return fmt.Errorf("%s: send %v: it does not run", p, signal)
	}
	return p.current().Signal(signal)
}

// Pid is the process id of the process of the moment; 0 if there was none.
func (p *Program) Pid() int {
	if process := p.current(); process != nil {
		return process.Pid()
	}
	return 0
}

// Done is closed when the process of the moment has ended. The program must have been started.
func (p *Program) Done() <-chan struct{} { return p.current().Done() }

// Wait waits for the end of the process of the moment and returns nil or an *exec.ExitError.
func (p *Program) Wait() error { return p.current().Wait() }

// Log is what all processes of this program have printed so far.
func (p *Program) Log() string { return p.log.String() }

func (p *Program) current() *netns.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.process
}

// Await asks until there is no error, the process ends, or ctx does. The error then has the end of the log.
func (p *Program) Await(ctx context.Context, ask func(context.Context) error) error {
	process := p.current()
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		select {
		case <-process.Done():
			return struct{}{}, backoff.Permanent(errors.Join(errors.New("it ended"), process.Wait()))
		default:
		}
		once, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		return struct{}{}, ask(once)
	}, backoff.WithBackOff(backoff.NewConstantBackOff(25*time.Millisecond)), backoff.WithMaxElapsedTime(0))
	if err != nil {
		return fmt.Errorf("%s: wait until it serves: %w\nits log ends:\n%s", p, err, tail(p.Log(), 4<<10))
	}
	return nil
}

// Show has the collector show the log as NAME-log when the spec has failed.
func (p *Program) Show(evidence *artifacts.Collector, name string) {
	evidence.Register(name+"-log", func(w io.Writer) {
		fmt.Fprintf(w, "%s %s\n\n%s", filepath.Base(p.path), strings.Join(p.args, " "), p.Log())
	})
}

// tail is the end of a text, in whole lines.
func tail(text string, size int) string {
	if len(text) <= size {
		return text
	}
	_, rest, _ := strings.Cut(text[len(text)-size:], "\n")
	return rest
}
