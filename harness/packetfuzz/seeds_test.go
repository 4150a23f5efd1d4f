// SPDX-License-Identifier: Apache-2.0

package packetfuzz

import (
	"bytes"
	"slices"
	"testing"

	"github.com/beep-lb/beep/harness/packet"
	"github.com/beep-lb/beep/src/model"
)

// input is what the fuzzer changes.
type input struct {
	frame, twists []byte
	how           byte
}

func changes(all ...twist) (b []byte) {
	for _, c := range all {
		b = append(b, c[:]...)
	}
	return b
}

// ipSeeds are packets of one family outside of tunnels, with each twist once.
func ipSeeds(f family) (seeds []input) {
	for _, said := range f.story() {
		if s, ok := parse(said.packet, 14, uint16(said.packet[12])<<8|uint16(said.packet[13])); ok && s.dport != 6081 {
			seeds = append(seeds, input{said.packet, nil, byte(said.at)})
		}
	}
	for _, proto := range []model.Proto{model.TCP, model.UDP} {
		for i, to := range twistPorts {
			begin := frame(ip(f.client, f.self), transport(proto, 39000, to, "S"), packet.Payload(20))
			seeds = append(seeds, input{begin, nil, 0},
				input{begin, changes(twist{twistGrow, 5, 200, 1}, twist{twistMend}), 0},
				input{begin, changes(twist{byte(i % twists), 1, 2, 3}, twist{twistMend}, twist{twistSend}, twist{twistFlags, 0, 0, 0x10}), 0})
		}
		back := frame(ip(f.here, f.client), transport(proto, podPort, portEstablished+2, "SA"), packet.Payload(20))
		seeds = append(seeds, input{back, nil, 1}, input{back, changes(twist{twistGrow, 5, 180, 1}, twist{twistMend}), 1},
			input{back, changes(twist{twistGrow, 5, 180, 1}, twist{twistMend}), 1 | 3<<1})
	}
	seeds = append(seeds, found(f)...)
	for i, c := range []flow{{to: portHere}, {to: portThere}, {to: portHere, peer: true}} {
		c.port = uint16(portAnswered + i)
		for _, flags := range []string{"A", "SA", "RA", "FA"} {
			right := f.says(model.TCP, c, flags).packet
			wrong := bytes.Clone(right)
			wrong[bytes.Index(wrong, []byte{0, 0, 0, 12})+3]++
			seeds = append(seeds, input{right, nil, 0}, input{wrong, nil, 0})
		}
	}
	for n := range extensions + 2 {
		chain := []twist{{twistExtension, byte(n), byte(n), 0}, {twistMend}}
		for range n {
			chain = slices.Insert(chain, 0, twist{twistExtension, 1, 0, 0})
		}
		begin := frame(ip(f.client, f.self), packet.TCP(39000, portThere).Flags("S").Option(1).MSS(1460))
		seeds = append(seeds, input{begin, changes(chain...), 0}, input{begin, changes(twist{twistExtension, 2, 0, byte(n)}, twist{twistMend}), 0},
			input{begin, changes(twist{twistExtension, 3, byte(n), 0}, twist{twistMend}), 0}, input{begin, changes(twist{twistFragment, 0, byte(n), 9}), 0})
	}
	for _, id := range []byte{fragmentID, fragmentID + 1, 99} {
		for i, from := range []packet.IPPacket{ip(f.client, f.self), ip(f.here, f.client)} {
			tail := frame(from.Proto(17), packet.Payload(48))
			seeds = append(seeds, input{tail, changes(twist{twistFragment, 0, 4, id}, twist{twistMend}), byte(i)},
				input{tail, changes(twist{twistFragment, 0, 4, id}, twist{twistGrow, 5, 200, 1}, twist{twistMend}), byte(i)})
		}
	}
	return append(seeds, input{frame(ip(f.client, f.self), packet.Echo(1, 1)), nil, 0},
		input{frame(ip(f.here, f.peer), packet.Outer(tunnelPort), f.forward(), ip(f.client, f.self), packet.TCP(1, 80)), nil, 1},
		input{frame(ip(f.client, f.self), packet.TCP(portEstablished, portHere)), nil, 0})
}

