// SPDX-License-Identifier: Apache-2.0

package bpfobj

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/require"
)

// cost is what a program takes of the verifier, and of memory.
type cost struct {
	verified uint32 // instructions that the verifier reads at load: a daemon's start and every spec of a rig wait for it
	size     int    // instructions
}

// costs is the tripwire: what the programs took on measuredOn when this table was last written.
var costs = map[string]cost{
	BeepProgBeepEgress:  {verified: 16709, size: 5899},
	BeepProgBeepIngress: {verified: 23972, size: 8903},
}

// measuredOn is the series of kernels that the table is of: what the verifier reads differs from one to the next.
const measuredOn = "6.18."

// TestProgramsLoad has the verifier of this kernel read every program, and compares what it cost with the table.
func TestProgramsLoad(t *testing.T) {
	require.Root(t)
	require.TCX(t)
	coll, err := ebpf.NewCollection(load(t))
	var rejected *ebpf.VerifierError
	if errors.As(err, &rejected) {
		t.Fatalf("%+v", rejected)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer coll.Close()
	known := strings.HasPrefix(release(t), measuredOn)
	for name, program := range coll.Programs {
		info, err := program.Info()
		if err != nil {
			t.Fatal(err)
		}
		verified, _ := info.VerifiedInstructions()
		size, err := info.TranslatedSize()
		if err != nil {
			t.Fatal(err)
		}
		now, was := cost{verified, size / asm.InstructionSize}, costs[name]
		t.Logf("%s: %d instructions, %d verified (in the table, of Linux %sx: %d and %d)", name, now.size, now.verified, measuredOn, was.size, was.verified)
		if known && (over(int(now.verified), int(was.verified)) || over(now.size, was.size)) {
			t.Errorf("%s: %d instructions, %d verified, which is over 5 %% more than the table has (%d and %d): see by the verifier's log "+
				"(LogLevelInstruction) which function it reads often, make that a global one that checks its pointers, or keep it off the "+
				"path that most packets take; if the cost is worth it, measure its time by harness/packettest's bench and write both into "+
				"the table and the commit", name, now.size, now.verified, was.size, was.verified)
		}
		if known && over(int(was.verified), int(now.verified)) {
			t.Logf("%s: the table can be lowered", name)
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(costs)), slices.Sorted(maps.Keys(coll.Programs))); diff != "" {
		t.Errorf("programs (-want +got):\n%s", diff)
	}
}

// over says whether a number is more than 5 % over another.
func over(now, was int) bool { return now*100 > was*105 }

// release is the running kernel's.
func release(t *testing.T) string {
	t.Helper()
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		t.Fatal(err)
	}
	return unix.ByteSliceToString(name.Release[:])
}

// Kernels before 6.13 give each function's stack in units of 32 bytes and allow 512 in all; the one that this runs on
// may count in smaller units, and so tell too late.
const stackUnit, stackMax = 32, 512

// frame is a function's stack in bytes, and what it calls.
type frame struct {
	bytes int
	calls []string
}

// TestStacksFitOlderKernels adds up every chain of calls as those kernels do.
func TestStacksFitOlderKernels(t *testing.T) {
	for name, program := range load(t).Programs {
		frames := framesOf(program.Instructions)
		bytes, chain := deepest(frames, name)
		t.Logf("%s: %d bytes of stack in %s", name, bytes, strings.Join(chain, " "))
		if bytes > stackMax {
			t.Errorf("%s: %s takes %d bytes of stack, over the %d that there are: call what is large from higher up, or split it",
				name, strings.Join(chain, " calls "), bytes, stackMax)
		}
	}
}

// framesOf reads the frames of all functions off the instructions.
func framesOf(instructions asm.Instructions) map[string]*frame {
	frames := map[string]*frame{}
	var now *frame
	var atStack [asm.RFP + 1]bool // registers that were just set to the frame's end
	for _, ins := range instructions {
		if btf.FuncMetadata(&ins) != nil {
			now = &frame{}
			frames[ins.Symbol()] = now
		}
		switch {
		case ins.IsFunctionCall(), ins.IsLoadOfFunctionPointer():
			now.calls = append(now.calls, ins.Reference())
		case ins.OpCode.Class().IsALU() && ins.OpCode.ALUOp() == asm.Mov:
			atStack[ins.Dst] = ins.OpCode.Source() == asm.RegSource && ins.Src == asm.RFP
		case ins.OpCode.Class().IsALU() && ins.OpCode.ALUOp() == asm.Add && ins.OpCode.Source() == asm.ImmSource && atStack[ins.Dst]:
			now.bytes = max(now.bytes, int(-ins.Constant))
		case ins.OpCode.Class().IsStore() && ins.Dst == asm.RFP, ins.OpCode.Class().IsLoad() && ins.Src == asm.RFP:
			now.bytes = max(now.bytes, int(-ins.Offset))
		}
	}
	return frames
}

// deepest is the chain of calls from a function on that takes the most stack.
func deepest(frames map[string]*frame, name string) (int, []string) {
	f := frames[name]
	if f == nil {
		return 0, nil // a kernel function
	}
	var most int
	var chain []string
	for _, callee := range f.calls {
		if bytes, below := deepest(frames, callee); bytes > most {
			most, chain = bytes, below
		}
	}
	own := max(1, (f.bytes+stackUnit-1)/stackUnit) * stackUnit
	return own + most, append([]string{name}, chain...)
}
