// SPDX-License-Identifier: Apache-2.0

package packettest

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/cilium/ebpf"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/packet"
	"github.com/beep-lb/beep/harness/progrun"
	"github.com/beep-lb/beep/src/datapath/maps"
	"github.com/beep-lb/beep/src/model"
)

// talk is one flow at one node: what the client sends it and what the pod answers, as this node sees them.
type talk struct {
	n    *node
	w    walk
	role string
}

// The places at which a flow has rows: the ingress node of a remote pod, that pod's node, or both in one.
const (
	atIngress = "ingress node"
	atBackend = "backend node"
	atBoth    = "node of client and pod"
)

func newTalk(role, proto string, tweaks ...func(*ebpf.CollectionSpec)) talk {
	GinkgoHelper()
	t := talk{n: newNode(tweaks...), w: newWalk(proto, 4, 4), role: role}
	t.n.allow(peer)
	t.know()
	return t
}

// know gives the node what it needs to know for such a flow.
func (t talk) know() {
	GinkgoHelper()
	switch t.role {
	case atIngress:
		t.n.front(t.w.frontName(), false, t.w.thereAt())
	case atBackend:
		t.n.target(t.w.hereName())
	case atBoth:
		t.n.front(t.w.frontName(), false, at(here, podPort))
	}
}

func (t talk) segment(src, dst uint16, flags string) packet.Part {
	if t.w.proto == "udp" {
		return packet.UDP(src, dst)
	}
	// A SYN-ACK has number 1 here, and 2 acknowledges it.
	return packet.TCP(src, dst).Flags(flags).Ack(ackOf(flags))
}

// ackOf is 0 where there is no acknowledgement.
func ackOf(flags string) uint32 {
	if strings.Contains(flags, "A") {
		return 2
	}
	return 0
}

// client is a packet of the client's with these TCP flags.
func (t talk) client(flags string) progrun.Out {
	GinkgoHelper()
	return t.send(t.segment(clientPort, frontPort, flags))
}

// send is a packet of the client's.
func (t talk) send(part packet.Part) progrun.Out {
	GinkgoHelper()
	if t.role == atBackend {
		return t.n.run(ingress, tunnel(peer, self, packet.Forward(at(here, podPort)), packet.IP(client, peer), part))
	}
	return t.n.run(ingress, frame(packet.IP(client, self), part))
}

// pod is an answer of the pod's with these TCP flags.
func (t talk) pod(flags string) progrun.Out {
	GinkgoHelper()
	return t.answer(clientPort, flags)
}

// answer is the pod's, to a port of the client's.
func (t talk) answer(port uint16, flags string) progrun.Out {
	GinkgoHelper()
	if t.role == atIngress {
		return t.n.run(ingress, tunnel(peer, self, packet.Return(), packet.IP(self, client), t.segment(frontPort, port, flags)))
	}
	return t.n.run(egress, frame(packet.IP(here, client), t.segment(podPort, port, flags)))
}

// rows are the flow's rows in one table with one state.
func (t talk) rows(table, state string) []string {
	switch t.role {
	case atIngress:
		return []string{t.w.row(table, "forward", at(client, clientPort), at(self, frontPort), at(there, podPort), clientPort, peer, state)}
	case atBackend:
		return []string{
			t.w.row(table, "backend", at(client, clientPort), at(peer, frontPort), at(here, podPort), clientPort, peer, order(state, "paired,tunnelled")),
			t.w.row(table, "reverse", at(here, podPort), at(client, clientPort), at(peer, frontPort), clientPort, peer, order(state, "paired,tunnelled")),
		}
	}
	return []string{
		t.w.row(table, "forward", at(client, clientPort), at(self, frontPort), at(here, podPort), clientPort, "", order(state, "paired")),
		t.w.row(table, "reverse", at(here, podPort), at(client, clientPort), at(self, frontPort), clientPort, "", order(state, "paired")),
	}
}

// order joins names of flags as maps.Flags prints them.
func order(state, rest string) string {
	if state == "" {
		return rest
	}
	return state + "," + rest
}

