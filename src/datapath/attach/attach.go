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
	"os"
	"time"

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

// put attaches or updates both directions of one uplink. Egress comes first: an answer that no egress program
// sees would leave with the pod's address.
func (u *Uplinks) put(uplink netdev.Link, programs *bpfobj.BeepPrograms) error {
	if err := u.putSide(uplink, pinfs.Egress, programs.BeepEgress); err != nil {
		return err
	}
	return u.putSide(uplink, pinfs.Ingress, programs.BeepIngress)
}

// putSide attaches or updates one direction.
func (u *Uplinks) putSide(uplink netdev.Link, direction pinfs.Direction, program *ebpf.Program) error {
	pin := pinfs.Link{Ifindex: uplink.Index, Direction: direction}
	fresh, err := upsert(u.dir, pin, program)
	if err != nil {
		return fmt.Errorf("attach to interface %s, %s: %w", uplink, direction, err)
	}
	if fresh {
		u.log.Info("attached", "uplink", uplink.Name, "ifindex", uplink.Index, "direction", string(direction))
	} else {
		u.log.Debug("updated", "uplink", uplink.Name, "ifindex", uplink.Index, "direction", string(direction))
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
	updated, err := update(dir.LinkPath(pin), pin, program)
	if err != nil || updated {
		return false, err
	}
	return true, makeLink(dir, dir.LinkPath(pin), link.TCXOptions{
		Interface: pin.Ifindex, Program: program, Attach: hooks[pin.Direction], Anchor: link.Tail(),
	})
}

// makeLink attaches, and pins the link in place of whatever is pinned there.
func makeLink(dir *pinfs.Dir, path string, options link.TCXOptions) error {
	if err := dir.Remove(path); err != nil {
		return err
	}
	made, err := link.AttachTCX(options)
	if err != nil {
		return err
	}
	// Until it is pinned the link ends with this process, so a kill in between leaves nothing.
	if err := made.Pin(path); err != nil {
		return errors.Join(fmt.Errorf("pin the link: %w", err), made.Close())
	}
	return made.Close()
}

// update swaps the program of a pinned link, atomically and in its place among others. It returns false if there
// is no link, or one that is severed from its device (ENOLINK) or is not what its name says.
func update(path string, pin pinfs.Link, program *ebpf.Program) (bool, error) {
	pinned, err := link.LoadPinnedLink(path, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("open pinned link %s: %w: remove the pin if it is not beep's", path, err)
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
	// What Attached tells: a pin that is new has its time already.
	now := time.Now()
	if err := os.Chtimes(path, now, now); err != nil {
		return false, fmt.Errorf("note the time of the update: %w", err)
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
		detached, err := u.drop(u.dir.LinkPath(pinfs.Link{Ifindex: ifindex, Direction: direction}))
		if err != nil {
			return fmt.Errorf("detach from ifindex %d, %s: %w", ifindex, direction, err)
		}
		if detached {
			u.log.Info("detached", "ifindex", ifindex, "direction", string(direction))
		}
	}
	return nil
}

// drop detaches and unpins one link, if there is one, and says whether it was attached.
func (u *Uplinks) drop(path string) (bool, error) {
	pinned, err := link.LoadPinnedLink(path, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("open pinned link %s: %w", path, err)
	}
	on, err := look(pinned)
	attached := err == nil && on.ifindex != 0
	if attached {
		// Unpinning alone would leave it there as long as somebody reads the link.
		err = pinned.Detach()
	}
	return attached, errors.Join(err, pinned.Close(), u.dir.Remove(path))
}
