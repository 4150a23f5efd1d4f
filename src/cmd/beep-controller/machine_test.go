// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/beep-lb/beep/harness/bpffs"
	"github.com/beep-lb/beep/harness/kube"
	"github.com/beep-lb/beep/harness/netns"
	"github.com/beep-lb/beep/harness/require"
)

func TestMain(m *testing.M) {
	code := require.Main(m)
	if binaries != "" {
		if err := os.RemoveAll(binaries); err != nil {
			log.Print(err)
		}
	}
	os.Exit(code)
}

// binaries is the directory that build has made, if a test has asked for it.
var binaries string

// build makes both binaries once for all tests, as `make build` does.
var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "beep-test-")
	if err != nil {
		return "", err
	}
	binaries = dir
	for name, source := range map[string]string{"beep": "../beep", "beep-controller": "."} {
		cmd := exec.Command("go", "build", "-buildvcs=false", "-ldflags", "-X main.version=v0-test", "-o", filepath.Join(dir, name), source)
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", errors.New(string(out))
		}
	}
	return dir, nil
})

// machine is node a: a network namespace with an uplink eth0 (192.0.2.1), a bpffs, and a directory for manifests.
type machine struct {
	t         *testing.T
	ns        *netns.NS
	binaries  string
	bpffs     string
	manifests string
	readyFile string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	require.Root(t)
	require.TCX(t)
	require.Tool(t, "ip")
	binaries, err := build()
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{t: t, ns: netns.New(t, "beep-ctl"), binaries: binaries, bpffs: bpffs.New(t), manifests: t.TempDir(),
		readyFile: filepath.Join(t.TempDir(), "ready")}
	for _, words := range []string{
		"link add eth0 type veth peer name far", "link set eth0 up", "link set far up",
		"address add 192.0.2.1/24 dev eth0", "route add default dev eth0",
	} {
		if got := m.finish(exec.Command("ip", strings.Fields(words)...)); got.code != 0 {
			t.Fatalf("ip %s: %s", words, got.errout)
		}
	}
	return m
}

// write writes a manifest.
func (m *machine) write(name, text string) {
	m.t.Helper()
	if err := os.WriteFile(filepath.Join(m.manifests, name), []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

// result is how a command ended.
type result struct {
	code        int
	out, errout string
}

func (m *machine) finish(cmd *exec.Cmd) result {
	m.t.Helper()
	var out, errout bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errout
	ctx, cancel := context.WithTimeout(m.t.Context(), 20*time.Second)
	defer cancel()
	var exit *exec.ExitError
	if err := m.ns.Run(ctx, cmd); err != nil && !errors.As(err, &exit) {
		m.t.Fatalf("%v; it printed\n%s%s", err, out.String(), errout.String())
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errout.String()}
}

// beep runs a command of beep's to its end.
func (m *machine) beep(args ...string) result {
	m.t.Helper()
	return m.finish(exec.Command(filepath.Join(m.binaries, "beep"), append(args, "--pin-dir", m.bpffs+"/beep")...))
}

// process is a running daemon.
type process struct {
	*kube.Program
	m *machine
}

// start starts `beep run` or `beep-controller` with further arguments.
func (m *machine) start(name string, args ...string) *process {
	m.t.Helper()
	p := &process{m: m, Program: kube.NewProgram(m.ns, "a", filepath.Join(m.binaries, name), append(args, "--pin-dir", m.bpffs+"/beep")...)}
	if err := p.Start(); err != nil {
		m.t.Fatal(err)
	}
	return p
}

func (m *machine) datapath(args ...string) *process {
	m.t.Helper()
	p := m.start("beep", append([]string{"run"}, args...)...)
	p.says("msg=running")
	return p
}

func (m *machine) controller(args ...string) *process {
	m.t.Helper()
	return m.start("beep-controller", append([]string{"--node-name", "a", "--manifests", m.manifests, "--ready-file", m.readyFile}, args...)...)
}

// says waits until the log holds a text.
func (p *process) says(text string) {
	p.m.t.Helper()
	p.m.await(p.String()+" says "+text, p.Log, func() bool { return strings.Contains(p.Log(), text) })
}

// end ends the process with SIGTERM, which must be an orderly end.
func (p *process) end() {
	p.m.t.Helper()
	if err := errors.Join(p.Terminate(), p.Wait()); err != nil {
		p.m.t.Errorf("%v\n%s", err, p.Log())
	}
}

// await waits for a condition; about is told if it does not come.
func (m *machine) await(what string, about func() string, done func() bool) {
	m.t.Helper()
	for deadline := time.Now().Add(15 * time.Second); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			m.t.Fatalf("waited in vain: %s\n%s", what, about())
		}
	}
}

// wantFronts waits until the maps hold these fronts: a line each of socket and endpoint.
func (m *machine) wantFronts(about *process, want string) {
	m.t.Helper()
	var got string
	m.await("fronts\n"+want, func() string { return "got\n" + got + about.Log() }, func() bool {
		var text strings.Builder
		for _, line := range strings.Split(strings.TrimSpace(m.beep("fronts").out), "\n")[1:] {
			words := strings.Fields(line)
			text.WriteString(words[0] + " " + words[5] + "@" + words[6] + "\n")
		}
		got = text.String()
		return got == want
	})
}

func (m *machine) isReady() bool {
	_, err := os.Stat(m.readyFile)
	return err == nil
}
