// SPDX-License-Identifier: Apache-2.0

package packettest

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/netns"
	"github.com/beep-lb/beep/harness/progrun"
	"github.com/beep-lb/beep/src/datapath/bpfobj"
	"github.com/beep-lb/beep/src/datapath/maps"
	"github.com/beep-lb/beep/src/maglev"
	"github.com/beep-lb/beep/src/model"
)

// The addresses of all sentences: client → node A (this one), peer B, a pod on each.
const (
	client  = "198.51.100.7"
	client6 = "2001:db8:c::7"
	self    = "192.0.2.1"
	self6   = "2001:db8:b::1"
	peer    = "192.0.2.2"
	peer6   = "2001:db8:b::2"
	here    = "10.42.0.5" // a pod on this node
	here6   = "2001:db8:a::5"
	there   = "10.42.1.5" // a pod on the peer
	there6  = "2001:db8:a:1::5"

	clientPort = 40000
	frontPort  = 80
	podPort    = 8080
	tunnelPort = 50000 // the outer source port of tunnels that the tests make
)

// ours is the mark of a packet that the programs redirect (MARK_OURS in bpf/lib/config.h).
const ours = 0x62656570

var seed = [16]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}

// node is one node: the loaded programs with maps of their own, and a namespace with two uplinks whose
// routes the programs ask. eth0 has the nodes' LAN and the default route, eth1 a LAN of clients.
type node struct {
	ns              *netns.NS
	maps            *maps.Kernel
	ingress, egress *ebpf.Program
	affinity        *ebpf.Map
	eth0, eth1      int
}

// newNode makes the node that all sentences begin with: underlay addresses of both families, nothing else.
func newNode(tweaks ...func(*ebpf.CollectionSpec)) *node {
	GinkgoHelper()
	objects := loaded(tweaks...)
	n := &node{
		ns:       netns.New(GinkgoTB(), "packet"),
		maps:     maps.New(objects.BeepMaps),
		ingress:  objects.BeepIngress,
		egress:   objects.BeepEgress,
		affinity: objects.AFFINITY,
	}
	Expect(n.maps.SetConfig(maps.Config{
		Seed: seed, Underlay4: netip.MustParseAddr(self), Underlay6: netip.MustParseAddr(self6), ABI: maps.ABI,
	})).To(Succeed())
	n.eth0 = n.uplink("eth0", "192.0.2.1/24", "2001:db8:b::1/64")
	n.eth1 = n.uplink("eth1", "198.51.100.129/25", "2001:db8:c:1::1/64")
	n.route("0.0.0.0/0", "192.0.2.254")
	n.route("::/0", "2001:db8:b::fe")
	Expect(n.ns.Sysctl("net.ipv4.ip_forward", "1")).To(Succeed())
	Expect(n.ns.Sysctl("net.ipv6.conf.all.forwarding", "1")).To(Succeed())
	n.tick()
	return n
}

// tick waits for the next tick, past which programs that have been another node's keep no answer of that one's FIB.
func (n *node) tick() {
	GinkgoHelper()
	coarse := func() (t unix.Timespec) {
		Expect(unix.ClockGettime(unix.CLOCK_MONOTONIC_COARSE, &t)).To(Succeed())
		return t
	}
	before := coarse()
	Eventually(coarse, "10s", "1ms").ShouldNot(Equal(before))
}

// uplink makes one end of a veth pair with the addresses; the other end lies beside it and answers nothing.
func (n *node) uplink(name string, addresses ...string) int {
	GinkgoHelper()
	link := n.ns.Netlink()
	Expect(link.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name, MTU: 1500}, PeerName: name + "p"})).To(Succeed())
	for _, end := range []string{name, name + "p"} {
		dev, err := link.LinkByName(end)
		Expect(err).NotTo(HaveOccurred())
		Expect(link.LinkSetUp(dev)).To(Succeed())
	}
	dev, err := link.LinkByName(name)
	Expect(err).NotTo(HaveOccurred())
	for _, a := range addresses {
		addr, err := netlink.ParseAddr(a)
		Expect(err).NotTo(HaveOccurred())
		Expect(link.AddrAdd(dev, addr)).To(Succeed())
	}
	return dev.Attrs().Index
}

