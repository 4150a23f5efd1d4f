// SPDX-License-Identifier: Apache-2.0

// Package telemetry is what beep tells monitoring: metrics that are read from the maps when somebody asks, and
// health over HTTP. Invariant: it only reads, what the maps count is counted nowhere else, and a scrape that could
// not read a map fails instead of reporting zero.
package telemetry

import (
	"net/http"
	"runtime"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/beep-lb/beep/src/datapath/maps"
)

// Source is the maps as metrics need them; maps.Kernel is one.
type Source interface {
	Drops() ([]maps.DropRow, error)
	Traffic() (maps.Traffic, error)
	Flows(visit func(maps.Flow) bool) error
	Fill() ([]maps.Fill, error)
	Fronts() ([]maps.FrontMeta, error)
}

// Node is what a daemon has to tell beside its maps. Its functions are called while a request waits, from any
// goroutine.
type Node struct {
	// Version is the build's.
	Version string
	// CountsPackets says that the programs count each packet that they forward; what they do not count is not told.
	CountsPackets bool
	// Uplinks says of each uplink's device whether the programs are attached to it.
	Uplinks func() (map[string]bool, error)
	// Ready says why the node does not forward as it should, or nil if it does.
	Ready func() error
}

// Telemetry is the metrics and the health of one daemon.
type Telemetry struct {
	source   Source
	node     Node
	registry *prometheus.Registry
	swept    *prometheus.CounterVec
}

// New prepares to tell of a node.
func New(source Source, node Node) *Telemetry {
	t := &Telemetry{
		source: source, node: node, registry: prometheus.NewRegistry(),
		swept: prometheus.NewCounterVec(prometheus.CounterOpts{Name: sweptName, Help: sweptHelp}, []string{"kind"}),
	}
	t.registry.MustRegister(t, t.swept, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return t
}

// Swept counts rows that the sweep removed, by its reason.
func (t *Telemetry) Swept(kind string, rows int) { t.swept.WithLabelValues(kind).Add(float64(rows)) }

// Handler serves /metrics; /healthz, which is 200 as long as the daemon answers; and /readyz, which is 200 if the
// node forwards as it should and 503 with the reason if not.
func (t *Telemetry) Handler() http.Handler { return handler(t.registry, t.node.Ready) }

func handler(registry *prometheus.Registry, ready func() error) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte("ok\n")) //nolint:errcheck // the asker is gone
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Write([]byte("ready\n")) //nolint:errcheck // the asker is gone
	})
	return mux
}

// Describe is for prometheus.Collector.
func (t *Telemetry) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{
		packets, bytes, newFlows, remapped, dropPackets, dropBytes, flows,
		mapEntries, mapMax, mapBytes, fronts, endpoints, uplink, buildInfo,
	} {
		to <- desc
	}
}

// Collect is for prometheus.Collector: it reads every map.
func (t *Telemetry) Collect(to chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	t.collectTraffic(to)
	t.collectDrops(to)
	t.collectFlows(to, gauge)
	t.collectFill(to, gauge)
	t.collectFronts(to, gauge)
	t.collectUplinks(to, gauge)
	gauge(buildInfo, 1, t.node.Version, strconv.Itoa(maps.ABI), runtime.Version())
}

func (t *Telemetry) collectTraffic(to chan<- prometheus.Metric) {
	traffic, err := t.source.Traffic()
	if err != nil {
		to <- prometheus.NewInvalidMetric(packets, err)
		return
	}
	count := func(desc *prometheus.Desc, value uint64, labels ...string) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(value), labels...)
	}
	if t.node.CountsPackets {
		for _, row := range traffic.Rows {
			count(packets, row.Packets, row.From, row.To)
			count(bytes, row.Bytes, row.From, row.To)
		}
	}
	count(newFlows, traffic.NewFlows, "client")
	count(newFlows, traffic.NewFlowsHere, "tunnel")
	count(remapped, traffic.Remapped)
}

func (t *Telemetry) collectDrops(to chan<- prometheus.Metric) {
	rows, err := t.source.Drops()
	if err != nil {
		to <- prometheus.NewInvalidMetric(dropPackets, err)
		return
	}
	for _, row := range rows {
		labels := []string{row.Reason.String(), row.Direction.String()}
		to <- prometheus.MustNewConstMetric(dropPackets, prometheus.CounterValue, float64(row.Packets), labels...)
		to <- prometheus.MustNewConstMetric(dropBytes, prometheus.CounterValue, float64(row.Bytes), labels...)
	}
}

type gaugeFunc func(desc *prometheus.Desc, value float64, labels ...string)

func (t *Telemetry) collectFlows(to chan<- prometheus.Metric, gauge gaugeFunc) {
	type class struct {
		state State
		table string
	}
	counts := map[class]int{}
	for _, state := range States {
		for _, table := range maps.FlowTables {
			counts[class{state, table}] = 0
		}
	}
	err := t.source.Flows(func(flow maps.Flow) bool {
		// The reverse row belongs to the same flow.
		if flow.Kind != maps.Reverse {
			counts[class{StateOf(flow), flow.Table}]++
		}
		return true
	})
	if err != nil {
		to <- prometheus.NewInvalidMetric(flows, err)
		return
	}
	for class, count := range counts {
		gauge(flows, float64(count), string(class.state), class.table)
	}
}

func (t *Telemetry) collectFill(to chan<- prometheus.Metric, gauge gaugeFunc) {
	fills, err := t.source.Fill()
	if err != nil {
		to <- prometheus.NewInvalidMetric(mapEntries, err)
		return
	}
	for _, fill := range fills {
		gauge(mapEntries, float64(fill.Entries), fill.Map)
		gauge(mapMax, float64(fill.Max), fill.Map)
		gauge(mapBytes, float64(fill.Bytes), fill.Map)
	}
}

func (t *Telemetry) collectFronts(to chan<- prometheus.Metric, gauge gaugeFunc) {
	rows, err := t.source.Fronts()
	if err != nil {
		to <- prometheus.NewInvalidMetric(fronts, err)
		return
	}
	count := 0
	for _, front := range rows {
		count += int(front.Count)
	}
	gauge(fronts, float64(len(rows)))
	gauge(endpoints, float64(count))
}

func (t *Telemetry) collectUplinks(to chan<- prometheus.Metric, gauge gaugeFunc) {
	uplinks, err := t.node.Uplinks()
	if err != nil {
		to <- prometheus.NewInvalidMetric(uplink, err)
		return
	}
	for device, attached := range uplinks {
		value := 0.0
		if attached {
			value = 1
		}
		gauge(uplink, value, device)
	}
}
