// SPDX-License-Identifier: Apache-2.0

package cluster_scale_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const (
	kib = 1 << 10
	mib = 1 << 20
	// tick is the unit of times in /proc/PID/stat: USER_HZ is 100 on every architecture that beep runs on.
	tick = 10 * time.Millisecond
)

// memory is what a process has in RAM, in bytes: its own pages, and those of files, mostly its binary.
type memory struct{ all, own, files uint64 }

func (m memory) String() string {
	return fmt.Sprintf("%.1f MiB resident, %.1f of its own and %.1f of files", float64(m.all)/mib, float64(m.own)/mib, float64(m.files)/mib)
}

func memoryOf(pid int) memory {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	Expect(err).NotTo(HaveOccurred())
	var m memory
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(line, ":")
		to := map[string]*uint64{"VmRSS": &m.all, "RssAnon": &m.own, "RssFile": &m.files}[name]
		if to == nil {
			continue
		}
		n, err := strconv.ParseUint(strings.Fields(rest)[0], 10, 64)
		Expect(err).NotTo(HaveOccurred())
		*to = n * kib
	}
	return m
}

// busy is the CPU time that a process has used, in user space and in the kernel (proc_pid_stat(5), fields 14 and 15).
func busy(pid int) time.Duration {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	Expect(err).NotTo(HaveOccurred())
	// The second field, the name, is in parentheses and may hold spaces.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	var ticks int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		Expect(err).NotTo(HaveOccurred())
		ticks += n
	}
	return time.Duration(ticks) * tick
}
