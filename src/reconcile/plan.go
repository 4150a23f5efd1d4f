// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"cmp"
	"errors"
	"fmt"
	gomaps "maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/beep-lb/beep/src/datapath/maps"
	"github.com/beep-lb/beep/src/model"
)

// Plan says what must change, in the order in which it must: the configuration, rows that no front names, who is
// trusted anew, fronts, who is trusted no more. Of fronts, those that lose endpoints or source ranges come first, then the
// others in key order, so which front starves in a full map is not a matter of luck. Fronts go last, so that a Service
// that moves to another port is served all the time; but first where new ones need their places. Rows that are as
// desired are not written. It is pure.
//
// A front that does not fit is refused whole, and so are peers and targets past the end of their map: the error
// joins one line for each, wrapping maps.ErrCapacity where a flag would help, and the steps are those of
// everything else. A generation that a step retires still takes its rows: what is refused for that alone fits in a
// plan made after the rows are collected.
func Plan(desired model.Desired, actual State) ([]Step, error) {
	return newPlanner(desired, actual).plan()
}

func (p *planner) plan() ([]Step, error) {
	p.planConfig()
	p.collect()
	size, rest := p.actual.Capacity, p.actual.rest
	addPeers, removePeers, peersErr := peers(size.NodeAllow).plan(p.desired.Peers, p.actual.Peers, rest.peers)
	addTargets, removeTargets, targetsErr := targets(size.PodTargets).plan(p.desired.Targets, p.actual.Targets, rest.targets)
	p.faults = append(p.faults, peersErr, targetsErr)
	p.cut = peersErr != nil || targetsErr != nil
	p.steps = slices.Concat(p.steps, addPeers, addTargets)
	late := p.newFronts() <= p.room.fronts
	if !late {
		p.removeFronts()
	}
	for _, front := range p.inOrder() {
		p.planFront(front)
	}
	if late {
		p.removeFronts()
	}
	return slices.Concat(p.steps, removePeers, removeTargets), errors.Join(p.faults...)
}

// planner keeps count of the maps while steps are added.
type planner struct {
	desired model.Desired
	actual  State
	// metas are the rows of FRONT_META as they are.
	metas map[model.Socket]maps.FrontMeta
	// rows are the rows of FRONT_ENDPOINTS and FRONT_RING as they are.
	rows map[Generation]*rows
	// sources are the rows of FRONT_SOURCES as they are, by the front's id.
	sources map[uint32][]netip.Prefix
	// ids are those of fronts and of rows, and so not free. Rows that this plan collects still count: to
	// collect them may fail.
	ids map[uint32]bool
	// lowest is an id below which none is free.
	lowest uint32
	// room is what the maps can still take.
	room room

	steps  []Step
	faults []error
	// refused are the fronts that stay as they are, and cut says that a list is not as desired.
	refused map[model.Socket]bool
	cut     bool
}

// rows are the keys of one generation.
type rows struct {
	endpoints []maps.EndpointKey
	blocks    []maps.RingKey
}

// room counts rows: free ones, or needed ones.
type room struct{ fronts, endpoints, blocks, sources int }

func newPlanner(desired model.Desired, actual State) *planner {
	p := &planner{
		desired: desired,
		actual:  actual,
		metas:   map[model.Socket]maps.FrontMeta{},
		rows:    map[Generation]*rows{},
		sources: map[uint32][]netip.Prefix{},
		ids:     map[uint32]bool{},
		lowest:  1,
		refused: map[model.Socket]bool{},
		room: room{
			fronts:    int(actual.Capacity.FrontMeta) - len(actual.Fronts),
			endpoints: int(actual.Capacity.FrontEndpoints) - len(actual.Endpoints),
			blocks:    int(actual.Capacity.FrontRing) - len(actual.Rings),
			sources:   int(actual.Capacity.FrontSources) - len(actual.Sources),
		},
	}
	p.room.less(actual.rest.room)
	for _, meta := range actual.Fronts {
		p.metas[meta.Socket] = meta
		p.ids[meta.ID] = true
	}
	for key := range actual.Endpoints {
		of := p.generation(Generation{key.Front, key.Generation})
		of.endpoints = append(of.endpoints, key)
	}
	for key := range actual.Rings {
		of := p.generation(Generation{key.Front, key.Generation})
		of.blocks = append(of.blocks, key)
	}
	for _, key := range actual.Sources {
		p.ids[key.Front] = true
		p.sources[key.Front] = append(p.sources[key.Front], key.Prefix)
	}
	return p
}

// generation returns the rows of a generation, which it makes known.
func (p *planner) generation(g Generation) *rows {
	p.ids[g.Front] = true
	if p.rows[g] == nil {
		p.rows[g] = &rows{}
	}
	return p.rows[g]
}

func (p *planner) add(step Step) { p.steps = append(p.steps, step) }

