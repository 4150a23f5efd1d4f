// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"

	"github.com/dchest/siphash"

	"github.com/beep-lb/beep/src/model"
)

// Publishing is how an operator wants the nodes' addresses listed.
type Publishing struct {
	Rules
	// IPMode is VIP (the empty one too: kube-proxy then serves in-cluster clients of the address itself) or Proxy.
	IPMode string
	// MaxNodes bounds the nodes a Service lists, by family; 0 is no bound.
	MaxNodes int
}

// Memory is what a publisher keeps from one Publication to the next.
type Memory struct {
	// Live are the nodes that were live, or held, sorted. nil is a publisher that has just begun: then they are the
	// nodes that the statuses list.
	Live []string
	// Known are addresses that nodes have or had, sorted: an entry of one of these is ours to remove. Whoever begins
	// without it takes what a node had before for somebody else's, and leaves it.
	Known []netip.Addr
	// last is what it came to, so that the next one judges anew only what has changed; nil without one.
	last *precedent
}

// Status is what one Service's status.loadBalancer.ingress should be.
type Status struct {
	Service *model.Service
	// Ingress is the whole list. What is listed already keeps its place, and its text if it is the same address.
	Ingress []model.Ingress
	// Changed says that it differs from Service.Ingress, and so is to be written.
	Changed bool
}

// Published is what all the statuses should be, and what to pass to the next Publication.
type Published struct {
	// Statuses are of the Services that are ours, sorted by name; those that are foreign have none.
	Statuses []Status
	Memory   Memory
	// Held are nodes that are lost and stay listed where they are, because more than half of the live nodes were lost
	// at once, counting those that are late: that is rather the API server's trouble than theirs. They are held until
	// enough of them come back, or until the caller, having seen the same again, takes them out of Memory.Live.
	Held []string
}

// Publication is what every Service that is ours should list, and why a Service or a node is left out of all. The
// leases are the live ones, and those that were given up in order; a node without one is lost. Why a node is left out
// of one Service is told by Unpublished.
func Publication(snapshot model.Snapshot, leases []*model.Lease, how Publishing, memory Memory) (Published, []Reason) {
	p := newPublisher(snapshot, leases, how, memory)
	before, now := memory.last, p.precedent()
	if !before.holds(p) {
		before = nil
	}
	for _, service := range snapshot.Services {
		is := how.standing(service, p.note)
		if is == foreign {
			continue
		}
		verdict := p.judge(service, is, before)
		now.services[service] = verdict
		p.published.Statuses = append(p.published.Statuses, verdict.status)
		p.reasons = append(p.reasons, verdict.reasons...)
	}
	p.published.Memory.last = now
	slices.SortFunc(p.published.Statuses, func(a, b Status) int { return a.Service.Compare(b.Service.ObjectKey) })
	p.published.Memory.Known = p.remember(memory.Known)
	return p.published, sorted(p.reasons)
}

// Unpublished says why nodes are left out of single Services, beside the reasons that leave them out of all: of the
// Services and nodes that about asks for.
func Unpublished(
	snapshot model.Snapshot, leases []*model.Lease, how Publishing, memory Memory, about func(service model.ObjectKey, node string) bool,
) []Reason {
	p := newPublisher(snapshot, leases, how, memory)
	var reasons []Reason
	for _, service := range snapshot.Services {
		if how.standing(service, p.note) != wanted {
			continue
		}
		p.entries(service, wanted, func(r Reason) {
			if about(service.ObjectKey, r.Node) {
				r.Service = service.ObjectKey
				reasons = append(reasons, r)
			}
		})
	}
	return sorted(reasons)
}

// publisher is a snapshot and leases as the elected publisher sees them.
type publisher struct {
	cluster
	how      Publishing
	ports    map[*model.Service][]portVerdict
	assigned *assignment
	// nodes that may be published, by name.
	listable []*listable
	// external says whether any Node of the cluster has an ExternalIP of the family.
	external map[model.Family]bool
	// known are the addresses that nodes have or had.
	known     map[netip.Addr]bool
	published Published
	reasons   []Reason
}

// listable is a node that nothing keeps out of all Services.
type listable struct {
	*model.Node
	// addrs is what it would list of each family.
	addrs map[model.Family]netip.Addr
	// refused are the Services that its maps do not hold.
	refused []model.ObjectKey
	// held nodes stay where they are listed and come nowhere else.
	held bool
}

func (p *publisher) note(r Reason) { p.reasons = append(p.reasons, r) }

