// SPDX-License-Identifier: Apache-2.0

package maps

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/src/datapath/bpfobj"
	"github.com/beep-lb/beep/src/model"
)

var addrs = cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{})

var small = Sizes{FrontMeta: 3, FrontEndpoints: 4, FrontRing: 2, FrontSources: 3, FlowTable: 1024, FlowDatagrams: 512, FlowPending: 256,
	Affinity: 64, Fragments: 64, NodeAllow: 2, PodTargets: 2}

// newKernel makes the maps of the object, of those sizes, without its programs.
func newKernel(t testing.TB, sizes Sizes) *Kernel {
	t.Helper()
	require.Root(t)
	spec, err := bpfobj.LoadBeep()
	if err != nil {
		t.Fatal(err)
	}
	for name, entries := range sizes.ByMap() {
		spec.Maps[name].MaxEntries = entries
	}
	var m bpfobj.BeepMaps
	if err := spec.LoadAndAssign(&m, nil); err != nil {
		t.Fatal(err)
	}
	k := New(m)
	t.Cleanup(func() { k.Close() })
	if err := k.SetConfig(Config{ABI: ABI}); err != nil {
		t.Fatal(err)
	}
	return k
}

// both runs one specification on the Fake and on the kernel.
func both(t *testing.T, spec func(t *testing.T, m Maps)) {
	t.Run("fake", func(t *testing.T) { spec(t, NewFake(small)) })
	t.Run("kernel", func(t *testing.T) { spec(t, newKernel(t, small)) })
}

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

