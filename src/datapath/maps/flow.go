// SPDX-License-Identifier: Apache-2.0

package maps

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/beep-lb/beep/src/datapath/bpfobj"
	"github.com/beep-lb/beep/src/model"
)

// The names of the tables that a Flow may be in.
const (
	// FlowTable holds TCP flows that have proved themselves.
	FlowTable = bpfobj.BeepMapFLOW_TABLE
	// FlowDatagrams holds UDP flows that have been answered, apart from TCP's: whoever asks is answered, and so a flood
	// of spoofed questions pushes out what is in this table.
	FlowDatagrams = bpfobj.BeepMapFLOW_DATAGRAMS
	// FlowPending holds half-open flows of both protocols.
	FlowPending = bpfobj.BeepMapFLOW_PENDING
)

// FlowTables are all of them, in the order in which a flow is looked for: one on its way out of FlowPending is in two.
var FlowTables = []string{FlowTable, FlowDatagrams, FlowPending}

// Kind is what a flow's row answers for (enum flow_kind of bpf/lib/abi.h).
type Kind uint8

// The kinds of a row.
const (
	// Forward is client to front, on the node that the client dialled.
	Forward = Kind(bpfobj.BeepFlowKindFLOW_FORWARD)
	// Backend is client to front, as the inner packet of a tunnel, on the node that runs the endpoint.
	Backend = Kind(bpfobj.BeepFlowKindFLOW_BACKEND)
	// Reverse is endpoint to client, on the node that runs the endpoint.
	Reverse = Kind(bpfobj.BeepFlowKindFLOW_REVERSE)
)

