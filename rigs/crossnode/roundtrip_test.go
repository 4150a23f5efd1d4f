// SPDX-License-Identifier: Apache-2.0

package crossnode_test

import (
	"net"
	"net/netip"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
)

var _ = Describe("a client of one node whose pod is on the other", Label("netns"), func() {
	for _, offload := range scene.Offloads {
		Context(offload.String(), func() {
			for _, w := range tunnel {
				It("reaches it by TCP through "+w.node+" with its own address and port", func() {
					r := newRig(offload)
					for port := uint16(40000); port < 40032; port++ {
						conn, err := r.NS("client").DialFrom(r.Context(limit), "tcp", r.from(port), r.front(w, bulk))
						Expect(err).NotTo(HaveOccurred())
						transfer, err := traffic.ExchangeOn(r.Context(limit), conn, int64(port), 1)
						Expect(err).NotTo(HaveOccurred())
						Expect(transfer.Answer).To(Equal(traffic.Answer{Server: w.pod, Client: r.from(port)}))
					}
					transfer, err := traffic.Exchange(r.Context(limit), r.NS("client"), r.front(w, bulk), 64<<20, 64<<20)
					Expect(err).NotTo(HaveOccurred())
					Expect(transfer.Client.Addr()).To(Equal(r.from(0).Addr()))
					Expect(r.Drops()).To(BeEmpty())
					Expect(r.ChecksumErrors()).To(BeEmpty())
				})

				It("reaches it by UDP through "+w.node+" with its own address and port", func() {
					r := newRig(offload)
					for i, size := range []int{traffic.MinDatagram, 512, 1200, largestDatagram} {
						from := r.from(uint16(40000 + i))
						tally, err := traffic.SendUDP(r.Context(limit), r.NS("client"), r.front(w, echo),
							traffic.Datagrams{Count: 2000, Size: size, From: from, Patience: require.Within(time.Second)})
						Expect(err).NotTo(HaveOccurred())
						Expect(tally.Received).To(Equal(2000), "%d bytes: %s", size, tally)
						Expect(tally.Sources).To(Equal(map[netip.AddrPort]int{from: 2000}))
					}
					Expect(r.Drops()).To(BeEmpty())
					Expect(r.ChecksumErrors()).To(BeEmpty())
				})

				It("is refused by the front, through "+w.node+", where no server listens", func() {
					r := newRig(offload)
					wire := r.watch("client")
					_, err := r.NS("client").DialFrom(r.Context(limit), "tcp", r.from(40000), r.front(w, closed))
					Expect(err).To(MatchError(unix.ECONNREFUSED))
					var resets []netip.AddrPort
					for _, s := range wire.stop() {
						if tcp := s.tcp(); tcp != nil && tcp.RST {
							resets = append(resets, s.source)
						}
					}
					Expect(resets).To(Equal([]netip.AddrPort{r.front(w, closed)}))
				})
			}

			It("may dial both nodes from one port at once, and the pod tells the connections apart", func() {
				r := newRig(offload)
				fronts := []netip.AddrPort{r.front(aToB, bulk), r.front(way{"node-b", "pod-b1"}, bulk)}
				answers := make([]traffic.Answer, len(fronts))
				var conns []net.Conn
				for _, front := range fronts { // all are open before one is used
					conns = append(conns, r.dialShared("tcp", r.from(40000), front))
				}
				var transfers errgroup.Group
				for i, conn := range conns {
					transfers.Go(func() error {
						transfer, err := traffic.ExchangeOn(r.Context(limit), conn, 8<<20, 8<<20)
						answers[i] = transfer.Answer
						return err
					})
				}
				Expect(transfers.Wait()).To(Succeed())
				expectApart(answers[0].Client, answers[1].Client, r.from(40000))
				Expect(r.Drops()).To(BeEmpty())
			})

			It("may dial two fronts of one pod from one port at once, and the pod tells the connections apart", func() {
				r := newRig(offload)
				for i, w := range []way{aToB, {"node-b", "pod-b1"}} {
					// Another port each time: the pod's node may not have seen the ends of the first two yet.
					client := r.from(40000 + uint16(i))
					fronts := []netip.AddrPort{r.front(w, bulk), r.front(w, again)}
					answers := make([]traffic.Answer, len(fronts))
					var conns []net.Conn
					for _, front := range fronts { // both are open before one is used
						conns = append(conns, r.dialShared("tcp", client, front))
					}
					for i, conn := range conns {
						transfer, err := traffic.ExchangeOn(r.Context(limit), conn, 1<<20, 1<<20)
						Expect(err).NotTo(HaveOccurred())
						answers[i] = transfer.Answer
					}
					expectApart(answers[0].Client, answers[1].Client, client)
				}
				Expect(r.Drops()).To(BeEmpty())
			})

			It("may send datagrams to both nodes from one port at once, and the pod tells the flows apart", func() {
				r := newRig(offload)
				r.serveMirror("pod-b1", netip.AddrPortFrom(r.Addr("pod-b1", topo.V4), target(mirror)))
				fronts := []netip.AddrPort{r.front(aToB, mirror), r.front(way{"node-b", "pod-b1"}, mirror)}
				var conns []net.Conn
				for _, front := range fronts {
					conns = append(conns, r.dialShared("udp", r.from(40000), front))
				}
				for range 50 { // alternating, so that neither flow ends before the other begins
					expectApart(askMirror(conns[0]), askMirror(conns[1]), r.from(40000))
				}
				Expect(r.Drops()).To(BeEmpty())
			})
		})
	}
})

