// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/src/config"
	"github.com/beep-lb/beep/src/datapath/bpfobj"
	"github.com/beep-lb/beep/src/datapath/maps"
	"github.com/beep-lb/beep/src/model"
)

var policy = PolicyOf(&config.Datapath{UDPIdleSweepSecs: 120, TCPIdleSweepSecs: 43200})

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func TestExpired(t *testing.T) {
	const now = 100_000
	short := PolicyOf(&config.Datapath{UDPIdleSweepSecs: 5, TCPIdleSweepSecs: 5})
	const end = maps.FinClient | maps.FinEndpoint | maps.Closed
	tests := []struct {
		name   string
		table  string
		proto  model.Proto
		flags  maps.Flags
		idle   int64
		policy Policy
		cause  Cause
		over   bool
	}{
		{"a UDP flow in use", maps.FlowDatagrams, model.UDP, maps.Replied, 0, policy, IdleUDP, false},
		{"a UDP flow, idle for its time", maps.FlowDatagrams, model.UDP, maps.Replied, 120, policy, IdleUDP, false},
		{"a UDP flow, idle for longer", maps.FlowDatagrams, model.UDP, maps.Replied, 121, policy, IdleUDP, true},
		{"a TCP flow is not UDP", maps.FlowTable, model.TCP, maps.Replied, 121, policy, IdleTCP, false},
		{"a TCP flow, idle for its time", maps.FlowTable, model.TCP, maps.Replied, 43200, policy, IdleTCP, false},
		{"a TCP flow, idle for longer", maps.FlowTable, model.TCP, maps.Replied, 43201, policy, IdleTCP, true},
		{"one FIN does not end it", maps.FlowTable, model.TCP, maps.Replied | maps.FinClient, 43200, policy, IdleTCP, false},
		{"a closed flow in its last minute", maps.FlowTable, model.TCP, end, 60, policy, Closed, false},
		{"a closed flow after it", maps.FlowTable, model.TCP, end, 61, policy, Closed, true},
		{"a half-open TCP flow", maps.FlowPending, model.TCP, maps.Paired, 30, policy, HalfOpen, false},
		{"a half-open TCP flow after its time", maps.FlowPending, model.TCP, maps.Paired, 31, policy, HalfOpen, true},
		{"a half-open TCP flow that was answered", maps.FlowPending, model.TCP, maps.Replied, 31, policy, HalfOpen, true},
		{"a half-open UDP flow", maps.FlowPending, model.UDP, 0, 31, policy, HalfOpen, true},
		{"a refused flow goes as half-open, which is sooner", maps.FlowPending, model.TCP, maps.Closed, 31, policy, HalfOpen, true},
		{"a shorter UDP time holds for half-open flows too", maps.FlowPending, model.UDP, 0, 6, short, IdleUDP, true},
		{"and a shorter TCP time for closed ones", maps.FlowTable, model.TCP, end, 6, short, IdleTCP, true},
		{"a row touched after the clock was read", maps.FlowDatagrams, model.UDP, 0, -1, policy, IdleUDP, false},
		{"a row of the far future, as after a wrap", maps.FlowDatagrams, model.UDP, 0, -100_001 - 200, policy, IdleUDP, false},
	}
	for _, test := range tests {
		flow := maps.Flow{FlowKey: maps.FlowKey{Proto: test.proto}, Table: test.table, Flags: test.flags, LastSeen: uint32(now - test.idle)}
		cause, over := expired(flow, now, test.policy)
		if cause != test.cause || over != test.over {
			t.Errorf("%s: %s, %v, want %s, %v", test.name, cause, over, test.cause, test.over)
		}
	}
	if _, over := expired(maps.Flow{Table: maps.FlowPending, LastSeen: 1<<32 - 10}, 40, policy); !over {
		t.Error("a row from before the clock wrapped stays")
	}
}

// TestBounds is the promise of the flags: between once and twice the idle time, half-open a minute at most, closed
// two.
func TestBounds(t *testing.T) {
	for _, secs := range []int{1, 2, 5, 59, 120, 43200} {
		p := PolicyOf(&config.Datapath{UDPIdleSweepSecs: secs, TCPIdleSweepSecs: secs})
		if p.Interval() <= 0 || p.Interval() > longest {
			t.Errorf("%d seconds: a sweep every %s", secs, p.Interval())
		}
		const second = time.Second // lost to whole seconds
		if worst := p.HalfOpen + second + p.Interval(); worst > time.Minute {
			t.Errorf("%d seconds: half-open rows live %s", secs, worst)
		}
		if worst := p.Closed + second + p.Interval(); worst > 2*time.Minute {
			t.Errorf("%d seconds: closed rows live %s", secs, worst)
		}
		if worst := p.UDP + second + p.Interval(); worst > 2*p.UDP && secs > 1 {
			t.Errorf("%d seconds: UDP rows live %s", secs, worst)
		}
	}
}

// rig is real maps.
type rig struct {
	t testing.TB
	k *maps.Kernel
}