// routeMTU makes a route with a locked MTU of its own: to forwarded packets, and so to the FIB lookup of a program,
// Linux applies no other MTU of an IPv4 route (ip_mtu_from_fib_result).
func (n *node) routeMTU(to, via string, mtu int) {
	GinkgoHelper()
	_, dst, err := net.ParseCIDR(to)
	Expect(err).NotTo(HaveOccurred())
	Expect(n.ns.Netlink().RouteAdd(&netlink.Route{Dst: dst, Gw: netip.MustParseAddr(via).AsSlice(), MTU: mtu, MTULock: true})).To(Succeed())
}

// mtu changes a device's MTU.
func (n *node) mtu(device string, mtu int) {
	GinkgoHelper()
	link := n.ns.Netlink()
	dev, err := link.LinkByName(device)
	Expect(err).NotTo(HaveOccurred())
	Expect(link.LinkSetMTU(dev, mtu)).To(Succeed())
}

func (n *node) unroute(to string) {
	GinkgoHelper()
	_, dst, err := net.ParseCIDR(to)
	Expect(err).NotTo(HaveOccurred())
	Expect(n.ns.Netlink().RouteDel(&netlink.Route{Dst: dst})).To(Succeed())
}

func (n *node) route(to, via string) {
	GinkgoHelper()
	_, dst, err := net.ParseCIDR(to)
	Expect(err).NotTo(HaveOccurred())
	Expect(n.ns.Netlink().RouteAdd(&netlink.Route{Dst: dst, Gw: netip.MustParseAddr(via).AsSlice()})).To(Succeed())
}

// swap makes this node the peer of the sentences.
func (n *node) swap() {
	GinkgoHelper()
	Expect(n.maps.SetConfig(maps.Config{
		Seed: seed, Underlay4: netip.MustParseAddr(peer), Underlay6: netip.MustParseAddr(peer6), ABI: maps.ABI,
	})).To(Succeed())
	link := n.ns.Netlink()
	dev, err := link.LinkByName("eth0")
	Expect(err).NotTo(HaveOccurred())
	for from, to := range map[string]string{self + "/24": peer + "/24", self6 + "/64": peer6 + "/64"} {
		old, err := netlink.ParseAddr(from)
		Expect(err).NotTo(HaveOccurred())
		now, err := netlink.ParseAddr(to)
		Expect(err).NotTo(HaveOccurred())
		Expect(link.AddrDel(dev, old)).To(Succeed())
		Expect(link.AddrAdd(dev, now)).To(Succeed())
	}
}

// front makes a front with its endpoints, "10.42.0.5:8080" on this node or "10.42.1.5:8080@192.0.2.2".
func (n *node) front(name string, affinity bool, endpoints ...string) {
	GinkgoHelper()
	socket, err := model.ParseSocket(name)
	Expect(err).NotTo(HaveOccurred())
	fronts, err := n.maps.Fronts()
	Expect(err).NotTo(HaveOccurred())
	id := uint32(len(fronts) + 1)
	size := n.endpoints(id, 1, endpoints...)
	Expect(n.maps.PutFront(maps.FrontMeta{
		Socket: socket, ID: id, Generation: 1, Count: uint32(len(endpoints)), RingSize: size,
		ClientIPAffinity: affinity, AffinitySeconds: 10800,
	})).To(Succeed())
}

// endpoints writes an endpoint set and its ring, whose size it returns.
func (n *node) endpoints(front, generation uint32, endpoints ...string) uint32 {
	GinkgoHelper()
	keys := make([][]byte, len(endpoints))
	for i, text := range endpoints {
		e := endpoint(text)
		keys[i] = []byte(text)
		if e.Peer.IsValid() {
			n.allow(e.Peer.String())
		}
		Expect(n.maps.PutEndpoint(maps.EndpointKey{Front: front, Generation: generation, Index: uint32(i)}, e)).To(Succeed())
	}
	size := maglev.Size(len(endpoints))
	if size == 0 {
		return 0
	}
	table, err := maglev.Table(seed, keys, size)
	Expect(err).NotTo(HaveOccurred())
	block := uint32(0)
	for indexes := range slices.Chunk(table, maps.RingBlock) {
		Expect(n.maps.PutRingBlock(maps.RingKey{Front: front, Generation: generation, Block: block}, indexes)).To(Succeed())
		block++
	}
	return uint32(size)
}

// timeout sets the seconds for which a front remembers a client's pod.
func (n *node) timeout(name string, seconds uint32) {
	GinkgoHelper()
	front := n.meta(name)
	front.AffinitySeconds = seconds
	Expect(n.maps.PutFront(front)).To(Succeed())
}

