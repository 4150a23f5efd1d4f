// SPDX-License-Identifier: Apache-2.0

package topo

import (
	"cmp"
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/netns"
)

// ReplaceRoute adds a route to a host or pod, or changes the one of the same destination and table.
func (t *Topology) ReplaceRoute(name string, route Route) error {
	if err := replaceRoute(t.NS(name), route); err != nil {
		return fmt.Errorf("host %s: %w", name, err)
	}
	return nil
}

// DeleteRoute removes a route that ReplaceRoute or the plan added.
func (t *Topology) DeleteRoute(name string, route Route) error {
	row, err := kernelRoute(t.NS(name), route)
	if err != nil {
		return fmt.Errorf("host %s: %w", name, err)
	}
	if err := t.NS(name).Netlink().RouteDel(row); err != nil {
		return fmt.Errorf("host %s: delete route %s: %w", name, route, err)
	}
	return nil
}

// Recreate deletes a host's LAN device and makes it anew, as a NIC driver or a restarted network daemon does: a
// new ifindex, a new MAC address, every program on it gone, and the plan's addresses and routes back again.
func (t *Topology) Recreate(name, device string) error {
	host := t.Host(name)
	if host == nil {
		return fmt.Errorf("recreate %s: plan %q has no host %q", device, t.Title, name)
	}
	makeAnew := t.maker(host, device)
	if makeAnew == nil {
		return fmt.Errorf("recreate %s of %s: no such device on a LAN or of a tunnel", device, name)
	}
	nl := t.NS(name).Netlink()
	link, err := nl.LinkByName(device)
	if err != nil {
		return fmt.Errorf("recreate %s of %s: %w", device, name, err)
	}
	if err := nl.LinkDel(link); err != nil {
		return fmt.Errorf("delete %s of %s: %w", device, name, err)
	}
	if err := makeAnew(); err != nil {
		return fmt.Errorf("recreate %s of %s: %w", device, name, err)
	}
	if err := t.addRoutes(*host); err != nil {
		return err
	}
	return t.waitForLinks()
}

// maker is what makes a device as the plan has it; nil if it has none of that name on a LAN or of a tunnel.
func (t *Topology) maker(host *Host, device string) func() error {
	for _, port := range host.Ports {
		if port.Device == device && port.VLAN == 0 {
			return func() error { return t.addPort(host.Name, port) }
		}
	}
	for _, tunnel := range t.Tunnels {
		for _, ends := range [][2]End{{tunnel.A, tunnel.B}, {tunnel.B, tunnel.A}} {
			if ends[0].Host == host.Name && ends[0].Device == device {
				return func() error { return t.addTunnelEnd(tunnel, ends[0], ends[1]) }
			}
		}
	}
	return nil
}

func (t *Topology) addRoutes(host Host) error {
	for _, route := range host.Routes {
		if err := t.ReplaceRoute(host.Name, route); err != nil {
			return err
		}
	}
	return nil
}

func replaceRoute(ns *netns.NS, route Route) error {
	row, err := kernelRoute(ns, route)
	if err != nil {
		return err
	}
	if err := ns.Netlink().RouteReplace(row); err != nil {
		return fmt.Errorf("set route %s: %w", route, err)
	}
	return nil
}

func kernelRoute(ns *netns.NS, route Route) (*netlink.Route, error) {
	row := &netlink.Route{Dst: ipNet(route.To), Table: cmp.Or(route.Table, unix.RT_TABLE_MAIN)}
	if route.Via.IsValid() {
		row.Gw = route.Via.AsSlice()
	} else {
		row.Scope = netlink.SCOPE_LINK
	}
	if route.Device != "" {
		link, err := ns.Netlink().LinkByName(route.Device)
		if err != nil {
			return nil, fmt.Errorf("route %s: find device: %w", route, err)
		}
		row.LinkIndex = link.Attrs().Index
	}
	return row, nil
}
