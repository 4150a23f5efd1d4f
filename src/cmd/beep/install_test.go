// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/beep-lb/beep/harness/transcript"
)

// aside runs a command with an empty /etc/sysctl.d of its own, and prints what is there after it.
func (m *machine) aside(args ...string) result {
	m.t.Helper()
	const script = `mount -t tmpfs beep-test /etc/sysctl.d && "$@"; code=$?; cat /etc/sysctl.d/* 2>/dev/null | grep -v '^#'; exit $code`
	command := append([]string{"--mount", "sh", "-c", script, "sh", m.binary}, m.expand(args)...)
	return m.finish(exec.Command("unshare", command...))
}

func TestNodePrep(t *testing.T) {
	m := newMachine(t)
	m.sysctl("net.ipv4.conf.all.rp_filter", "1")
	got := m.aside("node-prep", "--pin-dir=PIN")
	want := regexp.MustCompile(`(?s)^(warning: [^\n]+\n)*changed net/ipv4/conf/eth0/rp_filter: \d -> 2\n` +
		`this node is fit for beep on eth0\nnet/ipv4/conf/eth0/rp_filter = 2\n$`)
	if got.code != 0 || !want.MatchString(got.out) {
		t.Errorf("node-prep: %+v", got)
	}
	if got := m.aside("node-prep", "--pin-dir=PIN"); strings.Contains(got.out, "changed") {
		t.Errorf("a second time: %+v", got)
	}
	got = m.aside("node-prep", "--pin-dir=/tmp/beep-test-pins", "--uplink-iface=eth7")
	if got.code != 1 || !strings.Contains(got.errout, "not on bpffs") || !strings.Contains(got.errout, `interface "eth7"`) {
		t.Errorf("two things that are wrong, at once: %+v", got)
	}
}

func TestNodePrepBesideIPVS(t *testing.T) {
	m := newMachine(t)
	if got := m.aside("node-prep", "--pin-dir=PIN"); got.code != 0 || !strings.Contains(got.out, "warning: no kube-proxy answers") {
		t.Errorf("without kube-proxy: %+v", got)
	}
	m.addWire("kube-ipvs0", 1500)
	m.sysctl("net.ipv4.conf.eth0.rp_filter", "1")
	got := m.aside("node-prep", "--pin-dir=PIN")
	if got.code != 1 || !strings.Contains(got.errout, "IPVS mode is not supported") || strings.Contains(got.out, "changed") {
		t.Errorf("with the device of IPVS: %+v", got)
	}
}

func TestUninstall(t *testing.T) {
	m := newMachine(t)
	process, _ := m.daemon(fixtures...)
	if got := m.aside("uninstall", "--pin-dir=PIN"); got.code != 1 || !strings.Contains(got.errout, "stop `beep run` first") {
		t.Errorf("beside a daemon: %+v", got)
	}
	if err := m.end(process, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := m.aside("uninstall", "--pin-dir=PIN"); got.code != 0 || !strings.HasPrefix(got.out, "removed 2 links and the maps at "+m.pins()+"\n") {
		t.Errorf("uninstall: %+v", got)
	}
	if got := m.do("status", "--pin-dir=PIN"); got.code != 1 || !strings.Contains(got.out+got.errout, "nothing is loaded") {
		t.Errorf("status after it: %+v", got)
	}
	if got := m.aside("uninstall", "--pin-dir=PIN"); got.code != 0 || !strings.HasPrefix(got.out, "nothing is loaded at ") {
		t.Errorf("a second time: %+v", got)
	}
}

func TestUninstallThatStays(t *testing.T) {
	m := newMachine(t)
	var out transcript.Transcript
	cmd := exec.Command("unshare", "--mount", "sh", "-c", `mount -t tmpfs beep-test /etc/sysctl.d && exec "$@"`, "sh",
		m.binary, "uninstall", "--pin-dir="+m.pins(), "--stay")
	cmd.Stdout, cmd.Stderr = &out, &out
	process, err := m.ns.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	m.await("it has done its work", out.String, func() bool { return strings.Contains(out.String(), "what stays until the next boot") })
	select {
	case <-process.Done():
		t.Errorf("it has ended: %s", out.String())
	default:
	}
	if err := m.end(process, syscall.SIGTERM); err != nil {
		t.Errorf("its end: %v", err)
	}
}

func (m *machine) sysctl(name, value string) {
	m.t.Helper()
	if err := m.ns.Sysctl(name, value); err != nil {
		m.t.Fatal(err)
	}
}
