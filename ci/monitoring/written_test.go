// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/prometheus/prometheus/promql/parser"
)

const (
	dashboardFile = "../../deploy/monitoring/dashboards/beep.json"
	operatorFile  = "../../deploy/monitoring/prometheus-operator/rules.yaml"
)

// TestWritten: what is committed is what this program writes.
func TestWritten(t *testing.T) {
	made, err := dashboardJSON()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string][]byte{dashboardFile: made, operatorFile: operatorRules(text)} {
		got, err := os.ReadFile(file)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what is written today, %v: run make monitoring", file, err)
		}
	}
}

// TestDashboardIsOne reads it back by Grafana's schema, which knows no other fields, and parses every query.
func TestDashboardIsOne(t *testing.T) {
	text, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	var read dashboard.Dashboard
	// It also returns an empty list of errors, for none.
	if err := read.UnmarshalJSONStrict(text); err != nil && err.Error() != "" {
		t.Errorf("not by Grafana's schema: %v", err)
	}
	if err := read.Validate(); err != nil {
		t.Errorf("not by Grafana's schema: %v", err)
	}
	var loose struct {
		Panels []struct {
			Title   string
			Type    string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &loose); err != nil {
		t.Fatal(err)
	}
	variable := regexp.MustCompile(`\$__rate_interval`)
	queries := 0
	for _, panel := range loose.Panels {
		if panel.Type != "row" && len(panel.Targets) == 0 {
			t.Errorf("%s asks nothing", panel.Title)
		}
		for _, target := range panel.Targets {
			queries++
			if _, err := parser.NewParser(parser.Options{}).ParseExpr(variable.ReplaceAllString(target.Expr, "5m")); err != nil {
				t.Errorf("%s: %v", panel.Title, err)
			}
		}
	}
	if queries < 30 {
		t.Errorf("only %d queries", queries)
	}
}