var _ = Describe("The life of a flow", Label("bpf"), func() {
	for _, role := range []string{atIngress, atBackend, atBoth} {
		Describe("on the "+role, func() {
			It("TCP is half-open until the client's packet after the pod's answer", func() {
				t := newTalk(role, "tcp")
				t.client("S")
				Expect(t.n.flows()).To(Equal(t.rows("pending", "")))
				t.client("S")
				Expect(t.n.flows()).To(Equal(t.rows("pending", "")))
				t.pod("SA")
				Expect(t.n.flows()).To(Equal(t.rows("pending", "replied")))
				t.client("S")
				Expect(t.n.flows()).To(Equal(t.rows("pending", "replied")), "a repeated SYN proves nothing")
				t.client("A")
				Expect(t.n.flows()).To(Equal(t.rows("flow", "replied")))
			})
			It("an acknowledgement of what the pod did not send proves nothing", func() {
				t := newTalk(role, "tcp")
				t.client("S")
				t.pod("SA")
				for _, number := range []uint32{0, 1, 3, 7777} {
					t.send(packet.TCP(clientPort, frontPort).Flags("A").Ack(number))
				}
				Expect(t.n.flows()).To(Equal(t.rows("pending", "replied")))
				t.send(packet.TCP(clientPort, frontPort).Flags("A").Ack(2))
				Expect(t.n.flows()).To(Equal(t.rows("flow", "replied")))
			})
			It("bare ACKs never leave the half-open table", func() {
				t := newTalk(role, "tcp")
				t.client("A")
				t.client("PA")
				Expect(t.n.flows()).To(Equal(t.rows("pending", "")))
				t.pod("R")
				Expect(t.n.flows()).To(Equal(t.rows("pending", "closed")))
				t.client("A")
				Expect(t.n.flows()).To(Equal(t.rows("pending", "closed")))
			})
			It("UDP is established by the first answer", func() {
				t := newTalk(role, "udp")
				t.client("")
				t.client("")
				Expect(t.n.flows()).To(Equal(t.rows("pending", "")))
				t.pod("")
				Expect(t.n.flows()).To(Equal(t.rows("flow", "replied")))
			})
			It("a FIN of one side leaves the flow open, of both closes it, and late packets still pass", func() {
				t := newTalk(role, "tcp")
				t.client("S")
				t.pod("SA")
				t.client("A")
				t.client("FA")
				Expect(t.n.flows()).To(Equal(t.rows("flow", "replied,fin-client")))
				t.pod("A")
				t.pod("FA")
				Expect(t.n.flows()).To(Equal(t.rows("flow", "replied,fin-client,fin-endpoint,closed")))
				Expect(t.client("A").Verdict).NotTo(Equal(progrun.Shot))
				Expect(t.pod("FA").Verdict).NotTo(Equal(progrun.Shot))
				Expect(t.n.flows()).To(Equal(t.rows("flow", "replied,fin-client,fin-endpoint,closed")))
			})
			It("a reset of either side closes it", func() {
				t := newTalk(role, "tcp")
				t.client("S")
				t.pod("SA")
				t.client("A")
				t.client("R")
				Expect(t.n.flows()).To(Equal(t.rows("flow", "replied,closed")))
			})
			It("a SYN on a closed row begins anew", func() {
				t := newTalk(role, "tcp")
				t.client("S")
				t.pod("SA")
				t.client("A")
				t.pod("RA")
				Expect(t.n.flows()).To(Equal(t.rows("flow", "replied,closed")))
				t.client("S")
				Expect(t.n.flows()).To(Equal(t.rows("pending", "")))
			})
		})
	}

	It("a SYN on a closed row finds the pod that serves now", func() {
		t := newTalk(atIngress, "tcp")
		t.client("S")
		t.pod("SA")
		t.client("A")
		t.n.replace(t.w.frontName(), at("10.42.1.9", podPort)+"@"+peer)
		Expect(t.client("A").Packet).To(ContainSubstring("\x0a\x2a\x01\x05"), "a pinned flow keeps its pod")
		t.client("R")
		Expect(t.client("S").Packet).To(ContainSubstring("\x0a\x2a\x01\x09"))
	})

	It("an established flow outlives its front, a half-open one does not", func() {
		t := newTalk(atIngress, "tcp")
		t.client("S")
		t.pod("SA")
		socket, err := model.ParseSocket(t.w.frontName())
		Expect(err).NotTo(HaveOccurred())
		t.client("A")
		Expect(t.n.maps.DeleteFront(socket)).To(Succeed())
		Expect(t.client("A").Verdict).To(Equal(progrun.Redirect))
		Expect(t.pod("A").Verdict).To(Equal(progrun.Redirect))
		Expect(t.n.run(ingress, frame(packet.IP(client, self), packet.TCP(1, frontPort).Flags("S"))).Verdict).To(Equal(progrun.Pass))
	})

	It("an answer whose row is gone is still forwarded if it comes from a front of ours", func() {
		t := newTalk(atIngress, "tcp")
		Expect(t.pod("R").Verdict).To(Equal(progrun.Redirect))
		Expect(t.n.drops()).To(BeEmpty())
	})

	It("half of a pair that was evicted is made again from the other half", func() {
		for _, kind := range []maps.Kind{maps.Forward, maps.Reverse} {
			t := newTalk(atBoth, "udp")
			t.client("")
			t.pod("")
			want := t.n.flows()
			t.n.age(100)
			t.n.forget(kind)
			if kind == maps.Reverse {
				t.client("")
			} else {
				t.pod("")
			}
			Expect(t.n.flows()).To(Equal(want), "without %s", kind)
		}
	})

	It("the time of both rows of a pair is written together, at most once a second", func() {
		t := newTalk(atBoth, "udp")
		t.client("")
		t.pod("")
		t.n.age(100)
		t.client("")
		var seen []uint32
		Expect(t.n.maps.Flows(func(f maps.Flow) bool { seen = append(seen, f.LastSeen); return true })).To(Succeed())
		Expect(seen).To(HaveLen(2))
		Expect(seen[0]).To(Equal(seen[1]))
		Expect(t.n.now() - seen[0]).To(BeNumerically("<", 5))
	})
})

