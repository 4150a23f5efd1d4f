// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/beep-lb/beep/src/compile"
	"github.com/beep-lb/beep/src/model"
)

// Testimony is what the Leases say when somebody asks.
type Testimony struct {
	// Publisher is the node that is elected; empty if none is.
	Publisher string
	// Leases are those that count, and Memory is what is remembered: exactly what this node publishes by if it is the
	// one that is elected, else as near as anybody else can judge.
	Leases []*model.Lease
	Memory compile.Memory
	// Statements are of every Lease there is, by node.
	Statements map[string]Statement
}

// Statement is what one node says of itself.
type Statement struct {
	model.Lease
	// Age is how long ago it was renewed, if both nodes' clocks are right.
	Age time.Duration
}

// judgement is what a publisher publishes by.
type judgement struct {
	leases []*model.Lease
	memory compile.Memory
}

// Testimony reads the Leases, in one request. The error is the API server's; with it comes what is known all the same.
func (p *Publisher) Testimony(ctx context.Context) (Testimony, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	said := Testimony{Statements: map[string]Statement{}}
	judged := p.judged.Load()
	if judged != nil {
		said.Publisher = p.Node
	}
	list, err := p.Client.CoordinationV1().Leases(p.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		said.judge(judged)
		return said, fmt.Errorf("read the Leases in %s: %w", p.Namespace, err)
	}
	for i := range list.Items {
		lease := &list.Items[i]
		switch {
		case lease.Name == ElectionLease && lease.Spec.HolderIdentity != nil:
			said.Publisher, _, _ = strings.Cut(*lease.Spec.HolderIdentity, identitySeparator)
		case lease.Name == RosterLease:
			said.Memory.Known = knownOf(lease)
		case lease.Labels[labelComponent] == componentNode:
			statement := Statement{Lease: readStatement(lease), Age: lostAfter}
			if lease.Spec.RenewTime != nil {
				statement.Age = time.Since(lease.Spec.RenewTime.Time)
			}
			said.Statements[lease.Name] = statement
			if statement.Age < lostAfter {
				said.Leases = append(said.Leases, &statement.Lease)
			}
		}
	}
	said.judge(judged)
	return said, nil
}

// judge takes what the publisher publishes by, if this node is it.
func (t *Testimony) judge(by *judgement) {
	if by != nil {
		t.Leases, t.Memory = by.leases, by.memory
	}
}
