// SPDX-License-Identifier: Apache-2.0

// Package watch shows a spec the packets that passed one device in a while: which way they took, what their headers
// said. Invariant: Packets returns all of them or an error, never a part.
package watch

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"sync"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/beep-lb/beep/harness/packet"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
)

// limits keep the headers of a tunnelled packet, inner TCP options included.
var limits = traffic.CaptureLimits{Snap: 192, Total: 64 << 20}

// Watch is a running look at a device.
type Watch struct {
	capture *traffic.Capture
	file    string
	remove  func() error
}

// Start watches a device of a host or pod. When it returns, no later packet is missed. It ends by Packets, or with
// the topology.
func Start(topology *topo.Topology, host, device string) (*Watch, error) {
	dir, err := os.MkdirTemp("", "beep-watch-")
	if err != nil {
		return nil, fmt.Errorf("watch %s %s: %w", host, device, err)
	}
	w := &Watch{file: filepath.Join(dir, "pcap"), remove: sync.OnceValue(func() error { return os.RemoveAll(dir) })}
	w.capture, err = traffic.StartCapture(topology.NS(host), device, w.file, limits)
	if err != nil {
		return nil, errors.Join(err, w.remove())
	}
	topology.NS(host).OnClose(w.remove)
	return w, nil
}

// Packets ends the watch and returns what passed, in order; called again, it fails.
func (w *Watch) Packets() (packets []gopacket.Packet, err error) {
	captured, err := w.capture.Stop()
	if err != nil {
		return nil, err
	}
	if captured.Dropped > 0 || captured.Full {
		return nil, fmt.Errorf("watch: packets were missed: %+v", captured)
	}
	defer func() { err = errors.Join(err, w.remove()) }()
	return traffic.ReadCapture(w.file)
}

// Ends are the source and destination address of the outermost IP header; ok is false without one.
func Ends(p gopacket.Packet) (src, dst netip.Addr, ok bool) {
	if p.NetworkLayer() == nil {
		return src, dst, false
	}
	flow := p.NetworkLayer().NetworkFlow()
	src, srcOK := netip.AddrFromSlice(flow.Src().Raw())
	dst, dstOK := netip.AddrFromSlice(flow.Dst().Raw())
	return src, dst, srcOK && dstOK
}

// IsTunnel says whether the packet is one of beep's tunnel, on its usual port.
func IsTunnel(p gopacket.Packet) bool {
	udp, ok := p.TransportLayer().(*layers.UDP)
	return ok && udp.DstPort == packet.GenevePort
}

// MSS is the maximum segment size in bytes that a TCP packet outside of any tunnel announces; ok is false if it
// announces none.
func MSS(p gopacket.Packet) (mss uint16, ok bool) {
	tcp, isTCP := p.TransportLayer().(*layers.TCP)
	if !isTCP {
		return 0, false
	}
	for _, option := range tcp.Options {
		if option.OptionType == layers.TCPOptionKindMSS && len(option.OptionData) == 2 {
			return uint16(option.OptionData[0])<<8 | uint16(option.OptionData[1]), true
		}
	}
	return 0, false
}

// SegmentSizes are those that the SYNs, or with ack the SYN-ACKs, of the watch announce, in order; 0 for one that
// announces none (RFC 9293, section 3.7.1). Without any it is empty.
func (w *Watch) SegmentSizes(ack bool) ([]uint16, error) {
	packets, err := w.Packets()
	if err != nil {
		return nil, err
	}
	var sizes []uint16
	for _, p := range packets {
		if tcp, ok := p.TransportLayer().(*layers.TCP); ok && tcp.SYN && tcp.ACK == ack {
			size, _ := MSS(p)
			sizes = append(sizes, size)
		}
	}
	return sizes, nil
}
