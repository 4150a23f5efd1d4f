// SPDX-License-Identifier: Apache-2.0

package maps

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/google/go-cmp/cmp"

	"github.com/beep-lb/beep/harness/bpffs"
	"github.com/beep-lb/beep/src/config"
	"github.com/beep-lb/beep/src/datapath/bpfobj"
	"github.com/beep-lb/beep/src/datapath/pinfs"
	"github.com/beep-lb/beep/src/maglev"
	"github.com/beep-lb/beep/src/model"
)

func defaults() *config.Datapath {
	return &config.Datapath{MaxFronts: 1024, EndpointsPerFront: 4, FlowTableMaxEntries: 65536, NodeAllowMaxEntries: 32, PodTargetsMax: 128}
}

// TestDefaultSizes: what the flags' defaults ask is also what the object says, but for the ring.
func TestDefaultSizes(t *testing.T) {
	sizes := SizesOf(defaults())
	want := Sizes{FrontMeta: 1024, FrontEndpoints: 8192, FrontRing: 19526, FrontSources: 4096, FlowTable: 49152,
		FlowDatagrams: 16384, FlowPending: 16384, Affinity: 4096, Fragments: 2048, NodeAllow: 32, PodTargets: 128}
	if sizes != want {
		t.Errorf("sizes %+v, want %+v", sizes, want)
	}
	if len(sizes.ByMap()) != 11 || sizes.ByMap()["FRONT_RING"] != 19526 || sizes.ByMap()["FLOW_PENDING"] != 16384 {
		t.Errorf("by map: %v", sizes.ByMap())
	}
}

// TestRingsAlwaysFit fills FRONT_RING with the worst mixes of fronts: all of two sizes, and sizes at random.
func TestRingsAlwaysFit(t *testing.T) {
	sizes := []int{0, 1, 2, 3, 15, 16, 17, 18, 255, 256, 257, 1024, 1025, 4096, 4097, 16384, 16385, maglev.MaxKeys}
	for _, average := range []int{1, 2, 3, 4, 5, 16, 17, 100, 257, 4096} {
		const fronts = 1000
		room := SizesOf(&config.Datapath{MaxFronts: fronts, EndpointsPerFront: average}).FrontRing / generations
		worst := 0
		for _, many := range sizes {
			for _, few := range sizes {
				for n := 0; n <= fronts && n*many <= fronts*average; n++ {
					rest := min(fronts-n, (fronts*average-n*many)/max(few, 1))
					worst = max(worst, n*blocks(many)+rest*blocks(few))
				}
			}
		}
		random := rand.New(rand.NewPCG(1, uint64(average)))
		for range 100 {
			left, rows := fronts*average, 0
			for range fronts {
				n := min(random.IntN(2*average+20), left)
				rows, left = rows+blocks(n), left-n
			}
			worst = max(worst, rows)
		}
		if worst > int(room) {
			t.Errorf("%d endpoints a front: a spread takes %d blocks, and room is for %d", average, worst, room)
		}
		// Not much too large either; a mix of whole fronts may miss the bound by the blocks of one.
		if slack := float64(room) / float64(worst); slack > 1.1 {
			t.Errorf("%d endpoints a front: room for %d blocks, and no spread found takes over %d", average, room, worst)
		}
	}
}

// memlock is the kernel's own figure of a map, from /proc/self/fdinfo.
func memlock(t *testing.T, m *ebpf.Map) uint64 {
	t.Helper()
	file, err := os.Open(fmt.Sprintf("/proc/self/fdinfo/%d", m.FD()))
	must(t, err)
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if name, value, _ := strings.Cut(lines.Text(), ":"); name == "memlock" {
			bytes, err := strconv.ParseUint(strings.TrimSpace(value), 10, 64)
			must(t, err)
			return bytes
		}
	}
	t.Fatal("fdinfo has no memlock")
	return 0
}

// TestBytes compares the computed memory with the kernel's, empty and with rows.
func TestBytes(t *testing.T) {
	for _, flags := range []*config.Datapath{
		defaults(),
		{MaxFronts: 11, EndpointsPerFront: 4, FlowTableMaxEntries: 16384, NodeAllowMaxEntries: 32, PodTargetsMax: 128},
	} {
		sizes := SizesOf(flags)
		k := newKernel(t, sizes)
		const fronts, each = 8, 4
		for id := uint32(1); id <= fronts; id++ {
			must(t, k.PutFront(FrontMeta{Socket: model.Socket{Addr: addr("192.0.2.1"), Port: uint16(id), Proto: model.TCP}, ID: id}))
			for i := range uint32(each) {
				must(t, k.PutEndpoint(EndpointKey{Front: id, Index: i}, model.Endpoint{Addr: addr("10.42.0.5"), Port: 80}),
					k.PutRingBlock(RingKey{Front: id, Block: i}, []uint16{1}))
			}
		}
		rows := map[string]uint64{"FRONT_META": fronts, "FRONT_ENDPOINTS": fronts * each, "FRONT_RING": fronts * each}
		var total uint64
		for name, memory := range sizes.Bytes() {
			want, got := memory.Fixed+rows[name]*memory.Row, memlock(t, *fields(&k.maps)[name])
			total += want
			// The kernel adds some hundred bytes of its own to each map.
			if ratio := float64(got) / float64(want); got > want+2048 && ratio > 1.15 || want > 0 && ratio < 1/1.15 {
				t.Errorf("%s: computed %d bytes, and the kernel counts %d", name, want, got)
			}
		}
		t.Logf("%d fronts and %d flows: %d KiB", flags.MaxFronts, flags.FlowTableMaxEntries, total>>10)
	}
}

