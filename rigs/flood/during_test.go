// SPDX-License-Identifier: Apache-2.0

package flood_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
)

const (
	newcomers = 100
	every     = 50 * time.Millisecond
	// patience is how long a new client waits: a lost SYN is repeated after one second.
	patience = 5 * time.Second
)

// attempts is what came of many of one kind.
type attempts struct {
	name    string
	tried   int
	failed  []error
	slowest time.Duration
}

func (a *attempts) note(began time.Time, err error) {
	a.tried++
	a.slowest = max(a.slowest, time.Since(began))
	if err != nil {
		a.failed = append(a.failed, err)
	}
}

func (a *attempts) String() string {
	return fmt.Sprintf("%s: %d of %d, the slowest after %d ms", a.name, a.tried-len(a.failed), a.tried, a.slowest.Milliseconds())
}

// bystanders are who uses the node during a flood: new clients, and those of the host itself.
type bystanders struct {
	clients, pings, pages attempts
	begin, done           chan struct{} // closed when the flood is well under way, and when each has tried often enough
}

// watch starts them.
func (r rig) watch() *bystanders {
	GinkgoHelper()
	b := &bystanders{clients: attempts{name: "new clients"}, pings: attempts{name: "pings of the host"},
		pages: attempts{name: "requests to the host"}, begin: make(chan struct{}), done: make(chan struct{})}
	ctx := r.Context(3 * time.Minute)
	ping := r.pinger()
	go func() {
		defer GinkgoRecover()
		defer close(b.done)
		<-b.begin
		pace := time.NewTicker(every)
		defer pace.Stop()
		for i := range newcomers {
			<-pace.C
			began := time.Now()
			b.clients.note(began, r.visit(ctx, fronts[i%len(fronts)]))
			if i%5 == 0 {
				began = time.Now()
				b.pings.note(began, ping(uint16(i)))
				began = time.Now()
				page, cancel := context.WithTimeout(ctx, patience)
				_, err := traffic.Get(page, r.NS("client"), r.front(portHost))
				cancel()
				b.pages.note(began, err)
			}
		}
	}()
	return b
}

// start has them begin, if they have not.
func (b *bystanders) start() {
	if b == nil {
		return
	}
	select {
	case <-b.begin:
	default:
		close(b.begin)
	}
}

// ended says whether nobody of them is under way.
func (b *bystanders) ended() bool {
	if b == nil {
		return true
	}
	select {
	case <-b.done:
		return true
	default:
		return false
	}
}

// visit is one new client: it connects and gets its echo.
func (r rig) visit(ctx context.Context, port uint16) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, err := r.NS("client").DialFrom(ctx, "tcp", netip.AddrPort{}, r.front(port))
	if err != nil {
		return err
	}
	defer conn.Close()
	return echo(conn, "a new client", patience)
}

// pinger returns a function that exchanges one echo request and reply with node-a.
func (r rig) pinger() func(seq uint16) error {
	GinkgoHelper()
	var conn net.PacketConn
	Expect(r.NS("client").Do(func() (err error) {
		conn, err = net.ListenPacket("ip4:icmp", r.Addr("client", topo.V4).String())
		return err
	})).To(Succeed())
	DeferCleanup(conn.Close)
	to := &net.IPAddr{IP: r.Addr("node-a", topo.V4).AsSlice()}
	return func(seq uint16) error {
		request := gopacket.NewSerializeBuffer()
		echo := &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(layers.ICMPv4TypeEchoRequest, 0), Id: 7, Seq: seq}
		if err := gopacket.SerializeLayers(request, gopacket.SerializeOptions{ComputeChecksums: true}, echo); err != nil {
			return err
		}
		if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
			return err
		}
		if _, err := conn.WriteTo(request.Bytes(), to); err != nil {
			return err
		}
		for reply := make([]byte, 1500); ; {
			n, _, err := conn.ReadFrom(reply)
			if err != nil {
				return fmt.Errorf("no echo reply: %w", err)
			}
			if n >= 8 && reply[0] == layers.ICMPv4TypeEchoReply && reply[6] == byte(seq>>8) && reply[7] == byte(seq) {
				return nil
			}
		}
	}
}

// unhurt says that the host lost nothing, and hardly any new client was turned away.
func (b *bystanders) unhurt() {
	GinkgoHelper()
	Eventually(b.done).WithTimeout(limit).Should(BeClosed())
	Expect(b.pings.failed).To(BeEmpty(), "pings")
	Expect(b.pages.failed).To(BeEmpty(), "the host's own server")
	Expect(b.clients.failed).To(BeEmpty(), "new clients")
}

func (b *bystanders) String() string {
	return fmt.Sprintf("%s; %s; %s", &b.clients, &b.pings, &b.pages)
}

// cpuTime is the time of all CPUs, in ticks.
type cpuTime struct{ busy, all float64 }

func busyTime() (t cpuTime) {
	GinkgoHelper()
	text, err := os.ReadFile("/proc/stat")
	Expect(err).NotTo(HaveOccurred())
	line, _, _ := strings.Cut(string(text), "\n")
	for i, field := range strings.Fields(line)[1:] {
		ticks, err := strconv.ParseFloat(field, 64)
		Expect(err).NotTo(HaveOccurred())
		t.all += ticks
		if i != 3 && i != 4 { // idle, iowait
			t.busy += ticks
		}
	}
	return t
}
