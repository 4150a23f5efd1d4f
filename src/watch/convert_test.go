// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/beep-lb/beep/src/model"
)

// comparers look at addresses as values.
var comparers = cmp.Options{
	cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
	cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
}

func addrs(texts ...string) (list []netip.Addr) {
	for _, text := range texts {
		list = append(list, netip.MustParseAddr(text))
	}
	return list
}

func prefixes(texts ...string) (list []netip.Prefix) {
	for _, text := range texts {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}

func TestServicesAreTakenOverAsWritten(t *testing.T) {
	created := metav1.NewTime(time.Unix(1700000000, 0))
	got := convertService(&corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web", UID: "u", ResourceVersion: "7", CreationTimestamp: created, DeletionTimestamp: &created,
			Labels:      map[string]string{"service.kubernetes.io/service-proxy-name": ""},
			Annotations: map[string]string{"service.beta.kubernetes.io/load-balancer-source-ranges": " 10.0.0.0/8"},
		},
		Spec: corev1.ServiceSpec{
			LoadBalancerClass: new("beep"), IPFamilies: []corev1.IPFamily{"IPv6", "IPv4"},
			Ports:                 []corev1.ServicePort{{Name: "dns", Protocol: "UDP", Port: 53}, {Name: "sctp", Protocol: "SCTP", Port: 9}},
			ExternalTrafficPolicy: "Local", TrafficDistribution: new("PreferSameNode"), SessionAffinity: "ClientIP",
			SessionAffinityConfig:    &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(int32(5))}},
			LoadBalancerSourceRanges: []string{"198.51.100.0/24 "}, LoadBalancerIP: "192.0.2.9",
		},
		Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{
			{IP: "192.0.2.1", IPMode: new(corev1.LoadBalancerIPModeVIP)},
			{Hostname: "elsewhere", Ports: []corev1.PortStatus{{Port: 53, Protocol: "UDP", Error: new("Odd")}}},
		}}},
	})
	want := &model.Service{
		ObjectKey: model.ObjectKey{Namespace: "shop", Name: "web"}, UID: "u", ResourceVersion: "7", Created: 1700000000, Deleting: true,
		Class: "beep", OtherProxy: true, IPFamilies: []model.Family{model.IPv6, model.IPv4},
		Ports:         []model.ServicePort{{Name: "dns", Proto: model.UDP, Port: 53}, {Name: "sctp", Proto: model.SCTP, Port: 9}},
		ExternalLocal: true, PreferSameNode: true, ClientIPAffinity: true, AffinityTimeout: 5 * time.Second,
		SourceRanges: []string{"198.51.100.0/24 "}, SourceRangesAnnotation: " 10.0.0.0/8", LoadBalancerIP: "192.0.2.9",
		Ingress: []model.Ingress{
			{IP: "192.0.2.1", IPMode: "VIP"},
			{Hostname: "elsewhere", Ports: []model.IngressPort{{Port: 53, Protocol: "UDP", Error: "Odd"}}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSlicesAreTakenOverWithAllTheirOddities(t *testing.T) {
	got := convertSlice(&discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: "web-1", Labels: map[string]string{"kubernetes.io/service-name": "web"}},
		AddressType: "IPv4",
		Ports: []discoveryv1.EndpointPort{
			{Name: new("http"), Protocol: new(corev1.ProtocolTCP), Port: new(int32(8080))}, {Port: new(int32(0))}, {}, {Port: new(int32(70000))},
		},
		Endpoints: []discoveryv1.Endpoint{
			{
				Addresses: []string{"10.42.1.5", "10.42.1.6"}, NodeName: new("a"),
				Conditions: discoveryv1.EndpointConditions{Ready: new(false), Serving: new(true), Terminating: new(true)},
				TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "web-x", UID: "p"},
				Hints:      &discoveryv1.EndpointHints{ForNodes: []discoveryv1.ForNode{{Name: "a"}}, ForZones: []discoveryv1.ForZone{{Name: "z"}, {Name: "y"}}},
			},
			{Addresses: []string{"no address"}}, {Addresses: []string{"fe80::1%eth0"}}, {},
		},
	})
	want := &model.Slice{
		ObjectKey: model.ObjectKey{Namespace: "shop", Name: "web-1"}, Service: "web", Family: model.IPv4,
		Ports: []model.SlicePort{{Name: "http", Proto: model.TCP, Port: 8080}, {Proto: model.TCP}, {Proto: model.TCP}, {Proto: model.TCP}},
		Endpoints: []model.SliceEndpoint{
			{
				Addr: netip.MustParseAddr("10.42.1.5"), Node: "a", Target: "Pod shop/web-x", TargetUID: "p",
				Ready: model.False, Serving: model.True, Terminating: model.True, NodeHints: []string{"a"}, ZoneHints: []string{"z", "y"},
			},
			{}, {}, {},
		},
	}
	if diff := cmp.Diff(want, got, comparers); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if fqdn := convertSlice(&discoveryv1.EndpointSlice{AddressType: "FQDN"}); fqdn.Family != 0 {
		t.Errorf("FQDN is %s", fqdn.Family)
	}
}

