// SPDX-License-Identifier: Apache-2.0

package topo_test

import (
	"context"
	"errors"
	"flag"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"github.com/beep-lb/beep/harness/netns"
	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
)

var update = flag.Bool("update", false, "rewrite testdata with what is drawn now")

func TestMain(m *testing.M) { os.Exit(require.Main(m)) }

// ready names every ready topology, and the pairs of hosts in it that must reach each other without beep
// (from a pod to a client: one way).
var ready = []struct {
	name  string
	plan  topo.Plan
	pairs [][2]string
}{
	{"two-nodes", topo.TwoNodes(topo.Options{Pods: 2}), [][2]string{
		{"client", "node-a"}, {"client", "node-b"}, {"node-a", "node-b"}, {"node-a", "pod-a1"}, {"pod-a1", "pod-a2"},
		{"pod-b1", "client"},
	}},
	{"three-nodes-v4-underlay", topo.ThreeNodes(topo.Options{Underlay: topo.V4, PodMTU: 1400}), [][2]string{
		{"client", "node-c"}, {"pod-c1", "client"},
	}},
	{"behind-router", topo.BehindRouter(2, topo.Options{}), [][2]string{
		{"client", "node-a"}, {"pod-b1", "client"}, {"node-a", "node-b"},
	}},
	{"two-uplinks", topo.TwoUplinks(2, topo.Options{}), [][2]string{
		{"client-1", "node-a"}, {"pod-b1", "client-1"}, {"node-a", "node-b"},
	}},
	{"l3-uplink", topo.L3Uplink(topo.Options{}), [][2]string{{"client-1", "node-b"}, {"pod-a1", "client-1"}}},
	{"two-paths", topo.TwoPaths(topo.Options{MTU: 9000}), [][2]string{
		{"client", "node-a"}, {"client", "node-b"}, {"node-a", "node-b"}, {"pod-b1", "client"},
	}},
}

func TestDrawing(t *testing.T) {
	for _, test := range ready {
		t.Run(test.name, func(t *testing.T) {
			golden := filepath.Join("testdata", test.name+".txt")
			got := test.plan.String()
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("drawing differs (rewrite with go test -run TestDrawing -update), want - got +:\n%s", diff)
			}
		})
	}
}

func TestValidateNamesEveryMistake(t *testing.T) {
	plan := topo.Plan{
		Title: "wrong",
		LANs:  []topo.LAN{{Name: "empty"}},
		Hosts: []topo.Host{
			{Name: "a", Ports: []topo.Port{{Device: "a-device-name-too-long", LAN: "nowhere"}}},
			{Name: "a"},
		},
		Pods: []topo.Pod{{Name: "pod", Node: "a"}},
	}
	_, err := topo.Build(plan)
	if err == nil {
		t.Fatal("a wrong plan was built")
	}
	for _, want := range []string{`LAN empty: no host`, `unknown LAN "nowhere"`, `too-long": want`, `host "a": want a name`, `"a" is no node`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error does not say %q:\n%v", want, err)
		}
	}
}

// ping sends datagrams from one host to a server on another and requires every answer, and the right source.
func ping(t *testing.T, topology *topo.Topology, from, to string, family topo.Families, size int) {
	t.Helper()
	at := netip.AddrPortFrom(topology.Addr(to, family), 7000)
	echo, err := traffic.ServeUDP(topology.NS(to), at)
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	tally, err := traffic.SendUDP(ctx, topology.NS(from), at, traffic.Datagrams{Count: 20, Size: size})
	if err != nil || tally.Received != 20 || tally.Lost != 0 {
		t.Fatalf("%s to %s %s: %s, %v", from, to, at, tally, err)
	}
	for source := range tally.Sources {
		if source.Addr() != topology.Addr(from, family) {
			t.Errorf("%s saw %s from %s, want address %s", to, source, from, topology.Addr(from, family))
		}
	}
}

