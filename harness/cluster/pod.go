// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/beep-lb/beep/harness/kube"
	"github.com/beep-lb/beep/harness/netns"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
)

// Pods are numbered from firstPod to lastPod on each node, one after the other before a number is used again: node-a's
// first is the namespace pod-a100 with 10.42.1.100 and 2001:db8:a::1:100.
const firstPod, lastPod = 100, 250

// StreamPort is the name of a container port behind which a pod serves traffic.Exchange. Behind every other TCP port it
// serves HTTP (traffic.Get), and behind every UDP port it answers datagrams (traffic.SendUDP).
const StreamPort = "stream"

// running is a pod that runs.
type running struct {
	uid     types.UID
	node    string
	machine string // the namespace's name in the topology; empty for the node's own (hostNetwork)
	ns      *netns.NS
	addrs   []netip.Addr
	stops   []func() error
	echoes  []*traffic.Echo
	begun   time.Time
	posted  bool // that it runs
	ready   bool // posted too
}

// placement is a pod that was bound.
type placement struct {
	node, owner string
}

// PodNS is the namespace in which a pod runs, from where a spec dials as that pod would.
func (c *Cluster) PodNS(namespace, name string) (*netns.NS, error) {
	runs := c.kubelets.find(namespace + "/" + name)
	if runs == nil {
		return nil, fmt.Errorf("pod %s/%s does not run", namespace, name)
	}
	return runs.ns, nil
}

// Answered is how many datagrams a pod has answered since it began; 0 if it does not run.
func (c *Cluster) Answered(namespace, name string) int {
	answered := 0
	if runs := c.kubelets.find(namespace + "/" + name); runs != nil {
		for _, echo := range runs.echoes {
			answered += echo.Count().Answered
		}
	}
	return answered
}

// begin makes a pod: a namespace behind its node, and its servers.
func (k *kubelets) begin(key string, pod *corev1.Pod) (*running, error) {
	runs := &running{uid: pod.UID, node: pod.Spec.NodeName, begun: time.Now()}
	if pod.Spec.HostNetwork {
		runs.ns, runs.addrs = k.c.NS(runs.node), k.c.Addrs(runs.node)
	} else {
		var number int
		number, runs.addrs = k.address(runs.node)
		runs.machine = fmt.Sprintf("pod-%s%d", strings.TrimPrefix(runs.node, "node-"), number)
		var err error
		if runs.ns, err = k.c.AddPod(topo.Pod{Name: runs.machine, Node: runs.node, Addrs: runs.addrs}); err != nil {
			return nil, err
		}
	}
	if err := runs.serve(pod); err != nil {
		return nil, errors.Join(err, k.end(key, runs))
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.running[key] = runs
	return runs, nil
}

// address takes the next number of a node that no pod of it has.
func (k *kubelets) address(node string) (number int, addrs []netip.Addr) {
	k.mu.Lock()
	defer k.mu.Unlock()
	taken := map[netip.Addr]bool{}
	for _, runs := range k.running {
		for _, addr := range runs.addrs {
			taken[addr] = true
		}
	}
	number = k.numbers[node]
	for {
		if number++; number < firstPod || number > lastPod {
			number = firstPod
		}
		addrs = nil
		for _, cidr := range kube.PodCIDRsOf(kube.NodeOf(&k.c.Plan, node)) {
			addr := numbered(cidr, number)
			if k.c.Addr(node, familyOf(addr)).IsValid() {
				addrs = append(addrs, addr)
			}
		}
		if !slices.ContainsFunc(addrs, func(a netip.Addr) bool { return taken[a] }) {
			k.numbers[node] = number
			return number, addrs
		}
	}
}

// numbered is a pod's address: its number reads alike in both families, 10.42.1.100 and 2001:db8:a::1:100.
func numbered(cidr netip.Prefix, number int) netip.Addr {
	if cidr.Addr().Is4() {
		addr := cidr.Addr().As4()
		addr[3] = byte(number)
		return netip.AddrFrom4(addr)
	}
	addr := cidr.Addr().As16()
	addr[14], addr[15] = byte(number/100), byte(number/10%10<<4|number%10)
	return netip.AddrFrom16(addr)
}

func familyOf(addr netip.Addr) topo.Families {
	if addr.Is4() {
		return topo.V4
	}
	return topo.V6
}

// serve starts a server for every port of every container, on all of the pod's addresses.
func (r *running) serve(pod *corev1.Pod) error {
	for _, container := range pod.Spec.Containers {
		for _, port := range container.Ports {
			for _, addr := range r.addrs {
				if err := r.serveAt(pod.Name, port, netip.AddrPortFrom(addr, uint16(port.ContainerPort))); err != nil {
					return fmt.Errorf("pod %s port %s: %w", pod.Name, strconv.Itoa(int(port.ContainerPort)), err)
				}
			}
		}
	}
	return nil
}

func (r *running) serveAt(name string, port corev1.ContainerPort, at netip.AddrPort) error {
	if port.Protocol == corev1.ProtocolUDP {
		echo, err := traffic.ServeUDP(r.ns, at)
		if err == nil {
			r.stops, r.echoes = append(r.stops, echo.Close), append(r.echoes, echo)
		}
		return err
	}
	serve := traffic.ServeHTTP
	if port.Name == StreamPort {
		serve = traffic.ServeTCP
	}
	stop, err := serve(r.ns, name, at)
	if err == nil {
		r.stops = append(r.stops, stop)
	}
	return err
}

// bind gives a pod a node, as a scheduler that spreads the pods of an owner: the one that is well and has fewest.
func (k *kubelets) bind(ctx context.Context, pod *corev1.Pod) error {
	list, err := k.c.Control.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{
		LabelSelector: labels.SelectorFromSet(pod.Spec.NodeSelector).String(),
	})
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, twice := k.bound[pod.UID]; twice {
		return nil
	}
	owner := ownerOf(pod)
	siblings, all := k.crowd(owner)
	nodes := slices.DeleteFunc(list.Items, func(node corev1.Node) bool { return k.off[node.Name] || !takes(&node, pod) })
	if len(nodes) == 0 {
		return fmt.Errorf("pod %s: no node takes it", pod.Name)
	}
	best := slices.MinFunc(nodes, func(a, b corev1.Node) int {
		return cmp.Or(cmp.Compare(siblings[a.Name], siblings[b.Name]), cmp.Compare(all[a.Name], all[b.Name]), cmp.Compare(a.Name, b.Name))
	})
	err = k.c.Control.Client.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: best.Name},
	}, metav1.CreateOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		k.bound[pod.UID] = placement{best.Name, owner}
	}
	return err
}

