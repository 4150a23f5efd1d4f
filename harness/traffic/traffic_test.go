// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/netns"
	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
)

func TestMain(m *testing.M) { os.Exit(require.Main(m)) }

// pair is a client and a node that reach each other, and a time in which everything has to be done.
func pair(t *testing.T) (ctx context.Context, topology *topo.Topology, client, node *netns.NS) {
	t.Helper()
	require.Root(t)
	t.Parallel()
	topology = topo.New(t, topo.OneLAN(1, topo.Options{}))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx, topology, topology.NS("client"), topology.NS("node-a")
}

var families = map[string]topo.Families{"IPv4": topo.V4, "IPv6": topo.V6}

func TestHTTPReportsTheSource(t *testing.T) {
	ctx, topology, client, node := pair(t)
	for name, family := range families {
		at := netip.AddrPortFrom(topology.Addr("node-a", family), 80)
		stop, err := traffic.ServeHTTP(node, "web", at)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		answer, err := traffic.Get(ctx, client, at)
		if err != nil || answer.Server != "web" || answer.Client.Addr() != topology.Addr("client", family) {
			t.Errorf("%s: answer %+v, %v", name, answer, err)
		}
		keep := traffic.HTTPClient(client)
		first, err1 := traffic.Ask(ctx, keep, at)
		second, err2 := traffic.Ask(ctx, keep, at)
		if err := errors.Join(err1, err2); err != nil || first != second {
			t.Errorf("%s: one client used two connections: %v and %v, %v", name, first, second, err)
		}
		if err := stop(); err != nil {
			t.Errorf("%s: stop: %v", name, err)
		}
		if _, err := traffic.Get(ctx, client, at); !errors.Is(err, unix.ECONNREFUSED) {
			t.Errorf("%s: after stop: %v, want connection refused", name, err)
		}
	}
}

func TestExchangeComparesBothDirections(t *testing.T) {
	ctx, topology, client, node := pair(t)
	for name, family := range families {
		at := netip.AddrPortFrom(topology.Addr("node-a", family), 5000)
		if _, err := traffic.ServeTCP(node, "stream", at); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, on := range []bool{true, false} {
			if err := topology.Offloads(on); err != nil {
				t.Fatal(err)
			}
			transfer, err := traffic.Exchange(ctx, client, at, 16<<20, 3<<20+1)
			if err != nil || transfer.Up != 16<<20 || transfer.Down != 3<<20+1 {
				t.Errorf("%s, offloads %t: %+v, %v", name, on, transfer, err)
			}
			if transfer.Server != "stream" || transfer.Client.Addr() != topology.Addr("client", family) {
				t.Errorf("%s: %+v", name, transfer.Answer)
			}
		}
		if _, err := traffic.Exchange(ctx, client, at, 0, 0); err != nil {
			t.Errorf("%s: an empty exchange: %v", name, err)
		}
	}
}

func TestExchangeFailsWhenTheServerGoes(t *testing.T) {
	ctx, topology, client, node := pair(t)
	at := netip.AddrPortFrom(topology.Addr("node-a", topo.V4), 5000)
	stop, err := traffic.ServeTCP(node, "stream", at)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := client.DialFrom(ctx, "tcp", netip.AddrPort{}, at)
	if err != nil {
		t.Fatal(err)
	}
	result := make(chan error)
	go func() {
		_, err := traffic.ExchangeOn(ctx, conn, 1<<40, 1<<40)
		result <- err
	}()
	if err := stop(); err != nil {
		t.Error(err)
	}
	if err := <-result; err == nil {
		t.Error("an exchange survived its server")
	}
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if _, err := traffic.ServeTCP(node, "again", at); err != nil {
		t.Fatal(err)
	}
	if _, err := traffic.Exchange(short, client, at, 1<<40, 1<<40); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an endless exchange ended with %v, want its deadline", err)
	}
}

