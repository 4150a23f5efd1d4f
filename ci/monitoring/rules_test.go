// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
)

// rulesFile is what is tested.
const rulesFile = "../../deploy/monitoring/rules/beep.yaml"

// healthy is a cluster of two nodes about which there is nothing to say, for four hours. A test replaces lines.
var healthy = []string{
	`beep_uplink_attached{instance="a:9962",device="eth0"} 1+0x240`,
	`beep_uplink_attached{instance="b:9962",device="eth0"} 1+0x240`,
	`beep_controller_ready{instance="a:9963"} 1+0x240`,
	`beep_controller_reconcile_failures_total{instance="a:9963"} 3+0x240`,
	`beep_controller_reconcile_seconds_bucket{instance="a:9963",le="0.1"} 0+10x240`,
	`beep_controller_reconcile_seconds_bucket{instance="a:9963",le="10"} 0+10x240`,
	`beep_controller_reconcile_seconds_bucket{instance="a:9963",le="+Inf"} 0+10x240`,
	`beep_controller_lease_age_seconds{instance="a:9963"} 9+0x240`,
	`beep_map_entries{instance="a:9962",map="FRONT_META"} 900+0x240`,
	`beep_map_max_entries{instance="a:9962",map="FRONT_META"} 1024+0x240`,
	`beep_map_entries{instance="a:9962",map="DROPS"} 40+0x240`,
	`beep_map_max_entries{instance="a:9962",map="DROPS"} 40+0x240`,
	`beep_map_entries{instance="a:9962",map="FLOW_TABLE"} 46000+0x240`,
	`beep_map_max_entries{instance="a:9962",map="FLOW_TABLE"} 49152+0x240`,
	`beep_map_entries{instance="a:9962",map="FLOW_PENDING"} 14000+0x240`,
	`beep_map_max_entries{instance="a:9962",map="FLOW_PENDING"} 16384+0x240`,
	`beep_drops_packets_total{instance="a:9962",reason="no-route",direction="ingress"} 0+10x240`,
	`beep_drops_packets_total{instance="a:9962",reason="no-endpoint",direction="ingress"} 0+10x240`,
	`beep_drops_packets_total{instance="a:9962",reason="too-big",direction="ingress"} 0+10x240`,
	`beep_drops_packets_total{instance="a:9962",reason="unknown-peer",direction="ingress"} 0+10x240`,
	`beep_build_info{instance="a:9962",job="beep",version="v1"} 1+0x240`,
	`beep_build_info{instance="b:9962",job="beep",version="v1"} 1+0x240`,
	`process_resident_memory_bytes{instance="a:9962",job="beep"} 25e6+0x240`,
	`process_resident_memory_bytes{instance="other:80",job="other"} 900e6+0x240`,
	`beep_controller_leading{instance="a:9963"} 1+0x240`,
	`beep_controller_leading{instance="b:9963"} 0+0x240`,
	`beep_controller_detached_nodes{instance="a:9963"} 0+0x240`,
	`beep_controller_published_nodes{instance="a:9963",state="held"} 0+0x240`,
	`beep_controller_status_writes_total{instance="a:9963",result="failed"} 2+0x240`,
	`beep_controller_left_out{instance="a:9963",reason="EndpointNotReady"} 5+0x240`,
}

// cases are what each alert is for: one series that is otherwise than on a healthy node, and how many minutes after
// the start the alert fires. A minute before, it must not.
var cases = []struct {
	alert, series string
	minutes       int
}{
	{"BeepUplinkDetached", `beep_uplink_attached{instance="b:9962",device="eth0"} 0+0x240`, 1},
	{"BeepControllerNotReady", `beep_controller_ready{instance="a:9963"} 0+0x240`, 5},
	{"BeepReconcileFails", `beep_controller_reconcile_failures_total{instance="a:9963"} 0+5x240`, 11},
	{"BeepReconcileSlow", `beep_controller_reconcile_seconds_bucket{instance="a:9963",le="0.1"} 0+5x240`, 16},
	{"BeepLeaseStale", `beep_controller_lease_age_seconds{instance="a:9963"} 41+60x240`, 1},
	{"BeepMapNearlyFull", `beep_map_entries{instance="a:9962",map="FRONT_META"} 1000+0x240`, 10},
	{"BeepFlowTableFull", `beep_map_entries{instance="a:9962",map="FLOW_TABLE"} 49152+0x240`, 10},
	{"BeepHalfOpenFlood", `beep_map_entries{instance="a:9962",map="FLOW_PENDING"} 16384+0x240`, 5},
	{"BeepCannotForward", `beep_drops_packets_total{instance="a:9962",reason="no-route",direction="ingress"} 0+600x240`, 6},
	{"BeepNoEndpoint", `beep_drops_packets_total{instance="a:9962",reason="no-endpoint",direction="ingress"} 0+600x240`, 16},
	{"BeepTooBig", `beep_drops_packets_total{instance="a:9962",reason="too-big",direction="ingress"} 0+600x240`, 32},
	{"BeepForeignTunnel", `beep_drops_packets_total{instance="a:9962",reason="unknown-peer",direction="ingress"} 0+600x240`, 11},
	{"BeepMemory", `process_resident_memory_bytes{instance="a:9962",job="beep"} 300e6+0x240`, 15},
	{"BeepNobodyPublishes", `beep_controller_leading{instance="a:9963"} 0+0x240`, 3},
	{"BeepTwoPublish", `beep_controller_leading{instance="b:9963"} 1+0x240`, 2},
	{"BeepNodesDetached", `beep_controller_detached_nodes{instance="a:9963"} 1+0x240`, 10},
	{"BeepNodesHeld", `beep_controller_published_nodes{instance="a:9963",state="held"} 2+0x240`, 10},
	{"BeepStatusWritesFail", `beep_controller_status_writes_total{instance="a:9963",result="failed"} 0+5x240`, 11},
	{"BeepServiceLeftOut", `beep_controller_left_out{instance="a:9963",reason="PortConflict"} 1+0x240`, 15},
	{"BeepVersionsDiffer", `beep_build_info{instance="b:9962",job="beep",version="v2"} 1+0x240`, 60},
}

