// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v5"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/beep-lb/beep/harness/artifacts"
	"github.com/beep-lb/beep/harness/kube"
	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
)

func TestMain(m *testing.M) { os.Exit(require.Main(m)) }

const (
	limit = 30 * time.Second
	port  = 8080
)

// eventually asks until there is no error.
func eventually(t *testing.T, what string, ask func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	_, err := backoff.Retry(ctx, func() (struct{}, error) { return struct{}{}, ask(ctx) },
		backoff.WithBackOff(backoff.NewConstantBackOff(20*time.Millisecond)), backoff.WithMaxElapsedTime(0))
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// TestCluster is one story on one control plane: nodes and pods are there, the real controllers act on them, the
// real kube-proxy serves, and identities have the rights that upstream gives them.
func TestCluster(t *testing.T) {
	require.Root(t)
	_, err := kube.FindBinaries()
	require.That(t, "Kubernetes programs", err)
	plan := topo.TwoNodes(topo.Options{})
	for _, services := range kube.ServiceCIDRs {
		// The kernel wants a route before netfilter changes where a packet of the node's own goes.
		plan.Host("node-a").Routes = append(plan.Host("node-a").Routes, topo.Route{To: services, Device: "eth0"})
	}
	topology := topo.New(t, plan)
	evidence := artifacts.New(t, topology)
	cluster := kube.Start(t, kube.Options{Evidence: evidence})
	ctx := t.Context()
	if err := cluster.JoinAll(ctx, topology); err != nil {
		t.Fatal(err)
	}
	if err := cluster.RunPods(ctx, &topology.Plan, map[string]string{"part": "all"}); err != nil {
		t.Fatal(err)
	}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "all"},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"part": "all"}, IPFamilyPolicy: new(corev1.IPFamilyPolicyRequireDualStack),
			Ports: []corev1.ServicePort{{Port: port}},
		},
	}
	service, err = cluster.Client.CoreV1().Services(kube.Namespace).Create(ctx, service, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}

	t.Run("a Service has ClusterIPs of both families in the cluster's networks", func(t *testing.T) {
		for i, text := range service.Spec.ClusterIPs {
			if !kube.ServiceCIDRs[i].Contains(netip.MustParseAddr(text)) {
				t.Errorf("ClusterIP %s is not in %s", text, kube.ServiceCIDRs[i])
			}
		}
	})
	t.Run("the real controllers make EndpointSlices of Services and Pods", func(t *testing.T) {
		var want []string
		for _, pod := range topology.Pods {
			for _, addr := range pod.Addrs {
				want = append(want, addr.String()+" on "+pod.Node)
			}
		}
		slices.Sort(want)
		eventually(t, "endpoints", func(ctx context.Context) error { return hasEndpoints(ctx, cluster, want) })
		if err := cluster.SetReady(ctx, kube.Namespace, "pod-a1", false); err != nil {
			t.Fatal(err)
		}
		without := slices.DeleteFunc(slices.Clone(want), func(text string) bool {
			return slices.ContainsFunc(topology.Addrs("pod-a1"), func(a netip.Addr) bool { return text == a.String()+" on node-a" })
		})
		eventually(t, "a pod that is not ready", func(ctx context.Context) error { return hasEndpoints(ctx, cluster, without) })
		if err := cluster.SetReady(ctx, kube.Namespace, "pod-a1", true); err != nil {
			t.Fatal(err)
		}
		eventually(t, "ready again", func(ctx context.Context) error { return hasEndpoints(ctx, cluster, want) })
	})
	t.Run("a Service that is restored is as one that is created", func(t *testing.T) { checkRestored(t, cluster) })
	t.Run("a node keeps its Lease", func(t *testing.T) {
		eventually(t, "lease", func(ctx context.Context) error {
			_, err := cluster.Client.CoordinationV1().Leases("kube-node-lease").Get(ctx, "node-b", metav1.GetOptions{})
			return err
		})
	})
	t.Run("an identity has upstream's rights and no others", func(t *testing.T) {
		config, err := cluster.Config("system:node:node-a", "system:nodes")
		if err != nil {
			t.Fatal(err)
		}
		kubelet, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := kubelet.CoreV1().Nodes().Get(ctx, "node-a", metav1.GetOptions{}); err != nil {
			t.Errorf("a node may read its own object: %v", err)
		}
		err = kubelet.CoreV1().Services(kube.Namespace).Delete(ctx, "all", metav1.DeleteOptions{})
		if !apierrors.IsForbidden(err) {
			t.Errorf("a node deletes a Service: %v, want forbidden", err)
		}
	})
	for _, mode := range kube.ProxyModes {
		t.Run("kube-proxy serves ClusterIPs on a node, in mode "+string(mode), func(t *testing.T) {
			serveClusterIP(t, cluster, topology, service, kube.ProxyOptions{Mode: mode, Evidence: evidence})
		})
	}
	t.Run("a pod that terminates is an endpoint until it is gone", func(t *testing.T) {
		if err := cluster.TerminatePod(ctx, kube.Namespace, "pod-b1"); err != nil {
			t.Fatal(err)
		}
		eventually(t, "terminating", func(ctx context.Context) error {
			return anyEndpoint(ctx, cluster, func(c conditions) bool { return c.terminating && c.serving && !c.ready })
		})
		if err := cluster.RemovePod(ctx, kube.Namespace, "pod-b1"); err != nil {
			t.Fatal(err)
		}
		eventually(t, "gone", func(ctx context.Context) error {
			if anyEndpoint(ctx, cluster, func(c conditions) bool { return c.terminating }) == nil {
				return errors.New("an endpoint still terminates")
			}
			return nil
		})
	})
	t.Run("an API server that was killed comes back with everything", func(t *testing.T) {
		if err := cluster.APIServer.Kill9(); err != nil {
			t.Fatal(err)
		}
		if err := cluster.APIServer.Start(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the Service", func(ctx context.Context) error {
			_, err := cluster.Client.CoreV1().Services(kube.Namespace).Get(ctx, "all", metav1.GetOptions{})
			return err
		})
	})
}

