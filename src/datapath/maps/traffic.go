// SPDX-License-Identifier: Apache-2.0

package maps

import (
	"fmt"

	"github.com/beep-lb/beep/src/datapath/bpfobj"
)

// Path is how packets of flows go through a node, in the words of metrics: where they come from and where they go.
type Path struct {
	// From is "client", "peer" (out of a tunnel), "endpoint", or "copy" (parts of packets that were too long or of
	// many datagrams, each on top of the one packet it stands for).
	From string
	// To is "endpoint" (one on this node), "tunnel", "client" (an answer by the host's own way, or out of a tunnel),
	// or "redirect" (an answer into a tunnel or to another uplink, or a copy). ICMP errors of beep's own making count
	// where the packet that they answer would.
	To string
}

// TrafficRow is a counter of packets.
type TrafficRow struct {
	Path
	// Packets and Bytes are since the map was made; the segments of a GSO packet are counted each, bytes are as the
	// packet left the program, link layer included.
	Packets, Bytes uint64
}

// Traffic is what the programs have counted beside drops, since the map was made.
type Traffic struct {
	// Rows has every path once.
	Rows []TrafficRow
	// NewFlows are flows of clients that dialled this node; NewFlowsHere those that came through a tunnel to an
	// endpoint on this node.
	NewFlows, NewFlowsHere uint64
	// Remapped are the flows whose endpoint sees another source port than the client's, which another flow has.
	Remapped uint64
}

// paths are the rows of TRAFFIC that count packets on their way (enum traffic of bpf/lib/abi.h).
var paths = []struct {
	row uint32
	Path
}{
	{uint32(bpfobj.BeepTrafficTRAFFIC_CLIENT), Path{"client", "endpoint"}},
	{away(bpfobj.BeepTrafficTRAFFIC_CLIENT), Path{"client", "tunnel"}},
	{uint32(bpfobj.BeepTrafficTRAFFIC_PEER), Path{"peer", "endpoint"}},
	{away(bpfobj.BeepTrafficTRAFFIC_PEER), Path{"peer", "client"}},
	{uint32(bpfobj.BeepTrafficTRAFFIC_ENDPOINT), Path{"endpoint", "client"}},
	{away(bpfobj.BeepTrafficTRAFFIC_ENDPOINT), Path{"endpoint", "redirect"}},
	{away(bpfobj.BeepTrafficTRAFFIC_COPY), Path{"copy", "redirect"}},
}

// Paths lists every path that is counted.
func Paths() []Path {
	var all []Path
	for _, path := range paths {
		all = append(all, path.Path)
	}
	return all
}

// away is the row of packets from there that were redirected.
func away(from bpfobj.BeepTraffic) uint32 { return uint32(from + bpfobj.BeepTrafficTRAFFIC_AWAY) }

// Traffic reads every counter, zeros included.
func (k *Kernel) Traffic() (Traffic, error) {
	var traffic Traffic
	for _, path := range paths {
		sum, err := sumCPUs(k.maps.TRAFFIC, path.row)
		if err != nil {
			return Traffic{}, fmt.Errorf("read %s, from %s to %s: %w", bpfobj.BeepMapTRAFFIC, path.From, path.To, err)
		}
		traffic.Rows = append(traffic.Rows, TrafficRow{Path: path.Path, Packets: sum.Packets, Bytes: sum.Bytes})
	}
	for row, to := range map[bpfobj.BeepTraffic]*uint64{
		bpfobj.BeepTrafficTRAFFIC_NEW: &traffic.NewFlows, bpfobj.BeepTrafficTRAFFIC_NEW_HERE: &traffic.NewFlowsHere,
		bpfobj.BeepTrafficTRAFFIC_REMAPPED: &traffic.Remapped,
	} {
		sum, err := sumCPUs(k.maps.TRAFFIC, uint32(row))
		if err != nil {
			return Traffic{}, fmt.Errorf("read %s, row %d: %w", bpfobj.BeepMapTRAFFIC, row, err)
		}
		*to = sum.Packets
	}
	return traffic, nil
}
