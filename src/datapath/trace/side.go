// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/src/datapath/bpfobj"
	"github.com/beep-lb/beep/src/datapath/pinfs"
	"github.com/beep-lb/beep/src/netdev"
)

// side is what stands before and behind one program of the datapath.
type side struct {
	of       link.ID // the datapath's link
	programs *ebpf.Collection
	links    []link.Link
}

// follow stands beside links that have come, and leaves those that have gone. A link that gets another program is the
// same.
func (t *Trace) follow() error {
	if err := t.checkMaps(); err != nil {
		return err
	}
	pins, err := t.dir.Links()
	if err != nil {
		return err
	}
	links, err := t.devices()
	if err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	seen := map[pinfs.Link]bool{}
	for _, pin := range pins {
		device, here := index(links, pin.Ifindex)
		if !here {
			continue
		}
		err := t.beside(pin, device)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENOLINK) {
			continue // gone since it was listed; what comes in its place is found by the next look
		}
		if err != nil {
			return fmt.Errorf("trace %s of %s: %w", pin.Direction, device, explain(err))
		}
		seen[pin] = true
	}
	for pin, side := range t.sides {
		if !seen[pin] {
			delete(t.sides, pin)
			if err := side.close(); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkMaps fails with ErrMapsReplaced if the counters that are pinned are others by now.
func (t *Trace) checkMaps() error {
	for _, name := range []string{bpfobj.TraceMapDROPS, bpfobj.TraceMapTRAFFIC} {
		pinned, err := ebpf.LoadPinnedMap(t.dir.MapPath(name), nil)
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("trace: map %s is gone: %w", name, ErrMapsReplaced)
		}
		if err != nil {
			return fmt.Errorf("trace: map %s: %w", name, err)
		}
		now, err := pinned.Info()
		if err = errors.Join(err, pinned.Close()); err != nil {
			return fmt.Errorf("trace: map %s: %w", name, err)
		}
		begun, err := t.maps[name].Info()
		if err != nil {
			return fmt.Errorf("trace: map %s: %w", name, err)
		}
		one, _ := now.ID()
		other, _ := begun.ID()
		if one != other {
			return fmt.Errorf("trace: map %s: %w: start it again", name, ErrMapsReplaced)
		}
	}
	return nil
}

// beside stands beside the pinned link, unless it does already.
func (t *Trace) beside(pin pinfs.Link, device netdev.Link) error {
	pinned, err := link.LoadPinnedLink(t.dir.LinkPath(pin), nil)
	if err != nil {
		return err
	}
	defer pinned.Close()
	info, err := pinned.Info()
	if err != nil {
		return err
	}
	if old := t.sides[pin]; old != nil {
		if old.of == info.ID {
			return nil
		}
		delete(t.sides, pin)
		if err := old.close(); err != nil {
			return err
		}
	}
	if tcx := info.TCX(); tcx == nil || int(tcx.Ifindex) != pin.Ifindex {
		return unix.ENOLINK // its device is gone
	}
	made := &side{of: info.ID}
	if err := made.attach(t, pin, device, pinned); err != nil {
		return errors.Join(err, made.close())
	}
	t.sides[pin] = made
	return nil
}

// attach loads both programs for one side of a device and puts them where they belong, the one behind first: a packet
// that only the other one sees would wait for this one.
func (s *side) attach(t *Trace, pin pinfs.Link, device netdev.Link, pinned link.Link) error {
	hook, direction := ebpf.AttachTCXIngress, bpfobj.BeepDirectionDIR_INGRESS
	if pin.Direction == pinfs.Egress {
		hook, direction = ebpf.AttachTCXEgress, bpfobj.BeepDirectionDIR_EGRESS
	}
	l2Len, err := netdev.L2HeaderLen(device)
	if err != nil {
		return err
	}
	spec := t.spec.Copy()
	for _, program := range spec.Programs {
		program.AttachType = hook
	}
	if err := errors.Join(
		setVariable(spec, bpfobj.TraceVarCfgDirection, uint32(direction)),
		setVariable(spec, bpfobj.TraceVarCfgTraceL2Len, l2Len),
	); err != nil {
		return err
	}
	s.programs, err = ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: t.maps})
	if err != nil {
		return err
	}
	for _, place := range []struct {
		program string
		anchor  link.Anchor
	}{
		{bpfobj.TraceProgTraceBehind, link.AfterLink(pinned)},
		{bpfobj.TraceProgTraceBefore, link.BeforeLink(pinned)},
	} {
		made, err := link.AttachTCX(link.TCXOptions{
			Interface: device.Index, Program: s.programs.Programs[place.program], Attach: hook, Anchor: place.anchor,
		})
		if err != nil {
			return fmt.Errorf("attach %s: %w", place.program, err)
		}
		s.links = append(s.links, made)
	}
	return nil
}

func (s *side) close() error {
	var errs []error
	for _, one := range s.links {
		errs = append(errs, one.Close())
	}
	if s.programs != nil {
		s.programs.Close()
	}
	return errors.Join(errs...)
}

// detach leaves all sides.
func (t *Trace) detach() error {
	var errs []error
	for pin, side := range t.sides {
		delete(t.sides, pin)
		errs = append(errs, side.close())
	}
	return errors.Join(errs...)
}

// explain adds what to do to the refusals of the kernel.
func explain(err error) error {
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("%w: tracing takes CAP_BPF and CAP_NET_ADMIN: run it as root, or in the container of `beep run`", err)
	case errors.Is(err, link.ErrNotSupported):
		return fmt.Errorf("%w: this kernel has no TCX links: tracing takes Linux 6.6, as beep does", err)
	}
	return err
}
