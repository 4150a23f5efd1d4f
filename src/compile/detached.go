// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"slices"

	"github.com/beep-lb/beep/src/model"
)

// choose applies the Service's policy to the candidates that can be reached, as if those on detached nodes were not
// there, unless that leaves none: a packet to one of them may be lost, and one to nobody is. It returns the
// candidates to judge, those that are left out already, and the judgement.
func (v *view) choose(admitted []candidate, service *model.Service) (usable []candidate, waiting []skip, chosen func(candidate) Code) {
	isDetached := func(c candidate) bool { return v.detached(c.node) }
	if !slices.ContainsFunc(admitted, isDetached) {
		return admitted, nil, choose(admitted, service, v.self.Node, v.zone())
	}
	for _, c := range admitted {
		if !isDetached(c) {
			usable = append(usable, c)
			continue
		}
		code := EndpointDetached
		if !c.ready && !c.draining() {
			code = EndpointNotReady
		}
		waiting = append(waiting, skip{c, code, c.node})
	}
	chosen = choose(usable, service, v.self.Node, v.zone())
	if slices.ContainsFunc(usable, func(c candidate) bool { return chosen(c) == none }) {
		return usable, waiting, chosen
	}
	return admitted, nil, choose(admitted, service, v.self.Node, v.zone())
}

// detached says that a tunnel to the node would end in its host stack. This node needs none.
func (v *view) detached(name string) bool {
	node := v.nodes[name]
	return node != nil && node.Detached && name != v.self.Node
}
