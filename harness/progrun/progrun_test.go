// SPDX-License-Identifier: Apache-2.0

package progrun

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/netns"
	"github.com/beep-lb/beep/harness/packet"
	"github.com/beep-lb/beep/harness/require"
)

func TestMain(m *testing.M) { os.Exit(require.Main(m)) }

// Byte offsets of struct __sk_buff.
const (
	skbMark     = 8
	skbIngress  = 36
	skbIfindex  = 40
	skbCb       = 48
	skbPriority = 32
	skbGSOSegs  = 164
	skbGSOSize  = 176
)

var syn = packet.Build(packet.Eth(packet.MAC1, packet.MAC2), packet.IP("198.51.100.7", "192.0.2.1"),
	packet.TCP(40000, 80).Flags("S").MSS(1460))

// load assembles a program; R6 holds its context.
func load(t testing.TB, typ ebpf.ProgramType, ins ...asm.Instruction) *ebpf.Program {
	t.Helper()
	require.Root(t)
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "progrun_test", Type: typ, License: "GPL",
		Instructions: append(asm.Instructions{asm.Mov.Reg(asm.R6, asm.R1)}, ins...)})
	if err != nil {
		t.Fatalf("load the program: %+v", err)
	}
	t.Cleanup(func() {
		if err := prog.Close(); err != nil {
			t.Errorf("close the program: %v", err)
		}
	})
	return prog
}

// show copies fields of the context to cb, in order.
func show(fields ...int16) (ins asm.Instructions) {
	for i, field := range fields {
		ins = append(ins, asm.LoadMem(asm.R1, asm.R6, field, asm.Word), asm.StoreMem(asm.R6, skbCb+4*int16(i), asm.R1, asm.Word))
	}
	return ins
}

func returning(verdict Verdict) []asm.Instruction {
	return []asm.Instruction{asm.Mov.Imm(asm.R0, int32(verdict)), asm.Return()}
}

func here(f func() error) error { return f() }

func TestVerdicts(t *testing.T) {
	for _, verdict := range []Verdict{Pass, OK, Shot, Redirect, 5} {
		t.Run(verdict.String(), func(t *testing.T) {
			out, err := Inside(here).Run(load(t, ebpf.SchedCLS, returning(verdict)...), In{Packet: syn})
			if err != nil || out.Verdict != verdict {
				t.Errorf("got %v, %v, want %v", out.Verdict, err, verdict)
			}
			if d := packet.Diff(syn, out.Packet); d != "" {
				t.Errorf("a program that writes nothing changed the packet:\n%s", d)
			}
		})
	}
}

// What goes in reaches the program, and what it wrote comes out.
func TestContext(t *testing.T) {
	ns := netns.New(t, "progrun")
	veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "a"}, PeerName: "b"}
	if err := ns.Netlink().LinkAdd(veth); err != nil {
		t.Fatalf("add a veth: %v", err)
	}
	link, err := ns.Netlink().LinkByName("a")
	if err != nil {
		t.Fatalf("find the veth: %v", err)
	}
	ifindex := link.Attrs().Index
	ins := show(skbIfindex, skbIngress, skbGSOSize, skbGSOSegs, skbPriority)
	ins = append(ins, asm.LoadMem(asm.R1, asm.R6, skbMark, asm.Word), asm.Add.Imm(asm.R1, 1),
		asm.StoreMem(asm.R6, skbMark, asm.R1, asm.Word))
	prog := load(t, ebpf.SchedCLS, append(ins, returning(Pass)...)...)

	in := In{Packet: syn, Ifindex: ifindex, IngressIfindex: ifindex + 1, Mark: 41, Priority: 3, GSOSize: 1400, GSOSegs: 2}
	out, err := Inside(ns.Do).Run(prog, in)
	if err != nil {
		t.Fatal(err)
	}
	want := [5]uint32{uint32(ifindex), uint32(ifindex + 1), 1400, 2, 3}
	if out.Cb != want || out.Mark != 42 || out.Priority != 3 || out.Ifindex != ifindex || out.GSOSegs != 2 {
		t.Errorf("the program saw %v, want %v; out: %+v", out.Cb, want, out)
	}

	in.Ifindex = 4242
	if _, err = Inside(ns.Do).Run(prog, in); !errors.Is(err, unix.ENODEV) || !strings.Contains(err.Error(), "ifindex 4242") {
		t.Errorf("a device that is not there: got %v", err)
	}
}

// ttl sets the TTL to 63 and leaves the checksum as it was.
func ttl(t testing.TB) *ebpf.Program {
	const offset = 14 + 8 // of the TTL in an IPv4 header behind an Ethernet header
	return load(t, ebpf.SchedCLS, asm.Mov.Imm(asm.R1, 63), asm.StoreMem(asm.RFP, -8, asm.R1, asm.DWord),
		asm.Mov.Reg(asm.R1, asm.R6), asm.Mov.Imm(asm.R2, offset), asm.Mov.Reg(asm.R3, asm.RFP), asm.Add.Imm(asm.R3, -8),
		asm.Mov.Imm(asm.R4, 1), asm.Mov.Imm(asm.R5, 0), asm.FnSkbStoreBytes.Call(),
		asm.Mov.Imm(asm.R0, int32(Pass)), asm.Return())
}

