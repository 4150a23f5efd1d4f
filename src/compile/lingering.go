// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"slices"

	"github.com/beep-lb/beep/src/model"
)

// Lingering are those of the earlier targets that are no longer desired and yet stay until their endpoint leaves all
// slices: its Service has left beep (another type, another port, an older owner), and the flows of peers drain. Add
// them to Desired.Targets. Flows on this node need none: they look at no target.
func Lingering(snapshot model.Snapshot, self Self, desired, earlier []model.Socket) []model.Socket {
	due := map[model.Socket]bool{}
	for _, target := range earlier {
		due[target] = true
	}
	for _, target := range desired {
		delete(due, target)
	}
	if len(due) == 0 {
		return nil
	}
	v := newView(model.Snapshot{Nodes: snapshot.Nodes}, self)
	var lingering []model.Socket
	for _, slice := range snapshot.Slices {
		for i := range slice.Endpoints {
			endpoint := &slice.Endpoints[i]
			if endpoint.Node != self.Node || !v.admitsHere(endpoint.Addr) {
				continue
			}
			for target := range due {
				if target.Addr == endpoint.Addr {
					lingering = append(lingering, target)
					delete(due, target)
				}
			}
		}
	}
	slices.SortFunc(lingering, model.Socket.Compare)
	return lingering
}
