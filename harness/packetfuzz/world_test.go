// SPDX-License-Identifier: Apache-2.0

package packetfuzz

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/netns"
	"github.com/beep-lb/beep/harness/progrun"
	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/src/datapath/bpfobj"
	rows "github.com/beep-lb/beep/src/datapath/maps"
	"github.com/beep-lb/beep/src/maglev"
	"github.com/beep-lb/beep/src/model"
)

// hook is where a packet meets the programs.
type hook int

const (
	ingress hook = iota
	egress
)

// tightMTU is the MTU of the way to the third node: what goes there is cut or refused early.
const tightMTU = 600

var seed = [16]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}

// sizes keep the tables small: they are read whole after each packet. None is ever near full.
var sizes = map[string]uint32{
	bpfobj.BeepMapFLOW_TABLE: 512, bpfobj.BeepMapFLOW_DATAGRAMS: 512, bpfobj.BeepMapFLOW_PENDING: 512, bpfobj.BeepMapFRAGMENTS: 256, bpfobj.BeepMapAFFINITY: 256,
}

// world is one node as it is between two inputs: loaded programs, fronts, peers, targets, flows of every kind, and a
// namespace whose routes the programs ask.
type world struct {
	ns      *netns.NS
	objects bpfobj.BeepObjects
	eth0    int
	cpus    int
	fronts  map[model.Socket]front
	base    state // what every input starts from
	now     state
}

// front is a front as the oracle knows it.
type front struct {
	id        uint32
	endpoints []model.Endpoint
	sources   []netip.Prefix // nil: everybody
}

// state is every row that the programs write.
type state struct {
	established, pending map[bpfobj.BeepFlowKey]bpfobj.BeepFlow
	fragments            map[bpfobj.BeepFragmentKey]bpfobj.BeepFragmentPorts
	affinity             map[bpfobj.BeepAffinityKey]bpfobj.BeepAffinity
	drops                []uint64 // packets by reason and direction
}

// newWorld makes the node. Clients of a front without endpoints are answered, so that this code runs, too.
func newWorld(tb require.TB) *world {
	tb.Helper()
	w := &world{fronts: map[model.Socket]front{}, cpus: ebpf.MustPossibleCPU()}
	spec, err := bpfobj.LoadBeep()
	check(tb, err)
	for name, size := range sizes {
		spec.Maps[name].MaxEntries = size
	}
	check(tb, spec.Variables[bpfobj.BeepVarCfgReject].Set(uint8(1)))
	check(tb, spec.LoadAndAssign(&w.objects, nil))
	tb.Cleanup(func() { check(tb, w.objects.Close()) })
	w.ns = netns.New(tb, "fuzz")
	w.network(tb)
	w.fill(tb)
	check(tb, w.converse())
	w.base = w.read(tb)
	w.now = w.base
	return w
}

func check(tb require.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatalf("%+v", err)
	}
}

// network gives the node its device and routes.
func (w *world) network(tb require.TB) {
	tb.Helper()
	link := w.ns.Netlink()
	check(tb, link.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "eth0", MTU: 1500}, PeerName: "wire"}))
	for _, name := range []string{"wire", "eth0"} {
		dev, err := link.LinkByName(name)
		check(tb, err)
		check(tb, link.LinkSetUp(dev))
		w.eth0 = dev.Attrs().Index
		for _, a := range []string{self4 + "/24", self6 + "/64"} {
			addr, err := netlink.ParseAddr(a)
			check(tb, err)
			if name == "eth0" {
				check(tb, link.AddrAdd(dev, addr))
			}
		}
	}
	for to, via := range map[string]string{"0.0.0.0/0": "192.0.2.254", "::/0": "2001:db8:b::fe", third4 + "/32": "192.0.2.253"} {
		_, dst, err := net.ParseCIDR(to)
		check(tb, err)
		route := &netlink.Route{Dst: dst, Gw: netip.MustParseAddr(via).AsSlice()}
		if to == third4+"/32" {
			route.MTU, route.MTULock = tightMTU, true
		}
		check(tb, link.RouteAdd(route))
	}
	check(tb, w.ns.Sysctl("net.ipv4.ip_forward", "1"))
	check(tb, w.ns.Sysctl("net.ipv6.conf.all.forwarding", "1"))
}

