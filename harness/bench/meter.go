// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// tick is the unit of /proc/stat: USER_HZ is 100 on every architecture that beep runs on.
const tick = 10 * time.Millisecond

// Spent is what a piece of work took.
type Spent struct {
	// CPU is the run time of the thread that did it, to the nanosecond, and of its CPU's softirq thread. A packet between
	// network namespaces is carried to its last socket by whoever sent it, in the softirq that ends the sending call, so
	// this is all of it but for timers.
	CPU time.Duration
	// Wall is the time that passed.
	Wall time.Duration
}

// meter reads the clocks of the calling thread and of the machine. What it measures must stay on one thread, and that on one CPU.
type meter struct {
	softirqs []string // the schedstat files of the softirq threads, by CPU
}

func newMeter() (*meter, error) {
	names, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		return nil, err
	}
	m := &meter{softirqs: make([]string, runtime.NumCPU())}
	found := 0
	for _, name := range names {
		comm, err := os.ReadFile(name)
		if err != nil {
			continue // a process that has ended meanwhile
		}
		var cpu int
		if n, _ := fmt.Sscanf(string(comm), "ksoftirqd/%d", &cpu); n == 1 && cpu < len(m.softirqs) {
			m.softirqs[cpu] = filepath.Join(filepath.Dir(name), "schedstat")
			found++
		}
	}
	if found != len(m.softirqs) {
		return nil, fmt.Errorf("%d threads named ksoftirqd of %d CPUs in /proc: run in the machine's own pid namespace, on all of its CPUs",
			found, len(m.softirqs))
	}
	return m, nil
}

// measure has work done and says what it took, whether or not it failed.
func (m *meter) measure(work func() error) (spent Spent, err error) {
	softirqs, err := m.softirqTime()
	if err != nil {
		return Spent{}, err
	}
	began, own := time.Now(), threadTime()
	failed := work()
	spent.CPU, spent.Wall = threadTime()-own, time.Since(began)
	after, err := m.softirqTime()
	spent.CPU += after - softirqs
	return spent, errors.Join(failed, err)
}

// observe says which share of all CPUs somebody else used while work was done: other programs, beep's and kube-proxy's daemons and
// the API server included.
func observe(work func() error) (others float64, err error) {
	idle, err := idleTime()
	if err != nil {
		return 0, err
	}
	began, own := time.Now(), processTime()
	failed := work()
	own, wall := processTime()-own, time.Since(began)
	after, err := idleTime()
	machine := wall * time.Duration(runtime.NumCPU())
	return max(0, (machine-(after-idle)-own).Seconds()/machine.Seconds()), errors.Join(failed, err)
}

// softirqTime is the run time so far of the softirq thread of the CPU that the caller is on. The others carry other people's packets.
func (m *meter) softirqTime() (time.Duration, error) {
	var cpu int
	if _, _, errno := unix.Syscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&cpu)), 0, 0); errno != 0 {
		return 0, fmt.Errorf("which CPU is this: %w", errno)
	}
	text, err := os.ReadFile(m.softirqs[cpu])
	if err != nil {
		return 0, fmt.Errorf("run time of a softirq thread: %w", err)
	}
	run, _, _ := strings.Cut(string(text), " ")
	ns, err := strconv.ParseInt(run, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("run time of a softirq thread: %s: %w", m.softirqs[cpu], err)
	}
	return time.Duration(ns), nil
}

// idleTime is how long the CPUs have idled, waiting for devices included (proc_stat(5)).
func idleTime() (time.Duration, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	const idle, iowait = 4, 5
	fields := strings.Fields(string(text))
	if len(fields) <= iowait || fields[0] != "cpu" {
		return 0, errors.New("/proc/stat does not begin with the sum of all CPUs")
	}
	var sum time.Duration
	for _, field := range fields[idle : iowait+1] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/stat: %w", err)
		}
		sum += time.Duration(n) * tick
	}
	return sum, nil
}

// threadTime is the run time of the calling thread, user and kernel, softirqs included that ran in its place.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err) // Linux has had this clock since 2.6.12
	}
	return time.Duration(t.Nano())
}

// pinned does work on a thread of its own that stays on the last CPU, and ends with it: one that wanders pays for cold caches, and
// programs that it starts would stay there too.
func pinned(work func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		var set unix.CPUSet
		set.Set(runtime.NumCPU() - 1)
		err := unix.SchedSetaffinity(0, &set)
		if err != nil {
			err = fmt.Errorf("stay on a CPU: %w", err)
		} else {
			err = work()
		}
		done <- err
	}()
	return <-done
}

// processTime is the run time of all threads of this process.
func processTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		panic(err) // as threadTime
	}
	return time.Duration(t.Nano())
}
