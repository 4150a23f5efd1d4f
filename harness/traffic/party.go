// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/netns"
)

// party is one end of a dialogue: a socket that does not block and that queues ICMP errors.
type party struct {
	fd      int
	v6      bool
	name    netip.AddrPort
	data    []byte
	control []byte
	close   func() error
}

func newParty(ns *netns.NS, at netip.AddrPort, o SocketOptions) (*party, error) {
	p := &party{v6: at.Addr().Is6(), data: make([]byte, maxDatagram), control: make([]byte, 512)}
	err := ns.Do(func() (err error) {
		family := unix.AF_INET
		if p.v6 {
			family = unix.AF_INET6
		}
		p.fd, err = unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open a UDP socket in namespace %s: %w", ns.Name(), err)
	}
	p.close = sync.OnceValue(func() error { return unix.Close(p.fd) })
	if err := errors.Join(p.set(o), unix.Bind(p.fd, sockaddr(at))); err != nil {
		return nil, errors.Join(fmt.Errorf("set up UDP socket %s in namespace %s: %w", at, ns.Name(), err), p.close())
	}
	name, err := unix.Getsockname(p.fd)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("name of UDP socket %s: %w", at, err), p.close())
	}
	p.name = addrPort(name)
	ns.OnClose(p.close)
	return p, nil
}

func (p *party) set(o SocketOptions) error {
	mode, wanted := discovery[o.Fragment]
	errs := []error{
		unix.SetsockoptInt(p.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, socketBuffer),
		unix.SetsockoptInt(p.fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, socketBuffer),
	}
	if !p.v6 {
		errs = append(errs, unix.SetsockoptInt(p.fd, unix.IPPROTO_IP, unix.IP_RECVERR, 1))
		if wanted {
			errs = append(errs, unix.SetsockoptInt(p.fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, mode))
		}
		if o.TTL != 0 {
			errs = append(errs, unix.SetsockoptInt(p.fd, unix.IPPROTO_IP, unix.IP_TTL, o.TTL))
		}
		return errors.Join(errs...)
	}
	errs = append(errs, unix.SetsockoptInt(p.fd, unix.IPPROTO_IPV6, unix.IPV6_RECVERR, 1))
	if wanted {
		errs = append(errs, unix.SetsockoptInt(p.fd, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, mode))
	}
	if o.Fragment == ProbePath || o.Fragment == NeverHere { // IPv6 has no DF: its sender alone can fragment
		errs = append(errs, unix.SetsockoptInt(p.fd, unix.IPPROTO_IPV6, unix.IPV6_DONTFRAG, 1))
	}
	if o.TTL != 0 {
		errs = append(errs, unix.SetsockoptInt(p.fd, unix.IPPROTO_IPV6, unix.IPV6_UNICAST_HOPS, o.TTL))
	}
	if o.DestOptions {
		padded := string([]byte{0, 0, 1, 4, 0, 0, 0, 0}) // one PadN option
		errs = append(errs, unix.SetsockoptString(p.fd, unix.IPPROTO_IPV6, unix.IPV6_DSTOPTS, padded))
	}
	return errors.Join(errs...)
}

// send hands one burst to the kernel; dst is invalid for a connected socket.
func (p *party) send(content []byte, dst netip.AddrPort, b Burst) error {
	var control []byte
	if b.Count > 1 {
		control = make([]byte, unix.CmsgSpace(2))
		header := (*unix.Cmsghdr)(unsafe.Pointer(&control[0]))
		header.Level, header.Type = unix.SOL_UDP, unix.UDP_SEGMENT
		header.SetLen(unix.CmsgLen(2))
		binary.NativeEndian.PutUint16(control[unix.CmsgLen(0):], uint16(b.Size))
	}
	var to unix.Sockaddr
	if dst.IsValid() {
		to = sockaddr(dst)
	}
	if _, err := unix.SendmsgN(p.fd, content, control, to, 0); err != nil {
		return fmt.Errorf("send %d bytes: %w", len(content), err)
	}
	return nil
}

// receive returns the next datagram, valid until the next call, or EAGAIN. An error that waits in the queue is
// told by refusals, not here.
func (p *party) receive() ([]byte, netip.AddrPort, error) {
	n, from, err := unix.Recvfrom(p.fd, p.data, unix.MSG_DONTWAIT)
	if isICMPErrno(err) {
		return nil, netip.AddrPort{}, unix.EAGAIN
	}
	if err != nil {
		return nil, netip.AddrPort{}, err
	}
	return p.data[:n], addrPort(from), nil
}

// refusals empties the error queue.
func (p *party) refusals() ([]Refusal, error) {
	var all []Refusal
	for {
		_, length, _, _, err := unix.Recvmsg(p.fd, p.data, p.control, unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
		if errors.Is(err, unix.EAGAIN) {
			_, err = unix.GetsockoptInt(p.fd, unix.SOL_SOCKET, unix.SO_ERROR) // told already
			return all, err
		}
		if err != nil {
			return all, fmt.Errorf("read the error queue: %w", err)
		}
		messages, err := unix.ParseSocketControlMessage(p.control[:length])
		if err != nil {
			return all, fmt.Errorf("read the error queue: %w", err)
		}
		for _, message := range messages {
			if refusal, ok := readRefusal(message); ok {
				all = append(all, refusal)
			}
		}
	}
}

// readRefusal reads struct sock_extended_err and the address behind it (linux/errqueue.h).
func readRefusal(message unix.SocketControlMessage) (Refusal, bool) {
	v6 := message.Header.Level == unix.IPPROTO_IPV6 && message.Header.Type == unix.IPV6_RECVERR
	if !v6 && (message.Header.Level != unix.IPPROTO_IP || message.Header.Type != unix.IP_RECVERR) {
		return Refusal{}, false
	}
	var e unix.SockExtendedErr
	if _, err := binary.Decode(message.Data, binary.NativeEndian, &e); err != nil {
		return Refusal{}, false
	}
	if e.Origin != unix.SO_EE_ORIGIN_ICMP && e.Origin != unix.SO_EE_ORIGIN_ICMP6 {
		return Refusal{}, false // the own kernel's, which the failed call has told as well
	}
	refusal := Refusal{Type: e.Type, Code: e.Code, MTU: int(e.Info), Errno: syscall.Errno(e.Errno)}
	offender := message.Data[binary.Size(e):] // struct sockaddr_in or sockaddr_in6
	switch {
	case v6 && len(offender) >= unix.SizeofSockaddrInet6:
		refusal.From = netip.AddrFrom16([16]byte(offender[8:24]))
	case len(offender) >= unix.SizeofSockaddrInet4:
		refusal.From = netip.AddrFrom4([4]byte(offender[4:8]))
	}
	return refusal, true
}

// isICMPErrno says whether a call failed because of an earlier ICMP error.
func isICMPErrno(err error) bool {
	for _, errno := range []syscall.Errno{unix.EMSGSIZE, unix.ECONNREFUSED, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.EACCES, unix.EPROTO} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

func sockaddr(at netip.AddrPort) unix.Sockaddr {
	if at.Addr().Is4() {
		return &unix.SockaddrInet4{Addr: at.Addr().As4(), Port: int(at.Port())}
	}
	return &unix.SockaddrInet6{Addr: at.Addr().As16(), Port: int(at.Port())}
}

func addrPort(at unix.Sockaddr) netip.AddrPort {
	switch at := at.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(at.Addr), uint16(at.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(at.Addr), uint16(at.Port))
	}
	return netip.AddrPort{}
}
