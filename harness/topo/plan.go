// SPDX-License-Identifier: Apache-2.0

// Package topo declares networks of machines as plain values (Plan), draws them, and builds them out of network
// namespaces (Topology). Invariant: a Plan says everything that its namespaces hold; no node has a route to
// another node's pods unless the Plan writes one, since beep must not lean on the CNI for that.
//
// A rig is put together like this (tb is *testing.T or GinkgoT(); errors are checked by the spec):
//
//	require.Root(tb)
//	topology := topo.New(tb, topo.TwoNodes(topo.Options{Families: topo.Dual}))
//	evidence := artifacts.New(tb, topology) // after topo.New, so that it looks before the topology goes
//	err := evidence.CaptureAll()
//	err = topology.Offloads(false)
//	at := netip.AddrPortFrom(topology.Addr("pod-b1", topo.V4), 8080)
//	_, err = traffic.ServeHTTP(topology.NS("pod-b1"), "pod-b1", at)
//	beep, err := topology.NS("node-a").Start(exec.Command("beep", "run"))
//	front := netip.AddrPortFrom(topology.Addr("node-a", topo.V4), 80)
//	answer, err := traffic.Get(ctx, topology.NS("client"), front)
//	// answer.Server is pod-b1, answer.Client.Addr() is topology.Addr("client", topo.V4)
package topo

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
)

// Families is a set of IP families.
type Families uint8

// The families that a plan can speak.
const (
	V4 Families = 1 << iota
	V6
	Dual = V4 | V6
)

// Has reports whether the set holds the address's family.
func (f Families) Has(addr netip.Addr) bool {
	return addr.Is4() && f&V4 != 0 || addr.Is6() && f&V6 != 0
}

// Role says what a host is there for, and so how its kernel is set up.
type Role string

// The roles. A client forwards nothing; a router forwards and filters no source; a node forwards and has a loose
// rp_filter, as beep's node-prep leaves it.
const (
	Client Role = "client"
	Router Role = "router"
	Node   Role = "node"
)

// DefaultMTU is the MTU in bytes of a link that names none.
const DefaultMTU = 1500

// Plan is a network that can be drawn, edited and built. The order of its slices is the order of the drawing.
type Plan struct {
	Title   string
	LANs    []LAN
	Hosts   []Host
	Wires   []Wire
	Tunnels []Tunnel
	Pods    []Pod
}

// LAN is an Ethernet segment: a bridge in a namespace of its own, with one veth a member.
type LAN struct {
	Name string
	MTU  int // bytes; 0 is DefaultMTU
}

// Host is a machine: one namespace with its devices and static routes.
type Host struct {
	Name   string
	Role   Role
	Ports  []Port
	Routes []Route
}

// Port is a host's network card on a LAN.
type Port struct {
	Device string // at most 15 bytes, as every device name
	LAN    string
	Addrs  []netip.Prefix
	MTU    int // bytes; 0 is the LAN's
	VLAN   int // the tag (1 to 4094) that the device puts on the cable, which is a device of its own, trunkN; 0 is none
}

// Wire joins two hosts directly: by a veth, or, where L3 is set, by a pair of tun devices that have no link-layer
// header (ARPHRD_NONE, as WireGuard's) and between which this process carries the packets.
type Wire struct {
	A, B End
	MTU  int // bytes; 0 is DefaultMTU
	L3   bool
}

// End is one side of a wire.
type End struct {
	Host   string
	Device string
	Addrs  []netip.Prefix
}

// Pod is a namespace behind a node, as a routing CNI makes it: a veth whose node side is named like the pod, host
// routes to the pod's addresses in the node, and the pod's default routes through the node.
type Pod struct {
	Name  string
	Node  string
	Addrs []netip.Addr
	MTU   int // bytes; 0 is DefaultMTU
}

// Route is a unicast route. Without Via it is on-link and needs a Device; with Via the kernel finds the device.
type Route struct {
	To     netip.Prefix
	Via    netip.Addr
	Device string
	Table  int // 0 is the main table
}

// DefaultVia is the default route of via's family.
func DefaultVia(via netip.Addr) Route {
	if via.Is4() {
		return Route{To: netip.PrefixFrom(netip.IPv4Unspecified(), 0), Via: via}
	}
	return Route{To: netip.PrefixFrom(netip.IPv6Unspecified(), 0), Via: via}
}

