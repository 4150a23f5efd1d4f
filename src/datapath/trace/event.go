// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"

	"github.com/beep-lb/beep/src/datapath/bpfobj"
	"github.com/beep-lb/beep/src/datapath/maps"
	"github.com/beep-lb/beep/src/model"
)

// Side is one end of a packet's way through a node.
type Side string

// The sides that a packet comes from and goes to.
const (
	// Client is the client's network.
	Client Side = "client"
	// Peer is another node: from it, out of a tunnel.
	Peer Side = "peer"
	// Endpoint is a pod or process of this node.
	Endpoint Side = "endpoint"
	// Copy is a part of a packet that was too long or of many datagrams.
	Copy Side = "copy"
	// Tunnel is into a tunnel, to another node.
	Tunnel Side = "tunnel"
	// Host is where packets go that are none of beep's.
	Host Side = "host"
	// Nowhere is where dropped packets go.
	Nowhere Side = "drop"
	// Sender is where an answer of beep's own making goes: an ICMP error about the packet that came.
	Sender Side = "sender"
)

// Event is what became of one packet in one run of a program. Of a GSO packet, which stands for many, there is one.
type Event struct {
	// At is when the run began.
	At time.Time
	// Ifindex is the device's, Direction the program's; Out is the index of the device that the packet was redirected to,
	// 0 if there was none, or it took its way later.
	Ifindex, Out int
	Direction    maps.Direction
	// From and To are the packet's way.
	From, To Side
	// Reason says why it was dropped, or answered with an error; 0 is neither.
	Reason maps.Reason
	// NewFlow says that the packet began a flow on this node; Remapped that this flow's endpoint sees another source
	// port than the client's.
	NewFlow, Remapped bool
	// Protocol is the IP protocol number, of the innermost packet.
	Protocol uint8
	// TCPFlags are the flags byte of the TCP header.
	TCPFlags uint8
	// Later is a fragment without ports.
	Later bool
	// ICMP is an ICMP error about a flow's packet; Client, Front and Endpoint are then that packet's.
	ICMP *ICMP
	// Client and Front are the ends that the client sees, Endpoint what serves it; one that is not known is zero. The
	// ports of a Later fragment are 0.
	Client, Front, Endpoint netip.AddrPort
	// Peer is the other node of the tunnel that the packet came through or goes into.
	Peer netip.Addr
	// Length and LengthAfter are the packet's bytes before and after, link layer included; 0 is not seen again.
	Length, LengthAfter uint32
	// GSOSize is the payload of a segment in bytes; 0 is a single packet.
	GSOSize uint32
}

// ICMP is the type and code of an ICMP or ICMPv6 message.
type ICMP struct{ Type, Code uint8 }

// The marks of copies (bpf/lib/format.h), and what of them counts.
const (
	markPiece, pieceMask     = 0x62656500, 0x0f
	markSegment, segmentMask = 0x62656600, 0xff
)

// option is the type of the tunnel's option (bpf/lib/format.h).
type option uint8

const (
	optionNone    option = 0
	optionForward option = 0x81
	optionReturn  option = 0x82
)

// decode reads an event as the programs write it.
func decode(sample []byte) (raw bpfobj.TraceTraceEvent, err error) {
	if err := binary.Read(bytes.NewReader(sample), binary.LittleEndian, &raw); err != nil {
		return raw, fmt.Errorf("trace: an event of %d bytes: %w", len(sample), err)
	}
	return raw, nil
}

// fragmentLater is FRAGMENT_LATER of bpf/lib/pkt.h.
const fragmentLater = 2

