// SPDX-License-Identifier: Apache-2.0

// Package probe is the one look at the kernel and at this process's rights before anything is loaded. Invariant:
// Judge is a pure function that names everything missing at once, and Look leaves nothing behind on the node.
package probe

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// The oldest kernel that has TCX links.
const (
	minMajor = 6
	minMinor = 6
)

// tcxName is how the trial of Findings.TCX is called in a report.
const tcxName = "TCX links"

// Check is one thing that the kernel must have, and what asking for it gave: nil, ebpf.ErrNotSupported, a
// lack of rights (EPERM), or another error, which leaves the question open.
type Check struct {
	Name string
	Err  error
}

// Findings are what a node was found to have.
type Findings struct {
	// Release is the kernel's own version string (uname -r).
	Release string
	// Capabilities is the effective set of this thread, one bit a capability number.
	Capabilities uint64
	// TCX is the outcome of loading and attaching a program that does nothing.
	TCX error
	// Features are helpers and map types.
	Features []Check
	// Sysctls are the contents of files below /proc/sys by their name with dots; a file that could not be
	// read is left out.
	Sysctls map[string]string
}

// Report says whether beep can run on the node. Each entry is one line that names the object and the remedy.
type Report struct {
	// Missing is what beep cannot run without.
	Missing []string
	// Warnings are for the operator to act on; beep runs all the same.
	Warnings []string
}

// Err is nil if nothing is missing, and otherwise one error with a line for each.
func (r Report) Err() error {
	var lines []error
	for _, line := range r.Missing {
		lines = append(lines, errors.New(line))
	}
	return errors.Join(lines...)
}

// Run looks at the node and judges what it finds.
func Run() Report { return Judge(Look()) }

// Judge turns findings into a report.
func Judge(f Findings) Report {
	var report Report
	lacking := missingCapabilities(f.Capabilities)
	if len(lacking) > 0 {
		report.Missing = append(report.Missing, fmt.Sprintf("capabilities: this process lacks %s: "+
			"run it as root, or grant them (AmbientCapabilities= of a systemd unit, securityContext.capabilities.add of a pod)",
			strings.Join(lacking, ", ")))
	}
	judgeFeatures(f, len(lacking) > 0, &report)
	report.Warnings = append(report.Warnings, judgeSysctls(f.Sysctls)...)
	return report
}

// judgeFeatures sorts the kernel's answers into absent, refused and open. Without capabilities every answer is
// a refusal and says nothing of the kernel, so then only its version can.
func judgeFeatures(f Findings, unprivileged bool, report *Report) {
	var absent []string
	refused := false
	for _, check := range append([]Check{{tcxName, f.TCX}}, f.Features...) {
		switch {
		case check.Err == nil:
		case errors.Is(check.Err, ebpf.ErrNotSupported):
			absent = append(absent, check.Name)
		case errors.Is(check.Err, unix.EPERM) || errors.Is(check.Err, unix.EACCES):
			refused = true
		case check.Name == tcxName:
			report.Missing = append(report.Missing, fmt.Sprintf("%s: a trial on the loopback device failed: %v", check.Name, check.Err))
		default:
			report.Warnings = append(report.Warnings, fmt.Sprintf("%s: could not be checked: %v", check.Name, check.Err))
		}
	}
	const remedy = "beep needs Linux 6.6 or later"
	switch {
	case len(absent) > 0:
		report.Missing = append(report.Missing, fmt.Sprintf("kernel %s lacks %s: %s", f.Release, strings.Join(absent, ", "), remedy))
	case refused && olderThanTCX(f.Release):
		report.Missing = append(report.Missing, fmt.Sprintf("kernel %s is too old: %s", f.Release, remedy))
	}
	if refused && !unprivileged {
		report.Missing = append(report.Missing, "bpf(2): the kernel refuses programs or maps although this process has the capabilities: "+
			"look for a user namespace, a seccomp profile, an LSM, or kernel lockdown")
	}
}

// olderThanTCX reads a release as "6.1.0-37-amd64". One that cannot be read is taken for new enough, since
// distributions may name theirs freely and features decide.
func olderThanTCX(release string) bool {
	var major, minor int
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil {
		return false
	}
	return major < minMajor || major == minMajor && minor < minMinor
}

// missingCapabilities names what is not in the effective set. CAP_SYS_ADMIN includes CAP_BPF and CAP_PERFMON
// (bpf_capable and perfmon_capable, include/linux/capability.h), but not CAP_NET_ADMIN.
func missingCapabilities(effective uint64) []string {
	has := func(capability int) bool { return effective&(1<<capability) != 0 }
	var missing []string
	if !has(unix.CAP_BPF) && !has(unix.CAP_SYS_ADMIN) {
		missing = append(missing, "CAP_BPF")
	}
	if !has(unix.CAP_NET_ADMIN) {
		missing = append(missing, "CAP_NET_ADMIN")
	}
	if !has(unix.CAP_PERFMON) && !has(unix.CAP_SYS_ADMIN) {
		missing = append(missing, "CAP_PERFMON")
	}
	return missing
}

// advice is what a sysctl of value zero means, by name.
var advice = map[string]string{
	"net.core.bpf_jit_enable":      "programs are interpreted, at several times the cost a packet",
	"net.ipv4.ip_forward":          "this node delivers no IPv4 packet to its pods",
	"net.ipv6.conf.all.forwarding": "this node delivers no IPv6 packet to its pods",
}

// judgeSysctls warns of those that are off, by name.
func judgeSysctls(values map[string]string) []string {
	var warnings []string
	for name, value := range values {
		if meaning, known := advice[name]; known && value == "0" {
			warnings = append(warnings, fmt.Sprintf("sysctl %s is 0: %s: set it with `sysctl -w %s=1`", name, meaning, name))
		}
	}
	slices.Sort(warnings)
	return warnings
}
