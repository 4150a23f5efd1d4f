// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"net/netip"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/beep-lb/beep/src/model"
)

// What a node's Lease says beside that it is renewed: lists are separated by commas, truths are "true" or absent.
const (
	annotationAddresses = "beep-lb/addresses"
	annotationAttached  = "beep-lb/attached"
	annotationLeft      = "beep-lb/left"
	annotationRefused   = "beep-lb/refused"
)

// The label tells the Leases of nodes from that of the election.
const (
	labelComponent = "app.kubernetes.io/component"
	componentNode  = "beep-node"
)

const (
	// leaseDuration is after how many seconds without a renewal a node is lost.
	leaseDuration = 40
	// refusedLimit bounds an annotation, in bytes: all of them together may have 256 KiB.
	refusedLimit = 128 << 10
)

// writeStatement puts what a node says into its Lease, in the place of what it said.
func writeStatement(into *coordinationv1.Lease, says model.Lease) {
	if into.Labels == nil {
		into.Labels = map[string]string{}
	}
	if into.Annotations == nil {
		into.Annotations = map[string]string{}
	}
	into.Labels[labelComponent] = componentNode
	set := func(annotation, text string) {
		delete(into.Annotations, annotation)
		if text != "" {
			into.Annotations[annotation] = text
		}
	}
	truth := func(is bool) string {
		if is {
			return "true"
		}
		return ""
	}
	set(annotationAddresses, join(says.Addresses, netip.Addr.String))
	set(annotationAttached, truth(says.Attached))
	set(annotationLeft, truth(says.Left))
	// What is cut off is published all the same: rather that than a Lease that is refused, and a node that is lost.
	refused := join(says.Refused, model.ObjectKey.String)
	if len(refused) > refusedLimit {
		refused = refused[:strings.LastIndexByte(refused[:refusedLimit], ',')]
	}
	set(annotationRefused, refused)
}

// readStatement is what a node says in its Lease. Words that cannot be read are left out.
func readStatement(lease *coordinationv1.Lease) model.Lease {
	says := model.Lease{
		Node:     lease.Name,
		Attached: lease.Annotations[annotationAttached] == "true",
		Left:     lease.Annotations[annotationLeft] == "true",
	}
	for word := range strings.SplitSeq(lease.Annotations[annotationAddresses], ",") {
		if addr, err := netip.ParseAddr(word); err == nil {
			says.Addresses = append(says.Addresses, addr.Unmap())
		}
	}
	for word := range strings.SplitSeq(lease.Annotations[annotationRefused], ",") {
		if namespace, name, ok := strings.Cut(word, "/"); ok {
			says.Refused = append(says.Refused, model.ObjectKey{Namespace: namespace, Name: name})
		}
	}
	return says
}

func join[T any](list []T, text func(T) string) string {
	var words []string
	for _, item := range list {
		words = append(words, text(item))
	}
	return strings.Join(words, ",")
}

// owner ties a Lease to its Node, with which it goes.
func owner(node, uid string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node, UID: types.UID(uid)}}
}
