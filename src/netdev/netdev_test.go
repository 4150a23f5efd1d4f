// SPDX-License-Identifier: Apache-2.0

package netdev

import (
	"errors"
	"net/netip"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netns"
)

// inNamespace runs a test body in a network namespace of its own. The thread is never unlocked, so the
// runtime ends it, and the namespace, with the goroutine.
func inNamespace(t *testing.T, body func(t *testing.T)) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		ns, err := netns.New()
		if err != nil {
			t.Errorf("a network namespace (needs root): %v", err)
			return
		}
		defer ns.Close()
		body(t)
	}()
	<-done
}

// ip runs ip-link(8) and its kin in the thread's namespace, one command a line.
func ip(t *testing.T, commands string) {
	t.Helper()
	command := exec.Command("ip", "-batch", "-")
	command.Stdin = strings.NewReader(commands)
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("ip: %v\n%s%s", err, commands, out)
		runtime.Goexit()
	}
}

func open(t *testing.T) *Host {
	t.Helper()
	host, err := Open()
	if err != nil {
		t.Error(err)
		runtime.Goexit()
	}
	t.Cleanup(host.Close)
	return host
}

func names(links []Link) []string {
	var names []string
	for _, link := range links {
		names = append(names, link.Name)
	}
	return names
}

func TestListAndByName(t *testing.T) {
	inNamespace(t, func(t *testing.T) {
		ip(t, `link add eth0 address 02:00:00:00:00:01 mtu 1400 type veth peer name eth1
			link set eth0 up
			tuntap add dev tun0 mode tun`)
		host := open(t)
		links, err := host.List()
		if err != nil {
			t.Error(err)
			return
		}
		got := map[string]Link{}
		for _, link := range links {
			got[link.Name] = link
		}
		want := Link{Index: got["eth0"].Index, Name: "eth0", MAC: "02:00:00:00:00:01", MTU: 1400, Type: 1, Kind: "veth", Up: true}
		if got["eth0"] != want {
			t.Errorf("eth0 is %#v, want %+v", got["eth0"], want)
		}
		if tun := got["tun0"]; tun.Type != 0xFFFE || tun.MAC != "" || tun.Kind != "tuntap" || tun.Up {
			t.Errorf("tun0 is %#v", tun)
		}
		if lo := got["lo"]; lo.Type != 772 || lo.Index != 1 || lo != links[0] {
			t.Errorf("lo is %#v", lo)
		}
		byName, err := host.ByName("eth0")
		if err != nil || byName != want {
			t.Errorf("eth0 by name is %#v, %v", byName, err)
		}
		_, err = host.ByName("eth9")
		if !errors.Is(err, ErrNoLink) || !strings.HasPrefix(err.Error(), `interface "eth9": no such interface: this node has lo, `) {
			t.Errorf("eth9: %v", err)
		}
	})
}

func TestAutoUplinks(t *testing.T) {
	const devices = `link add eth0 type veth peer name p0
		link add eth1 type veth peer name p1
		link add eth2 type veth peer name p2
		link set lo up
		link set eth0 up
		link set p0 up
		link set eth1 up
		link set p1 up
		link set eth2 up
		link set p2 up
		addr add 192.0.2.1/24 dev eth0
		addr add 198.51.100.1/25 dev eth1
		addr add 198.51.100.129/25 dev eth2
		addr add 192.0.2.99/32 dev lo
		addr add 2001:db8:b::1/64 dev eth0 nodad
		addr add 2001:db8:c::1/64 dev eth2 nodad
		`
	tests := []struct {
		name   string
		routes string
		nodes  []string
		want   []string
		err    string
	}{
		{"the device of a node address", "", []string{"192.0.2.1"}, []string{"eth0"}, ""},
		{"node addresses in their order", "", []string{"198.51.100.129", "192.0.2.1"}, []string{"eth2", "eth0"}, ""},
		{"both families on one device are one uplink", "", []string{"192.0.2.1", "2001:db8:b::1"}, []string{"eth0"}, ""},
		{"a mapped address is the address", "", []string{"::ffff:192.0.2.1"}, []string{"eth0"}, ""},
		{"the device of the default route", "route add default via 198.51.100.2", nil, []string{"eth1"}, ""},
		{"an IPv6 default route", "route add default via 2001:db8:c::2", nil, []string{"eth2"}, ""},
		{"IPv4 before IPv6", "route add default via 2001:db8:b::2\nroute add default via 198.51.100.2", nil, []string{"eth1", "eth0"}, ""},
		{"better metrics first", "route add default via 198.51.100.2 metric 200\nroute add default via 198.51.100.130 metric 100",
			nil, []string{"eth2", "eth1"}, ""},
		{"every next hop of a multipath route", "route add default nexthop via 198.51.100.130 nexthop via 198.51.100.2",
			nil, []string{"eth2", "eth1"}, ""},
		{"node address, then default route, each once", "route add default via 198.51.100.2\nroute add default via 192.0.2.2 metric 9",
			[]string{"192.0.2.1"}, []string{"eth0", "eth1"}, ""},
		{"an unreachable default route leads nowhere", "route add unreachable default\nroute add unreachable default metric 4278198272 table main",
			[]string{"192.0.2.1"}, []string{"eth0"}, ""},
		{"a default route of another table is not ours", "route add default via 198.51.100.2 table 100", []string{"192.0.2.1"}, []string{"eth0"}, ""},
		{"loopback is never one", "", []string{"192.0.2.99", "192.0.2.1"}, []string{"eth0"}, ""},
		{"nothing is found", "", []string{"192.0.2.99"}, nil,
			"uplinks: no interface holds one of the node addresses [192.0.2.99], and there is no default route: name the uplinks with --uplink-iface"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inNamespace(t, func(t *testing.T) {
				ip(t, devices+test.routes+"\n")
				var nodes []netip.Addr
				for _, node := range test.nodes {
					nodes = append(nodes, netip.MustParseAddr(node))
				}
				links, err := open(t).AutoUplinks(nodes)
				if diff := cmp.Diff(test.want, names(links)); diff != "" {
					t.Errorf("uplinks (-want +got):\n%s", diff)
				}
				if err != nil && err.Error() != test.err || err == nil && test.err != "" {
					t.Errorf("error %v, want %q", err, test.err)
				}
			})
		})
	}
}

