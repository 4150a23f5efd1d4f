// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/beep-lb/beep/src/datapath/maps"
	"github.com/beep-lb/beep/src/maglev"
	"github.com/beep-lb/beep/src/model"
)

// layout is a front as rows: endpoints by index, and the ring cut into blocks.
type layout struct {
	endpoints []model.Endpoint
	ringSize  int
	// blocks are of maps.RingBlock indexes each, zero past the ring's end.
	blocks [][]uint16
}

// layOut numbers the endpoints by key and computes their ring. An endpoint of a front is told from the others by
// its address and port; that two are the same is an error.
func layOut(seed [16]byte, endpoints []model.Endpoint) (layout, error) {
	sorted := slices.SortedFunc(slices.Values(endpoints), model.Endpoint.Compare)
	keys := make([][]byte, len(sorted))
	for i, endpoint := range sorted {
		addr := endpoint.Addr.As16()
		keys[i] = binary.BigEndian.AppendUint16(addr[:], endpoint.Port)
	}
	ring, err := maglev.Table(seed, keys, maglev.Size(len(keys)))
	if err != nil {
		return layout{}, err
	}
	of := layout{endpoints: sorted, ringSize: len(ring)}
	for block := range slices.Chunk(ring, maps.RingBlock) {
		of.blocks = append(of.blocks, append(block, make([]uint16, maps.RingBlock-len(block))...))
	}
	return of, nil
}

// needs is what a new generation of the layout takes.
func (l layout) needs() room { return room{endpoints: len(l.endpoints), blocks: len(l.blocks)} }

// inForce says whether the rows of the front are already these.
func (l layout) inForce(meta maps.FrontMeta, actual State) bool {
	if int(meta.Count) != len(l.endpoints) || int(meta.RingSize) != l.ringSize {
		return false
	}
	for i, endpoint := range l.endpoints {
		row, exists := actual.Endpoints[maps.EndpointKey{Front: meta.ID, Generation: meta.Generation, Index: uint32(i)}]
		if !exists || row != endpoint {
			return false
		}
	}
	for i, block := range l.blocks {
		row := actual.Rings[maps.RingKey{Front: meta.ID, Generation: meta.Generation, Block: uint32(i)}]
		if !slices.Equal(row, block) {
			return false
		}
	}
	return true
}

// writes puts the generation's rows.
func (l layout) writes(g Generation) []write {
	var writes []write
	for i, endpoint := range l.endpoints {
		writes = append(writes, putEndpoint{maps.EndpointKey{Front: g.Front, Generation: g.Number, Index: uint32(i)}, endpoint})
	}
	for i, block := range l.blocks {
		writes = append(writes, putRing{maps.RingKey{Front: g.Front, Generation: g.Number, Block: uint32(i)}, block})
	}
	return writes
}

// planFront brings one front to its desired endpoints: a new generation beside the one in force, and one write
// that flips the front to it.
func (p *planner) planFront(front model.Front) {
	want, err := layOut(p.desired.Seed, front.Endpoints)
	if err != nil {
		p.faults = append(p.faults, fmt.Errorf("front %s: %w", front.Socket, err))
		return
	}
	meta, exists := p.metas[front.Socket]
	sameRows := exists && want.inForce(meta, p.actual)
	if sameRows && meta.ClientIPAffinity == front.ClientIPAffinity {
		return
	}
	step := Step{Object: "front", Name: front.String(), Action: Added, Detail: describe(front)}
	next := maps.FrontMeta{
		Socket: front.Socket, ID: meta.ID, Generation: meta.Generation,
		Count: uint32(len(want.endpoints)), RingSize: uint32(want.ringSize), ClientIPAffinity: front.ClientIPAffinity,
	}
	needs := want.needs()
	switch {
	case sameRows:
		needs = room{}
	case exists:
		next.Generation = p.freeGeneration(meta)
	default:
		needs.fronts = 1
		next.ID, next.Generation = p.freeID(), 1
	}
	if err := p.take(needs); err != nil {
		p.faults = append(p.faults, refusal(front, exists, err))
		return
	}
	if exists {
		step.Action = Changed
	}
	if !sameRows {
		p.ids[next.ID] = true
		step.writes = want.writes(Generation{next.ID, next.Generation})
		step.retires = Generation{meta.ID, meta.Generation} // of no front, if the front is new
	}
	step.writes = append(step.writes, putFront{next})
	p.steps = append(p.steps, step)
}

// take reserves rows, or names the first map that cannot hold them. Nothing is reserved then.
func (p *planner) take(needs room) error {
	size := p.actual.Capacity
	switch {
	case needs.fronts > p.room.fronts:
		return frontMeta.full(needs.fronts, p.room.fronts, size.FrontMeta)
	case needs.endpoints > p.room.endpoints:
		return frontEndpoints.full(needs.endpoints, p.room.endpoints, size.FrontEndpoints)
	case needs.blocks > p.room.blocks:
		return frontRing.full(needs.blocks, p.room.blocks, size.FrontRing)
	}
	p.room.fronts -= needs.fronts
	p.room.endpoints -= needs.endpoints
	p.room.blocks -= needs.blocks
	return nil
}

// refusal is the error of a front that does not fit.
func refusal(front model.Front, exists bool, full error) error {
	if exists {
		return fmt.Errorf("front %s keeps its previous endpoints: %w", front.Socket, full)
	}
	return fmt.Errorf("front %s is not added: %w", front.Socket, full)
}

// freeID is the smallest id that no front and no row has. The 32 bits outlast any map.
func (p *planner) freeID() uint32 {
	id := uint32(1)
	for p.ids[id] {
		id++
	}
	return id
}

// freeGeneration is the next generation of a front that has no rows, also none that a killed process left.
func (p *planner) freeGeneration(meta maps.FrontMeta) uint32 {
	next := Generation{meta.ID, meta.Generation + 1}
	for p.rows[next] != nil {
		next.Number++
	}
	return next.Number
}

// describe is a front in words.
func describe(front model.Front) string {
	text := fmt.Sprintf("%d endpoints", len(front.Endpoints))
	if len(front.Endpoints) == 1 {
		text = "1 endpoint"
	}
	if front.ClientIPAffinity {
		text += ", ClientIP affinity"
	}
	return text
}