func TestExchangeSeesADamagedStream(t *testing.T) {
	ctx, topology, client, node := pair(t)
	server := netip.AddrPortFrom(topology.Addr("node-a", topo.V4), 5000)
	if _, err := traffic.ServeTCP(node, "stream", server); err != nil {
		t.Fatal(err)
	}
	listener, err := node.Listen(netip.AddrPortFrom(server.Addr(), 5001))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go damage(ctx, listener, node, server)
	if _, err := traffic.Exchange(ctx, client, netip.AddrPortFrom(server.Addr(), 5001), 100_000, 0); err == nil {
		t.Error("a flipped bit went unseen")
	}
}

// damage relays one connection and flips a bit behind the exchange's header.
func damage(ctx context.Context, listener net.Listener, ns *netns.NS, to netip.AddrPort) {
	from, err := listener.Accept()
	if err != nil {
		return
	}
	defer from.Close()
	onward, err := ns.DialFrom(ctx, "tcp", netip.AddrPort{}, to)
	if err != nil {
		return
	}
	defer onward.Close()
	go func() {
		buffer := make([]byte, 1<<16)
		for passed := 0; ; {
			n, err := from.Read(buffer)
			if err != nil {
				return
			}
			const flipped = 50_000
			if passed <= flipped && flipped < passed+n {
				buffer[flipped-passed] ^= 1
			}
			passed += n
			if _, err := onward.Write(buffer[:n]); err != nil {
				return
			}
		}
	}()
	buffer := make([]byte, 1<<16)
	for {
		n, err := onward.Read(buffer)
		if err != nil {
			return
		}
		if _, err := from.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func TestSendUDPLosesNothing(t *testing.T) {
	ctx, topology, client, node := pair(t)
	for name, family := range families {
		at := netip.AddrPortFrom(topology.Addr("node-a", family), 6000)
		echo, err := traffic.ServeUDP(node, at)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		source := netip.AddrPortFrom(topology.Addr("client", family), 4444)
		for _, size := range []int{traffic.MinDatagram, 1200, 60_000} {
			tally, err := traffic.SendUDP(ctx, client, at, traffic.Datagrams{Count: 2000, Size: size, From: source})
			if err != nil || tally.Sent != 2000 || tally.Received != 2000 || tally.Lost+tally.Duplicated+tally.Corrupted != 0 {
				t.Errorf("%s, %d bytes: %s, %v", name, size, tally, err)
			}
			if tally.Sources[source] != 2000 {
				t.Errorf("%s: sources %v, want only %s", name, tally.Sources, source)
			}
		}
		if got := echo.Count(); got != (traffic.Echoed{Answered: 6000}) {
			t.Errorf("%s: server counts %+v", name, got)
		}
	}
}

func TestSendUDPFragmentation(t *testing.T) {
	ctx, topology, client, node := pair(t)
	for name, family := range families {
		at := netip.AddrPortFrom(topology.Addr("node-a", family), 6000)
		if _, err := traffic.ServeUDP(node, at); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, fragment := range []traffic.Fragmentation{traffic.NeverHere, traffic.ProbePath} {
			tally, err := traffic.SendUDP(ctx, client, at, traffic.Datagrams{Count: 3, Size: 1500, Fragment: fragment})
			if err != nil || tally.Sent != 0 || tally.Refused[unix.EMSGSIZE] != 3 {
				t.Errorf("%s, fragmentation %d: %s, %v; want three times EMSGSIZE", name, fragment, tally, err)
			}
		}
		for _, fragment := range []traffic.Fragmentation{traffic.KernelChoice, traffic.MayFragment} {
			tally, err := traffic.SendUDP(ctx, client, at, traffic.Datagrams{Count: 3, Size: 1500, Fragment: fragment})
			if err != nil || tally.Received != 3 {
				t.Errorf("%s, fragmentation %d: %s, %v", name, fragment, tally, err)
			}
		}
	}
}

func TestSendUDPCountsWhatGoesWrong(t *testing.T) {
	ctx, topology, client, node := pair(t)
	at := netip.AddrPortFrom(topology.Addr("node-a", topo.V4), 6000)
	tally, err := traffic.SendUDP(ctx, client, at, traffic.Datagrams{Count: 3, Patience: 500 * time.Millisecond})
	if err != nil || tally.Received != 0 || tally.Refused[unix.ECONNREFUSED] == 0 {
		t.Errorf("without a server: %s, %v", tally, err)
	}
	liar, err := node.ListenPacket(at)
	if err != nil {
		t.Fatal(err)
	}
	defer liar.Close()
	go lie(liar)
	tally, err = traffic.SendUDP(ctx, client, at, traffic.Datagrams{Count: 3, Window: 1, Patience: 500 * time.Millisecond})
	if err != nil || tally.Received != 1 || tally.Lost != 2 || tally.Duplicated != 1 || tally.Corrupted != 1 {
		t.Errorf("with a server that answers once, twice wrongly: %s, %v", tally, err)
	}
	if _, err := traffic.SendUDP(ctx, client, at, traffic.Datagrams{Size: 1}); err == nil {
		t.Error("a datagram too small for its checks was accepted")
	}
}

// lie answers the first datagram twice, the second with a flipped bit, and the third not at all.
func lie(conn *net.UDPConn) {
	datagram := make([]byte, 100)
	for number := 0; ; number++ {
		n, source, err := conn.ReadFromUDPAddrPort(datagram)
		if err != nil {
			return
		}
		switch number {
		case 0:
			_, _ = conn.WriteToUDPAddrPort(datagram[:n], source)
			_, _ = conn.WriteToUDPAddrPort(datagram[:n], source)
		case 1:
			datagram[n-1] ^= 1
			_, _ = conn.WriteToUDPAddrPort(datagram[:n], source)
		}
	}
}

func TestSendUDPEndsWithItsContext(t *testing.T) {
	ctx, topology, client, node := pair(t)
	at := netip.AddrPortFrom(topology.Addr("node-a", topo.V6), 6000)
	echo, err := traffic.ServeUDP(node, at)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() { // a stream without an end is ended once it flows, however long that takes here
		for echo.Count().Answered < 100 && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	tally, err := traffic.SendUDP(ctx, client, at, traffic.Datagrams{Patience: time.Minute})
	if err != nil || tally.Received == 0 || tally.Lost != 0 {
		t.Errorf("%s, %v", tally, err)
	}
}

func TestSendUDPKeepsItsPace(t *testing.T) {
	ctx, topology, client, node := pair(t)
	at := netip.AddrPortFrom(topology.Addr("node-a", topo.V6), 6000)
	if _, err := traffic.ServeUDP(node, at); err != nil {
		t.Fatal(err)
	}
	started := time.Now()
	const count, every = 100, 2 * time.Millisecond
	tally, err := traffic.SendUDP(ctx, client, at, traffic.Datagrams{Count: count, Every: every})
	if err != nil || tally.Received != count {
		t.Errorf("%s, %v", tally, err)
	}
	if took := time.Since(started); took < (count-1)*every {
		t.Errorf("%d datagrams took %s, want no less than %s", count, took, (count-1)*every)
	}
}

func TestRawFramesShowInTheCapture(t *testing.T) {
	ctx, topology, client, node := pair(t)
	path := filepath.Join(t.TempDir(), "node-a.pcap")
	began := time.Now()
	capture, err := traffic.StartCapture(node, "eth0", path, traffic.CaptureLimits{})
	if err != nil {
		t.Fatal(err)
	}
	echo, err := traffic.ServeUDP(node, netip.AddrPortFrom(topology.Addr("node-a", topo.V4), 6000))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := traffic.OpenRaw(client, "eth0")
	if err != nil {
		t.Fatal(err)
	}
	spoofed := netip.MustParseAddr("203.0.113.9")
	const count = 500
	frame := forge(t, topology, spoofed)
	for range count {
		if err := raw.Send(frame); err != nil {
			t.Fatal(err)
		}
	}
	for echo.Count().Foreign < count && ctx.Err() == nil { // the server is behind the capture point
		if _, err := traffic.SendUDP(ctx, client, netip.AddrPortFrom(topology.Addr("node-a", topo.V4), 6000),
			traffic.Datagrams{Count: 1}); err != nil {
			t.Fatal(err)
		}
	}
	counted, err := capture.Stop()
	if err != nil || counted.Dropped != 0 {
		t.Fatalf("capture: %+v, %v", counted, err)
	}
	ended := time.Now()
	packets, err := traffic.ReadCapture(path)
	if err != nil || len(packets) != counted.Packets {
		t.Fatalf("file has %d packets of %d, %v", len(packets), counted.Packets, err)
	}
	found := 0
	for i, packet := range packets {
		// Not each later than the one before: two processors stamp and queue side by side.
		if stamp := packet.Metadata().Timestamp; stamp.Before(began) || stamp.After(ended) {
			t.Errorf("packet %d is of %s, the capture from %s to %s", i, stamp, began, ended)
		}
		if layer, ok := packet.NetworkLayer().(*layers.IPv4); ok && layer.SrcIP.Equal(spoofed.AsSlice()) {
			found++
		}
	}
	if found != count {
		t.Errorf("capture shows %d spoofed packets, want %d", found, count)
	}
}

// forge builds a UDP packet to node-a's port 6000 with another's source address.
func forge(t *testing.T, topology *topo.Topology, source netip.Addr) []byte {
	t.Helper()
	near, err := topology.NS("client").Netlink().LinkByName("eth0")
	if err != nil {
		t.Fatal(err)
	}
	far, err := topology.NS("node-a").Netlink().LinkByName("eth0")
	if err != nil {
		t.Fatal(err)
	}
	// Loose rp_filter wants some route to the source.
	if err := topology.ReplaceRoute("node-a", topo.Route{To: netip.PrefixFrom(source, 32), Device: "eth0"}); err != nil {
		t.Fatal(err)
	}
	ip := &layers.IPv4{
		Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP,
		SrcIP: source.AsSlice(), DstIP: topology.Addr("node-a", topo.V4).AsSlice(),
	}
	udp := &layers.UDP{SrcPort: 9999, DstPort: 6000}
	if err := udp.SetNetworkLayerForChecksum(ip); err != nil {
		t.Fatal(err)
	}
	buffer := gopacket.NewSerializeBuffer()
	err = gopacket.SerializeLayers(buffer, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true},
		&layers.Ethernet{
			SrcMAC: near.Attrs().HardwareAddr, DstMAC: far.Attrs().HardwareAddr, EthernetType: layers.EthernetTypeIPv4,
		}, ip, udp, gopacket.Payload("forged"))
	if err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

func TestCaptureLimits(t *testing.T) {
	ctx, topology, client, node := pair(t)
	path := filepath.Join(t.TempDir(), "limited.pcap")
	capture, err := traffic.StartCapture(node, "eth0", path, traffic.CaptureLimits{Snap: 64, Total: 640})
	if err != nil {
		t.Fatal(err)
	}
	at := netip.AddrPortFrom(topology.Addr("node-a", topo.V4), 6000)
	if _, err := traffic.ServeUDP(node, at); err != nil {
		t.Fatal(err)
	}
	if _, err := traffic.SendUDP(ctx, client, at, traffic.Datagrams{Count: 50, Size: 1000}); err != nil {
		t.Fatal(err)
	}
	counted, err := capture.Stop()
	if err != nil || !counted.Full {
		t.Errorf("counted %+v, %v; want it full", counted, err)
	}
	packets, err := traffic.ReadCapture(path)
	if err != nil || len(packets) != counted.Packets || len(packets) < 10 || len(packets) > 15 {
		t.Fatalf("file has %d packets of %+v, %v; want the fewest that make 640 bytes", len(packets), counted, err)
	}
	last := packets[len(packets)-1]
	if info := last.Metadata(); info.CaptureLength != 64 || info.Length != 14+20+8+1000 || len(last.Data()) != 64 {
		t.Errorf("the last packet has %d of %d bytes, want 64 of 1042", info.CaptureLength, info.Length)
	}
}
