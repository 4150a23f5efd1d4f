// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"net/netip"

	"github.com/beep-lb/beep/src/compile"
	"github.com/beep-lb/beep/src/model"
)

// listing is which addresses the statuses of all Services list. It reads anew only the Services whose object is
// another one than before: a cluster lists as many addresses as it has Services times nodes.
type listing struct {
	// round numbers the snapshots, and read says in which one a Service was last.
	round uint64
	read  map[*model.Service]uint64
	// times says how often an address is listed, and addrs which are at all.
	times map[netip.Addr]int
	addrs map[netip.Addr]bool
}

func newListing() *listing {
	return &listing{read: map[*model.Service]uint64{}, times: map[netip.Addr]int{}, addrs: map[netip.Addr]bool{}}
}

// take takes in the Services as they are now, and returns the addresses in their statuses.
func (l *listing) take(services []*model.Service) map[netip.Addr]bool {
	l.round++
	for _, service := range services {
		if _, known := l.read[service]; !known {
			l.count(service, 1)
		}
		l.read[service] = l.round
	}
	if len(l.read) == len(services) {
		return l.addrs
	}
	for service, round := range l.read {
		if round != l.round {
			l.count(service, -1)
			delete(l.read, service)
		}
	}
	return l.addrs
}

func (l *listing) count(service *model.Service, by int) {
	for _, entry := range service.Ingress {
		addr, err := netip.ParseAddr(entry.IP)
		if err != nil {
			continue
		}
		addr = addr.Unmap()
		l.addrs[addr] = true
		if l.times[addr] += by; l.times[addr] == 0 {
			delete(l.times, addr)
			delete(l.addrs, addr)
		}
	}
}

// toRecall are the known addresses that a status lists, or will when it is written: one that no status lists is
// nobody's to mistake for somebody else's. They are sorted, as known is.
func (l *listing) toRecall(known []netip.Addr, statuses []compile.Status) []netip.Addr {
	coming := map[netip.Addr]bool{}
	for _, status := range statuses {
		if !status.Changed {
			continue
		}
		for _, entry := range status.Ingress {
			if addr, err := netip.ParseAddr(entry.IP); err == nil {
				coming[addr.Unmap()] = true
			}
		}
	}
	var recalled []netip.Addr
	for _, addr := range known {
		if l.addrs[addr] || coming[addr] {
			recalled = append(recalled, addr)
		}
	}
	return recalled
}
