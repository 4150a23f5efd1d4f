// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// probeEnv makes the test binary run the real probe and print its report.
const probeEnv = "PROBE_TEST_RUN"

func TestMain(m *testing.M) {
	if os.Getenv(probeEnv) != "" {
		if err := json.NewEncoder(os.Stdout).Encode(Run()); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

const (
	root      = 1<<unix.CAP_BPF | 1<<unix.CAP_NET_ADMIN | 1<<unix.CAP_PERFMON | 1<<unix.CAP_SYS_ADMIN
	container = 1<<unix.CAP_BPF | 1<<unix.CAP_NET_ADMIN | 1<<unix.CAP_PERFMON
	inSpite   = "bpf(2): the kernel refuses programs or maps although this process has the capabilities: " +
		"look for a user namespace, a seccomp profile, an LSM, or kernel lockdown"
	grant = "run it as root, or grant them (AmbientCapabilities= of a systemd unit, securityContext.capabilities.add of a pod)"
)

func notSupported(what string) error {
	return fmt.Errorf("%s: %w", what, ebpf.ErrNotSupported)
}

func TestJudge(t *testing.T) {
	refused := fmt.Errorf("load program: %w", unix.EPERM)
	good := []Check{{"helper bpf_loop", nil}, {"map type LRU hash", nil}}
	on := map[string]string{"net.ipv4.ip_forward": "1", "net.ipv6.conf.all.forwarding": "1", "net.core.bpf_jit_enable": "1"}
	tests := []struct {
		name     string
		findings Findings
		want     Report
	}{
		{"a good node", Findings{Release: "6.12.0", Capabilities: root, Features: good, Sysctls: on}, Report{}},
		{"the container's capabilities suffice", Findings{Release: "6.12.0", Capabilities: container, Features: good}, Report{}},
		{"CAP_SYS_ADMIN stands for CAP_BPF and CAP_PERFMON",
			Findings{Release: "6.12.0", Capabilities: 1<<unix.CAP_SYS_ADMIN | 1<<unix.CAP_NET_ADMIN, Features: good}, Report{}},
		{"CAP_SYS_ADMIN does not stand for CAP_NET_ADMIN",
			Findings{Release: "6.12.0", Capabilities: 1 << unix.CAP_SYS_ADMIN, TCX: refused, Features: good},
			Report{Missing: []string{"capabilities: this process lacks CAP_NET_ADMIN: " + grant}}},
		{"Debian 12's kernel", Findings{Release: "6.1.0-37-cloud-amd64", Capabilities: root, TCX: notSupported("tcx"), Features: good},
			Report{Missing: []string{"kernel 6.1.0-37-cloud-amd64 lacks TCX links: beep needs Linux 6.6 or later"}}},
		{"an older kernel lacks more", Findings{Release: "5.4.0", Capabilities: root, TCX: notSupported("tcx"), Features: []Check{
			{"helper bpf_loop", notSupported("loop")}, {"helper bpf_fib_lookup", nil}, {"helper bpf_redirect_neigh", notSupported("neigh")},
		}}, Report{Missing: []string{
			"kernel 5.4.0 lacks TCX links, helper bpf_loop, helper bpf_redirect_neigh: beep needs Linux 6.6 or later"}}},
		{"no capability on a new kernel", Findings{Release: "6.12.0", TCX: refused, Features: []Check{{"helper bpf_loop", refused}}},
			Report{Missing: []string{"capabilities: this process lacks CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON: " + grant}}},
		{"no capability on an old kernel: both are told", Findings{Release: "6.1.0", TCX: refused, Features: []Check{{"helper bpf_loop", refused}}},
			Report{Missing: []string{
				"capabilities: this process lacks CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON: " + grant,
				"kernel 6.1.0 is too old: beep needs Linux 6.6 or later"}}},
		{"refused in spite of capabilities", Findings{Release: "6.12.0", Capabilities: container, TCX: refused, Features: []Check{{"helper bpf_loop", refused}}},
			Report{Missing: []string{inSpite}}},
		{"the trial fails otherwise", Findings{Release: "6.12.0", Capabilities: root, TCX: fmt.Errorf("attach tcx link: %w", unix.ENOMEM), Features: good},
			Report{Missing: []string{"TCX links: a trial on the loopback device failed: attach tcx link: cannot allocate memory"}}},
		{"an open question is no refusal", Findings{Release: "6.12.0", Capabilities: root, Features: []Check{{"helper bpf_loop", unix.ENOMEM}}},
			Report{Warnings: []string{"helper bpf_loop: could not be checked: cannot allocate memory"}}},
		{"everything is off", Findings{Release: "6.12.0", Capabilities: root, Features: good, Sysctls: map[string]string{
			"net.ipv4.ip_forward": "0", "net.ipv6.conf.all.forwarding": "0", "net.core.bpf_jit_enable": "0"}},
			Report{Warnings: []string{
				"sysctl net.core.bpf_jit_enable is 0: programs are interpreted, at several times the cost a packet: set it with `sysctl -w net.core.bpf_jit_enable=1`",
				"sysctl net.ipv4.ip_forward is 0: this node delivers no IPv4 packet to its pods: set it with `sysctl -w net.ipv4.ip_forward=1`",
				"sysctl net.ipv6.conf.all.forwarding is 0: this node delivers no IPv6 packet to its pods: set it with `sysctl -w net.ipv6.conf.all.forwarding=1`",
			}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := Judge(test.findings)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
			text := ""
			if err := got.Err(); err != nil {
				text = err.Error()
			}
			if want := strings.Join(test.want.Missing, "\n"); text != want {
				t.Errorf("error %q, want %q", text, want)
			}
		})
	}
}

func TestReleases(t *testing.T) {
	for release, old := range map[string]bool{
		"6.1.0-37-cloud-amd64": true, "5.15.0": true, "6.5.13": true, "4.19": true,
		"6.6.0": false, "6.12.43+deb13": false, "7.0.1": false, "10.1": false, "custom": false, "": false,
	} {
		if olderThanTCX(release) != old {
			t.Errorf("%q: older %v, want %v", release, !old, old)
		}
	}
}

// runAs runs the real probe in another process and a network namespace of its own.
func runAs(t *testing.T, attr syscall.SysProcAttr) Report {
	t.Helper()
	attr.Cloneflags |= syscall.CLONE_NEWNET
	// The binary's folder may be closed to other users; this path leads around it.
	command := exec.Command("/proc/self/exe")
	command.Env = append(os.Environ(), probeEnv+"=1")
	command.SysProcAttr = &attr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("the probe in another process (needs root): %v", err)
	}
	var report Report
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return report
}

// A fresh namespace does not forward, and does not show the JIT's sysctl.
var freshNamespace = []string{
	"sysctl net.ipv4.ip_forward is 0: this node delivers no IPv4 packet to its pods: set it with `sysctl -w net.ipv4.ip_forward=1`",
	"sysctl net.ipv6.conf.all.forwarding is 0: this node delivers no IPv6 packet to its pods: set it with `sysctl -w net.ipv6.conf.all.forwarding=1`",
}

func TestRealProbe(t *testing.T) {
	nobody := &syscall.Credential{Uid: 65534, Gid: 65534}
	tests := []struct {
		name string
		attr syscall.SysProcAttr
		want []string
	}{
		{"root", syscall.SysProcAttr{}, nil},
		{"nobody with the container's capabilities", syscall.SysProcAttr{Credential: nobody,
			AmbientCaps: []uintptr{unix.CAP_BPF, unix.CAP_NET_ADMIN, unix.CAP_PERFMON}}, nil},
		{"nobody", syscall.SysProcAttr{Credential: nobody},
			[]string{"capabilities: this process lacks CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON: " + grant}},
		{"nobody without CAP_NET_ADMIN", syscall.SysProcAttr{Credential: nobody, AmbientCaps: []uintptr{unix.CAP_BPF, unix.CAP_PERFMON}},
			[]string{"capabilities: this process lacks CAP_NET_ADMIN: " + grant}},
		{"nobody without CAP_BPF", syscall.SysProcAttr{Credential: nobody, AmbientCaps: []uintptr{unix.CAP_NET_ADMIN, unix.CAP_PERFMON}},
			[]string{"capabilities: this process lacks CAP_BPF: " + grant}},
		{"root of a user namespace", syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{Size: 1}}, GidMappings: []syscall.SysProcIDMap{{Size: 1}}},
			[]string{inSpite}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			want := Report{Missing: test.want, Warnings: freshNamespace}
			if diff := cmp.Diff(want, runAs(t, test.attr)); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
		})
	}
}
