// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/netns"
)

// counterFiles are the kernel's own counters of a namespace, which tell where it dropped a packet.
var counterFiles = []string{"snmp", "snmp6", "netstat"}

// dumpNamespace writes the state of a namespace in the words of ip(8). What cannot be read says so in its place.
func dumpNamespace(w io.Writer, ns *netns.NS) {
	fmt.Fprintf(w, "namespace %s\n", ns.Name())
	names := dumpLinks(w, ns.Netlink())
	dumpRoutes(w, ns.Netlink(), names)
	dumpNeighbours(w, ns.Netlink(), names)
	for _, file := range counterFiles {
		section(w, "/proc/net/"+file)
		err := ns.Do(func() error {
			content, err := os.ReadFile("/proc/thread-self/net/" + file)
			if err == nil {
				_, err = w.Write(content)
			}
			return err
		})
		complain(w, err)
	}
}

// linkNames finds the name of an ifindex.
type linkNames map[int]string

func (n linkNames) of(index int) string {
	if name, ok := n[index]; ok {
		return name
	}
	return "if" + strconv.Itoa(index)
}

func section(w io.Writer, title string) { fmt.Fprintf(w, "\n# %s\n", title) }

func complain(w io.Writer, err error) {
	if err != nil {
		fmt.Fprintf(w, "INCOMPLETE: %v\n", err)
	}
}

func dumpLinks(w io.Writer, nl *netlink.Handle) linkNames {
	names := linkNames{}
	section(w, "devices")
	links, err := nl.LinkList()
	complain(w, err)
	for _, link := range links {
		a := link.Attrs()
		names[a.Index] = a.Name
		fmt.Fprintf(w, "%d: %s %s %s mtu %d %s state %s address %s", a.Index, a.Name, link.Type(), a.EncapType, a.MTU,
			a.Flags, a.OperState, a.HardwareAddr)
		if a.Alias != "" {
			fmt.Fprintf(w, " alias %q", a.Alias)
		}
		fmt.Fprintln(w)
		if s := a.Statistics; s != nil {
			fmt.Fprintf(w, "    rx %d packets %d bytes %d errors %d dropped   tx %d packets %d bytes %d errors %d dropped\n",
				s.RxPackets, s.RxBytes, s.RxErrors, s.RxDropped, s.TxPackets, s.TxBytes, s.TxErrors, s.TxDropped)
		}
	}
	section(w, "addresses")
	addrs, err := nl.AddrList(nil, unix.AF_UNSPEC)
	complain(w, err)
	for _, addr := range addrs {
		fmt.Fprintf(w, "%s dev %s scope %s flags %#x\n", addr.IPNet, names.of(addr.LinkIndex), netlink.Scope(addr.Scope), addr.Flags)
	}
	return names
}

func dumpRoutes(w io.Writer, nl *netlink.Handle, names linkNames) {
	for _, family := range []struct {
		name   string
		number int
	}{{"IPv4", unix.AF_INET}, {"IPv6", unix.AF_INET6}} {
		section(w, family.name+" rules")
		rules, err := nl.RuleList(family.number)
		complain(w, err)
		for _, rule := range rules {
			fmt.Fprintln(w, rule.String())
		}
		section(w, family.name+" routes of all tables")
		routes, err := nl.RouteListFiltered(family.number, &netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
		complain(w, err)
		for _, route := range routes {
			fmt.Fprintf(w, "table %d: %s", route.Table, route.Dst)
			if route.Gw != nil {
				fmt.Fprintf(w, " via %s", route.Gw)
			}
			if route.Src != nil {
				fmt.Fprintf(w, " src %s", route.Src)
			}
			if route.MTU != 0 {
				fmt.Fprintf(w, " mtu %d", route.MTU)
			}
			fmt.Fprintf(w, " dev %s scope %s type %d proto %s metric %d\n", names.of(route.LinkIndex), route.Scope,
				route.Type, route.Protocol, route.Priority)
		}
	}
}

func dumpNeighbours(w io.Writer, nl *netlink.Handle, names linkNames) {
	section(w, "neighbours")
	neighbours, err := nl.NeighList(0, 0)
	complain(w, err)
	for _, n := range neighbours {
		fmt.Fprintf(w, "%s dev %s lladdr %s state %#x flags %#x\n", n.IP, names.of(n.LinkIndex), n.HardwareAddr, n.State, n.Flags)
	}
}