// planConfig keeps the ABI, which belongs to whoever made the maps, and the epoch, which rises with the deletion of
// a peer, a target or a source range.
func (p *planner) planConfig() {
	want := p.actual.Config
	want.Seed = p.desired.Seed
	want.Underlay4, want.Underlay6 = p.desired.Underlay4, p.desired.Underlay6
	if want == p.actual.Config && !p.actual.Distrust {
		return
	}
	step := Step{Object: configObject, Name: "CONFIG", Action: Changed, Detail: describeConfig(want)}
	switch {
	case want == p.actual.Config:
		step.Action, step.Detail = Renewed, ""
	case want.Seed != p.actual.Config.Seed:
		step.Detail += ", new hash seed" // the seed itself is a secret
	}
	if p.actual.Distrust {
		want.Epoch++
	}
	step.writes = []write{setConfig{want}}
	p.add(step)
}

// describeConfig is a configuration in words.
func describeConfig(config maps.Config) string {
	var underlays []string
	for _, underlay := range []netip.Addr{config.Underlay4, config.Underlay6} {
		if underlay.IsValid() {
			underlays = append(underlays, "underlay "+underlay.String())
		}
	}
	if len(underlays) == 0 {
		return "no underlay"
	}
	return strings.Join(underlays, ", ")
}

// collect removes generations that no front names, and source ranges of no front that is limited, unless they are
// held.
func (p *planner) collect() {
	inForce := map[Generation]bool{}
	for _, meta := range p.actual.Fronts {
		inForce[Generation{meta.ID, meta.Generation}] = true
		if meta.SourcesLimited {
			inForce[sourcesOf(meta.ID)] = true
		}
	}
	known := slices.Collect(gomaps.Keys(p.rows))
	for id := range p.sources {
		known = append(known, sourcesOf(id))
	}
	garbage := slices.DeleteFunc(known, func(g Generation) bool { return inForce[g] || p.actual.Held[g] })
	slices.SortFunc(garbage, func(a, b Generation) int {
		return cmp.Or(cmp.Compare(a.Front, b.Front), cmp.Compare(a.Number, b.Number))
	})
	for _, g := range garbage {
		if g == sourcesOf(g.Front) {
			p.collectSources(g)
		} else {
			p.collectRows(g)
		}
	}
}

func (p *planner) collectSources(g Generation) {
	of := p.sources[g.Front]
	step := Step{Object: "rows", Name: g.String(), Action: Collected, Detail: fmt.Sprintf("%d source ranges", len(of)),
		writes: ranges{stale: of}.first(g.Front)}
	p.room.sources += len(of)
	delete(p.sources, g.Front)
	p.add(step)
}

func (p *planner) collectRows(g Generation) {
	of := p.rows[g]
	step := Step{Object: "rows", Name: g.String(), Action: Collected,
		Detail: fmt.Sprintf("%d endpoints, %d ring blocks", len(of.endpoints), len(of.blocks))}
	for _, key := range of.endpoints {
		step.writes = append(step.writes, deleteEndpoint{key})
	}
	for _, key := range of.blocks {
		step.writes = append(step.writes, deleteRing{key})
	}
	p.room.endpoints += len(of.endpoints)
	p.room.blocks += len(of.blocks)
	p.add(step)
}

// newFronts counts the desired fronts that are not there.
func (p *planner) newFronts() (count int) {
	for i := range p.desired.Fronts {
		if _, exists := p.metas[p.desired.Fronts[i].Socket]; !exists {
			count++
		}
	}
	return count
}

// removeFronts deletes the fronts that are not desired. Their rows are collected later.
func (p *planner) removeFronts() {
	keep := map[model.Socket]bool{}
	for _, front := range p.desired.Fronts {
		keep[front.Socket] = true
	}
	for _, meta := range p.actual.Fronts {
		if keep[meta.Socket] {
			continue
		}
		p.room.fronts++
		step := Step{Object: "front", Name: meta.String(), Action: Removed,
			writes: []write{deleteFront{meta.Socket}}, retires: []Generation{{meta.ID, meta.Generation}}}
		if len(p.sources[meta.ID]) > 0 {
			step.retires = append(step.retires, sourcesOf(meta.ID))
		}
		p.add(step)
	}
}

// inOrder lists the desired fronts: those that lose endpoints or source ranges, then the others, each by key.
func (p *planner) inOrder() []model.Front {
	shrinks := func(front model.Front) bool {
		meta, exists := p.metas[front.Socket]
		sources, _ := front.Limits()
		return exists && (len(front.Endpoints) < int(meta.Count) || len(sources) < len(p.sources[meta.ID]))
	}
	return slices.SortedStableFunc(slices.Values(p.desired.Fronts), func(a, b model.Front) int {
		switch {
		case shrinks(a) && !shrinks(b):
			return -1
		case shrinks(b) && !shrinks(a):
			return 1
		}
		return a.Compare(b.Socket)
	})
}
