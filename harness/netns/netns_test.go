// SPDX-License-Identifier: Apache-2.0

package netns_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/netns"
	"github.com/beep-lb/beep/harness/require"
)

func TestMain(m *testing.M) { os.Exit(require.Main(m)) }

// namespaceHere is the identity of the calling thread's namespace.
func namespaceHere(t *testing.T) string {
	t.Helper()
	name, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func TestDoEntersAndReturns(t *testing.T) {
	require.Root(t)
	t.Parallel()
	ns := netns.New(t, "do")
	outer := netns.New(t, "outer")
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	outside := namespaceHere(t)
	failure := errors.New("from inside")
	err := outer.Do(func() error {
		between := namespaceHere(t)
		err := ns.Do(func() error {
			if inside := namespaceHere(t); inside == outside || inside == between {
				t.Errorf("Do did not enter: still in %s", inside)
			}
			return failure
		})
		if got := namespaceHere(t); got != between {
			t.Errorf("nested Do returned to %s, want %s", got, between)
		}
		return err
	})
	if !errors.Is(err, failure) {
		t.Errorf("Do = %v, want the function's error", err)
	}
	func() {
		defer func() { _ = recover() }()
		_ = ns.Do(func() error { panic("a failed assertion") })
	}()
	if got := namespaceHere(t); got != outside {
		t.Errorf("after a panic the thread is in %s, want %s", got, outside)
	}
}

func TestSysctlBelongsToTheNamespace(t *testing.T) {
	require.Root(t)
	t.Parallel()
	before, err := os.ReadFile("/proc/sys/net/ipv4/ip_forward")
	if err != nil {
		t.Fatal(err)
	}
	router, host := netns.New(t, "router"), netns.New(t, "host")
	for ns, want := range map[*netns.NS]string{router: "1", host: "0"} {
		if err := ns.Sysctl("net.ipv4.ip_forward", want); err != nil {
			t.Fatal(err)
		}
	}
	for ns, want := range map[*netns.NS]string{router: "1", host: "0"} {
		if got, err := ns.ReadSysctl("net/ipv4/ip_forward"); err != nil || got != want {
			t.Errorf("%s: ip_forward = %q, %v; want %q", ns.Name(), got, err, want)
		}
	}
	if after, _ := os.ReadFile("/proc/sys/net/ipv4/ip_forward"); !bytes.Equal(before, after) {
		t.Errorf("the machine's own ip_forward went from %q to %q", before, after)
	}
	if err := host.Sysctl("kernel.panic", "0"); err == nil {
		t.Error("a key of the whole machine was accepted")
	}
}

func TestSocketsLiveInside(t *testing.T) {
	require.Root(t)
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	ns, other := netns.New(t, "inside"), netns.New(t, "other")
	listener, err := ns.Listen(netip.MustParseAddrPort("127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, "hello")
		_ = conn.Close()
	}()
	conn, err := ns.DialContext(ctx, "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got, err := io.ReadAll(conn); string(got) != "hello" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
	if _, err := other.DialContext(ctx, "tcp", listener.Addr().String()); err == nil {
		t.Error("another namespace reached the listener's loopback")
	}
	if _, err := ns.DialContext(ctx, "tcp", "localhost:80"); err == nil {
		t.Error("a name was accepted for an address")
	}
	source := netip.MustParseAddrPort("127.0.0.1:4242")
	packet, err := ns.DialFrom(ctx, "udp", source, netip.MustParseAddrPort("127.0.0.1:9"))
	if err != nil {
		t.Fatal(err)
	}
	defer packet.Close()
	if got := packet.LocalAddr().(*net.UDPAddr).AddrPort(); got != source {
		t.Errorf("source = %s, want %s", got, source)
	}
}

func TestProcesses(t *testing.T) {
	require.Root(t)
	t.Parallel()
	ns := netns.New(t, "process")
	var inside string
	if err := ns.Do(func() error { inside = namespaceHere(t); return nil }); err != nil {
		t.Fatal(err)
	}
	var output strings.Builder
	cmd := exec.Command("readlink", "/proc/self/ns/net")
	cmd.Stdout = &output
	process, err := ns.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Wait(); err != nil || strings.TrimSpace(output.String()) != inside {
		t.Errorf("the child ran in %q, %v; want %s", output.String(), err, inside)
	}
	if _, err := ns.Start(exec.Command("/no/such/program")); err == nil {
		t.Error("a missing program started")
	}

	killed, err := ns.Start(exec.Command("sleep", "600"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(killed.Kill(), killed.Kill()); err != nil {
		t.Errorf("kill twice: %v", err)
	}
	left, err := ns.Start(exec.Command("sleep", "600"))
	if err != nil {
		t.Fatal(err)
	}
	if err := ns.Close(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(left.Pid(), 0); !errors.Is(err, unix.ESRCH) {
		t.Errorf("pid %d outlived its namespace: %v", left.Pid(), err)
	}
	if _, err := ns.Start(exec.Command("true")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("start after close = %v, want os.ErrClosed", err)
	}
}

func TestRun(t *testing.T) {
	ns := netns.New(t, "test")
	if err := ns.Run(t.Context(), exec.Command("true")); err != nil {
		t.Errorf("true: %v", err)
	}
	var exit *exec.ExitError
	if err := ns.Run(t.Context(), exec.Command("sh", "-c", "exit 7")); !errors.As(err, &exit) || exit.ExitCode() != 7 {
		t.Errorf("exit 7: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	cmd := exec.Command("sleep", "600")
	err := ns.Run(ctx, cmd)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "sleep 600") {
		t.Errorf("a command without an end: %v", err)
	}
	if cmd.ProcessState == nil {
		t.Error("it was left running")
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	require.Root(t)
	t.Parallel()
	ns := netns.New(t, "gone")
	if _, err := os.Stat(ns.Path()); err != nil {
		t.Fatalf("not where ip netns looks: %v", err)
	}
	var order []string
	for _, name := range []string{"first", "second"} {
		ns.OnClose(func() error { order = append(order, name); return nil })
	}
	if err := errors.Join(ns.Close(), ns.Close()); err != nil {
		t.Errorf("close twice: %v", err)
	}
	if got := strings.Join(order, " "); got != "second first" {
		t.Errorf("closers ran in order %q", got)
	}
	if _, err := os.Stat(ns.Path()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left behind: %v", ns.Path(), err)
	}
	if err := ns.Do(func() error { return nil }); err == nil {
		t.Error("a closed namespace was entered")
	}
}

func TestManyAtOnce(t *testing.T) {
	require.Root(t)
	t.Parallel()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			ns, err := netns.Create("many")
			if err != nil {
				t.Error(err)
				return
			}
			if err := ns.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}
