// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"net/netip"
	"os"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/beep-lb/beep/harness/packet"
	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
)

func TestMain(m *testing.M) { os.Exit(require.Main(m)) }

func TestWatch(t *testing.T) {
	require.Root(t)
	topology := topo.New(t, topo.OneLAN(1, topo.Options{}))
	watch, err := Start(topology, "node-a", "eth0")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := traffic.OpenRaw(topology.NS("client"), "eth0")
	if err != nil {
		t.Fatal(err)
	}
	const broadcast = "ff:ff:ff:ff:ff:ff"
	for range 3 {
		err = raw.Send(packet.Build(packet.Eth(packet.MAC1, broadcast), packet.IP("198.51.100.10", "192.0.2.11"), packet.UDP(1, 2)))
		if err != nil {
			t.Fatal(err)
		}
	}
	packets, err := watch.Packets()
	if err != nil || len(packets) != 3 {
		t.Fatalf("got %d packets, %v, want 3", len(packets), err)
	}
	src, dst, ok := Ends(packets[0])
	if !ok || src != netip.MustParseAddr("198.51.100.10") || dst != netip.MustParseAddr("192.0.2.11") {
		t.Errorf("from %s to %s, %v", src, dst, ok)
	}
	if _, err := os.Stat(watch.file); !os.IsNotExist(err) {
		t.Errorf("the capture is still there: %v", err)
	}
}

func TestReading(t *testing.T) {
	eth, outer := packet.Eth(packet.MAC1, packet.MAC2), packet.IP("2001:db8:b::11", "2001:db8:b::12")
	inner := packet.IP("198.51.100.10", "192.0.2.11")
	for _, tt := range []struct {
		name   string
		packet []byte
		tunnel bool
		mss    uint16
	}{
		{"a SYN", packet.Build(eth, inner, packet.TCP(1, 80).Flags("S").MSS(1460)), false, 1460},
		{"no option", packet.Build(eth, inner, packet.TCP(1, 80).Flags("A")), false, 0},
		{"a tunnel", packet.Build(eth, outer, packet.Outer(7), packet.Return(), inner, packet.TCP(80, 1).Flags("SA").MSS(1400)), true, 0},
		{"other UDP", packet.Build(eth, inner, packet.UDP(6081, 53)), false, 0},
		{"no IP", packet.Build(eth.Type(0x88cc), packet.Payload(20)), false, 0},
	} {
		p := gopacket.NewPacket(tt.packet, layers.LayerTypeEthernet, gopacket.Default)
		if got := IsTunnel(p); got != tt.tunnel {
			t.Errorf("%s: tunnel %v", tt.name, got)
		}
		if got, _ := MSS(p); got != tt.mss {
			t.Errorf("%s: MSS %d, want %d", tt.name, got, tt.mss)
		}
	}
}
