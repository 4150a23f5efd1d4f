// SPDX-License-Identifier: Apache-2.0

package scene_test

import (
	"io"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/beep-lb/beep/harness/packet"
	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
)

func TestMain(m *testing.M) { os.Exit(require.Main(m)) }

func TestCountersOfEveryLayer(t *testing.T) {
	s := scene.New(t, topo.OneLAN(1, topo.Options{}), false)
	counters := s.Counters("client")
	for _, name := range []string{"Ip.InHdrErrors", "Tcp.InCsumErrors", "Tcp.RetransSegs", "Udp.InCsumErrors", "Udp6.InCsumErrors", "Ip6.InHdrErrors",
		"TcpExt.TCPDSACKRecv"} {
		if _, known := counters[name]; !known {
			t.Errorf("no counter %s", name)
		}
	}
	if errs := s.ChecksumErrors(); len(errs) != 0 {
		t.Errorf("checksum errors before any traffic: %v", errs)
	}
}

func TestChecksumErrorsAreSeen(t *testing.T) {
	s := scene.New(t, topo.OneLAN(1, topo.Options{}), false)
	mac := func(host string) string {
		link, err := s.NS(host).Netlink().LinkByName("eth0")
		if err != nil {
			t.Fatal(err)
		}
		return link.Attrs().HardwareAddr.String()
	}
	raw, err := traffic.OpenRaw(s.NS("client"), "eth0")
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	want := map[string]int64{"node-a Tcp.InCsumErrors": 2, "node-a Udp.InCsumErrors": 1, "node-a Udp6.InCsumErrors": 1}
	for _, family := range scene.Families {
		client, node := s.Addr("client", family), s.Addr("node-a", family)
		socket, err := s.NS("node-a").ListenPacket(netip.AddrPortFrom(node, 53)) // UDP is checked when a socket is polled
		if err != nil {
			t.Fatal(err)
		}
		defer socket.Close()
		for _, part := range []packet.Part{packet.TCP(40000, 80).WrongChecksum(), packet.UDP(40000, 53).WrongChecksum()} {
			frame := packet.Build(packet.Eth(mac("client"), mac("node-a")), packet.IP(client.String(), node.String()), part, packet.Payload(8))
			if err := raw.Send(frame); err != nil {
				t.Fatal(err)
			}
		}
	}
	deadline := time.Now().Add(5 * time.Second)
	for diff := "?"; diff != ""; {
		if diff = cmp.Diff(want, s.ChecksumErrors()); diff != "" && time.Now().After(deadline) {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
}

func TestBrakeHoldsUntilReleased(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	brake := scene.NewBrake(near, 1) // a byte a second
	defer brake.Close()
	written := make(chan error, 1)
	go func() {
		_, err := brake.Write(make([]byte, 3600))
		written <- err
	}()
	if _, err := io.ReadFull(far, make([]byte, 3600)); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-written:
		t.Fatalf("an hour's worth passed at once, %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	brake.Release()
	if err := <-written; err != nil || brake.Moved() != 3600 {
		t.Errorf("moved %d, %v", brake.Moved(), err)
	}
}
