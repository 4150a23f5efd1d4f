// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/beep-lb/beep/harness/artifacts"
	"github.com/beep-lb/beep/harness/topo"
)

// The Lease of a node, as the kubelet keeps it (k8s.io/kubernetes, pkg/kubelet/apis/config: 40 s, renewed at a quarter).
const (
	leaseNamespace = "kube-node-lease"
	leaseSeconds   = 40
	beat           = leaseSeconds * time.Second / 4
)

// JoinAll joins every node of a topology, each with NodeOf's object.
func (c *ControlPlane) JoinAll(ctx context.Context, topology *topo.Topology) error {
	for _, host := range topology.Hosts {
		if host.Role != topo.Node {
			continue
		}
		if err := c.Join(ctx, topology, NodeOf(&topology.Plan, host.Name)); err != nil {
			return err
		}
	}
	return nil
}

// Join gives a node of a topology its way to the API server, posts its object, which has the node's name, and keeps
// its Lease until Close. A node joins once; its card (device "mgmt") ends with its namespace.
func (c *ControlPlane) Join(ctx context.Context, topology *topo.Topology, node *corev1.Node) error {
	if err := c.plug(topology, node.Name); err != nil {
		return fmt.Errorf("join: %w", err)
	}
	if err := c.PostNode(ctx, node); err != nil {
		return err
	}
	c.beginBeats(node.Name)
	return nil
}

// StopBeats has a joined node say nothing any more, as when its kubelet hangs or its machine is off: its Lease is not
// renewed, and the node lifecycle controller calls it lost after 50 s (--node-monitor-grace-period).
func (c *ControlPlane) StopBeats(node string) {
	c.mu.Lock()
	stop := c.kubelets[node]
	delete(c.kubelets, node)
	c.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// ResumeBeats has it say again that it is well: its Lease, and the condition that the controller changed.
func (c *ControlPlane) ResumeBeats(ctx context.Context, node string) error {
	c.beginBeats(node)
	return c.SetNodeReady(ctx, node, true)
}

// SetNodeReady posts a node's Ready condition, as its kubelet finds itself.
func (c *ControlPlane) SetNodeReady(ctx context.Context, name string, ready bool) error {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	patch, err := json.Marshal(corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: status, Reason: "KubeletSays",
		LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
	}}}})
	if err != nil {
		return fmt.Errorf("readiness of node %s: %w", name, err)
	}
	_, err = c.Client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("readiness of node %s: %w", name, err)
	}
	return nil
}

func (c *ControlPlane) beginBeats(node string) {
	ctx, stop := context.WithCancel(c.life)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kubelets[node] != nil {
		stop()
		return
	}
	c.kubelets[node] = stop
	c.beats.Go(func() { c.renew(ctx, node) })
}

// PostNode posts a Node with its status. Alone it makes a node that is nowhere, which nobody renews a Lease for: the
// node lifecycle controller calls it lost after 50 s.
func (c *ControlPlane) PostNode(ctx context.Context, node *corev1.Node) error {
	if _, err := c.Client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("post node %s: %w", node.Name, err)
	}
	return nil
}

// NodeOf is the Node of a topology's node as a kubelet posts it: ready, with all its addresses as InternalIPs, IPv4
// first, and with the pod CIDRs by which topologies number pods: node-a has 10.42.1.0/24 and 2001:db8:a::1:0/112.
func NodeOf(plan *topo.Plan, name string) *corev1.Node {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname: name, corev1.LabelOSStable: "linux",
		}},
	}
	for _, family := range []topo.Families{topo.V4, topo.V6} {
		for _, addr := range plan.Addrs(name) {
			if family.Has(addr) {
				internal := corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: addr.String()}
				node.Status.Addresses = append(node.Status.Addresses, internal)
			}
		}
	}
	node.Status.Addresses = append(node.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeHostName, Address: name})
	number := 0
	for _, host := range plan.Hosts {
		if host.Role == topo.Node {
			number++
		}
		if host.Name == name {
			break
		}
	}
	for _, cidr := range podCIDRs(number) {
		node.Spec.PodCIDRs = append(node.Spec.PodCIDRs, cidr.String())
	}
	node.Spec.PodCIDR = node.Spec.PodCIDRs[0]
	now := metav1.Now()
	node.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
		LastHeartbeatTime: now, LastTransitionTime: now,
	}}
	return node
}

