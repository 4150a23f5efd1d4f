// SPDX-License-Identifier: Apache-2.0

// Command monitoring writes the Grafana dashboard of deploy/monitoring, and the rules there as an object of the
// Prometheus operator, to standard output. Invariant: it is the only source of both, so its tests compare the
// committed files with what it writes.
//
//	monitoring dashboard   deploy/monitoring/dashboards/beep.json
//	monitoring rules       deploy/monitoring/prometheus-operator/rules.yaml, from deploy/monitoring/rules/beep.yaml on standard input
package main

import (
	"fmt"
	"io"
	"os"
)

func main() {
	var out []byte
	var err error
	switch {
	case len(os.Args) == 2 && os.Args[1] == "dashboard":
		out, err = dashboardJSON()
	case len(os.Args) == 2 && os.Args[1] == "rules":
		var rules []byte
		if rules, err = io.ReadAll(os.Stdin); err == nil {
			out = operatorRules(rules)
		}
	default:
		err = fmt.Errorf("usage: monitoring dashboard|rules")
	}
	if err == nil {
		_, err = os.Stdout.Write(out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "monitoring:", err)
		os.Exit(1)
	}
}
