// SPDX-License-Identifier: Apache-2.0

// Package explain says why a Service is or is not served, an address published, an endpoint used, and a node listed;
// and carries the question from `beep explain` to the controller that knows. Invariant: it judges nothing itself, so
// what it says is what package compile decides by, and a reason that compile gives about the thing is never left out.
package explain

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/beep-lb/beep/src/compile"
	"github.com/beep-lb/beep/src/model"
)

// ErrUnknown says that nothing of that name is known, or more than one thing.
var ErrUnknown = errors.New("not known")

// Facts are all that an explanation is made of.
type Facts struct {
	Snapshot model.Snapshot
	Self     compile.Self
	How      compile.Publishing
	// Leases are those that count, and Memory is what the publisher remembers.
	Leases []*model.Lease
	Memory compile.Memory
	// Publisher is the node that is elected; empty if none is, or if there is no election.
	Publisher string
	// Said is what the nodes' Leases say, also those that do not count, by node.
	Said map[string]Statement
	// Manifests says that there is no API server: nobody lists addresses but in the status file.
	Manifests bool
	// Warnings are what is not as it should be with this controller, a sentence each.
	Warnings []string
}

// Statement is what one node says of itself.
type Statement struct {
	model.Lease
	// Age is how long ago it said so, as far as both nodes' clocks are right.
	Age time.Duration
}

// Answer is what `beep explain -o json` prints. Lists without elements are [].
type Answer struct {
	// By is the node whose controller answers, for which the endpoints are judged.
	By string `json:"by"`
	// Publisher is the node that publishes; empty if none is known, or if all is read from manifests.
	Publisher string `json:"publisher"`
	Manifests bool   `json:"manifests"`
	// Warnings say what may make the rest wrong.
	Warnings []string `json:"warnings"`
	// Service or Node is what was asked for; the other one is nil.
	Service *Service `json:"service,omitempty"`
	Node    *Node    `json:"node,omitempty"`
}

// Why is one reason, in words.
type Why struct {
	// Code is the name that metrics and Events have of it; empty for one that has none.
	Code string `json:"code"`
	Text string `json:"text"`
	// Remedy says what to do about it.
	Remedy string `json:"remedy"`
}

// String is all of it in a line: PortConflict: the port belongs to…; choose another port….
func (w Why) String() string {
	text := w.Text
	if w.Code != "" {
		text = w.Code + ": " + text
	}
	if w.Remedy != "" {
		text += "; " + w.Remedy
	}
	return text
}

func whyOf(reason compile.Reason) Why {
	return Why{reason.Code.String(), reason.Text(), reason.Remedy()}
}

// whys are those of the reasons that pass, each once, in their order. There is always a list.
func whys(reasons []compile.Reason, pass func(compile.Reason) bool) []Why {
	list := []Why{}
	for _, reason := range reasons {
		if why := whyOf(reason); pass(reason) && !slices.Contains(list, why) {
			list = append(list, why)
		}
	}
	return list
}

// Explain answers for NAMESPACE/NAME or NAME of a Service, and for NAME or node/NAME of a Node. The error wraps
// ErrUnknown.
func Explain(facts Facts, name string) (Answer, error) {
	service, node, err := find(facts, name)
	if err != nil {
		return Answer{}, err
	}
	answer := Answer{By: facts.Self.Node, Publisher: facts.Publisher, Manifests: facts.Manifests,
		Warnings: append([]string{}, facts.Warnings...)}
	if service != nil {
		answer.Service = explainService(facts, service)
	} else {
		answer.Node = explainNode(facts, node)
	}
	return answer, nil
}

// nodePrefix tells a Node's name from a Service's.
const nodePrefix = "node/"

// find returns the Service, or the name of the Node, that is meant.
func find(facts Facts, name string) (service *model.Service, node string, err error) {
	var meant []string // names that are not ambiguous
	for _, s := range facts.Snapshot.Services {
		if s.String() == name {
			return s, "", nil
		}
		if s.Name == name {
			service = s
			meant = append(meant, s.String())
		}
	}
	slices.Sort(meant)
	if isNode(facts, strings.TrimPrefix(name, nodePrefix)) {
		node = strings.TrimPrefix(name, nodePrefix)
		meant = append(meant, nodePrefix+node)
	}
	switch {
	case len(meant) > 1:
		return nil, "", fmt.Errorf("%w: %q may be %s: name one of them", ErrUnknown, name, strings.Join(meant, " or "))
	case len(meant) == 1:
		return service, node, nil
	}
	return nil, "", fmt.Errorf("%w: no Service of type LoadBalancer and no Node is called %q: "+
		"name one as in `kubectl get service -A` or `kubectl get node`; Services of other types are not beep's", ErrUnknown, name)
}

// isNode says whether there is a Node of that name, or should be.
func isNode(facts Facts, name string) bool {
	return name == facts.Self.Node || facts.Said[name].Node != "" || nodeOf(facts, name) != nil
}

func nodeOf(facts Facts, name string) *model.Node {
	for _, node := range facts.Snapshot.Nodes {
		if node.Name == name {
			return node
		}
	}
	return nil
}
