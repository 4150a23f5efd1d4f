// SPDX-License-Identifier: Apache-2.0

package config

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/beep-lb/beep/src/model"
)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

func socket(s string) model.Socket {
	socket, err := model.ParseSocket(s)
	if err != nil {
		panic(err)
	}
	return socket
}

func TestParseFixtures(t *testing.T) {
	got, err := ParseFixtures([]string{
		// The peer's endpoint comes before the node address that it needs: order is free.
		"front=tcp/192.0.2.1:80,10.42.1.5:8080@192.0.2.2",
		"front=tcp/192.0.2.1:80,10.42.0.5:8080",
		"source=tcp/192.0.2.1:80,198.51.100.9/24",
		"front=udp/[2001:db8:b::1]:53,[2001:db8:a::5]:5353@2001:db8:b::2:affinity",
		"front=udp/[2001:db8:b::1]:54:affinity=5",
		"front=tcp/192.0.2.1:443",
		// An IPv6 pod may be reached over an IPv4 tunnel.
		"front=tcp/[2001:db8:b::1]:80,[2001:db8:a:1::5]:80@192.0.2.3",
		"peer=192.0.2.9",
		"peer=192.0.2.2",
		"target=udp/10.42.0.5:53",
		"target=tcp/10.42.0.5:8080",
		"node=2001:db8:b::1",
		"node=::ffff:192.0.2.1",
		"source=tcp/192.0.2.1:80,10.0.0.0/8",
		"source=tcp/192.0.2.1:80,2001:db8::/32",
		"source=tcp/192.0.2.1:443",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := model.Desired{
		Underlay4: addr("192.0.2.1"),
		Underlay6: addr("2001:db8:b::1"),
		Fronts: []model.Front{
			{Socket: socket("tcp/192.0.2.1:80"), Endpoints: []model.Endpoint{
				{Addr: addr("10.42.0.5"), Port: 8080},
				{Addr: addr("10.42.1.5"), Port: 8080, Peer: addr("192.0.2.2")},
			}, Sources: []netip.Prefix{prefix("10.0.0.0/8"), prefix("198.51.100.0/24"), prefix("2001:db8::/32")}},
			{Socket: socket("tcp/192.0.2.1:443"), Sources: []netip.Prefix{}},
			{Socket: socket("udp/[2001:db8:b::1]:53"), ClientIPAffinity: true, Endpoints: []model.Endpoint{
				{Addr: addr("2001:db8:a::5"), Port: 5353, Peer: addr("2001:db8:b::2")},
			}},
			{Socket: socket("udp/[2001:db8:b::1]:54"), ClientIPAffinity: true, AffinityTimeout: 5 * time.Second},
			{Socket: socket("tcp/[2001:db8:b::1]:80"), Endpoints: []model.Endpoint{
				{Addr: addr("2001:db8:a:1::5"), Port: 80, Peer: addr("192.0.2.3")},
			}},
		},
		Peers:   []netip.Addr{addr("192.0.2.2"), addr("192.0.2.3"), addr("192.0.2.9"), addr("2001:db8:b::2")},
		Targets: []model.Socket{socket("udp/10.42.0.5:53"), socket("tcp/10.42.0.5:8080")},
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
		cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Errorf("fixtures (-want +got):\n%s", diff)
	}
}

func TestNoFixtures(t *testing.T) {
	got, err := ParseFixtures(nil)
	if err != nil || len(got.Fronts)+len(got.Peers)+len(got.Targets) != 0 {
		t.Errorf("%+v, error %v", got, err)
	}
}

func TestBadFixtures(t *testing.T) {
	const forms = "want node=ADDRESS, peer=ADDRESS, target=PROTOCOL/ADDRESS:PORT, front=PROTOCOL/ADDRESS:PORT[,ADDRESS:PORT[@PEER]][:affinity[=SECONDS]] or source=PROTOCOL/ADDRESS:PORT[,ADDRESS/BITS]"
	const node = "node=192.0.2.1"
	tests := []struct {
		name     string
		fixtures []string
		want     string
	}{
		{"an unknown form", []string{"service=web"}, `--fixture "service=web": ` + forms},
		{"nothing", []string{""}, `--fixture "": ` + forms},
		{"no value", []string{"node"}, `--fixture "node": node address "": want an IP address, as 192.0.2.1`},
		{"a node address with a zone", []string{"node=fe80::1%eth0"},
			`--fixture "node=fe80::1%eth0": node address "fe80::1%eth0": want a routable unicast address without a zone`},
		{"a loopback node address", []string{"node=127.0.0.1"},
			`--fixture "node=127.0.0.1": node address "127.0.0.1": want a routable unicast address without a zone`},
		{"a multicast peer", []string{"peer=224.0.0.1"},
			`--fixture "peer=224.0.0.1": node address "224.0.0.1": want a routable unicast address without a zone`},
		{"two node addresses of a family", []string{node, "node=192.0.2.7"},
			`--fixture "node=192.0.2.7": a second IPv4 node address after 192.0.2.1: give one a family`},
		{"a peer twice", []string{"peer=192.0.2.2", "peer=::ffff:192.0.2.2"},
			`--fixture "peer=::ffff:192.0.2.2": duplicate peer: name it once`},
		{"a target twice", []string{"target=tcp/10.42.0.5:80", "target=TCP/10.42.0.5:80"},
			`--fixture "target=TCP/10.42.0.5:80": duplicate target: name it once`},
		{"a target without a port", []string{"target=tcp/10.42.0.5"},
			`--fixture "target=tcp/10.42.0.5": "tcp/10.42.0.5": not an ip:port`},
		{"a front of another protocol", []string{"front=sctp/192.0.2.1:80"},
			`--fixture "front=sctp/192.0.2.1:80": "sctp/192.0.2.1:80": protocol "sctp": want tcp or udp`},
		{"a front twice", []string{"front=tcp/192.0.2.1:80", "front=tcp/192.0.2.1:80"},
			`--fixture "front=tcp/192.0.2.1:80": duplicate front TCP/192.0.2.1:80: name it once, or with an endpoint`},
		{"an endpoint twice", []string{"front=tcp/192.0.2.1:80,10.42.0.5:80", "front=tcp/192.0.2.1:80,10.42.0.5:80"},
			`--fixture "front=tcp/192.0.2.1:80,10.42.0.5:80": duplicate endpoint 10.42.0.5:80 of front TCP/192.0.2.1:80: name it once`},
		{"an endpoint here and on a peer", []string{node, "front=tcp/192.0.2.1:80,10.42.0.5:80", "front=tcp/192.0.2.1:80,10.42.0.5:80@192.0.2.2"},
			`--fixture "front=tcp/192.0.2.1:80,10.42.0.5:80@192.0.2.2": duplicate endpoint 10.42.0.5:80 of front TCP/192.0.2.1:80: name it once`},
		{"affinity only once", []string{"front=tcp/192.0.2.1:80,10.42.0.5:80", "front=tcp/192.0.2.1:80,10.42.0.6:80:affinity"},
			`--fixture "front=tcp/192.0.2.1:80,10.42.0.6:80:affinity": front TCP/192.0.2.1:80 is named with and without :affinity, or with another time: end all of its fixtures the same way`},
		{"two times of affinity", []string{"front=tcp/192.0.2.1:80,10.42.0.5:80:affinity=5", "front=tcp/192.0.2.1:80,10.42.0.6:80:affinity"},
			`--fixture "front=tcp/192.0.2.1:80,10.42.0.6:80:affinity": front TCP/192.0.2.1:80 is named with and without :affinity, or with another time: end all of its fixtures the same way`},
		{"no time of affinity", []string{"front=tcp/192.0.2.1:80:affinity=0"},
			`--fixture "front=tcp/192.0.2.1:80:affinity=0": affinity ":affinity=0": want :affinity, or :affinity= and 1..86400 seconds`},
		{"another word after affinity", []string{"front=tcp/192.0.2.1:80:affinity5"},
			`--fixture "front=tcp/192.0.2.1:80:affinity5": affinity ":affinity5": want :affinity, or :affinity= and 1..86400 seconds`},
		{"a source that is no range", []string{"front=tcp/192.0.2.1:80", "source=tcp/192.0.2.1:80,198.51.100.7"},
			`--fixture "source=tcp/192.0.2.1:80,198.51.100.7": source range "198.51.100.7": want ADDRESS/BITS, as 198.51.100.0/24`},
		{"a source of no front", []string{"source=tcp/192.0.2.1:80,198.51.100.0/24", "source=tcp/192.0.2.1:80,0.0.0.0/0"},
			`--fixture "source=tcp/192.0.2.1:80,198.51.100.0/24": there is no front TCP/192.0.2.1:80: add --fixture front=TCP/192.0.2.1:80`},
		{"a source twice", []string{"front=tcp/192.0.2.1:80", "source=tcp/192.0.2.1:80,198.51.100.0/24", "source=tcp/192.0.2.1:80,198.51.100.1/24"},
			`--fixture "source=tcp/192.0.2.1:80,198.51.100.1/24": duplicate range 198.51.100.0/24 of front TCP/192.0.2.1:80: name it once`},
		{"mixed families", []string{"front=tcp/192.0.2.1:80,[2001:db8:a::5]:80"},
			`--fixture "front=tcp/192.0.2.1:80,[2001:db8:a::5]:80": mixed families: front 192.0.2.1 is IPv4, endpoint 2001:db8:a::5 is IPv6: give an endpoint of the front's family`},
		{"two endpoints in one fixture", []string{"front=tcp/192.0.2.1:80,10.42.0.5:80,10.42.0.6:80"},
			`--fixture "front=tcp/192.0.2.1:80,10.42.0.5:80,10.42.0.6:80": endpoint "10.42.0.5:80,10.42.0.6:80": want ADDRESS:PORT or ADDRESS:PORT@PEER, and each further endpoint in a --fixture of its own`},
		{"an endpoint without a port", []string{"front=tcp/192.0.2.1:80,10.42.0.5:0"},
			`--fixture "front=tcp/192.0.2.1:80,10.42.0.5:0": endpoint "10.42.0.5:0": want a unicast address without a zone and a port from 1 to 65535`},
		{"a peer that is no address", []string{"front=tcp/192.0.2.1:80,10.42.0.5:80@b"},
			`--fixture "front=tcp/192.0.2.1:80,10.42.0.5:80@b": node address "b": want an IP address, as 192.0.2.1`},
		{"this node as a peer", []string{"peer=192.0.2.1", node},
			`--fixture "peer=192.0.2.1": peer 192.0.2.1 is this node's own address: name another node, or leave @PEER out for an endpoint on this node`},
		{"this node as the peer of an endpoint", []string{node, "front=tcp/192.0.2.1:80,10.42.0.5:80@192.0.2.1"},
			`--fixture "front=tcp/192.0.2.1:80,10.42.0.5:80@192.0.2.1": peer 192.0.2.1 is this node's own address: name another node, or leave @PEER out for an endpoint on this node`},
		{"no tunnel address of the peer's family", []string{node, "front=tcp/192.0.2.1:80,10.42.0.5:80@2001:db8:b::2"},
			`--fixture "front=tcp/192.0.2.1:80,10.42.0.5:80@2001:db8:b::2": peer 2001:db8:b::2 is IPv6 and this node has no such tunnel address: add --fixture node=ADDRESS`},
		{"several", []string{"node=x", "peer=y"},
			`--fixture "node=x": node address "x": want an IP address, as 192.0.2.1` + "\n" +
				`--fixture "peer=y": node address "y": want an IP address, as 192.0.2.1`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := ParseFixtures(test.fixtures)
			checkError(t, err, test.want)
		})
	}
}
