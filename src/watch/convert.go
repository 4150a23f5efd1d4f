// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"net/netip"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/beep-lb/beep/src/model"
)

// The names that Kubernetes gives to what is not a field. The first two and the headless label are not in
// k8s.io/api: see pkg/proxy/apis/well_known_labels.go and cloud-provider/api/well_known_taints.go.
const (
	labelProxyName  = "service.kubernetes.io/service-proxy-name"
	taintAutoscaler = "ToBeDeletedByClusterAutoscaler"
	labelHeadless   = corev1.IsHeadlessService
	labelExclude    = corev1.LabelNodeExcludeBalancers
	labelZone       = corev1.LabelTopologyZone
	labelService    = discoveryv1.LabelServiceName
	annotationRange = corev1.AnnotationLoadBalancerSourceRangesKey
)

// stripMeta drops what no conversion reads.
func stripMeta(meta *metav1.ObjectMeta) {
	meta.ManagedFields, meta.OwnerReferences, meta.Finalizers = nil, nil, nil
}

func stripService(s *corev1.Service) { stripMeta(&s.ObjectMeta) }

func stripSlice(s *discoveryv1.EndpointSlice) {
	stripMeta(&s.ObjectMeta)
	s.Annotations = nil
}

func stripNode(n *corev1.Node) {
	stripMeta(&n.ObjectMeta)
	n.Annotations = nil
	n.Status = corev1.NodeStatus{Addresses: n.Status.Addresses}
}

// convertService takes over a Service of type LoadBalancer.
func convertService(s *corev1.Service) *model.Service {
	_, otherProxy := s.Labels[labelProxyName]
	service := &model.Service{
		ObjectKey:              model.ObjectKey{Namespace: s.Namespace, Name: s.Name},
		UID:                    string(s.UID),
		ResourceVersion:        s.ResourceVersion,
		Created:                created(&s.ObjectMeta),
		Deleting:               s.DeletionTimestamp != nil,
		Class:                  value(s.Spec.LoadBalancerClass),
		OtherProxy:             otherProxy,
		ExternalLocal:          s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal,
		PreferSameNode:         value(s.Spec.TrafficDistribution) == corev1.ServiceTrafficDistributionPreferSameNode,
		ClientIPAffinity:       s.Spec.SessionAffinity == corev1.ServiceAffinityClientIP,
		SourceRanges:           s.Spec.LoadBalancerSourceRanges,
		SourceRangesAnnotation: s.Annotations[annotationRange],
		LoadBalancerIP:         s.Spec.LoadBalancerIP,
	}
	for _, family := range s.Spec.IPFamilies {
		service.IPFamilies = append(service.IPFamilies, convertFamily(string(family)))
	}
	for _, port := range s.Spec.Ports {
		service.Ports = append(service.Ports,
			model.ServicePort{Name: port.Name, Proto: convertProto(port.Protocol), Port: convertPort(port.Port)})
	}
	if config := s.Spec.SessionAffinityConfig; config != nil && config.ClientIP != nil {
		service.AffinityTimeout = time.Duration(max(0, value(config.ClientIP.TimeoutSeconds))) * time.Second
	}
	for _, entry := range s.Status.LoadBalancer.Ingress {
		service.Ingress = append(service.Ingress, convertIngress(entry))
	}
	return service
}

func convertIngress(entry corev1.LoadBalancerIngress) model.Ingress {
	ingress := model.Ingress{IP: entry.IP, Hostname: entry.Hostname, IPMode: string(value(entry.IPMode))}
	for _, port := range entry.Ports {
		ingress.Ports = append(ingress.Ports,
			model.IngressPort{Port: convertPort(port.Port), Protocol: string(port.Protocol), Error: value(port.Error)})
	}
	return ingress
}

