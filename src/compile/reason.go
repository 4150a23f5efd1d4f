// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/beep-lb/beep/src/model"
)

// Code is one of the closed set of reasons why something is left out. Its name is that of the Event, of the metric's
// label and of a port's error in the status.
type Code uint8

// The codes. Their numbers mean nothing outside of a process; their names are part of the operator's interface.
const (
	none Code = iota

	// Of a whole Service.
	ForeignClass
	ForeignProxy
	Deleting
	NoAddressFamily
	InvalidSourceRange
	LoadBalancerIPIgnored
	ForeignStatus
	NoEndpoints

	// Of one port of a Service.
	SCTPUnsupported
	PortReserved
	PortConflict
	PortDuplicate

	// Of an EndpointSlice of a Service.
	SliceOfNames
	SliceOtherFamily
	SliceWithoutPort

	// Of an endpoint.
	EndpointNoAddress
	EndpointNoNode
	EndpointUnknownNode
	EndpointOutside
	EndpointUnreachable
	EndpointDetached
	EndpointNotReady
	EndpointTerminating
	EndpointNotLocal
	EndpointOtherNode
	EndpointOtherZone

	// Of this node's datapath.
	NodeUnknown
	NoUnderlay
	PeerUnreachable

	// Of a node that is not published.
	NodeExcluded
	NodeToBeDeleted
	NodeDeleting
	NodeNotAttached
	NodeLeft
	NodeLost
	MassLossHeld

	// Of a node that is not published for one Service.
	MapFull
	NodeWithoutFamily
	NodeWithoutExternalIP
	NodeWithoutPod
	NodeNotChosen

	codes // their number
)

// meaning is what a code says. %s in text and remedy stands for Reason.Detail.
type meaning struct {
	name   string
	event  bool
	text   string
	remedy string
}

var meanings = [codes]meaning{
	ForeignClass: {"ForeignClass", false, "its loadBalancerClass is %s", "another load balancer serves it; see --load-balancer-class"},
	ForeignProxy: {"ForeignProxy", false, "it has the label service.kubernetes.io/service-proxy-name",
		"remove the label to have beep serve it"},
	Deleting: {"Deleting", false, "it is being deleted", "nothing, or remove the finalizer that holds it"},
	NoAddressFamily: {"NoAddressFamily", true, "there is no node address of its family %s",
		"give the nodes an address of that family, or change spec.ipFamilies"},
	InvalidSourceRange: {"InvalidSourceRange", true, "the source range %s is no ADDRESS/BITS, and admits nobody",
		"correct spec.loadBalancerSourceRanges"},
	LoadBalancerIPIgnored: {"LoadBalancerIPIgnored", true, "spec.loadBalancerIP %s is ignored",
		"remove it: a front is on the nodes' own addresses"},
	ForeignStatus: {"ForeignStatus", true, "its status lists %s, which is no node's",
		"have beep alone write the status (disable the other load balancer), or remove the entry"},
	NoEndpoints: {"NoEndpoints", false, "no %s endpoint can be used on this node", "see the endpoints' own reasons, if there are any"},

	SCTPUnsupported: {"SCTPUnsupported", true, "beep does not balance SCTP", "use TCP or UDP"},
	PortReserved: {"PortReserved", true, "the port is reserved: %s",
		"choose another port, or change --reserved-ports or --node-port-range"},
	PortConflict:  {"PortConflict", true, "the port belongs to the older Service %s", "choose another port, or delete that Service"},
	PortDuplicate: {"PortDuplicate", true, "the Service names the port twice", "name every port and protocol once"},

	SliceOfNames: {"SliceOfNames", false, "its addressType is FQDN", "use IPv4 or IPv6"},
	SliceOtherFamily: {"SliceOtherFamily", false, "its addressType %s is not in spec.ipFamilies",
		"nothing, or make the Service dual-stack"},
	SliceWithoutPort: {"SliceWithoutPort", false, "it has no number for the port", "see the pods' port names (targetPort)"},

	EndpointNoAddress: {"EndpointNoAddress", true, "its first address is none of the slice's addressType", "correct the EndpointSlice"},
	EndpointNoNode: {"EndpointNoNode", true, "it has no nodeName and is no address of this node or of its pods",
		"add nodeName to the EndpointSlice"},
	EndpointUnknownNode: {"EndpointUnknownNode", false, "there is no Node %s", "wait for the Node, or correct nodeName"},
	EndpointOutside: {"EndpointOutside", true, "it is outside every pod CIDR and no address of its node %s",
		"add --pod-cidr, or correct the EndpointSlice"},
	EndpointUnreachable: {"EndpointUnreachable", true, "its node %s has no InternalIP of a family that this node has too",
		"give both nodes an InternalIP of one family"},
	EndpointDetached: {"EndpointDetached", false, "beep is not known to be attached on its node %s, and others can be used",
		"see the node and its beep pod"},
	EndpointNotReady:    {"EndpointNotReady", false, "it is not ready", "see the pod's readiness"},
	EndpointTerminating: {"EndpointTerminating", false, "it is terminating and others are ready", "nothing: it drains"},
	EndpointNotLocal:    {"EndpointNotLocal", false, "it is on another node (%s)", "nothing: there is one on this node"},
	EndpointOtherNode:   {"EndpointOtherNode", false, "its hints name other nodes", "nothing: there is one for this node"},
	EndpointOtherZone:   {"EndpointOtherZone", false, "its hints name other zones", "nothing: there is one for this node's zone"},

	NodeUnknown: {"NodeUnknown", true, "there is no Node of that name", "correct --node-name, or register the Node"},
	NoUnderlay:  {"NoUnderlay", true, "it has no InternalIP: no tunnel can end here", "give it one (the kubelet's --node-ip)"},
	PeerUnreachable: {"PeerUnreachable", false, "it has no InternalIP of a family that %s has too",
		"give both nodes an InternalIP of one family"},

	NodeExcluded: {"NodeExcluded", false, "it has the label node.kubernetes.io/exclude-from-external-load-balancers=%s",
		"remove the label, or set it to false"},
	NodeToBeDeleted: {"NodeToBeDeleted", false, "it has the taint ToBeDeletedByClusterAutoscaler", "nothing: the autoscaler removes it"},
	NodeDeleting:    {"NodeDeleting", false, "it is being deleted", "nothing"},
	NodeNotAttached: {"NodeNotAttached", false, "its datapath is not attached or not yet filled", "see `beep status` there"},
	NodeLeft:        {"NodeLeft", false, "its controller was stopped", "start it"},
	NodeLost:        {"NodeLost", false, "its controller does not renew its Lease", "see the node and its beep pod"},
	MassLossHeld: {"MassLossHeld", true, "its controller was lost together with more than half of all, and it stays published",
		"see whether they are alive or the API server does not hear them"},

	MapFull: {"MapFull", false, "the Service does not fit into the node's maps",
		"raise --max-fronts or --endpoints-per-front there"},
	NodeWithoutFamily:     {"NodeWithoutFamily", false, "it has no %s address", "give it one"},
	NodeWithoutExternalIP: {"NodeWithoutExternalIP", false, "it has no %s ExternalIP, and other nodes have", "give it one, or take theirs"},
	NodeWithoutPod:        {"NodeWithoutPod", false, "it has no usable %s pod, and externalTrafficPolicy is Local", "nothing: others have"},
	NodeNotChosen:         {"NodeNotChosen", false, "--max-published-nodes chose others (%s)", "raise --max-published-nodes"},
}

