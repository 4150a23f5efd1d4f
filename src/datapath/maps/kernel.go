// SPDX-License-Identifier: Apache-2.0

package maps

import (
	"errors"
	"fmt"
	"io/fs"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/src/datapath/bpfobj"
	"github.com/beep-lb/beep/src/datapath/pinfs"
)

// Kernel is the kernel's own maps. It is safe for concurrent readers and one writer.
type Kernel struct {
	tables
	maps  bpfobj.BeepMaps
	flows map[string]kernelStore[bpfobj.BeepFlowKey, bpfobj.BeepFlow]

	affinity kernelStore[bpfobj.BeepAffinityKey, bpfobj.BeepAffinity]
}

var _ Maps = (*Kernel)(nil)

// New takes over the maps of a loaded object: Close closes them.
func New(m bpfobj.BeepMaps) *Kernel {
	return &Kernel{
		maps: m,
		tables: tables{
			fronts:    kernelStore[bpfobj.BeepSocketKey, bpfobj.BeepFrontMeta]{m.FRONT_META},
			endpoints: kernelStore[bpfobj.BeepEndpointKey, bpfobj.BeepEndpoint]{m.FRONT_ENDPOINTS},
			rings:     kernelStore[bpfobj.BeepRingKey, bpfobj.BeepRingBlock]{m.FRONT_RING},
			sources:   kernelTrie[bpfobj.BeepSourceKey, uint32]{kernelStore[bpfobj.BeepSourceKey, uint32]{m.FRONT_SOURCES}},
			peers:     kernelStore[bpfobj.BeepNodeKey, uint32]{m.NODE_ALLOW},
			targets:   kernelStore[bpfobj.BeepSocketKey, uint32]{m.POD_TARGETS},
			config:    kernelArray[bpfobj.BeepConfig]{m.CONFIG},
		},
		flows: map[string]kernelStore[bpfobj.BeepFlowKey, bpfobj.BeepFlow]{
			FlowTable: {m.FLOW_TABLE}, FlowDatagrams: {m.FLOW_DATAGRAMS}, FlowPending: {m.FLOW_PENDING},
		},
		affinity: kernelStore[bpfobj.BeepAffinityKey, bpfobj.BeepAffinity]{m.AFFINITY},
	}
}

// ByName takes over the maps of a loaded object, all of them, as New does.
func ByName(byName map[string]*ebpf.Map) *Kernel {
	var m bpfobj.BeepMaps
	for name, field := range fields(&m) {
		*field = byName[name]
	}
	return New(m)
}

// Open opens the maps that are pinned below a pin directory. It fails with fs.ErrNotExist if beep has not been
// loaded there, and if the pinned maps have another layout than this build's.
func Open(pinDir string) (*Kernel, error) {
	dir, err := pinfs.Open(pinDir)
	if err != nil {
		return nil, err
	}
	spec, err := bpfobj.LoadBeep()
	if err != nil {
		return nil, fmt.Errorf("read the embedded object: %w", err)
	}
	var m bpfobj.BeepMaps
	for name, field := range fields(&m) {
		if *field, err = openPin(dir, spec.Maps[name]); err != nil {
			m.Close()
			return nil, err
		}
	}
	k := New(m)
	config, err := k.Config()
	if err == nil && config.ABI != ABI {
		err = fmt.Errorf("the maps below %s have layout %d and this build reads layout %d: "+
			"use the beep that loaded them, or run `beep load` of this one", pinDir, config.ABI, ABI)
	}
	if err != nil {
		k.Close()
		return nil, err
	}
	return k, nil
}

// fields are the members of the generated struct by the maps' names.
func fields(m *bpfobj.BeepMaps) map[string]**ebpf.Map {
	return map[string]**ebpf.Map{
		bpfobj.BeepMapAFFINITY: &m.AFFINITY, bpfobj.BeepMapBUDGET: &m.BUDGET, bpfobj.BeepMapFRAGMENTS: &m.FRAGMENTS,
		bpfobj.BeepMapCONFIG: &m.CONFIG, bpfobj.BeepMapDROPS: &m.DROPS, bpfobj.BeepMapFRONT_SOURCES: &m.FRONT_SOURCES,
		bpfobj.BeepMapFLOW_PENDING: &m.FLOW_PENDING, bpfobj.BeepMapFLOW_TABLE: &m.FLOW_TABLE,
		bpfobj.BeepMapFLOW_DATAGRAMS:  &m.FLOW_DATAGRAMS,
		bpfobj.BeepMapFRONT_ENDPOINTS: &m.FRONT_ENDPOINTS, bpfobj.BeepMapFRONT_META: &m.FRONT_META,
		bpfobj.BeepMapFRONT_RING: &m.FRONT_RING, bpfobj.BeepMapNODE_ALLOW: &m.NODE_ALLOW,
		bpfobj.BeepMapPOD_TARGETS: &m.POD_TARGETS, bpfobj.BeepMapTRAFFIC: &m.TRAFFIC,
	}
}

