// SPDX-License-Identifier: Apache-2.0

// Package tcx attaches a foreign program beside beep's on a device, as another eBPF product on the node would, so
// that rigs can tell whether the two get along. Invariant: a foreign program never changes a packet, and it is
// gone from its device after Close, at the latest with the process.
package tcx

import (
	"errors"
	"fmt"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/netns"
)

// Hook is the side of a device that a program sees.
type Hook string

// The hooks of tcx (Linux 6.6).
const (
	Ingress Hook = "ingress"
	Egress  Hook = "egress"
)

// Place is where in the chain of a hook a program attaches.
type Place string

// The places: before or after all programs that are there at that moment.
const (
	First Place = "first"
	Last  Place = "last"
)

// Rule says which packets a program counts, and what becomes of them.
type Rule struct {
	// Port is the TCP or UDP destination port (host order) of IPv4 without options or IPv6 without extension
	// headers; 0 is every packet.
	Port uint16
	// Drop returns TCX_DROP for those packets. All others, and all without Drop, go on to the next program
	// (TCX_NEXT).
	Drop bool
}

// Program is an attached foreign program.
type Program struct {
	program *ebpf.Program
	count   *ebpf.Map
	link    link.Link
	close   func() error
}

// Attach loads a program and attaches it to a device of the namespace. It ends with its namespace or by Close.
func Attach(ns *netns.NS, device string, hook Hook, place Place, rule Rule) (*Program, error) {
	p := &Program{}
	p.close = sync.OnceValue(p.release)
	if err := p.attach(ns, device, hook, place, rule); err != nil {
		return nil, errors.Join(fmt.Errorf("attach a foreign program to %s %s in namespace %s: %w", device, hook, ns.Name(), err),
			p.close())
	}
	ns.OnClose(p.close)
	return p, nil
}

func (p *Program) attach(ns *netns.NS, device string, hook Hook, place Place, rule Rule) error {
	dev, err := ns.Netlink().LinkByName(device)
	if err != nil {
		return fmt.Errorf("find the device: %w", err)
	}
	p.count, err = ebpf.NewMap(&ebpf.MapSpec{Name: "foreign", Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	if err != nil {
		return fmt.Errorf("create its counter: %w", err)
	}
	l3 := int32(0)
	if dev.Attrs().EncapType == "ether" {
		l3 = ethernetHeader
	}
	p.program, err = ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "foreign", Type: ebpf.SchedCLS, License: "GPL", Instructions: rule.instructions(p.count.FD(), l3),
	})
	if err != nil {
		return fmt.Errorf("load it: %w", err)
	}
	options := link.TCXOptions{
		Interface: dev.Attrs().Index, Program: p.program, Attach: ebpf.AttachTCXIngress, Anchor: link.Head(),
	}
	if hook == Egress {
		options.Attach = ebpf.AttachTCXEgress
	}
	if place == Last {
		options.Anchor = link.Tail()
	}
	// An ifindex means the calling thread's namespace.
	return ns.Do(func() (err error) {
		p.link, err = link.AttachTCX(options)
		return err
	})
}

// Count is how many packets the rule has met.
func (p *Program) Count() (uint64, error) {
	var count uint64
	if err := p.count.Lookup(uint32(0), &count); err != nil {
		return 0, fmt.Errorf("read the count of a foreign program: %w", err)
	}
	return count, nil
}

// Attached says whether the program still is on its device: the kernel detaches it when the device goes.
func (p *Program) Attached() (bool, error) {
	info, err := p.link.Info()
	if err != nil {
		return false, fmt.Errorf("ask for the link of a foreign program: %w", err)
	}
	return info.TCX().Ifindex != 0, nil
}

// Close takes the program off its device. It may be called twice.
func (p *Program) Close() error { return p.close() }

func (p *Program) release() error {
	var errs []error
	if p.link != nil {
		errs = append(errs, p.link.Close())
	}
	return errors.Join(append(errs, p.program.Close(), p.count.Close())...)
}

// What the program reads: offsets in bytes in struct __sk_buff (linux/bpf.h) and in the headers.
const (
	ethernetHeader = 14
	skbProtocol    = 16

	ip4Protocol, ip4Header = 9, 20
	ip6NextHeader          = 6
	ip6Header              = 40
	destinationPort        = 2
)

