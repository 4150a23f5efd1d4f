// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/beep-lb/beep/src/model"
)

const fixtureForms = "want node=ADDRESS, peer=ADDRESS, target=PROTOCOL/ADDRESS:PORT, " +
	"front=PROTOCOL/ADDRESS:PORT[,ADDRESS:PORT[@PEER]][:affinity[=SECONDS]] or source=PROTOCOL/ADDRESS:PORT[,ADDRESS/BITS]"

// affinitySuffix on a front asks for ClientIP affinity. No address or port has it, hence it is cut first.
const affinitySuffix = ":affinity"

// affinitySeconds bounds the time of an affinity as Kubernetes does (MaxClientIPServiceAffinitySeconds of
// k8s.io/api/core/v1).
var affinitySeconds = span{1, 86400}

// ParseFixtures reads the values of --fixture, in any order:
//
//	node=192.0.2.1                                     this node's underlay address, at most one a family
//	peer=192.0.2.2                                     a node whose tunnels are accepted
//	target=tcp/10.42.1.5:8080                          a pod socket on this node that tunnels may deliver to
//	front=tcp/192.0.2.1:80                             a front without an endpoint
//	front=tcp/192.0.2.1:80,10.42.0.5:8080              a front with an endpoint on this node
//	front=tcp/192.0.2.1:80,10.42.1.5:8080@192.0.2.2    a front with an endpoint on a peer
//	source=tcp/192.0.2.1:80,198.51.100.0/24            clients that this front takes; without any, it takes all
//	source=tcp/192.0.2.1:80                            this front takes nobody
//
// A front may end in :affinity or :affinity=SECONDS, and repeating a front adds endpoints, as repeating a source
// adds ranges. The peer of an endpoint becomes one of Peers, because its answers return through the tunnel. The Seed
// stays zero. The error is of type Problems, one line for each bad fixture with its text and the remedy.
func ParseFixtures(texts []string) (model.Desired, error) {
	desired, faults := parseFixtures(texts)
	return desired, faults.orNil()
}

func parseFixtures(texts []string) (model.Desired, Problems) {
	set := fixtureSet{
		peers: map[netip.Addr]string{}, fronts: map[model.Socket]*model.Front{}, sources: map[model.Socket]*sources{},
	}
	for _, text := range texts {
		if err := set.read(text); err != nil {
			set.fault(text, err)
		}
	}
	// Relations between fixtures wait for all of them, since their order is free.
	set.checkPeers()
	set.limitFronts()
	if len(set.faults) > 0 {
		return model.Desired{}, set.faults
	}
	return set.desired(), nil
}

// fixtureSet is what was read so far.
type fixtureSet struct {
	node4, node6 netip.Addr
	// peers maps the peer of a fixture to the text that named it first.
	peers map[netip.Addr]string
	// named are the peers of peer= fixtures, which may not repeat.
	named   []netip.Addr
	targets []model.Socket
	fronts  map[model.Socket]*model.Front
	// sources are those of a front, which may be named later.
	sources map[model.Socket]*sources
	// remotes are the fixtures that need a tunnel address of their peer's family.
	remotes []remote
	faults  Problems
}

type remote struct {
	text string
	peer netip.Addr
}

// sources are the ranges of one front, and the first text that named one.
type sources struct {
	text   string
	ranges []netip.Prefix
}

// fault notes a bad fixture.
func (s *fixtureSet) fault(text string, err error) {
	s.faults = append(s.faults, fmt.Errorf("--fixture %q: %w", text, err))
}

// read takes in one fixture.
func (s *fixtureSet) read(text string) error {
	kind, value, _ := strings.Cut(text, "=")
	switch kind {
	case "node":
		return s.readNode(value)
	case "peer":
		return s.readPeer(text, value)
	case "target":
		return s.readTarget(value)
	case "front":
		return s.readFront(text, value)
	case "source":
		return s.readSource(text, value)
	}
	return errors.New(fixtureForms)
}

// node is this node's underlay address of a family, if any.
func (s *fixtureSet) node(family netip.Addr) *netip.Addr {
	if family.Is4() {
		return &s.node4
	}
	return &s.node6
}

func (s *fixtureSet) readNode(value string) error {
	addr, err := parseUnderlay(value)
	if err != nil {
		return err
	}
	node := s.node(addr)
	if node.IsValid() {
		return fmt.Errorf("a second %s node address after %s: give one a family", family(addr), node)
	}
	*node = addr
	return nil
}