func socket(s string) model.Socket {
	parsed, err := model.ParseSocket(s)
	if err != nil {
		panic(err)
	}
	return parsed
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// same reads with list and compares.
func same[T any](t *testing.T, list func() (T, error), want T) {
	t.Helper()
	got, err := list()
	must(t, err)
	if diff := cmp.Diff(want, got, addrs, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// refused checks that an error is of its kind and names what it must.
func refused(t *testing.T, err, is error, names ...string) {
	t.Helper()
	if !errors.Is(err, is) {
		t.Fatalf("error %v, want %v", err, is)
	}
	for _, name := range names {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("error %q does not name %q", err, name)
		}
	}
}

func TestEmptyMapsListNothing(t *testing.T) {
	both(t, func(t *testing.T, m Maps) {
		same(t, m.Fronts, nil)
		same(t, m.Endpoints, nil)
		same(t, m.RingBlocks, nil)
		same(t, m.Peers, nil)
		same(t, m.Targets, nil)
		same(t, m.Config, Config{ABI: ABI})
		same(t, func() (Sizes, error) { return m.Capacity(), nil }, small)
	})
}

func TestFronts(t *testing.T) {
	both(t, func(t *testing.T, m Maps) {
		a := FrontMeta{Socket: socket("tcp/192.0.2.1:80"), ID: 7, Generation: 3, Count: 2, RingSize: 101}
		b := FrontMeta{Socket: socket("udp/192.0.2.1:80"), ID: 8, ClientIPAffinity: true}
		c := FrontMeta{Socket: socket("tcp/[2001:db8:b::1]:443"), ID: 9, Generation: 1 << 31, Count: 1}
		must(t, m.PutFront(c), m.PutFront(b), m.PutFront(a))
		same(t, m.Fronts, []FrontMeta{a, b, c})

		d := FrontMeta{Socket: socket("tcp/192.0.2.2:80"), ID: 10}
		refused(t, m.PutFront(d), ErrCapacity, "FRONT_META", "TCP/192.0.2.2:80", "--max-fronts", "3 rows")
		a.Generation = 4
		must(t, m.PutFront(a)) // a row that is there can be replaced in a full map
		same(t, m.Fronts, []FrontMeta{a, b, c})

		must(t, m.DeleteFront(b.Socket), m.PutFront(d))
		same(t, m.Fronts, []FrontMeta{a, d, c})
		refused(t, m.DeleteFront(b.Socket), ErrNoRow, "UDP/192.0.2.1:80", "FRONT_META")
	})
}

func TestEndpointGenerationsAreIndependent(t *testing.T) {
	both(t, func(t *testing.T, m Maps) {
		local := model.Endpoint{Addr: addr("10.42.0.5"), Port: 8080}
		remote := model.Endpoint{Addr: addr("2001:db8:a::5"), Port: 53, Peer: addr("192.0.2.2")}
		old, next := EndpointKey{Front: 1, Generation: 1}, EndpointKey{Front: 1, Generation: 2}
		must(t, m.PutEndpoint(old, local), m.PutEndpoint(next, remote))
		same(t, m.Endpoints, map[EndpointKey]model.Endpoint{old: local, next: remote})
		must(t, m.DeleteEndpoint(old))
		same(t, m.Endpoints, map[EndpointKey]model.Endpoint{next: remote})
		refused(t, m.DeleteEndpoint(old), ErrNoRow, "endpoint 0 of front 1, generation 1")

		for index := range uint32(3) {
			must(t, m.PutEndpoint(EndpointKey{Front: 2, Index: index}, local))
		}
		refused(t, m.PutEndpoint(old, local), ErrCapacity, "FRONT_ENDPOINTS", "--endpoints-per-front")
	})
}

func TestRingBlocks(t *testing.T) {
	both(t, func(t *testing.T, m Maps) {
		full, short := make([]uint16, RingBlock), []uint16{1, 0, 1}
		for i := range full {
			full[i] = uint16(i) + 65400
		}
		a, b := RingKey{Front: 1, Generation: 2, Block: 0}, RingKey{Front: 1, Generation: 2, Block: 1}
		must(t, m.PutRingBlock(a, full), m.PutRingBlock(b, short))
		padded := append(slices.Clone(short), make([]uint16, RingBlock-len(short))...)
		same(t, m.RingBlocks, map[RingKey][]uint16{a: full, b: padded})
		refused(t, m.PutRingBlock(RingKey{Front: 2}, short), ErrCapacity, "FRONT_RING", "ring block 0 of front 2")
		must(t, m.DeleteRingBlock(a))
		refused(t, m.DeleteRingBlock(a), ErrNoRow)
		for _, wrong := range [][]uint16{nil, make([]uint16, RingBlock+1)} {
			if err := m.PutRingBlock(a, wrong); err == nil {
				t.Errorf("a block of %d indexes was written", len(wrong))
			}
		}
	})
}

func TestPeersAndTargetsRaiseTheEpochWhenTheyGo(t *testing.T) {
	both(t, func(t *testing.T, m Maps) {
		config := Config{Seed: [16]byte{1, 15: 2}, Underlay6: addr("2001:db8:b::1"), ABI: ABI, Epoch: 41}
		must(t, m.SetConfig(config))
		v4, v6 := addr("192.0.2.2"), addr("2001:db8:b::2")
		must(t, m.PutPeer(v6), m.PutPeer(v4), m.PutPeer(v4))
		same(t, m.Peers, []netip.Addr{v4, v6})
		refused(t, m.PutPeer(addr("192.0.2.3")), ErrCapacity, "NODE_ALLOW", "--node-allow-max-entries")
		tcp, udp := socket("tcp/10.42.0.5:8080"), socket("udp/10.42.0.5:8080")
		must(t, m.PutTarget(udp), m.PutTarget(tcp))
		same(t, m.Targets, []model.Socket{tcp, udp})
		refused(t, m.PutTarget(socket("tcp/10.42.0.6:1")), ErrCapacity, "POD_TARGETS", "--pod-targets-max-entries")
		same(t, m.Config, config)

		must(t, m.DeletePeer(v4))
		config.Epoch++
		same(t, m.Config, config)
		must(t, m.DeleteTarget(tcp))
		config.Epoch++
		same(t, m.Config, config)
		same(t, m.Peers, []netip.Addr{v6})
		same(t, m.Targets, []model.Socket{udp})
		refused(t, m.DeletePeer(v4), ErrNoRow, "192.0.2.2", "NODE_ALLOW")
		refused(t, m.DeleteTarget(tcp), ErrNoRow, "TCP/10.42.0.5:8080", "POD_TARGETS")
		same(t, m.Config, config)
	})
}

// TestWhatNoRowCanHold: each is refused before the kernel is asked, and nothing is written.
func TestWhatNoRowCanHold(t *testing.T) {
	mapped, zoned := netip.MustParseAddr("::ffff:192.0.2.1"), netip.MustParseAddr("fe80::1%eth0")
	both(t, func(t *testing.T, m Maps) {
		good := socket("tcp/192.0.2.1:80")
		tests := []struct {
			name  string
			do    func() error
			words string
		}{
			{"a mapped peer", func() error { return m.PutPeer(mapped) }, "::ffff:192.0.2.1"},
			{"a peer with a zone", func() error { return m.PutPeer(zoned) }, "zone"},
			{"no peer", func() error { return m.PutPeer(netip.Addr{}) }, "unmapped"},
			{"any address", func() error { return m.PutPeer(netip.IPv6Unspecified()) }, "unicast"},
			{"another protocol", func() error { return m.PutTarget(model.Socket{Addr: good.Addr, Port: 1, Proto: 132}) }, "SCTP"},
			{"a front without id", func() error { return m.PutFront(FrontMeta{Socket: good}) }, "id 0"},
			{"a mapped front", func() error {
				return m.PutFront(FrontMeta{Socket: model.Socket{Addr: mapped, Proto: model.TCP}, ID: 1})
			}, "front"},
			{"a mapped endpoint", func() error { return m.PutEndpoint(EndpointKey{}, model.Endpoint{Addr: mapped}) }, "endpoint 0"},
			{"a mapped peer of an endpoint", func() error {
				return m.PutEndpoint(EndpointKey{}, model.Endpoint{Addr: good.Addr, Peer: mapped})
			}, "peer"},
			{"another layout", func() error { return m.SetConfig(Config{ABI: ABI + 1}) }, "layout"},
			{"a mapped underlay", func() error { return m.SetConfig(Config{ABI: ABI, Underlay4: mapped}) }, "IPv4 underlay"},
		}
		for _, test := range tests {
			if err := test.do(); err == nil || !strings.Contains(err.Error(), test.words) {
				t.Errorf("%s: error %v, want one with %q", test.name, err, test.words)
			}
		}
		same(t, m.Fronts, nil)
		same(t, m.Endpoints, nil)
		same(t, m.Peers, nil)
		same(t, m.Targets, nil)
		same(t, m.Config, Config{ABI: ABI})
	})
}

func TestFakeFailsOnPurpose(t *testing.T) {
	f := NewFake(small)
	var calls []Call
	f.Inject(func(call Call) error {
		calls = append(calls, call)
		if len(calls) == 2 {
			return unix.ENOMEM
		}
		return nil
	})
	a, b := addr("192.0.2.2"), addr("192.0.2.3")
	must(t, f.PutPeer(a))
	refused(t, f.PutPeer(b), ErrNoMemory, "192.0.2.3", "NODE_ALLOW", "cannot allocate memory")
	must(t, f.DeletePeer(a))
	want := []Call{{Put, "NODE_ALLOW"}, {Put, "NODE_ALLOW"}, {Delete, "NODE_ALLOW"}, {List, "CONFIG"}, {Put, "CONFIG"}}
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	f.Inject(nil)
	same(t, f.Peers, nil)

	fail := func(seed uint64) (failed []int) {
		f.Inject(Randomly(seed, 0.3, unix.E2BIG))
		for i := range 100 {
			if err := f.PutPeer(a); err != nil {
				refused(t, err, ErrCapacity)
				failed = append(failed, i)
			}
		}
		return failed
	}
	first := fail(1)
	if len(first) < 10 || len(first) > 60 || !slices.Equal(first, fail(1)) || slices.Equal(first, fail(2)) {
		t.Errorf("failures at random: %v", first)
	}
}

// TestKernelErrnoIsNamed: the library would call E2BIG "key too big".
func TestKernelErrnoIsNamed(t *testing.T) {
	k := newKernel(t, small)
	frozen := k.maps.NODE_ALLOW
	must(t, frozen.Freeze())
	err := k.PutPeer(addr("192.0.2.2"))
	refused(t, err, unix.EPERM, "write 192.0.2.2 in NODE_ALLOW: operation not permitted")
	if errors.Is(err, ErrCapacity) || errors.Is(err, ebpf.ErrKeyNotExist) {
		t.Errorf("error %v", err)
	}
}
