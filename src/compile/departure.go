// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/beep-lb/beep/src/model"
)

// Departed is what is to be swept from the flow tables of every node.
type Departed struct {
	// Addrs are addresses whose every pin goes: their pod left all slices, or another pod has the address now. Nothing
	// new may be installed for one of them before its sweep succeeded.
	Addrs []netip.Addr
	// Sockets are pins that go alone, because other pods of the address stay (hostNetwork).
	Sockets []model.Socket
	// UDP are sockets of endpoints that terminate while another endpoint of their Service is ready. TCP drains.
	UDP []model.Socket
}

// Empty says that there is nothing to sweep.
func (d Departed) Empty() bool { return len(d.Addrs)+len(d.Sockets)+len(d.UDP) == 0 }

// Departures compares the slices of two snapshots, of every Service: one that is no longer ours still has its flows.
// It costs time by the slices that differ, as long as no endpoint left. A readiness that flaps is no departure.
func Departures(previous, next model.Snapshot) Departed {
	old, fresh := changed(previous.Slices, next.Slices)
	departed := Departed{UDP: newlyDraining(touched(old, fresh), previous.Slices, next.Slices)}
	suspects := presences(old, nil)
	suspects.acquit(presences(fresh, suspects))
	if len(suspects) == 0 {
		return departed
	}
	was, is := presences(previous.Slices, suspects), presences(next.Slices, suspects)
	for _, addr := range suspects.addrs() {
		left, stayed := pods{}, pods{}
		for uid, sockets := range was[addr] {
			if is[addr].has(uid) {
				stayed[uid] = sockets
			} else {
				left[uid] = sockets
			}
		}
		switch {
		case len(left) == 0:
		case len(stayed) == 0:
			departed.Addrs = append(departed.Addrs, addr)
		default:
			departed.Sockets = append(departed.Sockets, left.without(stayed)...)
		}
	}
	slices.SortFunc(departed.Sockets, model.Socket.Compare)
	return departed
}

// EndpointAddresses are the addresses of all endpoints in all slices, sorted: after a restart, pins to others are of
// pods that left meanwhile.
func EndpointAddresses(snapshot model.Snapshot) []netip.Addr {
	return presences(snapshot.Slices, nil).addrs()
}

// changed are the slices of either list that are not in the other as they are. Most are found in both at a glance, by
// their pointers.
func changed(previous, next []*model.Slice) (old, fresh []*model.Slice) {
	before := make(map[*model.Slice]bool, len(previous))
	for _, slice := range previous {
		before[slice] = true
	}
	byKey := map[model.ObjectKey]*model.Slice{}
	for _, slice := range next {
		if before[slice] {
			delete(before, slice)
		} else {
			byKey[slice.ObjectKey] = slice
		}
	}
	for slice := range before {
		if again := byKey[slice.ObjectKey]; again != nil && again.Equal(slice) {
			delete(byKey, slice.ObjectKey)
		} else {
			old = append(old, slice)
		}
	}
	return old, slices.Collect(maps.Values(byKey))
}

// pods are the sockets of those at one address, by UID. A slice made by hand names no pod: that says nothing about who
// it is, so an endpoint without a UID is taken for any pod of its address.
type pods map[string]map[model.Socket]bool

// presence is which pods are at which address.
type presence map[netip.Addr]pods

// presences reads the slices, only for the addresses that are among the given ones if there are any.
func presences(of []*model.Slice, only presence) presence {
	present := presence{}
	among := func(addr netip.Addr) bool { return only[addr] != nil }
	if len(only) == 1 { // as a rule, and a comparison is quicker than a look-up
		the := only.addrs()[0]
		among = func(addr netip.Addr) bool { return addr == the }
	}
	for _, slice := range of {
		for i := range slice.Endpoints {
			endpoint := &slice.Endpoints[i]
			if !endpoint.Addr.IsValid() || only != nil && !among(endpoint.Addr) {
				continue
			}
			here := present[endpoint.Addr]
			if here == nil {
				here = pods{}
				present[endpoint.Addr] = here
			}
			if here[endpoint.TargetUID] == nil {
				here[endpoint.TargetUID] = map[model.Socket]bool{}
			}
			for _, port := range slice.Ports {
				if port.Port != 0 {
					here[endpoint.TargetUID][model.Socket{Addr: endpoint.Addr, Port: port.Port, Proto: port.Proto}] = true
				}
			}
		}
	}
	return present
}

