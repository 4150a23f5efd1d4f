// SPDX-License-Identifier: Apache-2.0

package maps

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/src/datapath/bpfobj"
)

// Carried is how many rows a Carry found in the old map, and how many the new one held afterwards.
type Carried struct{ Found, Kept uint32 }

// Lost is how many rows did not come along.
func (c Carried) Lost() uint32 { return c.Found - min(c.Found, c.Kept) }

// Carry copies the rows of a map into an empty one of the same layout and another size. A hash map that is too
// small keeps what fits; an LRU map makes room by dropping what came first. The loader needs it, before there is
// a Kernel.
func Carry(name string, from, to *ebpf.Map) (Carried, error) {
	var carried Carried
	var err error
	switch name {
	case bpfobj.BeepMapFRONT_META:
		carried, err = carry[bpfobj.BeepSocketKey, bpfobj.BeepFrontMeta](from, to)
	case bpfobj.BeepMapFRONT_ENDPOINTS:
		carried, err = carry[bpfobj.BeepEndpointKey, bpfobj.BeepEndpoint](from, to)
	case bpfobj.BeepMapFRONT_RING:
		carried, err = carry[bpfobj.BeepRingKey, bpfobj.BeepRingBlock](from, to)
	case FlowTable, FlowPending:
		carried, err = carry[bpfobj.BeepFlowKey, bpfobj.BeepFlow](from, to)
	case bpfobj.BeepMapNODE_ALLOW:
		carried, err = carry[bpfobj.BeepNodeKey, uint32](from, to)
	case bpfobj.BeepMapPOD_TARGETS:
		carried, err = carry[bpfobj.BeepSocketKey, uint32](from, to)
	case bpfobj.BeepMapDROPS:
		carried, err = carryCounters(from, to)
	default:
		err = errors.New("its size is fixed")
	}
	if err != nil {
		return carried, fmt.Errorf("carry the rows of %s over: %w", name, err)
	}
	return carried, nil
}

func carry[K comparable, V any](from, to *ebpf.Map) (Carried, error) {
	var carried Carried
	var failed error
	old, now := kernelStore[K, V]{from}, kernelStore[K, V]{to}
	err := old.each(func(key K, value V) bool {
		carried.Found++
		if err := now.put(key, value); err != nil && !errors.Is(err, unix.E2BIG) {
			failed = err
		}
		return failed == nil
	})
	if err := errors.Join(err, failed); err != nil {
		return carried, err
	}
	carried.Kept, err = counter(now)()
	return carried, err
}

// carryCounters copies per-CPU rows by index. Reasons are only ever added, so an index keeps its meaning.
func carryCounters(from, to *ebpf.Map) (Carried, error) {
	carried := Carried{Found: from.MaxEntries()}
	for index := range min(from.MaxEntries(), to.MaxEntries()) {
		var perCPU []bpfobj.BeepDropCount
		if err := from.Lookup(&index, &perCPU); err != nil {
			return carried, errno(err)
		}
		if err := to.Update(&index, perCPU, ebpf.UpdateAny); err != nil {
			return carried, errno(err)
		}
		carried.Kept++
	}
	return carried, nil
}