func newPublisher(snapshot model.Snapshot, leases []*model.Lease, how Publishing, memory Memory) *publisher {
	p := &publisher{
		cluster:  newCluster(model.Snapshot{Nodes: snapshot.Nodes}, how.PodCIDRs),
		how:      how,
		external: map[model.Family]bool{},
		known:    map[netip.Addr]bool{},
	}
	p.assigned = memory.last.assignment(how.Rules, snapshot.Services)
	p.ports = p.assigned.ports
	p.reasons = append(p.reasons, p.assigned.refusals...)
	byNode := make(map[string]*model.Lease, len(leases))
	for _, lease := range leases {
		byNode[lease.Node] = lease
		p.know(lease.Addresses)
	}
	for _, node := range snapshot.Nodes {
		p.know(node.InternalIPs)
		p.know(node.ExternalIPs)
		for _, family := range []model.Family{model.IPv4, model.IPv6} {
			p.external[family] = p.external[family] || first(node.ExternalIPs, family).IsValid()
		}
	}
	p.addPods(snapshot)
	p.know(memory.Known)
	p.hold(snapshot, byNode, memory)
	for _, node := range snapshot.Nodes {
		p.list(node, byNode[node.Name])
	}
	slices.SortFunc(p.listable, func(a, b *listable) int { return cmp.Compare(a.Name, b.Name) })
	return p
}

// addPods adds the slices of the Services that care who has a pod.
func (p *publisher) addPods(snapshot model.Snapshot) {
	care := map[model.ObjectKey]bool{}
	for _, service := range snapshot.Services {
		if service.ExternalLocal {
			care[service.ObjectKey] = true
		}
	}
	if len(care) == 0 {
		return
	}
	for _, slice := range snapshot.Slices {
		if care[serviceOf(slice)] {
			p.addSlice(slice)
		}
	}
}

func (p *publisher) know(addrs []netip.Addr) {
	for _, addr := range addrs {
		p.known[addr] = true
	}
}

// hold decides who is held. A Node that is gone, and a Lease that was given up, are no losses.
func (p *publisher) hold(snapshot model.Snapshot, leases map[string]*model.Lease, memory Memory) {
	before := memory.Live
	if before == nil {
		before = p.listed(snapshot)
	}
	var live, lost []string
	for name, lease := range leases {
		if !lease.Left && p.nodes[name] != nil {
			live = append(live, name)
		}
	}
	// Those that came since count too, so that publishing again from what this one remembers says the same.
	before = append(slices.Clone(before), live...)
	slices.Sort(before)
	before = slices.Compact(before)
	late := 0
	for _, name := range before {
		switch lease := leases[name]; {
		case p.nodes[name] == nil:
		case lease == nil:
			lost = append(lost, name)
		case lease.Late && !lease.Left:
			late++
		}
	}
	if len(lost) > 0 && 2*(len(lost)+late) > len(before) {
		p.published.Held = lost
		slices.Sort(p.published.Held)
		live = append(live, lost...)
	}
	slices.Sort(live)
	p.published.Memory.Live = append([]string{}, live...) // never nil again
}

