// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/packet"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
)

// talkTo opens a dialogue whose client dials a port of the node, on which the server listens or not.
func talkTo(t *testing.T, family topo.Families, dialled uint16, client traffic.SocketOptions) (*traffic.Dialogue, *topo.Topology) {
	t.Helper()
	_, topology, from, node := pair(t)
	at := netip.AddrPortFrom(topology.Addr("node-a", family), 5000)
	dialogue, err := traffic.OpenDialogue(traffic.Talk{
		Client: from, From: netip.AddrPortFrom(topology.Addr("client", family), 0),
		Dialled: netip.AddrPortFrom(at.Addr(), dialled), ClientOptions: client,
		Server: node, At: at,
	})
	if err != nil {
		t.Fatal(err)
	}
	return dialogue, topology
}

func TestDialogueTellsTheFateOfEveryDatagram(t *testing.T) {
	for name, family := range families {
		t.Run(name, func(t *testing.T) {
			dialogue, _ := talkTo(t, family, 5000, traffic.SocketOptions{Fragment: traffic.ProbePath})
			for _, burst := range []traffic.Burst{{1, 1}, {1400, 1}, {1200, 40}} {
				fate, err := dialogue.Ask(burst, burst)
				if err != nil || !fate.Question.Whole() || !fate.Answer.Whole() || fate.Question.Source != dialogue.Client() {
					t.Errorf("%+v: question %s, answer %s, %v", burst, fate.Question, fate.Answer, err)
				}
			}
			fate, err := dialogue.Ask(traffic.Burst{Size: 2000, Count: 1}, traffic.Burst{Size: 1, Count: 1})
			if err != nil || fate.Question.Errno != unix.EMSGSIZE || fate.Answer.Due != 0 {
				t.Errorf("longer than the link: question %s, answer %s, %v", fate.Question, fate.Answer, err)
			}
			if dialogue.Strays() != 0 {
				t.Errorf("%d strays", dialogue.Strays())
			}
		})
	}
}

func TestDialogueReadsICMPErrors(t *testing.T) {
	for name, family := range families {
		t.Run(name, func(t *testing.T) {
			dialogue, topology := talkTo(t, family, 5001, traffic.SocketOptions{})
			if err := topology.Offloads(false); err != nil { // with them the quoted checksum is not finished
				t.Fatal(err)
			}
			watch, err := traffic.WatchICMP(topology.NS("client"), "eth0")
			if err != nil {
				t.Fatal(err)
			}
			fate, err := dialogue.Ask(traffic.Burst{Size: 100, Count: 1}, traffic.Burst{Size: 1, Count: 1})
			want := traffic.Refusal{Type: traffic.Unreachable4, Code: traffic.PortUnreachable4, From: topology.Addr("node-a", family), Errno: unix.ECONNREFUSED}
			if family == topo.V6 {
				want.Type, want.Code = traffic.Unreachable6, traffic.PortUnreachable6
			}
			if err != nil || fate.Question.Refusal == nil || *fate.Question.Refusal != want {
				t.Errorf("question %s, %v, want %+v", fate.Question, err, want)
			}
			frames, err := watch.Take()
			if err != nil || len(frames) != 1 || packet.Verify(frames[0]) != nil {
				t.Errorf("on the wire: %d errors, %v", len(frames), err)
			}
		})
	}
}
