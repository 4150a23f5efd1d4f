// SPDX-License-Identifier: Apache-2.0

// Package attach keeps the programs on the uplinks: one pinned TCX link for each uplink and direction, updated in
// place and made again when a device comes back. Invariant: an uplink that had programs keeps them until the new
// ones are in their place, and whatever this package attached is pinned, so that packets are forwarded with no
// process alive.
//
// Other programs on the device keep their place. Ours go behind them, in both directions: what was there first (a
// firewall, a monitor) goes on seeing the packets that it saw. A program that is attached later behind ours sees
// what ours let through, which is everything that is none of beep's.
package attach

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/src/datapath/bpfobj"
	"github.com/beep-lb/beep/src/datapath/pinfs"
	"github.com/beep-lb/beep/src/netdev"
)

// Instances makes the programs for one uplink, as load.Datapath.Instance does. They are closed once attached.
type Instances func(uplink netdev.Link) (*bpfobj.BeepPrograms, error)

// Uplinks are the devices that the programs are kept on. The process must hold the pin directory's lock. It is
// not safe for concurrent use; every call must be made in the devices' network namespace.
type Uplinks struct {
	dir       *pinfs.Dir
	instances Instances
	log       *slog.Logger
	// wanted are the uplinks by name, with the device of that name; an Index of 0 is none at present.
	wanted map[string]netdev.Link
	// failed are the errors of uplinks whose device is there and has no programs, told once.
	failed map[string]string
}

// New attaches nothing yet.
func New(dir *pinfs.Dir, instances Instances, log *slog.Logger) *Uplinks {
	return &Uplinks{dir: dir, instances: instances, log: log, wanted: map[string]netdev.Link{}, failed: map[string]string{}}
}

// Attach puts the programs on these uplinks, then takes them off every device that is none of them. All programs
// are made before the first is attached. On an error some uplinks may have the new programs and the others what
// they had before; a second call mends that.
func (u *Uplinks) Attach(uplinks []netdev.Link) error {
	made := make([]*bpfobj.BeepPrograms, 0, len(uplinks))
	defer func() {
		for _, programs := range made {
			programs.Close()
		}
	}()
	for _, uplink := range uplinks {
		programs, err := u.instances(uplink)
		if err != nil {
			return err
		}
		made = append(made, programs)
	}
	keep := map[int]bool{}
	clear(u.wanted)
	clear(u.failed)
	for i, uplink := range uplinks {
		if err := u.put(uplink, made[i]); err != nil {
			return err
		}
		keep[uplink.Index] = true
		u.wanted[uplink.Name] = uplink
	}
	return u.detachOthers(keep)
}

// put attaches or updates both directions of one uplink. Egress comes first: an answer that no egress program
// sees would leave with the pod's address.
func (u *Uplinks) put(uplink netdev.Link, programs *bpfobj.BeepPrograms) error {
	for _, side := range []struct {
		direction pinfs.Direction
		program   *ebpf.Program
	}{{pinfs.Egress, programs.BeepEgress}, {pinfs.Ingress, programs.BeepIngress}} {
		pin := pinfs.Link{Ifindex: uplink.Index, Direction: side.direction}
		fresh, err := upsert(u.dir, pin, side.program)
		if err != nil {
			return fmt.Errorf("attach to interface %s, %s: %w", uplink, side.direction, err)
		}
		if fresh {
			u.log.Info("attached", "uplink", uplink.Name, "ifindex", uplink.Index, "direction", string(side.direction))
		} else {
			u.log.Debug("updated", "uplink", uplink.Name, "ifindex", uplink.Index, "direction", string(side.direction))
		}
	}
	return nil
}

// hooks are the attach points of the directions.
var hooks = map[pinfs.Direction]ebpf.AttachType{
	pinfs.Ingress: ebpf.AttachTCXIngress,
	pinfs.Egress:  ebpf.AttachTCXEgress,
}

