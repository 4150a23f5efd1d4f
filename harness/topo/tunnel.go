// SPDX-License-Identifier: Apache-2.0

package topo

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/wgctrl"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"github.com/beep-lb/beep/harness/netns"
	"github.com/beep-lb/beep/harness/require"
)

// Tunnel joins two hosts by a pair of the kernel's own tunnel devices, which travel over the ports of the plan. Not every
// kernel has them: NeedDevice tells. A host's tunnels come before its ports: their addresses are those by which other
// nodes know it.
type Tunnel struct {
	Kind  TunnelKind
	A, B  End
	Outer Families // V4 or V6: it travels between the first such addresses of the hosts' ports
	MTU   int      // bytes; 0 is what the kernel makes of the kind
	VNI   uint32   // of Geneve, 24 bits
}

// TunnelKind is a kind of device, as ip-link(8) names it.
type TunnelKind string

// The kinds. Only Geneve has a link layer; IPIP carries IPv4 over IPv4 and nothing else. Geneve is on its usual port, 6081.
const (
	WireGuard TunnelKind = "wireguard"
	IPIP      TunnelKind = "ipip"
	Geneve    TunnelKind = "geneve"
)

// VLAN is the kind of device that Port.VLAN asks for.
const VLAN = "vlan"

// NeedDevice needs the kernel to know a kind of device, a TunnelKind or VLAN; it makes one for a moment. A kernel asks
// modprobe for what it does not have yet.
func NeedDevice(tb require.TB, kind string) {
	tb.Helper()
	require.Root(tb)
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "trial"
	// Without what it needs else, a device of a kind that is known is refused for another reason.
	err := netns.New(tb, "trial").Netlink().LinkAdd(&netlink.GenericLink{LinkAttrs: attrs, LinkType: kind})
	if !errors.Is(err, unix.EOPNOTSUPP) {
		err = nil
	}
	require.That(tb, "device "+kind, err)
}

// wireGuardPort is the UDP port of both ends, in each host's namespace.
const wireGuardPort = 51820

// genevePort is the port that IANA has assigned to Geneve (RFC 8926, section 3.3).
const genevePort = 6081

// AddTunnel makes a tunnel that is in no plan, while the topology stands. It lives as long as its hosts.
func (t *Topology) AddTunnel(tunnel Tunnel) error {
	if err := t.addTunnel(tunnel); err != nil {
		return err
	}
	return awaitCarriers(func() error {
		return errors.Join(carriers(t.NS(tunnel.A.Host), tunnel.A.Device), carriers(t.NS(tunnel.B.Host), tunnel.B.Device))
	})
}

func (t *Topology) addTunnel(tunnel Tunnel) error {
	for _, ends := range [][2]End{{tunnel.A, tunnel.B}, {tunnel.B, tunnel.A}} {
		if err := t.addTunnelEnd(tunnel, ends[0], ends[1]); err != nil {
			return fmt.Errorf("%s device %s of %s: %w", tunnel.Kind, ends[0].Device, ends[0].Host, err)
		}
	}
	return nil
}

