// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	gomaps "maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/bpffs"
	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/src/config"
	"github.com/beep-lb/beep/src/datapath/bpfobj"
	"github.com/beep-lb/beep/src/datapath/maps"
	"github.com/beep-lb/beep/src/datapath/pinfs"
	"github.com/beep-lb/beep/src/model"
	"github.com/beep-lb/beep/src/netdev"
)

var (
	ethernet  = netdev.Link{Index: 2, Name: "eth0", Type: unix.ARPHRD_ETHER}
	wireguard = netdev.Link{Index: 3, Name: "wg0", Type: unix.ARPHRD_NONE}
	loopback  = netdev.Link{Index: 1, Name: "lo", Type: unix.ARPHRD_LOOPBACK}
	peers     = []netip.Addr{netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("192.0.2.3"), netip.MustParseAddr("2001:db8:b::2")}
)

func settings() Settings {
	return Settings{
		Sizes:      maps.Sizes{FrontMeta: 8, FrontEndpoints: 64, FrontRing: 64, FrontSources: 32, Affinity: 64, Fragments: 64, FlowTable: 1024, FlowDatagrams: 256, FlowPending: 256, NodeAllow: 4, PodTargets: 4},
		GenevePort: 6082, GeneveVNI: 13,
	}
}

func pinDir(t *testing.T) *pinfs.Dir {
	t.Helper()
	require.Root(t)
	require.TCX(t)
	dir, err := pinfs.Create(filepath.Join(bpffs.New(t), "beep"))
	must(t, err)
	return dir
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// load loads and publishes, with no device between, and returns what was logged, without times and debug lines.
func load(t *testing.T, dir *pinfs.Dir, s Settings, uplinks ...netdev.Link) (*Datapath, string) {
	t.Helper()
	d, out, err := try(dir, s, uplinks...)
	must(t, err)
	t.Cleanup(func() { d.Close() })
	must(t, d.PinAside(), d.Drain(), d.Publish())
	return d, out.String()
}

func try(dir *pinfs.Dir, s Settings, uplinks ...netdev.Link) (*Datapath, *bytes.Buffer, error) {
	out := &bytes.Buffer{}
	handler := slog.NewTextHandler(out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
	d, err := Load(dir, s, uplinks, slog.New(handler))
	return d, out, err
}

func passes() asm.Instructions { return asm.Instructions{asm.Mov.Imm(asm.R0, -1), asm.Return()} }

// readsNowhere reads from an address that is a number.
func readsNowhere() asm.Instructions {
	return append(asm.Instructions{asm.Mov.Imm(asm.R1, 1), asm.LoadMem(asm.R2, asm.R1, 0, asm.Word)}, passes()...)
}

// pins is the id of each pinned map.
func pins(t *testing.T, dir *pinfs.Dir) map[string]ebpf.MapID {
	t.Helper()
	names, err := dir.Maps()
	must(t, err)
	ids := map[string]ebpf.MapID{}
	for _, name := range names {
		m, err := ebpf.LoadPinnedMap(dir.MapPath(name), nil)
		must(t, err)
		info, err := m.Info()
		must(t, err, m.Close())
		ids[name], _ = info.ID()
	}
	return ids
}

// rebuilt names the pins that are another map than before.
func rebuilt(before, now map[string]ebpf.MapID) string {
	var names []string
	for _, name := range slices.Sorted(gomaps.Keys(now)) {
		if before[name] != now[name] {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

func TestFirstLoadPinsEveryMap(t *testing.T) {
	dir := pinDir(t)
	d, log := load(t, dir, settings(), ethernet)
	if len(pins(t, dir)) != 15 || log != "" {
		t.Errorf("pins %v, log %q", pins(t, dir), log)
	}
	if d.Maps.Capacity() != settings().Sizes {
		t.Errorf("capacity %+v", d.Maps.Capacity())
	}
	k, err := maps.Open(dir.Path())
	must(t, err)
	defer k.Close()
	config, err := k.Config()
	if err != nil || config != (maps.Config{ABI: maps.ABI}) {
		t.Errorf("configuration %+v, %v", config, err)
	}
}

func TestSecondLoadReusesMapsAndRows(t *testing.T) {
	dir := pinDir(t)
	d, _ := load(t, dir, settings(), ethernet)
	must(t, d.Maps.PutPeer(peers[0]), d.Maps.SetConfig(maps.Config{ABI: maps.ABI, Epoch: 7, Underlay4: netip.MustParseAddr("192.0.2.1")}))
	before := pins(t, dir)

	again, log := load(t, dir, settings(), ethernet)
	if changed := rebuilt(before, pins(t, dir)); changed != "" || log != "" {
		t.Errorf("rebuilt %s, log %q", changed, log)
	}
	got, err := again.Maps.Peers()
	must(t, err)
	config, err := again.Maps.Config()
	must(t, err)
	if len(got) != 1 || config.Epoch != 7 {
		t.Errorf("peers %v, configuration %+v", got, config)
	}
}

func TestOtherSizesCarryTheRows(t *testing.T) {
	dir := pinDir(t)
	d, _ := load(t, dir, settings(), ethernet)
	for _, peer := range peers {
		must(t, d.Maps.PutPeer(peer))
	}
	for i := range uint32(5) {
		must(t, d.Maps.PutRingBlock(maps.RingKey{Front: 1, Block: i}, []uint16{uint16(i)}))
	}
	for i := range uint32(2) {
		must(t, d.Maps.PutEndpoint(maps.EndpointKey{Front: 1, Index: i}, model.Endpoint{Addr: peers[0], Port: 80}))
	}
	must(t, d.Maps.PutFront(maps.FrontMeta{ID: 1, Count: 2, RingSize: 5 * uint32(maps.RingBlock),
		Socket: model.Socket{Addr: peers[0], Port: 80, Proto: model.TCP}}))
	before := pins(t, dir)

	other := settings()
	other.Sizes.NodeAllow, other.Sizes.FrontRing, other.Sizes.FlowTable = 2, 128, 4096
	resized, log := load(t, dir, other, ethernet)
	want := `level=INFO msg="map rebuilt, all rows kept" map=FLOW_DATAGRAMS had="FLOW_TABLE: room for 1024 rows, now 4096" rows=0
level=INFO msg="map rebuilt, all rows kept" map=FLOW_PENDING had="FLOW_TABLE: room for 1024 rows, now 4096" rows=0
level=INFO msg="map rebuilt, all rows kept" map=FLOW_TABLE had="room for 1024 rows, now 4096" rows=0
level=INFO msg="map rebuilt, all rows kept" map=FRONT_ENDPOINTS had="FRONT_RING: room for 64 rows, now 128" rows=2
level=INFO msg="map rebuilt, all rows kept" map=FRONT_META had="FRONT_RING: room for 64 rows, now 128" rows=1
level=INFO msg="map rebuilt, all rows kept" map=FRONT_RING had="room for 64 rows, now 128" rows=5
level=INFO msg="map rebuilt, all rows kept" map=FRONT_SOURCES had="FRONT_RING: room for 64 rows, now 128" rows=0
level=WARN msg="map rebuilt, rows lost" map=NODE_ALLOW had="room for 4 rows, now 2" rows=3 lost=1
`
	if diff := cmp.Diff(want, log); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
	if changed := rebuilt(before, pins(t, dir)); changed != "FLOW_DATAGRAMS FLOW_PENDING FLOW_TABLE FRONT_ENDPOINTS FRONT_META FRONT_RING FRONT_SOURCES NODE_ALLOW" {
		t.Errorf("rebuilt %s", changed)
	}
	if resized.Maps.Capacity() != other.Sizes {
		t.Errorf("capacity %+v", resized.Maps.Capacity())
	}
	blocks, err := resized.Maps.RingBlocks()
	must(t, err)
	left, err := resized.Maps.Peers()
	must(t, err)
	if len(blocks) != 5 || blocks[maps.RingKey{Front: 1, Block: 4}][0] != 4 || len(left) != 2 {
		t.Errorf("ring %v, peers %v", blocks, left)
	}
}

func TestOtherFlagsCarryTheRows(t *testing.T) {
	dir := pinDir(t)
	d, _ := load(t, dir, settings())
	spec, err := bpfobj.LoadBeep()
	must(t, err)
	want := spec.Maps["NODE_ALLOW"]
	want.Flags, want.MaxEntries = unix.BPF_F_NO_PREALLOC, settings().Sizes.NodeAllow
	pinInstead(t, dir, want)
	_, log := load(t, dir, settings())
	if log != `level=INFO msg="map rebuilt, all rows kept" map=NODE_ALLOW had="flags 0x1, now 0x0" rows=0`+"\n" {
		t.Errorf("log %q", log)
	}
	must(t, d.Close())
}

// pinInstead replaces a pinned map by an empty one.
func pinInstead(t *testing.T, dir *pinfs.Dir, spec *ebpf.MapSpec) {
	t.Helper()
	m, err := ebpf.NewMap(spec)
	must(t, err, dir.Remove(dir.MapPath(spec.Name)))
	must(t, m.Pin(dir.MapPath(spec.Name)), m.Close())
}

func TestOtherRowsAreNotReused(t *testing.T) {
	dir := pinDir(t)
	load(t, dir, settings())
	pinInstead(t, dir, &ebpf.MapSpec{Name: "FRONT_META", Type: ebpf.Hash, KeySize: 20, ValueSize: 28, MaxEntries: 8, Flags: unix.BPF_F_NO_PREALLOC})
	pinInstead(t, dir, &ebpf.MapSpec{Name: "FLOW_TABLE", Type: ebpf.Hash, KeySize: 40, ValueSize: 72, MaxEntries: 1024})
	pinInstead(t, dir, &ebpf.MapSpec{Name: "NODE_ALLOW", Type: ebpf.Hash, KeySize: 4, ValueSize: 4, MaxEntries: 4})
	_, log := load(t, dir, settings(), ethernet)
	want := `level=WARN msg="map rebuilt empty" map=FLOW_DATAGRAMS had="FLOW_TABLE: type Hash, this build has LRUHash"
level=WARN msg="map rebuilt empty" map=FLOW_PENDING had="FLOW_TABLE: type Hash, this build has LRUHash"
level=WARN msg="map rebuilt empty" map=FLOW_TABLE had="type Hash, this build has LRUHash"
level=WARN msg="map rebuilt empty" map=FRONT_ENDPOINTS had="FRONT_META: values of 28 bytes, this build has 24"
level=WARN msg="map rebuilt empty" map=FRONT_META had="values of 28 bytes, this build has 24"
level=WARN msg="map rebuilt empty" map=FRONT_RING had="FRONT_META: values of 28 bytes, this build has 24"
level=WARN msg="map rebuilt empty" map=FRONT_SOURCES had="FRONT_META: values of 28 bytes, this build has 24"
level=WARN msg="map rebuilt empty" map=NODE_ALLOW had="keys of 4 bytes, this build has 16"
`
	if diff := cmp.Diff(want, log); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

// TestOtherABIRebuildsAll: sizes alone say nothing of what the bytes mean.
func TestOtherABIRebuildsAll(t *testing.T) {
	for name, abi := range map[string]uint32{"newer": maps.ABI + 1, "none written": 0} {
		t.Run(name, func(t *testing.T) {
			dir := pinDir(t)
			d, _ := load(t, dir, settings())
			must(t, d.Maps.PutPeer(peers[0]))
			config, err := ebpf.LoadPinnedMap(dir.MapPath("CONFIG"), nil)
			must(t, err)
			var zero uint32
			must(t, config.Update(&zero, &bpfobj.BeepConfig{Abi: abi}, ebpf.UpdateAny), config.Close())
			before := pins(t, dir)

			again, log := load(t, dir, settings(), ethernet)
			if changed := rebuilt(before, pins(t, dir)); len(strings.Fields(changed)) != 15 {
				t.Errorf("rebuilt only %s", changed)
			}
			lines := strings.Split(strings.TrimSpace(log), "\n")
			want := fmt.Sprintf(`level=WARN msg="map rebuilt empty" map=CONFIG had="layout %d, this build has %d"`, abi, maps.ABI)
			if len(lines) != 15 || lines[14] != want {
				t.Errorf("log\n%s\nwant fifteen lines, the last %s", log, want)
			}
			left, err := again.Maps.Peers()
			if err != nil || len(left) != 0 {
				t.Errorf("peers %v, %v", left, err)
			}
		})
	}
}

// TestNothingChangesOnAnError: each failure comes after the first map was staged.
func TestNothingChangesOnAnError(t *testing.T) {
	dir := pinDir(t)
	load(t, dir, settings())
	before := pins(t, dir)
	other := settings()
	other.Sizes.NodeAllow = 100
	tests := []struct {
		name    string
		prepare func(*Settings)
		uplinks []netdev.Link
		words   string
	}{
		{"an uplink that cannot be", nil, []netdev.Link{ethernet, loopback}, "interface lo is loopback"},
		{"a map that cannot be made", func(s *Settings) { s.Sizes.PodTargets = 0 }, nil, "make map POD_TARGETS with 0 rows"},
	}
	for _, test := range tests {
		s := other
		if test.prepare != nil {
			test.prepare(&s)
		}
		_, _, err := try(dir, s, test.uplinks...)
		if err == nil || !strings.Contains(err.Error(), test.words) {
			t.Errorf("%s: error %v, want one with %q", test.name, err, test.words)
		}
		if diff := cmp.Diff(before, pins(t, dir)); diff != "" {
			t.Errorf("%s: pins changed (-before +after):\n%s", test.name, diff)
		}
	}
	// A pin that is no map at all.
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, License: "GPL", Instructions: passes()})
	must(t, err, dir.Remove(dir.MapPath("DROPS")))
	must(t, program.Pin(dir.MapPath("DROPS")), program.Close())
	if _, _, err := try(dir, settings(), ethernet); err == nil || !strings.Contains(err.Error(), "DROPS is not a Map: remove the pin") {
		t.Errorf("a program pinned as DROPS: %v", err)
	}
}

func TestStaleStagedPinsGo(t *testing.T) {
	dir := pinDir(t)
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	must(t, err)
	defer m.Close()
	for _, name := range []string{"FLOW_TABLE_next", "GONE_next"} {
		clone, err := m.Clone()
		must(t, err, clone.Pin(dir.MapPath(name)), clone.Close())
	}
	load(t, dir, settings())
	if now := pins(t, dir); len(now) != 15 {
		t.Errorf("pins %v", now)
	}
}

// TestInstances: each uplink has programs of its own with its own constants, over the same maps.
func TestInstances(t *testing.T) {
	dir := pinDir(t)
	d, _ := load(t, dir, settings(), ethernet, wireguard)
	shared := map[ebpf.MapID]bool{}
	for _, id := range pins(t, dir) {
		shared[id] = true
	}
	own := map[ebpf.MapID]string{}
	for _, link := range []netdev.Link{ethernet, wireguard, ethernet} { // the third is made on demand
		programs, err := d.Instance(link)
		must(t, err)
		defer programs.Close()
		for _, program := range []*ebpf.Program{programs.BeepIngress, programs.BeepEgress} {
			info, err := program.Info()
			must(t, err)
			ids, _ := info.MapIDs()
			for _, id := range ids {
				if !shared[id] {
					own[id] = link.Name
				}
			}
		}
	}
	if len(own) != 9 {
		t.Errorf("maps of the instances' own: %v, want nine: constants, variables and the FIB's answers of each", own)
	}
	if _, err := d.Instance(loopback); err == nil {
		t.Error("loopback has an instance")
	}
}

func TestConstants(t *testing.T) {
	spec, err := bpfobj.LoadBeep()
	must(t, err)
	settings := SettingsOf(&config.Datapath{GenevePort: 6082, GeneveVNI: 13, NoEndpoints: "reject", CountPackets: true})
	settings.Handover = true
	must(t, settings.constants(1).set(spec, 0))
	var l2, vni uint32
	var port uint16
	var csum, reject, count, handover uint8
	must(t, spec.Variables["cfg_l2_len"].Get(&l2), spec.Variables["cfg_geneve_vni"].Get(&vni),
		spec.Variables["cfg_geneve_port"].Get(&port), spec.Variables["cfg_csum_ipv6"].Get(&csum),
		spec.Variables["cfg_reject"].Get(&reject), spec.Variables["cfg_count_packets"].Get(&count), spec.Variables["cfg_handover"].Get(&handover))
	if l2 != 0 || vni != 13 || port != 6082 || csum != 1 || reject != 1 || count != 1 || handover != 1 {
		t.Errorf("L2 %d, VNI %d, port %d, csum %d, reject %d, count %d, handover %d", l2, vni, port, csum, reject, count, handover)
	}
	delete(spec.Variables, "cfg_l2_len")
	if err := (constants{}).set(spec, 14); err == nil || !strings.Contains(err.Error(), "cfg_l2_len: no such variable") {
		t.Errorf("a missing variable: %v", err)
	}
}

// TestVerifierLogIsTold breaks a program in a way that only the verifier sees.
func TestVerifierLogIsTold(t *testing.T) {
	dir := pinDir(t)
	d, _ := load(t, dir, settings())
	var out bytes.Buffer
	d.log = slog.New(slog.NewTextHandler(&out, nil))
	d.spec = d.spec.Copy()
	d.spec.Programs["beep_ingress"].Instructions = readsNowhere()
	_, err := d.Instance(ethernet)
	if err == nil || !strings.Contains(err.Error(), "load the programs for interface eth0") || strings.Count(err.Error(), "\n") > 0 {
		t.Errorf("error %v", err)
	}
	if !strings.Contains(out.String(), "R1 invalid mem access") {
		t.Errorf("log %s", out.String())
	}
}

func TestCsumProbe(t *testing.T) {
	require.Root(t)
	if result, err := csumReplace(pseudoHeader); err != nil || result != 0 {
		t.Errorf("known flags: %d, %v", result, err)
	}
	if result, err := csumReplace(pseudoHeader | 1<<8); err != nil || result != -int32(unix.EINVAL) {
		t.Errorf("unknown flag: %d, %v", result, err)
	}
	knows, err := KnowsCsumIPv6()
	must(t, err)
	t.Logf("BPF_F_IPV6: %d", knows)
}
