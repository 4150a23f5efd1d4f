// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"log/slog"
	"net/netip"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/bpffs"
	"github.com/beep-lb/beep/harness/netns"
	"github.com/beep-lb/beep/harness/packet"
	"github.com/beep-lb/beep/harness/progrun"
	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/src/config"
	"github.com/beep-lb/beep/src/datapath/bpfobj"
	"github.com/beep-lb/beep/src/datapath/load"
	"github.com/beep-lb/beep/src/datapath/maps"
	"github.com/beep-lb/beep/src/datapath/pinfs"
	"github.com/beep-lb/beep/src/model"
	"github.com/beep-lb/beep/src/netdev"
)

// loaded is the shipped programs over maps of their own, in a namespace of its own.
type loaded struct {
	t        *testing.T
	d        *load.Datapath
	programs *bpfobj.BeepPrograms
	runner   progrun.Runner
}

func newLoaded(t *testing.T) *loaded {
	t.Helper()
	require.Root(t)
	require.TCX(t)
	dir, err := pinfs.Create(filepath.Join(bpffs.New(t), "beep"))
	must(t, err)
	uplink := netdev.Link{Index: 2, Name: "eth0", Type: unix.ARPHRD_ETHER}
	flags := &config.Datapath{MaxFronts: 4, EndpointsPerFront: 4, FlowTableMaxEntries: 4096, NodeAllowMaxEntries: 4, PodTargetsMax: 4,
		GenevePort: packet.GenevePort, GeneveVNI: packet.DefaultVNI}
	d, err := load.Load(dir, load.SettingsOf(flags), []netdev.Link{uplink}, slog.New(slog.DiscardHandler))
	must(t, err)
	t.Cleanup(func() { d.Close() })
	programs, err := d.Instance(uplink)
	must(t, err)
	t.Cleanup(func() { programs.Close() })
	return &loaded{t, d, programs, progrun.Inside(netns.New(t, "sweep").Do)}
}

// in has a frame come in on the uplink.
func (l *loaded) in(parts ...packet.Part) progrun.Out {
	l.t.Helper()
	frame := packet.Build(append([]packet.Part{packet.Eth("02:00:00:00:00:07", "02:00:00:00:00:01")}, parts...)...)
	out, err := l.runner.Run(l.programs.BeepIngress, progrun.In{Packet: frame})
	must(l.t, err)
	return out
}

// TestRowsOfThePrograms has the shipped program make the rows: maps.Flow.Mirror finds the pairs that mirror_key of
// bpf/lib/flow.h made, with the client's own port and with another, and the programs' clock is Now's.
func TestRowsOfThePrograms(t *testing.T) {
	l := newLoaded(t)
	d := l.d
	// One client port through two fronts to one pod's port: the pod must see two ports.
	for id, front := range []string{"192.0.2.1", "192.0.2.11"} {
		must(t, d.Maps.PutFront(maps.FrontMeta{
			Socket: model.Socket{Addr: netip.MustParseAddr(front), Port: 80, Proto: model.TCP}, ID: uint32(id + 1), Count: 1,
		}), d.Maps.PutEndpoint(maps.EndpointKey{Front: uint32(id + 1)}, model.Endpoint{Addr: netip.MustParseAddr("10.42.0.5"), Port: 8080}))
		out := l.in(packet.IP("198.51.100.7", front), packet.TCP(40000, 80).Flags("S"))
		if out.Verdict != progrun.Pass {
			t.Fatalf("a SYN to %s: %s", front, out.Verdict)
		}
	}

	rows := map[maps.FlowKey]maps.Flow{}
	must(t, d.Maps.Flows(func(f maps.Flow) bool { rows[f.FlowKey] = f; return true }))
	ports := map[uint16]bool{}
	for key, row := range rows {
		mirror, paired := row.Mirror()
		back, _ := rows[mirror].Mirror()
		if !paired || back != key {
			t.Errorf("%s has the mirror %s (there: %v), whose mirror is %s", key, mirror, rows[mirror].Table != "", back)
		}
		if row.Kind == maps.Reverse {
			ports[row.Dst.Port()] = true
		}
	}
	if len(rows) != 4 || len(ports) != 2 || !ports[40000] {
		t.Errorf("%d rows, the pod sees ports %v", len(rows), ports)
	}

	now, err := Now()
	must(t, err)
	result, err := Idle(d.Maps, now, policy)
	if err != nil || len(result.Removed) != 0 {
		t.Errorf("at once: %+v, %v", result, err)
	}
	result, err = Idle(d.Maps, now+32, policy)
	if err != nil || result.Removed[HalfOpen] != 4 {
		t.Errorf("after half a minute: %+v, %v", result, err)
	}
}