// largestDatagram is the UDP payload that fits: MTU less the forward tunnel (60), IPv4 and UDP headers.
const largestDatagram = topo.DefaultMTU - 60 - 20 - 8

// expectApart wants both sources to have the client's address, and one of them its port.
func expectApart(one, other, client netip.AddrPort) {
	GinkgoHelper()
	Expect([]netip.Addr{one.Addr(), other.Addr()}).To(HaveEach(client.Addr()))
	Expect([]netip.AddrPort{one, other}).To(ContainElement(client), "the first keeps its port")
	Expect(one).NotTo(Equal(other))
}

// dialShared connects from a port that another connection may have too.
func (r rig) dialShared(network string, from, to netip.AddrPort) net.Conn {
	GinkgoHelper()
	dialer := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(from), Control: func(_, _ string, raw syscall.RawConn) (err error) {
		control := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) })
		if control != nil {
			return control
		}
		return err
	}}
	if network == "udp" {
		dialer.LocalAddr = net.UDPAddrFromAddrPort(from)
	}
	var conn net.Conn
	Expect(r.NS("client").Do(func() (err error) {
		conn, err = dialer.DialContext(r.Context(limit), network, to.String())
		return err
	})).To(Succeed())
	DeferCleanup(func() { _ = conn.Close() }) // an exchange has closed it already
	return conn
}

// serveMirror answers each datagram with the source that it came from.
func (r rig) serveMirror(pod string, at netip.AddrPort) {
	GinkgoHelper()
	conn, err := r.NS(pod).ListenPacket(at)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(conn.Close)
	go func() {
		for question := make([]byte, 1500); ; {
			_, source, err := conn.ReadFromUDPAddrPort(question)
			if err != nil {
				return
			}
			source = netip.AddrPortFrom(source.Addr().Unmap(), source.Port())
			_, _ = conn.WriteToUDPAddrPort([]byte(source.String()), source) // a lost answer fails the one who asks
		}
	}()
}

// askMirror returns what the mirror saw.
func askMirror(conn net.Conn) netip.AddrPort {
	GinkgoHelper()
	Expect(conn.SetDeadline(time.Now().Add(limit))).To(Succeed())
	_, err := conn.Write([]byte("who am I?"))
	Expect(err).NotTo(HaveOccurred())
	answer := make([]byte, 100)
	n, err := conn.Read(answer)
	Expect(err).NotTo(HaveOccurred())
	source, err := netip.ParseAddrPort(string(answer[:n]))
	Expect(err).NotTo(HaveOccurred())
	return source
}