// addrs are the addresses, sorted.
func (p presence) addrs() []netip.Addr {
	addrs := make([]netip.Addr, 0, len(p))
	for addr := range p {
		addrs = append(addrs, addr)
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	return addrs
}

// has says whether the pod may be among them.
func (p pods) has(uid string) bool { return p[uid] != nil || p[""] != nil || uid == "" && len(p) > 0 }

// acquit takes out the addresses whose every pod is still there.
func (p presence) acquit(now presence) {
	maps.DeleteFunc(p, func(addr netip.Addr, of pods) bool {
		for uid := range of {
			if !now[addr].has(uid) {
				return false
			}
		}
		return true
	})
}

// without are the sockets of these pods that none of the others has.
func (p pods) without(others pods) []model.Socket {
	var sockets []model.Socket
	for _, of := range p {
		for socket := range of {
			taken := slices.Contains(sockets, socket)
			for _, other := range others {
				taken = taken || other[socket]
			}
			if !taken {
				sockets = append(sockets, socket)
			}
		}
	}
	return sockets
}

// portOf is a port of a Service by the slices' own words, in one family.
type portOf struct {
	service model.ObjectKey
	family  model.Family
	name    string
}

// newlyDraining are the UDP sockets of the Services that drain beside a ready endpoint in the later slices and did not
// in the earlier ones, sorted.
func newlyDraining(of map[model.ObjectKey]bool, earlier, later []*model.Slice) []model.Socket {
	if len(of) == 0 {
		return nil
	}
	before := draining(of, earlier)
	var begun []model.Socket
	for socket := range draining(of, later) {
		if !before[socket] {
			begun = append(begun, socket)
		}
	}
	slices.SortFunc(begun, model.Socket.Compare)
	return begun
}

func draining(of map[model.ObjectKey]bool, list []*model.Slice) map[model.Socket]bool {
	ready := map[portOf]bool{}
	terminating := map[model.Socket][]portOf{}
	stays := map[model.Socket]bool{} // by a copy in another slice
	for _, slice := range list {
		if !of[serviceOf(slice)] {
			continue
		}
		for _, port := range slice.Ports {
			if port.Proto != model.UDP || port.Port == 0 {
				continue
			}
			name := portOf{serviceOf(slice), slice.Family, port.Name}
			for i := range slice.Endpoints {
				endpoint := &slice.Endpoints[i]
				socket := model.Socket{Addr: endpoint.Addr, Port: port.Port, Proto: model.UDP}
				ready[name] = ready[name] || endpoint.Ready.Or(true)
				if endpoint.Ready.Or(true) || !endpoint.Terminating.Or(false) {
					stays[socket] = true
				} else if endpoint.Addr.IsValid() {
					terminating[socket] = append(terminating[socket], name)
				}
			}
		}
	}
	sockets := map[model.Socket]bool{}
	for socket, names := range terminating {
		if !stays[socket] && slices.ContainsFunc(names, func(name portOf) bool { return ready[name] }) {
			sockets[socket] = true
		}
	}
	return sockets
}

// touched are the Services that the slices are of, as far as they have a UDP port.
func touched(lists ...[]*model.Slice) map[model.ObjectKey]bool {
	of := map[model.ObjectKey]bool{}
	for _, slice := range slices.Concat(lists...) {
		if slices.ContainsFunc(slice.Ports, func(port model.SlicePort) bool { return port.Proto == model.UDP }) {
			of[serviceOf(slice)] = true
		}
	}
	return of
}

func serviceOf(slice *model.Slice) model.ObjectKey {
	return model.ObjectKey{Namespace: slice.Namespace, Name: slice.Service}
}
