// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/src/datapath/bpfobj"
	"github.com/beep-lb/beep/src/datapath/maps"
	"github.com/beep-lb/beep/src/datapath/migrate"
	"github.com/beep-lb/beep/src/datapath/pinfs"
	"github.com/beep-lb/beep/src/netdev"
)

// Handover brings the rows from the maps of the programs that run to those of the programs that come, as
// load.Datapath does.
type Handover interface {
	// FlowsMoved says whether the two may keep their flows in different tables.
	FlowsMoved() bool
	// Bridge makes the egress program that stands before an older one.
	Bridge(uplink netdev.Link) (*ebpf.Program, error)
	// PinAside has the new maps outlive this process.
	PinAside() error
	// CatchUp carries over what the running programs wrote.
	CatchUp(tie maps.Tie) error
	// Drain does so for the last time.
	Drain() error
	// Publish gives the new maps their names.
	Publish() error
	// Reach is told of each step.
	Reach(step migrate.Step)
}

// Attach puts the programs on these uplinks, publishes their maps, then takes the programs off every device that is
// none of the uplinks. All programs are made before the first is attached. On an error, or a kill, some uplinks may
// have the new programs and the others what they had before, and both serve; a second start mends that.
//
// Two hooks cannot be switched at once, and where flows move to other tables a node whose ingress knows one table and
// whose egress the other would answer nobody. So first each uplink's answers meet both egress programs, the new one
// in front, then each ingress program is replaced, and then the old egress programs go: at every moment the answer to
// what either ingress program let in is known to one of the two.
func (u *Uplinks) Attach(uplinks []netdev.Link, h Handover) error {
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
	if err := h.PinAside(); err != nil {
		return err
	}
	clear(u.wanted)
	clear(u.failed)
	exchange := u.replace
	if h.FlowsMoved() {
		exchange = u.move
	}
	if err := exchange(uplinks, made, h); err != nil {
		return err
	}
	waitForPrograms()
	if err := h.Drain(); err != nil {
		return err
	}
	h.Reach(migrate.Drained)
	if err := h.Publish(); err != nil {
		return err
	}
	keep := map[int]bool{}
	for _, uplink := range uplinks {
		keep[uplink.Index] = true
		u.wanted[uplink.Name] = uplink
	}
	if err := errors.Join(u.dropBridges(), u.detachOthers(keep)); err != nil {
		return err
	}
	h.Reach(migrate.CleanedUp)
	return nil
}

// replace is the exchange of programs that share their flows.
func (u *Uplinks) replace(uplinks []netdev.Link, made []*bpfobj.BeepPrograms, h Handover) error {
	for i, uplink := range uplinks {
		if err := u.putSide(uplink, pinfs.Egress, made[i].BeepEgress); err != nil {
			return err
		}
		h.Reach(migrate.EgressSwitched)
		if err := u.putSide(uplink, pinfs.Ingress, made[i].BeepIngress); err != nil {
			return err
		}
		h.Reach(migrate.IngressSwitched)
	}
	return nil
}

// move is the exchange of programs that do not.
func (u *Uplinks) move(uplinks []netdev.Link, made []*bpfobj.BeepPrograms, h Handover) error {
	if err := u.bridge(uplinks, made, h); err != nil {
		return err
	}
	for i, uplink := range uplinks {
		if err := u.putSide(uplink, pinfs.Ingress, made[i].BeepIngress); err != nil {
			return err
		}
		h.Reach(migrate.IngressSwitched)
	}
	waitForPrograms()
	if err := h.CatchUp(maps.NewWins); err != nil {
		return err
	}
	h.Reach(migrate.Settled)
	for i, uplink := range uplinks {
		if err := u.putSide(uplink, pinfs.Egress, made[i].BeepEgress); err != nil {
			return err
		}
		h.Reach(migrate.EgressSwitched)
	}
	return nil
}

// bridge has every uplink's answers meet the new egress program and, where that knows nothing of them, the old.
func (u *Uplinks) bridge(uplinks []netdev.Link, made []*bpfobj.BeepPrograms, h Handover) error {
	var bridges []*ebpf.Program
	defer func() {
		for _, program := range bridges {
			program.Close()
		}
	}()
	for _, uplink := range uplinks {
		program, err := h.Bridge(uplink)
		if err != nil {
			return err
		}
		bridges = append(bridges, program)
	}
	// As late as can be: what comes after is carried over behind the switch, and until then unknown to it.
	if err := h.CatchUp(maps.OldWins); err != nil {
		return err
	}
	h.Reach(migrate.CaughtUp)
	for i, uplink := range uplinks {
		there, err := u.putBridge(uplink, bridges[i])
		if err == nil && !there {
			err = u.putSide(uplink, pinfs.Egress, made[i].BeepEgress)
		}
		if err != nil {
			return fmt.Errorf("attach to interface %s, before the old egress program: %w", uplink, err)
		}
		h.Reach(migrate.Bridged)
	}
	return nil
}

// putBridge puts a program before the one of the pinned egress link, and returns false if that is not attached.
func (u *Uplinks) putBridge(uplink netdev.Link, program *ebpf.Program) (bool, error) {
	pin := pinfs.Link{Ifindex: uplink.Index, Direction: pinfs.Egress}
	old, err := link.LoadPinnedLink(u.dir.LinkPath(pin), nil)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("open pinned link %s: %w: remove the pin if it is not beep's", u.dir.LinkPath(pin), err)
	}
	defer old.Close()
	on, err := look(old)
	if err != nil || on.ifindex != pin.Ifindex || on.hook != hooks[pin.Direction] {
		return false, err
	}
	path := u.dir.BridgePath(uplink.Index)
	if updated, err := update(path, pin, program); err != nil || updated {
		return true, err
	}
	return true, makeLink(u.dir, path, link.TCXOptions{
		Interface: uplink.Index, Program: program, Attach: hooks[pinfs.Egress], Anchor: link.BeforeLink(old),
	})
}

// dropBridges takes down all bridges, also those of a start that was killed and of devices that are uplinks no more.
func (u *Uplinks) dropBridges() error {
	bridges, err := u.dir.Bridges()
	for _, ifindex := range bridges {
		if _, err := u.drop(u.dir.BridgePath(ifindex)); err != nil {
			return fmt.Errorf("detach the bridge of ifindex %d: %w", ifindex, err)
		}
	}
	return err
}

// waitForPrograms returns when no CPU runs a program that was replaced before the call: the kernel waits for an RCU
// grace period (membarrier(2), MEMBARRIER_CMD_GLOBAL), in which tc programs run. It refuses on CPUs without a tick,
// where a program has ended long before this pause is over.
func waitForPrograms() {
	const global = 1
	if _, _, err := unix.Syscall(unix.SYS_MEMBARRIER, global, 0, 0); err != 0 {
		time.Sleep(50 * time.Millisecond)
	}
}
