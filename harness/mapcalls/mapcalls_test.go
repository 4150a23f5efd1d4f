// SPDX-License-Identifier: Apache-2.0

package mapcalls_test

import (
	"maps"
	"os"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/beep-lb/beep/harness/mapcalls"
	"github.com/beep-lb/beep/harness/progrun"
	"github.com/beep-lb/beep/harness/require"
)

func TestMain(m *testing.M) { os.Exit(require.Main(m)) }

// A program that looks the first byte of a packet up, and deletes it where it is found.
func deletes() *ebpf.CollectionSpec {
	key := asm.Instructions{asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -4)}
	table := asm.LoadMapPtr(asm.R1, 0).WithReference("TABLE")
	text := asm.Instructions{asm.LoadMem(asm.R3, asm.R1, 8, asm.Word), asm.StoreMem(asm.RFP, -4, asm.R3, asm.Word)} // skb->mark
	text = append(text, table)
	text = append(text, key...)
	text = append(text, asm.FnMapLookupElem.Call(), asm.Instruction{
		OpCode: asm.OpCode(asm.JumpClass).SetJumpOp(asm.JEq).SetSource(asm.ImmSource), Dst: asm.R0, Offset: 5, // over what deletes
	}, table)
	text = append(text, key...)
	text = append(text, asm.FnMapDeleteElem.Call(), asm.Mov.Imm(asm.R0, 0), asm.Return())
	return &ebpf.CollectionSpec{
		Maps:     map[string]*ebpf.MapSpec{"TABLE": {Name: "TABLE", Type: ebpf.Hash, KeySize: 4, ValueSize: 4, MaxEntries: 8}},
		Programs: map[string]*ebpf.ProgramSpec{"deletes": {Name: "deletes", Type: ebpf.SchedCLS, License: "GPL", Instructions: text}},
	}
}

func TestCountsWhatAPacketRunsThrough(t *testing.T) {
	require.Root(t)
	spec := deletes()
	counter, err := mapcalls.Count(spec)
	if err != nil {
		t.Fatal(err)
	}
	defer counter.Close()
	collection, err := ebpf.NewCollection(spec)
	if err != nil {
		t.Fatalf("%+v", err)
	}
	defer collection.Close()
	if err := collection.Maps["TABLE"].Put(uint32(7), uint32(1)); err != nil {
		t.Fatal(err)
	}
	here := progrun.Inside(func(f func() error) error { return f() })
	for _, mark := range []uint32{7, 7, 9} { // there, gone, never there
		if _, err := here.Run(collection.Programs["deletes"], progrun.In{Packet: make([]byte, 60), Ifindex: 1, Mark: mark}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := counter.Calls()
	if err != nil {
		t.Fatal(err)
	}
	want := map[mapcalls.Call]uint64{{Map: "TABLE", Op: "lookup"}: 3, {Map: "TABLE", Op: "delete"}: 1}
	if !maps.Equal(got, want) {
		t.Errorf("calls %v, want %v", got, want)
	}
}