// regenerate gives a front another endpoint set.
func (n *node) regenerate(name string, endpoints ...string) {
	GinkgoHelper()
	front := n.meta(name)
	front.Generation++
	front.Count = uint32(len(endpoints))
	front.RingSize = n.endpoints(front.ID, front.Generation, endpoints...)
	Expect(n.maps.PutFront(front)).To(Succeed())
}

// ageAffinity makes every row of AFFINITY that many seconds older.
func (n *node) ageAffinity(seconds uint32) {
	GinkgoHelper()
	rows := map[bpfobj.BeepAffinityKey]bpfobj.BeepAffinity{}
	var key bpfobj.BeepAffinityKey
	var row bpfobj.BeepAffinity
	all := n.affinity.Iterate()
	for all.Next(&key, &row) {
		rows[key] = row
	}
	Expect(all.Err()).NotTo(HaveOccurred())
	for key, row := range rows {
		row.LastSeen -= seconds
		Expect(n.affinity.Update(&key, &row, ebpf.UpdateExist)).To(Succeed())
	}
}

// sources limits a front to ranges of clients.
func (n *node) sources(name string, ranges ...string) {
	GinkgoHelper()
	front := n.meta(name)
	for _, r := range ranges {
		Expect(n.maps.PutSource(maps.SourceKey{Front: front.ID, Prefix: netip.MustParsePrefix(r)})).To(Succeed())
	}
	front.SourcesLimited = true
	Expect(n.maps.PutFront(front)).To(Succeed())
	Expect(n.maps.RaiseEpoch()).To(Succeed())
}

// meta is a front's row.
func (n *node) meta(name string) maps.FrontMeta {
	GinkgoHelper()
	socket, err := model.ParseSocket(name)
	Expect(err).NotTo(HaveOccurred())
	fronts, err := n.maps.Fronts()
	Expect(err).NotTo(HaveOccurred())
	i := slices.IndexFunc(fronts, func(f maps.FrontMeta) bool { return f.Socket == socket })
	Expect(i).NotTo(BeNumerically("<", 0), name)
	return fronts[i]
}

func endpoint(text string) model.Endpoint {
	GinkgoHelper()
	at, via, remote := strings.Cut(text, "@")
	socket, err := netip.ParseAddrPort(at)
	Expect(err).NotTo(HaveOccurred())
	e := model.Endpoint{Addr: socket.Addr(), Port: socket.Port()}
	if remote {
		e.Peer = netip.MustParseAddr(via)
	}
	return e
}

// allow adds peers to NODE_ALLOW.
func (n *node) allow(peers ...string) {
	GinkgoHelper()
	for _, p := range peers {
		Expect(n.maps.PutPeer(netip.MustParseAddr(p))).To(Succeed())
	}
}

// target adds pod sockets to POD_TARGETS.
func (n *node) target(names ...string) {
	GinkgoHelper()
	for _, name := range names {
		socket, err := model.ParseSocket(name)
		Expect(err).NotTo(HaveOccurred())
		Expect(n.maps.PutTarget(socket)).To(Succeed())
	}
}

// takeAllPorts fills the flow table with live flows of other fronts: every source port of the client towards
// the pod here is taken.
func takeAllPorts(n *node) {
	GinkgoHelper()
	pod, dialler := netip.MustParseAddrPort(at(here, podPort)), netip.MustParseAddr(client)
	for port := range 0x10000 {
		Expect(n.maps.PutFlow(maps.Flow{
			FlowKey: maps.FlowKey{Kind: maps.Reverse, Proto: model.TCP, Src: pod, Dst: netip.AddrPortFrom(dialler, uint16(port))},
			Table:   maps.FlowTable, Nat: netip.MustParseAddrPort(at(peer, 81)), Peer: netip.MustParseAddr(peer),
			ClientPort: uint16(port), Flags: maps.Paired | maps.Tunnelled | maps.Replied,
		})).To(Succeed())
	}
}

type hook int

const (
	ingress hook = iota
	egress
)

// run gives one packet to a program as if it were on eth0.
func (n *node) run(at hook, in []byte) progrun.Out {
	GinkgoHelper()
	return n.runOn(at, progrun.In{Packet: in, Ifindex: n.eth0})
}

func (n *node) runOn(at hook, in progrun.In) progrun.Out {
	GinkgoHelper()
	prog := n.ingress
	if at == egress {
		prog = n.egress
	}
	out, err := progrun.Inside(n.ns.Do).Run(prog, in)
	Expect(err).NotTo(HaveOccurred())
	return out
}

