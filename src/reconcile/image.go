// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	gomaps "maps"
	"net/netip"
	"slices"
	"time"

	"github.com/beep-lb/beep/src/datapath/maps"
	"github.com/beep-lb/beep/src/model"
)

// image is what the maps hold after an Apply without an error: a desired state, and what the maps alone know of it.
// With it the next plan is made of what differs, and is the same as one made of everything.
type image struct {
	capacity maps.Sizes
	// read is when the maps were read as a whole.
	read    time.Time
	desired model.Desired
	metas   map[model.Socket]maps.FrontMeta
	ids     map[uint32]model.Socket
	// used counts the rows of the fronts, those that follow not among them.
	used room
	// retired are the rows of generations that are in force no more, and sources those of FRONT_SOURCES by the front.
	retired map[Generation]*rows
	sources map[uint32][]netip.Prefix
}

func newImage(capacity maps.Sizes, now time.Time) *image {
	return &image{
		capacity: capacity, read: now,
		metas: map[model.Socket]maps.FrontMeta{}, ids: map[uint32]model.Socket{},
		retired: map[Generation]*rows{}, sources: map[uint32][]netip.Prefix{},
	}
}

// difference is the part of a desired state that is not in the maps yet, and the maps without what stays. ok is false
// if there is no telling: with another seed all differs, and lists that are not sorted cannot be compared.
func (i *image) difference(desired model.Desired, config maps.Config) (part model.Desired, actual State, ok bool) {
	if desired.Seed != i.desired.Seed || config.Seed != desired.Seed {
		return part, actual, false
	}
	part = model.Desired{Seed: desired.Seed, Underlay4: desired.Underlay4, Underlay6: desired.Underlay6}
	actual = State{
		Config: config, Capacity: i.capacity, rest: rest{ids: i.ids, room: i.used},
		Endpoints: map[maps.EndpointKey]model.Endpoint{}, Rings: map[maps.RingKey][]uint16{},
	}
	if part.Peers, actual.Peers, actual.rest.peers, ok = apart(desired.Peers, i.desired.Peers, netip.Addr.Compare); !ok {
		return part, actual, false
	}
	if part.Targets, actual.Targets, actual.rest.targets, ok = apart(desired.Targets, i.desired.Targets, model.Socket.Compare); !ok {
		return part, actual, false
	}
	var old []model.Front
	if part.Fronts, old, ok = frontsApart(desired.Fronts, i.desired.Fronts); !ok {
		return part, actual, false
	}
	for _, front := range old {
		actual.rest.room.less(i.restore(front, &actual))
	}
	i.restoreRetired(&actual)
	return part, actual, true
}

// restore puts the rows of a front into a State, and returns how many they are. A front that is in the maps could be
// laid out before.
func (i *image) restore(front model.Front, into *State) room {
	meta := i.metas[front.Socket]
	into.Fronts = append(into.Fronts, meta)
	of, _ := layOut(i.desired.Seed, front.Endpoints)
	for n, endpoint := range of.endpoints {
		into.Endpoints[maps.EndpointKey{Front: meta.ID, Generation: meta.Generation, Index: uint32(n)}] = endpoint
	}
	for n, block := range of.blocks {
		into.Rings[maps.RingKey{Front: meta.ID, Generation: meta.Generation, Block: uint32(n)}] = block
	}
	ranges, _ := front.Limits()
	for _, source := range ranges {
		into.Sources = append(into.Sources, maps.SourceKey{Front: meta.ID, Prefix: source})
	}
	return room{1, len(of.endpoints), len(of.blocks), len(ranges)}
}

// restoreRetired puts the rows into a State that are not collected yet. What they held nobody asks.
func (i *image) restoreRetired(into *State) {
	for _, of := range i.retired {
		for _, key := range of.endpoints {
			into.Endpoints[key] = model.Endpoint{}
		}
		for _, key := range of.blocks {
			into.Rings[key] = nil
		}
	}
	for id, of := range i.sources {
		for _, source := range of {
			into.Sources = append(into.Sources, maps.SourceKey{Front: id, Prefix: source})
		}
	}
}

