// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/beep-lb/beep/src/compile"
	"github.com/beep-lb/beep/src/model"
)

// Service is why a Service is served as it is.
type Service struct {
	// Name is NAMESPACE/NAME.
	Name string `json:"name"`
	// Served says that it is beep's, and that a port of it is.
	Served bool `json:"served"`
	// Why is about the Service as a whole: why it is not beep's, and what of it is ignored.
	Why       []Why      `json:"why"`
	Ports     []Port     `json:"ports"`
	Addresses []Address  `json:"addresses"`
	Endpoints []Endpoint `json:"endpoints"`
}

// Port is one port of a Service.
type Port struct {
	// Port is 80/TCP.
	Port string `json:"port"`
	// Served says that the Service owns the port on the nodes.
	Served bool  `json:"served"`
	Why    []Why `json:"why"`
}

// State says what becomes of an address in a Service's status.
type State string

// The states of an address.
const (
	// Published is listed and stays.
	Published State = "published"
	// Adding is not listed yet, and Removing is still.
	Adding   State = "to be added"
	Removing State = "to be removed"
	// Foreign is listed, and no node's.
	Foreign State = "foreign"
	// Unpublished is a node that is not listed.
	Unpublished State = "not published"
)

// Address is an address in a Service's status, or a node that has none there.
type Address struct {
	// Address is one of the Node's, or somebody's entry; empty if the Node has none in the status.
	Address string `json:"address"`
	// Families are those in which the Node has none, as IPv4.
	Families []string `json:"families"`
	// Node is empty if nobody knows whose the address is.
	Node  string `json:"node"`
	State State  `json:"state"`
	Why   []Why  `json:"why"`
}

// Endpoint is one endpoint of a Service for one of its ports, or a slice of which no endpoint is looked at.
type Endpoint struct {
	// Port is the Service's, as 80/TCP; empty if it is about the whole slice.
	Port string `json:"port"`
	// Endpoint is ADDRESS:PORT; empty if it is about the slice.
	Endpoint string `json:"endpoint"`
	// Node and Target are what the slice says: where it runs, and what it is, as Pod shop/web-1.
	Node   string `json:"node"`
	Target string `json:"target"`
	Slice  string `json:"slice"`
	// Used says that new flows through this node may go there; Why is why not, or why all the same.
	Used bool  `json:"used"`
	Why  []Why `json:"why"`
}

// serviceFacts are those of one Service.
type serviceFacts struct {
	Facts
	of *model.Service
	// datapath and published are the reasons of this node and of the publisher, and reasons are both.
	datapath, published, reasons []compile.Reason
	desired                      model.Desired
	// status is nil if the Service is not beep's; wanted says that it is, and is not being deleted.
	status *compile.Status
	wanted bool
}

func explainService(facts Facts, service *model.Service) *Service {
	f := serviceFacts{Facts: facts, of: service}
	f.desired, f.datapath = compile.Datapath(facts.Snapshot, facts.Self)
	var everybody compile.Published
	everybody, f.published = compile.Publication(facts.Snapshot, facts.Leases, facts.How, facts.Memory)
	for i := range everybody.Statuses {
		if everybody.Statuses[i].Service.ObjectKey == service.ObjectKey {
			f.status = &everybody.Statuses[i]
		}
	}
	f.wanted = f.status != nil && !slices.ContainsFunc(f.published, func(r compile.Reason) bool {
		return f.isOurs(r) && r.Code == compile.Deleting
	})
	f.published = append(f.published, compile.Unpublished(facts.Snapshot, facts.Leases, facts.How, facts.Memory,
		func(of model.ObjectKey, _ string) bool { return of == service.ObjectKey })...)
	f.reasons = slices.Concat(f.datapath, f.published)
	whole := func(r compile.Reason) bool { return f.isOurs(r) && r.Node == "" && r.Port == 0 && r.Slice == "" }
	answer := &Service{Name: service.String(), Why: whys(f.reasons, whole), Ports: f.ports()}
	answer.Served = slices.ContainsFunc(answer.Ports, func(p Port) bool { return p.Served })
	if f.wanted && !answer.Served && len(answer.Why) == 0 {
		answer.Why = []Why{{Text: "no port of it can be served, so it is published nowhere", Remedy: "see the ports' own reasons"}}
	}
	answer.Addresses, answer.Endpoints = f.addresses(answer.Served), f.endpoints(answer.Ports)
	return answer
}

func (f *serviceFacts) isOurs(r compile.Reason) bool { return r.Service == f.of.ObjectKey }