// replyPath sends datagrams from a pod to a client and requires that they arrive with the pod's address. Nobody
// answers: a client has no route to pods, so that only what beep un-NATs can work.
func replyPath(t *testing.T, topology *topo.Topology, pod, client string, family topo.Families) {
	t.Helper()
	conn, err := topology.NS(client).ListenPacket(netip.AddrPortFrom(topology.Addr(client, family), 7000))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	to := conn.LocalAddr().(*net.UDPAddr).AddrPort()
	from, err := topology.NS(pod).DialFrom(ctx, "udp", netip.AddrPort{}, to)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	if _, err := from.Write([]byte("reply")); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	_, source, err := conn.ReadFromUDPAddrPort(make([]byte, 16))
	if err != nil || source.Addr().Unmap() != topology.Addr(pod, family) {
		t.Fatalf("%s to %s %s: source %s, %v", pod, client, to, source, err)
	}
}

func TestReadyTopologiesCarryPackets(t *testing.T) {
	require.Root(t)
	require.Tun(t)
	for _, test := range ready {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			topology := topo.New(t, test.plan)
			for _, on := range []bool{true, false} {
				if err := topology.Offloads(on); err != nil {
					t.Fatal(err)
				}
				for _, pair := range test.pairs {
					for _, family := range []topo.Families{topo.V4, topo.V6} {
						if strings.HasPrefix(pair[0], "pod") && strings.HasPrefix(pair[1], "client") {
							replyPath(t, topology, pair[0], pair[1], family)
							continue
						}
						ping(t, topology, pair[0], pair[1], family, 4000) // fragmented on 1500
					}
				}
			}
		})
	}
}

// largestFrame moves a stream from client to node-a and returns the length of the largest frame that node-a saw.
func largestFrame(t *testing.T, topology *topo.Topology, at netip.AddrPort) int {
	t.Helper()
	path := filepath.Join(t.TempDir(), "stream.pcap")
	capture, err := traffic.StartCapture(topology.NS("node-a"), "eth0", path, traffic.CaptureLimits{Snap: 64})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := traffic.Exchange(ctx, topology.NS("client"), at, 4<<20, 4<<20); err != nil {
		t.Fatal(err)
	}
	if _, err := capture.Stop(); err != nil {
		t.Fatal(err)
	}
	packets, err := traffic.ReadCapture(path)
	if err != nil {
		t.Fatal(err)
	}
	largest := 0
	for _, packet := range packets {
		largest = max(largest, packet.Metadata().Length)
	}
	return largest
}

func TestOffloadsDecideWhatIsOnTheWire(t *testing.T) {
	require.Root(t)
	t.Parallel()
	topology := topo.New(t, topo.TwoNodes(topo.Options{}))
	at := netip.AddrPortFrom(topology.Addr("node-a", topo.V6), 7002)
	if _, err := traffic.ServeTCP(topology.NS("node-a"), "node-a", at); err != nil {
		t.Fatal(err)
	}
	const full = 14 + topo.DefaultMTU // with the Ethernet header
	for _, on := range []bool{false, true, false} {
		if err := topology.Offloads(on); err != nil {
			t.Fatal(err)
		}
		if largest := largestFrame(t, topology, at); largest > full != on || largest < full {
			t.Errorf("offloads %t: the largest frame has %d bytes", on, largest)
		}
	}
}

// leavesBy requires that a host sends what is for an address out of that device.
func leavesBy(t *testing.T, topology *topo.Topology, host, device string, to netip.Addr) {
	t.Helper()
	link, err := topology.NS(host).Netlink().LinkByName(device)
	if err != nil {
		t.Fatal(err)
	}
	routes, err := topology.NS(host).Netlink().RouteGet(to.AsSlice())
	if err != nil || len(routes) != 1 || routes[0].LinkIndex != link.Attrs().Index {
		t.Errorf("%s to %s: %v, %v; want it by %s", host, to, routes, err, device)
	}
}

