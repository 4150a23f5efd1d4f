// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

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

// planFront brings one front to its desired endpoints and source ranges: a new generation beside the one in force,
// and one write that flips the front to it.
func (p *planner) planFront(front model.Front) {
	want, err := layOut(p.desired.Seed, front.Endpoints)
	if err != nil {
		p.refuse(front, fmt.Errorf("front %s: %w", front.Socket, err))
		return
	}
	meta, exists := p.metas[front.Socket]
	takes, limited := front.Limits()
	sources := p.planRanges(meta, takes, limited)
	next := maps.FrontMeta{
		Socket: front.Socket, ID: meta.ID, Generation: meta.Generation,
		Count: uint32(len(want.endpoints)), RingSize: uint32(want.ringSize), ClientIPAffinity: front.ClientIPAffinity,
		AffinitySeconds: uint32(front.AffinityFor() / time.Second), SourcesLimited: limited,
	}
	needs := room{sources: len(sources.added) - len(sources.stale)}
	sameRows := exists && want.inForce(meta, p.actual)
	if !sameRows {
		needs.endpoints, needs.blocks = len(want.endpoints), len(want.blocks)
		next.Generation = p.freeGeneration(meta)
	}
	if !exists {
		needs.fronts = 1
		next.ID, next.Generation = p.freeID(), p.actual.First
	}
	if next == meta && sources.none() {
		return
	}
	if err := p.take(needs); err != nil {
		p.refuse(front, refusal(front, exists, err))
		return
	}
	p.room.sources += len(sources.gone)
	p.add(p.frontStep(front, want, sources, meta, next))
}

// frontStep is the step from one row of FRONT_META, the zero one if there is none, to the next.
func (p *planner) frontStep(front model.Front, want layout, sources ranges, meta, next maps.FrontMeta) Step {
	step := Step{Object: "front", Name: front.String(), Action: Changed, Detail: describe(front)}
	if meta.ID == 0 {
		step.Action = Added
	}
	p.ids[next.ID] = true
	step.writes = sources.first(next.ID)
	if next.Generation != meta.Generation {
		step.writes = append(step.writes, want.writes(Generation{next.ID, next.Generation})...)
		step.retires = append(step.retires, Generation{meta.ID, meta.Generation}) // of no front, if the front is new
	}
	if next != meta {
		step.writes = append(step.writes, putFront{next})
	}
	step.then = sources.then(next.ID)
	if sources.unused {
		step.retires = append(step.retires, sourcesOf(meta.ID))
	}
	return step
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
	case needs.sources > p.room.sources:
		return frontSources.full(needs.sources, p.room.sources, size.FrontSources)
	}
	p.room.fronts -= needs.fronts
	p.room.endpoints -= needs.endpoints
	p.room.blocks -= needs.blocks
	p.room.sources -= needs.sources
	return nil
}

// refuse leaves the front as it is.
func (p *planner) refuse(front model.Front, err error) {
	p.faults = append(p.faults, err)
	p.refused[front.Socket] = true
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
	taken := func(id uint32) bool {
		_, is := p.actual.rest.ids[id]
		return is || p.ids[id]
	}
	for taken(p.lowest) {
		p.lowest++
	}
	return p.lowest
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
		text += fmt.Sprintf(", ClientIP affinity for %s", front.AffinityFor())
	}
	switch ranges, limited := front.Limits(); {
	case limited && len(ranges) == 0:
		text += ", for nobody"
	case limited:
		text += fmt.Sprintf(", for clients of %v", ranges)
	}
	return text
}
