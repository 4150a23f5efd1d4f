// SPDX-License-Identifier: Apache-2.0

package maps

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/src/datapath/bpfobj"
)

// FrontMaps are the maps that describe fronts.
type FrontMaps struct {
	// ABI is the layout of the rows: 1, 2 or this build's.
	ABI uint32
	// Sources may be nil, as in layout 1.
	Meta, Endpoints, Rings, Sources *ebpf.Map
}

// FrontRows counts the rows that fronts in force have in each map.
type FrontRows struct{ Meta, Endpoints, Rings, Sources Carried }

// frontMetaV1 is a row of FRONT_META in layout 1.
type frontMetaV1 struct{ ID, Generation, Count, RingSize, Flags uint32 }

// migrateFront makes a row of layout 2. Layout 1 hashed the client's address of a front with affinity and remembered
// nothing, which is what a timeout of 0 asks for.
func migrateFront(old frontMetaV1) bpfobj.BeepFrontMeta {
	return bpfobj.BeepFrontMeta{
		Id: old.ID, Generation: old.Generation, Count: old.Count, RingSize: old.RingSize, Flags: old.Flags,
	}
}

// frontStores are FrontMaps with their types.
type frontStores struct {
	endpoints kernelStore[bpfobj.BeepEndpointKey, bpfobj.BeepEndpoint]
	rings     kernelStore[bpfobj.BeepRingKey, bpfobj.BeepRingBlock]
	sources   kernelTrie[bpfobj.BeepSourceKey, uint32]
}

func (m FrontMaps) stores() frontStores {
	return frontStores{
		endpoints: kernelStore[bpfobj.BeepEndpointKey, bpfobj.BeepEndpoint]{m.Endpoints},
		rings:     kernelStore[bpfobj.BeepRingKey, bpfobj.BeepRingBlock]{m.Rings},
		sources:   kernelTrie[bpfobj.BeepSourceKey, uint32]{kernelStore[bpfobj.BeepSourceKey, uint32]{m.Sources}},
	}
}

// wholeFront is a front with all that its row names.
type wholeFront struct {
	name      FrontMeta
	key       bpfobj.BeepSocketKey
	meta      bpfobj.BeepFrontMeta
	endpoints []bpfobj.BeepEndpoint
	rings     []bpfobj.BeepRingBlock
	sources   []bpfobj.BeepSourceKey
}

// CarryFronts copies whole fronts, in key order, into empty maps of this build's layout: what a front's row names is
// there before it. A front that does not fit, or of which a row is missing, stays behind whole, and so do rows that
// no front in force names.
func CarryFronts(from, to FrontMaps, guard Guard) (FrontRows, error) {
	var rows FrontRows
	fronts, err := listFronts(from)
	if err != nil {
		return rows, carryFault(bpfobj.BeepMapFRONT_META, err)
	}
	sources, err := listSources(from)
	if err != nil {
		return rows, carryFault(bpfobj.BeepMapFRONT_SOURCES, err)
	}
	source, target := from.stores(), to.stores()
	metas := kernelStore[bpfobj.BeepSocketKey, bpfobj.BeepFrontMeta]{to.Meta}
	for _, front := range fronts {
		front.sources = sources[front.meta.Id]
		complete, err := source.fetch(&front)
		if err != nil {
			return rows, carryFault(bpfobj.BeepMapFRONT_ENDPOINTS, err)
		}
		rows.find(front)
		if !complete || !rows.fits(front, to) {
			continue
		}
		if err = target.put(front, guard); err == nil {
			err = metas.put(front.key, front.meta)
		}
		if err != nil {
			return rows, carryFault("front "+front.name.String(), err)
		}
		rows.keep(front)
	}
	return rows, nil
}

