// SPDX-License-Identifier: Apache-2.0

// Package crowd posts what a large cluster has beside the one node that is real: peers that exist only as Nodes and as Leases,
// which it renews as their controllers would, and Services whose EndpointSlices nobody else writes. Invariant: every object is one that
// upstream's admission takes, and the same number always names the same Service, peer and pod.
package crowd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/beep-lb/beep/harness/kube"
	"github.com/beep-lb/beep/src/model"
	"github.com/beep-lb/beep/src/publish"
	"github.com/beep-lb/beep/src/watch"
)

const (
	// firstPort is that of the first Service: none of ten thousand is reserved, or in the range of nodePorts.
	firstPort = 11000
	podPort   = 8080
	// posters is how many requests are on their way to the API server at once.
	posters = 8
	// hosts is how many peers have pods: the pods' network has no room for those of more.
	hosts = 100
)

// Crowd is the peers and Services of one cluster. Its methods are for one goroutine.
type Crowd struct {
	control   *kube.ControlPlane
	node      string // the real one
	peers     int
	endpoints int // of a Service
	log       *slog.Logger
	slices    []*discoveryv1.EndpointSlice // of each Service, as they were posted last
}

// New is a crowd of up to 1,000 peers around a real node, whose Services will have so many endpoints each, spread over the first
// hundred peers and the node. Nothing is posted yet.
func New(control *kube.ControlPlane, node string, peers, endpoints int, log *slog.Logger) *Crowd {
	return &Crowd{control: control, node: node, peers: peers, endpoints: endpoints, log: log}
}

func peerName(peer int) string { return fmt.Sprintf("peer-%02d", peer) }

// peerAddr is a peer's address: of the nodes' network for those that have pods, and of the one for benchmarks (RFC 2544) for others.
func peerAddr(peer int) netip.Addr {
	if peer < hosts {
		return netip.AddrFrom4([4]byte{192, 0, 2, byte(100 + peer)})
	}
	return netip.AddrFrom4([4]byte{198, 18, byte(peer / 200), byte(1 + peer%200)})
}

// podAddr is the address of a pod on a peer that has pods, or on the real node for the one past the last.
func (c *Crowd) podAddr(peer, pod int) netip.Addr {
	net := byte(100 + peer)
	if peer == c.hosts() {
		net = 1 // the first node's pod CIDR, see kube.NodeOf
	}
	return netip.AddrFrom4([4]byte{10, 42, net, byte(1 + pod)})
}

func (c *Crowd) hosts() int { return min(c.peers, hosts) }

// parallel calls do with 0 to n-1, several at once.
func parallel(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(posters)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}

// Simulate posts the Nodes of the peers from a number on up to another, and has each say in a Lease that it is attached, as its
// controller would. They go on after ctx, until the returned function is called.
func (c *Crowd) Simulate(ctx context.Context, from, to int) (stop func(), err error) {
	nodes := make([]*corev1.Node, to-from)
	err = parallel(ctx, len(nodes), func(ctx context.Context, i int) (err error) {
		nodes[i], err = c.control.Client.CoreV1().Nodes().Create(ctx, c.peer(from+i), metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("simulate peers: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	for i, node := range nodes {
		lease := publish.NewNodeLease(c.control.Client.CoordinationV1().Leases(watch.Namespace), c.log)
		lease.Say(model.Lease{Node: node.Name, Addresses: []netip.Addr{peerAddr(from + i)}, Attached: true}, string(node.UID))
		group.Go(func() { lease.Run(ctx) })
	}
	return func() { cancel(); group.Wait() }, nil
}

func (c *Crowd) peer(number int) *corev1.Node {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: peerName(number)},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: peerAddr(number).String()},
		}},
	}
	if number < c.hosts() {
		cidr := netip.PrefixFrom(c.podAddr(number, 0), 24).Masked().String()
		node.Spec = corev1.NodeSpec{PodCIDR: cidr, PodCIDRs: []string{cidr}}
	}
	return node
}

func serviceName(service int) string { return fmt.Sprintf("s%04d", service) }

// PortOf is the port of a Service.
func PortOf(service int) uint16 { return uint16(firstPort + service) }

