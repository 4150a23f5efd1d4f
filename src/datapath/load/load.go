// SPDX-License-Identifier: Apache-2.0

// Package load brings the compiled datapath into the kernel: maps that are pinned already or made anew, and for
// every uplink an instance of the programs with its own constants. Invariant: no pin changes before every map is
// filled and every program has passed the verifier; package attach has it pinned and published around its switch.
package load

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/cilium/ebpf"

	"github.com/beep-lb/beep/src/config"
	"github.com/beep-lb/beep/src/datapath/bpfobj"
	"github.com/beep-lb/beep/src/datapath/maps"
	"github.com/beep-lb/beep/src/datapath/migrate"
	"github.com/beep-lb/beep/src/datapath/pinfs"
	"github.com/beep-lb/beep/src/netdev"
)

// Settings are what the flags say of maps and programs.
type Settings struct {
	Sizes maps.Sizes
	// GenevePort is the tunnel's UDP port, host order.
	GenevePort uint16
	// GeneveVNI is the tunnel's network identifier, 24 bits.
	GeneveVNI uint32
	// Reject answers a new flow to a front without endpoints with an ICMP error.
	Reject bool
	// CountPackets counts every packet that is forwarded; it costs a write for each.
	CountPackets bool
	// Handover says that an uplink may give a packet to its receiver as the kernel has it, see netdev.HandsOver.
	Handover bool
	// Faults is what a rig wants to go wrong; nil is nothing.
	Faults *migrate.Faults
}

// SettingsOf takes the settings from flags that passed Validate.
func SettingsOf(flags *config.Datapath) Settings {
	return Settings{
		Sizes: maps.SizesOf(flags), GenevePort: uint16(flags.GenevePort), GeneveVNI: uint32(flags.GeneveVNI),
		Reject: flags.Reject(), CountPackets: flags.CountPackets,
	}
}

// Datapath is the loaded maps, and what makes programs for them.
type Datapath struct {
	// Maps are the shared maps; Close closes them.
	Maps *maps.Kernel
	// Set brings the maps from the old to the new ones.
	*migrate.Set

	spec      *ebpf.CollectionSpec
	constants constants
	log       *slog.Logger
	ready     map[netdev.Link]*bpfobj.BeepPrograms
}

// constants are the .rodata that all uplinks have in common.
type constants struct {
	genevePort uint16
	geneveVNI  uint32
	csumIPv6   uint8
	reject     uint8
	count      uint8
	handover   uint8
	bridge     uint8
}

// constants are those that the settings ask for, on a kernel that knows the flag or not.
func (s Settings) constants(csumIPv6 uint8) constants {
	c := constants{genevePort: s.GenevePort, geneveVNI: s.GeneveVNI, csumIPv6: csumIPv6}
	if s.Reject {
		c.reject = 1
	}
	if s.CountPackets {
		c.count = 1
	}
	if s.Handover {
		c.handover = 1
	}
	return c
}

// Load takes the maps that are pinned below dir, or makes them, and loads the programs for each uplink. Maps that
// differ in size or flags are made anew with the old rows; of another layout, migrated or empty. Every pin is as it
// was: attach.Uplinks.Switch comes next, and publishes. The caller holds the directory's lock.
func Load(dir *pinfs.Dir, settings Settings, uplinks []netdev.Link, log *slog.Logger) (*Datapath, error) {
	spec, err := bpfobj.LoadBeep()
	if err != nil {
		return nil, fmt.Errorf("read the embedded object: %w", err)
	}
	for name, entries := range settings.Sizes.ByMap() {
		spec.Maps[name].MaxEntries = entries
	}
	csumIPv6, err := KnowsCsumIPv6()
	if err != nil {
		return nil, err
	}
	set, err := migrate.Stage(dir, spec, settings.Faults, log)
	if err != nil {
		return nil, fmt.Errorf("%w (what was loaded before stays in force)", err)
	}
	d := &Datapath{
		Set: set, spec: spec, log: log, ready: map[netdev.Link]*bpfobj.BeepPrograms{},
		constants: settings.constants(csumIPv6),
	}
	d.Maps = maps.ByName(set.Maps())
	if err := d.prepare(uplinks); err != nil {
		d.Close()
		return nil, err
	}
	d.Reach(migrate.ProgramsLoaded)
	return d, nil
}