// drops is every counter that is not zero, as "no-endpoint ingress".
func (n *node) drops() map[string]uint64 {
	GinkgoHelper()
	rows, err := n.maps.Drops()
	Expect(err).NotTo(HaveOccurred())
	counts := map[string]uint64{}
	for _, row := range rows {
		if row.Packets > 0 {
			counts[fmt.Sprint(row.Reason, " ", row.Direction)] = row.Packets
		}
	}
	return counts
}

// traffic is how many packets were counted on any path.
func (n *node) traffic() (packets uint64) {
	GinkgoHelper()
	counted, err := n.maps.Traffic()
	Expect(err).NotTo(HaveOccurred())
	for _, row := range counted.Rows {
		packets += row.Packets
	}
	return packets
}

// flows is every row as a line, sorted: "pending" or, in its protocol's table, "flow", kind, the packet it matches, what that becomes, who is at the
// other end, and its state.
func (n *node) flows() []string {
	GinkgoHelper()
	lines := []string{}
	Expect(n.maps.Flows(func(f maps.Flow) bool {
		lines = append(lines, line(f))
		return true
	})).To(Succeed())
	slices.Sort(lines)
	return lines
}

func line(f maps.Flow) string {
	table := f.Table // where no program will look for it
	switch {
	case f.Table == maps.FlowPending:
		table = "pending"
	case f.Proto == model.UDP && f.Table == maps.FlowDatagrams, f.Proto == model.TCP && f.Table == maps.FlowTable:
		table = "flow"
	}
	text := fmt.Sprintf("%s %s %s %s>%s = %s port %d", table, f.Kind, f.Proto, f.Src, f.Dst, f.Nat, f.ClientPort)
	if f.Peer.IsValid() {
		text += " via " + f.Peer.String()
	}
	if state := f.Flags.String(); state != "" {
		text += " " + state
	}
	return text
}

// replace gives a front another endpoint, as a new generation.
func (n *node) replace(name, to string) {
	GinkgoHelper()
	front := n.meta(name)
	front.Generation++
	Expect(n.maps.PutEndpoint(maps.EndpointKey{Front: front.ID, Generation: front.Generation}, endpoint(to))).To(Succeed())
	Expect(n.maps.PutFront(front)).To(Succeed())
}

// forget removes the rows of one kind, as an eviction would.
func (n *node) forget(kind maps.Kind) {
	GinkgoHelper()
	Expect(n.maps.Flows(func(f maps.Flow) bool {
		if f.Kind == kind {
			Expect(n.maps.DeleteFlow(f.Table, f.FlowKey)).To(Succeed())
		}
		return true
	})).To(Succeed())
}

// age makes every row that many seconds older.
func (n *node) age(seconds uint32) {
	GinkgoHelper()
	var rows []maps.Flow
	Expect(n.maps.Flows(func(f maps.Flow) bool { rows = append(rows, f); return true })).To(Succeed())
	for _, f := range rows {
		f.LastSeen -= seconds
		Expect(n.maps.PutFlow(f)).To(Succeed())
	}
}

// uplinkGone makes every flow's uplink a device that does not exist.
func (n *node) uplinkGone(ifindex uint32) {
	GinkgoHelper()
	var rows []maps.Flow
	Expect(n.maps.Flows(func(f maps.Flow) bool { rows = append(rows, f); return true })).To(Succeed())
	for _, f := range rows {
		f.Uplink = ifindex
		Expect(n.maps.PutFlow(f)).To(Succeed())
	}
}

// now is the coarse monotonic clock in seconds, as the programs read it.
func (n *node) now() uint32 {
	GinkgoHelper()
	var t unix.Timespec
	Expect(unix.ClockGettime(unix.CLOCK_MONOTONIC_COARSE, &t)).To(Succeed())
	return uint32(t.Sec)
}

// clientPort is the port that the endpoint sees, of the row of a kind whose peer is given.
func (n *node) clientPort(kind, via string) uint16 {
	GinkgoHelper()
	var port uint16
	Expect(n.maps.Flows(func(f maps.Flow) bool {
		if f.Kind.String() == kind && f.Peer == netip.MustParseAddr(via) {
			port = f.ClientPort
		}
		return true
	})).To(Succeed())
	Expect(port).NotTo(BeZero())
	return port
}

// expectMark says that the packet is known as ours where it leaves.
func expectMark(out progrun.Out) {
	GinkgoHelper()
	Expect(out.Mark).To(BeEquivalentTo(ours))
}
