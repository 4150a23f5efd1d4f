// SPDX-License-Identifier: Apache-2.0

package topo_test

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
)

func TestPodsComeAndGoWhileTheTopologyStands(t *testing.T) {
	require.Root(t)
	topology := topo.New(t, topo.TwoNodes(topo.Options{}))
	members := len(topology.Members())
	pod := topo.Pod{Name: "pod-a100", Node: "node-a", Addrs: []netip.Addr{
		netip.MustParseAddr("10.42.1.100"), netip.MustParseAddr("2001:db8:a::1:100"),
	}}
	for range 2 { // the second time it finds nothing of the first
		ns, err := topology.AddPod(pod)
		if err != nil {
			t.Fatal(err)
		}
		for _, addr := range pod.Addrs {
			at := netip.AddrPortFrom(addr, 8080)
			if _, err := traffic.ServeHTTP(ns, pod.Name, at); err != nil {
				t.Fatal(err)
			}
			for _, from := range []string{"node-a", "pod-a1"} {
				if answer, err := traffic.Get(t.Context(), topology.NS(from), at); err != nil || answer.Server != pod.Name {
					t.Errorf("%s to %s: %v, %v", from, at, answer, err)
				}
			}
		}
		if _, err := topology.AddPod(pod); err == nil {
			t.Error("a second pod of the same name")
		}
		if err := topology.RemovePod(pod.Name, pod.Node); err != nil {
			t.Fatal(err)
		}
		if got := len(topology.Members()); got != members {
			t.Errorf("%d members, want %d", got, members)
		}
	}
}

func TestACableThatIsPulled(t *testing.T) {
	require.Root(t)
	topology := topo.New(t, topo.TwoNodes(topo.Options{}))
	at := netip.AddrPortFrom(topology.Addr("node-a", topo.V6), 8080)
	if _, err := traffic.ServeHTTP(topology.NS("node-a"), "node-a", at); err != nil {
		t.Fatal(err)
	}
	ask := func(limit time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		_, err := traffic.Get(ctx, topology.NS("client"), at)
		return err
	}
	if err := ask(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	if err := topology.SetCables("node-a", false); err != nil {
		t.Fatal(err)
	}
	if err := ask(300 * time.Millisecond); err == nil {
		t.Error("an answer without a cable")
	}
	if err := topology.SetCables("node-a", true); err != nil {
		t.Fatal(err)
	}
	if err := ask(10 * time.Second); err != nil {
		t.Error(err)
	}
}
