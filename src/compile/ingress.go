// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/beep-lb/beep/src/model"
)

// vip is the IPMode that an entry without one has.
const vip = "VIP"

// addrOf is the address of an entry in any of its text forms; ok is false for a hostname and for what is no address.
func addrOf(entry model.Ingress) (addr netip.Addr, ok bool) {
	addr, err := netip.ParseAddr(entry.IP)
	return addr.Unmap(), err == nil && entry.Hostname == "" && addr.Zone() == ""
}

// merge makes the list that a Service should have of the one it has: entries that are wanted stay in their place,
// once; those of other node addresses go; those that are nobody's we know stay as they are, and are noted; what is new
// is appended.
func (p *publisher) merge(service *model.Service, want []netip.Addr, ports []model.IngressPort) []model.Ingress {
	missing := make(map[netip.Addr]bool, len(want))
	for _, addr := range want {
		missing[addr] = true
	}
	var merged []model.Ingress
	for _, listed := range service.Ingress {
		addr, isAddr := addrOf(listed)
		switch {
		case isAddr && missing[addr]:
			merged = append(merged, p.refresh(listed, ports))
			delete(missing, addr)
		case isAddr && p.known[addr]:
		default:
			merged = append(merged, listed)
			p.note(Reason{Code: ForeignStatus, Service: service.ObjectKey, Detail: cmp.Or(listed.IP, listed.Hostname)})
		}
	}
	for _, addr := range want {
		if missing[addr] {
			merged = append(merged, model.Ingress{IP: addr.String(), IPMode: p.mode(), Ports: ports})
			delete(missing, addr)
		}
	}
	return merged
}

func (p *publisher) mode() string { return cmp.Or(p.how.IPMode, vip) }

// refresh is an entry of ours as it should be; one that means the same is left as it is written.
func (p *publisher) refresh(listed model.Ingress, ports []model.IngressPort) model.Ingress {
	if cmp.Or(listed.IPMode, vip) != p.mode() {
		listed.IPMode = p.mode()
	}
	if !slices.Equal(listed.Ports, ports) {
		listed.Ports = ports
	}
	return listed
}

// ingressPorts are the ports of the Service's entries: none if all are served, else all of them, as the API asks, with
// an error on those that are not.
func (p *publisher) ingressPorts(service *model.Service) []model.IngressPort {
	verdicts := p.ports[service]
	if !slices.ContainsFunc(verdicts, func(v portVerdict) bool { return v.code != none }) {
		return nil
	}
	ports := make([]model.IngressPort, 0, len(verdicts))
	for _, verdict := range verdicts {
		port := model.IngressPort{Port: verdict.Port, Protocol: verdict.Proto.String()}
		if verdict.code != none {
			port.Error = verdict.code.String()
		}
		ports = append(ports, port)
	}
	return ports
}

// keepUnlisted is how many addresses are remembered before those go that no status lists. It is far more than the
// nodes whose address can change while a write of the old one is under way.
const keepUnlisted = 4096

// remember are the known addresses that the next Publication needs, sorted.
func (p *publisher) remember(before []netip.Addr) []netip.Addr {
	if len(p.known) > keepUnlisted {
		p.forget(before)
	}
	keep := make([]netip.Addr, 0, len(p.known))
	for addr := range p.known {
		keep = append(keep, addr)
	}
	slices.SortFunc(keep, netip.Addr.Compare)
	return keep
}

// forget drops addresses that no node has and no status lists.
func (p *publisher) forget(before []netip.Addr) {
	needed := map[netip.Addr]bool{}
	for _, node := range p.nodes {
		for _, addr := range slices.Concat(node.InternalIPs, node.ExternalIPs) {
			needed[addr] = true
		}
	}
	for _, status := range p.published.Statuses {
		for _, entry := range slices.Concat(status.Service.Ingress, status.Ingress) {
			if addr, ok := addrOf(entry); ok {
				needed[addr] = true
			}
		}
	}
	for _, addr := range before {
		if !needed[addr] {
			delete(p.known, addr)
		}
	}
}
