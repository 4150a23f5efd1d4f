// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"encoding/binary"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/netns"
)

// shortest is the length in bytes of the smallest header that Send reads the protocol from.
const shortest = 14

// Raw sends frames as they are out of one device, for what no honest socket sends: spoofed sources, forged tunnels.
type Raw struct {
	device string
	index  int
	bare   bool // the device has no link-layer header
	fd     int
	stop   func() error
}

// OpenRaw opens a device of the namespace for sending. It ends with its namespace or by Close.
func OpenRaw(ns *netns.NS, device string) (*Raw, error) {
	link, err := ns.Netlink().LinkByName(device)
	if err != nil {
		return nil, fmt.Errorf("open %s in namespace %s: %w", device, ns.Name(), err)
	}
	raw := &Raw{device: device, index: link.Attrs().Index, bare: link.Attrs().EncapType != "ether"}
	err = ns.Do(func() (err error) {
		raw.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0) // protocol 0: receives nothing
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open a packet socket for %s in namespace %s: %w", device, ns.Name(), err)
	}
	raw.stop = sync.OnceValue(func() error { return unix.Close(raw.fd) })
	ns.OnClose(raw.stop)
	return raw, nil
}

// Send sends one frame: from the Ethernet header on, or from the IP header on where the device has no link-layer
// header. The kernel adds nothing; checksums are the caller's.
func (r *Raw) Send(frame []byte) error {
	if len(frame) < shortest {
		return fmt.Errorf("send on %s: a frame of %d bytes has no headers", r.device, len(frame))
	}
	to := unix.SockaddrLinklayer{Ifindex: r.index}
	switch {
	case !r.bare:
		to.Protocol = networkOrder(binary.BigEndian.Uint16(frame[12:]))
	case frame[0]>>4 == 6:
		to.Protocol = networkOrder(unix.ETH_P_IPV6)
	default:
		to.Protocol = networkOrder(unix.ETH_P_IP)
	}
	if err := unix.Sendto(r.fd, frame, 0, &to); err != nil {
		return fmt.Errorf("send %d bytes on %s: %w", len(frame), r.device, err)
	}
	return nil
}

// Close ends it. It may be called twice.
func (r *Raw) Close() error { return r.stop() }

// networkOrder is htons, which sockaddr_ll wants (packet(7)).
func networkOrder(protocol uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, protocol))
}
