// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/beep-lb/beep/src/datapath/maps"
)

// source is what the maps would say.
type source struct {
	traffic maps.Traffic
	drops   []maps.DropRow
	flows   []maps.Flow
	fills   []maps.Fill
	fronts  []maps.FrontMeta
	err     error
}

func (s *source) Drops() ([]maps.DropRow, error)    { return s.drops, s.err }
func (s *source) Traffic() (maps.Traffic, error)    { return s.traffic, s.err }
func (s *source) Fill() ([]maps.Fill, error)        { return s.fills, s.err }
func (s *source) Fronts() ([]maps.FrontMeta, error) { return s.fronts, s.err }
func (s *source) Flows(visit func(maps.Flow) bool) error {
	for _, flow := range s.flows {
		visit(flow)
	}
	return s.err
}

func sample() *source {
	flow := func(kind maps.Kind, table string, flags maps.Flags) maps.Flow {
		return maps.Flow{FlowKey: maps.FlowKey{Kind: kind}, Table: table, Flags: flags}
	}
	return &source{
		traffic: maps.Traffic{
			Rows:     []maps.TrafficRow{{Path: maps.Path{From: "client", To: "tunnel"}, Packets: 7, Bytes: 700}},
			NewFlows: 4, NewFlowsHere: 2, Remapped: 1,
		},
		drops: []maps.DropRow{
			{Reason: maps.Reasons()[0], Direction: maps.Ingress, Packets: 3, Bytes: 180},
			{Reason: maps.Reasons()[0], Direction: maps.Egress},
		},
		flows: []maps.Flow{
			flow(maps.Forward, maps.FlowTable, maps.Replied|maps.Paired),
			flow(maps.Reverse, maps.FlowTable, maps.Replied|maps.Paired),
			flow(maps.Backend, maps.FlowTable, maps.Replied|maps.Paired|maps.Tunnelled),
			flow(maps.Reverse, maps.FlowTable, maps.Replied|maps.Paired|maps.Tunnelled),
			flow(maps.Forward, maps.FlowTable, maps.FinClient),
			flow(maps.Forward, maps.FlowTable, maps.FinClient|maps.FinEndpoint|maps.Closed),
			flow(maps.Forward, maps.FlowDatagrams, maps.Replied|maps.Paired),
			flow(maps.Reverse, maps.FlowDatagrams, maps.Replied|maps.Paired),
			flow(maps.Forward, maps.FlowPending, 0),
			flow(maps.Forward, maps.FlowPending, maps.Closed),
		},
		fills:  []maps.Fill{{Map: "FRONT_META", Entries: 2, Max: 1024, Bytes: 4096}},
		fronts: []maps.FrontMeta{{ID: 1, Count: 3}, {ID: 2, Count: 2}},
	}
}

func node(ready error) Node {
	return Node{
		Version: "v1.2.3", CountsPackets: true,
		Uplinks: func() (map[string]bool, error) { return map[string]bool{"eth0": true, "wg0": false}, nil },
		Ready:   func() error { return ready },
	}
}

