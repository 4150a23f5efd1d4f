// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/beep-lb/beep/harness/kube"
	"github.com/beep-lb/beep/src/model"
)

// The ports: of the pods that answer, of the Services that are dialled for each path, and of all others. None is in the range of
// nodePorts.
const (
	podPort    = 8080
	localPort  = 10000
	remotePort = 10100
	markerPort = 10200
	otherPort  = 11000
)

// Services are what the nodes serve: so many that are dialled on each path, each of one pod, TCP and UDP, and so many in all. Each
// of the others has an endpoint that nobody dials, on one node or the other, and TCP alone. (With two endpoints iptables takes eight
// times as long to load 10,000 Services, minutes for each node and family, and looks for the dialled ones among as many rules.)
type Services struct{ Dialled, Total int }

// Of is so many Services. iptables looks for a new connection's Service one by one, in an order that is another one after every
// change: of many Services several are dialled, so that the mean of their places is what is measured.
func Of(total int) Services {
	if total < 100 {
		return Services{Dialled: 1, Total: max(2, total)}
	}
	return Services{Dialled: 8, Total: total}
}

func dialledPort(path Path, service int) uint16 {
	if path == Local {
		return localPort + uint16(service)
	}
	return remotePort + uint16(service)
}

// service is one Service as both balancers need it.
type service struct {
	name      string
	port      uint16
	protos    []model.Proto
	endpoints []endpoint
}

// endpoint is one pod: its addresses, IPv4 first, its port, and whether node-a runs it.
type endpoint struct {
	addrs []netip.Addr
	port  uint16
	onA   bool
}

// list is every Service.
func (s Services) list() []service {
	var all []service
	both := []model.Proto{model.TCP, model.UDP}
	for i := range s.Dialled {
		all = append(all,
			service{fmt.Sprintf("local-%d", i), dialledPort(Local, i), both, []endpoint{{podsA, podPort, true}}},
			service{fmt.Sprintf("remote-%d", i), dialledPort(Remote, i), both, []endpoint{{podsB, podPort, false}}})
	}
	for i := range max(0, s.Total-len(all)) {
		all = append(all, service{fmt.Sprintf("other-%d", i), otherPort + uint16(i), both[:1], []endpoint{otherEndpoint(i)}})
	}
	return all
}

// otherEndpoint is a pod that is not there: on the nodes in turn, 200 addresses on each, and as many ports as it takes.
func otherEndpoint(service int) endpoint {
	const addrs, firstAddr = 200, 20
	e, like := endpoint{port: uint16(otherPort + service/addrs), onA: service%2 == 0}, podsB
	if e.onA {
		like = podsA
	}
	for _, addr := range like {
		bytes := addr.AsSlice()
		bytes[len(bytes)-1] = byte(firstAddr + service%addrs)
		other, _ := netip.AddrFromSlice(bytes)
		e.addrs = append(e.addrs, other)
	}
	return e
}

// desired is what beep's controller would want in the maps of node-a, or of node-b.
func (s Services) desired(onA bool) model.Desired {
	own, peers, fronts := addrsOf(underB), addrsOf(underA), addrsOf(underB)
	if onA {
		own, peers, fronts = addrsOf(underA), addrsOf(underB), addrsOf(frontA)
	}
	desired := model.Desired{Seed: [16]byte{1}, Underlay4: own[0], Underlay6: own[1], Peers: peers}
	for _, service := range s.list() {
		for _, proto := range service.protos {
			for family, addr := range fronts {
				front := model.Front{Socket: model.Socket{Addr: addr, Port: service.port, Proto: proto}}
				for _, e := range service.endpoints {
					at := model.Endpoint{Addr: e.addrs[family], Port: e.port}
					if e.onA == onA {
						desired.Targets = append(desired.Targets, model.Socket{Addr: at.Addr, Port: at.Port, Proto: proto})
					} else {
						at.Peer = peers[family]
					}
					front.Endpoints = append(front.Endpoints, at)
				}
				slices.SortFunc(front.Endpoints, model.Endpoint.Compare)
				desired.Fronts = append(desired.Fronts, front)
			}
		}
	}
	slices.SortFunc(desired.Fronts, func(a, b model.Front) int { return a.Compare(b.Socket) })
	slices.SortFunc(desired.Targets, model.Socket.Compare)
	desired.Targets = slices.Compact(desired.Targets)
	return desired
}

// marker is a further Service, that is restored after all others: who serves it knows them all.
func marker(number int) service {
	tcp, pod := []model.Proto{model.TCP}, []endpoint{{podsA, podPort, true}}
	return service{fmt.Sprintf("marker-%d", number), markerPort + uint16(number), tcp, pod}
}

// Restore has the API server know what it does not know of the Services yet, by the number that it knows.
func (s Services) Restore(ctx context.Context, control *kube.ControlPlane, has Services) error {
	there := map[string]bool{}
	for _, service := range has.list() {
		there[service.name] = true
	}
	var objects []kube.Object
	for _, service := range s.list() {
		if !there[service.name] {
			objects = append(objects, service.objects()...)
		}
	}
	return control.Restore(ctx, objects...)
}

// objects are the Service, which has no selector, so that nobody else writes its EndpointSlices, and lists node-a, as a controller would
// have it; and these.
func (s *service) objects() []kube.Object {
	object := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: s.name, Namespace: kube.Namespace},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, AllocateLoadBalancerNodePorts: new(false),
			IPFamilyPolicy: new(corev1.IPFamilyPolicyRequireDualStack),
		},
	}
	for _, proto := range s.protos {
		object.Spec.Ports = append(object.Spec.Ports, corev1.ServicePort{
			Name: portName(proto), Port: int32(s.port), Protocol: corev1.Protocol(proto.String()),
		})
	}
	for _, addr := range addrsOf(frontA) {
		object.Status.LoadBalancer.Ingress = append(object.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{
			IP: addr.String(), IPMode: new(corev1.LoadBalancerIPModeVIP),
		})
	}
	return []kube.Object{s.slice(0, discoveryv1.AddressTypeIPv4), s.slice(1, discoveryv1.AddressTypeIPv6), object}
}

func portName(proto model.Proto) string {
	return map[model.Proto]string{model.TCP: "tcp", model.UDP: "udp"}[proto]
}

func (s *service) slice(family int, kind discoveryv1.AddressType) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%d", s.name, family), Namespace: kube.Namespace,
			Labels: map[string]string{discoveryv1.LabelServiceName: s.name, discoveryv1.LabelManagedBy: "bench"},
		},
		AddressType: kind,
	}
	for _, proto := range s.protos {
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{
			Name: new(portName(proto)), Port: new(int32(s.endpoints[0].port)), Protocol: new(corev1.Protocol(proto.String())),
		})
	}
	for _, e := range s.endpoints {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses:  []string{e.addrs[family].String()},
			NodeName:   new(cmp.Or(map[bool]string{true: "node-a"}[e.onA], "node-b")),
			Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)},
		})
	}
	return slice
}
