// SPDX-License-Identifier: Apache-2.0

package topo

import (
	"fmt"

	"github.com/vishvananda/netlink"

	"github.com/beep-lb/beep/harness/netns"
)

// AddTap plugs a machine into a LAN whose other members are namespaces: it makes a tap device of that name on the LAN's
// bridge and returns the LAN's namespace, in which the machine's emulator must run. The device goes with the topology.
func (t *Topology) AddTap(lan, device string) (*netns.NS, error) {
	ns := t.find(lan, true)
	if ns == nil {
		return nil, fmt.Errorf("tap %s: no LAN %q in this topology", device, lan)
	}
	if err := addTap(ns, device); err != nil {
		return nil, fmt.Errorf("tap %s on %s: %w", device, lan, err)
	}
	return ns, nil
}

func addTap(ns *netns.NS, name string) error {
	nl := ns.Netlink()
	bridge, err := nl.LinkByName(bridgeName)
	if err != nil {
		return fmt.Errorf("find bridge: %w", err)
	}
	device := &netlink.Tuntap{
		LinkAttrs: linkAttrs(name, bridge.Attrs().MTU), Mode: netlink.TUNTAP_MODE_TAP,
		Flags: netlink.TUNTAP_DEFAULTS | netlink.TUNTAP_VNET_HDR,
	}
	// The device is made by ioctl on /dev/net/tun, in the namespace of the thread.
	if err := ns.Do(func() error { return netlink.LinkAdd(device) }); err != nil {
		return err
	}
	tap, err := nl.LinkByName(name)
	if err != nil {
		return err
	}
	if err := nl.LinkSetMaster(tap, bridge); err != nil {
		return fmt.Errorf("plug in: %w", err)
	}
	return nl.LinkSetUp(tap)
}