// crowd counts the pods of each node that are to stay: those of an owner, and all.
func (k *kubelets) crowd(owner string) (siblings, all map[string]int) {
	siblings, all = map[string]int{}, map[string]int{}
	pods, err := k.pods.List(labels.Everything())
	if err != nil {
		pods = nil // a lister of a store that is complete does not fail
	}
	known := map[types.UID]bool{}
	for _, pod := range pods {
		known[pod.UID] = true
		place, bound := k.bound[pod.UID]
		if !bound && pod.Spec.NodeName != "" {
			place = placement{pod.Spec.NodeName, ownerOf(pod)}
		}
		if place.node == "" || pod.DeletionTimestamp != nil || ended(pod) {
			continue
		}
		all[place.node]++
		if place.owner == owner {
			siblings[place.node]++
		}
	}
	for uid := range k.bound {
		if !known[uid] {
			delete(k.bound, uid)
		}
	}
	return siblings, all
}

// ownerOf says whose pods are to be spread: those of one controller, or, of none, all of a namespace.
func ownerOf(pod *corev1.Pod) string {
	if owner := metav1.GetControllerOf(pod); owner != nil {
		return string(owner.UID)
	}
	return pod.Namespace
}

// takes says that a node is well and that neither of the two refuses the other. Of affinities it knows the one by which
// a DaemonSet names a pod's node.
func takes(node *corev1.Node, pod *corev1.Pod) bool {
	if named := namedNodes(pod); named != nil {
		return slices.Contains(named, node.Name) // it tolerates what ails the node
	}
	if node.Spec.Unschedulable || slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Effect != corev1.TaintEffectPreferNoSchedule
	}) {
		return false
	}
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// namedNodes are the nodes that a pod asks for by name; nil if it does not.
func namedNodes(pod *corev1.Pod) []string {
	affinity := pod.Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	var names []string
	for _, term := range affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, field := range term.MatchFields {
			if field.Key == metav1.ObjectNameField {
				names = append(names, field.Values...)
			}
		}
	}
	return names
}
