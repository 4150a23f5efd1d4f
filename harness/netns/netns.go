// SPDX-License-Identifier: Apache-2.0

// Package netns makes the network namespaces that stand for machines, and is the only way into them. Invariant:
// no goroutine is in a namespace outside a call of Do, and nothing that a namespace was given (processes,
// servers, its name) outlives its Close.
package netns

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/vishvananda/netlink"
	vishnetns "github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/require"
)

// dir is where iproute2 keeps named namespaces (ip-netns(8)), so `ip netns exec` finds ours. Only the first
// `ip netns add` after boot is harmful while namespaces of ours exist: it mounts the directory over itself, and
// their files can then not be removed (EBUSY). Run it before, or use Create instead.
const dir = "/run/netns"

// NS is a handle of one network namespace. It is safe for concurrent use.
type NS struct {
	name   string
	handle vishnetns.NsHandle
	links  *netlink.Handle

	mu       sync.Mutex
	closed   bool
	starter  *starter
	closers  []func() error
	closeErr error
}

// New makes a namespace for one test and deletes it at the test's cleanup. It needs root. The prefix shows in
// the name that `ip netns` lists; a random part keeps parallel tests apart.
func New(tb require.TB, prefix string) *NS {
	tb.Helper()
	ns, err := Create(prefix)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	tb.Cleanup(func() {
		if err := ns.Close(); err != nil {
			tb.Errorf("%v", err)
		}
	})
	return ns
}

// Create makes a namespace with loopback up, for a program that has no test around it; the caller calls Close.
// IPv6 starts without duplicate address detection and router solicitations, so that addresses given later work
// at once and a silent wire stays silent.
func Create(prefix string) (*NS, error) {
	var random [4]byte
	if _, err := rand.Read(random[:]); err != nil {
		return nil, fmt.Errorf("name namespace %s: %w", prefix, err)
	}
	ns := &NS{name: prefix + "-" + hex.EncodeToString(random[:])}
	if err := ns.create(); err != nil {
		return nil, fmt.Errorf("create namespace %s: %w", ns.name, err)
	}
	if err := ns.prepare(); err != nil {
		return nil, errors.Join(fmt.Errorf("prepare namespace %s: %w", ns.name, err), ns.Close())
	}
	return ns, nil
}

// create unshares on a locked thread, which NewNamed leaves inside the new namespace, and takes it back.
func (ns *NS) create() error {
	runtime.LockOSThread()
	before, err := vishnetns.Get()
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer before.Close()
	handle, err := vishnetns.NewNamed(ns.name)
	if back := vishnetns.Set(before); back != nil {
		return fmt.Errorf("return to the previous namespace: %w", back) // still locked: the thread ends with the goroutine
	}
	runtime.UnlockOSThread()
	if err != nil {
		return fmt.Errorf("%w: it needs root, and %s writable", err, dir)
	}
	ns.handle = handle
	return nil
}

func (ns *NS) prepare() error {
	links, err := netlink.NewHandleAt(ns.handle, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("open netlink: %w", err)
	}
	ns.links = links
	for _, key := range []string{"accept_dad", "dad_transmits", "router_solicitations", "accept_ra"} {
		for _, scope := range []string{"all", "default"} {
			if err := ns.Sysctl("net.ipv6.conf."+scope+"."+key, "0"); err != nil {
				return err
			}
		}
	}
	loopback, err := links.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find lo: %w", err)
	}
	if err := links.LinkSetUp(loopback); err != nil {
		return fmt.Errorf("set lo up: %w", err)
	}
	return nil
}

// Name is the name as `ip netns` lists it.
func (ns *NS) Name() string { return ns.name }

// Path is the file that setns(2) and nsenter(1) take.
func (ns *NS) Path() string { return filepath.Join(dir, ns.name) }

// FD is the descriptor of the namespace, valid until Close: netlink wants it to move a device (NsFd).
func (ns *NS) FD() int { return int(ns.handle) }

// Netlink is a handle that works in the namespace from any goroutine, without switching. Close closes it.
func (ns *NS) Netlink() *netlink.Handle { return ns.links }

