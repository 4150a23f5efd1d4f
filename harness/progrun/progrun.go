// SPDX-License-Identifier: Apache-2.0

// Package progrun runs a loaded tc program on one packet with BPF_PROG_TEST_RUN and says what it decided and wrote. The program
// is the shipped one and the kernel is real: FIB lookups, maps and helpers work as on a device of the namespace it runs in.
// Invariant: each Run gives the program a fresh packet and runs it exactly once, so its maps see one packet a call.
//
// What a test run cannot show, tried on Linux 6.18: a redirect is not carried out and its target cannot be read back (the verdict
// is Redirect, and the packet is as the program left it); the packet is never CHECKSUM_PARTIAL; a GSO packet has a size and a
// number of segments but no type, so bpf_skb_adjust_room refuses it (ENOTSUPP); and the packet always has an Ethernet header,
// whatever the device.
package progrun

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Verdict is what a tc program returned (linux/pkt_cls.h). With TCX the same numbers are TCX_NEXT, TCX_PASS, TCX_DROP and
// TCX_REDIRECT.
type Verdict int32

// The verdicts that beep's programs use.
const (
	// Pass leaves the packet to the next program and to the stack (TC_ACT_UNSPEC, TCX_NEXT).
	Pass Verdict = -1
	// OK ends the chain of programs and goes on to the stack (TC_ACT_OK, TCX_PASS).
	OK Verdict = 0
	// Shot drops the packet (TC_ACT_SHOT, TCX_DROP).
	Shot Verdict = 2
	// Redirect sends the packet where a redirect helper said (TC_ACT_REDIRECT, TCX_REDIRECT).
	Redirect Verdict = 7
)

// String is the name, or the number of a verdict that beep does not use.
func (v Verdict) String() string {
	switch v {
	case Pass:
		return "pass"
	case OK:
		return "ok"
	case Shot:
		return "shot"
	case Redirect:
		return "redirect"
	}
	return fmt.Sprintf("verdict %d", int32(v))
}

// In is one packet and what the kernel knows of it beside its bytes.
type In struct {
	// Packet begins with an Ethernet header: 34 to MaxPacket bytes if its type is IPv4, 54 if it is IPv6, else 14.
	Packet []byte
	// Ifindex is the device in the namespace that the packet is on; 0 is the loopback device.
	Ifindex int
	// IngressIfindex is the device that it came in on, as a program on egress sees it; 0 is none.
	IngressIfindex int
	// Mark is skb->mark, Priority skb->priority, Cb the five words of skb->cb.
	Mark, Priority uint32
	Cb             [5]uint32
	// GSOSize is the payload of a segment in bytes, GSOSegs the number of segments; 0 is no GSO packet.
	GSOSize, GSOSegs uint32
	// Summed: a device has summed the packet up (CHECKSUM_COMPLETE, Linux 6.11). That the program leaves another sum than what the
	// packet then has is an error, which wraps unix.EBADMSG; an older kernel's wraps unix.EINVAL.
	Summed bool
}

// summed is BPF_F_TEST_SKB_CHECKSUM_COMPLETE of linux/bpf.h.
const summed = 1 << 2

// MaxPacket is the longest packet of a test run in bytes, on 4 KiB pages: what a page holds beside the kernel's own headroom and
// bookkeeping.
const MaxPacket = 3712

// Out is what the program left behind.
type Out struct {
	Verdict Verdict
	// Packet is the whole packet, also after a Shot or a Redirect.
	Packet []byte
	// Mark, Priority and Cb are as the program left them; Ifindex is the device.
	Mark, Priority uint32
	Cb             [5]uint32
	Ifindex        int
	// GSOSegs is the number of segments as the program left it. The kernel does not give back the segment size.
	GSOSegs uint32
}

// Runner runs programs in one network namespace.
type Runner struct {
	enter func(func() error) error
}

// Inside is a Runner in the namespace that enter enters: the Do method of a handle, which calls the function on a thread inside
// the namespace and returns its error.
func Inside(enter func(func() error) error) Runner { return Runner{enter} }

// Run runs prog, of type SchedCLS, once on in. An error means that the kernel did not run it.
func (r Runner) Run(prog *ebpf.Program, in In) (Out, error) {
	var out Out
	err := r.enter(func() (err error) {
		out, err = run(prog, in)
		return err
	})
	return out, err
}