func (t *Topology) addTunnelEnd(tunnel Tunnel, near, far End) error {
	ns := t.NS(near.Host)
	local, remote := t.outer(near.Host, tunnel.Outer), t.outer(far.Host, tunnel.Outer)
	if !local.IsValid() || !remote.IsValid() {
		return fmt.Errorf("%s and %s have no port with such an address to travel between", near.Host, far.Host)
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = near.Device, tunnel.MTU
	var link netlink.Link
	switch tunnel.Kind {
	case WireGuard:
		link = &netlink.Wireguard{LinkAttrs: attrs}
	case IPIP:
		link = &netlink.Iptun{LinkAttrs: attrs, Local: local.AsSlice(), Remote: remote.AsSlice(), Ttl: 64, PMtuDisc: 1}
	case Geneve:
		link = &netlink.Geneve{LinkAttrs: attrs, ID: tunnel.VNI, Remote: remote.AsSlice(), Dport: genevePort, Ttl: 64}
	default:
		return fmt.Errorf("an unknown kind")
	}
	if err := ns.Netlink().LinkAdd(link); err != nil {
		return fmt.Errorf("add it (does the kernel have the module?): %w", err)
	}
	if tunnel.Kind == WireGuard {
		if err := t.join(ns, near, far, netip.AddrPortFrom(remote, wireGuardPort)); err != nil {
			return err
		}
	}
	return addAddrs(ns, near.Device, near.Addrs)
}

// outer is the address between which a host's tunnels of a family travel.
func (p *Plan) outer(host string, family Families) netip.Addr {
	found := p.Host(host)
	if found == nil {
		return netip.Addr{}
	}
	for _, port := range found.Ports {
		for _, prefix := range port.Addrs {
			if family.Has(prefix.Addr()) {
				return prefix.Addr()
			}
		}
	}
	return netip.Addr{}
}

// join has a WireGuard device know its only peer, whose packets may come from that one's own addresses.
func (t *Topology) join(ns *netns.NS, near, far End, endpoint netip.AddrPort) error {
	private, err := t.key(near)
	if err != nil {
		return err
	}
	peer, err := t.key(far)
	if err != nil {
		return err
	}
	allowed := make([]net.IPNet, 0, len(far.Addrs))
	for _, prefix := range hostAddrs(append([]netip.Prefix(nil), far.Addrs...)) {
		allowed = append(allowed, *ipNet(prefix))
	}
	port := wireGuardPort
	config := wgtypes.Config{PrivateKey: &private, ListenPort: &port, Peers: []wgtypes.PeerConfig{{
		PublicKey: peer.PublicKey(), Endpoint: net.UDPAddrFromAddrPort(endpoint), AllowedIPs: allowed,
	}}}
	return ns.Do(func() error {
		control, err := wgctrl.New()
		if err != nil {
			return fmt.Errorf("open generic netlink: %w", err)
		}
		return errors.Join(control.ConfigureDevice(near.Device, config), control.Close())
	})
}

// key is the private key of an end of a tunnel: a device that is made anew has the one that its peer knows.
func (t *Topology) key(end End) (wgtypes.Key, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	name := end.Host + " " + end.Device
	if key, made := t.keys[name]; made {
		return key, nil
	}
	key, err := wgtypes.GeneratePrivateKey()
	if err != nil {
		return key, fmt.Errorf("make a key: %w", err)
	}
	if t.keys == nil {
		t.keys = make(map[string]wgtypes.Key)
	}
	t.keys[name] = key
	return key, nil
}

// addVLAN makes a port's cable, which has no address, and on it the device that puts the port's tag on what it sends.
func (t *Topology) addVLAN(host string, port Port) error {
	cable := port
	cable.Device, cable.VLAN, cable.Addrs = trunkOf(port), 0, nil
	if err := t.addPort(host, cable); err != nil {
		return err
	}
	ns := t.find(host, false)
	trunk, err := ns.Netlink().LinkByName(cable.Device)
	if err != nil {
		return fmt.Errorf("find %s: %w", cable.Device, err)
	}
	attrs := linkAttrs(port.Device, cmp.Or(port.MTU, trunk.Attrs().MTU))
	attrs.ParentIndex = trunk.Attrs().Index
	if err := ns.Netlink().LinkAdd(&netlink.Vlan{LinkAttrs: attrs, VlanId: port.VLAN}); err != nil {
		return fmt.Errorf("add VLAN %d (does the kernel have the module 8021q?): %w", port.VLAN, err)
	}
	return addAddrs(ns, port.Device, port.Addrs)
}

// trunkOf is the name of a VLAN port's cable.
func trunkOf(port Port) string { return fmt.Sprintf("trunk%d", port.VLAN) }
