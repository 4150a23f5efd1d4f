// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"reflect"
	"slices"

	"github.com/beep-lb/beep/src/model"
)

// Compiler is Datapath for one snapshot after another: it remembers what it made of each Service, and makes anew what
// the next snapshot has another object for. An object is another one by its pointer (see model.Snapshot), so what did
// not change costs a glance. The zero value has compiled nothing yet. It is for one goroutine.
type Compiler struct {
	self Self
	// view has the nodes and the slices of the last snapshot.
	view *view
	// shared is what does not depend on any Service, and sharedReasons are.
	shared        model.Desired
	sharedReasons []Reason
	// round numbers the snapshots; an object whose round is an older one has gone.
	round    uint64
	services map[*model.Service]*compiled
	slices   map[*model.Slice]uint64
	// byName is services in the order of names, and byKey finds one by name.
	byName []*compiled
	byKey  map[model.ObjectKey]*compiled
	fronts []model.Front
	// targets are sorted, and claims says how many Services have one.
	targets []model.Socket
	claims  map[model.Socket]int
	reasons []Reason
}

// compiled is what one Service came to.
type compiled struct {
	service *model.Service
	round   uint64
	// ports and refusals are what assign says of it.
	ports    []portVerdict
	refusals []Reason
	fronts   []model.Front
	targets  []model.Socket
	reasons  []Reason
}

// Datapath is what this node's maps should hold, as the function of that name says. The lists of the result are the
// caller's, but not what is in them: fronts share their endpoints with earlier and later results.
func (c *Compiler) Datapath(snapshot model.Snapshot, self Self) (model.Desired, []Reason) {
	c.round++
	all := c.takeNodes(snapshot, self)
	stale := c.takeSlices(snapshot.Slices)
	gone := c.takeServices(snapshot.Services, stale)
	anew := c.byName
	if !all {
		anew = nil
		for key := range stale {
			if of := c.byKey[key]; of != nil {
				anew = append(anew, of)
			}
		}
	}
	before := gone
	for _, of := range anew {
		old := *of
		before = append(before, &old)
		c.view.compile(of)
	}
	if len(before) > 0 || all {
		c.assemble(before, anew)
	}
	desired := c.shared
	desired.Fronts, desired.Targets = slices.Clone(c.fronts), slices.Clone(c.targets)
	return desired, slices.Clip(c.reasons)
}

// takeNodes takes the nodes in, and who this node is. It returns whether everything is to be made anew.
func (c *Compiler) takeNodes(snapshot model.Snapshot, self Self) bool {
	if c.view == nil {
		c.services, c.byKey = map[*model.Service]*compiled{}, map[model.ObjectKey]*compiled{}
		c.slices, c.claims = map[*model.Slice]uint64{}, map[model.Socket]int{}
	} else if reflect.DeepEqual(c.self, self) && c.view.sameNodes(snapshot.Nodes) {
		return false
	}
	var bySlices map[model.ObjectKey][]*model.Slice
	if c.view != nil {
		bySlices = c.view.slices
	}
	c.self, c.view = self, newView(model.Snapshot{Nodes: snapshot.Nodes}, self)
	if bySlices != nil {
		c.view.slices = bySlices
	}
	c.shared = model.Desired{}
	c.view.underlay(&c.shared)
	c.sharedReasons = sorted(c.view.reasons)
	return true
}

// sameNodes says whether the nodes are these.
func (c *cluster) sameNodes(nodes []*model.Node) bool {
	if len(nodes) != len(c.nodes) {
		return false
	}
	for _, node := range nodes {
		if known := c.nodes[node.Name]; known != node && (known == nil || !known.Equal(node)) {
			return false
		}
	}
	return true
}

// takeSlices takes the slices in, and returns the Services of those that came or went.
func (c *Compiler) takeSlices(list []*model.Slice) map[model.ObjectKey]bool {
	stale := map[model.ObjectKey]bool{}
	for _, slice := range list {
		if _, known := c.slices[slice]; !known {
			c.view.addSlice(slice)
			stale[serviceOf(slice)] = true
		}
		c.slices[slice] = c.round
	}
	if len(c.slices) == len(list) {
		return stale
	}
	for slice, round := range c.slices {
		if round != c.round {
			c.view.removeSlice(slice)
			stale[serviceOf(slice)] = true
			delete(c.slices, slice)
		}
	}
	return stale
}

