// SPDX-License-Identifier: Apache-2.0

// Package mapcalls counts how often programs call for a map: in front of every such call in a compiled object it puts three
// instructions that count it. That needs nothing of the kernel, many of which have no tracing of their own functions, and counts exactly
// what a packet runs through. Invariant: an object that is counted does what it did before, only slower; nothing must time it.
package mapcalls

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// Call is one kind of call for one map.
type Call struct {
	// Map is its name, or "unknown" where the compiler chose the map long before the call.
	Map string
	// Op is lookup, update or delete.
	Op string
}

// String prints FLOW_TABLE lookup.
func (c Call) String() string { return c.Map + " " + c.Op }

// ops are the helpers that are counted. All leave R5 alone, which a call destroys, as it does R0.
var ops = map[asm.BuiltinFunc]string{
	asm.FnMapLookupElem: "lookup", asm.FnMapUpdateElem: "update", asm.FnMapDeleteElem: "delete",
}

// mostSites is how many calls in the text of all programs can be told apart.
const mostSites = 4096

// Counter counts the calls of an object's programs.
type Counter struct {
	counts *ebpf.Map
	sites  []Call // by the place of their count
}

// Count has all programs of an object count, which must not be loaded yet.
func Count(spec *ebpf.CollectionSpec) (*Counter, error) {
	counts, err := ebpf.NewMap(&ebpf.MapSpec{Name: "map_calls", Type: ebpf.Array, KeySize: 4, ValueSize: 8 * mostSites, MaxEntries: 1})
	if err != nil {
		return nil, fmt.Errorf("count calls for maps: %w", err)
	}
	c := &Counter{counts: counts}
	for _, name := range slices.Sorted(maps.Keys(spec.Programs)) {
		program := spec.Programs[name]
		if program.Instructions, err = c.insert(program.Instructions); err != nil {
			return nil, errors.Join(fmt.Errorf("count calls of program %s: %w", name, err), counts.Close())
		}
	}
	return c, nil
}

// countWidth is how long the count of a call is, in units of jumps: two for the address, one for the number, one for the addition.
const countWidth = 4

// insert puts a count in front of every call, and corrects the jumps, which are relative.
func (c *Counter) insert(old asm.Instructions) (asm.Instructions, error) {
	// Where each place of the old text is in the new one; that of a call is where its count begins.
	moved := map[asm.RawInstructionOffset]asm.RawInstructionOffset{}
	var added asm.RawInstructionOffset
	for i := old.Iterate(); i.Next(); {
		moved[i.Offset] = i.Offset + added
		if _, is := counted(i.Ins); is {
			added += countWidth
		}
	}
	var text asm.Instructions
	for i := old.Iterate(); i.Next(); {
		ins := *i.Ins
		if jumps(&ins) {
			from, to := moved[i.Offset], moved[i.Offset+1+asm.RawInstructionOffset(ins.Offset)]
			distance := int64(to) - int64(from) - 1
			if distance != int64(int16(distance)) {
				return nil, fmt.Errorf("a jump over %d instructions", distance)
			}
			ins.Offset = int16(distance)
		}
		if op, is := counted(&ins); is {
			if len(c.sites) == mostSites {
				return nil, fmt.Errorf("more than %d calls", mostSites)
			}
			text = append(text,
				asm.LoadMapValue(asm.R0, c.counts.FD(), uint32(8*len(c.sites))),
				asm.Mov.Imm(asm.R5, 1),
				asm.StoreXAdd(asm.R0, asm.R5, asm.DWord))
			c.sites = append(c.sites, Call{Map: mapOf(old[:i.Index]), Op: op})
		}
		text = append(text, ins)
	}
	return text, nil
}

// counted says whether an instruction calls for a map, and how.
func counted(ins *asm.Instruction) (op string, is bool) {
	if !ins.IsBuiltinCall() {
		return "", false
	}
	op, is = ops[asm.BuiltinFunc(ins.Constant)]
	return op, is
}

// jumps says whether an instruction goes somewhere relative to itself.
func jumps(ins *asm.Instruction) bool {
	if !ins.OpCode.Class().IsJump() || ins.Reference() != "" {
		return false
	}
	op := ins.OpCode.JumpOp()
	return op != asm.Call && op != asm.Exit
}

// mapOf is the map that a call after this text is for: what its first argument was loaded with last.
func mapOf(text asm.Instructions) string {
	register := asm.R1
	for _, ins := range slices.Backward(text) {
		class := ins.OpCode.Class()
		switch {
		case ins.Dst != register || class.IsStore() || class.IsJump():
			continue
		case ins.IsLoadFromMap():
			return ins.Reference()
		case class == asm.ALU64Class && ins.OpCode.ALUOp() == asm.Mov && ins.OpCode.Source() == asm.RegSource:
			register = ins.Src
		default:
			return "unknown"
		}
	}
	return "unknown"
}

// Calls are the calls so far, without those that were never made.
func (c *Counter) Calls() (map[Call]uint64, error) {
	counts := make([]uint64, mostSites)
	if err := c.counts.Lookup(uint32(0), counts); err != nil {
		return nil, fmt.Errorf("read the calls for maps: %w", err)
	}
	sums := map[Call]uint64{}
	for site, call := range c.sites {
		if counts[site] > 0 {
			sums[call] += counts[site]
		}
	}
	return sums, nil
}

// Close ends the count; programs that were loaded go on.
func (c *Counter) Close() error { return c.counts.Close() }
