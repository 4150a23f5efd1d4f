// SPDX-License-Identifier: Apache-2.0

package packettest

import (
	"fmt"
	"net/netip"

	. "github.com/onsi/ginkgo/v2"

	"github.com/beep-lb/beep/harness/packet"
	"github.com/beep-lb/beep/harness/progrun"
)

// walk is one of the sixteen ways to a pod: protocol, family inside, family of the tunnel.
type walk struct {
	proto          string // "tcp" or "udp"
	inner, outer   int    // 4 or 6
	client, front  string
	here, there    string
	self, peer     string
	first          packet.Part // what opens a flow
	request, reply packet.Part // what travels on it, client → front and front → client
	fromPod        packet.Part // the reply as the pod sends it
	atPod          packet.Part // the request as the pod gets it
}

func walks() []walk {
	var all []walk
	for _, proto := range []string{"tcp", "udp"} {
		for _, inner := range []int{4, 6} {
			for _, outer := range []int{4, 6} {
				all = append(all, newWalk(proto, inner, outer))
			}
		}
	}
	return all
}

func newWalk(proto string, inner, outer int) walk {
	w := walk{proto: proto, inner: inner, outer: outer,
		client: client, front: self, here: here, there: there, self: self, peer: peer,
		request: l4(proto, clientPort, frontPort), reply: l4(proto, frontPort, clientPort),
		atPod: l4(proto, clientPort, podPort), fromPod: l4(proto, podPort, clientPort),
	}
	if inner == 6 {
		w.client, w.front, w.here, w.there = client6, self6, here6, there6
	}
	if outer == 6 {
		w.self, w.peer = self6, peer6
	}
	w.first = w.request
	if proto == "tcp" {
		w.first = packet.TCP(clientPort, frontPort).Flags("S")
	}
	return w
}

func (w walk) String() string {
	return fmt.Sprintf("%s, IPv%d over IPv%d", w.proto, w.inner, w.outer)
}

// frontName, hereName and thereName are the sockets as maps name them.
func (w walk) frontName() string { return w.proto + "/" + at(w.front, frontPort) }
func (w walk) hereName() string  { return w.proto + "/" + at(w.here, podPort) }
func (w walk) thereAt() string   { return at(w.there, podPort) + "@" + w.peer }

func at(addr string, port uint16) string {
	return netip.AddrPortFrom(netip.MustParseAddr(addr), port).String()
}

// forward and back put an inner packet into the tunnel from A to B and back.
func (w walk) forward(from, to, target string, inner ...packet.Part) []byte {
	return tunnel(from, to, packet.Forward(target), inner...)
}

func (w walk) back(from, to string, inner ...packet.Part) []byte {
	return tunnel(from, to, packet.Return(), inner...)
}

// tunnel is a whole tunnel packet, as beep sends it.
func tunnel(from, to string, geneve packet.GeneveHeader, inner ...packet.Part) []byte {
	return frame(append([]packet.Part{packet.IP(from, to).DF(), packet.Outer(tunnelPort), geneve}, inner...)...)
}

// row is a line of node.flows.
func (w walk) row(table, kind, src, dst, nat string, port int, via, state string) string {
	proto := map[string]string{"tcp": "TCP", "udp": "UDP"}[w.proto]
	text := fmt.Sprintf("%s %s %s %s>%s = %s port %d", table, kind, proto, src, dst, nat, port)
	if via != "" {
		text += " via " + via
	}
	if state != "" {
		text += " " + state
	}
	return text
}

