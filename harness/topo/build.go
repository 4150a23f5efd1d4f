// SPDX-License-Identifier: Apache-2.0

package topo

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/netns"
	"github.com/beep-lb/beep/harness/require"
)

const (
	bridgeName = "br0"
	podDevice  = "eth0"
)

// The addresses by which a pod knows its node. The node answers the first through a permanent neighbour entry
// and has the second on its side of the veth, so no address of the node itself shows up there.
var (
	podGateway4 = netip.MustParseAddr("169.254.1.1")
	podGateway6 = netip.MustParseAddr("fe80::1")
)

// linkDeadline bounds the wait for a carrier: the kernel reports it from a worker, which a busy machine delays.
var linkDeadline = require.Within(10 * time.Second)

func (t *Topology) build() error {
	for _, lan := range t.LANs {
		if err := t.addLAN(lan); err != nil {
			return fmt.Errorf("LAN %s: %w", lan.Name, err)
		}
	}
	for _, host := range t.Hosts {
		if err := t.addHost(host); err != nil {
			return fmt.Errorf("host %s: %w", host.Name, err)
		}
	}
	for _, wire := range t.Wires {
		if err := t.addWire(wire); err != nil {
			return fmt.Errorf("wire %s %s to %s %s: %w", wire.A.Host, wire.A.Device, wire.B.Host, wire.B.Device, err)
		}
	}
	for _, tunnel := range t.Tunnels {
		if err := t.addTunnel(tunnel); err != nil {
			return err
		}
	}
	for _, pod := range t.Pods {
		if err := t.addPod(pod); err != nil {
			return fmt.Errorf("pod %s: %w", pod.Name, err)
		}
	}
	for _, host := range t.Hosts {
		if err := t.addRoutes(host); err != nil {
			return err
		}
	}
	return t.waitForLinks()
}

// addMember makes a namespace and sets its sysctls before it has devices, which take theirs from "default".
func (t *Topology) addMember(name string, lan bool, sysctls map[string]string) (*netns.NS, error) {
	ns, err := netns.Create(name)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	t.members = append(t.members, Member{Name: name, LAN: lan, NS: ns})
	t.mu.Unlock()
	for key, value := range sysctls {
		if err := ns.Sysctl(key, value); err != nil {
			return nil, err
		}
	}
	return ns, nil
}

func (t *Topology) addLAN(lan LAN) error {
	ns, err := t.addMember(lan.Name, true, map[string]string{
		"net.ipv6.conf.all.disable_ipv6":     "1", // the segment itself says nothing
		"net.ipv6.conf.default.disable_ipv6": "1",
	})
	if err != nil {
		return err
	}
	snooping := false // an unqueried snooping bridge would time out IPv6 neighbour discovery
	bridge := &netlink.Bridge{LinkAttrs: linkAttrs(bridgeName, lan.MTU), MulticastSnooping: &snooping}
	if err := ns.Netlink().LinkAdd(bridge); err != nil {
		return fmt.Errorf("add bridge: %w", err)
	}
	return setUp(ns, bridgeName)
}

func (t *Topology) addHost(host Host) error {
	if _, err := t.addMember(host.Name, false, roleSysctls(host.Role)); err != nil {
		return err
	}
	for _, port := range host.Ports {
		if err := t.addPort(host.Name, port); err != nil {
			return fmt.Errorf("device %s: %w", port.Device, err)
		}
	}
	return nil
}

// roleSysctls states what would otherwise be inherited from the machine's own namespace
// (net.core.devconf_inherit_init_net).
func roleSysctls(role Role) map[string]string {
	forwarding, filter := "0", "0"
	if role == Node || role == Router {
		forwarding = "1"
	}
	if role == Node {
		filter = "2" // loose, RFC 3704
	}
	return map[string]string{
		"net.ipv4.ip_forward":                  forwarding,
		"net.ipv6.conf.all.forwarding":         forwarding,
		"net.ipv6.conf.default.forwarding":     forwarding,
		"net.ipv4.conf.all.rp_filter":          filter,
		"net.ipv4.conf.default.rp_filter":      filter,
		"net.ipv4.conf.all.send_redirects":     "0",
		"net.ipv4.conf.default.send_redirects": "0",
	}
}

