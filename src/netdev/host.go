// SPDX-License-Identifier: Apache-2.0

// Package netdev is what the kernel says of this node's devices, addresses and routes, as plain values and as
// change events. Invariant: it only reads, but for one offload (CutUDP), every Host speaks of the one network namespace
// it was opened in, and nothing of the netlink library shows in its results.
package netdev

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// ErrNoLink says that no device has the name asked for.
var ErrNoLink = errors.New("no such interface")

// dumpTries bounds how often a dump is repeated that a change interrupted (NLM_F_DUMP_INTR).
const dumpTries = 10

// replyTimeout bounds the wait for the kernel's answer; it is long, since the answer waits for the RTNL lock.
const replyTimeout = 10 * time.Second

// Host reads the network namespace that its thread was in at Open.
type Host struct {
	handle   *netlink.Handle
	links    *nl.SocketHandle
	features *ethtool.Ethtool
}

// Open starts to read the calling thread's network namespace. A caller in a namespace of its own must have
// locked its goroutine to the thread.
func Open() (*Host, error) {
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open rtnetlink: %w", err)
	}
	if err := handle.SetSocketTimeout(replyTimeout); err != nil {
		handle.Close()
		return nil, fmt.Errorf("open rtnetlink: %w", err)
	}
	socket, err := nl.Subscribe(unix.NETLINK_ROUTE)
	if err != nil {
		handle.Close()
		return nil, fmt.Errorf("open rtnetlink: %w", err)
	}
	timeout := unix.NsecToTimeval(replyTimeout.Nanoseconds())
	socket.SetReceiveTimeout(&timeout) //nolint:errcheck // only stores the value
	h := &Host{handle: handle, links: &nl.SocketHandle{Socket: socket}}
	if h.features, err = ethtool.NewEthtool(); err != nil {
		h.Close()
		return nil, fmt.Errorf("open ethtool: %w", err)
	}
	return h, nil
}

// Close ends reading. Watches that were started end by their own context.
func (h *Host) Close() {
	h.handle.Close()
	h.links.Close()
	if h.features != nil {
		h.features.Close()
	}
}

// List returns every device of the namespace, by ifindex.
func (h *Host) List() ([]Link, error) {
	links, err := dump(h.dumpLinks)
	if err != nil {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	slices.SortFunc(links, func(a, b Link) int { return a.Index - b.Index })
	return links, nil
}

// dumpLinks asks by hand, because the library's LinkList leaves out the ARPHRD number.
func (h *Host) dumpLinks() ([]Link, error) { return dumpAs(h, decodeLink) }

// dumpAs lists every device as what decode reads in its message.
func dumpAs[T any](h *Host, decode func([]byte) (T, error)) ([]T, error) {
	request := nl.NewNetlinkRequest(unix.RTM_GETLINK, unix.NLM_F_DUMP)
	request.Sockets = map[int]*nl.SocketHandle{unix.NETLINK_ROUTE: h.links}
	request.AddData(nl.NewIfInfomsg(unix.AF_UNSPEC))
	messages, err := request.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWLINK)
	if err != nil {
		return nil, err
	}
	all := make([]T, 0, len(messages))
	for _, message := range messages {
		one, err := decode(message)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// ByName returns the device of that name, or ErrNoLink with the names that exist.
func (h *Host) ByName(name string) (Link, error) {
	links, err := h.List()
	if err != nil {
		return Link{}, err
	}
	var names []string
	for _, link := range links {
		if link.Name == name {
			return link, nil
		}
		names = append(names, link.Name)
	}
	return Link{}, fmt.Errorf("interface %q: %w: this node has %s", name, ErrNoLink, strings.Join(names, ", "))
}

// Address is one address of a device.
type Address struct {
	// Prefix is the address itself with the length of its network, unmapped.
	Prefix  netip.Prefix
	Ifindex int
}

// Addresses lists the addresses of every device, both families, by ifindex and then in the kernel's order,
// in which a primary address comes before its secondaries.
func (h *Host) Addresses() ([]Address, error) {
	list, err := dump(func() ([]netlink.Addr, error) { return h.handle.AddrList(nil, netlink.FAMILY_ALL) })
	if err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	var addresses []Address
	for _, a := range list {
		if addr, ok := netip.AddrFromSlice(a.IP); ok {
			ones, _ := a.Mask.Size()
			addresses = append(addresses, Address{Prefix: netip.PrefixFrom(addr.Unmap(), ones), Ifindex: a.LinkIndex})
		}
	}
	slices.SortStableFunc(addresses, func(a, b Address) int { return a.Ifindex - b.Ifindex })
	return addresses, nil
}

// AutoUplinks finds the uplinks of a node: first the devices that hold the node's addresses, in the order
// given, then those of the default routes of the main table, IPv4 before IPv6 and better metrics before
// worse. Loopback is never one, and no device comes twice. Finding none is an error.
func (h *Host) AutoUplinks(nodeAddresses []netip.Addr) ([]Link, error) {
	links, err := h.List()
	if err != nil {
		return nil, err
	}
	addresses, err := h.Addresses()
	if err != nil {
		return nil, err
	}
	var order []int
	for _, node := range nodeAddresses {
		for _, a := range addresses {
			if a.Prefix.Addr() == node.Unmap() {
				order = append(order, a.Ifindex)
			}
		}
	}
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		indexes, err := h.defaultRouteLinks(family)
		if err != nil {
			return nil, err
		}
		order = append(order, indexes...)
	}
	uplinks := pick(links, order)
	if len(uplinks) == 0 {
		return nil, fmt.Errorf("uplinks: no interface holds one of the node addresses %v, and there is no default route: "+
			"name the uplinks with --uplink-iface", nodeAddresses)
	}
	return uplinks, nil
}

// pick returns the links of those ifindexes in their order, each once and none of them loopback.
func pick(links []Link, order []int) []Link {
	var picked []Link
	for _, index := range order {
		at := slices.IndexFunc(links, func(l Link) bool { return l.Index == index })
		if at < 0 || links[at].Type == unix.ARPHRD_LOOPBACK || slices.Contains(picked, links[at]) {
			continue
		}
		picked = append(picked, links[at])
	}
	return picked
}

// defaultRouteLinks returns the ifindexes that the default routes of a family use, all next hops of each.
func (h *Host) defaultRouteLinks(family int) ([]int, error) {
	routes, err := dump(func() ([]netlink.Route, error) { return h.handle.RouteList(nil, family) })
	if err != nil {
		return nil, fmt.Errorf("list routes: %w", err)
	}
	slices.SortStableFunc(routes, func(a, b netlink.Route) int { return a.Priority - b.Priority })
	var indexes []int
	for _, route := range routes {
		// An unreachable or blackhole default route leads nowhere.
		if !isDefault(route.Dst) || route.Type != unix.RTN_UNICAST {
			continue
		}
		if route.LinkIndex != 0 {
			indexes = append(indexes, route.LinkIndex)
		}
		for _, hop := range route.MultiPath {
			indexes = append(indexes, hop.LinkIndex)
		}
	}
	return indexes, nil
}

// isDefault says whether a route's destination is everything; the library writes that as nil or as /0.
func isDefault(dst *net.IPNet) bool {
	if dst == nil {
		return true
	}
	ones, _ := dst.Mask.Size()
	return ones == 0 && dst.IP.IsUnspecified()
}

// dump repeats a dump until no change interrupted it.
func dump[T any](list func() ([]T, error)) ([]T, error) {
	var all []T
	var err error
	for range dumpTries {
		if all, err = list(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	return all, err
}
