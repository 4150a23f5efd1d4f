// SPDX-License-Identifier: Apache-2.0

package topo

import (
	"cmp"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
)

// String is the picture that Draw writes.
func (p *Plan) String() string {
	var picture strings.Builder
	p.Draw(&picture)
	return picture.String()
}

// Draw writes the plan as a text picture of names, devices, addresses and routes: one block a LAN with its
// members hanging on it, then the wires and tunnels. A host's pods and routes stand where the host appears first. A write
// error is not reported.
func (p *Plan) Draw(w io.Writer) {
	fmt.Fprintf(w, "%s\n", p.Title)
	drawn := map[string]bool{}
	for _, lan := range p.LANs {
		fmt.Fprintf(w, "\n  ═╦═ %s ═══ mtu %d ═══\n", lan.Name, cmp.Or(lan.MTU, DefaultMTU))
		for _, host := range p.Hosts {
			for _, port := range host.Ports {
				if port.LAN != lan.Name {
					continue
				}
				note := ""
				if port.MTU != 0 {
					note = fmt.Sprintf("  mtu %d", port.MTU)
				}
				if port.VLAN != 0 {
					note += fmt.Sprintf("  vlan %d", port.VLAN)
				}
				fmt.Fprintf(w, "   ║\n   ╠══ %s\n", label(port.Device, host.Name, port.Addrs)+note)
				p.drawInside(w, "   ║       ", host, drawn)
			}
		}
	}
	for _, wire := range p.Wires {
		kind := "veth"
		if wire.L3 {
			kind = "tun, no link-layer header"
		}
		fmt.Fprintf(w, "\n  ═╦═ wire ═══ mtu %d ═══ %s\n", cmp.Or(wire.MTU, DefaultMTU), kind)
		p.drawEnds(w, drawn, wire.A, wire.B)
	}
	for _, tunnel := range p.Tunnels {
		outer := "IPv4"
		if tunnel.Outer == V6 {
			outer = "IPv6"
		}
		mtu := ""
		if tunnel.MTU != 0 {
			mtu = fmt.Sprintf(" ═══ mtu %d", tunnel.MTU)
		}
		fmt.Fprintf(w, "\n  ═╦═ %s over %s%s ═══\n", tunnel.Kind, outer, mtu)
		p.drawEnds(w, drawn, tunnel.A, tunnel.B)
	}
}

func (p *Plan) drawEnds(w io.Writer, drawn map[string]bool, ends ...End) {
	for _, end := range ends {
		fmt.Fprintf(w, "   ╠══ %s\n", label(end.Device, end.Host, end.Addrs))
		if host := p.Host(end.Host); host != nil {
			p.drawInside(w, "   ║       ", *host, drawn)
		}
	}
}

// drawInside draws what belongs to the host and not to its devices, once.
func (p *Plan) drawInside(w io.Writer, margin string, host Host, drawn map[string]bool) {
	if drawn[host.Name] {
		return
	}
	drawn[host.Name] = true
	for _, pod := range p.Pods {
		if pod.Node != host.Name {
			continue
		}
		prefixes := make([]netip.Prefix, 0, len(pod.Addrs))
		for _, addr := range pod.Addrs {
			prefixes = append(prefixes, netip.PrefixFrom(addr, addr.BitLen()))
		}
		note := ""
		if pod.MTU != 0 {
			note = fmt.Sprintf("  mtu %d", pod.MTU)
		}
		fmt.Fprintf(w, "%s├── %s%s\n", margin, label("eth0", pod.Name, prefixes), note)
	}
	for _, route := range host.Routes {
		fmt.Fprintf(w, "%s↳ %s\n", margin, route)
	}
}

// label is a device and whose it is, then its addresses.
func label(device, owner string, addrs []netip.Prefix) string {
	words := []string{fmt.Sprintf("%-5s %-8s", device, owner)}
	sorted := slices.SortedStableFunc(slices.Values(addrs), func(a, b netip.Prefix) int {
		return cmp.Compare(a.Addr().BitLen(), b.Addr().BitLen())
	})
	for _, addr := range sorted {
		words = append(words, addr.String())
	}
	return strings.TrimRight(strings.Join(words, "  "), " ")
}
