// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"fmt"
	"net/netip"
	"reflect"
	"time"
)

// Snapshot is what Kubernetes, or a directory of manifests, says at one moment: reduced to what beep uses, and not
// yet judged. The objects are in any order and never changed once they are in a Snapshot, so that two snapshots may
// share them: the same pointer is the same object in the same state.
type Snapshot struct {
	// Services are those of type LoadBalancer, of every class. One that changed its type is not among them.
	Services []*Service
	// Slices are all EndpointSlices without the label service.kubernetes.io/headless, also those of Services that are
	// not among Services.
	Slices []*Slice
	Nodes  []*Node
}

// SCTP is a protocol that a Service may name and beep does not balance.
const SCTP Proto = 132

// Family is an address family, by its IP version number; the zero value is none (a slice of names).
type Family uint8

// The address families.
const (
	IPv4 Family = 4
	IPv6 Family = 6
)

// FamilyOf is the family of an address; 0 of the zero Addr.
func FamilyOf(addr netip.Addr) Family {
	switch {
	case addr.Is4():
		return IPv4
	case addr.Is6():
		return IPv6
	}
	return 0
}

// String is the family as Kubernetes writes it.
func (f Family) String() string {
	switch f {
	case IPv4:
		return "IPv4"
	case IPv6:
		return "IPv6"
	}
	return fmt.Sprintf("family %d", uint8(f))
}

// ObjectKey names an object of a namespace, and with an empty Namespace one of the cluster.
type ObjectKey struct{ Namespace, Name string }

// String prints namespace/name, or the name of a cluster's object.
func (k ObjectKey) String() string {
	if k.Namespace == "" {
		return k.Name
	}
	return k.Namespace + "/" + k.Name
}

// Compare orders by namespace, then name.
func (k ObjectKey) Compare(o ObjectKey) int {
	return cmp.Or(cmp.Compare(k.Namespace, o.Namespace), cmp.Compare(k.Name, o.Name))
}

// Service is what beep uses of a Service of type LoadBalancer.
type Service struct {
	ObjectKey
	UID string
	// ResourceVersion is the version that a status patch must meet. It changes with every write, so it is not part
	// of Equal.
	ResourceVersion string
	// Created is metadata.creationTimestamp in Unix seconds, the API's own precision.
	Created int64
	// Deleting says that metadata.deletionTimestamp is set.
	Deleting bool
	// Class is spec.loadBalancerClass; empty is none (the API server refuses an empty one).
	Class string
	// OtherProxy says that the label service.kubernetes.io/service-proxy-name is there, whatever its value: that is
	// how kube-proxy reads it too.
	OtherProxy bool
	// IPFamilies is spec.ipFamilies, in its order.
	IPFamilies []Family
	Ports      []ServicePort
	// ExternalLocal is spec.externalTrafficPolicy: Local.
	ExternalLocal bool
	// PreferSameNode is spec.trafficDistribution: PreferSameNode; beep takes the other values from hints alone.
	PreferSameNode bool
	// ClientIPAffinity is spec.sessionAffinity: ClientIP; AffinityTimeout is its timeoutSeconds, 0 if it has none.
	ClientIPAffinity bool
	AffinityTimeout  time.Duration
	// SourceRanges is spec.loadBalancerSourceRanges, and SourceRangesAnnotation the value of
	// service.beta.kubernetes.io/load-balancer-source-ranges, both as they are written.
	SourceRanges           []string
	SourceRangesAnnotation string
	// LoadBalancerIP is spec.loadBalancerIP, which beep ignores and reports.
	LoadBalancerIP string
	// Ingress is status.loadBalancer.ingress, as it is written.
	Ingress []Ingress
}

// Equal says whether beep has nothing to do about the difference of the two.
func (s *Service) Equal(o *Service) bool {
	a, b := *s, *o
	a.ResourceVersion, b.ResourceVersion = "", ""
	return reflect.DeepEqual(a, b)
}

// ServicePort is one of spec.ports. The target port is not here: every EndpointSlice has its own numbers.
type ServicePort struct {
	Name  string
	Proto Proto // TCP, UDP or SCTP
	Port  uint16
}

// String prints 80/TCP.
func (p ServicePort) String() string { return fmt.Sprintf("%d/%s", p.Port, p.Proto) }