func TestAddresses(t *testing.T) {
	inNamespace(t, func(t *testing.T) {
		ip(t, `link add eth0 type veth peer name p0
			addr add 192.0.2.1/24 dev eth0
			addr add 192.0.2.3/24 dev eth0
			addr add 10.42.0.1 peer 10.42.0.2/32 dev p0
			link set eth0 up
			addr add 2001:db8:b::1/64 dev eth0 nodad`)
		host := open(t)
		eth0, err := host.ByName("eth0")
		if err != nil {
			t.Error(err)
			return
		}
		addresses, err := host.Addresses()
		if err != nil {
			t.Error(err)
			return
		}
		var got []string
		for _, a := range addresses {
			if a.Ifindex == eth0.Index {
				got = append(got, a.Prefix.String())
			} else if a.Prefix.String() != "10.42.0.1/32" {
				t.Errorf("address %v", a)
			}
		}
		if diff := cmp.Diff([]string{"192.0.2.1/24", "192.0.2.3/24", "2001:db8:b::1/64"}, got); diff != "" {
			t.Errorf("addresses of eth0 (-want +got):\n%s", diff)
		}
	})
}

func TestL2HeaderLen(t *testing.T) {
	tests := []struct {
		number uint16
		want   uint32
		err    string
	}{
		{1, 14, ""},
		{0xFFFE, 0, ""},
		{512, 0, ""},
		{519, 0, ""},
		{768, 0, ""},
		{769, 0, ""},
		{776, 0, ""},
		{778, 0, ""},
		{823, 0, ""},
		{772, 0, "interface x0 is loopback, which no client or peer comes through: leave it out of --uplink-iface"},
		{32, 0, "interface x0 has link type 32 (infiniband), whose header length is not known: " +
			"name an Ethernet device (ARPHRD 1) or an L3 tunnel with --uplink-iface"},
		{824, 0, "interface x0 has link type 824 (unknown824), whose header length is not known: " +
			"name an Ethernet device (ARPHRD 1) or an L3 tunnel with --uplink-iface"},
		{280, 0, "interface x0 has link type 280 (unknown280), whose header length is not known: " +
			"name an Ethernet device (ARPHRD 1) or an L3 tunnel with --uplink-iface"},
	}
	for _, test := range tests {
		got, err := L2HeaderLen(Link{Index: 2, Name: "x0", Type: test.number})
		text := ""
		if err != nil {
			text = err.Error()
		}
		if got != test.want || text != test.err {
			t.Errorf("type %d: %d, %q; want %d, %q", test.number, got, text, test.want, test.err)
		}
	}
}

func TestCheckMTU(t *testing.T) {
	for _, test := range []struct {
		mtu  int
		ipv6 bool
		err  string
	}{
		{1280, true, ""},
		{1279, false, ""},
		{1279, true, "interface wg0 has MTU 1279, and IPv6 needs at least 1280 (RFC 8200): " +
			"raise it with `ip link set wg0 mtu 1280`, or leave IPv6 or this uplink out"},
	} {
		text := ""
		if err := CheckMTU(Link{Name: "wg0", MTU: test.mtu}, test.ipv6); err != nil {
			text = err.Error()
		}
		if text != test.err {
			t.Errorf("MTU %d, IPv6 %v: %q, want %q", test.mtu, test.ipv6, text, test.err)
		}
	}
}
