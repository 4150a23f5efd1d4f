// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/beep-lb/beep/harness/packet"
	"github.com/beep-lb/beep/src/datapath/maps"
	"github.com/beep-lb/beep/src/model"
	"github.com/beep-lb/beep/src/reconcile"
)

func socket(text string) model.Socket {
	parsed, err := model.ParseSocket(text)
	if err != nil {
		panic(err)
	}
	return parsed
}

// fill makes the maps as the fixtures say, by the code that does so in a daemon.
func (l *loaded) fill(desired model.Desired) {
	l.t.Helper()
	_, err := reconcile.New(l.d.Maps, time.Now).Apply(desired)
	must(l.t, err)
}

// pinnedTo lists what the rows are pinned to: table, kind, endpoint.
func pinnedTo(t *testing.T, k *maps.Kernel) string {
	t.Helper()
	counts := map[string]int{}
	must(t, k.Flows(func(f maps.Flow) bool { counts[fmt.Sprintf("%s %s %s", f.Table, f.Kind, pinOf(f))]++; return true }),
		k.Affinities(func(a maps.Affinity) bool { counts["AFFINITY "+a.Endpoint.String()]++; return true }))
	var lines []string
	for line, n := range counts {
		lines = append(lines, fmt.Sprintf("%d %s", n, line))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// TestDepartedOnRowsOfThePrograms: all kinds of rows, of endpoints here, on a peer, and behind a peer's tunnel.
func TestDepartedOnRowsOfThePrograms(t *testing.T) {
	l := newLoaded(t)
	self, peer := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	here, there := netip.MustParseAddr("10.42.0.5"), netip.MustParseAddr("10.42.1.5")
	endpoints := []model.Endpoint{{Addr: here, Port: 8080}, {Addr: there, Port: 8080, Peer: peer}}
	l.fill(model.Desired{
		Underlay4: self, Peers: []netip.Addr{peer}, Targets: []model.Socket{socket("tcp/10.42.0.5:8080"), socket("udp/10.42.0.5:8080")},
		Fronts: []model.Front{
			{Socket: socket("tcp/192.0.2.1:80"), Endpoints: endpoints, ClientIPAffinity: true},
			{Socket: socket("udp/192.0.2.1:80"), Endpoints: endpoints, ClientIPAffinity: true},
		},
	})
	for host := range 40 {
		client := fmt.Sprintf("198.51.100.%d", host+1)
		l.in(packet.IP(client, "192.0.2.1"), packet.TCP(40000, 80).Flags("S"))
		l.in(packet.IP(client, "192.0.2.1"), packet.UDP(40000, 80))
	}
	for port := range uint16(3) {
		l.in(packet.IP("192.0.2.2", "192.0.2.1").DF(), packet.Outer(50000), packet.Forward("10.42.0.5:8080"),
			packet.IP("198.51.100.200", "192.0.2.2"), packet.TCP(port+1, 80).Flags("S"))
	}
	all := pinnedTo(t, l.d.Maps)
	for _, line := range []string{
		"FLOW_PENDING forward TCP/10.42.0.5:8080", "FLOW_PENDING reverse TCP/10.42.0.5:8080", "3 FLOW_PENDING backend TCP/10.42.0.5:8080",
		"FLOW_PENDING forward TCP/10.42.1.5:8080", "FLOW_PENDING forward UDP/10.42.1.5:8080", "AFFINITY 10.42.0.5:8080", "AFFINITY 10.42.1.5:8080",
	} {
		if !strings.Contains(all, line) {
			t.Fatalf("the programs made no row %q:\n%s", line, all)
		}
	}
	// without is what was there less the lines that name any of the texts.
	without := func(texts ...string) string {
		return strings.Join(slices.DeleteFunc(strings.Split(all, "\n"), func(line string) bool {
			return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(line, text) })
		}), "\n")
	}

	result, err := Departed(l.d.Maps, []model.Socket{socket("tcp/10.42.0.5:81"), {Addr: netip.MustParseAddr("10.42.0.6")}})
	if err != nil || result.Rows() != 0 || len(result.Failed) != 0 {
		t.Errorf("of strangers: %+v, %v", result, err)
	}
	if diff := cmp.Diff(all, pinnedTo(t, l.d.Maps)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}

	// A draining pod: UDP goes, TCP stays. Affinity rows of the TCP front stay, too.
	result, err = Departed(l.d.Maps, []model.Socket{socket("udp/10.42.0.5:8080")})
	must(t, err)
	left := pinnedTo(t, l.d.Maps)
	if result.Flows == 0 || result.Affinities == 0 || strings.Contains(left, "UDP/10.42.0.5") ||
		!strings.Contains(left, "forward TCP/10.42.0.5") || !strings.Contains(left, "AFFINITY 10.42.0.5:8080") {
		t.Errorf("%+v, rows:\n%s", result, left)
	}

	result, err = Departed(l.d.Maps, []model.Socket{{Addr: here}})
	must(t, err)
	if diff := cmp.Diff(without("10.42.0.5"), pinnedTo(t, l.d.Maps)); diff != "" || result.Flows == 0 {
		t.Errorf("%+v, rows (-want +got):\n%s", result, diff)
	}
	result, err = Departed(l.d.Maps, []model.Socket{socket("tcp/10.42.1.5:8080"), socket("udp/10.42.1.5:8080")})
	must(t, err)
	if left := pinnedTo(t, l.d.Maps); left != "" || result.Rows() == 0 {
		t.Errorf("%+v, rows:\n%s", result, left)
	}
}

