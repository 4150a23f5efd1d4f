// SPDX-License-Identifier: Apache-2.0

package netns

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	vishnetns "github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Process is a program that runs in a namespace. It is reaped as it ends, whether or not anybody waits.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// Start starts cmd in the namespace; the caller must not call cmd.Wait, but may read cmd.ProcessState after
// Done. The child shares everything else with the caller: mounts, so /sys shows the caller's devices, and pids.
// It is killed when the namespace closes, and by the kernel when the calling process dies, however it dies
// (SysProcAttr.Pdeathsig is set to SIGKILL).
func (ns *NS) Start(cmd *exec.Cmd) (*Process, error) {
	ns.mu.Lock()
	if ns.closed {
		ns.mu.Unlock()
		return nil, fmt.Errorf("start %s in namespace %s: %w", cmd.Path, ns.name, os.ErrClosed)
	}
	if ns.starter == nil {
		ns.starter = &starter{namespace: ns.handle, requests: make(chan startRequest)}
		go ns.starter.run()
	}
	processes := ns.starter
	ns.mu.Unlock()

	process, err := processes.start(cmd)
	if err != nil {
		return nil, fmt.Errorf("start %s in namespace %s: %w", cmd.Path, ns.name, err)
	}
	return process, nil
}

// Run starts cmd in the namespace and waits for its end, which exec.Cmd.Run would return: nil, or an *exec.ExitError. When ctx ends
// before that, the process is killed, and the error wraps ctx's.
func (ns *NS) Run(ctx context.Context, cmd *exec.Cmd) error {
	process, err := ns.Start(cmd)
	if err != nil {
		return err
	}
	select {
	case <-process.Done():
		return process.Wait()
	case <-ctx.Done():
		err := fmt.Errorf("%s in namespace %s still runs: %w", cmd, ns.name, context.Cause(ctx))
		return errors.Join(err, process.Kill())
	}
}

// Pid is the process id in the caller's pid namespace.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended and its output is complete.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for the end and returns what exec.Cmd.Wait did: nil, or an *exec.ExitError. It may be called often.
func (p *Process) Wait() error {
	<-p.done
	return p.err
}

// Signal sends a signal. After the end it returns os.ErrProcessDone.
func (p *Process) Signal(signal os.Signal) error { return p.cmd.Process.Signal(signal) }

// Kill ends the process by SIGKILL and waits until it is gone. It is no error if it had ended before.
func (p *Process) Kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %s (pid %d): %w", p.cmd.Path, p.Pid(), err)
	}
	<-p.done
	return nil
}

// starter forks the processes of one namespace from one thread that stays inside. A thread of its own, because
// the kernel sends Pdeathsig when the *thread* that forked ends (PR_SET_PDEATHSIG(2const)), and Go ends
// threads of its pool when it likes.
type starter struct {
	namespace vishnetns.NsHandle

	mu        sync.Mutex
	stopped   bool
	requests  chan startRequest
	processes []*Process
}

type startRequest struct {
	cmd    *exec.Cmd
	result chan error
}

func (s *starter) run() {
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() {
		// Not the main thread: /proc/self describes it, so it must never stay in another namespace. It is held
		// until the other goroutine has a thread, which therefore is another one.
		entered := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(entered)
			s.serve()
		}()
		<-entered
		runtime.UnlockOSThread()
		return
	}
	s.serve()
}

// serve returns with its thread locked, so the thread ends too and is never used outside.
func (s *starter) serve() {
	entering := vishnetns.Set(s.namespace)
	for request := range s.requests {
		if entering != nil {
			request.result <- fmt.Errorf("enter it: %w", entering)
			continue
		}
		request.result <- request.cmd.Start()
	}
}

func (s *starter) start(cmd *exec.Cmd) (*Process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil, os.ErrClosed
	}
	request := startRequest{cmd: cmd, result: make(chan error)}
	s.requests <- request
	if err := <-request.result; err != nil {
		return nil, err
	}
	process := &Process{cmd: cmd, done: make(chan struct{})}
	go func() {
		process.err = cmd.Wait()
		close(process.done)
	}()
	s.processes = append(s.processes, process)
	return process, nil
}

func (s *starter) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	for _, process := range s.processes {
		// A process that cannot be killed now is killed by the kernel, with the thread that forked it.
		_ = process.cmd.Process.Kill()
	}
	close(s.requests)
	for _, process := range s.processes {
		<-process.done
	}
}
