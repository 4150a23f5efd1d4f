// SPDX-License-Identifier: Apache-2.0

package trace_test

import (
	"net"
	"net/netip"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/topo"
)

var _ = Describe("beep trace", Label("netns"), func() {
	It("tells of a SYN to a pod on the node, and of its answer", func() {
		r := newRig()
		l := r.look("node-a", "--client", r.Addr("client", topo.V4).String(), "--front", r.front(near).String(), "-o", "json")
		r.talk(40000, near)
		lines := l.end()
		GinkgoWriter.Println(lines)
		Expect(len(lines)).To(BeNumerically(">=", 5))
		syn, answer := lines[0], lines[1]
		Expect(syn.Bytes).To(BeNumerically(">", 40))
		syn.Bytes, syn.BytesAfter, answer.Bytes, answer.BytesAfter = 0, 0, 0, 0
		want := line{Device: "eth0", Direction: "ingress", From: "client", To: "endpoint", Protocol: "TCP", Flags: "S", NewFlow: true,
			Client: r.client(40000), Front: r.front(near), Endpoint: r.pod("pod-a1", near+1000)}
		Expect(syn).To(Equal(want))
		want.Direction, want.From, want.To, want.Flags, want.NewFlow = "egress", "endpoint", "client", "SA", false
		Expect(answer).To(Equal(want))
	})

	It("tells on both nodes of a SYN through the tunnel, and of its answer", func() {
		r := newRig()
		a := r.look("node-a", "--front", r.front(far).String(), "-o", "json")
		b := r.look("node-b", "--front", r.front(far).String(), "-o", "json")
		r.talk(40000, far)
		onA, onB := a.end(), b.end()
		GinkgoWriter.Println(onA)
		GinkgoWriter.Println(onB)
		Expect(len(onA)).To(BeNumerically(">=", 5))
		Expect(len(onB)).To(BeNumerically(">=", 5))
		nodeA, nodeB := r.Addr("node-a", topo.V4), r.Addr("node-b", topo.V4)
		expect := func(got line, direction, from, to, flags string, begins bool, peer netip.Addr, grown int) {
			GinkgoHelper()
			// A packet that waits for its neighbour's link-layer address is not seen again before the next one.
			Expect(got.BytesAfter).To(Or(Equal(got.Bytes+grown), BeZero()))
			got.Bytes, got.BytesAfter = 0, 0
			Expect(got).To(Equal(line{Device: "eth0", Direction: direction, From: from, To: to, Protocol: "TCP", Flags: flags,
				NewFlow: begins, Client: r.client(40000), Front: r.front(far), Endpoint: r.pod("pod-b1", far+1000), Peer: peer}))
		}
		expect(onA[0], "ingress", "client", "tunnel", "S", true, nodeB, 60)
		expect(onB[0], "ingress", "peer", "endpoint", "S", true, nodeA, -60)
		expect(onB[1], "egress", "endpoint", "tunnel", "SA", false, nodeA, 40)
		expect(onA[1], "ingress", "peer", "client", "SA", false, nodeB, -40)
		Expect(ways(onA)).To(HaveLen(2))
		Expect(ways(onB)).To(HaveLen(2))
	})

	It("tells of a drop and its reason, though nothing comes after it", func() {
		r := newRig()
		l := r.look("node-a", "--front", r.front(nobody).String(), "--proto", "udp", "--count", "1", "-o", "json")
		conn, err := r.NS("client").DialFrom(r.Context(limit), "udp", r.client(40000), r.front(nobody))
		Expect(err).NotTo(HaveOccurred())
		defer conn.Close()
		Expect(conn.Write([]byte("anybody?"))).To(Equal(8))
		lines := l.lines()
		Expect(lines).To(HaveLen(1))
		lines[0].Bytes = 0
		Expect(lines[0]).To(Equal(line{Device: "eth0", Direction: "ingress", From: "client", To: "drop", Reason: "no-endpoint",
			Protocol: "UDP", Client: r.client(40000), Front: r.front(nobody)}))
	})

	It("tells of what does not fit: an error to the sender, or copies for its parts, and of fragments", func() {
		r := newRig()
		l := r.look("node-a", "--front", "UDP/"+r.front(far).String(), "-o", "json")
		datagram := make([]byte, 1472) // as long as the MTU allows, and too long for the tunnel
		send := func(from uint16, datagram []byte, prepare func(net.Conn)) {
			GinkgoHelper()
			conn, err := r.NS("client").DialFrom(r.Context(limit), "udp", r.client(from), r.front(far))
			Expect(err).NotTo(HaveOccurred())
			defer conn.Close()
			prepare(conn)
			Expect(conn.Write(datagram)).To(Equal(len(datagram)))
		}
		send(40000, datagram, fragmentable)
		l.await(`"from":"copy"`)
		send(40001, make([]byte, 3000), fragmentable)
		l.await(`later fragment`)
		send(40002, datagram, func(net.Conn) {})
		l.await(`"to":"sender"`)
		lines := l.end()
		GinkgoWriter.Println(lines)
		Expect(lines[len(lines)-1].Note).To(Equal("answered with an ICMP error"))
		counts := ways(lines)
		Expect(counts).To(HaveKeyWithValue("client>sender too-big", 1))
		Expect(counts).To(HaveKey("client>copy "))
		Expect(counts["copy>tunnel "]).To(BeNumerically(">=", 2))
		for _, one := range lines {
			Expect(one.Front.Addr()).To(Equal(r.front(far).Addr()), "%+v", one)
			if one.From == "copy" {
				Expect(one.Endpoint.Addr()).To(Equal(r.pod("pod-b1", 0).Addr()), "%+v", one)
			}
		}
	})

	It("tells of the packets of one client and one front only, to as many as look, and nothing of the host's own but if asked", func() {
		r := newRig()
		client := r.Addr("client", topo.V4).String()
		looks := map[string]*look{
			"another client":   r.look("node-a", "--client", "198.51.100.200", "-o", "json"),
			"another port":     r.look("node-a", "--front", r.front(nobody).String(), "-o", "json"),
			"another protocol": r.look("node-a", "--front", r.front(near).String(), "--proto", "udp", "-o", "json"),
			"the client":       r.look("node-a", "--client", client+"/31", "-o", "json"),
			"the front":        r.look("node-a", "--front", "TCP/"+r.front(near).String(), "-o", "json"),
			"nobody else":      r.look("node-a", "-o", "json"),
			"what passes":      r.look("node-a", "--client", client, "--passes", "-o", "json"),
		}
		r.talk(40000, near)
		_, err := r.NS("client").DialFrom(r.Context(limit), "tcp", r.client(40001), r.front(9))
		Expect(err).To(HaveOccurred(), "nobody listens on the node itself")
		told := map[string]map[string]int{}
		for name, l := range looks {
			told[name] = ways(l.end())
		}
		for _, name := range []string{"another client", "another port", "another protocol"} {
			Expect(told[name]).To(BeEmpty(), name)
		}
		both := And(HaveLen(2), HaveKey("client>endpoint "), HaveKey("endpoint>client "))
		Expect(told["the client"]).To(both)
		Expect(told["the front"]).To(Equal(told["the client"]))
		Expect(told["nobody else"]).To(Equal(told["the client"]))
		Expect(told["what passes"]).To(And(HaveLen(4), HaveKeyWithValue("client>host ", 1), HaveKeyWithValue("endpoint>host ", 1)))
	})

	It("works without a daemon, follows one that starts anew, and leaves nothing behind when it is killed", func() {
		r := newRig()
		node := r.Nodes["node-a"]
		Expect(node.Kill9()).To(Succeed())
		before := r.programs("node-a")
		l := r.look("node-a", "--front", r.front(far).String(), "-o", "json")
		Expect(r.programs("node-a")).To(HaveLen(len(before) + 4))
		r.talk(40000, far)
		Expect(node.Restart()).To(Succeed())
		r.talk(40001, far)
		Eventually(func() string { return l.text(&l.out) }, limit).Should(ContainSubstring(r.client(40001).String()))
		Expect(l.Kill()).To(Succeed())
		Eventually(func() int { return len(r.programs("node-a")) }, limit).Should(Equal(len(before)))
		r.talk(40002, far)
	})

	It("needs no more rights than the container of beep run has", func() {
		r := newRig()
		l := r.lookAs([]string{"setpriv", "--bounding-set=-all,+bpf,+net_admin,+perfmon", "--inh-caps=-all"},
			"node-a", "--front", r.front(near).String(), "--count", "1", "-o", "json")
		r.talk(40000, near)
		Expect(l.lines()).To(HaveLen(1))
	})

	It("ends with a line to say so when beep is taken off the node", func() {
		r := newRig()
		l := r.look("node-a", "--front", r.front(near).String())
		Expect(r.Nodes["node-a"].Terminate()).To(Succeed())
		Expect(os.RemoveAll(r.Nodes["node-a"].PinDir())).To(Succeed())
		Eventually(l.Done(), limit).Should(BeClosed())
		Expect(l.Wait()).NotTo(Succeed())
		Expect(l.text(&l.err)).To(ContainSubstring("beep has made its counters anew"))
		Expect(r.programs("node-a")).To(BeEmpty())
	})

	It("counts what is too much", func() {
		r := newRig()
		l := r.look("node-a", "--front", r.front(near).String(), "--rate", "2", "-o", "json")
		r.talk(40000, near)
		lines := l.end()
		Expect(len(lines)).To(BeNumerically(">=", 2))
		Expect(l.text(&l.err)).To(MatchRegexp(`\d+ packets more were not shown: narrow --client`))
	})

	It("refuses what it cannot do in one line", func() {
		r := newRig()
		for _, tt := range []struct{ flags, words string }{
			{"--front 192.0.2.0/24", "--front: 192.0.2.0/24 is more than one address"},
			{"--client 198.51.100.1:80", "--client: want ADDRESS or ADDRESS/BITS"},
			{"--front TCP/192.0.2.1:80 --proto udp", "--proto: udp, but --front is TCP"},
			{"--front 192.0.2.1 --proto sctp", "--proto: protocol \"sctp\": want tcp or udp"},
			{"--front 192.0.2.1 --rate 0", "--rate is at least 1"},
		} {
			_, err := r.Nodes["node-a"].Tool("trace", strings.Fields(tt.flags)...)
			Expect(err).To(MatchError(ContainSubstring(tt.words)))
			Expect(strings.Count(err.Error(), "beep: ")).To(Equal(1), err.Error())
		}
	})
})
