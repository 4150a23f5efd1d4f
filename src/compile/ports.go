// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/beep-lb/beep/src/model"
)

// PortRange is the ports from First to Last, both included, of one protocol.
type PortRange struct {
	Proto       model.Proto
	First, Last uint16
}

func (r PortRange) holds(port model.ServicePort) bool {
	return r.Proto == port.Proto && r.First <= port.Port && port.Port <= r.Last
}

// String prints 22/TCP or 2379-2380/TCP.
func (r PortRange) String() string {
	if r.First == r.Last {
		return fmt.Sprintf("%d/%s", r.First, r.Proto)
	}
	return fmt.Sprintf("%d-%d/%s", r.First, r.Last, r.Proto)
}

// standing is what a Service is to us.
type standing uint8

const (
	// foreign Services are never touched, not even to remove an address that looks like ours.
	foreign standing = iota
	// leaving ones are being deleted: nothing of ours may stay.
	leaving
	wanted
)

// standing judges the Service, and notes why it is not wanted.
func (r Rules) standing(service *model.Service, note func(Reason)) standing {
	reason := Reason{Service: service.ObjectKey}
	is := foreign
	switch {
	case service.Class != r.LoadBalancerClass:
		reason.Code, reason.Detail = ForeignClass, service.Class
	case service.OtherProxy:
		reason.Code = ForeignProxy
	case service.Deleting:
		reason.Code, is = Deleting, leaving
	default:
		return wanted
	}
	note(reason)
	return is
}

// portVerdict is a port of a Service and why it is not served, none if it is.
type portVerdict struct {
	model.ServicePort
	code Code
}

// assign says for every wanted Service which of its ports it owns. All of them share the nodes' addresses, so a
// (protocol, port) has one owner, whatever the families: the oldest Service, of the same second that with the lower
// UID, and without any the first by name.
func (r Rules) assign(services []*model.Service, note func(Reason)) map[*model.Service][]portVerdict {
	var bySeniority []*model.Service
	for _, service := range services {
		if r.standing(service, func(Reason) {}) == wanted {
			bySeniority = append(bySeniority, service)
		}
	}
	slices.SortFunc(bySeniority, func(a, b *model.Service) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.UID, b.UID), a.Compare(b.ObjectKey))
	})
	type claim struct {
		proto model.Proto
		port  uint16
	}
	owners := map[claim]*model.Service{}
	verdicts := make(map[*model.Service][]portVerdict, len(bySeniority))
	for _, service := range bySeniority {
		for _, port := range service.Ports {
			owner := owners[claim{port.Proto, port.Port}]
			code, detail := r.judge(service, port, owner)
			if code == none {
				owners[claim{port.Proto, port.Port}] = service
			} else {
				note(Reason{Code: code, Service: service.ObjectKey, Port: port.Port, Proto: port.Proto, Detail: detail})
			}
			verdicts[service] = append(verdicts[service], portVerdict{port, code})
		}
	}
	return verdicts
}

// judge says why the Service does not get the port, whose owner so far is given, or nil.
func (r Rules) judge(service *model.Service, port model.ServicePort, owner *model.Service) (Code, string) {
	if port.Proto != model.TCP && port.Proto != model.UDP {
		return SCTPUnsupported, ""
	}
	for _, reserved := range []struct {
		by     string
		ranges []PortRange
	}{{"--reserved-ports", r.ReservedPorts}, {"the nodePort range", r.NodePorts}, {"beep's own", r.OwnPorts}} {
		for _, ports := range reserved.ranges {
			if ports.holds(port) {
				return PortReserved, fmt.Sprintf("%s (%s)", ports, reserved.by)
			}
		}
	}
	switch owner {
	case nil:
		return none, ""
	case service:
		return PortDuplicate, ""
	}
	return PortConflict, owner.String()
}

// anyServed says whether a Service has a port left.
func anyServed(ports []portVerdict) bool {
	return slices.ContainsFunc(ports, func(p portVerdict) bool { return p.code == none })
}

// familiesOf are the Service's, in its order, each once.
func familiesOf(service *model.Service) []model.Family {
	var families []model.Family
	for _, family := range service.IPFamilies {
		if !slices.Contains(families, family) {
			families = append(families, family)
		}
	}
	return families
}
