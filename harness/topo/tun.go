// SPDX-License-Identifier: Apache-2.0

package topo

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/vishvananda/netlink"

	"github.com/beep-lb/beep/harness/netns"
)

// maxPacket is the largest IP packet that a tun device hands over (its largest MTU).
const maxPacket = 65535

// shuttle carries packets between two tun devices, which so become one L3-only wire.
type shuttle struct {
	ends    [2]*os.File
	running sync.WaitGroup
	once    sync.Once
	err     error
}

func newShuttle(a *netns.NS, deviceA string, b *netns.NS, deviceB string, mtu int) (*shuttle, error) {
	near, err := addTun(a, deviceA, mtu)
	if err != nil {
		return nil, err
	}
	far, err := addTun(b, deviceB, mtu)
	if err != nil {
		return nil, errors.Join(err, near.Close())
	}
	s := &shuttle{ends: [2]*os.File{near, far}}
	s.running.Go(func() { carry(near, far) })
	s.running.Go(func() { carry(far, near) })
	return s, nil
}

// addTun makes a tun device that lives as long as the returned file. The kernel segments and checksums a packet
// before it hands it over, as no IFF_VNET_HDR is asked for.
func addTun(ns *netns.NS, device string, mtu int) (file *os.File, err error) {
	tun := &netlink.Tuntap{
		LinkAttrs: netlink.NewLinkAttrs(), Mode: netlink.TUNTAP_MODE_TUN, Flags: netlink.TUNTAP_NO_PI,
		NonPersist: true, Queues: 1,
	}
	tun.Name = device
	err = ns.Do(func() error { return ns.Netlink().LinkAdd(tun) }) // /dev/net/tun acts on the opener's namespace
	if err != nil {
		return nil, fmt.Errorf("add tun %s: %w", device, err)
	}
	file = tun.Fds[0]
	if err := ns.Netlink().LinkSetMTU(tun, mtu); err != nil {
		return nil, errors.Join(fmt.Errorf("set mtu of %s to %d: %w", device, mtu, err), file.Close())
	}
	return file, nil
}

// carry copies packets until either end is closed. A packet that the other end refuses is lost, as on any wire.
func carry(from, to *os.File) {
	packet := make([]byte, maxPacket)
	for {
		n, err := from.Read(packet)
		if err != nil {
			return
		}
		if _, err := to.Write(packet[:n]); errors.Is(err, os.ErrClosed) {
			return
		}
	}
}

func (s *shuttle) close() error {
	s.once.Do(func() {
		s.err = errors.Join(s.ends[0].Close(), s.ends[1].Close())
		s.running.Wait()
	})
	return s.err
}
