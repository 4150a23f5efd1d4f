// SPDX-License-Identifier: Apache-2.0

package packettest

import (
	"github.com/cilium/ebpf"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/packet"
	"github.com/beep-lb/beep/harness/progrun"
)

// sentence is one packet's fate.
type sentence struct {
	about string
	// tweak changes the object before it is loaded: constants and sizes that flags set, too.
	tweak func(*ebpf.CollectionSpec)
	given func(*node)
	at    hook
	in    []byte
	mark  uint32
	gso   uint32 // segment size of a GSO packet
	// verdict is what the hook returns, reason the counted drop ("" for none).
	verdict progrun.Verdict
	reason  string
	// out is the packet afterwards; nil means unchanged. A dropped packet is not looked at.
	out []byte
	// except names fields of out that cannot be foretold, such as the tunnel's source port.
	except []string
	// flows are all rows afterwards; nil means none.
	flows []string
}

// check runs the sentence on a node of its own.
func (s sentence) check() {
	GinkgoHelper()
	var tweaks []func(*ebpf.CollectionSpec)
	if s.tweak != nil {
		tweaks = append(tweaks, s.tweak)
	}
	n := newNode(tweaks...)
	if s.given != nil {
		s.given(n)
	}
	in := progrun.In{Packet: s.in, Ifindex: n.eth0, Mark: s.mark}
	if s.gso > 0 {
		in.GSOSize, in.GSOSegs = s.gso, uint32(len(s.in))/s.gso+1
	}
	before := n.traffic()
	got := n.runOn(s.at, in)
	s.expect(n, got)
	s.expectTraffic(n.traffic()-before, got)
	if s.flows == nil {
		s.flows = []string{}
	}
	Expect(n.flows()).To(Equal(s.flows))
}

// expect compares what one run left with the sentence, but for the rows.
func (s sentence) expect(n *node, got progrun.Out) {
	GinkgoHelper()
	Expect(got.Verdict).To(Equal(s.verdict))
	drops := map[string]uint64{}
	if s.reason != "" {
		direction := " ingress"
		if s.at == egress {
			direction = " egress"
		}
		drops[s.reason+direction] = 1
	}
	Expect(n.drops()).To(Equal(drops))
	if s.verdict == progrun.Shot {
		return
	}
	want := s.out
	if want == nil {
		want = s.in
	}
	Expect(got.Packet).To(packet.EqualPacket(want, s.except...))
	if s.out != nil {
		Expect(packet.Verify(got.Packet)).To(Succeed())
	}
}

// expectTraffic wants what was translated or redirected counted, each segment of it, and nothing else.
func (s sentence) expectTraffic(counted uint64, got progrun.Out) {
	GinkgoHelper()
	var want uint64
	if s.verdict == progrun.Redirect || s.verdict == progrun.Pass && s.out != nil && s.mark == 0 {
		want = max(1, uint64(got.GSOSegs))
	}
	Expect(counted).To(Equal(want), "packets counted as traffic")
}

// tell makes a spec of every sentence.
func tell(sentences ...sentence) {
	for _, s := range sentences {
		told = append(told, s)
		It(s.about, Label("bpf"), s.check)
	}
}

// told are all sentences, for the specs that ask whether something has none.
var told []sentence

// frame puts an Ethernet header in front.
func frame(parts ...packet.Part) []byte {
	return packet.Build(append([]packet.Part{packet.Eth(packet.MAC1, packet.MAC2)}, parts...)...)
}

// l4 is TCP or UDP with 10 bytes of payload, TCP without any flag but ACK.
func l4(proto string, src, dst uint16) packet.Part {
	if proto == "udp" {
		return packet.UDP(src, dst)
	}
	return packet.TCP(src, dst)
}