// skb is struct __sk_buff of linux/bpf.h, 192 bytes; names and host byte order as there.
type skb struct {
	Len, PktType, Mark, QueueMapping, Protocol, VlanPresent, VlanTci, VlanProto uint32
	Priority, IngressIfindex, Ifindex, TcIndex                                  uint32
	Cb                                                                          [5]uint32
	Hash, TcClassid, Data, DataEnd, NapiID, Family, RemoteIP4, LocalIP4         uint32
	RemoteIP6, LocalIP6                                                         [4]uint32
	RemotePort, LocalPort, DataMeta                                             uint32
	FlowKeys, Tstamp                                                            uint64
	WireLen, GSOSegs                                                            uint32
	Sk                                                                          uint64
	GSOSize, TstampType                                                         uint32
	Hwtstamp                                                                    uint64
}

func run(prog *ebpf.Program, in In) (Out, error) {
	if prog.Type() != ebpf.SchedCLS {
		return Out{}, fmt.Errorf("run %s: its type is %s, want %s", prog, prog.Type(), ebpf.SchedCLS)
	}
	if err := check(in.Packet); err != nil {
		return Out{}, fmt.Errorf("run %s: %w", prog, err)
	}
	ctx := skb{Mark: in.Mark, Priority: in.Priority, Cb: in.Cb, Ifindex: uint32(in.Ifindex),
		IngressIfindex: uint32(in.IngressIfindex), GSOSegs: in.GSOSegs, GSOSize: in.GSOSize}
	var after skb
	opts := ebpf.RunOptions{
		Data: in.Packet,
		// Room for every header that a program may push.
		DataOut: make([]byte, 2*MaxPacket), Context: ctx, ContextOut: &after, Repeat: 1,
	}
	if in.Summed {
		opts.Flags = summed
	}
	ret, err := prog.Run(&opts)
	if errors.Is(err, unix.ENODEV) {
		return Out{}, fmt.Errorf("run %s: no device with ifindex %d in the namespace: %w", prog, in.Ifindex, err)
	}
	if err != nil {
		return Out{}, fmt.Errorf("run %s on %d bytes: %w", prog, len(in.Packet), err)
	}
	return Out{Verdict: Verdict(int32(ret)), Packet: bytes.Clone(opts.DataOut), Mark: after.Mark, Priority: after.Priority,
		Cb: after.Cb, Ifindex: int(after.Ifindex), GSOSegs: after.GSOSegs}, nil
}

// check refuses with a reason what the kernel would refuse with EINVAL.
func check(packet []byte) error {
	if len(packet) < 14 {
		return fmt.Errorf("a packet of %d bytes has no Ethernet header: want at least 14", len(packet))
	}
	least := 14
	switch binary.BigEndian.Uint16(packet[12:]) {
	case unix.ETH_P_IP:
		least = 34
	case unix.ETH_P_IPV6:
		least = 54
	}
	if len(packet) < least || len(packet) > MaxPacket {
		return fmt.Errorf("a packet of %d bytes: the kernel's test run takes %d to %d of this EtherType", len(packet), least, MaxPacket)
	}
	return nil
}

// Timing is the cost of a program.
type Timing struct {
	// PerRun is the mean time inside the program, as the kernel's statistics measure it (kernel.bpf_stats_enabled), with the cost
	// of reading the clock twice.
	PerRun time.Duration
	// Runs is the number of measured runs.
	Runs uint64
}

// Bench runs prog repeat times, each on a fresh copy of in, and measures it. The kernel's own repeat counter would feed the packet
// that one run changed to the next run. It turns the statistics on for the whole machine while it runs, and counts every run of
// prog: do not attach prog or run it elsewhere meanwhile.
func (r Runner) Bench(prog *ebpf.Program, in In, repeat int) (timing Timing, err error) {
	stats, err := ebpf.EnableStats(unix.BPF_STATS_RUN_TIME)
	if err != nil {
		return Timing{}, fmt.Errorf("bench %s: turn on the kernel's run statistics: %w", prog, err)
	}
	defer func() { err = errors.Join(err, stats.Close()) }()
	err = r.enter(func() error {
		// The first run pays for cold caches.
		if _, err := run(prog, in); err != nil {
			return err
		}
		before, err := prog.Stats()
		if err != nil {
			return fmt.Errorf("bench %s: read its statistics: %w", prog, err)
		}
		for range repeat {
			if _, err := run(prog, in); err != nil {
				return err
			}
		}
		after, err := prog.Stats()
		if err != nil {
			return fmt.Errorf("bench %s: read its statistics: %w", prog, err)
		}
		timing.Runs = after.RunCount - before.RunCount
		if timing.Runs > 0 {
			timing.PerRun = (after.Runtime - before.Runtime) / time.Duration(timing.Runs)
		}
		return nil
	})
	return timing, err
}
