// SPDX-License-Identifier: Apache-2.0

package topo

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"github.com/beep-lb/beep/harness/netns"
	"github.com/beep-lb/beep/harness/require"
)

// Topology is a built plan. Its Plan says what was built; editing it afterwards changes only later calls of
// Recreate. Methods may be called from any goroutine, but not two that change the same host at once.
type Topology struct {
	Plan
	shuttle []*shuttle

	mu      sync.Mutex
	members []Member
	keys    map[string]wgtypes.Key // of WireGuard devices, by "HOST DEVICE"
}

// Member is one namespace of a topology: a host, a pod, or a LAN's bridge.
type Member struct {
	Name string // the host's, pod's or LAN's
	LAN  bool
	NS   *netns.NS
}

// New builds a plan for one test and removes it at the test's cleanup. It needs root, and /dev/net/tun where the
// plan has an L3 wire (require.Tun).
func New(tb require.TB, plan Plan) *Topology {
	tb.Helper()
	topology, err := Build(plan)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	tb.Cleanup(func() {
		if err := topology.Close(); err != nil {
			tb.Errorf("%v", err)
		}
	})
	return topology
}

// Build builds a plan for a program that has no test around it; the caller calls Close. When it returns, every
// link is up and every address can be used. After an error nothing is left behind.
func Build(plan Plan) (*Topology, error) {
	if err := plan.Validate(); err != nil {
		return nil, err
	}
	topology := &Topology{Plan: plan}
	if err := topology.build(); err != nil {
		return nil, errors.Join(fmt.Errorf("build %q: %w", plan.Title, err), topology.Close())
	}
	return topology, nil
}

// NS is the namespace of a host or pod. A name that the plan does not have is a mistake of the spec: it panics.
func (t *Topology) NS(name string) *netns.NS {
	ns := t.find(name, false)
	if ns == nil {
		panic(fmt.Sprintf("topo: plan %q has no host or pod %q", t.Title, name))
	}
	return ns
}

// Members lists all namespaces: LANs, hosts, pods, in the order of the plan, and then what AddPod made.
func (t *Topology) Members() []Member {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.members)
}

// Close removes every namespace and with them all devices, servers and processes inside. It may be called twice.
func (t *Topology) Close() error {
	var errs []error
	for _, shuttle := range t.shuttle {
		errs = append(errs, shuttle.close())
	}
	for _, member := range slices.Backward(t.Members()) {
		errs = append(errs, member.NS.Close())
	}
	return errors.Join(errs...)
}

func (t *Topology) find(name string, lan bool) *netns.NS {
	for _, member := range t.Members() {
		if member.Name == name && member.LAN == lan {
			return member.NS
		}
	}
	return nil
}