func TestFill(t *testing.T) {
	k := newKernel(t, small)
	must(t, k.PutPeer(addr("192.0.2.2")), k.PutTarget(socket("udp/10.42.0.5:53")), k.PutTarget(socket("tcp/10.42.0.5:53")))
	key, row := wireFlow(1)
	must(t, k.maps.FLOW_TABLE.Update(&key, &row, ebpf.UpdateAny))
	fills, err := k.Fill()
	must(t, err)
	var got []string
	for _, f := range fills {
		got = append(got, fmt.Sprintf("%s %d/%d", f.Map, f.Entries, f.Max))
		if f.Bytes == 0 && f.Map != "FRONT_SOURCES" { // a trie is nothing but its rows
			t.Errorf("%s takes no memory", f.Map)
		}
	}
	drops := 2 * (len(Reasons()) + 1)
	want := []string{"AFFINITY 0/64", "BUDGET 1/1", "CONFIG 1/1", fmt.Sprintf("DROPS %d/%d", drops, drops), "FLOW_DATAGRAMS 0/512",
		"FLOW_PENDING 0/256", "FLOW_TABLE 1/1024",
		"FRAGMENTS 0/64", "FRONT_ENDPOINTS 0/4", "FRONT_META 0/3", "FRONT_RING 0/2", "FRONT_SOURCES 0/3", "NODE_ALLOW 1/2", "POD_TARGETS 2/2",
		"TRAFFIC 11/11"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fill (-want +got):\n%s", diff)
	}
}

// TestABIIsTheObjects reads the number where the programs have it.
func TestABIIsTheObjects(t *testing.T) {
	header, err := os.ReadFile("../../../bpf/lib/abi.h")
	must(t, err)
	define := regexp.MustCompile(`(?m)^#define BEEP_ABI (\d+)$`).FindSubmatch(header)
	if define == nil || string(define[1]) != strconv.Itoa(ABI) {
		t.Errorf("bpf/lib/abi.h has BEEP_ABI %s, and the Go constant is %d", define, ABI)
	}
}

// pinAll pins every map as the loader does.
func pinAll(t *testing.T, k *Kernel) string {
	t.Helper()
	dir, err := pinfs.Create(filepath.Join(bpffs.New(t), "beep"))
	must(t, err)
	for name, m := range fields(&k.maps) {
		must(t, (*m).Pin(dir.MapPath(name)))
	}
	return dir.Path()
}

func TestOpen(t *testing.T) {
	k := newKernel(t, small)
	dir := pinAll(t, k)
	must(t, k.PutPeer(addr("192.0.2.2")))
	opened, err := Open(dir)
	must(t, err)
	same(t, opened.Peers, []netip.Addr{addr("192.0.2.2")})
	if opened.Capacity() != small {
		t.Errorf("capacity %+v", opened.Capacity())
	}
	must(t, opened.Close())

	wrong := bpfobj.BeepConfig{Abi: ABI + 1}
	var zero uint32
	must(t, k.maps.CONFIG.Update(&zero, &wrong, ebpf.UpdateAny))
	_, err = Open(dir)
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("layout %d", ABI+1)) {
		t.Errorf("another layout: %v", err)
	}

	must(t, os.Remove(dir+"/maps/DROPS"))
	_, err = Open(dir)
	refused(t, err, fs.ErrNotExist, "DROPS", "beep load")

	other, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Hash, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	must(t, err)
	defer other.Close()
	must(t, other.Pin(dir+"/maps/DROPS"))
	_, err = Open(dir)
	if err == nil || !strings.Contains(err.Error(), "DROPS is Hash with keys of 4 and values of 8 bytes") {
		t.Errorf("another type: %v", err)
	}
	if _, err := Open(t.TempDir()); !errors.Is(err, pinfs.ErrNotBPFFS) {
		t.Errorf("a directory elsewhere: %v", err)
	}
}
