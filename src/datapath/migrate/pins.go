// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/cilium/ebpf"

	"github.com/beep-lb/beep/src/datapath/bpfobj"
	rows "github.com/beep-lb/beep/src/datapath/maps"
	"github.com/beep-lb/beep/src/datapath/pinfs"
)

// migrated are the maps whose rows are other ones than in an older layout that this build can read; all other maps
// of that layout have the rows that they have now.
var migrated = map[uint32][]string{
	// FRONT_META had no affinity_timeout: maps.CarryFronts adds it. CONFIG names the layout.
	1: {bpfobj.BeepMapFRONT_META, bpfobj.BeepMapCONFIG},
	// FLOW_TABLE had the answered flows of UDP too: maps.CarryFlows moves them to FLOW_DATAGRAMS. Its rows are the same.
	2: {bpfobj.BeepMapCONFIG},
}

// olderSizes are the bytes of a value in an older layout, where that differs.
var olderSizes = map[uint32]map[string]uint32{
	1: {bpfobj.BeepMapFRONT_META: 20},
}

// pins are the maps that are pinned.
type pins struct {
	// latest is the state to go on from.
	latest map[string]source
	// older are maps that wait to be replaced by the latest, and that programs may still write to.
	older       map[string]source
	interrupted bool
}

// readPins opens all pinned maps of the object, and unpins what means nothing.
func readPins(dir *pinfs.Dir, spec *ebpf.CollectionSpec) (*pins, error) {
	p := &pins{latest: map[string]source{}, older: map[string]source{}}
	names, err := dir.Maps()
	if err != nil {
		return nil, err
	}
	p.interrupted = slices.Contains(names, bpfobj.BeepMapCONFIG+asideSuffix)
	if err := discard(dir, p.interrupted); err != nil {
		return nil, err
	}
	for _, name := range Shared(spec) {
		if err := p.open(dir, name); err != nil {
			p.close()
			return nil, err
		}
	}
	for _, of := range []map[string]source{p.latest, p.older} {
		abi, err := layoutOf(of)
		if err != nil {
			p.close()
			return nil, err
		}
		for name, m := range of {
			m.abi = abi
			of[name] = m
		}
	}
	return p, nil
}

// Shared are the names of the maps that all instances of the programs share: all but their constants and variables,
// and what each remembers of the FIB for a tick.
func Shared(spec *ebpf.CollectionSpec) []string {
	var names []string
	for name := range spec.Maps {
		if !strings.HasPrefix(name, ".") && name != bpfobj.BeepMapFIB_ANSWERS {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// open opens what is pinned under a name, and what waits for it.
func (p *pins) open(dir *pinfs.Dir, name string) error {
	pinned, err := openPin(dir.MapPath(name))
	if err != nil {
		return err
	}
	var waiting *ebpf.Map
	if p.interrupted {
		if waiting, err = openPin(dir.MapPath(name + asideSuffix)); err != nil {
			return errors.Join(err, closeIf(pinned))
		}
	}
	switch {
	case waiting != nil:
		p.latest[name] = source{Map: waiting, waits: true}
		if pinned != nil {
			p.older[name] = source{Map: pinned}
		}
	case pinned != nil:
		p.latest[name] = source{Map: pinned}
	}
	return nil
}

// openPin opens a pinned map; nil if there is none.
func openPin(path string) (*ebpf.Map, error) {
	m, err := ebpf.LoadPinnedMap(path, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open pinned map %s: %w: remove the pin if it is not beep's", path, err)
	}
	return m, nil
}

func closeIf(m *ebpf.Map) error {
	if m == nil {
		return nil
	}
	return m.Close()
}

// layoutOf is CONFIG.abi of a set of maps, and 0 if there is none to be read: then none of them can be trusted.
func layoutOf(set map[string]source) (uint32, error) {
	m, pinned := set[bpfobj.BeepMapCONFIG]
	var zero uint32
	var row bpfobj.BeepConfig
	if !pinned || m.Type() != ebpf.Array || int(m.ValueSize()) != binary.Size(row) {
		return 0, nil
	}
	if err := m.Lookup(&zero, &row); err != nil {
		return 0, fmt.Errorf("read pinned map %s: %w", bpfobj.BeepMapCONFIG, err)
	}
	return row.Abi, nil
}

// has says whether any map is pinned under the name.
func (p *pins) has(name string) bool { return p.latest[name].Map != nil }

// aside says whether the latest map of that name is not published yet.
func (p *pins) aside(name string) bool {
	return p.latest[name].waits
}

// misfit says why the latest map cannot be used as it is; empty if it can.
func (p *pins) misfit(want *ebpf.MapSpec) string {
	pinned := p.latest[want.Name]
	if pinned.Map == nil {
		return "not pinned yet"
	}
	if why := otherLayout(pinned, want); why != "" {
		return why
	}
	switch {
	case pinned.MaxEntries() != want.MaxEntries:
		return fmt.Sprintf("room for %d rows, now %d", pinned.MaxEntries(), want.MaxEntries)
	case pinned.Flags() != want.Flags:
		return fmt.Sprintf("flags %#x, now %#x", pinned.Flags(), want.Flags)
	}
	return ""
}

// otherLayout says how the rows of a pinned map differ from the object's; empty if they do not. Sizes alone say
// nothing of what the bytes mean.
func otherLayout(pinned source, want *ebpf.MapSpec) string {
	changed, known := migrated[pinned.abi]
	switch {
	case pinned.abi != rows.ABI && !known, slices.Contains(changed, want.Name):
		return fmt.Sprintf("layout %d, this build has %d", pinned.abi, rows.ABI)
	case pinned.Type() != want.Type:
		return fmt.Sprintf("type %s, this build has %s", pinned.Type(), want.Type)
	case pinned.KeySize() != want.KeySize:
		return fmt.Sprintf("keys of %d bytes, this build has %d", pinned.KeySize(), want.KeySize)
	case pinned.ValueSize() != want.ValueSize:
		return fmt.Sprintf("values of %d bytes, this build has %d", pinned.ValueSize(), want.ValueSize)
	}
	return ""
}

// readable are the maps of that name whose rows this build can carry over, newest first. The others are closed.
func (p *pins) readable(want *ebpf.MapSpec) []source {
	var sources []source
	for _, from := range []source{p.latest[want.Name], p.older[want.Name]} {
		if from.Map == nil {
			continue
		}
		if !canRead(from, want) {
			from.Close()
			continue
		}
		sources = append(sources, from)
	}
	return sources
}

func canRead(from source, want *ebpf.MapSpec) bool {
	_, known := migrated[from.abi]
	value := want.ValueSize
	if older, differs := olderSizes[from.abi][want.Name]; differs {
		value = older
	}
	return (known || from.abi == rows.ABI) && from.Type() == want.Type && from.KeySize() == want.KeySize &&
		from.ValueSize() == value
}

// close closes what readable has not handed out.
func (p *pins) close() {
	for _, of := range []map[string]source{p.latest, p.older} {
		for _, m := range of {
			m.Close()
		}
	}
}
