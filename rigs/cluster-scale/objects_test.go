// SPDX-License-Identifier: Apache-2.0

package cluster_scale_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/beep-lb/beep/harness/kube"
	"github.com/beep-lb/beep/src/model"
	"github.com/beep-lb/beep/src/publish"
	"github.com/beep-lb/beep/src/watch"
)

const (
	peers     = 100
	endpoints = 10 // of a Service
	// firstPort is that of the first Service: none of these is reserved, or in the range of nodePorts.
	firstPort = 11000
	podPort   = 8080
	// posters is how many requests are on their way to the API server at once.
	posters = 8
)

func peerName(peer int) string { return fmt.Sprintf("peer-%02d", peer) }

func peerAddr(peer int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, byte(100 + peer)}) }

// podAddr is the address of a pod on a peer, or on node-a for the one past the last.
func podAddr(peer, pod int) netip.Addr {
	net := byte(100 + peer)
	if peer == peers {
		net = 1 // node-a's pod CIDR, see kube.NodeOf
	}
	return netip.AddrFrom4([4]byte{10, 42, net, byte(1 + pod)})
}

// parallel calls do with 0 to n-1, several at once, and fails the spec if any call fails.
func parallel(ctx context.Context, n int, do func(ctx context.Context, i int) error) {
	GinkgoHelper()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(posters)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	Expect(group.Wait()).To(Succeed())
}

// simulate posts the peers' Nodes, and has each say in a Lease that it is attached, as its controller would. They stop
// when the returned function is called.
func (r *rig) simulate(ctx context.Context) (stop func()) {
	GinkgoHelper()
	nodes := make([]*corev1.Node, peers)
	parallel(ctx, peers, func(ctx context.Context, i int) (err error) {
		cidr := netip.PrefixFrom(podAddr(i, 0), 24).Masked().String()
		nodes[i], err = r.Control.Client.CoreV1().Nodes().Create(ctx, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: peerName(i)},
			Spec:       corev1.NodeSpec{PodCIDR: cidr, PodCIDRs: []string{cidr}},
			Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: peerAddr(i).String()},
			}},
		}, metav1.CreateOptions{})
		return err
	})
	// Its own, that outlives the spec which calls.
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	log := slog.New(slog.NewTextHandler(GinkgoWriter, nil))
	for i, node := range nodes {
		lease := publish.NewNodeLease(r.Control.Client.CoordinationV1().Leases(watch.Namespace), log)
		lease.Say(model.Lease{Node: node.Name, Addresses: []netip.Addr{peerAddr(i)}, Attached: true}, string(node.UID))
		group.Go(func() { lease.Run(ctx) })
	}
	return func() { cancel(); group.Wait() }
}

func serviceName(service int) string { return fmt.Sprintf("s%04d", service) }

func portOf(service int) uint16 { return uint16(firstPort + service) }

// post creates Services, from the first number up to the second, and the EndpointSlice of each.
func (r *rig) post(ctx context.Context, from, to int) {
	GinkgoHelper()
	posted := make([]*discoveryv1.EndpointSlice, to-from)
	parallel(ctx, to-from, func(ctx context.Context, i int) (err error) {
		if posted[i], err = r.Control.Client.DiscoveryV1().EndpointSlices(kube.Namespace).Create(ctx, sliceOf(from+i), metav1.CreateOptions{}); err != nil {
			return err
		}
		_, err = r.Control.Client.CoreV1().Services(kube.Namespace).Create(ctx, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: serviceName(from + i)},
			Spec: corev1.ServiceSpec{
				Type:                          corev1.ServiceTypeLoadBalancer,
				Ports:                         []corev1.ServicePort{{Port: int32(portOf(from + i))}},
				AllocateLoadBalancerNodePorts: new(false),
			},
		}, metav1.CreateOptions{})
		return err
	})
	r.slices = append(r.slices, posted...)
}

// remove deletes the Services from a number on, and their EndpointSlices.
func (r *rig) remove(ctx context.Context, from int) {
	GinkgoHelper()
	parallel(ctx, len(r.slices)-from, func(ctx context.Context, i int) error {
		return errors.Join(
			r.Control.Client.CoreV1().Services(kube.Namespace).Delete(ctx, serviceName(from+i), metav1.DeleteOptions{}),
			r.Control.Client.DiscoveryV1().EndpointSlices(kube.Namespace).Delete(ctx, serviceName(from+i), metav1.DeleteOptions{}))
	})
	r.slices = r.slices[:from]
}

// sliceOf is the EndpointSlice of a Service. It has no selector, so that nobody else writes it.
func sliceOf(service int) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: serviceName(service), Labels: map[string]string{
			discoveryv1.LabelServiceName: serviceName(service), discoveryv1.LabelManagedBy: "rig-cluster-scale",
		}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new(""), Port: new(int32(podPort)), Protocol: new(corev1.ProtocolTCP)}},
	}
	for i := range endpoints {
		number := service*endpoints + i
		peer, pod := number%(peers+1), number/(peers+1)
		host := node
		if peer < peers {
			host = peerName(peer)
		}
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{podAddr(peer, pod).String()}, NodeName: &host,
			Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)},
			TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: kube.Namespace, Name: fmt.Sprint("pod-", number), UID: uid(number)},
		})
	}
	return slice
}

// toggle takes the last endpoint of a Service away, or gives it back, and returns how many the Service has then.
func (r *rig) toggle(ctx context.Context, service int) int {
	GinkgoHelper()
	next := r.slices[service].DeepCopy()
	if all := sliceOf(service).Endpoints; len(next.Endpoints) == len(all) {
		next.Endpoints = slices.Clone(all[:len(all)-1])
	} else {
		next.Endpoints = all
	}
	written, err := r.Control.Client.DiscoveryV1().EndpointSlices(kube.Namespace).Update(ctx, next, metav1.UpdateOptions{})
	Expect(err).NotTo(HaveOccurred())
	r.slices[service] = written
	return len(written.Endpoints)
}
