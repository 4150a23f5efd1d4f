// SPDX-License-Identifier: Apache-2.0

// Package trace watches the attached programs decide, packet by packet, with programs of its own before and behind them
// on every uplink for as long as somebody looks. Invariant: nothing of it is pinned and nothing of the datapath is
// changed, so that it costs nothing before and after, and is gone with its process, however that ends.
package trace

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/src/datapath/bpfobj"
	"github.com/beep-lb/beep/src/datapath/pinfs"
	"github.com/beep-lb/beep/src/model"
	"github.com/beep-lb/beep/src/netdev"
)

// ErrNothingAttached says that there is no program to watch.
var ErrNothingAttached = errors.New("no program is attached")

// ErrMapsReplaced says that the programs count in other maps than when the trace began.
var ErrMapsReplaced = errors.New("beep has made its counters anew")

// Filter says which packets are wanted; its zero value is all that beep forwards, answers or drops.
type Filter struct {
	// Client is where the client is; the zero Prefix is anywhere.
	Client netip.Prefix
	// Front is the address that the client dials; the zero Addr is any.
	Front netip.Addr
	// Port and Proto are the front's; 0 is any.
	Port  uint16
	Proto model.Proto
	// Passes wants packets, too, that the programs leave to the host.
	Passes bool
	// Rate is how many events a second there may be; what is more is counted as lost.
	Rate uint32
}

// Trace is one look. Its methods are for one goroutine.
type Trace struct {
	dir     *pinfs.Dir
	devices func() ([]netdev.Link, error)
	spec    *ebpf.CollectionSpec
	maps    map[string]*ebpf.Map
	events  *ringbuf.Reader
	boot    time.Time
	sides   map[pinfs.Link]*side
	told    map[uint32]uint64 // by CPU: the last event that was told before its CPU did
}

// Open begins to watch every program that is attached below the pin directory. Others that come later are found by Run.
// devices lists those of this network namespace, which must be the node's. It fails with ErrNothingAttached; it takes
// CAP_BPF and CAP_NET_ADMIN.
func Open(dir *pinfs.Dir, devices func() ([]netdev.Link, error), filter Filter) (*Trace, error) {
	spec, err := bpfobj.LoadTrace()
	if err != nil {
		return nil, fmt.Errorf("read the embedded object: %w", err)
	}
	if err := filter.set(spec); err != nil {
		return nil, err
	}
	t := &Trace{
		dir: dir, devices: devices, spec: spec, maps: map[string]*ebpf.Map{}, sides: map[pinfs.Link]*side{},
		told: map[uint32]uint64{},
	}
	err = t.open()
	if err == nil && len(t.sides) == 0 {
		err = fmt.Errorf("trace: %w below %s: run `beep run` or `beep load`", ErrNothingAttached, dir.Path())
	}
	if err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

func (t *Trace) open() (err error) {
	if t.boot, err = bootTime(); err != nil {
		return err
	}
	for name, spec := range t.spec.Maps {
		switch name {
		case bpfobj.TraceMapDROPS, bpfobj.TraceMapTRAFFIC:
			t.maps[name], err = ebpf.LoadPinnedMap(t.dir.MapPath(name), nil)
		case bpfobj.TraceMapEVENTS, bpfobj.TraceMapPENDING, bpfobj.TraceMapRATE:
			t.maps[name], err = ebpf.NewMap(spec)
		}
		if err != nil {
			return fmt.Errorf("trace: map %s: %w", name, err)
		}
	}
	if t.events, err = ringbuf.NewReader(t.maps[bpfobj.TraceMapEVENTS]); err != nil {
		return fmt.Errorf("trace: read map %s: %w", bpfobj.TraceMapEVENTS, err)
	}
	return t.follow()
}

// set writes the filter into the constants of the programs.
func (f Filter) set(spec *ebpf.CollectionSpec) error {
	var client, front [16]byte
	var bits uint32
	var passes uint8
	if f.Client.IsValid() {
		client, bits = f.Client.Addr().As16(), uint32(f.Client.Bits())
		if f.Client.Addr().Is4() {
			bits += 96 // they are ::ffff:a.b.c.d there
		}
	}
	if f.Front.IsValid() {
		front = f.Front.As16()
	}
	if f.Passes {
		passes = 1
	}
	return errors.Join(
		setVariable(spec, bpfobj.TraceVarCfgClient, client),
		setVariable(spec, bpfobj.TraceVarCfgClientBits, bits),
		setVariable(spec, bpfobj.TraceVarCfgFront, front),
		setVariable(spec, bpfobj.TraceVarCfgFrontPortBe, f.Port>>8|f.Port<<8),
		setVariable(spec, bpfobj.TraceVarCfgFrontProto, uint8(f.Proto)),
		setVariable(spec, bpfobj.TraceVarCfgPasses, passes),
		setVariable(spec, bpfobj.TraceVarCfgRate, f.Rate),
	)
}

func setVariable[T uint8 | uint16 | uint32 | [16]byte](spec *ebpf.CollectionSpec, name string, value T) error {
	variable := spec.Variables[name]
	if variable == nil {
		return fmt.Errorf("trace: %s: no such variable: run make generate", name)
	}
	if err := variable.Set(value); err != nil {
		return fmt.Errorf("trace: set %s: %w", name, err)
	}
	return nil
}

// followEvery is how often a trace looks for programs that were attached after it began, settleEvery how often for
// packets of which a CPU has not told yet.
const (
	followEvery = time.Second
	settleEvery = 100 * time.Millisecond
)

// Run gives every event to tell, in their order on each CPU, until ctx ends or tell says no; events that came before the
// end are still told. Programs that are attached meanwhile are watched within a second.
func (t *Trace) Run(ctx context.Context, tell func(Event) bool) error {
	stopFlush := context.AfterFunc(ctx, func() { t.events.Flush() })
	defer stopFlush()
	following := time.Now()
	for {
		more, err := t.read(time.Now().Add(settleEvery), tell)
		if err != nil || !more {
			return err
		}
		if ctx.Err() != nil {
			return t.end(tell)
		}
		if more, err = t.settle(settleEvery/2, tell); err != nil || !more {
			return err
		}
		if time.Since(following) >= followEvery {
			if err := t.follow(); err != nil {
				return err
			}
			following = time.Now()
		}
	}
}

// read tells events until the deadline or a flush, and says whether tell wants more.
func (t *Trace) read(until time.Time, tell func(Event) bool) (more bool, err error) {
	var record ringbuf.Record
	t.events.SetDeadline(until)
	for {
		err := t.events.ReadInto(&record)
		if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, ringbuf.ErrFlushed) {
			return true, nil
		}
		if err != nil {
			return false, fmt.Errorf("trace: read events: %w", err)
		}
		raw, err := decode(record.RawSample)
		if err != nil {
			return false, err
		}
		if raw.Seq <= t.told[raw.Cpu] {
			continue
		}
		if !tell(eventOf(raw, t.boot)) {
			return false, nil
		}
	}
}