func TestStrangers(t *testing.T) {
	r := newRig(t, 1024)
	for i, pod := range []string{"10.42.0.5:8080", "10.42.0.6:8080"} {
		forward, reverse := pair(maps.FlowTable, model.TCP, uint16(6001+i), 1, maps.Replied)
		forward.Nat = netip.MustParseAddrPort(pod)
		reverse.Src = forward.Nat
		r.write(forward)
		r.write(reverse)
		must(t, r.k.PutAffinity(maps.Affinity{AffinityKey: maps.AffinityKey{Client: netip.MustParseAddr("198.51.100.7"), Front: uint32(i)},
			Endpoint: model.Endpoint{Addr: forward.Nat.Addr(), Port: 8080}}))
	}
	// Front 1 is no more, so its affinity may be of either protocol: one of them is not known.
	must(t, r.k.PutFront(maps.FrontMeta{Socket: socket("tcp/192.0.2.1:80"), ID: 7}))
	result, err := Strangers(r.k, func(s model.Socket) bool { return s == socket("tcp/10.42.0.5:8080") })
	must(t, err)
	if result.Flows != 2 || result.Affinities != 2 || result.Scanned < 5 {
		t.Errorf("%+v", result)
	}
	r.check("left", "FLOW_TABLE forward TCP 198.51.100.7:6001\nFLOW_TABLE reverse TCP 198.51.100.7:6001")
}

// stubborn is maps that refuse to delete the rows of some endpoints.
type stubborn struct {
	*maps.Kernel
	addr       netip.Addr
	unreadable error
}

var errStubborn = errors.New("stubborn")

func (s stubborn) DeleteFlow(table string, key maps.FlowKey) error {
	if row, err := s.LookupFlow(table, key); err == nil && pinOf(row).Addr == s.addr {
		return errStubborn
	}
	return s.Kernel.DeleteFlow(table, key)
}

func (s stubborn) Flows(visit func(maps.Flow) bool) error {
	return errors.Join(s.unreadable, s.Kernel.Flows(visit))
}

// TestDepartedOfWhichSomeFail: the caller learns which, and the others are done.
func TestDepartedOfWhichSomeFail(t *testing.T) {
	r := newRig(t, 1024)
	gone := []model.Socket{}
	for i := range 4 {
		forward, reverse := pair(maps.FlowTable, model.TCP, uint16(7001+i), 1, maps.Replied)
		forward.Nat = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 42, 0, byte(i + 1)}), 8080)
		reverse.Src = forward.Nat
		r.write(forward)
		r.write(reverse)
		gone = append(gone, model.Socket{Addr: forward.Nat.Addr(), Port: 8080, Proto: model.TCP})
	}
	m := stubborn{Kernel: r.k, addr: gone[2].Addr}
	result, err := departed(m, gone)
	if result.Flows != 6 || len(result.Failed) != 1 || !errors.Is(result.Failed[gone[2]], errStubborn) || !errors.Is(err, errStubborn) {
		t.Errorf("%+v, %v", result, err)
	}
	if want := "flows of endpoint TCP/10.42.0.3:8080: stubborn"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	r.check("left", "FLOW_TABLE forward TCP 198.51.100.7:7003\nFLOW_TABLE reverse TCP 198.51.100.7:7003")

	// A map that cannot be read may hold rows of any of them.
	result, err = departed(stubborn{Kernel: r.k, unreadable: errStubborn}, gone)
	if len(result.Failed) != 4 || err == nil || err.Error() != "stubborn" {
		t.Errorf("%+v, %v", result, err)
	}
}

// TestDepartedKeepsAnothersMirror: where the mirror of a pair was, another flow may have made its row since.
func TestDepartedKeepsAnothersMirror(t *testing.T) {
	r := newRig(t, 1024)
	forward, reverse := pair(maps.FlowTable, model.TCP, 8001, 1, 0)
	r.write(forward)
	// The pod's old pair with this client is gone, and another pod's flow lies under the forward key of this reverse row.
	reverse.Src = netip.MustParseAddrPort("10.42.0.9:8080")
	r.write(reverse)
	result, err := Departed(r.k, []model.Socket{{Addr: reverse.Src.Addr()}})
	must(t, err)
	if result.Flows != 1 {
		t.Errorf("%+v", result)
	}
	r.check("left", "FLOW_TABLE forward TCP 198.51.100.7:8001")
}

// BenchmarkDeparted65536 is one pass over a full table for a thousand endpoints.
func BenchmarkDeparted65536(b *testing.B) {
	r := newRig(b, 1<<17)
	for i := range 1 << 15 {
		forward, reverse := pair(maps.FlowTable, model.TCP, uint16(i), 1000, 0)
		r.write(forward)
		r.write(reverse)
	}
	var gone []model.Socket
	for i := range 1000 {
		gone = append(gone, model.Socket{Addr: netip.AddrFrom4([4]byte{10, 43, byte(i >> 8), byte(i)})})
	}
	for b.Loop() {
		_, err := Departed(r.k, gone)
		must(b, err)
	}
}