// with is the healthy cluster with one series instead of its own.
func with(series string) []string {
	name, _, _ := strings.Cut(series, " ")
	lines := slices.Clone(healthy)
	if at := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, name+" ") }); at >= 0 {
		lines[at] = series
		return lines
	}
	return append(lines, series)
}

// firing evaluates all rules every minute, and returns what fires in each.
func firing(t *testing.T, series []string, minutes int) [][]string {
	t.Helper()
	storage := promqltest.LoadedStorage(t, "load 1m\n  "+strings.Join(series, "\n  ")+"\n")
	engine := promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery)
	manager := rules.NewManager(&rules.ManagerOptions{
		QueryFunc: rules.EngineQueryFunc(engine, storage), Queryable: storage, AppendableV2: storage,
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {}, Context: t.Context(),
		Logger: slog.New(slog.DiscardHandler),
	})
	groups, errs := manager.LoadGroups(time.Minute, labels.EmptyLabels(), "", nil, false, rulesFile)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var all [][]string
	for minute := range minutes + 1 {
		var now []string
		for _, group := range groups {
			group.Eval(t.Context(), time.Unix(0, 0).Add(time.Duration(minute)*time.Minute))
			for _, rule := range group.AlertingRules() {
				if rule.LastError() != nil {
					t.Fatalf("%s: %v", rule.Name(), rule.LastError())
				}
				if rule.State() == rules.StateFiring {
					now = append(now, rule.Name())
				}
			}
		}
		all = append(all, now)
	}
	return all
}

func TestNothingFiresInAHealthyCluster(t *testing.T) {
	for minute, alerts := range firing(t, healthy, 240) {
		if len(alerts) > 0 {
			t.Fatalf("minute %d: %v", minute, alerts)
		}
	}
}

// TestNodesWithoutAnAPIServer have controllers that read manifests: nobody publishes there.
func TestNodesWithoutAnAPIServer(t *testing.T) {
	nobody := []string{`beep_controller_leading{instance="a:9963"} 0+0x240`, `beep_uplink_attached{instance="a:9962",device="eth0"} 1+0x240`}
	for minute, alerts := range firing(t, nobody, 20) {
		if len(alerts) > 0 {
			t.Fatalf("minute %d: %v", minute, alerts)
		}
	}
}

func TestEachAlertFiresAloneAndInTime(t *testing.T) {
	var tried []string
	for _, tt := range cases {
		t.Run(tt.alert, func(t *testing.T) {
			got := firing(t, with(tt.series), tt.minutes+2)
			if before := got[tt.minutes-1]; len(before) > 0 {
				t.Errorf("minute %d: %v", tt.minutes-1, before)
			}
			if alerts := got[tt.minutes]; fmt.Sprint(alerts) != fmt.Sprint([]string{tt.alert}) {
				t.Errorf("minute %d: %v, want %s alone", tt.minutes, alerts, tt.alert)
			}
		})
		tried = append(tried, tt.alert)
	}
	groups, errs := rulefmt.ParseFile(rulesFile, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			if !slices.Contains(tried, rule.Alert) {
				t.Errorf("no case fires %s", rule.Alert)
			}
			if rule.Labels["severity"] == "" || rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
				t.Errorf("%s lacks its severity, its summary or what to do", rule.Alert)
			}
		}
	}
}