func (t *Topology) addPort(host string, port Port) error {
	if port.VLAN != 0 {
		return t.addVLAN(host, port)
	}
	lan, err := t.lan(port.LAN)
	if err != nil {
		return err
	}
	segment, ns := t.find(port.LAN, true), t.find(host, false)
	nl := segment.Netlink()
	cable := &netlink.Veth{
		LinkAttrs:     linkAttrs(nextPort(segment), lan.MTU),
		PeerName:      port.Device,
		PeerNamespace: netlink.NsFd(ns.FD()),
		PeerMTU:       uint32(cmp.Or(port.MTU, lan.MTU, DefaultMTU)),
	}
	if err := nl.LinkAdd(cable); err != nil {
		return fmt.Errorf("add veth: %w", err)
	}
	bridge, err := nl.LinkByName(bridgeName)
	if err != nil {
		return fmt.Errorf("find bridge: %w", err)
	}
	if err := nl.LinkSetMaster(cable, bridge); err != nil {
		return fmt.Errorf("plug into %s: %w", port.LAN, err)
	}
	// ip link shows this; as a device's name it could be too long.
	if err := nl.LinkSetAlias(cable, portAlias(host, port.Device)); err != nil {
		return fmt.Errorf("label the port: %w", err)
	}
	if err := setUp(segment, cable.Name); err != nil {
		return err
	}
	return addAddrs(ns, port.Device, port.Addrs)
}

// nextPort is the first name that no port of a LAN has.
func nextPort(segment *netns.NS) string {
	for number := 1; ; number++ {
		name := fmt.Sprintf("port%d", number)
		if _, err := segment.Netlink().LinkByName(name); err != nil {
			return name
		}
	}
}

func (t *Topology) lan(name string) (LAN, error) {
	for _, lan := range t.LANs {
		if lan.Name == name {
			return lan, nil
		}
	}
	return LAN{}, fmt.Errorf("plan %q has no LAN %q", t.Title, name)
}

func (t *Topology) addWire(wire Wire) error {
	a, b := t.find(wire.A.Host, false), t.find(wire.B.Host, false)
	if wire.L3 {
		shuttle, err := newShuttle(a, wire.A.Device, b, wire.B.Device, cmp.Or(wire.MTU, DefaultMTU))
		if err != nil {
			return err
		}
		t.shuttle = append(t.shuttle, shuttle)
	} else if err := addVeth(a, wire.A.Device, b, wire.B.Device, wire.MTU); err != nil {
		return err
	}
	if err := addAddrs(a, wire.A.Device, wire.A.Addrs); err != nil {
		return err
	}
	return addAddrs(b, wire.B.Device, wire.B.Addrs)
}

func (t *Topology) addPod(pod Pod) error {
	ns, err := t.addMember(pod.Name, false, roleSysctls(Client))
	if err != nil {
		return err
	}
	node := t.find(pod.Node, false)
	if err := addVeth(node, pod.Name, ns, podDevice, pod.MTU); err != nil {
		return err
	}
	if err := addAddrs(node, pod.Name, []netip.Prefix{netip.PrefixFrom(podGateway6, 64)}); err != nil {
		return err
	}
	prefixes := make([]netip.Prefix, 0, len(pod.Addrs))
	for _, addr := range pod.Addrs {
		prefixes = append(prefixes, netip.PrefixFrom(addr, addr.BitLen()))
	}
	if err := addAddrs(ns, podDevice, prefixes); err != nil {
		return err
	}
	for _, prefix := range prefixes {
		if err := replaceRoute(node, Route{To: prefix, Device: pod.Name}); err != nil {
			return err
		}
	}
	return addPodDefaults(node, ns, pod)
}