func TestNodesAreTakenOver(t *testing.T) {
	got := convertNode(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "n", DeletionTimestamp: &metav1.Time{}, Labels: map[string]string{
			"topology.kubernetes.io/zone": "z", "node.kubernetes.io/exclude-from-external-load-balancers": "banana"}},
		Spec: corev1.NodeSpec{PodCIDRs: []string{"10.42.1.0/24", "none", "2001:db8:a:1::/64"}, Taints: []corev1.Taint{{Key: "ToBeDeletedByClusterAutoscaler"}}},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
			{Type: "Hostname", Address: "a"}, {Type: "InternalIP", Address: "192.0.2.1"}, {Type: "ExternalIP", Address: "198.51.100.1"},
			{Type: "InternalIP", Address: "2001:DB8:B::1"}, {Type: "InternalIP", Address: "oops"},
		}},
	})
	want := &model.Node{
		Name: "a", UID: "n", Deleting: true, Zone: "z", Exclude: model.Label{Set: true, Value: "banana"}, ToBeDeleted: true,
		InternalIPs: addrs("192.0.2.1", "2001:db8:b::1"), ExternalIPs: addrs("198.51.100.1"), PodCIDRs: prefixes("10.42.1.0/24", "2001:db8:a:1::/64"),
	}
	if diff := cmp.Diff(want, got, comparers); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStrippingChangesNothingThatIsTakenOver(t *testing.T) {
	meta := metav1.ObjectMeta{Name: "x", Namespace: "y", UID: "z", ResourceVersion: "1",
		Labels:      map[string]string{labelZone: "z", labelService: "web", labelProxyName: "x"},
		Annotations: map[string]string{annotationRange: "10.0.0.0/8"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}}
	service := &corev1.Service{ObjectMeta: *meta.DeepCopy()}
	before := convertService(service)
	if stripService(service); !before.Equal(convertService(service)) || service.ManagedFields != nil {
		t.Errorf("service: %+v", service)
	}
	slice := &discoveryv1.EndpointSlice{ObjectMeta: *meta.DeepCopy()}
	sliceBefore := convertSlice(slice)
	if stripSlice(slice); !sliceBefore.Equal(convertSlice(slice)) || slice.Annotations != nil {
		t.Errorf("slice: %+v", slice)
	}
	node := &corev1.Node{ObjectMeta: *meta.DeepCopy(), Status: corev1.NodeStatus{
		Addresses: []corev1.NodeAddress{{Type: "InternalIP", Address: "192.0.2.1"}}, Images: []corev1.ContainerImage{{SizeBytes: 1}}}}
	nodeBefore := convertNode(node)
	if stripNode(node); !nodeBefore.Equal(convertNode(node)) || node.Status.Images != nil {
		t.Errorf("node: %+v", node)
	}
}