// tunnelSeeds are inner packets, and the twist that puts them into a tunnel first.
func tunnelSeeds() (seeds []input) {
	for i, f := range families {
		for _, proto := range []model.Proto{model.TCP, model.UDP} {
			for option := range byte(8) {
				for _, outer := range []byte{0, 1} {
					out := frame(ip(f.client, f.frontOfPeer), transport(proto, 39000, portHere, "S"), packet.Payload(20))
					seeds = append(seeds, input{out, changes(twist{twistTunnel, outer, option, byte(i)}, twist{twistMend}), 0})
				}
			}
			for n := range byte(16) {
				out := frame(ip(f.client, f.frontOfPeer).ECN(n&3), transport(proto, 39000, portHere, "S"), packet.Payload(20))
				seeds = append(seeds, input{out, changes(twist{twistTunnel, byte(i), 0, n}, twist{twistTOS, 0, 0, n >> 2}, twist{twistMend}), 0},
					input{out, changes(twist{twistTunnel, byte(i), 0, byte(i)}, twist{twistTOS, 0, 0, n >> 2}, twist{twistMend}), 0})
			}
			for _, peer := range []byte{0, 1} {
				back := frame(ip(f.self, f.client), transport(proto, portThere, portEstablished+1, "SA"), packet.Payload(20))
				seeds = append(seeds, input{back, changes(twist{twistTunnel, peer, 1, 0}, twist{twistMend}), 0},
					input{back, changes(twist{twistTunnel, peer, 1, 0}, twist{twistGrow, 6, 0, 1}, twist{twistMend}), 0})
			}
			known := f.says(proto, flow{port: portEstablished + 2, to: portHere}, "A").packet
			seeds = append(seeds, input{known, changes(twist{twistDestination, 0, 0, 1}, twist{twistTunnel, byte(i), 0, byte(i)}), 0})
		}
		about := frame(ip(f.here, f.client), packet.TCP(podPort, portEstablished+2), packet.Payload(20))
		seeds = append(seeds, input{about, changes(twist{twistTunnel, byte(i), 0, byte(i)}, twist{twistTOS, 0, 0, 3}), 0})
	}
	return seeds
}

// quoteSeeds are packets, and the twist that has an ICMP error quote them first.
func quoteSeeds() (seeds []input) {
	for i, f := range families {
		typ := [...]byte{3, 2}[i]
		for _, proto := range []model.Proto{model.TCP, model.UDP} {
			for _, size := range []byte{0, 8, 20, 60} {
				for n, front := range []uint16{portHere, portThere} {
					sent := frame(ip(f.self, f.client), transport(proto, front, uint16(portEstablished+n), "A"), packet.Payload(20))
					got := frame(ip(f.client, f.here), transport(proto, uint16(portEstablished+2*n), podPort, "A"), packet.Payload(20))
					about := frame(ip(f.frontOfPeer, f.client), transport(proto, portHere, portEstablished+2, "A"), packet.Payload(20))
					seeds = append(seeds,
						input{sent, changes(twist{twistQuote, typ, size, 3}, twist{twistMend}), 0},
						input{got, changes(twist{twistQuote, typ, size, 4}, twist{twistMend}), 1},
						input{about, changes(twist{twistQuote, typ, size, 3}, twist{twistMend}, twist{twistTunnel, byte(i), 0, byte(i)}), 0},
						input{got, changes(twist{twistQuote, typ, size, 4}, twist{twistMend}, twist{twistTunnel, byte(i), 1, 0}), 0})
				}
			}
		}
	}
	return seeds
}

// TestWorld says that the rows which inputs start from are of every kind: the oracle would otherwise have nothing to
// judge.
func TestWorld(t *testing.T) {
	w := newWorld(t)
	const want = `established backend closed: 2
established backend: 4
established forward closed: 4
established forward: 8
established reverse closed: 4
established reverse: 8
pending backend remapped: 4
pending backend: 6
pending forward: 12
pending reverse: 16`
	if got := w.base.census(); got != want {
		t.Errorf("rows are\n%s\nwant\n%s", got, want)
	}
	if n := len(w.base.fragments); n != 8 {
		t.Errorf("%d first fragments are remembered, want 8", n)
	}
	if slices.Max(w.base.drops) > 0 {
		t.Errorf("the story has drops: %v", w.base.drops)
	}
}