// listFronts reads FRONT_META of any layout, in key order; the rows of layout 2 are this build's.
func listFronts(from FrontMaps) ([]wholeFront, error) {
	var fronts []wholeFront
	add := func(key bpfobj.BeepSocketKey, meta bpfobj.BeepFrontMeta) bool {
		fronts = append(fronts, wholeFront{key: key, meta: meta, name: fromFrontMeta(key, meta)})
		return true
	}
	var err error
	switch from.ABI {
	case 2, ABI:
		err = kernelStore[bpfobj.BeepSocketKey, bpfobj.BeepFrontMeta]{from.Meta}.each(add)
	case 1:
		err = kernelStore[bpfobj.BeepSocketKey, frontMetaV1]{from.Meta}.each(
			func(key bpfobj.BeepSocketKey, old frontMetaV1) bool { return add(key, migrateFront(old)) })
	default:
		err = fmt.Errorf("layout %d: no way to layout %d is known", from.ABI, ABI)
	}
	slices.SortFunc(fronts, func(a, b wholeFront) int { return a.name.Compare(b.name.Socket) })
	return fronts, err
}

// listSources reads FRONT_SOURCES by front.
func listSources(from FrontMaps) (map[uint32][]bpfobj.BeepSourceKey, error) {
	sources := map[uint32][]bpfobj.BeepSourceKey{}
	if from.Sources == nil {
		return sources, nil
	}
	err := from.stores().sources.each(func(key bpfobj.BeepSourceKey, _ uint32) bool {
		front := fromSourceKey(key).Front
		sources[front] = append(sources[front], key)
		return true
	})
	return sources, err
}

// fetch reads the endpoints and the ring of a front, and says whether all were there.
func (s frontStores) fetch(front *wholeFront) (bool, error) {
	id, generation := front.meta.Id, front.meta.Generation
	for i := range front.meta.Count {
		row, err := s.endpoints.lookup(bpfobj.BeepEndpointKey{FrontId: id, Generation: generation, Index: i})
		if errors.Is(err, unix.ENOENT) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		front.endpoints = append(front.endpoints, row)
	}
	for block := uint32(0); block*uint32(RingBlock) < front.meta.RingSize; block++ {
		row, err := s.rings.lookup(bpfobj.BeepRingKey{FrontId: id, Generation: generation, Block: block})
		if errors.Is(err, unix.ENOENT) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		front.rings = append(front.rings, row)
	}
	return true, nil
}

// put writes what a front's row names.
func (s frontStores) put(front wholeFront, guard Guard) error {
	id, generation := front.meta.Id, front.meta.Generation
	if err := guard.ask(); err != nil {
		return err
	}
	for i, row := range front.endpoints {
		key := bpfobj.BeepEndpointKey{FrontId: id, Generation: generation, Index: uint32(i)}
		if err := s.endpoints.put(key, row); err != nil {
			return fmt.Errorf("%s: %w", bpfobj.BeepMapFRONT_ENDPOINTS, err)
		}
	}
	for i, row := range front.rings {
		key := bpfobj.BeepRingKey{FrontId: id, Generation: generation, Block: uint32(i)}
		if err := s.rings.put(key, row); err != nil {
			return fmt.Errorf("%s: %w", bpfobj.BeepMapFRONT_RING, err)
		}
	}
	for _, key := range front.sources {
		if err := s.sources.put(key, 0); err != nil {
			return fmt.Errorf("%s: %w", bpfobj.BeepMapFRONT_SOURCES, err)
		}
	}
	return nil
}

func (r *FrontRows) find(front wholeFront) {
	r.Meta.Found++
	r.Endpoints.Found += uint32(len(front.endpoints))
	r.Rings.Found += uint32(len(front.rings))
	r.Sources.Found += uint32(len(front.sources))
}

func (r *FrontRows) keep(front wholeFront) {
	r.Meta.Kept++
	r.Endpoints.Kept += uint32(len(front.endpoints))
	r.Rings.Kept += uint32(len(front.rings))
	r.Sources.Kept += uint32(len(front.sources))
}

// fits says whether there is room for the front beside what was kept.
func (r *FrontRows) fits(front wholeFront, to FrontMaps) bool {
	return r.Meta.Kept < to.Meta.MaxEntries() &&
		r.Endpoints.Kept+uint32(len(front.endpoints)) <= to.Endpoints.MaxEntries() &&
		r.Rings.Kept+uint32(len(front.rings)) <= to.Rings.MaxEntries() &&
		r.Sources.Kept+uint32(len(front.sources)) <= to.Sources.MaxEntries()
}
