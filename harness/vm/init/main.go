// SPDX-License-Identifier: Apache-2.0

// Command init is the first process of a machine that runs test binaries: it makes the machine what they expect, runs
// the job it finds, tells the host, and powers off. Invariant: whatever happens, the machine powers off, so that the
// host hears of an end and waits for no deadline.
package main

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v5"
	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/vm/job"
)

// asWorker is the argument of the second process.
const asWorker = "worker"

func main() {
	if len(os.Args) > 1 && os.Args[1] == asWorker {
		if err := work(); err != nil {
			fmt.Fprintf(os.Stderr, "init: %v\n", err)
			os.Exit(1)
		}
		return
	}
	if err := supervise(); err != nil {
		fmt.Fprintf(os.Stderr, "init: %v\n", err)
	}
	unix.Sync()
	if err := unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF); err != nil {
		fmt.Fprintf(os.Stderr, "init: power off: %v\n", err) // the return of process 1 is a panic, which ends the machine too
	}
}

// supervise starts the worker and, until that has ended, buries every orphan of the machine: as process 1 this one is
// their parent, and a worker that waits for programs of its own must not be.
func supervise() error {
	if err := prepare(); err != nil {
		return err
	}
	worker := exec.Command("/proc/self/exe", asWorker)
	worker.Stdout, worker.Stderr = os.Stdout, os.Stderr
	if err := worker.Start(); err != nil {
		return fmt.Errorf("start the worker: %w", err)
	}
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wait for the worker: %w", err)
		}
		if pid == worker.Process.Pid {
			return nil
		}
	}
}

// mounts are what every distribution has mounted before the first service starts.
var mounts = []struct{ source, target, kind, options string }{
	{"proc", "/proc", "proc", ""},
	{"sysfs", "/sys", "sysfs", ""},
	{"devtmpfs", "/dev", "devtmpfs", ""},
	{"tmpfs", "/run", "tmpfs", "mode=755"},
	{"tmpfs", "/tmp", "tmpfs", "mode=1777"},
	{"cgroup2", "/sys/fs/cgroup", "cgroup2", ""},
	{"bpf", "/sys/fs/bpf", "bpf", "mode=700"},
	{"tracefs", "/sys/kernel/tracing", "tracefs", ""},
}

// prepare makes the machine what programs expect, and gives this process a PATH.
func prepare() error {
	for _, m := range mounts {
		if err := os.MkdirAll(m.target, 0o755); err != nil {
			return fmt.Errorf("make a mount point: %w", err)
		}
		if err := unix.Mount(m.source, m.target, m.kind, 0, m.options); err != nil {
			return fmt.Errorf("mount %s: %w", m.target, err)
		}
	}
	if err := unix.Sethostname([]byte("beep-vm")); err != nil {
		return fmt.Errorf("set the host name: %w", err)
	}
	return errors.Join(os.Setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"), os.Setenv("HOME", "/root"))
}

// work does the job.
func work() error {
	content, err := os.ReadFile(job.Path)
	if err != nil {
		return fmt.Errorf("read the job: %w", err)
	}
	var todo job.Job
	if err := json.Unmarshal(content, &todo); err != nil {
		return fmt.Errorf("read the job: %w", err)
	}
	for _, module := range todo.Modules {
		if out, err := exec.Command("modprobe", module).CombinedOutput(); err != nil {
			return fmt.Errorf("load module %s: %w: %s", module, err, strings.TrimSpace(string(out)))
		}
	}
	events, err := openPort(job.EventPort)
	if err != nil {
		return err
	}
	say := json.NewEncoder(events)
	for _, run := range todo.Runs {
		end := perform(run, say)
		if err := say.Encode(job.Event{Run: run.Name, End: &end}); err != nil {
			return fmt.Errorf("tell the end of %s: %w", run.Name, err)
		}
	}
	return sendArtifacts()
}

// portDeadline bounds the wait for a port: its driver hears of it, and of its name, after it was loaded.
const portDeadline = 30 * time.Second

// openPort opens a virtio-console port by its name, as udev would below /dev/virtio-ports.
func openPort(name string) (*os.File, error) {
	return backoff.Retry(context.Background(), func() (*os.File, error) { return lookForPort(name) },
		backoff.WithBackOff(backoff.NewConstantBackOff(20*time.Millisecond)), backoff.WithMaxElapsedTime(portDeadline))
}

func lookForPort(name string) (*os.File, error) {
	files, err := filepath.Glob("/sys/class/virtio-ports/*/name")
	if err != nil {
		return nil, fmt.Errorf("find port %s: %w", name, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil || strings.TrimSpace(string(content)) != name {
			continue
		}
		port, err := os.OpenFile(filepath.Join("/dev", filepath.Base(filepath.Dir(file))), os.O_RDWR, 0)
		if err != nil {
			return nil, fmt.Errorf("open port %s: %w", name, err)
		}
		return port, nil
	}
	return nil, fmt.Errorf("the machine has no port %s", name)
}

// perform runs a program to its end and sends its output as it comes.
func perform(run job.Run, say *json.Encoder) job.End {
	output := outputEvents{run: run.Name, say: say}
	cmd := exec.Command(run.Args[0], run.Args[1:]...)
	cmd.Dir, cmd.Env = run.Dir, append(os.Environ(), run.Env...)
	cmd.Stdout, cmd.Stderr = output, output
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return job.End{}
	case !errors.As(err, &exit):
		return job.End{Code: -1, Error: err.Error()}
	case exit.ExitCode() >= 0:
		return job.End{Code: exit.ExitCode()}
	}
	code := -1
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		code = 128 + int(status.Signal())
	}
	return job.End{Code: code, Error: err.Error()}
}

// outputEvents sends what a program prints.
type outputEvents struct {
	run string
	say *json.Encoder
}

func (o outputEvents) Write(p []byte) (int, error) {
	if err := o.say.Encode(job.Event{Run: o.run, Output: string(p)}); err != nil {
		return 0, err
	}
	return len(p), nil
}

// sendArtifacts sends what failed specs have left. It sends nothing if they left nothing.
func sendArtifacts() error {
	if _, err := os.Stat(job.Artifacts); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	port, err := openPort(job.ArtifactsPort)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(port)
	if err := archive.AddFS(os.DirFS(job.Artifacts)); err != nil {
		return fmt.Errorf("send the artifacts: %w", err)
	}
	return errors.Join(archive.Close(), port.Close())
}
