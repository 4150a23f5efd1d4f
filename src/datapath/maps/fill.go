// SPDX-License-Identifier: Apache-2.0

package maps

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf"

	"github.com/beep-lb/beep/src/datapath/bpfobj"
)

// Fill is how full a map is.
type Fill struct {
	// Map is its name, as FLOW_TABLE.
	Map string
	// Entries are the rows in use, Max the rows that fit. All rows of CONFIG, DROPS and TRAFFIC are always in use.
	Entries, Max uint32
	// Bytes is the kernel's own count of the map's memory.
	Bytes uint64
}

// Fill reports every map by name. Counting reads all rows, as the kernel keeps no count: 20 ms for 65536 flows.
func (k *Kernel) Fill() ([]Fill, error) {
	counts := map[string]func() (uint32, error){
		bpfobj.BeepMapFRONT_META:      counter(k.fronts),
		bpfobj.BeepMapFRONT_ENDPOINTS: counter(k.endpoints),
		bpfobj.BeepMapFRONT_RING:      counter(k.rings),
		bpfobj.BeepMapFRONT_SOURCES:   counter(k.sources),
		bpfobj.BeepMapNODE_ALLOW:      counter(k.peers),
		bpfobj.BeepMapPOD_TARGETS:     counter(k.targets),
		bpfobj.BeepMapAFFINITY:        counter(k.affinity),
		bpfobj.BeepMapFRAGMENTS:       counter(kernelStore[bpfobj.BeepFragmentKey, bpfobj.BeepFragmentPorts]{k.maps.FRAGMENTS}),
		FlowTable:                     counter(k.flows[FlowTable]),
		FlowDatagrams:                 counter(k.flows[FlowDatagrams]),
		FlowPending:                   counter(k.flows[FlowPending]),
	}
	var fills []Fill
	for name, field := range fields(&k.maps) {
		fill, err := measure(name, *field)
		if count, hash := counts[name]; hash && err == nil {
			fill.Entries, err = count()
		}
		if err != nil {
			return nil, fmt.Errorf("fill of %s: %w", name, err)
		}
		fills = append(fills, fill)
	}
	slices.SortFunc(fills, func(a, b Fill) int { return strings.Compare(a.Map, b.Map) })
	return fills, nil
}

// measure reports a map as full, which arrays are.
func measure(name string, m *ebpf.Map) (Fill, error) {
	info, err := m.Info()
	if err != nil {
		return Fill{}, err
	}
	bytes, _ := info.Memlock()
	return Fill{Map: name, Entries: m.MaxEntries(), Max: m.MaxEntries(), Bytes: bytes}, nil
}

func counter[K comparable, V any](s store[K, V]) func() (uint32, error) {
	return func() (count uint32, err error) {
		err = s.each(func(K, V) bool { count++; return true })
		return count, err
	}
}
