// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/src/datapath/pinfs"
)

// program is one of beep's, as it is attached on a node.
type program struct {
	name    string // node=a/dev=eth0/hook=ingress
	program *ebpf.Program
}

// programs are those of both nodes of a stand, by their pins.
func (s *Stand) programs() (all []program, err error) {
	for i, node := range s.nodes() {
		dir, err := pinfs.Open(s.daemons[node].PinDir())
		if err != nil {
			return all, err
		}
		links, err := dir.Links()
		if err != nil {
			return all, err
		}
		for _, pin := range links {
			device, err := s.NS(node).Netlink().LinkByIndex(pin.Ifindex)
			if err != nil {
				return all, fmt.Errorf("device of pin %s: %w", dir.LinkPath(pin), err)
			}
			p, err := behind(dir.LinkPath(pin))
			if err != nil {
				return all, err
			}
			all = append(all, program{fmt.Sprintf("node=%c/dev=%s/hook=%s", "ab"[i], device.Attrs().Name, pin.Direction), p})
		}
	}
	return all, nil
}

// behind is the program of a pinned link.
func behind(path string) (*ebpf.Program, error) {
	pinned, err := link.LoadPinnedLink(path, nil)
	if err != nil {
		return nil, fmt.Errorf("open pinned link %s: %w", path, err)
	}
	defer pinned.Close()
	info, err := pinned.Info()
	if err != nil {
		return nil, fmt.Errorf("pinned link %s: %w", path, err)
	}
	p, err := ebpf.NewProgramFromID(info.Program)
	if err != nil {
		return nil, fmt.Errorf("program of pinned link %s: %w", path, err)
	}
	return p, nil
}

// Dissect says what the programs of a stand do for each kind of work of a block: how often each runs, and for how long as the kernel
// measures it (kernel.bpf_stats_enabled), with the cost of reading the clock twice.
func (b *Block) Dissect(stand *Stand, out *Record) (err error) {
	e, err := b.open(stand)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	if err := e.flows.touch(); err != nil {
		return err
	}
	for _, work := range b.kinds(e) {
		if err := b.timePrograms(stand, work, out); err != nil {
			return err
		}
	}
	return out.Err()
}

func (b *Block) timePrograms(stand *Stand, work kind, out *Record) (err error) {
	programs, err := stand.programs()
	defer func() {
		for _, p := range programs {
			err = errors.Join(err, p.program.Close())
		}
	}()
	if err != nil {
		return err
	}
	counting, err := ebpf.EnableStats(unix.BPF_STATS_RUN_TIME)
	if err != nil {
		return fmt.Errorf("turn on the kernel's run statistics: %w", err)
	}
	defer func() { err = errors.Join(err, counting.Close()) }()
	var before []*ebpf.ProgramStats
	for _, p := range programs {
		stats, err := p.program.Stats()
		if err != nil {
			return fmt.Errorf("statistics of %s: %w", p.name, err)
		}
		before = append(before, stats)
	}
	if err := work.do(); err != nil {
		return err
	}
	for i, p := range programs {
		after, err := p.program.Stats()
		if err != nil {
			return fmt.Errorf("statistics of %s: %w", p.name, err)
		}
		runs := after.RunCount - before[i].RunCount
		if runs == 0 {
			continue
		}
		out.Sample(fmt.Sprintf("program/%s/%s/%s", work.what, b.Way, p.name), int(runs), Value{
			float64(after.Runtime-before[i].Runtime) / float64(runs), "ns/run",
		}, Value{float64(runs) / float64(work.count), "runs/op"})
	}
	return nil
}
