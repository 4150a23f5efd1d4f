// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/beep-lb/beep/src/compile"
	"github.com/beep-lb/beep/src/explain"
	"github.com/beep-lb/beep/src/model"
)

// testimony is what is known of the other nodes when somebody asks: Leases, Memory, Publisher and Said of the facts.
type testimony func(ctx context.Context, snapshot model.Snapshot) (explain.Facts, error)

// explainer answers `beep explain`. It compiles anew what is asked for, by what the worker saw last, so that nothing
// is kept for it.
type explainer struct {
	c *controller
	w *worker
	testimony
}

// explain is for explain.Handler.
func (e *explainer) explain(ctx context.Context, name string) (explain.Answer, error) {
	snapshot := e.w.seen.Load()
	if snapshot == nil {
		return explain.Answer{}, fmt.Errorf("node %s: its controller does not know the Services, EndpointSlices and Nodes yet: %w",
			e.c.flags.NodeName, e.c.ready.err())
	}
	facts, err := e.testimony(ctx, *snapshot)
	if err != nil {
		if facts.Leases == nil {
			facts.Leases = wellLeases(*snapshot, rulesOf(e.c.flags))
		}
		e.warn(&facts, "what nodes say of themselves is not known, and all are taken to be well: ", err)
	}
	facts.Snapshot, facts.Self, facts.How = *snapshot, selfOf(e.c.flags), publishingOf(e.c.flags)
	facts.Manifests = e.c.flags.Manifests != ""
	e.warn(&facts, "what is told here may be old: ", e.w.source.Fault())
	if fault := e.w.fault.Load(); fault != nil {
		e.warn(&facts, "the maps are not as desired: ", *fault)
	}
	return explain.Explain(facts, name)
}

// warn adds a warning for each line of an error, if there is one.
func (e *explainer) warn(facts *explain.Facts, what string, err error) {
	if err == nil {
		return
	}
	for line := range strings.Lines(err.Error()) {
		facts.Warnings = append(facts.Warnings, what+strings.TrimSpace(line))
	}
}

// testimony reads what the Leases say.
func (v *voice) testimony(ctx context.Context, _ model.Snapshot) (explain.Facts, error) {
	said, err := v.publisher.Testimony(ctx)
	facts := explain.Facts{Leases: said.Leases, Memory: said.Memory, Publisher: said.Publisher, Said: map[string]explain.Statement{}}
	for name, statement := range said.Statements {
		facts.Said[name] = explain.Statement(statement)
	}
	return facts, err
}

// testimony takes all nodes to be well, as the status file does.
func (f *statusFile) testimony(_ context.Context, snapshot model.Snapshot) (explain.Facts, error) {
	return explain.Facts{Leases: f.leases(snapshot, f.refused.Load())}, nil
}

// leases are those that the nodes of manifests would have: nobody tells of the others. This one refuses these Services.
func (f *statusFile) leases(snapshot model.Snapshot, refused *[]model.ObjectKey) []*model.Lease {
	leases := wellLeases(snapshot, f.how.Rules)
	for _, lease := range leases {
		if lease.Node == f.node && refused != nil {
			lease.Refused = *refused
		}
	}
	return leases
}

// wellLeases are those of nodes that are all well.
func wellLeases(snapshot model.Snapshot, rules compile.Rules) []*model.Lease {
	var leases []*model.Lease
	for _, node := range snapshot.Nodes {
		leases = append(leases, &model.Lease{Node: node.Name, Attached: true,
			Addresses: compile.Addresses(snapshot, compile.Self{Rules: rules, Node: node.Name})})
	}
	return leases
}
