// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"net/netip"
	"slices"

	"github.com/beep-lb/beep/src/datapath/maps"
)

// sourcesOf names the rows of FRONT_SOURCES of a front among the generations, whose numbers start at 1.
func sourcesOf(front uint32) Generation { return Generation{Front: front} }

// ranges is how the rows of FRONT_SOURCES of one front change. The rows have no generation: those in force only
// grow before FRONT_META flips, and only shrink after. So a client that may come before and after may come at any
// time, and one that may not never may.
type ranges struct {
	// stale are rows that are not in force, and must not come into force together with the new ones.
	stale, added, gone []netip.Prefix
	// narrower says that the front begins to be limited: its flows are to be checked, once it is.
	narrower bool
	// unused says that the rows in force are so no more.
	unused bool
}

// planRanges compares the rows of a front with what it should take. A new front has the zero meta.
func (p *planner) planRanges(meta maps.FrontMeta, want []netip.Prefix, limited bool) ranges {
	have := p.sources[meta.ID]
	if !limited {
		return ranges{unused: meta.SourcesLimited && len(have) > 0}
	}
	r := ranges{narrower: !meta.SourcesLimited}
	for _, source := range want {
		if !slices.Contains(have, source) {
			r.added = append(r.added, source)
		}
	}
	for _, source := range have {
		if !slices.Contains(want, source) {
			r.gone = append(r.gone, source)
		}
	}
	if !meta.SourcesLimited {
		r.stale, r.gone = r.gone, nil
	}
	return r
}

// none says that no row has to change.
func (r ranges) none() bool { return len(r.stale)+len(r.added)+len(r.gone) == 0 }

// first are the writes before FRONT_META's.
func (r ranges) first(front uint32) (writes []write) {
	for _, source := range r.stale {
		writes = append(writes, deleteSource{maps.SourceKey{Front: front, Prefix: source}})
	}
	for _, source := range r.added {
		writes = append(writes, putSource{maps.SourceKey{Front: front, Prefix: source}})
	}
	return writes
}

// then are the writes after FRONT_META's.
func (r ranges) then(front uint32) (writes []write) {
	for _, source := range r.gone {
		writes = append(writes, deleteSource{maps.SourceKey{Front: front, Prefix: source}})
	}
	if r.narrower {
		writes = append(writes, raiseEpoch{})
	}
	return writes
}
