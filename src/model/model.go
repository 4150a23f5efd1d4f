// SPDX-License-Identifier: Apache-2.0

// Package model holds the values that travel between beep's packages: what a node should forward and what
// its kernel maps hold. Invariant: every type is a plain value on netip types, imports nothing of ours, and
// an address is always in its unmapped form (an IPv4 address is never ::ffff:a.b.c.d).
package model

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// Proto is an IP protocol number that beep balances.
type Proto uint8

// The protocols of a front (IANA protocol numbers).
const (
	TCP Proto = 6
	UDP Proto = 17
)

// String is the name as Kubernetes writes it; an unknown protocol prints its number.
func (p Proto) String() string {
	switch p {
	case TCP:
		return "TCP"
	case UDP:
		return "UDP"
	case SCTP:
		return "SCTP"
	}
	return fmt.Sprintf("proto %d", uint8(p))
}

// ParseProto reads a protocol name in any case.
func ParseProto(s string) (Proto, error) {
	switch strings.ToLower(s) {
	case "tcp":
		return TCP, nil
	case "udp":
		return UDP, nil
	}
	return 0, fmt.Errorf("protocol %q: want tcp or udp", s)
}

// Socket is one (protocol, address, port): the name of a front, and of a pod's port that traffic may be
// delivered to.
type Socket struct {
	Addr  netip.Addr
	Port  uint16
	Proto Proto
}

// String prints TCP/192.0.2.1:80, the form that ParseSocket reads.
func (s Socket) String() string {
	return s.Proto.String() + "/" + netip.AddrPortFrom(s.Addr, s.Port).String()
}

// Compare orders by address, port, protocol: the key order in which fronts are applied and dumped.
func (s Socket) Compare(o Socket) int {
	return cmp.Or(s.Addr.Compare(o.Addr), cmp.Compare(s.Port, o.Port), cmp.Compare(s.Proto, o.Proto))
}

// ParseSocket reads tcp/192.0.2.1:80 or udp/[2001:db8::1]:53.
func ParseSocket(s string) (Socket, error) {
	name, rest, found := strings.Cut(s, "/")
	if !found {
		return Socket{}, fmt.Errorf("%q: want PROTOCOL/ADDRESS:PORT, as tcp/192.0.2.1:80", s)
	}
	proto, err := ParseProto(name)
	if err != nil {
		return Socket{}, fmt.Errorf("%q: %w", s, err)
	}
	ap, err := netip.ParseAddrPort(rest)
	if err != nil {
		return Socket{}, fmt.Errorf("%q: %w", s, err)
	}
	if ap.Port() == 0 || ap.Addr().Zone() != "" || ap.Addr().IsUnspecified() || ap.Addr().IsMulticast() {
		return Socket{}, fmt.Errorf("%q: want a unicast address without a zone and a port from 1 to 65535", s)
	}
	return Socket{Addr: ap.Addr().Unmap(), Port: ap.Port(), Proto: proto}, nil
}

// Endpoint is a pod's (or a hostNetwork) address and port that may serve a front.
type Endpoint struct {
	Addr netip.Addr
	Port uint16
	// Peer is the underlay address of the node that runs the endpoint; the zero Addr is this node.
	Peer netip.Addr
}

// Compare orders by address, port, peer.
func (e Endpoint) Compare(o Endpoint) int {
	return cmp.Or(e.Addr.Compare(o.Addr), cmp.Compare(e.Port, o.Port), e.Peer.Compare(o.Peer))
}

// String prints 10.42.1.5:8080 or 10.42.1.5:8080@192.0.2.2.
func (e Endpoint) String() string {
	s := netip.AddrPortFrom(e.Addr, e.Port).String()
	if e.Peer.IsValid() {
		s += "@" + e.Peer.String()
	}
	return s
}

// Front is one socket of this node and the endpoints that new flows through it may go to.
type Front struct {
	Socket
	// Endpoints are sorted by Compare and free of duplicates; none means that new flows are dropped.
	Endpoints []Endpoint
	// ClientIPAffinity hashes the client's address only (sessionAffinity: ClientIP).
	ClientIPAffinity bool
	// AffinityTimeout is in whole seconds, and 0 asks for the default: read it by AffinityFor.
	AffinityTimeout time.Duration
	// Sources are the clients that the front takes, of both families: masked, sorted by netip.Prefix.Compare, free
	// of duplicates. nil is everybody, and an empty list nobody. Read it by Limits.
	Sources []netip.Prefix
}

// DefaultAffinityTimeout is that of a Service that names none (DefaultClientIPServiceAffinitySeconds of
// k8s.io/api/core/v1).
const DefaultAffinityTimeout = 3 * time.Hour

// AffinityFor is how long a client keeps its endpoint after its last new flow; 0 without ClientIPAffinity.
func (f *Front) AffinityFor() time.Duration {
	if !f.ClientIPAffinity {
		return 0
	}
	return cmp.Or(f.AffinityTimeout, DefaultAffinityTimeout)
}

// Limits are the ranges that clients of this front may come from. They are of the front's family, which is also
// its clients': with ranges of the other one alone, the front is limited to nobody. A range of all addresses is no
// limit.
func (f *Front) Limits() (ranges []netip.Prefix, limited bool) {
	for _, source := range f.Sources {
		if source.Addr().Is4() != f.Addr.Is4() {
			continue
		}
		if source.Bits() == 0 {
			return nil, false
		}
		ranges = append(ranges, source)
	}
	return ranges, f.Sources != nil
}

// Desired is everything that one node's datapath should hold.
type Desired struct {
	// Seed keys the flow hash and the ring; equal on every node of a cluster.
	Seed [16]byte
	// Underlay4 and Underlay6 are this node's tunnel addresses; the zero Addr means none of that family.
	Underlay4, Underlay6 netip.Addr
	// Fronts are sorted by Socket.
	Fronts []Front
	// Peers are the underlay addresses that tunnels are accepted from (NODE_ALLOW).
	Peers []netip.Addr
	// Targets are the pod sockets on this node that tunnels may deliver to (POD_TARGETS).
	Targets []Socket
}