func convertSlice(s *discoveryv1.EndpointSlice) *model.Slice {
	slice := &model.Slice{
		ObjectKey: model.ObjectKey{Namespace: s.Namespace, Name: s.Name},
		Service:   s.Labels[labelService],
		Family:    convertFamily(string(s.AddressType)),
	}
	for _, port := range s.Ports {
		slice.Ports = append(slice.Ports,
			model.SlicePort{Name: value(port.Name), Proto: convertProto(value(port.Protocol)), Port: convertPort(value(port.Port))})
	}
	for _, endpoint := range s.Endpoints {
		slice.Endpoints = append(slice.Endpoints, convertEndpoint(endpoint))
	}
	return slice
}

func convertEndpoint(e discoveryv1.Endpoint) model.SliceEndpoint {
	endpoint := model.SliceEndpoint{
		Node:        value(e.NodeName),
		Ready:       convertCondition(e.Conditions.Ready),
		Serving:     convertCondition(e.Conditions.Serving),
		Terminating: convertCondition(e.Conditions.Terminating),
	}
	if len(e.Addresses) > 0 {
		endpoint.Addr = parseAddr(e.Addresses[0])
	}
	if ref := e.TargetRef; ref != nil {
		endpoint.TargetUID = string(ref.UID)
		endpoint.Target = strings.TrimSpace(ref.Kind + " " + model.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}.String())
	}
	if hints := e.Hints; hints != nil {
		for _, node := range hints.ForNodes {
			endpoint.NodeHints = append(endpoint.NodeHints, node.Name)
		}
		for _, zone := range hints.ForZones {
			endpoint.ZoneHints = append(endpoint.ZoneHints, zone.Name)
		}
	}
	return endpoint
}

func convertNode(n *corev1.Node) *model.Node {
	exclude, excluded := n.Labels[labelExclude]
	node := &model.Node{
		Name: n.Name, UID: string(n.UID),
		Deleting: n.DeletionTimestamp != nil,
		Zone:     n.Labels[labelZone],
		Exclude:  model.Label{Set: excluded, Value: exclude},
	}
	for _, address := range n.Status.Addresses {
		addr := parseAddr(address.Address)
		switch {
		case !addr.IsValid():
		case address.Type == corev1.NodeInternalIP:
			node.InternalIPs = append(node.InternalIPs, addr)
		case address.Type == corev1.NodeExternalIP:
			node.ExternalIPs = append(node.ExternalIPs, addr)
		}
	}
	for _, text := range n.Spec.PodCIDRs {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			node.PodCIDRs = append(node.PodCIDRs, prefix.Masked())
		}
	}
	for _, taint := range n.Spec.Taints {
		node.ToBeDeleted = node.ToBeDeleted || taint.Key == taintAutoscaler
	}
	return node
}

// value is what a pointer points to, or the zero value.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// created is the time of creation in Unix seconds; 0 of an object that has none, as those of manifests.
func created(meta *metav1.ObjectMeta) int64 {
	if meta.CreationTimestamp.IsZero() {
		return 0
	}
	return meta.CreationTimestamp.Unix()
}

// parseAddr is the zero Addr if the text is no address that a packet could have.
func parseAddr(text string) netip.Addr {
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.Zone() != "" {
		return netip.Addr{}
	}
	return addr.Unmap()
}

// convertFamily reads an IPFamily or an AddressType.
func convertFamily(text string) model.Family {
	switch text {
	case string(corev1.IPv4Protocol):
		return model.IPv4
	case string(corev1.IPv6Protocol):
		return model.IPv6
	}
	return 0
}

// convertProto reads a protocol; none is TCP, the API's default.
func convertProto(protocol corev1.Protocol) model.Proto {
	switch protocol {
	case corev1.ProtocolTCP, "":
		return model.TCP
	case corev1.ProtocolUDP:
		return model.UDP
	case corev1.ProtocolSCTP:
		return model.SCTP
	}
	return 0
}

// convertPort is 0 for what is no port.
func convertPort(port int32) uint16 {
	if port < 0 || port > 65535 {
		return 0
	}
	return uint16(port)
}

func convertCondition(condition *bool) model.Condition {
	switch {
	case condition == nil:
		return model.Unset
	case *condition:
		return model.True
	}
	return model.False
}
