// SPDX-License-Identifier: Apache-2.0

package mtu_test

import (
	"net"
	"net/netip"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
)

// one is the smallest burst.
var one = traffic.Burst{Size: 1, Count: 1}

var _ = Describe("ICMP errors about fronts", Label("netns"), func() {
	everywhere(func(w way, offload scene.Offload) {
		It("tell the client of a closed port, and the pod of a closed client", func() {
			r := onOneLAN(links{1500, 1500}, offload, w)
			for _, pod := range []string{localPod, remotePod} {
				t := r.open(pod, traffic.SocketOptions{}, traffic.SocketOptions{})
				Expect(t.Reconnect(netip.AddrPortFrom(r.dialled(), closedFronts[pod]))).To(Succeed())
				t.front = netip.AddrPortFrom(r.dialled(), closedFronts[pod])
				leg, frames, err := t.send(toPod, traffic.Burst{Size: 100, Count: 1})
				Expect(err).NotTo(HaveOccurred())
				t.expectError(toPod, leg, frames, portUnreachable(w.inner), r.dialled(), unix.ECONNREFUSED)
				t.end()

				t = r.open(pod, traffic.SocketOptions{}, traffic.SocketOptions{})
				fate, err := t.Ask(one, one)
				Expect(err).NotTo(HaveOccurred())
				Expect(fate.Answer.Whole()).To(BeTrue())
				leg, err = t.AnswerNobody(fate.Question.Source, traffic.Burst{Size: 100, Count: 1})
				Expect(err).NotTo(HaveOccurred())
				frames, err = t.toServer.Take()
				Expect(err).NotTo(HaveOccurred())
				t.expectError(toClient, leg, frames, portUnreachable(w.inner), r.Addr("client", w.inner), unix.ECONNREFUSED)
				t.end()
			}
			Expect(r.Drops()).To(BeEmpty())
		})

		It("tell the client, and the pod, of a hop limit that is used up", func() {
			r := behindRouter(topo.Options{}, nil, offload, w)
			for _, pod := range []string{localPod, remotePod} {
				// The router takes one, the pod's node the other.
				t := r.open(pod, traffic.SocketOptions{TTL: 2}, traffic.SocketOptions{})
				leg, frames, err := t.send(toPod, traffic.Burst{Size: 100, Count: 1})
				Expect(err).NotTo(HaveOccurred())
				t.expectError(toPod, leg, frames, timeExceeded(w.inner), r.dialled(), unix.EHOSTUNREACH)
				t.end()

				// The pod's node takes one, the router the other.
				t = r.open(pod, traffic.SocketOptions{}, traffic.SocketOptions{TTL: 2})
				leg, frames, err = t.send(toClient, traffic.Burst{Size: 100, Count: 1})
				Expect(err).NotTo(HaveOccurred())
				Expect(leg.Refusal).NotTo(BeNil(), "%s", leg)
				Expect(leg.Refusal.From).To(BeElementOf(r.Addrs("router")))
				t.expectError(toClient, leg, frames, timeExceeded(w.inner), leg.Refusal.From, unix.EHOSTUNREACH)
				t.end()
			}
			Expect(r.Drops()).To(BeEmpty())
		})

		It("are not what a ping of the node gets, of any size: the host answers", func() {
			r := onOneLAN(links{1500, 1500}, offload, w)
			for _, size := range []int{0, 56, 1500 - w.header() - 8, 1500, 4000} {
				r.ping(size)
			}
			Expect(r.Drops()).To(BeEmpty())
			r.expectRightChecksums()
		})

		if w.inner == topo.V6 {
			It("come about packets with destination options too, which reach the pod like others", func() {
				r := onOneLAN(links{1500, 1500}, offload, w)
				for _, pod := range []string{localPod, remotePod} {
					t := r.open(pod, traffic.SocketOptions{Fragment: traffic.ProbePath, DestOptions: true}, dontFragment)
					for _, size := range []int{1, 1200} {
						leg, _, err := t.send(toPod, traffic.Burst{Size: size, Count: 1})
						Expect(err).NotTo(HaveOccurred())
						Expect(leg.Whole()).To(BeTrue(), "%s, %d bytes: %s", pod, size, leg)
					}
					const extension = 8
					if pod == remotePod {
						leg, _, err := t.send(toPod, traffic.Burst{Size: w.forward(1500) - 40 - extension - udpHeader + 1, Count: 1})
						Expect(err).NotTo(HaveOccurred())
						Expect(leg.Refusal).To(HaveValue(Equal(traffic.Refusal{
							Type: traffic.TooBig6, MTU: w.forward(1500), From: r.dialled(), Errno: unix.EMSGSIZE})), "%s", leg)
					}
					t.end()
				}
				r.expectRightChecksums()
			})
		}
	})
})

// portUnreachable and timeExceeded are the type and code.
func portUnreachable(family topo.Families) [2]uint8 {
	if family == topo.V4 {
		return [2]uint8{traffic.Unreachable4, traffic.PortUnreachable4}
	}
	return [2]uint8{traffic.Unreachable6, traffic.PortUnreachable6}
}

func timeExceeded(family topo.Families) [2]uint8 {
	if family == topo.V4 {
		return [2]uint8{traffic.TimeExceeded4, 0}
	}
	return [2]uint8{traffic.TimeExceeded6, 0}
}

// expectError wants one error, as the socket tells it and on the wire.
func (t *talk) expectError(d direction, leg traffic.Leg, frames [][]byte, kind [2]uint8, from netip.Addr, errno unix.Errno) {
	GinkgoHelper()
	Expect(leg.Refusal).To(HaveValue(Equal(traffic.Refusal{Type: kind[0], Code: kind[1], From: from, Errno: errno})), "%s: %s", d, leg)
	Expect(frames).To(HaveLen(1))
	Expect(t.judgeFrame(d, *leg.Refusal, frames[0], leg.Sent)).To(Succeed())
}

// ping exchanges one echo request and reply with the node; both are fragmented where they must be.
func (r rig) ping(size int) {
	GinkgoHelper()
	network, request, reply := "ip4:icmp", []byte{8, 0, 0, 0, 0, 7, 0, 1}, byte(0)
	if r.inner == topo.V6 {
		network, request, reply = "ip6:ipv6-icmp", []byte{128, 0, 0, 0, 0, 7, 0, 1}, 129
	}
	request = append(request, make([]byte, size)...)
	if r.inner == topo.V4 { // of ICMPv6 the kernel fills it in (RFC 3542, section 3.1)
		sum := ^(uint16(request[0])<<8 + 7 + 1)
		request[2], request[3] = byte(sum>>8), byte(sum)
	}
	var conn net.PacketConn
	Expect(r.NS("client").Do(func() (err error) {
		conn, err = net.ListenPacket(network, r.Addr("client", r.inner).String())
		return err
	})).To(Succeed())
	defer conn.Close()
	Expect(conn.SetDeadline(time.Now().Add(limit))).To(Succeed())
	_, err := conn.WriteTo(request, &net.IPAddr{IP: r.dialled().AsSlice()})
	Expect(err).NotTo(HaveOccurred())
	for buffer := make([]byte, 1<<16); ; { // neighbour discovery passes here too
		n, from, err := conn.ReadFrom(buffer)
		Expect(err).NotTo(HaveOccurred(), "no reply to an echo request of %d bytes", size)
		if buffer[0] == reply {
			Expect(n).To(Equal(len(request)))
			Expect(from.String()).To(Equal(r.dialled().String()))
			return
		}
	}
}
