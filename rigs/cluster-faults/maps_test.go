// SPDX-License-Identifier: Apache-2.0

package clusterfaults_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/cluster"
	"github.com/beep-lb/beep/harness/kube"
)

// front is one of `beep fronts -o json`.
type front struct {
	Front           string
	Affinity        string
	AffinitySeconds int
	SourcesLimited  bool
	Sources         []netip.Prefix
	ID, Generation  int
	Endpoints       []struct {
		Address netip.AddrPort
		Peer    netip.Addr
	}
}

// fronts are those of a node, by PROTOCOL/ADDRESS:PORT.
func fronts(node *cluster.Node) (map[string]front, error) {
	text, err := node.Datapath.Tool("fronts", "-o", "json")
	if err != nil {
		return nil, err
	}
	var list []front
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("fronts of %s: %w", node.Name, err)
	}
	byName := map[string]front{}
	for _, f := range list {
		byName[f.Front] = f
	}
	return byName, nil
}

// at names a front.
func at(proto string, addr netip.Addr, port int32) string {
	return proto + "/" + netip.AddrPortFrom(addr, uint16(port)).String()
}

// forwards says of a node's front where it sends clients: endpoints without the port when that is target's; none for a
// front without endpoints. An endpoint whose peer is not the node that has its address is an error.
func (r *rig) forwards(f front) (string, error) {
	var words []string
	owner, _, _ := strings.Cut(strings.TrimPrefix(f.Front, "TCP/"), ":")
	for _, e := range f.Endpoints {
		word := e.Address.String()
		if e.Address.Port() == target {
			word = e.Address.Addr().String()
		}
		if node := nodeOfPod(e.Address.Addr()); e.Peer.IsValid() && node != "" && !slices.Contains(r.Addrs(node), e.Peer) {
			return "", fmt.Errorf("front %s of %s sends to %s by %s, and its node is %s", f.Front, owner, e.Address, e.Peer, node)
		}
		words = append(words, word)
	}
	slices.Sort(words)
	if len(words) == 0 {
		return none, nil
	}
	return strings.Join(words, " "), nil
}

const (
	// none is a front without endpoints, and absent no front at all.
	none   = "none"
	absent = "absent"
)

// sends fails unless a port's fronts of a family's addresses on these nodes send to want.
func (r *rig) sends(proto string, port int32, want string, is func(netip.Addr) bool, nodes ...string) func(context.Context) error {
	return func(context.Context) error {
		for _, name := range nodes {
			all, err := fronts(r.Node(name))
			if err != nil {
				return err
			}
			for _, addr := range r.Addrs(name) {
				if !is(addr) {
					continue
				}
				f, there := all[at(proto, addr, port)]
				got := absent
				if there {
					if got, err = r.forwards(f); err != nil {
						return err
					}
				}
				if got != want {
					return fmt.Errorf("%s of %s sends to %s, want %s", at(proto, addr, port), name, got, want)
				}
			}
		}
		return nil
	}
}

// sends4 and sends6 wait until the TCP fronts of a port send to want: on these nodes, or on all.
func (r *rig) sends4(port int32, want string, nodes ...string) {
	GinkgoHelper()
	r.eventually(r.sends("TCP", port, want, netip.Addr.Is4, orAll(nodes)...))
}

func (r *rig) sends6(port int32, want string, nodes ...string) {
	GinkgoHelper()
	r.eventually(r.sends("TCP", port, want, netip.Addr.Is6, orAll(nodes)...))
}

// gone waits until a port has no front on any node.
func (r *rig) gone(proto string, port int32) {
	GinkgoHelper()
	r.eventually(r.sends(proto, port, absent, netip.Addr.IsValid, everyNode...))
}

func orAll(nodes []string) []string {
	if len(nodes) == 0 {
		return everyNode
	}
	return nodes
}

// admits fails unless a port's fronts of all nodes take clients of these ranges, of each family; nil is everybody, and an
// empty list nobody.
func (r *rig) admits(port int32, want4, want6 []string) func(context.Context) error {
	return r.everyFront(port, func(addr netip.Addr, f front) error {
		want := want4
		if addr.Is6() {
			want = want6
		}
		got := []string{}
		for _, source := range f.Sources {
			got = append(got, source.String())
		}
		slices.Sort(got)
		if f.SourcesLimited != (want != nil) || !slices.Equal(got, append([]string{}, want...)) {
			return fmt.Errorf("%s is limited %t to %v, want %v", f.Front, f.SourcesLimited, got, want)
		}
		return nil
	})
}