// listed are the nodes that the statuses of our Services list.
func (p *publisher) listed(snapshot model.Snapshot) []string {
	of := map[netip.Addr]string{}
	for _, node := range snapshot.Nodes {
		for _, addr := range slices.Concat(node.InternalIPs, node.ExternalIPs) {
			of[addr] = node.Name
		}
	}
	var names []string
	for _, service := range snapshot.Services {
		if p.how.standing(service, func(Reason) {}) == foreign {
			continue
		}
		for _, entry := range service.Ingress {
			if addr, ok := addrOf(entry); ok && of[addr] != "" {
				names = append(names, of[addr])
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// list decides whether the Node may be in any Service, and with which addresses.
func (p *publisher) list(node *model.Node, lease *model.Lease) {
	held := slices.Contains(p.published.Held, node.Name)
	reason := Reason{Node: node.Name}
	switch {
	case excluded(node.Exclude):
		reason.Code, reason.Detail = NodeExcluded, node.Exclude.Value
	case node.ToBeDeleted:
		reason.Code = NodeToBeDeleted
	case node.Deleting:
		reason.Code = NodeDeleting
	case lease == nil && !held:
		reason.Code = NodeLost
	case lease != nil && lease.Left:
		reason.Code = NodeLeft
	case lease != nil && !lease.Attached:
		reason.Code = NodeNotAttached
	}
	if reason.Code != none {
		p.note(reason)
		return
	}
	l := &listable{Node: node, addrs: map[model.Family]netip.Addr{}, held: held}
	has := slices.Concat(node.InternalIPs, node.ExternalIPs)
	if lease != nil {
		has, l.refused = lease.Addresses, lease.Refused
	}
	if held {
		p.note(Reason{Code: MassLossHeld, Node: node.Name})
	}
	for _, family := range []model.Family{model.IPv4, model.IPv6} {
		isExternal := func(addr netip.Addr) bool { return slices.Contains(node.ExternalIPs, addr) }
		of := ofFamily(has, family)
		if i := slices.IndexFunc(of, func(addr netip.Addr) bool { return isExternal(addr) == p.external[family] }); i >= 0 {
			l.addrs[family] = of[i]
		}
	}
	p.listable = append(p.listable, l)
}

// excluded reads the label as its name says: false includes, and whatever else is there excludes, since the
// documentation of Kubernetes asks for the key alone.
func excluded(label model.Label) bool {
	exclude, err := strconv.ParseBool(label.Value)
	return label.Set && (exclude || err != nil)
}

// entries are what a Service should list, in the order in which new ones are appended: by node, and within a node by
// the Service's families. A Service with no port left lists nothing.
func (p *publisher) entries(service *model.Service, is standing, note func(Reason)) []netip.Addr {
	if is != wanted || !anyServed(p.ports[service]) {
		return nil
	}
	families := familiesOf(service)
	chosen := map[model.Family]map[*listable]bool{}
	for _, family := range families {
		able := p.able(service, family, note)
		if service.ExternalLocal {
			able = p.withPod(service, family, able, note)
		}
		chosen[family] = setOf(p.bounded(service, family, able, note))
		if len(able) == 0 && !p.anyAddress(family) {
			p.note(Reason{Code: NoAddressFamily, Service: service.ObjectKey, Detail: family.String()})
		}
	}
	var entries []netip.Addr
	for _, node := range p.listable {
		for _, family := range families {
			if chosen[family][node] {
				entries = append(entries, node.addrs[family])
			}
		}
	}
	return entries
}

func setOf(nodes []*listable) map[*listable]bool {
	set := make(map[*listable]bool, len(nodes))
	for _, node := range nodes {
		set[node] = true
	}
	return set
}

// lists says whether the Service lists the address already.
func lists(service *model.Service, address netip.Addr) bool {
	return slices.ContainsFunc(service.Ingress, func(entry model.Ingress) bool {
		addr, ok := addrOf(entry)
		return ok && addr == address
	})
}

// anyAddress says whether any Node, published or not, has an address of the family.
func (p *publisher) anyAddress(family model.Family) bool {
	for _, node := range p.nodes {
		if first(node.InternalIPs, family).IsValid() || first(node.ExternalIPs, family).IsValid() {
			return true
		}
	}
	return false
}

// able are the nodes that hold the Service's fronts and have an address of the family to list.
func (p *publisher) able(service *model.Service, family model.Family, note func(Reason)) []*listable {
	var able []*listable
	for _, node := range p.listable {
		reason := Reason{Node: node.Name, Detail: family.String()}
		switch {
		case node.held && !lists(service, node.addrs[family]):
			continue // it is no news that it is lost
		case slices.Contains(node.refused, service.ObjectKey):
			reason.Code, reason.Detail = MapFull, ""
		case node.addrs[family].IsValid():
			able = append(able, node)
			continue
		case p.external[family] && len(ofFamily(node.InternalIPs, family)) > 0:
			reason.Code = NodeWithoutExternalIP
		default:
			reason.Code = NodeWithoutFamily
		}
		note(reason)
	}
	return able
}

// withPod are those of the nodes that have a ready pod of the family; if no node has, those with one that serves while it
// terminates. A pod's node leaves as soon as another has a ready one, as the health check of kube-proxy tells load
// balancers: clients have the grace of the pod to follow, and none is left at its end. If no node has either, it is all
// of them: a node without a pod passes the client on to one that has (see choose), and a list that is empty in the middle
// of a hand-over helps nobody.
func (p *publisher) withPod(service *model.Service, family model.Family, able []*listable, note func(Reason)) []*listable {
	hosts, draining := map[string]bool{}, map[string]bool{}
	for _, port := range p.ports[service] {
		if port.code != none {
			continue
		}
		candidates, _ := p.candidates(service, port.ServicePort, family)
		for _, c := range candidates {
			switch node := p.nodes[c.node]; {
			case node == nil || !p.admits(node, c.addr):
			case c.ready:
				hosts[c.node] = true
			case c.draining():
				draining[c.node] = true
			}
		}
	}
	if len(hosts) == 0 {
		hosts = draining
	}
	var with []*listable
	for _, node := range able {
		if hosts[node.Name] {
			with = append(with, node)
		}
	}
	if len(with) == 0 {
		return able
	}
	for _, node := range able {
		if !hosts[node.Name] {
			note(Reason{Code: NodeWithoutPod, Node: node.Name, Detail: family.String()})
		}
	}
	return with
}

// bounded are at most MaxNodes of the nodes, by rendezvous hash: one that leaves is replaced by one, and the others
// stay. Every Service chooses for itself, so the load of the Services spreads over the nodes.
func (p *publisher) bounded(service *model.Service, family model.Family, nodes []*listable, note func(Reason)) []*listable {
	if p.how.MaxNodes <= 0 || len(nodes) <= p.how.MaxNodes {
		return nodes
	}
	weight := func(node *listable) uint64 {
		return siphash.Hash(0, 0, []byte(cmp.Or(service.UID, service.String())+"\x00"+node.Name))
	}
	ranked := slices.SortedFunc(slices.Values(nodes), func(a, b *listable) int {
		return cmp.Or(cmp.Compare(weight(b), weight(a)), cmp.Compare(a.Name, b.Name))
	})
	for _, node := range ranked[p.how.MaxNodes:] {
		note(Reason{Code: NodeNotChosen, Node: node.Name, Detail: family.String()})
	}
	return ranked[:p.how.MaxNodes]
}
