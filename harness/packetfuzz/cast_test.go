// SPDX-License-Identifier: Apache-2.0

package packetfuzz

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/beep-lb/beep/harness/packet"
	"github.com/beep-lb/beep/harness/progrun"
	"github.com/beep-lb/beep/src/model"
)

const (
	self4  = "192.0.2.1"
	self6  = "2001:db8:b::1"
	third4 = "192.0.2.3" // a peer behind a small MTU

	podPort    = 8080
	tunnelPort = 50000 // the outer source port of tunnels that peers make
	fragmentID = 7     // of the datagrams whose first fragment was seen, and 8
)

// The ports of this node's fronts, by what is behind them.
const (
	portHere     = 80 // a pod here
	portThere    = 81 // a pod on the peer
	portBoth     = 82 // both, with affinity
	portNone     = 83 // nothing
	portLimited  = 84 // a pod here, for the first half of the clients
	portCrossing = 85 // a pod on the peer, by the other underlay family
	portTight    = 86 // a pod on the node behind a small MTU
)

// The client's ports, by how far the flow is that has them.
const (
	portEstablished = 40000 // and the two behind it: to a local pod, to a remote one, for a peer
	portPending     = 41000
	portClosed      = 42000
	portAnswered    = 43000 // TCP: the pod has answered, the client not yet
)

// family is the cast of one IP family.
type family struct {
	self, peer, crossing, client, outside netip.Addr // crossing is the peer by the other family
	here, there                           netip.Addr
	frontOfPeer                           netip.Addr
	limit                                 netip.Prefix // of clients, for portLimited
}

var families = []family{{
	self: addr(self4), peer: addr("192.0.2.2"), crossing: addr("2001:db8:b::2"), client: addr("198.51.100.7"),
	outside: addr("198.51.100.200"), here: addr("10.42.0.5"), there: addr("10.42.1.5"), frontOfPeer: addr("192.0.2.2"),
	limit: netip.MustParsePrefix("198.51.100.0/25"),
}, {
	self: addr(self6), peer: addr("2001:db8:b::2"), crossing: addr("192.0.2.2"), client: addr("2001:db8:c::7"),
	outside: addr("2001:db8:c::8000:0:0:7"), here: addr("2001:db8:a::5"), there: addr("2001:db8:a:1::5"),
	frontOfPeer: addr("2001:db8:b::2"), limit: netip.MustParsePrefix("2001:db8:c::/65"),
}}

var peers = []netip.Addr{addr("192.0.2.2"), addr("2001:db8:b::2"), addr(third4)}

func addr(text string) netip.Addr { return netip.MustParseAddr(text) }

// fronts are those of each protocol, by port.
func (f family) fronts() map[uint16]front {
	here := model.Endpoint{Addr: f.here, Port: podPort}
	there := model.Endpoint{Addr: f.there, Port: podPort, Peer: f.peer}
	return map[uint16]front{
		portHere:     {endpoints: []model.Endpoint{here}},
		portThere:    {endpoints: []model.Endpoint{there}},
		portBoth:     {endpoints: []model.Endpoint{here, there}},
		portNone:     {},
		portLimited:  {endpoints: []model.Endpoint{here}, sources: []netip.Prefix{f.limit}},
		portCrossing: {endpoints: []model.Endpoint{{Addr: f.there, Port: podPort, Peer: f.crossing}}},
		portTight:    {endpoints: []model.Endpoint{{Addr: f.there, Port: podPort, Peer: addr(third4)}}},
	}
}

// line is one thing that is said: a packet and where it is heard.
type line struct {
	at     hook
	packet []byte
}

func frame(parts ...packet.Part) []byte {
	return packet.Build(append([]packet.Part{packet.Eth(packet.MAC1, packet.MAC2)}, parts...)...)
}

func ip(src, dst netip.Addr) packet.IPPacket { return packet.IP(src.String(), dst.String()) }

// transport is TCP with flags, or UDP, with some payload.
func transport(proto model.Proto, src, dst uint16, flags string) packet.Part {
	if proto == model.UDP {
		return packet.UDP(src, dst)
	}
	segment := packet.TCP(src, dst).Flags(flags)
	if strings.Contains(flags, "A") {
		segment = segment.Ack(12) // what acknowledges a SYN-ACK of number 1 with 10 bytes
	}
	if flags == "S" || flags == "SA" {
		segment = segment.MSS(1460)
	}
	return segment
}

