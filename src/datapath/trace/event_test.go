// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/beep-lb/beep/src/datapath/bpfobj"
	"github.com/beep-lb/beep/src/datapath/maps"
	"github.com/beep-lb/beep/src/model"
)

// The ends of the flow of all tests: the client dials node, whose peer runs the pod.
var (
	client, front = netip.MustParseAddrPort("198.51.100.7:40000"), netip.MustParseAddrPort("192.0.2.1:80")
	pod           = netip.MustParseAddrPort("10.42.1.5:8080")
	self, peer    = netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
)

const udp = 17

func plain(src, dst netip.AddrPort) bpfobj.TraceTraceView {
	return bpfobj.TraceTraceView{Proto: udp, Src: src.Addr().As16(), SportBe: swap(src.Port()), Dst: dst.Addr().As16(), DportBe: swap(dst.Port())}
}

func tunnelled(inner bpfobj.TraceTraceView, option option, from, to netip.Addr) bpfobj.TraceTraceView {
	inner.Option, inner.OuterSrc, inner.OuterDst = uint8(option), from.As16(), to.As16()
	if option == optionForward {
		inner.Target, inner.TargetPortBe = pod.Addr().As16(), swap(pod.Port())
	}
	return inner
}

// about is an ICMP error from somewhere about a packet.
func about(packet bpfobj.TraceTraceView, to netip.AddrPort) bpfobj.TraceTraceView {
	return bpfobj.TraceTraceView{Proto: 1, Src: netip.MustParseAddr("198.51.100.1").As16(), Dst: to.Addr().As16(), IcmpType: 3, IcmpCode: 4,
		QuoteProto: packet.Proto, QuoteSrc: packet.Src, QuoteSportBe: packet.SportBe, QuoteDst: packet.Dst, QuoteDportBe: packet.DportBe}
}

func swap(port uint16) uint16 { return port>>8 | port<<8 }

// rows are the flows of a node.
type rows []maps.Flow

func (r rows) LookupFlow(table string, key maps.FlowKey) (maps.Flow, error) {
	for _, row := range r {
		if row.Table == table && row.FlowKey == key {
			return row, nil
		}
	}
	return maps.Flow{}, maps.ErrNoRow
}

var known = rows{
	{FlowKey: maps.FlowKey{Kind: maps.Forward, Src: client, Dst: front, Proto: model.UDP}, Table: maps.FlowDatagrams, Nat: pod, Peer: peer},
	{FlowKey: maps.FlowKey{Kind: maps.Reverse, Src: pod, Dst: netip.AddrPortFrom(client.Addr(), 50000), Proto: model.UDP},
		Table: maps.FlowPending, Nat: front, Peer: peer, Flags: maps.Tunnelled, ClientPort: client.Port()},
}