// String is the kind as dumps print it.
func (k Kind) String() string {
	switch k {
	case Forward:
		return "forward"
	case Backend:
		return "backend"
	case Reverse:
		return "reverse"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Flags are the states of a flow (enum flow_flag of bpf/lib/abi.h).
type Flags uint32

// The flags of a row.
const (
	// Replied: the endpoint has answered.
	Replied = Flags(bpfobj.BeepFlowFlagFLOW_REPLIED)
	// FinClient and FinEndpoint: a TCP FIN came from that side.
	FinClient   = Flags(bpfobj.BeepFlowFlagFLOW_FIN_CLIENT)
	FinEndpoint = Flags(bpfobj.BeepFlowFlagFLOW_FIN_ENDPOINT)
	// Closed: a TCP RST came, or FINs both ways.
	Closed = Flags(bpfobj.BeepFlowFlagFLOW_CLOSED)
	// Paired: a mirror row lives beside it.
	Paired = Flags(bpfobj.BeepFlowFlagFLOW_PAIRED)
	// Tunnelled: the pair is Backend and Reverse.
	Tunnelled = Flags(bpfobj.BeepFlowFlagFLOW_TUNNELLED)
)

var flagNames = []struct {
	flag Flags
	name string
}{
	{Replied, "replied"}, {FinClient, "fin-client"}, {FinEndpoint, "fin-endpoint"}, {Closed, "closed"},
	{Paired, "paired"}, {Tunnelled, "tunnelled"},
}

// String lists the names of the flags that are set, with commas; none is empty.
func (f Flags) String() string {
	var names []string
	for _, known := range flagNames {
		if f&known.flag != 0 {
			names = append(names, known.name)
		}
	}
	return strings.Join(names, ",")
}

// FlowKey is the key of a row: what a packet of the flow has, and what the row answers for.
type FlowKey struct {
	Kind     Kind
	Src, Dst netip.AddrPort
	Proto    model.Proto
}

// String prints forward TCP 198.51.100.7:40000 > 192.0.2.1:80.
func (k FlowKey) String() string { return fmt.Sprintf("%s %s %s > %s", k.Kind, k.Proto, k.Src, k.Dst) }

// Flow is a row of one of the FlowTables.
type Flow struct {
	FlowKey
	// Table is one of FlowTables.
	Table string
	// Nat is the endpoint for Forward and Backend, the front for Reverse.
	Nat netip.AddrPort
	// Peer is the underlay address of the node at the other end; the zero Addr is none.
	Peer netip.Addr
	// Uplink is the ifindex that the client's (Backend: the peer's) packets come in on.
	Uplink uint32
	// FrontID names the front in the FRONT_ maps; 0 on a backend node.
	FrontID uint32
	// LastSeen is in seconds of the coarse monotonic clock.
	LastSeen uint32
	// Epoch is Config.Epoch at which peer and endpoint were last checked.
	Epoch uint32
	Flags Flags
	// ClientPort is the client's port: as the endpoint sees it for Forward and Backend, its own for Reverse.
	ClientPort uint16
	// TunnelPort is the outer UDP source port.
	TunnelPort uint16
	// ClientMAC and UplinkMAC are source and destination of the client's last frame; zero without Ethernet.
	ClientMAC, UplinkMAC [6]byte
}

// Mirror is the key of the other row of a pair, in the same table, and whether there is one. It is the twin of
// mirror_key in bpf/lib/flow.h.
func (f Flow) Mirror() (FlowKey, bool) {
	if f.Flags&Paired == 0 {
		return FlowKey{}, false
	}
	if f.Kind != Reverse {
		return FlowKey{Kind: Reverse, Proto: f.Proto, Src: f.Nat,
			Dst: netip.AddrPortFrom(f.Src.Addr(), f.ClientPort)}, true
	}
	kind := Forward
	if f.Flags&Tunnelled != 0 {
		kind = Backend
	}
	return FlowKey{Kind: kind, Proto: f.Proto, Dst: f.Nat,
		Src: netip.AddrPortFrom(f.Dst.Addr(), f.ClientPort)}, true
}

// Flows calls visit for every row of all tables until it returns false. visit may delete rows. A flow that
// moves from one table to another meanwhile may be seen in both, or in none.
func (k *Kernel) Flows(visit func(Flow) bool) error {
	stopped := false
	for _, table := range FlowTables {
		err := k.flows[table].each(func(key bpfobj.BeepFlowKey, row bpfobj.BeepFlow) bool {
			stopped = !visit(fromFlow(table, key, row))
			return !stopped
		})
		if err != nil {
			return fmt.Errorf("read %s: %w", table, err)
		}
		if stopped {
			break
		}
	}
	return nil
}

// LookupFlow reads one row as it is now. An absent row is ErrNoRow.
func (k *Kernel) LookupFlow(table string, key FlowKey) (Flow, error) {
	wire := toFlowKey(key)
	row, err := k.flows[table].lookup(wire)
	if err != nil {
		return Flow{}, explain(table, "read", key, k.flows[table].capacity(), err)
	}
	return fromFlow(table, wire, row), nil
}

// DeleteFlow removes one row and not its mirror. An absent row is ErrNoRow.
func (k *Kernel) DeleteFlow(table string, key FlowKey) error {
	return remove(k.flows[table], table, key, toFlowKey(key))
}

// PutFlow writes one row and not its mirror; in a full table the kernel evicts another. The programs write their
// rows themselves: this is for tests that need a row of a certain state.
func (k *Kernel) PutFlow(f Flow) error {
	nat, err := toAddr16(f.Nat.Addr())
	if err != nil {
		return fmt.Errorf("flow %s: %w", f.FlowKey, err)
	}
	peer, err := toOptional16(f.Peer)
	if err != nil {
		return fmt.Errorf("flow %s: peer: %w", f.FlowKey, err)
	}
	row := bpfobj.BeepFlow{
		NatAddr: nat, Peer: peer, Uplink: f.Uplink, FrontId: f.FrontID, LastSeen: f.LastSeen, Epoch: f.Epoch,
		Flags: uint32(f.Flags), NatPortBe: toNetwork(f.Nat.Port()), ClientPortBe: toNetwork(f.ClientPort),
		TunnelPortBe: toNetwork(f.TunnelPort), ClientMac: f.ClientMAC, UplinkMac: f.UplinkMAC,
	}
	return put(k.flows[f.Table], f.Table, f.FlowKey, toFlowKey(f.FlowKey), row)
}

// toFlowKey takes keys as fromFlow makes them, so it has nothing to refuse.
func toFlowKey(key FlowKey) bpfobj.BeepFlowKey {
	return bpfobj.BeepFlowKey{
		Src: key.Src.Addr().As16(), SportBe: toNetwork(key.Src.Port()),
		Dst: key.Dst.Addr().As16(), DportBe: toNetwork(key.Dst.Port()),
		Proto: uint8(key.Proto), Kind: uint8(key.Kind),
	}
}

func fromAddrPort(addr [16]byte, port uint16) netip.AddrPort {
	return netip.AddrPortFrom(fromAddr16(addr), toHost(port))
}

func fromFlow(table string, key bpfobj.BeepFlowKey, row bpfobj.BeepFlow) Flow {
	return Flow{
		FlowKey: FlowKey{
			Kind: Kind(key.Kind), Proto: model.Proto(key.Proto),
			Src: fromAddrPort(key.Src, key.SportBe), Dst: fromAddrPort(key.Dst, key.DportBe),
		},
		Table: table, Nat: fromAddrPort(row.NatAddr, row.NatPortBe), Peer: fromOptional16(row.Peer),
		Uplink: row.Uplink, FrontID: row.FrontId, LastSeen: row.LastSeen, Epoch: row.Epoch, Flags: Flags(row.Flags),
		ClientPort: toHost(row.ClientPortBe), TunnelPort: toHost(row.TunnelPortBe),
		ClientMAC: row.ClientMac, UplinkMAC: row.UplinkMac,
	}
}