// Ingress is one entry of status.loadBalancer.ingress. Every field is as it is written, so that an entry of somebody
// else is written back as it was.
type Ingress struct {
	IP, Hostname string
	// IPMode is VIP or Proxy; empty is none, which means VIP.
	IPMode string
	Ports  []IngressPort
}

// Equal says whether the two entries are written the same.
func (i Ingress) Equal(o Ingress) bool { return reflect.DeepEqual(i, o) }

// IngressPort is one of an entry's ports.
type IngressPort struct {
	Port uint16
	// Protocol is TCP, UDP or SCTP.
	Protocol string
	// Error is a CamelCase reason why the port is not served; empty is none.
	Error string
}

// Slice is what beep uses of an EndpointSlice.
type Slice struct {
	ObjectKey
	// Service is the value of the label kubernetes.io/service-name, a name in the slice's own namespace; empty if the
	// label is not there.
	Service string
	// Family is the addressType; 0 of FQDN.
	Family    Family
	Ports     []SlicePort
	Endpoints []SliceEndpoint
}

// Equal says whether beep has nothing to do about the difference of the two.
func (s *Slice) Equal(o *Slice) bool { return reflect.DeepEqual(s, o) }

// SlicePort is a port of every endpoint of a slice.
type SlicePort struct {
	// Name matches ServicePort.Name; a null name is the empty one.
	Name  string
	Proto Proto
	// Port is 0 if it is null or 0: such a port serves nothing.
	Port uint16
}

// SliceEndpoint is one endpoint of a slice.
type SliceEndpoint struct {
	// Addr is addresses[0]; the others are not used, as upstream does not use them. It is the zero Addr if the text
	// is no address, and for a name.
	Addr netip.Addr
	// Node is nodeName; empty if it has none.
	Node string
	// Target names targetRef for a person, as Pod shop/web-1, and TargetUID is its UID; empty if it has none.
	Target, TargetUID string
	// Ready, Serving and Terminating are the conditions.
	Ready, Serving, Terminating Condition
	// NodeHints and ZoneHints are the names in hints.forNodes and hints.forZones.
	NodeHints, ZoneHints []string
}

// Condition is a bool that may be left out; the zero value is left out.
type Condition uint8

// The values of a condition.
const (
	Unset Condition = iota
	False
	True
)

// Or is the condition's value, or the given one if it is left out.
func (c Condition) Or(unset bool) bool {
	if c == Unset {
		return unset
	}
	return c == True
}

// Node is what beep uses of a Node.
type Node struct {
	Name, UID string
	// Deleting says that metadata.deletionTimestamp is set.
	Deleting bool
	// InternalIPs and ExternalIPs are status.addresses of these types in the Node's order, without those that are no
	// addresses.
	InternalIPs, ExternalIPs []netip.Addr
	// PodCIDRs is spec.podCIDRs.
	PodCIDRs []netip.Prefix
	// Zone is the label topology.kubernetes.io/zone.
	Zone string
	// Exclude is the label node.kubernetes.io/exclude-from-external-load-balancers.
	Exclude Label
	// ToBeDeleted says that the taint ToBeDeletedByClusterAutoscaler is there, whatever its effect.
	ToBeDeleted bool
	// Detached says that its beep is not known to be attached: what is tunnelled there meets a host that expects no
	// tunnel. It is no word of the Node's but of the publisher's (publish.Peers); who does not know leaves it false.
	Detached bool
}

// Equal says whether beep has nothing to do about the difference of the two.
func (n *Node) Equal(o *Node) bool { return reflect.DeepEqual(n, o) }

// Label is a label that may not be there; the zero value is not there.
type Label struct {
	Set   bool
	Value string
}

// Lease is what one node's controller says of itself, as the publisher sees it.
type Lease struct {
	// Node is the name of the Node.
	Node string
	// Addresses are the node addresses that its datapath has fronts on (compile.Addresses), in that order.
	Addresses []netip.Addr
	// Attached says that the datapath is attached and the maps were made as desired once.
	Attached bool
	// Left says that the controller gave its Lease up in order (SIGTERM): the node leaves the Services at once, and is
	// no loss.
	Left bool
	// Late says that two renewals in a row were not seen. The node is live still, but one that is lost beside many
	// others that are late is not pruned.
	Late bool
	// Refused are the Services that do not fit into the node's maps.
	Refused []ObjectKey
}

// Equal says whether the two say the same.
func (l *Lease) Equal(o *Lease) bool { return reflect.DeepEqual(l, o) }