func TestEventOf(t *testing.T) {
	const (
		ingress, egress = uint32(bpfobj.BeepDirectionDIR_INGRESS), uint32(bpfobj.BeepDirectionDIR_EGRESS)
		here, away      = 1, 2 // of a client; shifted for the others
	)
	remapped := netip.AddrPortFrom(client.Addr(), 50000)
	asked, answer := plain(client, front), plain(pod, client)
	for _, tt := range []struct {
		name string
		raw  bpfobj.TraceTraceEvent
		want string
	}{
		{"a client's, to a pod here", bpfobj.TraceTraceEvent{Direction: ingress, Counted: here | 1<<8, Before: asked, After: plain(client, pod)},
			"client>endpoint client front endpoint new"},
		{"a client's, into the tunnel", bpfobj.TraceTraceEvent{Direction: ingress, Counted: away, Before: asked, After: tunnelled(asked, optionForward, self, peer)},
			"client>tunnel client front endpoint peer"},
		{"a client's, into the tunnel, unseen", bpfobj.TraceTraceEvent{Direction: ingress, Counted: away, Before: asked},
			"client>tunnel client front endpoint peer"},
		{"out of a tunnel", bpfobj.TraceTraceEvent{Direction: ingress, Counted: here<<2 | 1<<9 | 1<<10,
			Before: tunnelled(asked, optionForward, peer, self), After: plain(remapped, pod)},
			"peer>endpoint client front endpoint peer new remapped"},
		{"an answer out of a tunnel", bpfobj.TraceTraceEvent{Direction: ingress, Counted: away << 2,
			Before: tunnelled(plain(front, client), optionReturn, peer, self), After: plain(front, client)},
			"peer>client client front endpoint peer"},
		{"an answer, the host's way", bpfobj.TraceTraceEvent{Direction: egress, Counted: here << 4, Before: answer, After: plain(front, client)},
			"endpoint>client client front endpoint"},
		{"an answer, into the tunnel", bpfobj.TraceTraceEvent{Direction: egress, Counted: away << 4, Before: plain(pod, remapped),
			After: tunnelled(plain(front, client), optionReturn, self, peer)},
			"endpoint>tunnel client front endpoint peer"},
		{"an answer, into the tunnel, unseen", bpfobj.TraceTraceEvent{Direction: egress, Counted: away << 4, Before: plain(pod, remapped)},
			"endpoint>tunnel client front endpoint peer"},
		{"an answer that is dropped", bpfobj.TraceTraceEvent{Direction: egress, Reason: 7, Before: plain(pod, remapped)},
			"endpoint>drop no-route client front endpoint peer"},
		{"a client's that is answered", bpfobj.TraceTraceEvent{Direction: ingress, Reason: 9, Counted: away, Before: asked, After: about(asked, client)},
			"client>sender too-big client front endpoint peer"},
		{"a client's that is cut up", bpfobj.TraceTraceEvent{Direction: ingress, Copies: 1, Before: asked},
			"client>copy client front endpoint peer"},
		{"a part of a client's", bpfobj.TraceTraceEvent{Direction: egress, Mark: markPiece | 1, Counted: away << 6, Before: asked,
			After: tunnelled(asked, optionForward, self, peer)}, "copy>tunnel client front endpoint peer"},
		{"a part of a client's, unseen", bpfobj.TraceTraceEvent{Direction: egress, Mark: markSegment | 1, Counted: away << 6, Before: asked},
			"copy>tunnel client front endpoint peer"},
		{"a part of an answer", bpfobj.TraceTraceEvent{Direction: egress, Mark: markPiece, Counted: away << 6, Before: plain(pod, remapped),
			After: tunnelled(plain(front, client), optionReturn, self, peer)}, "copy>tunnel client front endpoint peer"},
		{"an error about an answer", bpfobj.TraceTraceEvent{Direction: ingress, Counted: away, Before: about(plain(front, client), front)},
			"client>tunnel client front endpoint peer icmp"},
		{"none of beep's", bpfobj.TraceTraceEvent{Direction: ingress, Before: asked, After: asked}, "client>host client front endpoint peer"},
		{"the host's own", bpfobj.TraceTraceEvent{Direction: egress, Before: plain(front, client), After: plain(front, client)},
			"endpoint>host client front endpoint peer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			event := eventOf(tt.raw, time.Now())
			event.Complete(known)
			if got := inWords(event); got != tt.want {
				t.Errorf("%s, want %s\n%+v", got, tt.want, event)
			}
			for _, wanted := range []Filter{{}, {Front: front.Addr()}, {Front: front.Addr(), Port: 80, Proto: model.UDP}} {
				if !wanted.Wanted(event) {
					t.Errorf("not wanted by %+v", wanted)
				}
			}
			for _, unwanted := range []Filter{{Front: peer}, {Port: 81}, {Proto: model.TCP}} {
				if unwanted.Wanted(event) {
					t.Errorf("wanted by %+v", unwanted)
				}
			}
		})
	}
}

// inWords names the way, and which ends are right.
func inWords(e Event) string {
	text := fmt.Sprintf("%s>%s", e.From, e.To)
	if e.Reason != 0 {
		text += " " + e.Reason.String()
	}
	for _, one := range []struct {
		name string
		is   bool
	}{
		{"client", e.Client == client}, {"front", e.Front == front}, {"endpoint", e.Endpoint == pod}, {"peer", e.Peer == peer},
		{"new", e.NewFlow}, {"remapped", e.Remapped}, {"icmp", e.ICMP != nil},
	} {
		if one.is {
			text += " " + one.name
		}
	}
	return text
}
