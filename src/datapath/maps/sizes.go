// SPDX-License-Identifier: Apache-2.0

package maps

import (
	"math"
	"math/bits"
	"unsafe"

	"github.com/beep-lb/beep/src/config"
	"github.com/beep-lb/beep/src/datapath/bpfobj"
	"github.com/beep-lb/beep/src/maglev"
)

// Sizes is max_entries of the maps that flags size, in rows.
type Sizes struct {
	FrontMeta, FrontEndpoints, FrontRing, FrontSources, FlowTable, FlowDatagrams, FlowPending, Affinity, Fragments,
	NodeAllow, PodTargets uint32
}

// What is not worth a flag of its own: source ranges a front on average, flows a row of AFFINITY, and the datagrams
// that may be under way in fragments at once.
const (
	sourcesPerFront  = 4
	flowsPerAffinity = 16
	fragments        = 2048
)

// flowsPerDatagram and flowsPerPending are the share of UDP in the established flows, and how many half-open ones of
// both protocols come on top, each as one in so many.
const (
	flowsPerDatagram = 4
	flowsPerPending  = 4
)

// generations is how many endpoint sets of one front lie side by side while it changes.
const generations = 2

// SizesOf computes the sizes that flags ask for; the struct must have passed Validate.
func SizesOf(flags *config.Datapath) Sizes {
	fronts := uint32(flags.MaxFronts)
	endpoints := uint32(flags.MaxFronts * flags.EndpointsPerFront)
	return Sizes{
		FrontMeta:      fronts,
		FrontEndpoints: endpoints * generations,
		FrontRing:      uint32(math.Ceil(float64(fronts)*blocksPerFront(flags.EndpointsPerFront))) * generations,
		FrontSources:   fronts * sourcesPerFront,
		Affinity:       uint32(flags.FlowTableMaxEntries / flowsPerAffinity),
		Fragments:      fragments,
		FlowTable:      uint32(flags.FlowTableMaxEntries - flags.FlowTableMaxEntries/flowsPerDatagram),
		FlowDatagrams:  uint32(flags.FlowTableMaxEntries / flowsPerDatagram),
		FlowPending:    uint32(flags.FlowTableMaxEntries / flowsPerPending),
		NodeAllow:      uint32(flags.NodeAllowMaxEntries),
		PodTargets:     uint32(flags.PodTargetsMax),
	}
}

// blocks is the number of FRONT_RING rows of a front of n endpoints.
func blocks(n int) int { return (maglev.Size(n) + RingBlock - 1) / RingBlock }

// blocksPerFront bounds the mean number of FRONT_RING rows a front, however endpoints are spread over fronts, of
// which each has that many on average. It is the least concave function above blocks(n): by Jensen's
// inequality no spread can have a higher mean, and two sizes of front in the right mix reach it.
func blocksPerFront(average int) float64 {
	// Rings grow in few steps; only the first n of each step, and the last n of all, can carry the function.
	corners := []int{0}
	for n := 1; n <= maglev.MaxKeys; n++ {
		if blocks(n) > blocks(n-1) || n == maglev.MaxKeys {
			corners = append(corners, n)
		}
	}
	highest := float64(blocks(average))
	for _, low := range corners {
		for _, high := range corners {
			if low < average && average < high {
				slope := float64(blocks(high)-blocks(low)) / float64(high-low)
				highest = max(highest, float64(blocks(low))+slope*float64(average-low))
			}
		}
	}
	return highest
}

// ByMap is the sizes by the maps' names.
func (s Sizes) ByMap() map[string]uint32 {
	sizes := map[string]uint32{}
	for _, shape := range shapes {
		sizes[shape.name] = *shape.entries(&s)
	}
	return sizes
}

// Memory is what a map costs the kernel, in bytes.
type Memory struct {
	// Fixed is paid when the map is made.
	Fixed uint64
	// Row is paid for each row in use; 0 where rows are made with the map.
	Row uint64
}

// The kernel's own bytes (kernel/bpf/hashtab.c of Linux 6.18, htab_map_mem_usage): a bucket's list head and lock,
// an element's list node and hash, and the free-list node that the allocator adds to an element made on demand.
const (
	bucketBytes  = 16
	elementBytes = 48
	onDemand     = 8
)

// A node of an LPM trie beside its data (kernel/bpf/lpm_trie.c); a branch takes one more node.
const trieNodeBytes = 24