// affinity fails unless a port's fronts of all nodes have this affinity, with a timeout in seconds.
func (r *rig) affinity(port int32, want string, seconds int) func(context.Context) error {
	return r.everyFront(port, func(_ netip.Addr, f front) error {
		if f.Affinity != want || f.AffinitySeconds != seconds {
			return fmt.Errorf("%s has affinity %s of %d s, want %s of %d s", f.Front, f.Affinity, f.AffinitySeconds, want, seconds)
		}
		return nil
	})
}

// everyFront asks of a TCP port's front on every address of every node.
func (r *rig) everyFront(port int32, ask func(netip.Addr, front) error) func(context.Context) error {
	return func(context.Context) error {
		for _, node := range r.Nodes() {
			all, err := fronts(node)
			if err != nil {
				return err
			}
			for _, addr := range r.Addrs(node.Name) {
				f, there := all[at("TCP", addr, port)]
				if !there {
					return fmt.Errorf("%s has no front %s", node.Name, at("TCP", addr, port))
				}
				if err := ask(addr, f); err != nil {
					return fmt.Errorf("%s: %w", node.Name, err)
				}
			}
		}
		return nil
	}
}

// dump is the fronts of the spec's ports on all nodes, as they are printed, with their ids and generations.
func (r *rig) dump() string {
	GinkgoHelper()
	var text strings.Builder
	for _, node := range r.Nodes() {
		out, err := node.Datapath.Tool("fronts")
		Expect(err).NotTo(HaveOccurred())
		fmt.Fprintln(&text, node.Name)
		for line := range strings.Lines(out) {
			name, rest, _ := strings.Cut(line, " ")
			_, address, _ := strings.Cut(name, "/")
			if socket, err := netip.ParseAddrPort(address); err == nil && r.owns(socket.Port()) {
				fmt.Fprintln(&text, name, strings.Join(strings.Fields(rest), " "))
			}
		}
	}
	return text.String()
}

// owns says whether a port is the spec's.
func (r *rig) owns(port uint16) bool {
	return int32(port) >= r.port && int32(port) < r.port+portsOfSpec
}

// unchanged fails if the fronts of any node are others than before.
func (r *rig) unchanged(before string) func(context.Context) error {
	return func(context.Context) error {
		if now := r.dump(); now != before {
			return fmt.Errorf("the fronts are\n%s\nand were\n%s", now, before)
		}
		return nil
	}
}

// steps are the changes of the spec's fronts that a node's controller has logged, as ACTION NAME, since its log was so long.
func (r *rig) steps(node *cluster.Node, since int) []string {
	var list []string
	for line := range strings.Lines(node.Controller.Log()[since:]) {
		_, rest, is := strings.Cut(line, `msg="front `)
		if !is {
			continue
		}
		action, rest, _ := strings.Cut(rest, `"`)
		_, name, _ := strings.Cut(rest, "name=")
		name, _, _ = strings.Cut(strings.TrimSpace(name), " ")
		name = strings.Trim(name, `"`)
		_, address, _ := strings.Cut(name, "/")
		if socket, err := netip.ParseAddrPort(address); err == nil && r.owns(socket.Port()) {
			list = append(list, action+" "+name)
		}
	}
	return list
}

// logged is how long the controllers' logs are, by node.
func (r *rig) logged() map[string]int {
	lengths := map[string]int{}
	for _, node := range r.Nodes() {
		lengths[node.Name] = len(node.Controller.Log())
	}
	return lengths
}

// writes are those of all controllers, but for their Leases.
func (r *rig) writes() []kube.Write {
	GinkgoHelper()
	return r.written(func(w kube.Write) bool { return w.Resource != "leases" })
}

// statusWrites are the writes of statuses of the spec's Services, also those that were refused; of all, or of these.
func (r *rig) statusWrites(names ...string) []kube.Write {
	GinkgoHelper()
	return r.written(func(w kube.Write) bool {
		return w.Resource == "services/status" && w.Namespace == r.namespace && (len(names) == 0 || slices.Contains(names, w.Name))
	})
}

func (r *rig) written(is func(kube.Write) bool) []kube.Write {
	GinkgoHelper()
	all, err := r.Control.Writes(cluster.UserPrefix)
	Expect(err).NotTo(HaveOccurred())
	return slices.DeleteFunc(all, func(w kube.Write) bool { return !is(w) })
}

// quiet expects that for so long the writes do not become more.
func (r *rig) quiet(long time.Duration, writes func() []kube.Write) {
	GinkgoHelper()
	before := len(writes())
	Consistently(func() []kube.Write { return writes()[before:] }, long, 500*time.Millisecond).Should(BeEmpty())
}
