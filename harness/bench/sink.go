// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/beep"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/src/config"
	"github.com/beep-lb/beep/src/datapath/maps"
	"github.com/beep-lb/beep/src/model"
	"github.com/beep-lb/beep/src/reconcile"
)

// Size is what an ingress node has to do with.
type Size struct {
	Fronts    int // up to 50,000
	Endpoints int // of a front
	Flows     int // established, up to 2,000,000
}

// String is the size as names of benchmarks have it.
func (s Size) String() string {
	return fmt.Sprintf("fronts=%d/endpoints=%d/flows=%d", s.Fronts, s.Endpoints, s.Flows)
}

// Sink is a stand of which node-a alone runs beep, and node-b counts the tunnels that arrive: the cost of the node that clients dial by
// itself, for any number of clients, which a raw socket stands for.
type Sink struct {
	*topo.Topology
	Size
	daemon *beep.Daemon
	rows   *maps.Kernel
	raw    int // sends whole IPv4 packets
	tunnel int // receives tunnels
	packet []byte
	in     []byte
	next   int // flow
	fresh  int // new flow
}

// The clients: every address has so many ports.
const (
	sinkPort    = 6081 // of the tunnel
	firstClient = 20
	perClient   = 50000
	tableRows   = 1 << 21 // of --flow-table-max-entries: three quarters are TCP's
)

// BuildSink builds a sink with all of its fronts and flows. After an error nothing is left behind.
func BuildSink(size Size) (*Sink, error) {
	s := &Sink{Size: size, raw: -1, tunnel: -1, in: make([]byte, 2048)}
	err := s.build()
	if err == nil {
		err = s.openSockets()
	}
	if err == nil {
		err = s.addFlows()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("sink %s: %w", size, err), s.Close())
	}
	return s, nil
}

const sinkName = "sink"

func (s *Sink) build() (err error) {
	if s.Topology, err = topo.Build(Plan(sinkName)); err != nil {
		return err
	}
	if err := s.Offloads(true); err != nil {
		return err
	}
	flags := s.flags()
	s.daemon, err = beep.Launch(s.Topology, nodeA(sinkName), beep.Options{Controlled: true, Args: []string{
		fmt.Sprintf("--max-fronts=%d", flags.MaxFronts), fmt.Sprintf("--endpoints-per-front=%d", flags.EndpointsPerFront),
		fmt.Sprintf("--flow-table-max-entries=%d", flags.FlowTableMaxEntries),
	}})
	if err != nil {
		return err
	}
	if s.rows, err = maps.Open(s.daemon.PinDir()); err != nil {
		return err
	}
	_, err = reconcile.New(s.rows, time.Now).Apply(s.desired())
	return err
}

// flags are those of the sink's node that size maps.
func (s *Sink) flags() config.Datapath {
	return config.Datapath{MaxFronts: s.Fronts + 16, EndpointsPerFront: max(4, s.Endpoints), FlowTableMaxEntries: tableRows}
}

// memory is what the maps of flows take, in bytes: by the kernel's own account, and as beep computes it from its flags.
func (s *Sink) memory() (kernel, computed uint64, err error) {
	fills, err := s.rows.Fill()
	if err != nil {
		return 0, 0, err
	}
	flags := s.flags()
	expected := maps.SizesOf(&flags).Bytes()
	for _, fill := range fills {
		if strings.HasPrefix(fill.Map, "FLOW_") {
			kernel += fill.Bytes
			computed += expected[fill.Map].Fixed + uint64(fill.Entries)*expected[fill.Map].Row
		}
	}
	return kernel, computed, nil
}

// front is the front that a flow goes through.
func (s *Sink) front(flow int) netip.AddrPort {
	return netip.AddrPortFrom(frontA[0].Addr(), uint16(localPort+flow%s.Fronts))
}

func (s *Sink) desired() model.Desired {
	peer := underB[0].Addr()
	desired := model.Desired{Seed: [16]byte{1}, Underlay4: underA[0].Addr(), Peers: []netip.Addr{peer}}
	for i := range s.Fronts {
		at := s.front(i)
		front := model.Front{Socket: model.Socket{Addr: at.Addr(), Port: at.Port(), Proto: model.TCP}}
		for j := range s.Endpoints {
			addr := netip.AddrFrom4([4]byte{10, 42, 2, byte(j)})
			front.Endpoints = append(front.Endpoints, model.Endpoint{Addr: addr, Port: uint16(podPort + j>>8), Peer: peer})
		}
		slices.SortFunc(front.Endpoints, model.Endpoint.Compare)
		desired.Fronts = append(desired.Fronts, front)
	}
	return desired
}

func (s *Sink) openSockets() (err error) {
	if s.tunnel, err = socket(s.NS(nodeB(sinkName)), unix.SOCK_DGRAM, netip.AddrPortFrom(underB[0].Addr(), sinkPort)); err != nil {
		return err
	}
	err = s.NS(client).Do(func() (err error) {
		s.raw, err = unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
		return err
	})
	if err != nil {
		return fmt.Errorf("open a raw socket: %w", err)
	}
	s.packet, err = packet()
	return err
}

// packet is a TCP segment of 64 bytes of payload without addresses, ports and flags. Nobody on the way looks at TCP's checksum, and
// the kernel fills in that of IPv4 (raw(7)).
func packet() ([]byte, error) {
	buffer := gopacket.NewSerializeBuffer()
	ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolTCP, SrcIP: make([]byte, 4), DstIP: make([]byte, 4)}
	err := gopacket.SerializeLayers(buffer, gopacket.SerializeOptions{FixLengths: true}, ip,
		&layers.TCP{Window: 1024}, gopacket.Payload(make([]byte, smallest)))
	return buffer.Bytes(), err
}