// ports are in the Service's order.
func (f *serviceFacts) ports() []Port {
	list := []Port{}
	seen := map[string]bool{}
	for _, port := range f.of.Ports {
		again := seen[port.String()]
		seen[port.String()] = true
		why := whys(f.datapath, func(r compile.Reason) bool {
			return f.isOurs(r) && r.Port == port.Port && r.Proto == port.Proto && r.Slice == "" && !r.Addr.IsValid() &&
				(r.Code == compile.PortDuplicate) == again
		})
		served := f.wanted && !again
		for _, code := range []compile.Code{compile.SCTPUnsupported, compile.PortReserved, compile.PortConflict} {
			served = served && !slices.ContainsFunc(why, func(w Why) bool { return w.Code == code.String() })
		}
		list = append(list, Port{Port: port.String(), Served: served, Why: why})
	}
	return list
}

// addresses are the entries of the status, those to come, and the nodes without one.
func (f *serviceFacts) addresses(served bool) []Address {
	list := []Address{}
	var wanted []model.Ingress
	if f.status != nil {
		wanted = f.status.Ingress
	}
	listed := f.of.Ingress
	if f.Manifests {
		listed = wanted
	}
	owners := f.owners()
	has := map[string]bool{} // node and family
	for _, entry := range wanted {
		if addr, err := netip.ParseAddr(entry.IP); err == nil {
			has[owners[addr.Unmap()]+model.FamilyOf(addr.Unmap()).String()] = true
		}
	}
	for _, entry := range listed {
		list = append(list, f.entry(entry, owners, stateOf(entry, wanted, f.status != nil)))
	}
	for _, entry := range wanted {
		if !holds(listed, entry) {
			list = append(list, f.entry(entry, owners, Adding))
		}
	}
	names := []string{f.Self.Node}
	for _, node := range f.Snapshot.Nodes {
		names = append(names, node.Name)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		list = append(list, f.missing(name, has, served)...)
	}
	return list
}

// stateOf is that of an entry that is listed.
func stateOf(entry model.Ingress, wanted []model.Ingress, ours bool) State {
	switch {
	case !ours:
		return Foreign
	case holds(wanted, entry):
		return Published
	}
	return Removing
}

func holds(list []model.Ingress, entry model.Ingress) bool {
	return slices.ContainsFunc(list, func(e model.Ingress) bool { return e.IP == entry.IP && e.Hostname == entry.Hostname })
}

// entry is an entry of the status. One that nobody knows is foreign and stays.
func (f *serviceFacts) entry(entry model.Ingress, owners map[netip.Addr]string, state State) Address {
	a := Address{Address: entry.IP + entry.Hostname, Families: []string{}, State: state, Why: []Why{}}
	addr, err := netip.ParseAddr(entry.IP)
	if err == nil {
		a.Node = owners[addr.Unmap()]
	}
	switch {
	case a.Node != "":
		a.Why = f.about(a.Node, model.FamilyOf(addr.Unmap()).String())
	case state == Published:
		a.State = Foreign
		a.Why = whys(f.published, func(r compile.Reason) bool {
			return f.isOurs(r) && r.Code == compile.ForeignStatus && r.Detail == a.Address
		})
	}
	return a
}

// owners are the nodes by their addresses.
func (f *serviceFacts) owners() map[netip.Addr]string {
	owners := map[netip.Addr]string{}
	for _, lease := range f.Leases {
		for _, addr := range lease.Addresses {
			owners[addr] = lease.Node
		}
	}
	for _, node := range f.Snapshot.Nodes {
		for _, addr := range slices.Concat(node.InternalIPs, node.ExternalIPs) {
			owners[addr] = node.Name
		}
	}
	return owners
}

// ofFamily are the codes whose detail is a family.
var ofFamily = []compile.Code{compile.NodeWithoutFamily, compile.NodeWithoutExternalIP, compile.NodeWithoutPod, compile.NodeNotChosen}

// about is what speaks against publishing a node for the Service, in one family.
func (f *serviceFacts) about(node, family string) []Why {
	return whys(f.reasons, func(r compile.Reason) bool {
		return r.Node == node && (f.isOurs(r) || r.Service.Name == "") &&
			(!slices.Contains(ofFamily, r.Code) || r.Detail == family)
	})
}

