// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/bpffs"
	"github.com/beep-lb/beep/harness/netns"
	"github.com/beep-lb/beep/harness/packet"
	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/transcript"
)

// build makes the binary once for all tests, as `make build` does.
var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "beep-test-")
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "beep")
	out, err := exec.Command("go", "build", "-buildvcs=false", "-ldflags", "-X main.version=v0-test", "-o", binary, ".").CombinedOutput()
	if err != nil {
		return "", errors.New(string(out))
	}
	// Others must be able to start it.
	return binary, errors.Join(os.Chmod(dir, 0o755), os.Chmod(binary, 0o755))
})

// machine is a network namespace and a bpffs of their own, with an uplink eth0 (192.0.2.1, default route) and a
// wire small of MTU 1200.
type machine struct {
	t      *testing.T
	ns     *netns.NS
	binary string
	bpffs  string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	require.Root(t)
	require.TCX(t)
	binary, err := build()
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{t: t, ns: netns.New(t, "beep-cmd"), binary: binary, bpffs: bpffs.New(t)}
	require.Tool(t, "ip")
	m.addWire("eth0", 1500)
	m.addWire("small", 1200)
	m.ip("link", "set", "eth0", "address", packet.MAC2)
	m.ip("address", "add", "192.0.2.1/24", "dev", "eth0")
	m.ip("route", "add", "default", "dev", "eth0")
	return m
}

// addWire makes a veth device and its far end, which is in the same namespace.
func (m *machine) addWire(name string, mtu int) {
	m.t.Helper()
	m.ip("link", "add", name, "mtu", strconv.Itoa(mtu), "type", "veth", "peer", "name", name+"-far", "mtu", strconv.Itoa(mtu))
	m.ip("link", "set", name, "up")
	m.ip("link", "set", name+"-far", "up")
}

func (m *machine) ip(args ...string) {
	m.t.Helper()
	if got := m.finish(exec.Command("ip", args...)); got.code != 0 {
		m.t.Fatalf("ip %s: %s", strings.Join(args, " "), got.errout)
	}
}

// pins is the pin directory that tests use.
func (m *machine) pins() string { return m.bpffs + "/beep" }

// result is how a command ended.
type result struct {
	code        int
	out, errout string
}

// do runs a command to its end. PIN in arguments is the pin directory.
func (m *machine) do(args ...string) result {
	m.t.Helper()
	return m.finish(exec.Command(m.binary, m.expand(args)...))
}

