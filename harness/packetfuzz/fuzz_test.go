// SPDX-License-Identifier: Apache-2.0

// Package packetfuzz gives the shipped programs packets that nobody would write, and compares what becomes of them
// with an oracle that reads packets by the RFCs and knows nothing of the programs' code. Invariant: an input is judged
// on the same rows as every other, so a finding is found again by its input alone.
//
// An input is a frame, a list of twists by which it is changed, and where it meets the programs. What is not reached:
// GSO packets and incomplete checksums, which a test run cannot make.
package packetfuzz

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/packet"
	"github.com/beep-lb/beep/harness/progrun"
	"github.com/beep-lb/beep/harness/require"
)

func TestMain(m *testing.M) { os.Exit(require.Main(m)) }

// most is the most packets that one input sends.
const most = 4

func FuzzIPv4(f *testing.F) { fuzz(f, ipSeeds(families[0]), 0x08, 0x00, nil) }

func FuzzIPv6(f *testing.F) { fuzz(f, ipSeeds(families[1]), 0x86, 0xdd, nil) }

// FuzzGeneve has every frame in a tunnel before it is twisted.
func FuzzGeneve(f *testing.F) {
	fuzz(f, tunnelSeeds(), 0, 0, func(b []byte, c twist) []byte { c[0] = twistTunnel; return c.apply(b) })
}

// FuzzICMP has every frame quoted by an ICMP error before it is twisted.
func FuzzICMP(f *testing.F) {
	fuzz(f, quoteSeeds(), 0, 0, func(b []byte, c twist) []byte { c[0] = twistQuote; return c.apply(b) })
}

// fuzz runs a target. Frames have the EtherType that the two bytes name, if they are not zero; begin has the input's
// first twist.
func fuzz(f *testing.F, seeds []input, high, low byte, begin func([]byte, twist) []byte) {
	require.Root(f)
	require.TCX(f)
	w := newWorld(f)
	for _, s := range seeds {
		f.Add(s.frame, s.twists, s.how)
	}
	f.Fuzz(func(t *testing.T, frame, twisted []byte, how byte) {
		b, changes := bytes.Clone(frame), list(twisted)
		if len(b) < 34 || len(b) > 2000 {
			return
		}
		if high > 0 {
			b[12], b[13] = high, low
		}
		if begin != nil && len(changes) > 0 {
			b = begin(b, changes[0])
			changes = changes[1:]
		}
		defer w.reset(t)
		sent := 0
		for _, c := range changes {
			if c[0]%twists == twistSend && sent < most {
				w.send(t, slices.Clone(b), how)
				how ^= c[3]
				sent++
			}
			b = c.apply(b)
		}
		w.send(t, b, how)
	})
}

// send gives a packet to a program and judges what comes of it. how: bit 0 is the hook, bits 1 and 2 the mark (2: of our
// own, 3: of the piece whose number is in the upper bits).
func (w *world) send(t *testing.T, b []byte, how byte) {
	least := 14
	if len(b) >= 14 && b[12] == 0x08 && b[13] == 0 {
		least = 34
	}
	if len(b) >= 14 && b[12] == 0x86 && b[13] == 0xdd {
		least = 54
	}
	if len(b) < least || len(b) > progrun.MaxPacket {
		return // the kernel's test run does not take it
	}
	e := event{w: w, at: hook(how & 1), in: b, before: w.now}
	switch how >> 1 & 3 {
	case 2:
		e.mark = markOurs
	case 3:
		e.mark = markPiece | uint32(how>>4)
	}
	var err error
	e.out, err = w.run(e.at, progrun.In{Packet: b, Mark: e.mark})
	check(t, err)
	e.after = w.read(t)
	w.now = e.after
	e.dropped = e.after.dropped(e.before)
	if err := e.judge(); err != nil {
		t.Fatalf("%v\nhook %d mark %#x\n%x\n%s\ncame out as\n%s", err, e.at, e.mark, b, packet.Describe(b), packet.Describe(e.out.Packet))
	}
}

// judge is check, and that a well-formed packet is still one where it was changed.
func (e *event) judge() error {
	if err := e.check(); err != nil {
		return err
	}
	out := e.out.Packet
	if e.out.Verdict == progrun.Shot || bytes.Equal(e.in, out) || packet.Verify(e.in) != nil {
		return nil
	}
	// An absent UDP checksum stays absent, though it is right for IPv6 as long only as the packet is a tunnel's.
	if s, ok := parse(out, 14, uint16(out[12])<<8|uint16(out[13])); ok && s.proto == unix.IPPROTO_UDP && s.fragment == whole &&
		out[s.l4+6] == 0 && out[s.l4+7] == 0 {
		return nil
	}
	if err := packet.Verify(e.out.Packet); err != nil {
		return fmt.Errorf("well formed before, not after: %w", err)
	}
	return nil
}