// fill writes what the controller would.
func (w *world) fill(tb require.TB) {
	tb.Helper()
	kernel := rows.New(w.objects.BeepMaps)
	check(tb, kernel.SetConfig(rows.Config{Seed: seed, Underlay4: netip.MustParseAddr(self4),
		Underlay6: netip.MustParseAddr(self6), ABI: rows.ABI}))
	for _, peer := range peers {
		check(tb, kernel.PutPeer(peer))
	}
	for _, f := range families {
		for _, proto := range []model.Proto{model.TCP, model.UDP} {
			check(tb, kernel.PutTarget(model.Socket{Addr: f.here, Port: podPort, Proto: proto}))
			fronts := f.fronts()
			for _, port := range slices.Sorted(maps.Keys(fronts)) {
				front := fronts[port]
				front.id = uint32(len(w.fronts) + 1)
				name := model.Socket{Addr: f.self, Port: port, Proto: proto}
				w.fronts[name] = front
				check(tb, w.front(kernel, name, front))
			}
		}
	}
}

// front writes the rows of one front; the one of two endpoints has affinity.
func (w *world) front(kernel *rows.Kernel, name model.Socket, f front) error {
	var errs []error
	var keys [][]byte
	for i, e := range f.endpoints {
		errs = append(errs, kernel.PutEndpoint(rows.EndpointKey{Front: f.id, Generation: 1, Index: uint32(i)}, e))
		keys = append(keys, []byte(e.Addr.String()))
	}
	size := maglev.Size(len(f.endpoints))
	if size > 0 {
		table, err := maglev.Table(seed, keys, size)
		if err != nil {
			return err
		}
		block := rows.RingKey{Front: f.id, Generation: 1}
		for indexes := range slices.Chunk(table, rows.RingBlock) {
			errs = append(errs, kernel.PutRingBlock(block, indexes))
			block.Block++
		}
	}
	for _, prefix := range f.sources {
		errs = append(errs, kernel.PutSource(rows.SourceKey{Front: f.id, Prefix: prefix}))
	}
	return errors.Join(append(errs, kernel.PutFront(rows.FrontMeta{Socket: name, ID: f.id, Generation: 1,
		Count: uint32(len(f.endpoints)), RingSize: uint32(size), ClientIPAffinity: size > 0, AffinitySeconds: 10800,
		SourcesLimited: f.sources != nil}))...)
}

// run gives a packet to a program, as if it were on eth0.
func (w *world) run(at hook, in progrun.In) (progrun.Out, error) {
	prog := w.objects.BeepIngress
	if at == egress {
		prog = w.objects.BeepEgress
	}
	in.Ifindex = w.eth0
	return progrun.Inside(w.ns.Do).Run(prog, in)
}

// read reads every row.
func (w *world) read(tb require.TB) state {
	tb.Helper()
	var s state
	var err error
	s.established = map[bpfobj.BeepFlowKey]bpfobj.BeepFlow{}
	for proto, of := range w.established() {
		proved, err := table[bpfobj.BeepFlowKey, bpfobj.BeepFlow](of)
		check(tb, err)
		for key, row := range proved {
			if key.Proto != proto {
				check(tb, fmt.Errorf("%+v is in %s, where no program will look for it", key, of))
			}
			s.established[key] = row
		}
	}
	s.pending, err = table[bpfobj.BeepFlowKey, bpfobj.BeepFlow](w.objects.FLOW_PENDING)
	check(tb, err)
	s.fragments, err = table[bpfobj.BeepFragmentKey, bpfobj.BeepFragmentPorts](w.objects.FRAGMENTS)
	check(tb, err)
	s.affinity, err = table[bpfobj.BeepAffinityKey, bpfobj.BeepAffinity](w.objects.AFFINITY)
	check(tb, err)
	count := int(w.objects.DROPS.MaxEntries())
	values := make([]bpfobj.BeepDropCount, count*w.cpus)
	var cursor ebpf.MapBatchCursor
	_, err = w.objects.DROPS.BatchLookup(&cursor, make([]uint32, count), values, nil)
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		check(tb, err)
	}
	s.drops = make([]uint64, count)
	for i, value := range values {
		s.drops[i/w.cpus] += value.Packets
	}
	return s
}