func newRig(t testing.TB, rows uint32) *rig {
	t.Helper()
	require.Root(t)
	spec, err := bpfobj.LoadBeep()
	must(t, err)
	spec.Maps["FLOW_TABLE"].MaxEntries, spec.Maps["FLOW_PENDING"].MaxEntries = rows, rows
	var raw bpfobj.BeepMaps
	must(t, spec.LoadAndAssign(&raw, nil))
	r := &rig{t: t, k: maps.New(raw)}
	t.Cleanup(func() { r.k.Close() })
	return r
}

// write puts a row into the kernel, as a program would.
func (r *rig) write(f maps.Flow) {
	r.t.Helper()
	must(r.t, r.k.PutFlow(f))
}

// pair is both rows of a local flow of the client's port.
func pair(table string, proto model.Proto, port uint16, seen uint32, flags maps.Flags) (forward, reverse maps.Flow) {
	client := netip.AddrPortFrom(netip.MustParseAddr("198.51.100.7"), port)
	front, pod := netip.MustParseAddrPort("192.0.2.1:80"), netip.MustParseAddrPort("10.42.0.5:8080")
	forward = maps.Flow{
		FlowKey: maps.FlowKey{Kind: maps.Forward, Proto: proto, Src: client, Dst: front},
		Table:   table, Nat: pod, ClientPort: port, LastSeen: seen, Flags: flags | maps.Paired,
	}
	reverse = forward
	reverse.FlowKey = maps.FlowKey{Kind: maps.Reverse, Proto: proto, Src: pod, Dst: client}
	reverse.Nat = front
	return forward, reverse
}