// PodCIDRsOf are the pod CIDRs of a Node, IPv4 first.
func PodCIDRsOf(node *corev1.Node) []netip.Prefix {
	var cidrs []netip.Prefix
	for _, text := range node.Spec.PodCIDRs {
		cidrs = append(cidrs, netip.MustParsePrefix(text))
	}
	return cidrs
}

// podCIDRs are those of the nth node, counted from 1.
func podCIDRs(number int) []netip.Prefix {
	four, six := PodCIDRs[0].Addr().As4(), PodCIDRs[1].Addr().As16()
	four[2] = byte(number)
	binary.BigEndian.PutUint16(six[12:], uint16(number))
	return []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4(four), 24), netip.PrefixFrom(netip.AddrFrom16(six), 112)}
}

// renew keeps a node's Lease until ctx ends. A failure is left to the next beat, as the kubelet does:
// whether a spec minds an API server that is away is for the spec to say.
func (c *ControlPlane) renew(ctx context.Context, node string) {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for {
		_ = c.renewOnce(ctx, node)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (c *ControlPlane) renewOnce(ctx context.Context, node string) error {
	ctx, cancel := context.WithTimeout(ctx, beat)
	defer cancel()
	leases := c.Client.CoordinationV1().Leases(leaseNamespace)
	seconds, now := int32(leaseSeconds), metav1.NowMicro()
	lease, err := leases.Get(ctx, node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = leases.Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: node},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &node, LeaseDurationSeconds: &seconds, RenewTime: &now},
		}, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	lease.Spec.RenewTime = &now
	_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	return err
}

// register has the collector show the cluster's objects, as they were when the failed test ended.
func (c *ControlPlane) register(evidence *artifacts.Collector) {
	evidence.Register("kube-objects", func(w io.Writer) {
		c.mu.Lock()
		seen, closed := c.lastSeen, c.closed
		c.mu.Unlock()
		if !closed {
			seen = c.Objects(c.life)
		}
		fmt.Fprint(w, seen)
	})
}

// remember looks at the objects while there still is an API server: the collector dumps after Close.
func (c *ControlPlane) remember() {
	seen := c.Objects(c.life)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastSeen = seen
}

// Objects prints the cluster's Nodes, Services, EndpointSlices, Pods and Events as YAML, for people. What cannot be
// read is said in its place.
func (c *ControlPlane) Objects(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	all := metav1.ListOptions{}
	core := c.Client.CoreV1()
	nodes, errNodes := core.Nodes().List(ctx, all)
	services, errServices := core.Services("").List(ctx, all)
	slices, errSlices := c.Client.DiscoveryV1().EndpointSlices("").List(ctx, all)
	pods, errPods := core.Pods("").List(ctx, all)
	events, errEvents := core.Events("").List(ctx, all)
	omitManagers(nodes.Items, func(o *corev1.Node) *metav1.ObjectMeta { return &o.ObjectMeta })
	omitManagers(services.Items, func(o *corev1.Service) *metav1.ObjectMeta { return &o.ObjectMeta })
	omitManagers(slices.Items, func(o *discoveryv1.EndpointSlice) *metav1.ObjectMeta { return &o.ObjectMeta })
	omitManagers(pods.Items, func(o *corev1.Pod) *metav1.ObjectMeta { return &o.ObjectMeta })
	omitManagers(events.Items, func(o *corev1.Event) *metav1.ObjectMeta { return &o.ObjectMeta })
	errs := errors.Join(errNodes, errServices, errSlices, errPods, errEvents)
	text, err := yaml.Marshal(map[string]any{
		"nodes": nodes.Items, "services": services.Items, "endpointSlices": slices.Items, "pods": pods.Items, "events": events.Items,
	})
	if errs = errors.Join(errs, err); errs != nil {
		return fmt.Sprintf("%s\n%v\n", text, errs)
	}
	return string(text)
}

// omitManagers drops who wrote which field: most of an object's text, and of no use to a reader of a failure.
func omitManagers[T any](objects []T, meta func(*T) *metav1.ObjectMeta) {
	for i := range objects {
		meta(&objects[i]).ManagedFields = nil
	}
}
