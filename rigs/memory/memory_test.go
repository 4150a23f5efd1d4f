// SPDX-License-Identifier: Apache-2.0

// Package memory is the rig of what beep costs a node in memory: its maps by the kernel's own count, and its process.
// Invariant: what is expected is computed from flags and rows, by the package that sizes the maps.
package memory_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/beep"
	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/src/config"
	"github.com/beep-lb/beep/src/datapath/maps"
	"github.com/beep-lb/beep/src/reconcile"
)

func TestMemory(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "rig memory")
}

var _ = AfterSuite(func() { require.Report(GinkgoWriter) })

// tolerance is how far the kernel's count may be from what was computed.
const tolerance = 1.15

const mib = 1 << 20

func plan() topo.Plan { return topo.OneLAN(1, topo.Options{}) }

var _ = It("is drawn in its README", func() { scene.CheckReadme(GinkgoT(), plan()) })

// rig is one node whose fixtures name many fronts; nobody dials them.
type rig struct {
	*scene.Scene
	flags config.Datapath
}

// newRig starts beep with a number of flows and the other flags' defaults.
func newRig(flows int, fixtures []string) rig {
	r := rig{
		Scene: scene.New(GinkgoT(), plan(), true),
		flags: config.Datapath{MaxFronts: 1024, EndpointsPerFront: 4, FlowTableMaxEntries: flows, NodeAllowMaxEntries: 32, PodTargetsMax: 128},
	}
	r.Beep(beep.Options{Fixtures: fixtures, Args: []string{"--flow-table-max-entries", strconv.Itoa(flows)}})
	return r
}

// fill is how full a map is, and what it takes.
type fill struct {
	Map         string
	Entries     uint64
	Max         uint64
	MemoryBytes uint64
	Fixed       bool
}

func (r rig) fills() []fill {
	GinkgoHelper()
	out, err := r.Nodes["node-a"].Tool("status", "-o", "json")
	Expect(err).NotTo(HaveOccurred())
	var status struct{ Maps []fill }
	Expect(json.Unmarshal([]byte(out), &status)).To(Succeed())
	return status.Maps
}

// entries is the number of rows of a map.
func (r rig) entries(name string) uint64 {
	GinkgoHelper()
	fills := r.fills()
	i := slices.IndexFunc(fills, func(f fill) bool { return f.Map == name })
	Expect(i).NotTo(Equal(-1), name)
	return fills[i].Entries
}

// check compares each map, and all of them, with what was computed, and returns the bytes of all. It prints them.
func (r rig) check() uint64 {
	GinkgoHelper()
	expected := maps.SizesOf(&r.flags).Bytes()
	var counted, computed uint64
	for _, f := range r.fills() {
		if f.Fixed { // of a few rows that no flag changes
			computed += f.MemoryBytes
			counted += f.MemoryBytes
			continue
		}
		want := expected[f.Map].Fixed + expected[f.Map].Row*f.Entries
		counted += f.MemoryBytes
		computed += want
		fmt.Fprintf(GinkgoWriter, "%-16s %6d of %6d rows  %9d bytes, computed %9d\n", f.Map, f.Entries, f.Max, f.MemoryBytes, want)
		// The allocations of an LRU map of few rows are rounded up more than a map's weight in the sum is worth.
		if want > 64<<10 {
			Expect(ratio(f.MemoryBytes, want)).To(And(BeNumerically("<=", tolerance), BeNumerically(">=", 1/tolerance)), f.Map)
		}
	}
	Expect(ratio(counted, computed)).To(And(BeNumerically("<=", tolerance), BeNumerically(">=", 1/tolerance)))
	AddReportEntry("maps", ReportEntryVisibilityAlways, fmt.Sprintf("%.2f MiB, %.3f of the computed %.2f MiB; process %.1f MiB resident",
		float64(counted)/mib, ratio(counted, computed), float64(computed)/mib, float64(r.resident())/mib))
	return counted
}

