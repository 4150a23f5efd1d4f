// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"fmt"

	"github.com/beep-lb/beep/src/datapath/maps"
)

// table is a map that can be full, and the flag that raises its size.
type table struct{ name, flag string }

var (
	frontMeta      = table{"FRONT_META", "--max-fronts"}
	frontEndpoints = table{"FRONT_ENDPOINTS", "--endpoints-per-front"}
	frontRing      = table{"FRONT_RING", "--endpoints-per-front"}
	frontSources   = table{"FRONT_SOURCES", "--max-fronts"}
	nodeAllow      = table{"NODE_ALLOW", "--node-allow-max-entries"}
	podTargets     = table{"POD_TARGETS", "--pod-targets-max-entries"}
)

// full is the error that the kernel would give half-way through, given before the first row is written.
func (t table) full(needs, free int, size uint32) error {
	return fmt.Errorf("%w: %s has %d of %d rows free and this takes %d: raise %s",
		maps.ErrCapacity, t.name, max(free, 0), size, needs, t.flag)
}