// addPodDefaults gives the pod its default routes through the node.
func addPodDefaults(node, ns *netns.NS, pod Pod) error {
	nodeSide, err := node.Netlink().LinkByName(pod.Name)
	if err != nil {
		return fmt.Errorf("find device %s of node %s: %w", pod.Name, pod.Node, err)
	}
	podSide, err := ns.Netlink().LinkByName(podDevice)
	if err != nil {
		return fmt.Errorf("find device %s: %w", podDevice, err)
	}
	err = ns.Netlink().NeighSet(&netlink.Neigh{
		LinkIndex: podSide.Attrs().Index, State: netlink.NUD_PERMANENT, IP: podGateway4.AsSlice(),
		HardwareAddr: nodeSide.Attrs().HardwareAddr,
	})
	if err != nil {
		return fmt.Errorf("set neighbour %s: %w", podGateway4, err)
	}
	routes := []Route{{To: netip.PrefixFrom(podGateway4, 32), Device: podDevice}}
	for _, gateway := range []netip.Addr{podGateway4, podGateway6} {
		route := DefaultVia(gateway)
		route.Device = podDevice
		routes = append(routes, route)
	}
	for _, route := range routes {
		if err := replaceRoute(ns, route); err != nil {
			return err
		}
	}
	return nil
}

func addVeth(a *netns.NS, deviceA string, b *netns.NS, deviceB string, mtu int) error {
	err := a.Netlink().LinkAdd(&netlink.Veth{
		LinkAttrs:     linkAttrs(deviceA, mtu),
		PeerName:      deviceB,
		PeerNamespace: netlink.NsFd(b.FD()),
		PeerMTU:       uint32(cmp.Or(mtu, DefaultMTU)),
	})
	if err != nil {
		return fmt.Errorf("add veth %s to %s: %w", deviceA, deviceB, err)
	}
	return nil
}

func linkAttrs(name string, mtu int) netlink.LinkAttrs {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = name, cmp.Or(mtu, DefaultMTU)
	return attrs
}

func setUp(ns *netns.NS, device string) error {
	link, err := ns.Netlink().LinkByName(device)
	if err != nil {
		return fmt.Errorf("find device %s: %w", device, err)
	}
	if err := ns.Netlink().LinkSetUp(link); err != nil {
		return fmt.Errorf("set %s up: %w", device, err)
	}
	return nil
}

// addAddrs sets the device up and gives it addresses that work at once (no duplicate address detection).
func addAddrs(ns *netns.NS, device string, prefixes []netip.Prefix) error {
	if err := setUp(ns, device); err != nil {
		return err
	}
	link, err := ns.Netlink().LinkByName(device)
	if err != nil {
		return fmt.Errorf("find device %s: %w", device, err)
	}
	for _, prefix := range prefixes {
		address := &netlink.Addr{IPNet: ipNet(prefix)}
		if prefix.Addr().Is6() {
			address.Flags = unix.IFA_F_NODAD
		}
		if err := ns.Netlink().AddrReplace(link, address); err != nil {
			return fmt.Errorf("add address %s to %s: %w", prefix, device, err)
		}
	}
	return nil
}

func ipNet(prefix netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: prefix.Addr().AsSlice(), Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen())}
}

// waitForLinks waits until the kernel has noticed every carrier: until then a device drops what it is given.
func (t *Topology) waitForLinks() error {
	return awaitCarriers(func() error {
		for _, member := range t.Members() {
			if err := carriers(member.NS, ""); err != nil {
				return err
			}
		}
		return nil
	})
}

func awaitCarriers(look func() error) error {
	_, err := backoff.Retry(context.Background(), func() (struct{}, error) { return struct{}{}, look() },
		backoff.WithBackOff(backoff.NewConstantBackOff(2*time.Millisecond)), backoff.WithMaxElapsedTime(linkDeadline))
	return err
}

// carriers fails if a device of a namespace has no carrier, or that of a name alone. One that is down is nobody's: some
// modules put a device into every namespace (tunl0, of ipip).
func carriers(ns *netns.NS, device string) error {
	links, err := ns.Netlink().LinkList()
	if err != nil {
		return fmt.Errorf("list devices of %s: %w", ns.Name(), err)
	}
	for _, link := range links {
		name, state := link.Attrs().Name, link.Attrs().RawFlags&(unix.IFF_UP|unix.IFF_RUNNING)
		if (device == "" || device == name) && state == unix.IFF_UP {
			return fmt.Errorf("device %s of %s has no carrier", name, ns.Name())
		}
	}
	return nil
}