// left prints the rows that are there: table, kind, client port.
func (r *rig) left() string {
	r.t.Helper()
	var lines []string
	must(r.t, r.k.Flows(func(f maps.Flow) bool {
		client := f.Src
		if f.Kind == maps.Reverse {
			client = f.Dst
		}
		lines = append(lines, strings.Join([]string{f.Table, f.Kind.String(), f.Proto.String(), client.String()}, " "))
		return true
	}))
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func (r *rig) check(what, want string) {
	r.t.Helper()
	if diff := cmp.Diff(want, r.left()); diff != "" {
		r.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestIdleOnRealMaps(t *testing.T) {
	const now = 50_000
	r := newRig(t, 1024)
	for _, f := range []struct {
		table string
		proto model.Proto
		port  uint16
		idle  uint32
		flags maps.Flags
	}{
		{maps.FlowTable, model.TCP, 1001, 40000, maps.Replied}, // stays
		{maps.FlowTable, model.TCP, 1002, 43300, maps.Replied},
		{maps.FlowTable, model.TCP, 1003, 100, maps.Closed},
		{maps.FlowDatagrams, model.UDP, 1004, 100, maps.Replied}, // stays
		{maps.FlowDatagrams, model.UDP, 1005, 200, maps.Replied},
		{maps.FlowPending, model.TCP, 1006, 40, 0},
		{maps.FlowPending, model.TCP, 1007, 20, 0}, // stays
	} {
		forward, reverse := pair(f.table, f.proto, f.port, now-f.idle, f.flags)
		r.write(forward)
		r.write(reverse)
	}
	// Of a tunnelled flow the client's node has one row.
	alone, _ := pair(maps.FlowDatagrams, model.UDP, 1008, now-200, 0)
	alone.Flags = 0
	r.write(alone)

	result, err := Idle(r.k, now, policy)
	must(t, err)
	want := map[Cause]int{IdleTCP: 2, Closed: 2, IdleUDP: 3, HalfOpen: 2}
	if diff := cmp.Diff(want, result.Removed); diff != "" || result.Errors != 0 {
		t.Errorf("%d errors, removed (-want +got):\n%s", result.Errors, diff)
	}
	// A mirror that went with its row may have been looked at or not.
	if result.Scanned < 11 || result.Scanned > 15 {
		t.Errorf("scanned %d rows of 15", result.Scanned)
	}
	const kept = `FLOW_DATAGRAMS forward UDP 198.51.100.7:1004
FLOW_DATAGRAMS reverse UDP 198.51.100.7:1004
FLOW_PENDING forward TCP 198.51.100.7:1007
FLOW_PENDING reverse TCP 198.51.100.7:1007
FLOW_TABLE forward TCP 198.51.100.7:1001
FLOW_TABLE reverse TCP 198.51.100.7:1001`
	r.check("left", kept)
	result, err = Idle(r.k, now, policy)
	if err != nil || len(result.Removed) != 0 {
		t.Errorf("a second sweep: %+v, %v", result, err)
	}
	r.check("left after a second sweep", kept)
}

func TestAPairStaysTogether(t *testing.T) {
	const now = 50_000
	r := newRig(t, 1024)
	// The mirror of 2001 is in use.
	forward, reverse := pair(maps.FlowDatagrams, model.UDP, 2001, now-200, 0)
	reverse.LastSeen = now - 1
	r.write(forward)
	r.write(reverse)
	// The mirror of 2002 was evicted.
	forward, _ = pair(maps.FlowDatagrams, model.UDP, 2002, now-200, 0)
	r.write(forward)
	// Where the mirror of 2003 was, another flow has made its row since: through another front.
	forward, reverse = pair(maps.FlowDatagrams, model.UDP, 2003, now-200, 0)
	r.write(forward)
	reverse.Nat = netip.MustParseAddrPort("192.0.2.1:81")
	reverse.LastSeen = now - 1
	r.write(reverse)

	result, err := Idle(r.k, now, policy)
	must(t, err)
	if result.Removed[IdleUDP] != 2 {
		t.Errorf("removed %v", result.Removed)
	}
	r.check("left", `FLOW_DATAGRAMS forward UDP 198.51.100.7:2001
FLOW_DATAGRAMS reverse UDP 198.51.100.7:2001
FLOW_DATAGRAMS reverse UDP 198.51.100.7:2003`)
}

// meddler does something between the moment a row is found and the moment it is read again.
type meddler struct {
	*maps.Kernel
	before func(maps.FlowKey) error
}

func (m meddler) LookupFlow(table string, key maps.FlowKey) (maps.Flow, error) {
	if err := m.before(key); err != nil {
		return maps.Flow{}, err
	}
	return m.Kernel.LookupFlow(table, key)
}

// TestARowInUseStays: a packet comes while the sweep is on its way to the row.
func TestARowInUseStays(t *testing.T) {
	const now = 50_000
	r := newRig(t, 1024)
	forward, reverse := pair(maps.FlowDatagrams, model.UDP, 3001, now-200, 0)
	alone, _ := pair(maps.FlowDatagrams, model.UDP, 3002, now-200, 0)
	alone.Flags = 0
	rows := []maps.Flow{forward, reverse, alone}
	for _, row := range rows {
		r.write(row)
	}
	result, err := idle(meddler{r.k, func(key maps.FlowKey) error {
		for _, row := range rows {
			if row.FlowKey == key {
				row.LastSeen = now
				r.write(row)
			}
		}
		return nil
	}}, now, policy)
	if err != nil || len(result.Removed) != 0 || result.Scanned != 3 {
		t.Errorf("%+v, %v", result, err)
	}
	r.check("left", `FLOW_DATAGRAMS forward UDP 198.51.100.7:3001
FLOW_DATAGRAMS forward UDP 198.51.100.7:3002
FLOW_DATAGRAMS reverse UDP 198.51.100.7:3001`)
}

func TestOneErrorDoesNotStopTheSweep(t *testing.T) {
	const now = 50_000
	r := newRig(t, 1024)
	for port := uint16(4001); port <= 4003; port++ {
		alone, _ := pair(maps.FlowDatagrams, model.UDP, port, now-200, 0)
		alone.Flags = 0
		r.write(alone)
	}
	broken := errors.New("broken")
	result, err := idle(meddler{r.k, func(key maps.FlowKey) error {
		if key.Src.Port() == 4002 {
			return broken
		}
		return nil
	}}, now, policy)
	if !errors.Is(err, broken) || result.Errors != 1 || result.Removed[IdleUDP] != 2 {
		t.Errorf("%+v, %v", result, err)
	}
	r.check("left", "FLOW_DATAGRAMS forward UDP 198.51.100.7:4002")
}

// TestRunner sweeps by the programs' clock, at once and again.
func TestRunner(t *testing.T) {
	r := newRig(t, 1024)
	now, err := Now()
	must(t, err)
	old, _ := pair(maps.FlowDatagrams, model.UDP, 5001, now-10, 0)
	soon, _ := pair(maps.FlowDatagrams, model.UDP, 5002, now, 0)
	r.write(old)
	r.write(soon)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	removed := 0
	runner := Runner{
		Maps: r.k, Log: slog.New(slog.DiscardHandler),
		Policy: Policy{UDP: time.Second, TCP: time.Hour, HalfOpen: halfOpen, Closed: closed},
		Observe: func(result Result, _ time.Duration) {
			if removed == 0 && result.Removed[IdleUDP] != 1 {
				t.Errorf("the first sweep removed %v", result.Removed)
			}
			if removed += result.Removed[IdleUDP]; removed == 2 {
				cancel()
			}
		},
	}
	start := time.Now()
	runner.Run(ctx)
	if took := time.Since(start); removed != 2 || took > 4*time.Second {
		t.Errorf("%d rows removed within %s", removed, took)
	}
	r.check("left", "")
}

func BenchmarkIdle65536(b *testing.B) {
	r := newRig(b, 1<<17)
	for i := range 1 << 15 {
		forward, reverse := pair(maps.FlowTable, model.TCP, uint16(i), 1000, 0)
		r.write(forward)
		r.write(reverse)
	}
	for b.Loop() {
		_, err := Idle(r.k, 1000, policy)
		must(b, err)
	}
}
