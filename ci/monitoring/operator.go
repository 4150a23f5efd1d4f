// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
)

// operatorHead is what a PrometheusRule has above its groups.
const operatorHead = `# deploy/monitoring/rules/beep.yaml as an object of the Prometheus operator; make monitoring writes it.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: beep
  namespace: beep-system
  labels:
    app.kubernetes.io/name: beep
spec:
`

// operatorRules puts the groups of a rules file below the head, its comments left out.
func operatorRules(rules []byte) []byte {
	var b strings.Builder
	b.WriteString(operatorHead)
	for line := range strings.Lines(string(rules)) {
		if !strings.HasPrefix(line, "#") && strings.TrimSpace(line) != "" {
			b.WriteString("  " + line)
		}
	}
	return []byte(b.String())
}