// fromPeer is a tunnel packet of the peer's.
func (f family) fromPeer(header packet.GeneveHeader, inner ...packet.Part) []byte {
	return frame(append([]packet.Part{ip(f.peer, f.self).DF(), packet.Outer(tunnelPort), header}, inner...)...)
}

func (f family) forward() packet.GeneveHeader {
	return packet.Forward(netip.AddrPortFrom(f.here, podPort).String())
}

// flow is one client's way to a pod: what each side says, by TCP flags.
type flow struct {
	port uint16 // the client's
	to   uint16 // the front's
	peer bool   // through the peer's front, to the pod here
}

func (f family) says(proto model.Proto, c flow, flags string) line {
	speech := transport(proto, c.port, c.to, flags)
	if c.peer {
		return line{ingress, f.fromPeer(f.forward(), ip(f.client, f.frontOfPeer), speech)}
	}
	return line{ingress, frame(ip(f.client, f.self), speech, packet.Payload(10))}
}

func (f family) answers(proto model.Proto, c flow, flags string) line {
	if c.to == portHere {
		return line{egress, frame(ip(f.here, f.client), transport(proto, podPort, c.port, flags), packet.Payload(10))}
	}
	return line{ingress, f.fromPeer(packet.Return(), ip(f.self, f.client), transport(proto, c.to, c.port, flags), packet.Payload(10))}
}

// story is what was said before any input comes: flows half-open, established and closed, one whose port had to be
// changed, and first fragments.
func (f family) story() []line {
	var all []line
	for _, proto := range []model.Proto{model.TCP, model.UDP} {
		for i, kind := range []flow{{to: portHere}, {to: portThere}, {to: portHere, peer: true}} {
			c := kind
			c.port = uint16(portEstablished + i)
			all = append(all, f.says(proto, c, "S"), f.answers(proto, c, "SA"), f.says(proto, c, "A"))
			c.port = uint16(portPending + i)
			all = append(all, f.says(proto, c, "S"))
			if proto == model.TCP {
				c.port = uint16(portClosed + i)
				all = append(all, f.says(proto, c, "S"), f.answers(proto, c, "SA"), f.says(proto, c, "A"), f.says(proto, c, "R"))
				c.port = uint16(portAnswered + i)
				all = append(all, f.says(proto, c, "S"), f.answers(proto, c, "SA"))
			}
		}
		all = append(all, f.says(proto, flow{port: portEstablished, to: portHere, peer: true}, "S"))
	}
	all = append(all,
		line{ingress, frame(f.first(fragmentID, f.client, f.self, packet.UDP(portEstablished, portHere))...)},
		line{ingress, frame(f.first(fragmentID+1, f.client, f.self, packet.UDP(portEstablished+1, portThere))...)},
		line{egress, frame(f.first(fragmentID, f.here, f.client, packet.UDP(podPort, portEstablished))...)},
		line{ingress, f.fromPeer(f.forward(), f.first(fragmentID, f.client, f.frontOfPeer, packet.UDP(portEstablished+2, portHere))...)},
	)
	return all
}

// first is the first fragment of a datagram.
func (f family) first(id uint32, src, dst netip.Addr, udp packet.UDPDatagram) []packet.Part {
	if f.self.Is4() {
		return []packet.Part{ip(src, dst).ID(uint16(id)).Fragment(0, true), udp.Length(2000), packet.Payload(16)}
	}
	return []packet.Part{ip(src, dst), packet.Fragment(0, true, id), udp.Length(2000), packet.Payload(16)}
}

// converse plays the stories of both families.
func (w *world) converse() error {
	for _, f := range families {
		for i, said := range f.story() {
			out, err := w.run(said.at, progrun.In{Packet: said.packet})
			if err != nil {
				return fmt.Errorf("line %d of the story of %s: %w", i, f.client, err)
			}
			if out.Verdict == progrun.Shot {
				return fmt.Errorf("line %d of the story of %s is dropped:\n%s", i, f.client, packet.Describe(said.packet))
			}
		}
	}
	return nil
}