// eventOf tells what the headers before and after and the counters say of a run.
func eventOf(raw bpfobj.TraceTraceEvent, boot time.Time) Event {
	e := Event{
		At: boot.Add(time.Duration(raw.Time)), Ifindex: int(raw.Ifindex), Out: int(raw.OutIfindex),
		Direction: maps.Direction(raw.Direction), Reason: maps.Reason(raw.Reason),
		Protocol: raw.Before.Proto, TCPFlags: raw.Before.TcpFlags, Later: raw.Before.Fragment == fragmentLater,
		Length: raw.Len, LengthAfter: raw.LenAfter, GSOSize: raw.GsoSize,
		NewFlow:  counted(raw, bpfobj.BeepTrafficTRAFFIC_NEW) || counted(raw, bpfobj.BeepTrafficTRAFFIC_NEW_HERE),
		Remapped: counted(raw, bpfobj.BeepTrafficTRAFFIC_REMAPPED),
	}
	before, after := viewOf(raw.Before), viewOf(raw.After)
	if before.quoted {
		e.ICMP, e.Protocol = &ICMP{raw.Before.IcmpType, raw.Before.IcmpCode}, before.quoteProto
	}
	e.From = from(raw, before)
	e.To = to(raw, e.From, after)
	e.ends(before, after)
	return e
}

func counted(raw bpfobj.TraceTraceEvent, what bpfobj.BeepTraffic) bool {
	return raw.Counted&(1<<what) != 0
}

func from(raw bpfobj.TraceTraceEvent, before view) Side {
	switch {
	case raw.Mark&^pieceMask == markPiece || raw.Mark&^segmentMask == markSegment:
		return Copy
	case raw.Direction == uint32(bpfobj.BeepDirectionDIR_EGRESS):
		return Endpoint
	case before.option != optionNone:
		return Peer
	}
	return Client
}

// counters are the even members of enum traffic by where packets come from.
var counters = map[Side]bpfobj.BeepTraffic{
	Client: bpfobj.BeepTrafficTRAFFIC_CLIENT, Peer: bpfobj.BeepTrafficTRAFFIC_PEER,
	Endpoint: bpfobj.BeepTrafficTRAFFIC_ENDPOINT, Copy: bpfobj.BeepTrafficTRAFFIC_COPY,
}

// to is where a packet goes. One whose redirect was not seen goes where packets of its kind do; of an endpoint's the
// flow's row must tell.
func to(raw bpfobj.TraceTraceEvent, from Side, after view) Side {
	here := counted(raw, counters[from])
	away := counted(raw, counters[from]+bpfobj.BeepTrafficTRAFFIC_AWAY)
	switch {
	case raw.Copies != 0:
		return Copy
	case raw.Reason != 0 && !here && !away:
		return Nowhere
	case raw.Reason != 0:
		return Sender
	case here && from == Endpoint:
		return Client
	case here:
		return Endpoint
	case away && (after.option != optionNone || from == Client):
		return Tunnel
	case away:
		return Client
	}
	return Host
}

// ends names client, front, endpoint and peer by the headers on both sides.
func (e *Event) ends(before, after view) {
	in, out := before.flow(), after.flow()
	seen := e.To == Endpoint || e.To == Tunnel || e.To == Client
	switch {
	case before.option == optionForward:
		e.Client, e.Front, e.Endpoint, e.Peer = in.src, in.dst, before.target, before.outerSrc
	case before.option == optionReturn:
		e.Front, e.Client, e.Peer = in.src, in.dst, before.outerSrc
	case e.From == Client || after.option == optionForward:
		e.Client, e.Front, e.Endpoint, e.Peer = in.src, in.dst, after.target, after.outerDst
		if e.To == Endpoint {
			e.Endpoint = out.dst
		}
	case e.To == Host:
		e.Front, e.Client = in.src, in.dst
	default:
		// From the endpoint, as the client is called there; once translated, from the front.
		e.Endpoint, e.Client, e.Peer = in.src, in.dst, after.outerDst
		if seen && out.src.IsValid() {
			e.Front, e.Client = out.src, out.dst
		}
	}
}

// view is the headers of a packet at one moment.
type view struct {
	src, dst           netip.AddrPort
	outerSrc, outerDst netip.Addr
	option             option
	target             netip.AddrPort
	quoted             bool
	quoteProto         uint8
	quoteSrc, quoteDst netip.AddrPort
}

