// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"net/netip"

	"github.com/beep-lb/beep/harness/netns"
	"github.com/beep-lb/beep/harness/topo"
)

// Variant is what brings packets from the client to the pod.
type Variant string

// The variants. Routed is no balancer at all: the client dials the pod's own address, and node-a is a router.
const (
	Routed   Variant = "routed"
	IPTables Variant = "iptables"
	NFTables Variant = "nftables"
	Beep     Variant = "beep"
	// Beside is beep on nodes that have kube-proxy too, as most clusters will: connections are tracked there.
	Beside Variant = "beep-nftables"
)

// Variants are all of them, in the order of tables.
var Variants = []Variant{Routed, IPTables, NFTables, Beep, Beside}

// keeps says whether pods see the client's own address.
func (v Variant) keeps() bool { return v != IPTables && v != NFTables }

// beep says whether beep runs on the nodes.
func (v Variant) beep() bool { return v == Beep || v == Beside }

// Path says where the pod is.
type Path string

// The paths: the pod is on the node that the client dials, or on the one behind it.
const (
	Local  Path = "local"
	Remote Path = "remote"
)

// Way is one way through a stand.
type Way struct {
	Path   Path
	Family topo.Families // V4 or V6
	// Services is how many of those of its path are dialled, in turn.
	Services int
}

// String is the way as names of benchmarks have it.
func (w Way) String() string {
	version := 4
	if w.Family == topo.V6 {
		version = 6
	}
	return fmt.Sprintf("path=%s/ip=%d", w.Path, version)
}

// pod is the pod at the end of the way, and where it serves.
func (w Way) pod() (name string, at netip.AddrPort) {
	name, addrs := podA, podsA
	if w.Path == Remote {
		name, addrs = podB, podsB
	}
	return name, netip.AddrPortFrom(pick(addrs, w.Family), podPort)
}

// pick is the address of a family.
func pick(addrs []netip.Addr, family topo.Families) netip.Addr {
	for _, addr := range addrs {
		if family.Has(addr) {
			return addr
		}
	}
	return netip.Addr{}
}

func addrsOf(prefixes []netip.Prefix) []netip.Addr {
	var addrs []netip.Addr
	for _, prefix := range prefixes {
		addrs = append(addrs, prefix.Addr())
	}
	return addrs
}

// route is a way as sockets need it.
type route struct {
	client   *netns.NS
	from     netip.Addr       // the client's
	dialled  []netip.AddrPort // one a Service
	pod      *netns.NS
	at       netip.AddrPort // where the pod serves
	apparent netip.Addr     // the source that the pod must see; the zero Addr is any address but the client's
}

// route is how a way goes through this stand.
func (s *Stand) route(w Way) route {
	name, at := w.pod()
	r := route{client: s.NS(client), from: pick(addrsOf(clientAddrs), w.Family), pod: s.NS(name), at: at}
	if s.Variant.keeps() {
		r.apparent = r.from
	}
	for service := range w.Services {
		front := at
		if s.Variant != Routed {
			front = netip.AddrPortFrom(pick(addrsOf(frontA), w.Family), dialledPort(w.Path, service))
		}
		r.dialled = append(r.dialled, front)
	}
	return r
}

// check says whether the pod saw the source that it must see.
func (r *route) check(source netip.Addr) error {
	switch {
	case r.apparent.IsValid() && source != r.apparent:
		return fmt.Errorf("the pod saw source %s, and must see %s", source, r.apparent)
	case !r.apparent.IsValid() && source == r.from:
		return fmt.Errorf("the pod saw the client's own address %s, which kube-proxy hides: nobody balanced this", source)
	}
	return nil
}