// The verdicts of linux/bpf.h.
const (
	tcxNext = -1
	tcxDrop = 2
)

// Labels of the program.
const (
	match = "match"
	pass  = "pass"
)

// instructions assembles the rule; count is the descriptor of the counter, l3 the length of the link-layer header.
func (r Rule) instructions(count int, l3 int32) asm.Instructions {
	verdict := int32(tcxNext)
	if r.Drop {
		verdict = tcxDrop
	}
	matched := asm.Instructions{
		asm.LoadMapValue(asm.R1, count, 0).WithSymbol(match),
		asm.Mov.Imm(asm.R2, 1),
		asm.AddAtomic.Mem(asm.R1, asm.R2, asm.DWord, 0),
		asm.Mov.Imm(asm.R0, verdict),
		asm.Return(),
	}
	if r.Port == 0 {
		return matched
	}
	ins := asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1), // the context, which calls keep there
		asm.LoadMem(asm.R1, asm.R6, skbProtocol, asm.Word),
		asm.HostTo(asm.BE, asm.R1, asm.Half),
		asm.JEq.Imm(asm.R1, unix.ETH_P_IPV6, "v6"),
		asm.JNE.Imm(asm.R1, unix.ETH_P_IP, pass),
	}
	ins = append(ins, r.port(l3+ip4Protocol, l3+ip4Header)...)
	v6 := r.port(l3+ip6NextHeader, l3+ip6Header)
	v6[0] = v6[0].WithSymbol("v6")
	ins = append(append(ins, v6...), matched...)
	return append(ins, asm.Mov.Imm(asm.R0, tcxNext).WithSymbol(pass), asm.Return())
}

// port compares the destination port of a TCP or UDP packet, whose protocol number and header are at the given
// offsets, and goes to match or pass.
func (r Rule) port(protocol, header int32) asm.Instructions {
	transport := fmt.Sprintf("transport%d", header)
	ins := load(protocol, 1)
	ins = append(ins,
		asm.LoadMem(asm.R1, asm.RFP, -8, asm.Byte),
		asm.JEq.Imm(asm.R1, unix.IPPROTO_TCP, transport),
		asm.JNE.Imm(asm.R1, unix.IPPROTO_UDP, pass),
	)
	ports := load(header+destinationPort, 2)
	ports[0] = ports[0].WithSymbol(transport)
	return append(append(ins, ports...),
		asm.LoadMem(asm.R1, asm.RFP, -8, asm.Half),
		asm.HostTo(asm.BE, asm.R1, asm.Half),
		asm.JEq.Imm(asm.R1, int32(r.Port), match),
		asm.Ja.Label(pass),
	)
}

// load copies n bytes of the packet to the stack, or goes to pass if it is too short.
func load(offset, n int32) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R1, asm.R6),
		asm.Mov.Imm(asm.R2, offset),
		asm.Mov.Reg(asm.R3, asm.RFP),
		asm.Add.Imm(asm.R3, -8),
		asm.Mov.Imm(asm.R4, n),
		asm.FnSkbLoadBytes.Call(),
		asm.JNE.Imm(asm.R0, 0, pass),
	}
}

// Programs lists the kernel's ids of the programs on one side of a device of the namespace, in their order.
func Programs(ns *netns.NS, device string, hook Hook) (ids []uint32, err error) {
	at := ebpf.AttachTCXIngress
	if hook == Egress {
		at = ebpf.AttachTCXEgress
	}
	dev, err := ns.Netlink().LinkByName(device)
	if err != nil {
		return nil, fmt.Errorf("device %s in namespace %s: %w", device, ns.Name(), err)
	}
	err = ns.Do(func() error {
		found, err := link.QueryPrograms(link.QueryOptions{Target: dev.Attrs().Index, Attach: at})
		if err != nil {
			return err
		}
		for _, program := range found.Programs {
			ids = append(ids, uint32(program.ID))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("programs at %s of %s in namespace %s: %w", hook, device, ns.Name(), err)
	}
	return ids, nil
}