// openPin opens one pinned map and checks that its rows are as the object has them; its size may differ.
func openPin(dir *pinfs.Dir, want *ebpf.MapSpec) (*ebpf.Map, error) {
	path := dir.MapPath(want.Name)
	m, err := ebpf.LoadPinnedMap(path, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("map %s is not pinned at %s: run `beep load` or `beep run` with this --pin-dir: %w",
			want.Name, path, fs.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("open map %s: %w", path, err)
	}
	if m.Type() != want.Type || m.KeySize() != want.KeySize || m.ValueSize() != want.ValueSize {
		err := fmt.Errorf("map %s is %s with keys of %d and values of %d bytes, this build reads %s, %d and %d: "+
			"run `beep load` of this build", path, m.Type(), m.KeySize(), m.ValueSize(), want.Type, want.KeySize, want.ValueSize)
		m.Close()
		return nil, err
	}
	return m, nil
}

// Close closes the maps; what is pinned or used by a program lives on.
func (k *Kernel) Close() error { return k.maps.Close() }

// Capacity is max_entries of the maps as they are.
func (k *Kernel) Capacity() Sizes {
	return Sizes{
		FrontMeta: k.maps.FRONT_META.MaxEntries(), FrontEndpoints: k.maps.FRONT_ENDPOINTS.MaxEntries(),
		FrontRing: k.maps.FRONT_RING.MaxEntries(), FrontSources: k.maps.FRONT_SOURCES.MaxEntries(),
		FlowTable: k.maps.FLOW_TABLE.MaxEntries(), FlowDatagrams: k.maps.FLOW_DATAGRAMS.MaxEntries(),
		FlowPending: k.maps.FLOW_PENDING.MaxEntries(), Affinity: k.maps.AFFINITY.MaxEntries(),
		Fragments: k.maps.FRAGMENTS.MaxEntries(), NodeAllow: k.maps.NODE_ALLOW.MaxEntries(),
		PodTargets: k.maps.POD_TARGETS.MaxEntries(),
	}
}

// kernelStore is a hash map of the kernel.
type kernelStore[K comparable, V any] struct{ m *ebpf.Map }

// batchBytes bounds the two buffers of a batch read, in bytes.
const batchBytes = 256 << 10

// each reads in batches, one system call for some thousand rows. The kernel copies bucket by bucket, each under
// its lock, so a row that is written meanwhile comes once, old or new, and visit may delete rows.
func (s kernelStore[K, V]) each(visit func(K, V) bool) error {
	var row struct {
		key   K
		value V
	}
	return s.eachBatch(min(int(s.m.MaxEntries()), batchBytes/int(unsafe.Sizeof(row))), visit)
}

// eachBatch is each with the number of rows to ask for at once.
func (s kernelStore[K, V]) eachBatch(size int, visit func(K, V) bool) error {
	var cursor ebpf.MapBatchCursor
	keys, values := make([]K, size), make([]V, size)
	for {
		n, err := s.m.BatchLookup(&cursor, keys, values, nil)
		if errors.Is(err, unix.ENOSPC) {
			// The next bucket holds more rows than the buffer; the cursor stands before it.
			size *= 2
			keys, values = make([]K, size), make([]V, size)
			continue
		}
		last := errors.Is(err, ebpf.ErrKeyNotExist)
		if err != nil && !last {
			return errno(err)
		}
		for i := range n {
			if !visit(keys[i], values[i]) {
				return nil
			}
		}
		if last {
			return nil
		}
	}
}

func (s kernelStore[K, V]) lookup(key K) (value V, err error) {
	err = errno(s.m.Lookup(&key, &value))
	return value, err
}

func (s kernelStore[K, V]) put(key K, value V) error {
	return errno(s.m.Update(&key, &value, ebpf.UpdateAny))
}
func (s kernelStore[K, V]) remove(key K) error { return errno(s.m.Delete(&key)) }
func (s kernelStore[K, V]) capacity() uint32   { return s.m.MaxEntries() }

// kernelTrie is an LPM trie of the kernel, which reads no batches (Linux 6.18) and says ENOSPC where a hash map
// says E2BIG.
type kernelTrie[K comparable, V any] struct{ kernelStore[K, V] }

func (t kernelTrie[K, V]) each(visit func(K, V) bool) error {
	var key K
	var value V
	rows := t.m.Iterate()
	for rows.Next(&key, &value) {
		if !visit(key, value) {
			return nil
		}
	}
	return errno(rows.Err())
}

func (t kernelTrie[K, V]) put(key K, value V) error {
	err := t.kernelStore.put(key, value)
	if errors.Is(err, unix.ENOSPC) {
		return unix.E2BIG
	}
	return err
}

// kernelArray is an array map of the kernel, whose one row is always there.
type kernelArray[V any] struct{ m *ebpf.Map }

func (a kernelArray[V]) each(visit func(uint32, V) bool) error {
	var key uint32
	var value V
	if err := a.m.Lookup(&key, &value); err != nil {
		return errno(err)
	}
	visit(key, value)
	return nil
}

func (a kernelArray[V]) put(key uint32, value V) error {
	return errno(a.m.Update(&key, &value, ebpf.UpdateAny))
}
func (a kernelArray[V]) remove(key uint32) error { return errno(a.m.Delete(&key)) }
func (a kernelArray[V]) capacity() uint32        { return a.m.MaxEntries() }

// errno is the kernel's own word in an error of the library, which has a misleading text for some (E2BIG is "key
// too big").
func errno(err error) error {
	var number unix.Errno
	if errors.As(err, &number) {
		return number
	}
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return unix.ENOENT
	}
	return err
}
