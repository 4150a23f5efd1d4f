// SPDX-License-Identifier: Apache-2.0

package tcx

import (
	"context"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
)

func TestMain(m *testing.M) { os.Exit(require.Main(m)) }

const (
	open = 8080
	shut = 8081
)

// ask sends a few datagrams to a port of node-a and returns how many were answered.
func ask(t *testing.T, topology *topo.Topology, family topo.Families, port uint16) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	tally, err := traffic.SendUDP(ctx, topology.NS("client"), netip.AddrPortFrom(topology.Addr("node-a", family), port),
		traffic.Datagrams{Count: 5, Patience: 500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return tally.Received
}

func TestRule(t *testing.T) {
	require.Root(t)
	require.TCX(t)
	topology := topo.New(t, topo.OneLAN(1, topo.Options{}))
	for _, family := range []topo.Families{topo.V4, topo.V6} {
		for _, port := range []uint16{open, shut} {
			at := netip.AddrPortFrom(topology.Addr("node-a", family), port)
			if _, err := traffic.ServeUDP(topology.NS("node-a"), at); err != nil {
				t.Fatal(err)
			}
		}
	}
	node := topology.NS("node-a")
	attach := func(hook Hook, place Place, rule Rule) *Program {
		t.Helper()
		program, err := Attach(node, "eth0", hook, place, rule)
		if err != nil {
			t.Fatal(err)
		}
		return program
	}
	count := func(p *Program) uint64 {
		t.Helper()
		n, err := p.Count()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	drops := attach(Ingress, First, Rule{Port: shut, Drop: true})
	behind := attach(Ingress, Last, Rule{Port: shut})
	before := attach(Ingress, First, Rule{Port: shut})
	passes := attach(Ingress, Last, Rule{Port: open})
	out := attach(Egress, Last, Rule{})
	for _, family := range []topo.Families{topo.V4, topo.V6} {
		if got := ask(t, topology, family, open); got != 5 {
			t.Errorf("port %d: %d answers, want 5", open, got)
		}
		if got := ask(t, topology, family, shut); got != 0 {
			t.Errorf("port %d: %d answers, want none", shut, got)
		}
	}
	if d, a, b, o := count(drops), count(behind), count(before), count(passes); d != 10 || a != 0 || b != 10 || o != 10 {
		t.Errorf("dropped %d, seen behind %d, before %d, passed %d: want 10, 0, 10, 10", d, a, b, o)
	}
	if n := count(out); n < 10 {
		t.Errorf("egress counted %d packets, want every answer", n)
	}

	if err := drops.Close(); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, topology, topo.V4, shut); got != 5 {
		t.Errorf("after the dropping program left: %d answers, want 5", got)
	}
	if on, err := passes.Attached(); err != nil || !on {
		t.Errorf("attached: %v, %v", on, err)
	}
	if err := topology.Recreate("node-a", "eth0"); err != nil {
		t.Fatal(err)
	}
	if on, err := passes.Attached(); err != nil || on {
		t.Errorf("attached to a device that is gone: %v, %v", on, err)
	}
}