var _ = Describe("A client's port that is taken towards the pod", Label("bpf"), func() {
	It("is changed for the second flow, and back on its answers", func() {
		n := newNode()
		n.allow(peer, "192.0.2.3")
		n.target("tcp/" + at(here, podPort))
		forward := func(from string) progrun.Out {
			return n.run(ingress, tunnel(from, self, packet.Forward(at(here, podPort)), packet.IP(client, from), syn))
		}
		first, second := forward(peer), forward("192.0.2.3")
		Expect(first.Packet).To(packet.EqualPacket(frame(packet.IP(client, here), packet.TCP(clientPort, podPort).Flags("S"))))
		port := n.clientPort("backend", "192.0.2.3")
		Expect(port).NotTo(BeEquivalentTo(clientPort))
		Expect(second.Packet).To(packet.EqualPacket(frame(packet.IP(client, here), packet.TCP(port, podPort).Flags("S"))))
		answer := func(to uint16) []byte {
			return n.run(egress, frame(packet.IP(here, client), packet.TCP(podPort, to).Flags("SA"))).Packet
		}
		back := func(to string) []byte {
			return tunnel(self, to, packet.Return(), packet.IP(to, client), packet.TCP(frontPort, clientPort).Flags("SA"))
		}
		Expect(answer(clientPort)).To(packet.EqualPacket(back(peer)))
		Expect(answer(port)).To(packet.EqualPacket(back("192.0.2.3")))
	})

	It("is changed between two fronts of one pod here", func() {
		n := newNode()
		n.front("tcp/"+at(self, 80), false, at(here, podPort))
		n.front("tcp/"+at(self, 81), false, at(here, podPort))
		for _, port := range []uint16{80, 81} {
			Expect(n.run(ingress, frame(packet.IP(client, self), packet.TCP(clientPort, port).Flags("S"))).Verdict).To(Equal(progrun.Pass))
		}
		Expect(n.flows()).To(HaveLen(4))
	})

	It("is free again as soon as the flow that had it has closed", func() {
		n := newNode()
		n.front("tcp/"+at(self, 80), false, at(here, podPort))
		n.front("tcp/"+at(self, 81), false, at(here, podPort))
		open := func(port uint16) []byte {
			return n.run(ingress, frame(packet.IP(client, self), packet.TCP(clientPort, port).Flags("S"))).Packet
		}
		open(80)
		n.run(egress, frame(packet.IP(here, client), packet.TCP(podPort, clientPort).Flags("RA")))
		Expect(open(81)).To(packet.EqualPacket(frame(packet.IP(client, here), packet.TCP(clientPort, podPort).Flags("S"))))
		Expect(n.flows()).To(HaveLen(2), "the closed pair has gone whole")
	})

	It("is searched for much further than 16 candidates", func() {
		n := newNode()
		n.allow(peer)
		n.target("tcp/" + at(here, podPort))
		for i := range 300 {
			n.front(fmt.Sprintf("tcp/%s:%d", self, 1000+i), false, at(here, podPort))
			out := n.run(ingress, frame(packet.IP(client, self), packet.TCP(clientPort, uint16(1000+i)).Flags("S")))
			Expect(out.Verdict).To(Equal(progrun.Pass))
		}
		Expect(n.drops()).To(BeEmpty())
	})
})

