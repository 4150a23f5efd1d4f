// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"strings"

	"github.com/beep-lb/beep/src/datapath/bpfobj"
	"github.com/beep-lb/beep/src/datapath/pinfs"
)

const (
	// asideSuffix marks a map that waits to be published.
	asideSuffix = "_next"
	// partSuffix marks one on its way there: a map may wait already, and a pin can only be replaced by a rename.
	partSuffix = "_part"
)

// PinAside pins the new maps beside the old, so that they outlive this process as the old ones do. It comes before
// the first program that uses them is attached.
func (s *Set) PinAside() error {
	names := s.names()
	if len(names) == 0 {
		return nil
	}
	if s.fresh[bpfobj.BeepMapCONFIG] == nil {
		// It stays as it is, and its second name says that all others have theirs.
		marker := &fresh{made: true, replaces: true}
		s.fresh[bpfobj.BeepMapCONFIG] = marker
		names = s.names()
	}
	for i, name := range names {
		if !s.fresh[name].made {
			continue // it waits already
		}
		if err := s.pinAside(name); err != nil {
			return err
		}
		if i == 0 {
			s.Reach(PartPinned)
		}
	}
	s.Reach(PinnedAside)
	return nil
}

func (s *Set) pinAside(name string) error {
	// The library remembers one path a map, and refuses a second pin of a pinned one.
	clone, err := s.now[name].Clone()
	if err != nil {
		return fmt.Errorf("pin map %s aside: %w", name, err)
	}
	defer clone.Close()
	part := s.dir.MapPath(name + partSuffix)
	if err := clone.Pin(part); err != nil {
		return fmt.Errorf("pin map %s aside: %w", name, err)
	}
	return s.dir.Publish(part, s.dir.MapPath(name+asideSuffix))
}

// Publish gives each new map its name, in one rename a map, and logs a line of it.
func (s *Set) Publish() error {
	for i, name := range s.names() {
		if err := s.dir.Publish(s.dir.MapPath(name+asideSuffix), s.dir.MapPath(name)); err != nil {
			return err
		}
		s.tell(name)
		if i == 0 {
			s.Reach(PartPublished)
		}
	}
	if len(s.fresh) > 0 {
		s.Reach(Published)
	}
	err := s.closeSources()
	clear(s.fresh)
	return err
}

// tell logs the one line of a map; a loss is a warning.
func (s *Set) tell(name string) {
	f := s.fresh[name]
	switch {
	case !f.made:
		s.log.Info("map of an interrupted start published", "map", name)
	case f.why == "":
		// CONFIG as a marker
	case !f.replaces && !f.rows:
		s.log.Debug("map made", "map", name)
	case f.rows && f.carried.Lost() == 0:
		s.log.Info("map rebuilt, all rows kept", "map", name, "had", f.why, "rows", f.carried.Found)
	case f.rows:
		s.log.Warn("map rebuilt, rows lost", "map", name, "had", f.why, "rows", f.carried.Found, "lost", f.carried.Lost())
	default:
		s.log.Warn("map rebuilt empty", "map", name, "had", f.why)
	}
}

// discard unpins what a killed start left without meaning: half-pinned maps, and all that wait if the last of them is
// missing.
func discard(dir *pinfs.Dir, waiting bool) error {
	names, err := dir.Maps()
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasSuffix(name, partSuffix) || strings.HasSuffix(name, asideSuffix) && !waiting {
			if err := dir.Remove(dir.MapPath(name)); err != nil {
				return err
			}
		}
	}
	return nil
}
