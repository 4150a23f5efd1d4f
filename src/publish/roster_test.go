// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/beep-lb/beep/src/model"
)

// detached are the names of the nodes that the peers mark, in the nodes' order.
func detached(p *Peers, nodes []*model.Node) string {
	var names []string
	for _, node := range p.Mark(nodes) {
		if node.Detached {
			names = append(names, node.Name)
		}
	}
	return strings.Join(names, " ")
}

func TestPeersMarkWhoIsNotInTheRoster(t *testing.T) {
	a, b := &model.Node{Name: "a"}, &model.Node{Name: "b"}
	nodes := []*model.Node{a, b}
	p := &Peers{changed: func() {}}
	says := func(annotations map[string]string) {
		t.Helper()
		if err := p.Update(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name string
		says map[string]string
		want string
	}{
		{"no publisher has written: nobody knows", nil, ""},
		{"an empty list: nobody is attached", map[string]string{annotationAttachedNodes: ""}, "a b"},
		{"one is", map[string]string{annotationAttachedNodes: "a"}, "b"},
		{"an annotation that somebody removed changes nothing", nil, "b"},
		{"both are", map[string]string{annotationAttachedNodes: "a,b"}, ""},
	} {
		says(tt.says)
		if got := detached(p, nodes); got != tt.want {
			t.Errorf("%s: %q is marked, want %q", tt.name, got, tt.want)
		}
	}
	says(map[string]string{annotationAttachedNodes: "b"})
	first, second := p.Mark(nodes), p.Mark(nodes)
	if a.Detached || first[0] != second[0] || first[1] != b {
		t.Error("a Node is changed, or marked by another copy than before")
	}
}

func TestTheRosterIsCutAtAComma(t *testing.T) {
	for list, want := range map[string]string{"": "", "ab": "ab", "ab,cd": "ab,cd", "ab,cd,e": "ab,cd", "abcdef": ""} {
		if got := cut(list, 5); got != want {
			t.Errorf("%q is cut to %q, want %q", list, got, want)
		}
	}
}

// TestRoster is what a publisher leaves on a real API server.
func TestRoster(t *testing.T) {
	s := newServer(t)
	writes := &tally{results: map[string]int{}}
	nodes := []*node{s.addNode(1, writes), s.addNode(2, writes)}
	for _, node := range nodes {
		node.start()
	}
	s.post("web", 80)
	start := time.Now()
	for len(strings.Fields(s.status("web"))) < 2 && time.Since(start) < 30*time.Second {
		time.Sleep(20 * time.Millisecond)
	}

	peersContext, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	defer group.Wait()
	defer stop()
	leases := s.Client.CoordinationV1().Leases(namespace)
	peers, err := OpenPeers(t.Context(), leases, discard, unheard)
	if err != nil {
		t.Fatal(err)
	}
	group.Go(func() { peers.Run(peersContext, func() {}) })
	third := s.addNode(3, writes)
	want := func(t *testing.T, want string) {
		t.Helper()
		var known []*model.Node
		for _, name := range []string{"node-1", "node-2", "node-3"} {
			known = append(known, &model.Node{Name: name})
		}
		for start := time.Now(); detached(peers, known) != want; time.Sleep(20 * time.Millisecond) {
			if time.Since(start) > 20*time.Second {
				t.Fatalf("%q is marked, want %q", detached(peers, known), want)
			}
		}
	}

	t.Run("a node without a Lease is not attached", func(t *testing.T) { want(t, "node-3") })

	t.Run("a node is attached when its Lease says so, and no longer when it says otherwise", func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		lease := NewNodeLease(leases, discard)
		says := model.Lease{Node: "node-3", Addresses: []netip.Addr{nodeAddr(3)}}
		lease.Say(says, third.uid)
		var running sync.WaitGroup
		defer running.Wait()
		defer end()
		running.Go(func() { lease.Run(ctx) })
		says.Attached = true
		lease.Say(says, third.uid)
		want(t, "")
		says.Attached = false
		lease.Say(says, third.uid)
		want(t, "node-3")
		says.Attached = true
		lease.Say(says, third.uid)
		want(t, "")
	})

	t.Run("one whose controller has ended forwards on", func(t *testing.T) { want(t, "") })

	t.Run("idle, nothing is written", func(t *testing.T) {
		version := func() string {
			lease, err := leases.Get(t.Context(), RosterLease, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return lease.ResourceVersion
		}
		before := version()
		time.Sleep(3 * time.Second)
		if after := version(); after != before {
			t.Errorf("version %s, then %s", before, after)
		}
	})

	t.Run("one that somebody removed, or wrote into, is as it was within a minute", func(t *testing.T) {
		clock := time.Now()
		leases := s.Client.CoordinationV1().Leases("default")
		r := &roster{leases: leases, now: func() time.Time { return clock }}
		publish := func() (version string) {
			t.Helper()
			_, err := r.recall(t.Context())
			if err == nil {
				_, err = r.write(t.Context(), []string{"a"}, []netip.Addr{nodeAddr(1)})
			}
			if err != nil {
				t.Fatal(err)
			}
			return r.held.ResourceVersion
		}
		first := publish()
		if again := publish(); again != first {
			t.Error("written twice")
		}
		if err := leases.Delete(t.Context(), RosterLease, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		clock = clock.Add(lookAtRoster)
		second := publish()
		held, err := leases.Get(t.Context(), RosterLease, metav1.GetOptions{})
		if err != nil || held.ResourceVersion != second {
			t.Fatalf("%v, %v", held, err)
		}
		held.Annotations[annotationAttachedNodes] = "b"
		if _, err := leases.Update(t.Context(), held, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		clock = clock.Add(lookAtRoster)
		if third := publish(); third == second || r.held.Annotations[annotationAttachedNodes] != "a" {
			t.Errorf("%v", r.held.Annotations)
		}
	})

	t.Run("a publisher knows what the ones before it listed", func(t *testing.T) {
		for _, node := range nodes {
			node.end()
		}
		before := s.status("web")
		if !strings.Contains(before, "192.0.2.2") {
			t.Fatalf("web lists %q", before)
		}
		// While there is no publisher a Node goes, and nobody could tell whose its address was.
		if err := s.Client.CoreV1().Nodes().Delete(t.Context(), "node-2", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		// The garbage collector may have been faster: the Node owns its Lease.
		if err := leases.Delete(t.Context(), "node-2", metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		s.edit(t, "web", true, func(service *corev1.Service) {
			service.Status.LoadBalancer.Ingress = append(service.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: "198.51.100.9"})
		})
		nodes[0].start()
		defer nodes[0].end()
		for start := time.Now(); strings.Contains(s.status("web"), "192.0.2.2"); time.Sleep(20 * time.Millisecond) {
			if time.Since(start) > 30*time.Second {
				t.Fatalf("web lists %q", s.status("web"))
			}
		}
		if got := s.status("web"); !strings.Contains(got, "192.0.2.1") || !strings.Contains(got, "198.51.100.9") {
			t.Errorf("web lists %q", got)
		}
	})

	t.Run("without the right to read it the error names the right", func(t *testing.T) {
		_, err := OpenPeers(t.Context(), s.as("nobody", secretRule("get")).CoordinationV1().Leases(namespace), discard, unheard)
		if err == nil || !strings.Contains(err.Error(), `cannot get resource "leases"`) {
			t.Error(err)
		}
	})

	t.Run("that one Lease's right is enough to follow it", func(t *testing.T) {
		client := s.as("follower", rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"},
			ResourceNames: []string{RosterLease}, Verbs: []string{"get", "list", "watch"}})
		peers, err := OpenPeers(t.Context(), client.CoordinationV1().Leases(namespace), discard, unheard)
		if err != nil {
			t.Fatal(err)
		}
		if got := detached(peers, []*model.Node{{Name: "node-1"}, {Name: "nobody"}}); got != "nobody" {
			t.Errorf("%q is marked", got)
		}
	})
}