// Flags of TCP (RFC 9293, section 3.1).
const (
	syn = 2
	ack = 16
)

// clientOf is the client of a flow. Numbers from tableRows on are those of new flows.
func clientOf(flow int) netip.AddrPort {
	addr := [4]byte{198, 51, 100, byte(firstClient + flow/perClient)}
	return netip.AddrPortFrom(netip.AddrFrom4(addr), uint16(firstPort+flow%perClient))
}

// send sends the packet of a flow with these flags.
func (s *Sink) send(flow int, flags byte) error {
	const source, destination, header, flagByte = 12, 16, 20, 33
	from, to := clientOf(flow), s.front(flow)
	fromAddr, toAddr := from.Addr().As4(), to.Addr().As4()
	copy(s.packet[source:], fromAddr[:])
	copy(s.packet[destination:], toAddr[:])
	binary.BigEndian.PutUint16(s.packet[header:], from.Port())
	binary.BigEndian.PutUint16(s.packet[header+2:], to.Port())
	s.packet[flagByte] = flags
	return again(func() error { return unix.Sendto(s.raw, s.packet, 0, &unix.SockaddrInet4{Addr: toAddr}) })
}

// burst is how many packets are sent before their tunnels are received.
const burst = 32

// carry sends so many packets of flows that next tells, and sees that each arrives as a tunnel.
func (s *Sink) carry(count int, flags byte, next func() int) error {
	for sent := 0; sent < count; sent += burst {
		for range burst {
			if err := s.send(next(), flags); err != nil {
				return fmt.Errorf("send a packet: %w", err)
			}
		}
		for range burst {
			if n, err := read(s.tunnel, s.in); err != nil || n <= len(s.packet) {
				return fmt.Errorf("a tunnel of %d bytes around %d: %w", n, len(s.packet), err)
			}
		}
	}
	return nil
}

// stride is prime, so that flows follow each other in no order that a cache could guess, and every one has its turn.
const stride = 7368787

// established is a flow that has a row, every one of them in turn.
func (s *Sink) established() int {
	s.next = (s.next + stride) % s.Flows
	return s.next
}

// unknown is a flow that has none. There are more of them than the table of half-open flows has rows.
func (s *Sink) unknown() int {
	s.fresh = (s.fresh + 1) % (20 * perClient)
	return tableRows + s.fresh
}

// addFlows has one connection begin, and writes its row for every other flow as it would be once the pod has answered.
func (s *Sink) addFlows() error {
	if err := s.carry(burst, syn, func() int { return 0 }); err != nil {
		return err
	}
	like, err := s.rows.LookupFlow(maps.FlowPending, s.key(0))
	if err != nil {
		return err
	}
	like.Table, like.Flags = maps.FlowTable, like.Flags|maps.Replied
	for flow := range s.Flows {
		row := like
		row.FlowKey, row.ClientPort = s.key(flow), clientOf(flow).Port()
		if err := s.rows.PutFlow(row); err != nil {
			return err
		}
	}
	return nil
}

func (s *Sink) key(flow int) maps.FlowKey {
	return maps.FlowKey{Kind: maps.Forward, Src: clientOf(flow), Dst: s.front(flow), Proto: model.TCP}
}

// Close ends everything and removes it. It may be called twice.
func (s *Sink) Close() error {
	var errs []error
	for _, fd := range []*int{&s.raw, &s.tunnel} {
		if *fd >= 0 {
			errs = append(errs, unix.Close(*fd))
		}
		*fd = -1
	}
	if s.rows != nil {
		errs = append(errs, s.rows.Close())
		s.rows = nil
	}
	if s.Topology != nil {
		errs = append(errs, s.Topology.Close())
	}
	return errors.Join(errs...)
}

// Curve is what packets cost node-a by the size of one thing, every size in turn.
type Curve struct {
	Name  string // of what grows: fronts, endpoints, flows
	Sizes []Size
	// Packets is how many established ones and how many new flows a sample has.
	Packets       int
	Rounds, Least int // as in Block
	Limit         time.Duration
}

// Run builds the sinks, measures and writes down.
func (c *Curve) Run(ctx context.Context, out *Record) (err error) {
	var sinks []*Sink
	defer func() {
		for _, sink := range sinks {
			err = errors.Join(err, sink.Close())
		}
	}()
	for _, size := range c.Sizes {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		sink, err := BuildSink(size)
		if err != nil {
			return err
		}
		sinks = append(sinks, sink)
		kernel, computed, err := sink.memory()
		if err != nil {
			return err
		}
		out.Sample(fmt.Sprintf("memory/curve=%s/%s", c.Name, size), 1,
			Value{float64(kernel), "kernel-bytes"}, Value{float64(computed), "computed-bytes"})
	}
	m, err := newMeter()
	if err != nil {
		return err
	}
	return pinned(func() error {
		return rounds{c.Rounds, c.Least, c.Limit}.run(ctx, len(sinks), out, func(i int) ([]sample, error) { return c.visit(m, sinks[i]) })
	})
}

func (c *Curve) visit(m *meter, s *Sink) (samples []sample, err error) {
	for _, work := range []struct {
		what  string
		flags byte
		next  func() int
	}{{"established", ack, s.established}, {"new", syn, s.unknown}} {
		spent, err := m.measure(func() error { return s.carry(c.Packets, work.flags, work.next) })
		if err != nil {
			return nil, fmt.Errorf("%s with %s: %w", work.what, s.Size, err)
		}
		name := fmt.Sprintf("ingress/curve=%s/flow=%s/%s", c.Name, work.what, s.Size)
		samples = append(samples, sample{name, c.Packets, spent.values(c.Packets)})
	}
	return samples, nil
}