// established are the tables of flows that have proved themselves, by protocol.
func (w *world) established() map[uint8]*ebpf.Map {
	return map[uint8]*ebpf.Map{unix.IPPROTO_TCP: w.objects.FLOW_TABLE, unix.IPPROTO_UDP: w.objects.FLOW_DATAGRAMS}
}

// table reads all rows of a hash map.
func table[K comparable, V any](m *ebpf.Map) (map[K]V, error) {
	all := map[K]V{}
	keys, values := make([]K, 512), make([]V, 512)
	var cursor ebpf.MapBatchCursor
	for {
		n, err := m.BatchLookup(&cursor, keys, values, nil)
		for i := range n {
			all[keys[i]] = values[i]
		}
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", m, err)
		}
	}
}

// reset puts every row back to what it was, and gives the CPUs their budget of answers again.
func (w *world) reset(tb require.TB) {
	tb.Helper()
	for proto, table := range w.established() {
		check(tb, restore(table, w.now.provedOf(proto), w.base.provedOf(proto)))
	}
	check(tb, errors.Join(
		restore(w.objects.FLOW_PENDING, w.now.pending, w.base.pending),
		restore(w.objects.FRAGMENTS, w.now.fragments, w.base.fragments),
		restore(w.objects.AFFINITY, w.now.affinity, w.base.affinity),
		w.objects.BUDGET.Put(uint32(0), make([]bpfobj.BeepBudget, w.cpus)),
	))
	drops := w.now.drops
	w.now = w.base
	w.now.drops = drops
}

// provedOf are the established flows of a protocol.
func (s state) provedOf(proto uint8) map[bpfobj.BeepFlowKey]bpfobj.BeepFlow {
	flows := maps.Clone(s.established)
	maps.DeleteFunc(flows, func(key bpfobj.BeepFlowKey, _ bpfobj.BeepFlow) bool { return key.Proto != proto })
	return flows
}

func restore[K, V comparable](m *ebpf.Map, now, base map[K]V) error {
	var errs []error
	for key := range now {
		if _, wanted := base[key]; !wanted {
			errs = append(errs, m.Delete(&key))
		}
	}
	for key, row := range base {
		if have, there := now[key]; !there || have != row {
			errs = append(errs, m.Put(&key, &row))
		}
	}
	return errors.Join(errs...)
}

// same says whether two states have the same rows.
func (s state) same(other state) bool {
	return maps.Equal(s.established, other.established) && maps.Equal(s.pending, other.pending) &&
		maps.Equal(s.fragments, other.fragments) && maps.Equal(s.affinity, other.affinity)
}

// dropped lists the counters that rose since before, as "reason direction".
func (s state) dropped(before state) []string {
	var all []string
	for i := range s.drops {
		for range s.drops[i] - before.drops[i] {
			direction := rows.Direction(i % int(bpfobj.BeepDirectionDIRECTIONS))
			all = append(all, fmt.Sprint(rows.Reason(i/int(bpfobj.BeepDirectionDIRECTIONS)), " ", direction))
		}
	}
	slices.Sort(all)
	return all
}

// flow finds the row of a key where it may be, as the programs do.
func (s state) flow(key bpfobj.BeepFlowKey) (row bpfobj.BeepFlow, found bool) {
	if row, found = s.established[key]; !found {
		row, found = s.pending[key]
	}
	return row, found
}

// census counts the rows by table, kind and state.
func (s state) census() string {
	counts := map[string]int{}
	for name, table := range map[string]map[bpfobj.BeepFlowKey]bpfobj.BeepFlow{"established": s.established, "pending": s.pending} {
		for key, row := range table {
			text := fmt.Sprint(name, " ", rows.Kind(key.Kind))
			if row.Flags&uint32(rows.Closed) != 0 {
				text += " closed"
			}
			if row.ClientPortBe != key.SportBe && rows.Kind(key.Kind) == rows.Backend {
				text += " remapped"
			}
			counts[text]++
		}
	}
	var lines []string
	for text, n := range counts {
		lines = append(lines, fmt.Sprint(text, ": ", n))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