// update takes in a plan whose steps were all made. retired are the generations that are not collected yet. ok is false
// if the maps are to be read: a front that was refused is made of who knows what.
func (i *image) update(desired model.Desired, p *planner, done []Step, retired map[Generation]time.Time) (ok bool) {
	if desired.Fronts, ok = i.inForce(desired.Fronts, p); !ok {
		return false
	}
	if p.cut {
		desired.Peers, desired.Targets = i.trusted(p, done)
	}
	for _, meta := range p.actual.Fronts {
		if _, known := i.metas[meta.Socket]; known {
			i.used.less(roomOf(meta, len(p.sources[meta.ID])))
		}
		i.metas[meta.Socket], i.ids[meta.ID] = meta, meta.Socket
	}
	for _, step := range done {
		for _, w := range step.writes {
			switch w := w.(type) {
			case putFront:
				i.metas[w.meta.Socket], i.ids[w.meta.ID] = w.meta, w.meta.Socket
			case deleteFront:
				delete(i.ids, i.metas[w.socket].ID)
				delete(i.metas, w.socket)
			}
		}
	}
	for _, front := range p.desired.Fronts {
		if meta, exists := i.metas[front.Socket]; exists {
			ranges := p.sources[meta.ID]
			if !p.refused[front.Socket] {
				ranges, _ = front.Limits()
			}
			i.used.more(roomOf(meta, len(ranges)))
		}
	}
	i.retire(p, retired)
	i.desired = desired
	return true
}

// inForce are the desired fronts, and in the place of those that were refused what they are. ok is false if that is not
// known.
func (i *image) inForce(fronts []model.Front, p *planner) (all []model.Front, ok bool) {
	if len(p.refused) == 0 {
		return fronts, true
	}
	all = make([]model.Front, 0, len(fronts))
	for _, front := range fronts {
		if p.refused[front.Socket] {
			if _, exists := p.metas[front.Socket]; !exists {
				continue
			}
			at, known := slices.BinarySearchFunc(i.desired.Fronts, front, bySocket)
			if known {
				front = i.desired.Fronts[at]
			} else if front, ok = p.read(p.metas[front.Socket]); !ok {
				return nil, false
			}
		}
		all = append(all, front)
	}
	return all, true
}

// trusted are the peers and targets that are in the maps.
func (i *image) trusted(p *planner, done []Step) ([]netip.Addr, []model.Socket) {
	peers, targets := setOf(i.desired.Peers), setOf(i.desired.Targets)
	for _, peer := range p.actual.Peers {
		peers[peer] = true
	}
	for _, target := range p.actual.Targets {
		targets[target] = true
	}
	for _, step := range done {
		for _, w := range step.writes {
			switch w := w.(type) {
			case putPeer:
				peers[w.addr] = true
			case deletePeer:
				delete(peers, w.addr)
			case putTarget:
				targets[w.socket] = true
			case deleteTarget:
				delete(targets, w.socket)
			}
		}
	}
	return slices.SortedFunc(gomaps.Keys(peers), netip.Addr.Compare), slices.SortedFunc(gomaps.Keys(targets), model.Socket.Compare)
}

// read makes a front of its rows. ok is false if its ring is none of this seed.
func (p *planner) read(meta maps.FrontMeta) (front model.Front, ok bool) {
	front = model.Front{Socket: meta.Socket, ClientIPAffinity: meta.ClientIPAffinity,
		AffinityTimeout: time.Duration(meta.AffinitySeconds) * time.Second}
	for index := range meta.Count {
		endpoint := p.actual.Endpoints[maps.EndpointKey{Front: meta.ID, Generation: meta.Generation, Index: index}]
		front.Endpoints = append(front.Endpoints, endpoint)
	}
	if meta.SourcesLimited {
		front.Sources = append([]netip.Prefix{}, p.sources[meta.ID]...)
	}
	of, err := layOut(p.desired.Seed, front.Endpoints)
	return front, err == nil && of.inForce(meta, p.actual)
}