// upsert gives the pinned link a new program, or makes the link where there is none that works. It says whether
// it made one.
func upsert(dir *pinfs.Dir, pin pinfs.Link, program *ebpf.Program) (bool, error) {
	updated, err := update(dir, pin, program)
	if err != nil || updated {
		return false, err
	}
	if err := dir.Remove(dir.LinkPath(pin)); err != nil {
		return false, err
	}
	made, err := link.AttachTCX(link.TCXOptions{
		Interface: pin.Ifindex, Program: program, Attach: hooks[pin.Direction], Anchor: link.Tail(),
	})
	if err != nil {
		return false, err
	}
	// Until it is pinned the link ends with this process, so a kill in between leaves nothing.
	if err := made.Pin(dir.LinkPath(pin)); err != nil {
		return false, errors.Join(fmt.Errorf("pin the link: %w", err), made.Close())
	}
	return true, made.Close()
}

// update swaps the program of a pinned link, atomically and in its place among others. It returns false if there
// is no link, or one that is severed from its device (ENOLINK) or is not what its name says.
func update(dir *pinfs.Dir, pin pinfs.Link, program *ebpf.Program) (bool, error) {
	pinned, err := link.LoadPinnedLink(dir.LinkPath(pin), nil)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("open pinned link %s: %w: remove the pin if it is not beep's", dir.LinkPath(pin), err)
	}
	defer pinned.Close()
	on, err := look(pinned)
	if err != nil {
		return false, err
	}
	if on.ifindex != pin.Ifindex || on.hook != hooks[pin.Direction] {
		return false, nil
	}
	if err := pinned.Update(program); err != nil {
		if errors.Is(err, unix.ENOLINK) {
			return false, nil
		}
		return false, fmt.Errorf("update the link: %w", err)
	}
	return true, nil
}

// place is where a link is attached and what it runs.
type place struct {
	ifindex int // 0: the device is gone
	hook    ebpf.AttachType
	program ebpf.ProgramID
}

// look reads what the kernel says of a link; one that is not of TCX has no hook of ours.
func look(l link.Link) (place, error) {
	info, err := l.Info()
	if err != nil {
		return place{}, fmt.Errorf("read the link: %w", err)
	}
	tcx := info.TCX()
	if tcx == nil {
		return place{}, nil
	}
	return place{ifindex: int(tcx.Ifindex), hook: ebpf.AttachType(tcx.AttachType), program: info.Program}, nil
}

// detachOthers takes the programs off every device whose ifindex is not kept.
func (u *Uplinks) detachOthers(keep map[int]bool) error {
	pins, err := u.dir.Links()
	if err != nil {
		return err
	}
	gone := map[int]bool{}
	for _, pin := range pins {
		if !keep[pin.Ifindex] {
			gone[pin.Ifindex] = true
		}
	}
	for ifindex := range gone {
		if err := u.detach(ifindex); err != nil {
			return err
		}
	}
	return nil
}

// detach takes both directions off one device and unpins them, ingress first: see put.
func (u *Uplinks) detach(ifindex int) error {
	for _, direction := range []pinfs.Direction{pinfs.Ingress, pinfs.Egress} {
		pin := pinfs.Link{Ifindex: ifindex, Direction: direction}
		pinned, err := link.LoadPinnedLink(u.dir.LinkPath(pin), nil)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("open pinned link %s: %w", u.dir.LinkPath(pin), err)
		}
		on, err := look(pinned)
		if err == nil && on.ifindex != 0 {
			// Unpinning alone would leave it there as long as somebody reads the link.
			err = pinned.Detach()
			u.log.Info("detached", "ifindex", ifindex, "direction", string(direction))
		}
		if err := errors.Join(err, pinned.Close(), u.dir.Remove(u.dir.LinkPath(pin))); err != nil {
			return fmt.Errorf("detach from ifindex %d, %s: %w", ifindex, direction, err)
		}
	}
	return nil
}