// takeServices takes the Services in, adds those to stale that are to be made anew, and returns what those that are
// no more came to.
func (c *Compiler) takeServices(list []*model.Service, stale map[model.ObjectKey]bool) (gone []*compiled) {
	reassign := false
	for _, service := range list {
		of := c.services[service]
		if of == nil {
			of = c.byKey[service.ObjectKey]
			switch {
			case of == nil:
				of = &compiled{}
				c.byName = append(c.byName, of)
				c.byKey[service.ObjectKey] = of
				stale[service.ObjectKey], reassign = true, true
			case !sameButStatus(of.service, service):
				stale[service.ObjectKey], reassign = true, true
			}
			delete(c.services, of.service)
			of.service, c.services[service] = service, of
		}
		of.round = c.round
	}
	if len(c.services) > len(list) {
		reassign = true
		for service, of := range c.services {
			if of.round != c.round {
				gone = append(gone, of)
				delete(c.services, service)
				delete(c.byKey, service.ObjectKey)
			}
		}
		c.byName = slices.DeleteFunc(c.byName, func(of *compiled) bool { return of.round != c.round })
	}
	if reassign {
		slices.SortFunc(c.byName, func(a, b *compiled) int { return a.service.Compare(b.service.ObjectKey) })
		c.assign(list, stale)
	}
	return gone
}

// sameButStatus says whether two states of a Service have the same fronts.
func sameButStatus(a, b *model.Service) bool {
	x, y := *a, *b
	x.Ingress, y.Ingress = nil, nil
	return x.Equal(&y)
}

// assign gives the ports away, and adds the Services to stale that have others than before.
func (c *Compiler) assign(list []*model.Service, stale map[model.ObjectKey]bool) {
	refusals := map[model.ObjectKey][]Reason{}
	ports := c.self.assign(list, func(r Reason) { refusals[r.Service] = append(refusals[r.Service], r) })
	for service, of := range c.services {
		refused := refusals[service.ObjectKey]
		if !slices.Equal(of.ports, ports[service]) || !slices.Equal(of.refusals, refused) {
			of.ports, of.refusals = ports[service], refused
			stale[service.ObjectKey] = true
		}
	}
}

// compile makes one Service anew.
func (v *view) compile(of *compiled) {
	v.reasons = slices.Clone(of.refusals)
	of.fronts, of.targets = nil, nil
	if v.self.standing(of.service, v.note) == wanted {
		targets := map[model.Socket]bool{}
		of.fronts = v.fronts(of.service, of.ports, targets)
		for target := range targets {
			of.targets = append(of.targets, target)
		}
		slices.SortFunc(of.fronts, bySocket)
	}
	of.reasons = sorted(v.reasons)
}

func bySocket(a, b model.Front) int { return a.Compare(b.Socket) }

// assemble takes out what Services came to before and puts in what they come to now.
func (c *Compiler) assemble(before, after []*compiled) {
	var gone, come []model.Front
	var released, claimed []model.Socket
	for _, of := range before {
		gone = append(gone, of.fronts...)
		for _, target := range of.targets {
			if c.claims[target]--; c.claims[target] == 0 {
				released = append(released, target)
			}
		}
	}
	for _, of := range after {
		come = append(come, of.fronts...)
		for _, target := range of.targets {
			if c.claims[target]++; c.claims[target] == 1 {
				claimed = append(claimed, target)
			}
		}
	}
	for _, target := range released {
		if c.claims[target] == 0 {
			delete(c.claims, target)
		}
	}
	c.fronts = merged(c.fronts, gone, come, bySocket)
	c.targets = merged(c.targets, released, claimed, model.Socket.Compare)
	c.reasons = slices.Clone(c.sharedReasons)
	for _, of := range c.byName {
		c.reasons = append(c.reasons, of.reasons...) // all of them name the Service, which is what orders reasons first
	}
}

// merged is a sorted list without those that are gone, all of which are in it, and with those that come.
func merged[T any](list, gone, come []T, compare func(T, T) int) []T {
	slices.SortFunc(gone, compare)
	slices.SortFunc(come, compare)
	next := make([]T, 0, len(list)-len(gone)+len(come))
	for _, item := range list {
		if len(gone) > 0 && compare(item, gone[0]) == 0 {
			gone = gone[1:]
			continue
		}
		for len(come) > 0 && compare(come[0], item) < 0 {
			next, come = append(next, come[0]), come[1:]
		}
		next = append(next, item)
	}
	return append(next, come...)
}