func ratio(a, b uint64) float64 { return float64(a) / float64(b) }

// resident is the resident memory of the daemon in bytes, by its own metric.
func (r rig) resident() uint64 {
	GinkgoHelper()
	client := &http.Client{Transport: &http.Transport{DialContext: r.NS("node-a").DialContext, DisableKeepAlives: true}}
	response, err := client.Get("http://127.0.0.1:9962/metrics")
	Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	for line := range strings.Lines(string(body)) {
		if value, found := strings.CutPrefix(line, "process_resident_memory_bytes "); found {
			bytes, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			Expect(err).NotTo(HaveOccurred())
			return uint64(bytes)
		}
	}
	Fail("the metrics lack the resident memory")
	return 0
}

// fixtures are fronts of so many endpoints each, which are on a peer, and so many source ranges.
func fixtures(fronts, endpoints, sources int) []string {
	all := []string{"peer=192.0.2.12"}
	for i := range fronts {
		front := fmt.Sprintf("tcp/192.0.2.%d:%d", 11+i/512, 1000+i%512)
		for j := range endpoints {
			all = append(all, fmt.Sprintf("front=%s,10.42.%d.%d:8080@192.0.2.12", front, j, i%200+1))
		}
		for j := range sources {
			all = append(all, fmt.Sprintf("source=%s,10.%d.%d.0/24", front, j, i%256))
		}
	}
	return all
}

var _ = Describe("the memory of the maps", Label("netns"), func() {
	for _, tt := range []struct {
		flows int
		below uint64
	}{
		{16384, 6 * mib},
		{65536, 16 * mib},
	} {
		It(fmt.Sprintf("of 11 fronts and %d flows is below %d MiB", tt.flows, tt.below/mib), func() {
			r := newRig(tt.flows, fixtures(11, 4, 2))
			Expect(r.entries("FRONT_META")).To(BeEquivalentTo(11))
			Expect(r.check()).To(BeNumerically("<", tt.below))
		})
	}

	It("of full maps is what was computed", func() {
		// Eight endpoints a front are what the two generations of four leave room for.
		all := append(fixtures(1024, 8, 4), "node=192.0.2.11", "node=2001:db8:b::11")
		for i := range 31 {
			all = append(all, fmt.Sprintf("peer=198.18.0.%d", i+1))
		}
		for i := range 128 {
			all = append(all, fmt.Sprintf("target=tcp/10.43.0.%d:8080", i+1))
		}
		desired, err := config.ParseFixtures(all)
		Expect(err).NotTo(HaveOccurred())
		r := newRig(65536, nil)
		// Not by the command line, which is too long for this.
		kernel, err := maps.Open(r.Nodes["node-a"].PinDir())
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(kernel.Close)
		_, err = reconcile.New(kernel, time.Now).Apply(desired)
		Expect(err).NotTo(HaveOccurred())
		for _, f := range r.fills() {
			if slices.Contains([]string{"FRONT_META", "FRONT_ENDPOINTS", "FRONT_SOURCES", "NODE_ALLOW", "POD_TARGETS"}, f.Map) {
				Expect(f.Entries).To(Equal(f.Max), f.Map)
			}
		}
		r.check()
	})

	It("does not grow with changes", func() {
		r := newRig(16384, fixtures(11, 4, 2))
		before := r.check()
		for n := range 4 {
			Expect(beep.ChangeAll(r.Nodes, r.Topology, beep.Options{Fixtures: fixtures(11, n, n), Args: []string{"--flow-table-max-entries", "16384"}})).To(Succeed())
		}
		Expect(beep.ChangeAll(r.Nodes, r.Topology, beep.Options{Fixtures: fixtures(11, 4, 2), Args: []string{"--flow-table-max-entries", "16384"}})).To(Succeed())
		Eventually(func() uint64 { return r.entries("FRONT_ENDPOINTS") }, "10s").Should(BeEquivalentTo(44), "the rows of before are collected")
		Expect(r.check()).To(Equal(before))
	})
})