var _ = Describe("The four walks of a packet", func() {
	for _, w := range walks() {
		payload := packet.Payload(100)
		tell(
			sentence{
				about: "a client's first packet goes to the peer that has the endpoint: " + w.String(),
				given: func(n *node) { n.front(w.frontName(), false, w.thereAt()) },
				in:    frame(packet.IP(w.client, w.front).TTL(60), w.first, payload),
				out: w.forward(w.self, w.peer, at(w.there, podPort),
					packet.IP(w.client, w.front).TTL(60), w.first, payload),
				except:  []string{"udp.sport"},
				verdict: progrun.Redirect,
				flows: []string{w.row("pending", "forward", at(w.client, clientPort), at(w.front, frontPort),
					at(w.there, podPort), clientPort, w.peer, "")},
			},
			sentence{
				about: "a peer's tunnel is unwrapped for the pod here: " + w.String(),
				given: func(n *node) { n.allow(w.peer); n.target(w.hereName()) },
				in: w.forward(w.peer, w.self, at(w.here, podPort),
					packet.IP(w.client, w.frontOfPeer()), w.request, payload),
				out:     frame(packet.IP(w.client, w.here), w.atPod, payload),
				verdict: progrun.Pass,
				flows: []string{
					w.row("pending", "backend", at(w.client, clientPort), at(w.frontOfPeer(), frontPort),
						at(w.here, podPort), clientPort, w.peer, "paired,tunnelled"),
					w.row("pending", "reverse", at(w.here, podPort), at(w.client, clientPort),
						at(w.frontOfPeer(), frontPort), clientPort, w.peer, "paired,tunnelled"),
				},
			},
		)
	}
	for _, w := range walks() {
		It("a pod's answer goes back through the tunnel with the front's address: "+w.String(), Label("bpf"), func() {
			n := newNode()
			n.allow(w.peer)
			n.target(w.hereName())
			n.run(ingress, w.forward(w.peer, w.self, at(w.here, podPort),
				packet.IP(w.client, w.frontOfPeer()), w.request, packet.Payload(10)))
			s := sentence{at: egress,
				in: frame(packet.IP(w.here, w.client).TTL(63), w.fromPod, packet.Payload(10)),
				out: w.back(w.self, w.peer, packet.IP(w.frontOfPeer(), w.client).TTL(63), w.reply,
					packet.Payload(10)),
				verdict: progrun.Redirect}
			out := n.run(egress, s.in)
			s.expect(n, out)
			expectMark(out)
		})
		It("a returned answer goes to the client: "+w.String(), Label("bpf"), func() {
			n := newNode()
			n.front(w.frontName(), false, w.thereAt())
			n.allow(w.peer)
			n.run(ingress, frame(packet.IP(w.client, w.front), w.first, packet.Payload(10)))
			s := sentence{at: ingress,
				in:      w.back(w.peer, w.self, packet.IP(w.front, w.client).TTL(63), w.reply, packet.Payload(10)),
				out:     frame(packet.IP(w.front, w.client).TTL(63), w.reply, packet.Payload(10)),
				verdict: progrun.Redirect}
			out := n.run(ingress, s.in)
			s.expect(n, out)
			expectMark(out)
		})
	}
	for _, w := range walks() {
		if w.outer != w.inner {
			continue
		}
		payload := packet.Payload(100)
		tell(sentence{
			about:   "a client's first packet goes up the stack to a pod here: " + w.String(),
			given:   func(n *node) { n.front(w.frontName(), false, at(w.here, podPort)) },
			in:      frame(packet.IP(w.client, w.front), w.request, payload),
			out:     frame(packet.IP(w.client, w.here), w.atPod, payload),
			verdict: progrun.Pass,
			flows: []string{
				w.row("pending", "forward", at(w.client, clientPort), at(w.front, frontPort), at(w.here, podPort),
					clientPort, "", "paired"),
				w.row("pending", "reverse", at(w.here, podPort), at(w.client, clientPort), at(w.front, frontPort),
					clientPort, "", "paired"),
			},
		})
		It("a local pod's answer leaves with the front's address: "+w.String(), Label("bpf"), func() {
			n := newNode()
			n.front(w.frontName(), false, at(w.here, podPort))
			n.run(ingress, frame(packet.IP(w.client, w.front), w.first, payload))
			s := sentence{at: egress,
				in:      frame(packet.IP(w.here, w.client).TTL(63), w.fromPod, payload),
				out:     frame(packet.IP(w.front, w.client).TTL(63), w.reply, payload),
				verdict: progrun.Pass}
			s.expect(n, n.run(egress, s.in))
		})
	}
})

var _ = Describe("An endpoint with its node's own address, as a hostNetwork pod has", func() {
	for _, w := range walks() {
		w.here = w.front // this node's address of the flow's family
		It("is reached through the tunnel, and its answer goes back there: "+w.String(), Label("bpf"), func() {
			n := newNode()
			n.allow(w.peer)
			n.target(w.hereName())
			payload := packet.Payload(33)
			there := sentence{
				in:      w.forward(w.peer, w.self, at(w.here, podPort), packet.IP(w.client, w.frontOfPeer()), w.request, payload),
				out:     frame(packet.IP(w.client, w.here), w.atPod, payload),
				verdict: progrun.Pass,
			}
			there.expect(n, n.run(ingress, there.in))
			back := sentence{at: egress,
				in:      frame(packet.IP(w.here, w.client), w.fromPod, payload),
				out:     w.back(w.self, w.peer, packet.IP(w.frontOfPeer(), w.client), w.reply, payload),
				except:  []string{"udp.sport"},
				verdict: progrun.Redirect}
			back.expect(n, n.run(egress, back.in))
		})
	}
})

// frontOfPeer is the address that the client dialled when the tunnel comes from the peer.
func (w walk) frontOfPeer() string {
	if w.inner == 6 {
		return peer6
	}
	return peer
}