func TestSecondUplinkHasNoWayBack(t *testing.T) {
	require.Root(t)
	require.Tun(t)
	t.Parallel()
	for device, plan := range map[string]topo.Plan{
		"eth1": topo.TwoUplinks(2, topo.Options{}), "tun0": topo.L3Uplink(topo.Options{}),
	} {
		topology := topo.New(t, plan)
		for _, family := range []topo.Families{topo.V4, topo.V6} {
			leavesBy(t, topology, "node-a", "eth0", topology.Addr("client-2", family))
			addrs := topology.Addrs("node-a")
			second := addrs[len(addrs)/2+int(family)-1] // v4, v6 of the first device, then of the second
			arrives(t, topology, topology.NS("client-2"), second, device)
			unreachable(t, topology, "router", topology.Addr("client-2", family))
		}
	}
}

// arrives requires that a datagram from a namespace reaches node-a at that address, by that device.
func arrives(t *testing.T, topology *topo.Topology, from *netns.NS, to netip.Addr, device string) {
	t.Helper()
	link, err := topology.NS("node-a").Netlink().LinkByName(device)
	if err != nil {
		t.Fatal(err)
	}
	before := link.Attrs().Statistics.RxPackets
	server, err := topology.NS("node-a").ListenPacket(netip.AddrPortFrom(to, 7003))
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	conn, err := from.DialContext(t.Context(), "udp", server.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if err := server.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := server.ReadFromUDPAddrPort(make([]byte, 16)); err != nil {
		t.Fatalf("%s to %s: %v", from.Name(), to, err)
	}
	if link, err = topology.NS("node-a").Netlink().LinkByName(device); err != nil || link.Attrs().Statistics.RxPackets == before {
		t.Errorf("%s received nothing on %s, %v", to, device, err)
	}
}

func TestTwoPathsMoveByRouteAndByRule(t *testing.T) {
	require.Root(t)
	t.Parallel()
	topology := topo.New(t, topo.TwoPaths(topo.Options{}))
	for family, number := range map[topo.Families]int{topo.V4: netlink.FAMILY_V4, topo.V6: netlink.FAMILY_V6} {
		movePath(t, topology, family, number)
	}
}

func movePath(t *testing.T, topology *topo.Topology, family topo.Families, number int) {
	t.Helper()
	to := topology.Addr("node-b", family)
	by := func(want netip.Addr) {
		t.Helper()
		routes, err := topology.NS("node-a").Netlink().RouteGet(to.AsSlice())
		if err != nil || len(routes) != 1 || !routes[0].Gw.Equal(want.AsSlice()) {
			t.Errorf("node-a to %s: %v, %v; want it by %s", to, routes, err, want)
		}
	}
	first, second := topology.Addr("gw-1", family), topology.Addr("gw-2", family)
	by(first)
	rule := netlink.NewRule()
	rule.Table, rule.Priority, rule.Family = topo.PathTable, 100, number
	if err := topology.NS("node-a").Netlink().RuleAdd(rule); err != nil {
		t.Fatal(err)
	}
	by(second)
	ping(t, topology, "node-a", "node-b", family, 100)
	if err := topology.NS("node-a").Netlink().RuleDel(rule); err != nil {
		t.Fatal(err)
	}
	by(first)
	for _, route := range topology.Host("node-a").Routes {
		if route.To.Contains(to) && route.Table == 0 {
			route.Via = second
			if err := topology.ReplaceRoute("node-a", route); err != nil {
				t.Fatal(err)
			}
		}
	}
	by(second)
}

// unreachable requires that the kernel of one host knows no way to an address.
func unreachable(t *testing.T, topology *topo.Topology, from string, to netip.Addr) {
	t.Helper()
	routes, err := topology.NS(from).Netlink().RouteGet(to.AsSlice())
	if err == nil {
		t.Errorf("%s has a route to %s: %v", from, to, routes)
	}
}

func TestNodesKnowOnlyWhatThePlanSays(t *testing.T) {
	require.Root(t)
	t.Parallel()
	topology := topo.New(t, topo.TwoNodes(topo.Options{Underlay: topo.V4}))
	for _, family := range []topo.Families{topo.V4, topo.V6} {
		unreachable(t, topology, "node-a", topology.Addr("pod-b1", family))
		unreachable(t, topology, "client", topology.Addr("pod-a1", family))
	}
	unreachable(t, topology, "node-a", topology.Addr("node-b", topo.V6))
}

func TestL3Wire(t *testing.T) {
	require.Root(t)
	require.Tun(t)
	t.Parallel()
	plan := topo.L3Uplink(topo.Options{Families: topo.V4})
	plan.Wires[1].MTU = 1420
	topology := topo.New(t, plan)
	back := topo.Route{To: netip.PrefixFrom(topology.Addr("client-2", topo.V4), 32), Device: "tun0"}
	if err := topology.ReplaceRoute("node-a", back); err != nil {
		t.Fatal(err)
	}
	link, err := topology.NS("node-a").Netlink().LinkByName("tun0")
	if err != nil {
		t.Fatal(err)
	}
	if got := link.Attrs(); got.EncapType != "none" || got.MTU != 1420 {
		t.Errorf("tun0 has link type %s and mtu %d, want none and 1420", got.EncapType, got.MTU)
	}
	at := netip.AddrPortFrom(plan.Wires[1].A.Addrs[0].Addr(), 7001)
	if _, err := traffic.ServeTCP(topology.NS("node-a"), "node-a", at); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	transfer, err := traffic.Exchange(ctx, topology.NS("client-2"), at, 8<<20, 8<<20)
	if err != nil {
		t.Fatal(err)
	}
	if transfer.Client.Addr() != topology.Addr("client-2", topo.V4) {
		t.Errorf("node-a saw %s", transfer.Client)
	}
	if err := topology.DeleteRoute("node-a", back); err != nil {
		t.Error(err)
	}
}

func TestRecreateGivesANewDevice(t *testing.T) {
	require.Root(t)
	t.Parallel()
	topology := topo.New(t, topo.BehindRouter(1, topo.Options{}))
	before, err := topology.NS("node-a").Netlink().LinkByName("eth0")
	if err != nil {
		t.Fatal(err)
	}
	if err := topology.Recreate("node-a", "eth0"); err != nil {
		t.Fatal(err)
	}
	after, err := topology.NS("node-a").Netlink().LinkByName("eth0")
	if err != nil {
		t.Fatal(err)
	}
	if before.Attrs().Index == after.Attrs().Index {
		t.Errorf("eth0 still has ifindex %d", before.Attrs().Index)
	}
	ping(t, topology, "client", "node-a", topo.V6, 100)
	if err := topology.Recreate("node-a", "eth7"); err == nil {
		t.Error("a device that does not exist was recreated")
	}
}

func TestPodMTU(t *testing.T) {
	require.Root(t)
	t.Parallel()
	topology := topo.New(t, topo.TwoNodes(topo.Options{MTU: 9000, PodMTU: 1400}))
	for host, wants := range map[string]map[string]int{
		"pod-a1": {"eth0": 1400}, "node-a": {"eth0": 9000, "pod-a1": 1400}, "client": {"eth0": 9000},
	} {
		for device, want := range wants {
			link, err := topology.NS(host).Netlink().LinkByName(device)
			if err != nil || link.Attrs().MTU != want {
				t.Errorf("%s %s: mtu %v, %v; want %d", host, device, link, err, want)
			}
		}
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	require.Root(t)
	require.Tun(t)
	t.Parallel()
	topology, err := topo.Build(topo.L3Uplink(topo.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	members := topology.Members()
	if err := errors.Join(topology.Close(), topology.Close()); err != nil {
		t.Error(err)
	}
	for _, member := range members {
		if _, err := os.Stat(member.NS.Path()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left behind: %v", member.NS.Path(), err)
		}
	}
	if links, err := netlink.LinkList(); err == nil {
		for _, link := range links {
			if strings.HasPrefix(link.Attrs().Name, "port") || strings.HasPrefix(link.Attrs().Name, "tun") {
				t.Errorf("device %s is left behind", link.Attrs().Name)
			}
		}
	}
}
