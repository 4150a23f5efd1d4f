// SPDX-License-Identifier: Apache-2.0

package fronts

import (
	"net/netip"
	"testing"

	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
)

// Fronts and services must name the same ports, and no two the same one.
func TestEveryFrontIsAService(t *testing.T) {
	plan := topo.TwoNodes(topo.Options{Pods: 2})
	node := plan.Addr("node-a", topo.V4)
	seen := map[string]bool{}
	pods := []string{AnyPod, "pod-a1", "pod-a2", "pod-b1", "pod-b2"}
	for _, service := range Services(&plan, pods...) {
		name := service.Proto.String() + netip.AddrPortFrom(node, service.Port).String()
		if seen[name] {
			t.Errorf("%s: two services", name)
		}
		seen[name] = true
	}
	for _, kind := range []Kind{HTTP, Stream, Datagram} {
		for _, pod := range pods {
			if front := At(&plan, node, kind, pod); !seen[kind.Proto().String()+front.String()] {
				t.Errorf("kind %d by %q is %s, which is no service", kind, pod, front)
			}
		}
	}
}

func TestUnblemished(t *testing.T) {
	client, other := netip.MustParseAddrPort("198.51.100.10:1"), netip.MustParseAddrPort("198.51.100.11:1")
	good := traffic.Tally{Sent: 3, Received: 3, Sources: map[netip.AddrPort]int{client: 3}}
	if err := unblemished(good, 3, client.Addr()); err != nil {
		t.Error(err)
	}
	lost, wrong := good, good
	lost.Received, lost.Lost = 2, 1
	wrong.Sources = map[netip.AddrPort]int{client: 2, other: 1}
	for _, tally := range []traffic.Tally{lost, wrong, {}} {
		if unblemished(tally, 3, client.Addr()) == nil {
			t.Errorf("%s: no error", tally)
		}
	}
}
