// SPDX-License-Identifier: Apache-2.0

// Package proc tells what a running process costs its machine, for rigs and benchmarks that measure beep's own programs. Invariant:
// every figure is the kernel's own, of /proc/PID, and needs no cooperation of the process.
package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	kib = 1 << 10
	mib = 1 << 20
	// tick is the unit of times in /proc/PID/stat: USER_HZ is 100 on every architecture that beep runs on.
	tick = 10 * time.Millisecond
)

// Memory is what a process has in RAM, in bytes (proc_pid_status(5): VmRSS, RssAnon, RssFile).
type Memory struct {
	All   uint64 // resident
	Own   uint64 // of it, its own pages
	Files uint64 // of it, pages of files, mostly its binary
}

// String prints the memory in MiB.
func (m Memory) String() string {
	return fmt.Sprintf("%.1f MiB resident, %.1f of its own and %.1f of files", float64(m.All)/mib, float64(m.Own)/mib, float64(m.Files)/mib)
}

// MemoryOf reads the memory of a process. It fails if the process has ended.
func MemoryOf(pid int) (Memory, error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return Memory{}, fmt.Errorf("memory of process %d: %w", pid, err)
	}
	var m Memory
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(line, ":")
		to := map[string]*uint64{"VmRSS": &m.All, "RssAnon": &m.Own, "RssFile": &m.Files}[name]
		if to == nil {
			continue
		}
		n, err := strconv.ParseUint(strings.Fields(rest)[0], 10, 64)
		if err != nil {
			return Memory{}, fmt.Errorf("memory of process %d: %q: %w", pid, line, err)
		}
		*to = n * kib
	}
	return m, nil
}

// CPUTime is what a process has used so far, in user space and in the kernel, to 10 ms (proc_pid_stat(5), fields 14 and 15).
func CPUTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, fmt.Errorf("CPU time of process %d: %w", pid, err)
	}
	// The second field, the name, is in parentheses and may hold spaces.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	var ticks int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("CPU time of process %d: %w", pid, err)
		}
		ticks += n
	}
	return time.Duration(ticks) * tick, nil
}