// String prints the route in ip-route(8)'s words.
func (r Route) String() string {
	text := r.To.String()
	if r.To.Bits() == 0 {
		text = "default"
		if r.To.Addr().Is6() {
			text = "default (v6)"
		}
	}
	if r.Via.IsValid() {
		text += " via " + r.Via.String()
	}
	if r.Device != "" {
		text += " dev " + r.Device
	}
	if r.Table != 0 {
		text += fmt.Sprintf(" table %d", r.Table)
	}
	return text
}

// Host points at a host of the plan, so that a spec can edit it before building; nil if there is none.
func (p *Plan) Host(name string) *Host {
	if i := slices.IndexFunc(p.Hosts, func(h Host) bool { return h.Name == name }); i >= 0 {
		return &p.Hosts[i]
	}
	return nil
}

// Pod points at a pod of the plan; nil if there is none.
func (p *Plan) Pod(name string) *Pod {
	if i := slices.IndexFunc(p.Pods, func(pod Pod) bool { return pod.Name == name }); i >= 0 {
		return &p.Pods[i]
	}
	return nil
}

// Addrs lists the addresses of a host or pod in the order of the plan: tunnels first, then ports, then wires.
func (p *Plan) Addrs(name string) []netip.Addr {
	if pod := p.Pod(name); pod != nil {
		return slices.Clone(pod.Addrs)
	}
	var addrs []netip.Addr
	for _, device := range p.Devices() {
		if device.Host == name {
			for _, prefix := range device.Addrs {
				addrs = append(addrs, prefix.Addr())
			}
		}
	}
	return addrs
}

// Addr is the first address of that family of a host or pod; the zero Addr if there is none.
func (p *Plan) Addr(name string, family Families) netip.Addr {
	for _, addr := range p.Addrs(name) {
		if family.Has(addr) {
			return addr
		}
	}
	return netip.Addr{}
}

// Devices lists the network devices of all hosts: both ends of tunnels, what is plugged into a LAN, both ends of wires.
func (p *Plan) Devices() []End {
	var devices []End
	for _, tunnel := range p.Tunnels {
		devices = append(devices, tunnel.A, tunnel.B)
	}
	for _, host := range p.Hosts {
		for _, port := range host.Ports {
			devices = append(devices, End{Host: host.Name, Device: port.Device, Addrs: port.Addrs})
		}
	}
	for _, wire := range p.Wires {
		devices = append(devices, wire.A, wire.B)
	}
	return devices
}

// Validate names every mistake in the plan at once.
func (p *Plan) Validate() error {
	var problems []error
	complain := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("plan %q: "+format, append([]any{p.Title}, args...)...))
	}
	seen := map[string]bool{}
	once := func(kind, name string) {
		if name == "" || seen[kind+name] {
			complain("%s %q: want a name that no other has", kind, name)
		}
		seen[kind+name] = true
	}
	for _, lan := range p.LANs {
		once("LAN", lan.Name)
		if !slices.ContainsFunc(p.Hosts, func(h Host) bool {
			return slices.ContainsFunc(h.Ports, func(port Port) bool { return port.LAN == lan.Name })
		}) {
			complain("LAN %s: no host is plugged into it", lan.Name)
		}
	}
	for _, host := range p.Hosts {
		once("host", host.Name)
		for _, port := range host.Ports {
			if !seen["LAN"+port.LAN] {
				complain("host %s: device %s is plugged into unknown LAN %q", host.Name, port.Device, port.LAN)
			}
		}
	}
	for _, device := range p.Devices() {
		if p.Host(device.Host) == nil {
			complain("device %s belongs to unknown host %q", device.Device, device.Host)
		}
		once("device", device.Host+" "+device.Device)
		if len(device.Device) >= unix.IFNAMSIZ || device.Device == "" {
			complain("host %s: device %q: want 1 to %d bytes", device.Host, device.Device, unix.IFNAMSIZ-1)
		}
	}
	for _, pod := range p.Pods {
		once("host", pod.Name)
		once("device", pod.Node+" "+pod.Name)
		if node := p.Host(pod.Node); node == nil || node.Role != Node {
			complain("pod %s: %q is no node", pod.Name, pod.Node)
		}
		if len(pod.Name) >= unix.IFNAMSIZ {
			complain("pod %s: its name names a device: want at most %d bytes", pod.Name, unix.IFNAMSIZ-1)
		}
	}
	return errors.Join(problems...)
}