// Post creates Services, from the first number up to the second, and the EndpointSlice of each before it.
func (c *Crowd) Post(ctx context.Context, from, to int) error {
	posted := make([]*discoveryv1.EndpointSlice, to-from)
	err := parallel(ctx, to-from, func(ctx context.Context, i int) (err error) {
		slices := c.control.Client.DiscoveryV1().EndpointSlices(kube.Namespace)
		if posted[i], err = slices.Create(ctx, c.sliceOf(from+i), metav1.CreateOptions{}); err != nil {
			return err
		}
		_, err = c.control.Client.CoreV1().Services(kube.Namespace).Create(ctx, serviceOf(from+i), metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("post services: %w", err)
	}
	c.slices = append(c.slices, posted...)
	return nil
}

// Restore is Post for thousands, which takes the API server minutes: see kube.ControlPlane.Restore.
func (c *Crowd) Restore(ctx context.Context, from, to int) error {
	var objects []kube.Object
	for i := from; i < to; i++ {
		slice := c.sliceOf(i)
		c.slices = append(c.slices, slice)
		objects = append(objects, slice, serviceOf(i))
	}
	if err := c.control.Restore(ctx, objects...); err != nil {
		return fmt.Errorf("restore services: %w", err)
	}
	return nil
}

func serviceOf(number int) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: serviceName(number), Namespace: kube.Namespace},
		Spec: corev1.ServiceSpec{
			Type:                          corev1.ServiceTypeLoadBalancer,
			Ports:                         []corev1.ServicePort{{Port: int32(PortOf(number))}},
			AllocateLoadBalancerNodePorts: new(false),
		},
	}
}

// Remove deletes the Services from a number on, and their EndpointSlices.
func (c *Crowd) Remove(ctx context.Context, from int) error {
	err := parallel(ctx, len(c.slices)-from, func(ctx context.Context, i int) error {
		return errors.Join(
			c.control.Client.CoreV1().Services(kube.Namespace).Delete(ctx, serviceName(from+i), metav1.DeleteOptions{}),
			c.control.Client.DiscoveryV1().EndpointSlices(kube.Namespace).Delete(ctx, serviceName(from+i), metav1.DeleteOptions{}))
	})
	if err != nil {
		return fmt.Errorf("remove services: %w", err)
	}
	c.slices = c.slices[:from]
	return nil
}

// sliceOf is the EndpointSlice of a Service. It has no selector, so that nobody else writes it.
func (c *Crowd) sliceOf(service int) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: serviceName(service), Namespace: kube.Namespace, Labels: map[string]string{
			discoveryv1.LabelServiceName: serviceName(service), discoveryv1.LabelManagedBy: "crowd",
		}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new(""), Port: new(int32(podPort)), Protocol: new(corev1.ProtocolTCP)}},
	}
	// A pod may be in several Services once every address is taken.
	const podsEach = 250
	for i := range c.endpoints {
		number := service*c.endpoints + i
		peer, pod := number%(c.hosts()+1), number/(c.hosts()+1)%podsEach
		host := c.node
		if peer < c.hosts() {
			host = peerName(peer)
		}
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{c.podAddr(peer, pod).String()}, NodeName: &host,
			Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)},
			TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: kube.Namespace, Name: fmt.Sprint("pod-", number), UID: uid(number)},
		})
	}
	return slice
}

func uid(number int) types.UID {
	return types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", number))
}

// Toggle takes the last endpoint of a Service away, or gives it back, and returns how many the Service has then.
func (c *Crowd) Toggle(ctx context.Context, service int) (endpoints int, err error) {
	next := c.slices[service].DeepCopy()
	if all := c.sliceOf(service).Endpoints; len(next.Endpoints) == len(all) {
		next.Endpoints = slices.Clone(all[:len(all)-1])
	} else {
		next.Endpoints = all
	}
	written, err := c.control.Client.DiscoveryV1().EndpointSlices(kube.Namespace).Update(ctx, next, metav1.UpdateOptions{})
	if err != nil {
		return 0, fmt.Errorf("change the endpoints of service %s: %w", serviceName(service), err)
	}
	c.slices[service] = written
	return len(written.Endpoints), nil
}
