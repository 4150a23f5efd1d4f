// SPDX-License-Identifier: Apache-2.0

package netns

import (
	"context"
	"fmt"
	"net"
	"net/netip"
)

// Listen opens a TCP listener inside the namespace; it is an ordinary net.Listener and works on any goroutine.
func (ns *NS) Listen(at netip.AddrPort) (listener net.Listener, err error) {
	err = ns.Do(func() error {
		listener, err = net.ListenTCP("tcp", net.TCPAddrFromAddrPort(at))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listen on tcp %s in namespace %s: %w", at, ns.name, err)
	}
	return listener, nil
}

// ListenPacket opens an unconnected UDP socket inside the namespace. Port 0 takes a free one.
func (ns *NS) ListenPacket(at netip.AddrPort) (conn *net.UDPConn, err error) {
	err = ns.Do(func() error {
		conn, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listen on udp %s in namespace %s: %w", at, ns.name, err)
	}
	return conn, nil
}

// DialContext connects from inside the namespace; it has the form that http.Transport.DialContext wants. The
// address must be a literal: a name would be looked up by other goroutines, and so outside.
func (ns *NS) DialContext(ctx context.Context, network, address string) (conn net.Conn, err error) {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, fmt.Errorf("dial %s %s from namespace %s: want a literal address and port: %w", network, address, ns.name, err)
	}
	return ns.DialFrom(ctx, network, netip.AddrPort{}, to)
}

// DialFrom connects over network ("tcp" or "udp") with a source address and port chosen by the caller; the zero
// AddrPort leaves the choice to the kernel.
func (ns *NS) DialFrom(ctx context.Context, network string, from, to netip.AddrPort) (conn net.Conn, err error) {
	var dialer net.Dialer
	if from.IsValid() {
		dialer.LocalAddr = net.TCPAddrFromAddrPort(from)
		if network == "udp" {
			dialer.LocalAddr = net.UDPAddrFromAddrPort(from)
		}
	}
	err = ns.Do(func() error {
		conn, err = dialer.DialContext(ctx, network, to.String())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("from namespace %s: %w", ns.name, err)
	}
	return conn, nil
}