// Bytes is the expected memory of each map that flags size.
func (s Sizes) Bytes() map[string]Memory {
	memory := map[string]Memory{}
	for _, shape := range shapes {
		entries := uint64(*shape.entries(&s))
		row := elementBytes + roundUp8(shape.key) + roundUp8(shape.value)
		fixed := bucketBytes * powerOfTwo(entries)
		switch shape.kind {
		case trie:
			memory[shape.name] = Memory{Row: trieNodeBytes + uint64(shape.key+shape.value)}
		case preallocated:
			memory[shape.name] = Memory{Fixed: fixed + entries*row}
		default:
			memory[shape.name] = Memory{Fixed: fixed, Row: row + onDemand}
		}
	}
	return memory
}

// kind is how the kernel makes a map's rows.
type kind int

const (
	onWrite kind = iota // when they are written
	preallocated
	trie
)

// shape is what there is to know of a map beside its rows.
type shape struct {
	name       string
	flag       string // raises its size
	kind       kind
	key, value uintptr // bytes
	entries    func(*Sizes) *uint32
}

var shapes = []shape{
	{bpfobj.BeepMapFRONT_META, "--max-fronts", onWrite,
		unsafe.Sizeof(bpfobj.BeepSocketKey{}), unsafe.Sizeof(bpfobj.BeepFrontMeta{}),
		func(s *Sizes) *uint32 { return &s.FrontMeta }},
	{bpfobj.BeepMapFRONT_ENDPOINTS, "--endpoints-per-front", onWrite,
		unsafe.Sizeof(bpfobj.BeepEndpointKey{}), unsafe.Sizeof(bpfobj.BeepEndpoint{}),
		func(s *Sizes) *uint32 { return &s.FrontEndpoints }},
	{bpfobj.BeepMapFRONT_RING, "--endpoints-per-front", onWrite,
		unsafe.Sizeof(bpfobj.BeepRingKey{}), unsafe.Sizeof(bpfobj.BeepRingBlock{}),
		func(s *Sizes) *uint32 { return &s.FrontRing }},
	{bpfobj.BeepMapFLOW_TABLE, "--flow-table-max-entries", preallocated,
		unsafe.Sizeof(bpfobj.BeepFlowKey{}), unsafe.Sizeof(bpfobj.BeepFlow{}),
		func(s *Sizes) *uint32 { return &s.FlowTable }},
	{bpfobj.BeepMapFLOW_DATAGRAMS, "--flow-table-max-entries", preallocated,
		unsafe.Sizeof(bpfobj.BeepFlowKey{}), unsafe.Sizeof(bpfobj.BeepFlow{}),
		func(s *Sizes) *uint32 { return &s.FlowDatagrams }},
	{bpfobj.BeepMapFLOW_PENDING, "--flow-table-max-entries", preallocated,
		unsafe.Sizeof(bpfobj.BeepFlowKey{}), unsafe.Sizeof(bpfobj.BeepFlow{}),
		func(s *Sizes) *uint32 { return &s.FlowPending }},
	{bpfobj.BeepMapFRONT_SOURCES, "--max-fronts", trie,
		unsafe.Sizeof(bpfobj.BeepSourceKey{}), unsafe.Sizeof(uint32(0)),
		func(s *Sizes) *uint32 { return &s.FrontSources }},
	{bpfobj.BeepMapAFFINITY, "--flow-table-max-entries", preallocated,
		unsafe.Sizeof(bpfobj.BeepAffinityKey{}), unsafe.Sizeof(bpfobj.BeepAffinity{}),
		func(s *Sizes) *uint32 { return &s.Affinity }},
	{bpfobj.BeepMapFRAGMENTS, "--flow-table-max-entries", preallocated,
		unsafe.Sizeof(bpfobj.BeepFragmentKey{}), unsafe.Sizeof(bpfobj.BeepFragmentPorts{}),
		func(s *Sizes) *uint32 { return &s.Fragments }},
	{bpfobj.BeepMapNODE_ALLOW, "--node-allow-max-entries", preallocated,
		unsafe.Sizeof(bpfobj.BeepNodeKey{}), unsafe.Sizeof(uint32(0)),
		func(s *Sizes) *uint32 { return &s.NodeAllow }},
	{bpfobj.BeepMapPOD_TARGETS, "--pod-targets-max-entries", preallocated,
		unsafe.Sizeof(bpfobj.BeepSocketKey{}), unsafe.Sizeof(uint32(0)),
		func(s *Sizes) *uint32 { return &s.PodTargets }},
}

// flagOf is the flag that sizes a map.
func flagOf(name string) string {
	for _, shape := range shapes {
		if shape.name == name {
			return shape.flag
		}
	}
	return "nothing, its size is fixed"
}

func roundUp8(n uintptr) uint64 { return (uint64(n) + 7) &^ 7 }

// powerOfTwo is the smallest power of two that is at least n.
func powerOfTwo(n uint64) uint64 { return 1 << bits.Len64(n-1) }