// String is the CamelCase name.
func (c Code) String() string { return meanings[c].name }

// Event says that a person must act, and an Event tells so. That on a Service is the publisher's to write, since every
// node compiles the same; that on a Node is the node's own.
func (c Code) Event() bool { return meanings[c].event }

// Reason says why something is left out. It is comparable, so a reason that was there before is found by ==. The
// fields that are not empty are what it is about.
type Reason struct {
	Code    Code
	Service model.ObjectKey
	// Port is a port of the Service.
	Port  uint16
	Proto model.Proto
	// Slice is an EndpointSlice in the Service's namespace, and Addr an address in it.
	Slice string
	Addr  netip.Addr
	// Node is what a reason of a node is about.
	Node string
	// Detail is what the code alone does not say: the owner of the port, the source range, the family.
	Detail string
}

// Subject says what the reason is about: Service shop/web port 80/TCP endpoint 10.42.1.5 (slice web-1).
func (r Reason) Subject() string {
	var parts []string
	if r.Node != "" {
		parts = append(parts, "Node "+r.Node)
	}
	if r.Service.Name != "" {
		parts = append(parts, "Service "+r.Service.String())
	}
	if r.Port != 0 {
		parts = append(parts, "port "+model.ServicePort{Port: r.Port, Proto: r.Proto}.String())
	}
	switch {
	case r.Addr.IsValid():
		parts = append(parts, fmt.Sprintf("endpoint %s (slice %s)", r.Addr, r.Slice))
	case r.Slice != "":
		parts = append(parts, "slice "+r.Slice)
	}
	return strings.Join(parts, " ")
}

// Text says why, in words.
func (r Reason) Text() string {
	return strings.Replace(meanings[r.Code].text, "%s", cmp.Or(r.Detail, `""`), 1)
}

// Remedy says what to do about it.
func (r Reason) Remedy() string { return meanings[r.Code].remedy }

// String is one line of all of it.
func (r Reason) String() string {
	return fmt.Sprintf("%s: %s: %s; %s", r.Code, r.Subject(), r.Text(), r.Remedy())
}

// Compare orders by what the reason is about, then by code.
func (r Reason) Compare(o Reason) int {
	return cmp.Or(
		r.Service.Compare(o.Service), cmp.Compare(r.Node, o.Node), cmp.Compare(r.Port, o.Port), cmp.Compare(r.Proto, o.Proto),
		cmp.Compare(r.Slice, o.Slice), r.Addr.Compare(o.Addr), cmp.Compare(r.Code, o.Code), cmp.Compare(r.Detail, o.Detail))
}

// sorted orders the reasons and leaves every one once.
func sorted(reasons []Reason) []Reason {
	slices.SortFunc(reasons, Reason.Compare)
	return slices.Compact(reasons)
}