// serveClusterIP has the node's kube-proxy send the node itself to a pod of its own.
func serveClusterIP(t *testing.T, cluster *kube.ControlPlane, topology *topo.Topology, service *corev1.Service, o kube.ProxyOptions) {
	proxy, err := cluster.StartProxy(topology, "node-a", o)
	if err != nil {
		t.Fatal(err)
	}
	for i, family := range []topo.Families{topo.V4, topo.V6} {
		stop, err := traffic.ServeHTTP(topology.NS("pod-a1"), "pod-a1", netip.AddrPortFrom(topology.Addr("pod-a1", family), port))
		if err != nil {
			t.Fatal(err)
		}
		// pod-b1 is out of reach without a route, so half of the tries fail.
		at := netip.AddrPortFrom(netip.MustParseAddr(service.Spec.ClusterIPs[i]), port)
		eventually(t, "ask "+at.String(), func(ctx context.Context) error {
			once, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
			defer cancel()
			_, err := traffic.Get(once, topology.NS("node-a"), at)
			return err
		})
		if err := stop(); err != nil {
			t.Error(err)
		}
	}
	if err := proxy.Terminate(); err != nil {
		t.Error(err)
	}
}

type conditions struct{ ready, serving, terminating bool }

// walk visits every endpoint of the Service "all".
func walk(ctx context.Context, cluster *kube.ControlPlane, visit func(address, node string, c conditions)) error {
	list, err := cluster.Client.DiscoveryV1().EndpointSlices(kube.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: "kubernetes.io/service-name=all",
	})
	if err != nil {
		return err
	}
	for _, slice := range list.Items {
		for _, endpoint := range slice.Endpoints {
			c := endpoint.Conditions
			visit(endpoint.Addresses[0], *endpoint.NodeName, conditions{ready: *c.Ready, serving: *c.Serving, terminating: *c.Terminating})
		}
	}
	return nil
}

// hasEndpoints is nil if the ready endpoints are these, each "ADDRESS on NODE".
func hasEndpoints(ctx context.Context, cluster *kube.ControlPlane, want []string) error {
	var got []string
	err := walk(ctx, cluster, func(address, node string, c conditions) {
		if c.ready {
			got = append(got, address+" on "+node)
		}
	})
	slices.Sort(got)
	if err == nil && !slices.Equal(got, want) {
		err = errors.New("ready endpoints do not match")
	}
	return err
}

// anyEndpoint is nil if an endpoint is like that.
func anyEndpoint(ctx context.Context, cluster *kube.ControlPlane, like func(conditions) bool) error {
	found := false
	err := walk(ctx, cluster, func(_, _ string, c conditions) { found = found || like(c) })
	if err == nil && !found {
		err = errors.New("no endpoint is like that")
	}
	return err
}

// checkRestored compares a Service that was restored with one that was created, as the API server shows them, and has the API server
// change and delete it.
func checkRestored(t *testing.T, cluster *kube.ControlPlane) {
	ctx, services := t.Context(), cluster.Client.CoreV1().Services(kube.Namespace)
	named := func(name string) *corev1.Service {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: kube.Namespace},
			Spec: corev1.ServiceSpec{
				Type: corev1.ServiceTypeLoadBalancer, AllocateLoadBalancerNodePorts: new(false),
				IPFamilyPolicy: new(corev1.IPFamilyPolicyRequireDualStack), Ports: []corev1.ServicePort{{Port: port}},
			},
		}
	}
	created, err := services.Create(ctx, named("created"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "restored-1", Namespace: kube.Namespace},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	if err := cluster.Restore(ctx, slice, named("restored")); err != nil {
		t.Fatal(err)
	}
	var restored *corev1.Service
	eventually(t, "the restored Service", func(ctx context.Context) (err error) {
		if restored, err = services.Get(ctx, "restored", metav1.GetOptions{}); err != nil {
			return err
		}
		_, err = cluster.Client.DiscoveryV1().EndpointSlices(kube.Namespace).Get(ctx, "restored-1", metav1.GetOptions{})
		return err
	})
	for i, text := range restored.Spec.ClusterIPs {
		if !kube.ServiceCIDRs[i].Contains(netip.MustParseAddr(text)) {
			t.Errorf("ClusterIP %s is not in %s", text, kube.ServiceCIDRs[i])
		}
	}
	got, want := restored.Spec.DeepCopy(), created.Spec.DeepCopy()
	for _, spec := range []*corev1.ServiceSpec{got, want} {
		spec.ClusterIP, spec.ClusterIPs = "", nil
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("restored: %+v\ncreated: %+v", got, want)
	}
	if err := cluster.Restore(ctx, named("created")); err == nil || !strings.Contains(err.Error(), "it exists") {
		t.Errorf("restored what exists: %v", err)
	}
	restored.Spec.Ports[0].Port++
	if _, err := services.Update(ctx, restored, metav1.UpdateOptions{}); err != nil {
		t.Error(err)
	}
	if err := services.Delete(ctx, "restored", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	addresses := cluster.Client.NetworkingV1().IPAddresses()
	eventually(t, "its address is free", func(ctx context.Context) error {
		_, err := addresses.Get(ctx, restored.Spec.ClusterIP, metav1.GetOptions{})
		if err == nil {
			return errors.New("it is taken")
		}
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}