// retire notes the rows of the retired generations, which the plan knew.
func (i *image) retire(p *planner, retired map[Generation]time.Time) {
	i.retired, i.sources = map[Generation]*rows{}, map[uint32][]netip.Prefix{}
	for g := range retired {
		switch {
		case g == sourcesOf(g.Front):
			if of := p.sources[g.Front]; len(of) > 0 && !i.metas[i.ids[g.Front]].SourcesLimited {
				i.sources[g.Front] = of
			}
		case p.rows[g] != nil:
			i.retired[g] = p.rows[g]
		}
	}
}

// roomOf is what a front takes that has so many source ranges, if it is limited.
func roomOf(meta maps.FrontMeta, ranges int) room {
	r := room{1, int(meta.Count), (int(meta.RingSize) + maps.RingBlock - 1) / maps.RingBlock, 0}
	if meta.SourcesLimited {
		r.sources = ranges
	}
	return r
}

func (r *room) less(o room) {
	r.fronts, r.endpoints, r.blocks, r.sources = r.fronts-o.fronts, r.endpoints-o.endpoints, r.blocks-o.blocks, r.sources-o.sources
}

func (r *room) more(o room) { r.less(room{-o.fronts, -o.endpoints, -o.blocks, -o.sources}) }

// apart compares two sorted lists, and returns what is only in the one, what is only in the other, and how many are in
// both. ok is false if one is not sorted, or names something twice.
func apart[T comparable](a, b []T, compare func(T, T) int) (onlyA, onlyB []T, both int, ok bool) {
	if !ascends(a, compare) || !ascends(b, compare) {
		return nil, nil, 0, false
	}
	for len(a) > 0 && len(b) > 0 {
		switch order := compare(a[0], b[0]); {
		case order < 0:
			onlyA, a = append(onlyA, a[0]), a[1:]
		case order > 0:
			onlyB, b = append(onlyB, b[0]), b[1:]
		default:
			both++
			a, b = a[1:], b[1:]
		}
	}
	return append(onlyA, a...), append(onlyB, b...), both, true
}

func ascends[T any](list []T, compare func(T, T) int) bool {
	for i := 1; i < len(list); i++ {
		if compare(list[i-1], list[i]) >= 0 {
			return false
		}
	}
	return true
}

// frontsApart is apart for fronts; those of both that are not the same are in both results.
func frontsApart(a, b []model.Front) (onlyA, onlyB []model.Front, ok bool) {
	if !ascends(a, bySocket) || !ascends(b, bySocket) {
		return nil, nil, false
	}
	for len(a) > 0 && len(b) > 0 {
		order := bySocket(a[0], b[0])
		if order <= 0 && (order < 0 || !same(&a[0], &b[0])) {
			onlyA = append(onlyA, a[0])
		}
		if order >= 0 && (order > 0 || !same(&a[0], &b[0])) {
			onlyB = append(onlyB, b[0])
		}
		if order <= 0 {
			a = a[1:]
		}
		if order >= 0 {
			b = b[1:]
		}
	}
	return append(onlyA, a...), append(onlyB, b...), true
}

// same says whether two fronts of one socket ask for the same.
func same(a, b *model.Front) bool {
	return a.AffinityFor() == b.AffinityFor() && a.ClientIPAffinity == b.ClientIPAffinity && (a.Sources == nil) == (b.Sources == nil) &&
		sameList(a.Endpoints, b.Endpoints) && sameList(a.Sources, b.Sources)
}

func bySocket(a, b model.Front) int { return a.Compare(b.Socket) }

// sameList says whether the lists hold the same; the list itself is found by a glance.
func sameList[T comparable](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || slices.Equal(a, b))
}