func (m *machine) expand(args []string) []string {
	expanded := slices.Clone(args)
	for i := range expanded {
		expanded[i] = strings.ReplaceAll(expanded[i], "PIN", m.pins())
	}
	return expanded
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

// daemon starts `beep run` and returns when it says that it runs.
func (m *machine) daemon(args ...string) (*netns.Process, *transcript.Transcript) {
	m.t.Helper()
	log := &transcript.Transcript{}
	cmd := exec.Command(m.binary, m.expand(append([]string{"run"}, args...))...)
	cmd.Stdout, cmd.Stderr = log, log
	process, err := m.ns.Start(cmd)
	if err != nil {
		m.t.Fatal(err)
	}
	m.await("the daemon runs", log.String, func() bool { return strings.Contains(log.String(), "msg=running") })
	return process, log
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

// state is all pins, and which programs are attached where.
func (m *machine) state() string {
	m.t.Helper()
	var names []string
	err := filepath.WalkDir(m.bpffs, func(path string, _ fs.DirEntry, err error) error {
		names = append(names, path)
		return err
	})
	if err != nil {
		m.t.Fatal(err)
	}
	net := m.finish(exec.Command("bpftool", "net", "show"))
	return strings.Join(names, "\n") + "\n" + net.out
}

// addOdd makes a device of a link type that beep does not know. A tun device can be told to be any, which is the
// only such device that needs no hardware.
func (m *machine) addOdd(name string) {
	m.t.Helper()
	require.Tun(m.t)
	m.ip("tuntap", "add", "dev", name, "mode", "tun")
	err := m.ns.Do(func() error {
		tun, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(tun)
		request, err := unix.NewIfreq(name)
		if err != nil {
			return err
		}
		request.SetUint16(unix.IFF_TUN)
		if err := unix.IoctlIfreq(tun, unix.TUNSETIFF, request); err != nil {
			return err
		}
		return unix.IoctlSetInt(tun, unix.TUNSETLINK, unix.ARPHRD_IEEE802154)
	})
	if err != nil {
		m.t.Fatalf("give %s another link type: %v", name, err)
	}
}

func TestBadInput(t *testing.T) {
	m := newMachine(t)
	m.addOdd("odd")
	for _, tt := range []struct {
		name string
		code int
		args []string
		// want are patterns of the lines on standard error, which has no others.
		want []string
	}{
		{"unknown interface", 1, []string{"run", "--pin-dir=PIN", "--uplink-iface=eth7"},
			[]string{`beep: interface "eth7": no such interface: this node has lo, .*eth0.*: name another with --uplink-iface`}},
		{"loopback", 1, []string{"run", "--pin-dir=PIN", "--uplink-iface=lo"},
			[]string{`beep: interface lo is loopback, .*: leave it out of --uplink-iface`}},
		{"MTU below 1280 with IPv6", 1, []string{"run", "--pin-dir=PIN", "--uplink-iface=small", "--fixture=node=2001:db8:b::1"},
			[]string{`beep: interface small has MTU 1200, and IPv6 needs at least 1280 \(RFC 8200\): raise it .*`}},
		{"every bad uplink at once", 1, []string{"load", "--pin-dir=PIN", "--uplink-iface=lo,small", "--fixture=node=2001:db8:b::1"},
			[]string{"beep: interface lo .*", "beep: interface small .*"}},
		{"a link type that is not known", 1, []string{"run", "--pin-dir=PIN", "--uplink-iface=odd"},
			[]string{`beep: interface odd has link type 804 .*: name an Ethernet device .*`}},
		{"auto beside a name", 1, []string{"run", "--pin-dir=PIN", "--uplink-iface=eth0,auto"},
			[]string{`beep: --uplink-iface \(BEEP_UPLINK_IFACES\) "auto": does not go with other names: .*`}},
		{"pin directory on another file system", 1, []string{"run", "--pin-dir=/tmp/beep-test-pins", "--uplink-iface=eth0"},
			[]string{`beep: pin directory /tmp/beep-test-pins: not on bpffs \(/tmp is .*\): mount one with .*`}},
		{"fixture of mixed families", 1, []string{"run", "--pin-dir=PIN", "--fixture=front=tcp/192.0.2.1:80,[2001:db8:a::5]:8080"},
			[]string{`beep: --fixture "front=.*": mixed families: front 192.0.2.1 is IPv4, endpoint 2001:db8:a::5 is IPv6: .*`}},
		{"one endpoint twice", 1, []string{"run", "--pin-dir=PIN", "--fixture=front=tcp/192.0.2.1:80,10.42.0.5:8080", "--fixture=front=tcp/192.0.2.1:80,10.42.0.5:8080"},
			[]string{`beep: --fixture "front=.*": duplicate endpoint 10.42.0.5:8080 of front TCP/192.0.2.1:80: name it once`}},
		{"more fronts than fit", 1, []string{"run", "--pin-dir=PIN", "--max-fronts=1", "--fixture=front=tcp/192.0.2.1:80", "--fixture=front=tcp/192.0.2.1:81"},
			[]string{`beep: front TCP/192.0.2.1:81 is not added: map is full: FRONT_META has 0 of 1 rows free .*: raise --max-fronts`}},
		{"more peers than fit", 1, []string{"load", "--pin-dir=PIN", "--node-allow-max-entries=1", "--fixture=peer=192.0.2.2", "--fixture=peer=192.0.2.3"},
			[]string{`beep: 1 of 2 peers are left out: map is full: NODE_ALLOW .*: raise --node-allow-max-entries`}},
		{"several flags at once", 1, []string{"run", "--pin-dir=pins", "--max-fronts=0", "--geneve-vni=16777216", "--log-format=xml"},
			[]string{`beep: --pin-dir .*`, `beep: --max-fronts .*`, `beep: --geneve-vni .*`, `beep: --log-format .*`}},
		{"the controller's pin directory", 1, []string{"run", "--pin-dir=/sys/fs/bpf/beep", "--fixture=node=192.0.2.1"},
			[]string{`beep: --pin-dir \(BEEP_PIN_DIR\) "/sys/fs/bpf/beep": belongs to the controller, .*: use another directory`}},
		{"metrics address of another node", 1, []string{"run", "--pin-dir=PIN/x/y", "--metrics-addr=192.0.2.77:9962"},
			[]string{`beep: serve metrics: .*192.0.2.77:9962.*: choose another --metrics-addr, or an empty one for none`}},
		{"no pin directory", 2, []string{"run"}, []string{`beep: --pin-dir \(BEEP_PIN_DIR\) "": is required: .*`}},
		{"no pin directory to read", 2, []string{"status"}, []string{`beep: --pin-dir \(BEEP_PIN_DIR\) "": is required: .*`}},
		{"no command", 2, nil, []string{"beep: expected one of .*--help.*"}},
		{"unknown command", 2, []string{"walk"}, []string{"beep: unexpected argument walk.*"}},
		{"unknown flag", 2, []string{"run", "--pin=PIN"}, []string{"beep: unknown flag --pin.*"}},
		{"a word for a number", 2, []string{"run", "--pin-dir=PIN", "--max-fronts=many"}, []string{"beep: --max-fronts: expected .*"}},
		{"a filter that is none", 2, []string{"flows", "--pin-dir=PIN", "--client=eth0"}, []string{"beep: --client: .*want ADDRESS.*"}},
		{"nothing is loaded", 1, []string{"fronts", "--pin-dir=PIN"}, []string{"beep: nothing is loaded at .*/beep: .*`beep run`.*"}},
		{"status of nothing", 1, []string{"status", "--pin-dir=PIN"}, []string{"beep: nothing is loaded at .*"}},
		{"unknown output", 1, []string{"drops", "--pin-dir=PIN", "-o", "yaml"}, []string{`beep: --output "yaml": want text or json`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := m.state()
			got := m.do(tt.args...)
			lines := strings.Split(strings.TrimSuffix(got.errout, "\n"), "\n")
			matches := len(lines) == len(tt.want)
			for i := 0; matches && i < len(lines); i++ {
				matches = regexp.MustCompile("^" + tt.want[i] + "$").MatchString(lines[i])
			}
			if !matches || got.out != "" {
				t.Errorf("printed %q and\n%s\nwant\n%s", got.out, got.errout, strings.Join(tt.want, "\n"))
			}
			if got.code != tt.code {
				t.Errorf("exit code %d, want %d", got.code, tt.code)
			}
			if after := m.state(); tt.name != "metrics address of another node" && after != before {
				t.Errorf("changed:\n%s\nto\n%s", before, after)
			}
		})
	}
}

func TestWithoutRights(t *testing.T) {
	m := newMachine(t)
	if err := os.Chmod(m.bpffs, 0o755); err != nil {
		t.Fatal(err)
	}
	as := func(args ...string) result {
		cmd := exec.Command(m.binary, m.expand(args)...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		return m.finish(cmd)
	}
	before := m.state()
	got := as("run", "--pin-dir=PIN", "--uplink-iface=eth0")
	const want = `^beep: capabilities: this process lacks CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON: run it as root, .*\n$`
	if got.code != 1 || !regexp.MustCompile(want).MatchString(got.errout) {
		t.Errorf("run: exit code %d, printed\n%s", got.code, got.errout)
	}
	if after := m.state(); after != before {
		t.Errorf("changed:\n%s\nto\n%s", before, after)
	}
	if got := m.do("load", "--pin-dir=PIN", "--uplink-iface=eth0"); got.code != 0 {
		t.Fatalf("load: %+v", got)
	}
	got = as("fronts", "--pin-dir=PIN")
	if got.code != 1 || !regexp.MustCompile(`^beep: .*permission denied: run it as root\n$`).MatchString(got.errout) {
		t.Errorf("fronts: exit code %d, printed\n%s", got.code, got.errout)
	}
}

// parse reads the JSON of a command that must succeed.
func parse[T any](t *testing.T, got result) T {
	t.Helper()
	var value T
	if err := json.Unmarshal([]byte(got.out), &value); err != nil || got.code != 0 || got.errout != "" {
		t.Fatalf("exit code %d, %v, printed\n%s%s", got.code, err, got.out, got.errout)
	}
	return value
}