// prepare does all that can fail before anything is pinned.
func (d *Datapath) prepare(uplinks []netdev.Link) error {
	if d.Empty(bpfobj.BeepMapCONFIG) {
		if err := d.Maps.SetConfig(maps.Config{ABI: maps.ABI}); err != nil {
			return err
		}
	}
	for _, link := range uplinks {
		programs, err := d.load(link)
		if err != nil {
			return err
		}
		d.ready[link] = programs
	}
	return nil
}

// Instance is the programs for one uplink, which the caller closes once they are attached: those that Load has
// made, or else new ones with the constants of the device as it is now.
func (d *Datapath) Instance(link netdev.Link) (*bpfobj.BeepPrograms, error) {
	if programs, ok := d.ready[link]; ok {
		delete(d.ready, link)
		return programs, nil
	}
	return d.load(link)
}

// Close closes maps and programs; what is attached or pinned lives on.
func (d *Datapath) Close() error {
	errs := []error{d.Set.Close()}
	for _, programs := range d.ready {
		errs = append(errs, programs.Close())
	}
	return errors.Join(errs...)
}

// load has the kernel verify the programs for one uplink.
func (d *Datapath) load(link netdev.Link) (*bpfobj.BeepPrograms, error) {
	var programs bpfobj.BeepPrograms
	return &programs, d.loadInto(&programs, link, d.constants)
}

// Bridge is the egress program for one uplink as it stands before the program of older maps, which gets to see what
// this one leaves alone. The caller closes it once it is attached.
func (d *Datapath) Bridge(link netdev.Link) (*ebpf.Program, error) {
	constants := d.constants
	constants.bridge = 1
	var one struct {
		Egress *ebpf.Program `ebpf:"beep_egress"`
	}
	return one.Egress, d.loadInto(&one, link, constants)
}

// loadInto loads what to, a pointer to a struct of programs, asks for.
func (d *Datapath) loadInto(to any, link netdev.Link, constants constants) error {
	l2Len, err := netdev.L2HeaderLen(link)
	if err != nil {
		return err
	}
	spec := d.spec.Copy()
	if err := constants.set(spec, l2Len); err != nil {
		return err
	}
	err = spec.LoadAndAssign(to, &ebpf.CollectionOptions{MapReplacements: d.Set.Maps()})
	if err != nil {
		var rejected *ebpf.VerifierError
		if errors.As(err, &rejected) {
			d.log.Error("the verifier refuses a program", "uplink", link.Name, "log", fmt.Sprintf("%+v", rejected))
		}
		return fmt.Errorf("load the programs for interface %s: %w", link.Name, err)
	}
	return nil
}

// set writes the constants of one instance.
func (c constants) set(spec *ebpf.CollectionSpec, l2Len uint32) error {
	err := errors.Join(
		setVariable(spec, bpfobj.BeepVarCfgL2Len, l2Len),
		setVariable(spec, bpfobj.BeepVarCfgGenevePort, c.genevePort),
		setVariable(spec, bpfobj.BeepVarCfgGeneveVni, c.geneveVNI),
		setVariable(spec, bpfobj.BeepVarCfgCsumIpv6, c.csumIPv6),
		setVariable(spec, bpfobj.BeepVarCfgBridge, c.bridge),
		setVariable(spec, bpfobj.BeepVarCfgCountPackets, c.count),
		setVariable(spec, bpfobj.BeepVarCfgReject, c.reject),
		setVariable(spec, bpfobj.BeepVarCfgHandover, c.handover),
	)
	if err != nil {
		return fmt.Errorf("constants of the embedded object: %w", err)
	}
	return nil
}

func setVariable[T uint8 | uint16 | uint32](spec *ebpf.CollectionSpec, name string, value T) error {
	variable := spec.Variables[name]
	if variable == nil {
		return fmt.Errorf("%s: no such variable: run make generate", name)
	}
	return variable.Set(value)
}
