// SPDX-License-Identifier: Apache-2.0

// Package scene sets up what the specs of a rig have in common: a topology, the evidence of a failure, beep on every
// node, and the questions that are asked of all of them. Invariant: two scenes share nothing, and one that is set
// up says in its test's failure everything it could not do.
package scene

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/beep-lb/beep/harness/artifacts"
	"github.com/beep-lb/beep/harness/beep"
	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/topo"
)

// Offload says whether GRO, GSO, TSO and checksum offload are on, on every device.
type Offload bool

// Offloads are both settings: every rig runs with each.
var Offloads = []Offload{true, false}

// String is how a spec is named after the setting.
func (o Offload) String() string {
	if o {
		return "offloads on"
	}
	return "offloads off"
}

// Scene is the set-up of one spec.
type Scene struct {
	*topo.Topology
	Evidence *artifacts.Collector
	Nodes    map[string]*beep.Daemon // by the node's name; filled by Beep
	tb       require.TB
}

// New builds the plan for one spec. It needs root and TCX.
func New(tb require.TB, plan topo.Plan, offload Offload) *Scene {
	tb.Helper()
	require.Root(tb)
	require.TCX(tb)
	s := &Scene{Topology: topo.New(tb, plan), tb: tb}
	s.Evidence = artifacts.New(tb, s.Topology)
	if err := s.Offloads(bool(offload)); err != nil {
		tb.Fatalf("%v", err)
	}
	return s
}

// Beep starts beep on every node and returns when all serve. Should the spec fail, the daemons are shown as they are
// at its end.
func (s *Scene) Beep(o beep.Options) {
	s.tb.Helper()
	o.Evidence = s.Evidence
	s.Nodes = beep.StartAll(s.tb, s.Topology, o)
}

// Drops are the packets that each node has dropped, by node and reason: "node-a no-endpoint".
func (s *Scene) Drops() map[string]uint64 {
	s.tb.Helper()
	drops := map[string]uint64{}
	for name, node := range s.Nodes {
		counts, err := node.Drops()
		if err != nil {
			s.tb.Fatalf("%v", err)
		}
		for reason, packets := range counts {
			drops[name+" "+reason] = packets
		}
	}
	return drops
}

// Context ends after the time, or with the spec.
func (s *Scene) Context(limit time.Duration) context.Context {
	ctx, cancel := context.WithTimeoutCause(context.Background(), limit, fmt.Errorf("the spec allows %v", limit))
	s.tb.Cleanup(cancel)
	return ctx
}

// Families are the IP families, one by one.
var Families = []topo.Families{topo.V4, topo.V6}

// FamilyName is how a spec is named after a family.
func FamilyName(family topo.Families) string {
	switch family {
	case topo.V4:
		return "IPv4"
	case topo.V6:
		return "IPv6"
	}
	return "both families"
}

// CheckReadme fails the test if README.md in the working directory, which is the rig's, does not draw the plan.
func CheckReadme(tb require.TB, plan topo.Plan) {
	tb.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		tb.Fatalf("%v", err)
	}
	if picture := plan.String(); !strings.Contains(string(text), picture) {
		tb.Errorf("README.md does not draw the topology; it should hold:\n%s", picture)
	}
}