func TestPacketOut(t *testing.T) {
	before := string(syn)
	out, err := Inside(here).Run(ttl(t), In{Packet: syn})
	if err != nil {
		t.Fatal(err)
	}
	want := packet.Build(packet.Eth(packet.MAC1, packet.MAC2), packet.IP("198.51.100.7", "192.0.2.1").TTL(63),
		packet.TCP(40000, 80).Flags("S").MSS(1460))
	if d := packet.Diff(want, out.Packet, "ipv4.csum"); d != "" {
		t.Errorf("%s", d)
	}
	if string(syn) != before {
		t.Error("the run changed the packet that the caller gave")
	}
}

// grow pushes n bytes behind the link-layer header and shows the helper's result.
func grow(t testing.TB, n int32) *ebpf.Program {
	const fixedGSO, noCsumReset = 1 << 0, 1 << 5 // BPF_F_ADJ_ROOM_* of linux/bpf.h
	return load(t, ebpf.SchedCLS, asm.Mov.Imm(asm.R2, n), asm.Mov.Imm(asm.R3, 1), asm.Mov.Imm(asm.R4, fixedGSO|noCsumReset),
		asm.FnSkbAdjustRoom.Call(), asm.StoreMem(asm.R6, skbCb, asm.R0, asm.Word), asm.Mov.Imm(asm.R0, int32(Redirect)), asm.Return())
}

// A tunnel header fits behind the longest packet, and the facts of the package's comment hold on this kernel.
func TestLimits(t *testing.T) {
	longest := packet.Build(packet.Eth(packet.MAC1, packet.MAC2), packet.IP("198.51.100.7", "192.0.2.1"), packet.TCP(1, 2),
		packet.Payload(MaxPacket-54))
	prog := grow(t, 60)
	out, err := Inside(here).Run(prog, In{Packet: longest})
	if err != nil || len(out.Packet) != MaxPacket+60 || out.Verdict != Redirect {
		t.Errorf("60 bytes more than %d: got %d, %v, %v", MaxPacket, len(out.Packet), out.Verdict, err)
	}
	out, err = Inside(here).Run(prog, In{Packet: longest, GSOSize: 1400, GSOSegs: 3})
	const notSupported = -524 // ENOTSUPP of the kernel's linux/errno.h, which no libc knows
	if err != nil || int32(out.Cb[0]) != notSupported {
		t.Errorf("a GSO packet: adjust_room gave %d, %v, want %d: correct the package's comment", int32(out.Cb[0]), err, notSupported)
	}
	v6 := packet.Build(packet.Eth(packet.MAC1, packet.MAC2), packet.IP("2001:db8:c::7", "2001:db8:b::1"), packet.UDP(1, 2))
	for _, tc := range []struct {
		packet []byte
		want   string
	}{
		{syn[:13], "no Ethernet header"},
		{syn[:33], "takes 34 to 3712"},
		{v6[:53], "takes 54 to 3712"},
		{append(longest, 0), "takes 34 to 3712"},
	} {
		_, err := Inside(here).Run(prog, In{Packet: tc.packet})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%d bytes: got %v, want %q in it", len(tc.packet), err, tc.want)
		}
		// The check in front must be the kernel's own.
		if _, err := prog.Run(&ebpf.RunOptions{Data: tc.packet}); !errors.Is(err, unix.EINVAL) {
			t.Errorf("%d bytes: the kernel says %v, want EINVAL", len(tc.packet), err)
		}
	}
	for _, least := range [][]byte{syn[:34], v6[:54], make([]byte, 14)} {
		if _, err := Inside(here).Run(load(t, ebpf.SchedCLS, returning(OK)...), In{Packet: least}); err != nil {
			t.Errorf("%d bytes are enough, got %v", len(least), err)
		}
	}
	_, err = Inside(here).Run(load(t, ebpf.SocketFilter, returning(OK)...), In{Packet: syn})
	if err == nil || !strings.Contains(err.Error(), "want SchedCLS") {
		t.Errorf("a program of another type: got %v", err)
	}
}

// Each measured run gets a fresh packet: were the grown one fed back, the program would fail before the thousandth.
func TestBench(t *testing.T) {
	prog := grow(t, 60)
	timing, err := Inside(here).Bench(prog, In{Packet: syn}, 1000)
	if err != nil || timing.Runs != 1000 || timing.PerRun <= 0 {
		t.Errorf("got %+v, %v", timing, err)
	}
	t.Logf("adjust_room by 60 bytes: %v a run", timing.PerRun)
	out, err := Inside(here).Run(prog, In{Packet: syn})
	if err != nil || out.Cb[0] != 0 || len(out.Packet) != len(syn)+60 {
		t.Errorf("after the bench: %d bytes, helper %d, %v", len(out.Packet), int32(out.Cb[0]), err)
	}
}