func (s *fixtureSet) readPeer(text, value string) error {
	addr, err := parseUnderlay(value)
	if err != nil {
		return err
	}
	if slices.Contains(s.named, addr) {
		return errors.New("duplicate peer: name it once")
	}
	s.named = append(s.named, addr)
	s.addPeer(addr, text)
	return nil
}

func (s *fixtureSet) addPeer(addr netip.Addr, text string) {
	if _, known := s.peers[addr]; !known {
		s.peers[addr] = text
	}
}

func (s *fixtureSet) readTarget(value string) error {
	socket, err := model.ParseSocket(value)
	if err != nil {
		return err
	}
	if slices.Contains(s.targets, socket) {
		return errors.New("duplicate target: name it once")
	}
	s.targets = append(s.targets, socket)
	return nil
}

func (s *fixtureSet) readFront(text, value string) error {
	value, affinity, timeout, err := cutAffinity(value)
	if err != nil {
		return err
	}
	name, backend, hasEndpoint := strings.Cut(value, ",")
	socket, err := model.ParseSocket(name)
	if err != nil {
		return err
	}
	var endpoints []model.Endpoint
	if hasEndpoint {
		endpoint, err := parseEndpoint(backend)
		if err != nil {
			return err
		}
		if endpoint.Addr.Is4() != socket.Addr.Is4() {
			return fmt.Errorf("mixed families: front %s is %s, endpoint %s is %s: give an endpoint of the front's family",
				socket.Addr, family(socket.Addr), endpoint.Addr, family(endpoint.Addr))
		}
		endpoints = []model.Endpoint{endpoint}
	}
	front := model.Front{Socket: socket, Endpoints: endpoints, ClientIPAffinity: affinity, AffinityTimeout: timeout}
	if err := s.addFront(front); err != nil {
		return err
	}
	if hasEndpoint && endpoints[0].Peer.IsValid() {
		s.addPeer(endpoints[0].Peer, text)
		s.remotes = append(s.remotes, remote{text: text, peer: endpoints[0].Peer})
	}
	return nil
}

// addFront adds a front, or the endpoints of a front that is known.
func (s *fixtureSet) addFront(front model.Front) error {
	known, repeated := s.fronts[front.Socket]
	if !repeated {
		s.fronts[front.Socket] = &front
		return nil
	}
	if known.ClientIPAffinity != front.ClientIPAffinity || known.AffinityTimeout != front.AffinityTimeout {
		return fmt.Errorf("front %s is named with and without %s, or with another time: end all of its fixtures the same way",
			front.Socket, affinitySuffix)
	}
	if len(front.Endpoints) == 0 {
		return fmt.Errorf("duplicate front %s: name it once, or with an endpoint", front.Socket)
	}
	for _, endpoint := range known.Endpoints {
		if endpoint.Addr == front.Endpoints[0].Addr && endpoint.Port == front.Endpoints[0].Port {
			return fmt.Errorf("duplicate endpoint %s of front %s: name it once", endpoint, front.Socket)
		}
	}
	known.Endpoints = append(known.Endpoints, front.Endpoints...)
	return nil
}

// cutAffinity takes :affinity or :affinity=SECONDS off the end of a front. The timeout is 0 where none is given.
func cutAffinity(value string) (front string, affinity bool, timeout time.Duration, err error) {
	front, suffix, affinity := strings.Cut(value, affinitySuffix)
	if suffix == "" {
		return front, affinity, 0, nil
	}
	number, isTime := strings.CutPrefix(suffix, "=")
	seconds, err := strconv.Atoi(number)
	if err != nil || !isTime || seconds < affinitySeconds.low || seconds > affinitySeconds.high {
		return "", false, 0, fmt.Errorf("affinity %q: want %s, or %s= and %s seconds",
			affinitySuffix+suffix, affinitySuffix, affinitySuffix, affinitySeconds)
	}
	return front, true, time.Duration(seconds) * time.Second, nil
}

func (s *fixtureSet) readSource(text, value string) error {
	name, source, hasRange := strings.Cut(value, ",")
	socket, err := model.ParseSocket(name)
	if err != nil {
		return err
	}
	of := s.sources[socket]
	if of == nil {
		of = &sources{text: text, ranges: []netip.Prefix{}}
		s.sources[socket] = of
	}
	if !hasRange {
		return nil
	}
	prefix, err := parseRange(source)
	if err != nil {
		return err
	}
	if slices.Contains(of.ranges, prefix) {
		return fmt.Errorf("duplicate range %s of front %s: name it once", prefix, socket)
	}
	of.ranges = append(of.ranges, prefix)
	return nil
}

