// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/netns"
)

// The types and codes of ICMP errors that specs name, of RFC 792 (4) and of RFC 4443 (6).
const (
	Unreachable4        = 3
	NeedsFragmentation4 = 4 // a code of Unreachable4
	PortUnreachable4    = 3 // a code of Unreachable4
	TimeExceeded4       = 11
	Unreachable6        = 1
	PortUnreachable6    = 4 // a code of Unreachable6
	TooBig6             = 2
	TimeExceeded6       = 3
)

// ICMPErrors collects the ICMP errors that come in on one device, as they are on the wire: a socket that is told of
// an error does not see its checksums, nor most of what it quotes.
type ICMPErrors struct {
	device string
	fds    []int
	stop   func() error
}

// WatchICMP begins to collect on a device of a namespace. When it returns, no later error is missed. It ends by
// Close, or with its namespace.
func WatchICMP(ns *netns.NS, device string) (*ICMPErrors, error) {
	link, err := ns.Netlink().LinkByName(device)
	if err != nil {
		return nil, fmt.Errorf("watch %s in namespace %s: %w", device, ns.Name(), err)
	}
	w := &ICMPErrors{device: device}
	w.stop = sync.OnceValue(func() error {
		var errs []error
		for _, fd := range w.fds {
			errs = append(errs, unix.Close(fd))
		}
		return errors.Join(errs...)
	})
	err = ns.Do(func() error {
		return errors.Join(
			w.open(link.Attrs().Index, unix.ETH_P_IP, errors4),
			w.open(link.Attrs().Index, unix.ETH_P_IPV6, errors6))
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("watch %s in namespace %s: %w", device, ns.Name(), err), w.stop())
	}
	ns.OnClose(w.stop)
	return w, nil
}

// The socket filters that keep ICMP errors, from the IP header on; BPF as in Linux, Documentation/networking/filter.rst.
var (
	errors4 = []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: 9},                          // protocol
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.IPPROTO_ICMP, Jf: 6},  //
		{Code: unix.BPF_LDX | unix.BPF_B | unix.BPF_MSH, K: 0},                         // header length
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_IND, K: 0},                          // type
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: Unreachable4, Jt: 2},       //
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: TimeExceeded4, Jt: 1},      //
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: 12 /* parameter */, Jf: 1}, //
		{Code: unix.BPF_RET | unix.BPF_K, K: maxDatagram},                              //
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},                                        //
	}
	errors6 = []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: 6},                           // next header
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.IPPROTO_ICMPV6, Jf: 3}, //
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: 40},                          // type
		{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: 128, Jt: 1},                 // informational
		{Code: unix.BPF_RET | unix.BPF_K, K: maxDatagram},                               //
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},                                         //
	}
)

// open adds a socket of one family; it is bound before it gets its protocol, so nothing comes unfiltered.
func (w *ICMPErrors) open(index int, protocol uint16, filter []unix.SockFilter) error {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("open a packet socket: %w", err)
	}
	w.fds = append(w.fds, fd)
	return errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, socketBuffer),
		unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
			&unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}),
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: networkOrder(protocol), Ifindex: index}))
}

// Take returns the errors that came in since the last call, each from its IP header on; first those of IPv4.
func (w *ICMPErrors) Take() ([][]byte, error) {
	var all [][]byte
	buffer := make([]byte, maxDatagram)
	for _, fd := range w.fds {
		for {
			n, _, err := unix.Recvfrom(fd, buffer, unix.MSG_DONTWAIT)
			if errors.Is(err, unix.EAGAIN) {
				break
			}
			if err != nil {
				return all, fmt.Errorf("watch %s: %w", w.device, err)
			}
			all = append(all, append([]byte(nil), buffer[:n]...))
		}
	}
	return all, nil
}

// Close ends it. It may be called twice.
func (w *ICMPErrors) Close() error { return w.stop() }