// Do runs f inside the namespace, on the calling goroutine, and returns f's error. Calls nest. What f opens
// (sockets, /proc/sys/net) belongs to the namespace for good, so f may hand it out; a goroutine that f starts
// does not run inside. /sys stays that of the caller, and /proc/net is the main thread's: read
// /proc/thread-self/net. An error in leaving wins over f's, and ends the thread with the goroutine.
func (ns *NS) Do(f func() error) (err error) {
	runtime.LockOSThread()
	before, err := vishnetns.Get()
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("enter namespace %s: %w", ns.name, err)
	}
	defer before.Close()
	ns.mu.Lock()
	handle := ns.handle
	ns.mu.Unlock()
	if err := vishnetns.Set(handle); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("enter namespace %s: %w: is it closed?", ns.name, err)
	}
	defer func() {
		if back := vishnetns.Set(before); back != nil {
			err = fmt.Errorf("leave namespace %s: %w", ns.name, back)
			return // still locked: the runtime ends this thread with the goroutine, so nobody else runs on it
		}
		runtime.UnlockOSThread()
	}()
	return f()
}

// Sysctl writes a key of the namespace, named as sysctl(8) does: net.ipv4.ip_forward, or with slashes where a
// device's name has a dot: net/ipv4/conf/eth0.5/rp_filter. Only keys below net belong to a namespace.
func (ns *NS) Sysctl(key, value string) error {
	path, err := sysctlPath(key)
	if err != nil {
		return err
	}
	return ns.Do(func() error {
		// The kernel resolves /proc/sys/net by the namespace of the thread that opens it (proc(5)).
		if err := os.WriteFile(path, []byte(value), 0); err != nil {
			return fmt.Errorf("set sysctl %s=%s in %s: %w", key, value, ns.name, err)
		}
		return nil
	})
}

// ReadSysctl returns the value of a key, as Sysctl names them, without the newline.
func (ns *NS) ReadSysctl(key string) (value string, err error) {
	path, err := sysctlPath(key)
	if err != nil {
		return "", err
	}
	err = ns.Do(func() error {
		content, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("read sysctl %s in %s: %w", key, ns.name, err)
		}
		value = strings.TrimSpace(string(content))
		return nil
	})
	return value, err
}

func sysctlPath(key string) (string, error) {
	path := key
	if !strings.Contains(key, "/") {
		path = strings.ReplaceAll(key, ".", "/")
	}
	if !strings.HasPrefix(path, "net/") {
		return "", fmt.Errorf("sysctl %s: only keys below net belong to a network namespace", key)
	}
	return filepath.Join("/proc/sys", path), nil
}

// OnClose has Close call f, before the namespace goes and in reverse order: servers that run inside register
// themselves, so that a spec need not close them. If the namespace is closed already, f runs at once.
func (ns *NS) OnClose(f func() error) {
	ns.mu.Lock()
	if !ns.closed {
		ns.closers = append(ns.closers, f)
		ns.mu.Unlock()
		return
	}
	ns.mu.Unlock()
	if err := f(); err != nil {
		ns.mu.Lock()
		ns.closeErr = errors.Join(ns.closeErr, err)
		ns.mu.Unlock()
	}
}

// Close kills what was started inside, calls what OnClose registered, and deletes the namespace. A second call
// does nothing and returns the first one's error.
func (ns *NS) Close() error {
	ns.mu.Lock()
	if ns.closed {
		defer ns.mu.Unlock()
		return ns.closeErr
	}
	ns.closed = true
	closers, processes := ns.closers, ns.starter
	ns.mu.Unlock()

	var errs []error
	for i := len(closers) - 1; i >= 0; i-- {
		errs = append(errs, closers[i]())
	}
	if processes != nil {
		processes.stop()
	}
	if ns.links != nil {
		ns.links.Close()
	}
	errs = append(errs, vishnetns.DeleteNamed(ns.name))
	ns.mu.Lock()
	defer ns.mu.Unlock()
	errs = append(errs, ns.handle.Close())
	err := errors.Join(errs...)
	if err != nil {
		err = fmt.Errorf("close namespace %s: %w", ns.name, err)
	}
	ns.closeErr = errors.Join(ns.closeErr, err)
	return ns.closeErr
}