// end takes the programs off, and tells what they still knew: the kernel waits until none of them runs.
func (t *Trace) end(tell func(Event) bool) error {
	if err := t.detach(); err != nil {
		return err
	}
	if more, err := t.read(time.Now(), tell); err != nil || !more {
		return err
	}
	_, err := t.settle(0, tell)
	return err
}

// settle tells of packets that are over since a while and that their CPU, which had no other one since, has not told of.
// That is how drops on an idle node are told.
func (t *Trace) settle(age time.Duration, tell func(Event) bool) (more bool, err error) {
	var zero uint32
	var waiting []bpfobj.TraceTracePending
	if err := t.maps[bpfobj.TraceMapPENDING].Lookup(&zero, &waiting); err != nil {
		return false, fmt.Errorf("trace: read map %s: %w", bpfobj.TraceMapPENDING, err)
	}
	for cpu, one := range waiting {
		raw := one.Event
		if raw.Time == 0 || raw.Seq <= t.told[raw.Cpu] || time.Since(t.boot.Add(time.Duration(raw.Time))) < age {
			continue
		}
		if err := t.conclude(cpu, &one); err != nil {
			return false, err
		}
		var again []bpfobj.TraceTracePending
		if err := t.maps[bpfobj.TraceMapPENDING].Lookup(&zero, &again); err != nil {
			return false, fmt.Errorf("trace: read map %s: %w", bpfobj.TraceMapPENDING, err)
		}
		if again[cpu].Event.Seq != raw.Seq || again[cpu].Event.Time == 0 {
			continue // it has told of it meanwhile
		}
		t.told[raw.Cpu] = raw.Seq
		if event := eventOf(one.Event, t.boot); (event.To != Host || t.passes()) && !tell(event) {
			return false, nil
		}
	}
	return true, nil
}

// conclude finds which counters of a CPU are others than before its packet, as the programs do.
func (t *Trace) conclude(cpu int, one *bpfobj.TraceTracePending) error {
	var counts []bpfobj.BeepDropCount
	for reason := uint32(1); reason < uint32(len(one.Drops)); reason++ {
		index := reason*uint32(bpfobj.BeepDirectionDIRECTIONS) + one.Event.Direction
		if err := t.maps[bpfobj.TraceMapDROPS].Lookup(&index, &counts); err != nil {
			return fmt.Errorf("trace: read map %s: %w", bpfobj.TraceMapDROPS, err)
		}
		if counts[cpu].Packets != one.Drops[reason] {
			one.Event.Reason = reason
		}
	}
	for row := range uint32(len(one.Traffic)) {
		if err := t.maps[bpfobj.TraceMapTRAFFIC].Lookup(&row, &counts); err != nil {
			return fmt.Errorf("trace: read map %s: %w", bpfobj.TraceMapTRAFFIC, err)
		}
		if counts[cpu].Packets != one.Traffic[row] {
			one.Event.Counted |= 1 << row
		}
	}
	return nil
}

// passes says whether packets are wanted that are none of beep's.
func (t *Trace) passes() bool {
	var passes uint8
	return t.spec.Variables[bpfobj.TraceVarCfgPasses].Get(&passes) == nil && passes != 0
}

// Lost is how many events were too many for the rate, or for whoever reads them.
func (t *Trace) Lost() (uint64, error) {
	var zero uint32
	var rate bpfobj.TraceTraceRate
	if err := t.maps[bpfobj.TraceMapRATE].Lookup(&zero, &rate); err != nil {
		return 0, fmt.Errorf("trace: read map %s: %w", bpfobj.TraceMapRATE, err)
	}
	return rate.Lost, nil
}

// Close takes everything off again.
func (t *Trace) Close() error {
	errs := []error{t.detach()}
	if t.events != nil {
		errs = append(errs, t.events.Close())
	}
	for _, m := range t.maps {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}

// bootTime is when the monotonic clock stood at zero, by the clock of the day.
func bootTime() (time.Time, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return time.Time{}, fmt.Errorf("trace: read the clock: %w", err)
	}
	return time.Now().Add(-time.Duration(now.Nano())), nil
}

// index finds a device.
func index(links []netdev.Link, ifindex int) (netdev.Link, bool) {
	at := slices.IndexFunc(links, func(link netdev.Link) bool { return link.Index == ifindex })
	if at < 0 {
		return netdev.Link{}, false
	}
	return links[at], true
}