// missing is a row for each reason for which a node is not in the status, of the families that it is the same for. Of a
// Service that is not served it is only what is about that Service, since no node has it.
func (f *serviceFacts) missing(node string, has map[string]bool, served bool) []Address {
	var rows []Address
	for _, family := range f.of.IPFamilies {
		if has[node+family.String()] {
			continue
		}
		if !served && !slices.ContainsFunc(f.reasons, func(r compile.Reason) bool { return f.isOurs(r) && r.Node == node }) {
			continue
		}
		why := f.about(node, family.String())
		if n := len(rows); n > 0 && slices.Equal(rows[n-1].Why, why) {
			rows[n-1].Families = append(rows[n-1].Families, family.String())
			continue
		}
		rows = append(rows, Address{Node: node, Families: []string{family.String()}, State: Unpublished, Why: why})
	}
	return rows
}

// endpoints are those of every slice of the Service for each port that is served, and the slices that are not used.
func (f *serviceFacts) endpoints(ports []Port) []Endpoint {
	list := []Endpoint{}
	for _, r := range f.datapath {
		if f.isOurs(r) && r.Slice != "" && !r.Addr.IsValid() {
			list = append(list, Endpoint{Port: portText(r), Slice: r.Slice, Why: []Why{whyOf(r)}})
		}
	}
	for i, port := range f.of.Ports {
		if !ports[i].Served {
			continue
		}
		for _, slice := range f.Snapshot.Slices {
			if slice.Namespace == f.of.Namespace && slice.Service == f.of.Name && slices.Contains(f.of.IPFamilies, slice.Family) {
				list = append(list, f.ofSlice(port, slice)...)
			}
		}
	}
	slices.SortFunc(list, func(a, b Endpoint) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Slice, b.Slice), cmp.Compare(a.Endpoint, b.Endpoint))
	})
	return list
}

func portText(r compile.Reason) string {
	if r.Port == 0 {
		return ""
	}
	return model.ServicePort{Port: r.Port, Proto: r.Proto}.String()
}

// ofSlice are the endpoints of one slice for one port.
func (f *serviceFacts) ofSlice(port model.ServicePort, slice *model.Slice) []Endpoint {
	var list []Endpoint
	for _, number := range slice.Ports {
		if number.Name != port.Name || number.Proto != port.Proto || number.Port == 0 {
			continue
		}
		for i := range slice.Endpoints {
			endpoint := &slice.Endpoints[i]
			if model.FamilyOf(endpoint.Addr) != slice.Family {
				continue // the slice has a reason
			}
			e := Endpoint{Port: port.String(), Endpoint: netip.AddrPortFrom(endpoint.Addr, number.Port).String(),
				Node: endpoint.Node, Target: endpoint.Target, Slice: slice.Name}
			switch e.Used = f.used(port, endpoint.Addr, number.Port); {
			case !e.Used:
				e.Why = f.unused(port, slice.Name, endpoint.Addr)
			case !endpoint.Ready.Or(true) && !f.ready(endpoint.Addr):
				e.Why = []Why{{Text: "it is terminating, and serves on while none is ready"}}
			default:
				e.Why = []Why{}
			}
			list = append(list, e)
		}
	}
	return list
}

// used says whether the endpoint is in a front of this node.
func (f *serviceFacts) used(port model.ServicePort, addr netip.Addr, number uint16) bool {
	return slices.ContainsFunc(f.desired.Fronts, func(front model.Front) bool {
		return front.Port == port.Port && front.Proto == port.Proto && slices.ContainsFunc(front.Endpoints,
			func(e model.Endpoint) bool { return e.Addr == addr && e.Port == number })
	})
}

// ready says whether any slice of the Service calls the endpoint ready: what is used and is not drains.
func (f *serviceFacts) ready(addr netip.Addr) bool {
	return slices.ContainsFunc(f.Snapshot.Slices, func(slice *model.Slice) bool {
		return slice.Namespace == f.of.Namespace && slice.Service == f.of.Name && slices.ContainsFunc(slice.Endpoints,
			func(e model.SliceEndpoint) bool { return e.Addr == addr && e.Ready.Or(true) })
	})
}

// unused is why the endpoint is not: in its slice, or where that has a copy that does not count, in another one. If
// nothing speaks against it, it is because this node has no front of its family.
func (f *serviceFacts) unused(port model.ServicePort, slice string, addr netip.Addr) []Why {
	of := func(r compile.Reason) bool {
		return f.isOurs(r) && r.Port == port.Port && r.Proto == port.Proto && r.Addr == addr
	}
	why := whys(f.datapath, func(r compile.Reason) bool { return of(r) && r.Slice == slice })
	if len(why) == 0 {
		why = whys(f.datapath, of)
	}
	if len(why) == 0 {
		why = []Why{{Text: fmt.Sprintf("this node, %s, has no %s front", f.Self.Node, model.FamilyOf(addr))}}
	}
	return why
}