func viewOf(raw bpfobj.TraceTraceView) view {
	v := view{
		option: option(raw.Option), quoted: raw.QuoteProto != 0, quoteProto: raw.QuoteProto,
	}
	if raw.Proto != 0 {
		v.src, v.dst = socket(raw.Src, raw.SportBe), socket(raw.Dst, raw.DportBe)
	}
	if v.option != optionNone {
		v.outerSrc, v.outerDst = address(raw.OuterSrc), address(raw.OuterDst)
	}
	if v.option == optionForward {
		v.target = socket(raw.Target, raw.TargetPortBe)
	}
	if v.quoted {
		v.quoteSrc, v.quoteDst = socket(raw.QuoteSrc, raw.QuoteSportBe), socket(raw.QuoteDst, raw.QuoteDportBe)
	}
	return v
}

// ends are the ends of a flow's packet.
type ends struct{ src, dst netip.AddrPort }

// flow is the ends of the packet, or of an answer to the packet that an ICMP error is about: an error goes where that
// one came from.
func (v view) flow() ends {
	if v.quoted {
		return ends{v.quoteDst, v.quoteSrc}
	}
	return ends{v.src, v.dst}
}

func address(addr [16]byte) netip.Addr { return netip.AddrFrom16(addr).Unmap() }

func socket(addr [16]byte, portBE uint16) netip.AddrPort {
	return netip.AddrPortFrom(address(addr), portBE>>8|portBE<<8)
}

// Flows looks up rows of flows; maps.Kernel does.
type Flows interface {
	LookupFlow(table string, key maps.FlowKey) (maps.Flow, error)
}

// Complete fills in from the flow's row what the headers of the packet do not say. The row may be another one by now, or
// gone.
func (e *Event) Complete(flows Flows) {
	proto := model.Proto(e.Protocol)
	if e.From == Copy && !e.Front.IsValid() {
		// A client's own, if there is such a flow: it was called an endpoint's for want of its headers as they went.
		if row, ok := find(flows, maps.FlowKey{Kind: maps.Forward, Src: e.Endpoint, Dst: e.Client, Proto: proto}); ok {
			e.Client, e.Front, e.Endpoint, e.Peer, e.To = e.Endpoint, e.Client, row.Nat, row.Peer, Tunnel
			return
		}
	}
	if e.Client.IsValid() && e.Front.IsValid() && (!e.Endpoint.IsValid() || !e.Peer.IsValid() && e.To == Tunnel) {
		if row, ok := find(flows, maps.FlowKey{Kind: maps.Forward, Src: e.Client, Dst: e.Front, Proto: proto}); ok {
			if e.Endpoint = row.Nat; !e.Peer.IsValid() {
				e.Peer = row.Peer
			}
		}
	}
	if e.Endpoint.IsValid() && e.Client.IsValid() && !e.Front.IsValid() {
		if row, ok := find(flows, maps.FlowKey{Kind: maps.Reverse, Src: e.Endpoint, Dst: e.Client, Proto: proto}); ok {
			e.Front, e.Peer = row.Nat, row.Peer
			e.Client = netip.AddrPortFrom(e.Client.Addr(), row.ClientPort)
			if e.To == Client && row.Flags&maps.Tunnelled != 0 {
				e.To = Tunnel
			}
		}
	}
}

func find(flows Flows, key maps.FlowKey) (maps.Flow, bool) {
	for _, table := range maps.FlowTables {
		if row, err := flows.LookupFlow(table, key); err == nil {
			return row, true
		}
	}
	return maps.Flow{}, false
}

// Wanted says whether the event is of the filter's front, for those of which the programs could not tell.
func (f Filter) Wanted(e Event) bool {
	return (!f.Front.IsValid() || e.Front.Addr() == f.Front) && (f.Port == 0 || e.Later || e.Front.Port() == f.Port) &&
		(f.Proto == 0 || model.Proto(e.Protocol) == f.Proto)
}