func TestMetrics(t *testing.T) {
	telemetry := New(sample(), node(nil))
	telemetry.Swept("tcp-idle", 2)
	telemetry.Swept("tcp-idle", 1)
	want := `
# HELP beep_build_info Always 1; the labels tell the build.
# TYPE beep_build_info gauge
beep_build_info{abi="3",go="` + runtime.Version() + `",version="v1.2.3"} 1
# HELP beep_drops_bytes_total Bytes of the packets dropped, link layer included.
# TYPE beep_drops_bytes_total counter
beep_drops_bytes_total{direction="egress",reason="no-endpoint"} 0
beep_drops_bytes_total{direction="ingress",reason="no-endpoint"} 180
# HELP beep_drops_packets_total Packets dropped.
# TYPE beep_drops_packets_total counter
beep_drops_packets_total{direction="egress",reason="no-endpoint"} 0
beep_drops_packets_total{direction="ingress",reason="no-endpoint"} 3
# HELP beep_endpoints Endpoints in force, each once for every front that it serves.
# TYPE beep_endpoints gauge
beep_endpoints 5
# HELP beep_flows Flows with a row on this node.
# TYPE beep_flows gauge
beep_flows{state="closed",table="FLOW_DATAGRAMS"} 0
beep_flows{state="closed",table="FLOW_PENDING"} 1
beep_flows{state="closed",table="FLOW_TABLE"} 1
beep_flows{state="closing",table="FLOW_DATAGRAMS"} 0
beep_flows{state="closing",table="FLOW_PENDING"} 0
beep_flows{state="closing",table="FLOW_TABLE"} 1
beep_flows{state="established",table="FLOW_DATAGRAMS"} 1
beep_flows{state="established",table="FLOW_PENDING"} 0
beep_flows{state="established",table="FLOW_TABLE"} 2
beep_flows{state="half-open",table="FLOW_DATAGRAMS"} 0
beep_flows{state="half-open",table="FLOW_PENDING"} 1
beep_flows{state="half-open",table="FLOW_TABLE"} 0
# HELP beep_flows_new_total Flows that began: of clients that dialled this node, and through a tunnel to an endpoint here.
# TYPE beep_flows_new_total counter
beep_flows_new_total{via="client"} 4
beep_flows_new_total{via="tunnel"} 2
# HELP beep_flows_remapped_total Flows whose endpoint here sees another source port than the client's, which another flow has.
# TYPE beep_flows_remapped_total counter
beep_flows_remapped_total 1
# HELP beep_fronts Fronts in force.
# TYPE beep_fronts gauge
beep_fronts 2
# HELP beep_map_entries Rows in use.
# TYPE beep_map_entries gauge
beep_map_entries{map="FRONT_META"} 2
# HELP beep_map_max_entries Rows that fit.
# TYPE beep_map_max_entries gauge
beep_map_max_entries{map="FRONT_META"} 1024
# HELP beep_map_memory_bytes Memory of the map, as the kernel counts it.
# TYPE beep_map_memory_bytes gauge
beep_map_memory_bytes{map="FRONT_META"} 4096
# HELP beep_sweep_removed_total Flow rows that the sweep removed.
# TYPE beep_sweep_removed_total counter
beep_sweep_removed_total{kind="tcp-idle"} 3
# HELP beep_traffic_bytes_total Bytes of the packets forwarded as they left the programs, link layer included. Only with --count-packets.
# TYPE beep_traffic_bytes_total counter
beep_traffic_bytes_total{from="client",to="tunnel"} 700
# HELP beep_traffic_packets_total Packets forwarded, each segment of a large one; copies beside what they stand for. Only with --count-packets.
# TYPE beep_traffic_packets_total counter
beep_traffic_packets_total{from="client",to="tunnel"} 7
# HELP beep_uplink_attached 1 if the programs are attached to the uplink, 0 if not.
# TYPE beep_uplink_attached gauge
beep_uplink_attached{device="eth0"} 1
beep_uplink_attached{device="wg0"} 0
`
	var names []string
	for line := range strings.Lines(want) {
		if name, found := strings.CutPrefix(line, "# TYPE "); found {
			names = append(names, strings.Fields(name)[0])
		}
	}
	if err := testutil.GatherAndCompare(telemetry.registry, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
}

// get asks the handler for a path.
func get(t *testing.T, handler http.Handler, path string) (int, string) {
	t.Helper()
	response := httptest.NewRecorder()
	handler.ServeHTTP(response, httptest.NewRequest(http.MethodGet, path, nil))
	return response.Code, response.Body.String()
}

func TestHealth(t *testing.T) {
	for _, tt := range []struct {
		path  string
		ready error
		code  int
		body  string
	}{
		{"/healthz", errors.New("uplink eth0 is not attached"), 200, "ok\n"},
		{"/readyz", nil, 200, "ready\n"},
		{"/readyz", errors.New("uplink eth0 is not attached"), 503, "uplink eth0 is not attached\n"},
		{"/other", nil, 404, "404 page not found\n"},
	} {
		code, body := get(t, New(sample(), node(tt.ready)).Handler(), tt.path)
		if code != tt.code || body != tt.body {
			t.Errorf("%s: %d %q, want %d %q", tt.path, code, body, tt.code, tt.body)
		}
	}
}

func TestScrapeOfMapsThatCannotBeReadFails(t *testing.T) {
	code, body := get(t, New(&source{err: errors.New("read DROPS: operation not permitted")}, node(nil)).Handler(), "/metrics")
	if code != 500 || !strings.Contains(body, "operation not permitted") {
		t.Errorf("%d %q", code, body)
	}
}

func TestServer(t *testing.T) {
	server, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(server.Addr().String()); err == nil || !strings.Contains(err.Error(), "--metrics-addr") {
		t.Errorf("an address in use: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, New(sample(), node(nil)).Handler()) }()
	response, err := http.Get("http://" + server.Addr().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	response.Body.Close()
	if err != nil || !strings.Contains(string(body), "\nbeep_fronts 2\n") || !strings.Contains(string(body), "process_resident_memory_bytes") {
		t.Errorf("body %s, %v", body, err)
	}
	cancel()
	select {
	case err := <-served:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Error("the server did not stop")
	}
}
