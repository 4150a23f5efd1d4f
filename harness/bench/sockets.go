// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/netns"
)

// patience in seconds is how long a call waits for a packet before it counts as lost. Nothing ever takes nearly that long.
const patience = 5

// socket opens a blocking socket of an address's family in a namespace, bound to that address and port; port 0 takes a free one.
// Go's own sockets would have its scheduler wait for packets, which costs several times what is to be measured.
func socket(ns *netns.NS, kind int, at netip.AddrPort) (fd int, err error) {
	family := unix.AF_INET
	if at.Addr().Is6() {
		family = unix.AF_INET6
	}
	err = ns.Do(func() (err error) {
		fd, err = unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("open a socket in namespace %s: %w", ns.Name(), err)
	}
	wait := unix.Timeval{Sec: patience}
	// A server's port may be one of connections that are over. Of a client it would let two UDP sockets take one port (socket(7)), and
	// one have what the other is answered.
	if at.Port() != 0 {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	}
	err = errors.Join(err,
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &wait),
		unix.Bind(fd, sockaddr(at)))
	if err != nil {
		return 0, errors.Join(fmt.Errorf("set up a socket on %s in namespace %s: %w", at, ns.Name(), err), unix.Close(fd))
	}
	return fd, nil
}

func sockaddr(at netip.AddrPort) unix.Sockaddr {
	if at.Addr().Is4() {
		return &unix.SockaddrInet4{Addr: at.Addr().As4(), Port: int(at.Port())}
	}
	return &unix.SockaddrInet6{Addr: at.Addr().As16(), Port: int(at.Port())}
}

// addrOf is the address of what accept and recvfrom return.
func addrOf(at unix.Sockaddr) netip.Addr {
	switch at := at.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrFrom4(at.Addr)
	case *unix.SockaddrInet6:
		return netip.AddrFrom16(at.Addr)
	}
	return netip.Addr{}
}

// closeAll closes sockets.
func closeAll(fds []int) error {
	var errs []error
	for _, fd := range fds {
		errs = append(errs, unix.Close(fd))
	}
	return errors.Join(errs...)
}

// again repeats a call that a signal interrupted: Go's runtime sends them to its own threads, and what waits with a limit is not resumed.
func again(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func read(fd int, in []byte) (n int, err error) {
	err = again(func() (err error) { n, err = unix.Read(fd, in); return err })
	return n, err
}

func write(fd int, out []byte) error {
	return again(func() error { _, err := unix.Write(fd, out); return err })
}

func receiveFrom(fd int, in []byte, flags int) (n int, from unix.Sockaddr, err error) {
	err = again(func() (err error) { n, from, err = unix.Recvfrom(fd, in, flags); return err })
	return n, from, err
}

func accept(listener int) (fd int, from unix.Sockaddr, err error) {
	err = again(func() (err error) { fd, from, err = unix.Accept4(listener, unix.SOCK_CLOEXEC); return err })
	if err != nil {
		return 0, nil, fmt.Errorf("accept: %w", err)
	}
	return fd, from, nil
}

// connect connects a socket. A call that was interrupted goes on by itself (connect(2)).
func connect(fd int, to netip.AddrPort) error {
	err := unix.Connect(fd, sockaddr(to))
	if errors.Is(err, unix.EINTR) {
		ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		if err = again(func() error { _, err := unix.Poll(ready, patience*1000); return err }); err == nil {
			var errno int
			if errno, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR); err == nil && errno != 0 {
				err = unix.Errno(errno)
			}
		}
	}
	if err != nil {
		return fmt.Errorf("connect to %s: %w", to, err)
	}
	return nil
}
