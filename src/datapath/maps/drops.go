// SPDX-License-Identifier: Apache-2.0

package maps

import (
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/beep-lb/beep/src/datapath/bpfobj"
)

// Reason says why a packet was dropped (enum drop_reason of bpf/lib/abi.h).
type Reason uint32

// Direction is the side of a device that a program sits on.
type Direction uint32

// The directions of a DropRow.
const (
	Ingress = Direction(bpfobj.BeepDirectionDIR_INGRESS)
	Egress  = Direction(bpfobj.BeepDirectionDIR_EGRESS)
)

// String is the direction as dumps print it.
func (d Direction) String() string {
	switch d {
	case Ingress:
		return "ingress"
	case Egress:
		return "egress"
	}
	return fmt.Sprintf("direction %d", uint32(d))
}

// wording is what a reason is called and what to do about it.
type wording struct{ name, words string }

// words has one entry for each value of the enum; a test compares them with the object.
var words = map[bpfobj.BeepDropReason]wording{
	bpfobj.BeepDropReasonDROP_NO_ENDPOINT: {"no-endpoint",
		"a new flow through a front that has no endpoint: give its Service a ready pod"},
	bpfobj.BeepDropReasonDROP_FRONT_INCOMPLETE: {"front-incomplete",
		"a front names a ring block or an endpoint that is not there: if it lasts, a map is full or its writer died, see `beep status`"},
	bpfobj.BeepDropReasonDROP_FRAGMENT_ORPHAN: {"fragment-orphan",
		"a later fragment came without its first one, or too long after it: look for loss or reordering on the way"},
	bpfobj.BeepDropReasonDROP_SOURCE_DENIED: {"source-denied",
		"the client is in none of the ranges that the front takes: see loadBalancerSourceRanges of its Service"},
	bpfobj.BeepDropReasonDROP_FLOW_INSERT: {"flow-insert",
		"the kernel made no row for a new flow: the node is short of memory, or raise --flow-table-max-entries"},
	bpfobj.BeepDropReasonDROP_REMAP_EXHAUSTED: {"remap-exhausted",
		"no source port is free towards the endpoint for this client: spread its connections over more pods or client addresses"},
	bpfobj.BeepDropReasonDROP_NO_UNDERLAY: {"no-underlay",
		"the endpoint's node is reached over a family in which this node has no tunnel address: give both nodes one of the same family"},
	bpfobj.BeepDropReasonDROP_NO_ROUTE: {"no-route",
		"this node has no route to the peer or to the client: look with `ip route get`"},
	bpfobj.BeepDropReasonDROP_FORWARDING_OFF: {"forwarding-off",
		"the kernel forwards nothing on the device: set net.ipv4.ip_forward or net.ipv6.conf.all.forwarding to 1"},
	bpfobj.BeepDropReasonDROP_TOO_BIG: {"too-big",
		"the packet does not fit the way out once it is in a tunnel: raise the MTU between nodes or lower it at the sender"},
	bpfobj.BeepDropReasonDROP_KERNEL_REFUSED: {"kernel-refused",
		"the kernel refused to resize the packet or to write into it: report it, with the packet's length and the device's driver"},
	bpfobj.BeepDropReasonDROP_TUNNEL_MALFORMED: {"tunnel-malformed",
		"a tunnel with our VNI and option class but not our format: run the same version of beep on every node"},
	bpfobj.BeepDropReasonDROP_TUNNEL_INNER: {"tunnel-inner",
		"a tunnel whose inner packet is none that beep tunnels: run the same version of beep on every node, or look for who forges it"},
	bpfobj.BeepDropReasonDROP_UNKNOWN_PEER: {"unknown-peer",
		"a tunnel from an address that is no peer of this node (NODE_ALLOW): see `beep nodes`"},
	bpfobj.BeepDropReasonDROP_UNKNOWN_TARGET: {"unknown-target",
		"a tunnel to a socket that is no endpoint on this node (POD_TARGETS): as a rule a pod that has just gone"},
	bpfobj.BeepDropReasonDROP_WRONG_PEER: {"wrong-peer",
		"an answer through a tunnel from another node than the one that the flow went to: look for two nodes with one pod address"},
	bpfobj.BeepDropReasonDROP_NO_FLOW: {"no-flow",
		"an answer through a tunnel that belongs to no flow and to no front of this node: as a rule a front that has just gone"},
	bpfobj.BeepDropReasonDROP_ECN: {"ecn",
		"a tunnel was marked as congested and its inner packet cannot carry the mark (RFC 6040): the network between nodes is overloaded"},
	bpfobj.BeepDropReasonDROP_FORGED_TUNNEL: {"forged-tunnel",
		"our tunnel format left this node, and beep did not make it: look for the pod that sends UDP to the tunnel's port"},
}

// Reasons are all reasons in the order of their numbers.
func Reasons() []Reason {
	var reasons []Reason
	for r := bpfobj.BeepDropReasonDROP_UNUSED + 1; r < bpfobj.BeepDropReasonDROP_REASONS; r++ {
		reasons = append(reasons, Reason(r))
	}
	return reasons
}

// String is the short name, as no-endpoint; a number of a newer object prints as reason 99.
func (r Reason) String() string {
	if known, ok := words[bpfobj.BeepDropReason(r)]; ok {
		return known.name
	}
	return fmt.Sprintf("reason %d", uint32(r))
}

// Words is one sentence for people: what happened, and what to do.
func (r Reason) Words() string {
	if known, ok := words[bpfobj.BeepDropReason(r)]; ok {
		return known.words
	}
	return "not known to this build: use the beep that loaded the programs"
}

// DropRow is one counter of DROPS, summed over the CPUs.
type DropRow struct {
	Reason    Reason
	Direction Direction
	// Packets and Bytes are since the map was made; bytes are as the program saw them, link layer included.
	Packets, Bytes uint64
}

// Drops reads every counter, zeros included, by reason and direction.
func (k *Kernel) Drops() ([]DropRow, error) {
	var rows []DropRow
	for _, reason := range Reasons() {
		for direction := Ingress; direction < Direction(bpfobj.BeepDirectionDIRECTIONS); direction++ {
			index := uint32(reason)*uint32(bpfobj.BeepDirectionDIRECTIONS) + uint32(direction)
			sum, err := sumCPUs(k.maps.DROPS, index)
			if err != nil {
				return nil, fmt.Errorf("read %s, %s at %s: %w", bpfobj.BeepMapDROPS, reason, direction, err)
			}
			rows = append(rows, DropRow{Reason: reason, Direction: direction, Packets: sum.Packets, Bytes: sum.Bytes})
		}
	}
	return rows, nil
}

// sumCPUs adds up what the CPUs have counted at an index.
func sumCPUs(m *ebpf.Map, index uint32) (sum bpfobj.BeepDropCount, err error) {
	var perCPU []bpfobj.BeepDropCount
	if err := m.Lookup(&index, &perCPU); err != nil {
		return sum, errno(err)
	}
	for _, count := range perCPU {
		sum.Packets += count.Packets
		sum.Bytes += count.Bytes
	}
	return sum, nil
}