// parseRange reads ADDRESS/BITS; bits behind the length are ignored.
func parseRange(text string) (netip.Prefix, error) {
	prefix, err := netip.ParsePrefix(text)
	if err != nil || prefix.Addr().Is4In6() {
		return netip.Prefix{}, fmt.Errorf("source range %q: want ADDRESS/BITS, as 198.51.100.0/24", text)
	}
	return prefix.Masked(), nil
}

// limitFronts gives the fronts their sources.
func (s *fixtureSet) limitFronts() {
	for _, socket := range sorted(s.sources, model.Socket.Compare) {
		of, front := s.sources[socket], s.fronts[socket]
		if front == nil {
			s.fault(of.text, fmt.Errorf("there is no front %s: add --fixture front=%s", socket, socket))
			continue
		}
		front.Sources = slices.SortedFunc(slices.Values(of.ranges), netip.Prefix.Compare)
		if front.Sources == nil {
			front.Sources = []netip.Prefix{}
		}
	}
}

// checkPeers refuses this node as its own peer, and peers that no tunnel address of ours can reach.
func (s *fixtureSet) checkPeers() {
	for _, peer := range sorted(s.peers, netip.Addr.Compare) {
		if peer == *s.node(peer) {
			s.fault(s.peers[peer], fmt.Errorf("peer %s is this node's own address: name another node, "+
				"or leave @PEER out for an endpoint on this node", peer))
		}
	}
	for _, r := range s.remotes {
		if !s.node(r.peer).IsValid() {
			s.fault(r.text, fmt.Errorf("peer %s is %s and this node has no such tunnel address: add --fixture node=ADDRESS",
				r.peer, family(r.peer)))
		}
	}
}

// desired sorts what was read as model.Desired wants it.
func (s *fixtureSet) desired() model.Desired {
	desired := model.Desired{
		Underlay4: s.node4,
		Underlay6: s.node6,
		Peers:     sorted(s.peers, netip.Addr.Compare),
		Targets:   slices.SortedFunc(slices.Values(s.targets), model.Socket.Compare),
	}
	for _, socket := range sorted(s.fronts, model.Socket.Compare) {
		front := *s.fronts[socket]
		slices.SortFunc(front.Endpoints, model.Endpoint.Compare)
		desired.Fronts = append(desired.Fronts, front)
	}
	return desired
}

// sorted returns the keys of a map in order.
func sorted[K comparable, V any](m map[K]V, compare func(a, b K) int) []K {
	keys := make([]K, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, compare)
	if len(keys) == 0 {
		return nil
	}
	return keys
}

// parseEndpoint reads ADDRESS:PORT or ADDRESS:PORT@PEER.
func parseEndpoint(text string) (model.Endpoint, error) {
	socket, peer, remote := strings.Cut(text, "@")
	ap, err := netip.ParseAddrPort(socket)
	if err != nil {
		return model.Endpoint{}, fmt.Errorf("endpoint %q: want ADDRESS:PORT or ADDRESS:PORT@PEER, "+
			"and each further endpoint in a --fixture of its own", text)
	}
	addr := ap.Addr().Unmap()
	if ap.Port() == 0 || addr.Zone() != "" || addr.IsUnspecified() || addr.IsMulticast() {
		return model.Endpoint{}, fmt.Errorf("endpoint %q: want a unicast address without a zone and a port from 1 to 65535", text)
	}
	endpoint := model.Endpoint{Addr: addr, Port: ap.Port()}
	if remote {
		endpoint.Peer, err = parseUnderlay(peer)
	}
	return endpoint, err
}

// parseUnderlay reads an address that tunnels can use: unicast, and of more than link scope, since an outer
// header carries no zone.
func parseUnderlay(text string) (netip.Addr, error) {
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("node address %q: want an IP address, as 192.0.2.1", text)
	}
	addr = addr.Unmap()
	if addr.Zone() != "" || !addr.IsGlobalUnicast() {
		return netip.Addr{}, fmt.Errorf("node address %q: want a routable unicast address without a zone", text)
	}
	return addr, nil
}

// family names the family of an address.
func family(addr netip.Addr) string {
	if addr.Is4() {
		return "IPv4"
	}
	return "IPv6"
}
