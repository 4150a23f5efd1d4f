// SPDX-License-Identifier: Apache-2.0

package load

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	gomaps "maps"
	"slices"
	"strings"

	"github.com/cilium/ebpf"

	"github.com/beep-lb/beep/src/datapath/bpfobj"
	"github.com/beep-lb/beep/src/datapath/maps"
	"github.com/beep-lb/beep/src/datapath/pinfs"
)

// stagedSuffix marks the pin of a map that is about to be published; one that a killed loader left means nothing.
const stagedSuffix = "_next"

// staged are the maps of the next datapath: some are pinned, the others wait to be.
type staged struct {
	maps map[string]*ebpf.Map
	// fresh are the maps that are not published yet, and why they were made.
	fresh map[string]fresh
}

// fresh is why a map was made, and what it was given.
type fresh struct {
	replaces bool // there was a pinned one
	why      string
	carried  maps.Carried
	rows     bool // rows were carried over
}

// stage opens or makes every map of the object, and changes no pin.
func stage(dir *pinfs.Dir, spec *ebpf.CollectionSpec) (*staged, error) {
	set := &staged{maps: map[string]*ebpf.Map{}, fresh: map[string]fresh{}}
	layout, err := pinnedLayout(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range sharedMaps(spec) {
		if err := set.add(dir, spec.Maps[name], layout); err != nil {
			set.close()
			return nil, err
		}
	}
	return set, nil
}

// sharedMaps are the names of the maps that all instances share: all but the constants.
func sharedMaps(spec *ebpf.CollectionSpec) []string {
	var names []string
	for name := range spec.Maps {
		if !strings.HasPrefix(name, ".") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// pinnedLayout is CONFIG.abi of the pinned maps, and 0 if there is none to be read: then none of them can be
// trusted. CONFIG is published last, so that a loader that was killed on the way leaves the old number.
func pinnedLayout(dir *pinfs.Dir) (uint32, error) {
	m, err := ebpf.LoadPinnedMap(dir.MapPath(bpfobj.BeepMapCONFIG), nil)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("open pinned map %s: %w", dir.MapPath(bpfobj.BeepMapCONFIG), err)
	}
	defer m.Close()
	var zero uint32
	var row bpfobj.BeepConfig
	if m.Type() != ebpf.Array || int(m.ValueSize()) != binary.Size(row) {
		return 0, nil
	}
	if err := m.Lookup(&zero, &row); err != nil {
		return 0, fmt.Errorf("read pinned map %s: %w", dir.MapPath(bpfobj.BeepMapCONFIG), err)
	}
	return row.Abi, nil
}

// add takes one pinned map as it is, or makes its successor.
func (s *staged) add(dir *pinfs.Dir, want *ebpf.MapSpec, layout uint32) error {
	pinned, err := ebpf.LoadPinnedMap(dir.MapPath(want.Name), nil)
	if errors.Is(err, fs.ErrNotExist) {
		return s.make(want, fresh{why: "not pinned yet"})
	}
	if err != nil {
		return fmt.Errorf("open pinned map %s: %w: remove the pin if it is not beep's", dir.MapPath(want.Name), err)
	}
	if why := otherLayout(pinned, want, layout); why != "" {
		pinned.Close()
		return s.make(want, fresh{replaces: true, why: why})
	}
	why := otherSize(pinned, want)
	if why == "" {
		s.maps[want.Name] = pinned
		return nil
	}
	defer pinned.Close()
	if err := s.make(want, fresh{}); err != nil {
		return err
	}
	carried, err := maps.Carry(want.Name, pinned, s.maps[want.Name])
	s.fresh[want.Name] = fresh{replaces: true, why: why, carried: carried, rows: true}
	return err
}

// make makes an empty map.
func (s *staged) make(want *ebpf.MapSpec, f fresh) error {
	m, err := ebpf.NewMap(want)
	if err != nil {
		return fmt.Errorf("make map %s with %d rows: %w", want.Name, want.MaxEntries, err)
	}
	s.maps[want.Name], s.fresh[want.Name] = m, f
	return nil
}

// otherLayout says how the rows of a pinned map differ from the object's; empty if they do not.
func otherLayout(pinned *ebpf.Map, want *ebpf.MapSpec, layout uint32) string {
	switch {
	case layout != maps.ABI:
		return fmt.Sprintf("layout %d, this build has %d", layout, maps.ABI)
	case pinned.Type() != want.Type:
		return fmt.Sprintf("type %s, this build has %s", pinned.Type(), want.Type)
	case pinned.KeySize() != want.KeySize:
		return fmt.Sprintf("keys of %d bytes, this build has %d", pinned.KeySize(), want.KeySize)
	case pinned.ValueSize() != want.ValueSize:
		return fmt.Sprintf("values of %d bytes, this build has %d", pinned.ValueSize(), want.ValueSize)
	}
	return ""
}

// otherSize says how a pinned map of the same layout differs; empty if it does not.
func otherSize(pinned *ebpf.Map, want *ebpf.MapSpec) string {
	switch {
	case pinned.MaxEntries() != want.MaxEntries:
		return fmt.Sprintf("room for %d rows, now %d", pinned.MaxEntries(), want.MaxEntries)
	case pinned.Flags() != want.Flags:
		return fmt.Sprintf("flags %#x, now %#x", pinned.Flags(), want.Flags)
	}
	return ""
}

// empty says whether the map was made and given no rows.
func (s *staged) empty(name string) bool {
	f, made := s.fresh[name]
	return made && !f.rows
}

func (s *staged) close() {
	for _, m := range s.maps {
		m.Close()
	}
}

// publish pins every fresh map aside and then renames each over its predecessor, CONFIG last.
func (s *staged) publish(dir *pinfs.Dir, log *slog.Logger) error {
	if err := removeStale(dir); err != nil {
		return err
	}
	names := slices.SortedFunc(gomaps.Keys(s.fresh), func(a, b string) int {
		return cmp.Or(cmp.Compare(last(a), last(b)), cmp.Compare(a, b))
	})
	for _, name := range names {
		if err := s.maps[name].Pin(dir.MapPath(name + stagedSuffix)); err != nil {
			return errors.Join(fmt.Errorf("pin map %s: %w", name, err), removeStale(dir))
		}
	}
	for _, name := range names {
		if err := dir.Publish(dir.MapPath(name+stagedSuffix), dir.MapPath(name)); err != nil {
			return err
		}
		s.fresh[name].tell(log, name)
	}
	return nil
}

// tell logs the one line of a map; a loss is a warning.
func (f fresh) tell(log *slog.Logger, name string) {
	switch {
	case !f.replaces:
		log.Debug("map made", "map", name)
	case f.rows && f.carried.Lost() == 0:
		log.Info("map rebuilt, all rows kept", "map", name, "had", f.why, "rows", f.carried.Found)
	case f.rows:
		log.Warn("map rebuilt, rows lost", "map", name, "had", f.why, "rows", f.carried.Found, "lost", f.carried.Lost())
	default:
		log.Warn("map rebuilt empty", "map", name, "had", f.why)
	}
}

// last sorts CONFIG behind all others.
func last(name string) int {
	if name == bpfobj.BeepMapCONFIG {
		return 1
	}
	return 0
}

// removeStale unpins what a killed loader had pinned aside.
func removeStale(dir *pinfs.Dir) error {
	names, err := dir.Maps()
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasSuffix(name, stagedSuffix) {
			if err := dir.Remove(dir.MapPath(name)); err != nil {
				return err
			}
		}
	}
	return nil
}