var _ = Describe("A flood of datagrams that pods answer", Label("bpf"), func() {
	for _, role := range []string{atIngress, atBackend, atBoth} {
		It("pushes out datagrams, and no connection: "+role, func() {
			const room = 64
			tcp := newTalk(role, "tcp", func(spec *ebpf.CollectionSpec) {
				for _, table := range maps.FlowTables {
					spec.Maps[table].MaxEntries = room
				}
			})
			tcp.client("S")
			tcp.pod("SA")
			tcp.client("A")
			Expect(tcp.n.flows()).To(Equal(tcp.rows("flow", "replied")))
			udp := talk{n: tcp.n, w: newWalk("udp", 4, 4), role: role}
			udp.know()
			for port := range uint16(10 * room) {
				Expect(udp.send(packet.UDP(1024+port, frontPort)).Verdict).NotTo(Equal(progrun.Shot))
				Expect(udp.answer(1024+port, "").Verdict).NotTo(Equal(progrun.Shot))
			}
			Expect(tcp.n.flows()).To(ContainElements(tcp.rows("flow", "replied")))
			fills, err := tcp.n.maps.Fill()
			Expect(err).NotTo(HaveOccurred())
			rows := map[string]uint32{}
			for _, fill := range fills {
				rows[fill.Map] = fill.Entries
			}
			Expect(rows[maps.FlowTable]).To(BeEquivalentTo(len(tcp.rows("flow", "replied"))))
			Expect(rows[maps.FlowDatagrams]).To(BeNumerically(">", room/2), "the flood has filled its own table")
		})
	}
})

var _ = Describe("Trust is checked again when it changes", Label("bpf"), func() {
	for _, role := range []string{atIngress, atBackend} {
		It("a removed peer's packets are dropped, established flows' too: "+role, func() {
			t := newTalk(role, "udp")
			t.client("")
			t.pod("")
			t.client("")
			Expect(t.n.drops()).To(BeEmpty())
			Expect(t.n.maps.DeletePeer(netip.MustParseAddr(peer))).To(Succeed())
			got := t.client
			if role == atIngress {
				got = t.pod
			}
			Expect(got("").Verdict).To(Equal(progrun.Shot))
			Expect(t.n.drops()).To(Equal(map[string]uint64{"unknown-peer ingress": 1}))
			t.n.allow(peer)
			Expect(got("").Verdict).NotTo(Equal(progrun.Shot))
		})
	}
	It("a removed target gets nothing more, established flows neither", func() {
		t := newTalk(atBackend, "udp")
		t.client("")
		t.pod("")
		socket, err := model.ParseSocket(t.w.hereName())
		Expect(err).NotTo(HaveOccurred())
		Expect(t.n.maps.DeleteTarget(socket)).To(Succeed())
		Expect(t.client("").Verdict).To(Equal(progrun.Shot))
		Expect(t.n.drops()).To(Equal(map[string]uint64{"unknown-target ingress": 1}))
	})
})
