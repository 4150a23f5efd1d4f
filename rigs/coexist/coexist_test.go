// SPDX-License-Identifier: Apache-2.0

// Package coexist is the rig of others on the node: eBPF programs on the same device, and netfilter rules. Invariant:
// each spec has namespaces, maps and daemons of its own.
package coexist_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/beep"
	"github.com/beep-lb/beep/harness/fronts"
	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/topo"
)

func TestCoexist(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "rig coexist")
}

var _ = AfterSuite(func() { require.Report(os.Stdout) })

const (
	// limit ends whatever a spec waits for.
	limit = 30 * time.Second
	// silence is how long a connection must fail to come about to count as blocked: many round trips.
	silence = 300 * time.Millisecond
	local   = "pod-a1" // on the node that the client dials
	remote  = "pod-b1"
)

var (
	nodes    = []string{"node-a", "node-b"}
	pods     = []string{local, remote}
	families = []topo.Families{topo.V4, topo.V6}
	// load is what the client sends to each pod over each family.
	load = fronts.Load{Bytes: 4 << 20, Datagrams: 200}
	// others are the client's second addresses, for rules that tell one client from another.
	others = map[topo.Families]netip.Prefix{
		topo.V4: netip.MustParsePrefix("198.51.100.20/24"), topo.V6: netip.MustParsePrefix("2001:db8:c::20/64"),
	}
)

// rig is two nodes, each with a pod, and a client that dials node-a.
type rig struct{ *scene.Scene }

// newRig has everything but beep.
func newRig(offload scene.Offload) rig {
	GinkgoHelper()
	r := rig{scene.New(GinkgoT(), topo.TwoNodes(topo.Options{}), offload)}
	Expect(r.Evidence.CaptureAll()).To(Succeed())
	_, err := fronts.Serve(r.Topology)
	Expect(err).NotTo(HaveOccurred())
	r.addOthers()
	return r
}

// addOthers gives the client its second addresses, which it uses only where it is told to.
func (r rig) addOthers() {
	GinkgoHelper()
	nl := r.NS("client").Netlink()
	eth0, err := nl.LinkByName("eth0")
	Expect(err).NotTo(HaveOccurred())
	for _, prefix := range others {
		address := &netlink.Addr{IPNet: &net.IPNet{
			IP: prefix.Addr().AsSlice(), Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen()),
		}}
		if prefix.Addr().Is6() {
			// Deprecated: valid, but never the kernel's own choice of a source (RFC 6724, rule 3).
			address.Flags, address.ValidLft, address.PreferedLft = unix.IFA_F_NODAD, math.MaxInt32, 0
		}
		Expect(nl.AddrAdd(eth0, address)).To(Succeed())
	}
}

// start starts beep on both nodes.
func (r rig) start() {
	GinkgoHelper()
	r.Beep(beep.Options{Services: fronts.Services(&r.Plan, pods...)})
}

// serves expects a pod to serve the client over both families.
func (r rig) serves(pod string) {
	GinkgoHelper()
	for _, family := range families {
		Expect(fronts.Try(r.Context(limit), r.Topology, "client", r.Addr("node-a", family), pod, load)).To(Succeed())
	}
}

// blocked expects that no HTTP connection from an address of the client to a pod comes about, and that nobody says
// so. The zero address is the client's first.
func (r rig) blocked(from netip.Addr, family topo.Families, pod string) {
	GinkgoHelper()
	Expect(r.dial(from, family, pod)).To(MatchError(context.DeadlineExceeded))
}

// dial opens and closes an HTTP connection; silence is a deadline exceeded.
func (r rig) dial(from netip.Addr, family topo.Families, pod string) error {
	ctx, cancel := context.WithTimeout(r.Context(limit), silence)
	defer cancel()
	var source netip.AddrPort
	if from.IsValid() {
		source = netip.AddrPortFrom(from, 0)
	}
	conn, err := r.NS("client").DialFrom(ctx, "tcp", source, fronts.At(&r.Plan, r.Addr("node-a", family), fronts.HTTP, pod))
	if err == nil {
		return conn.Close()
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return context.DeadlineExceeded
	}
	return err
}

func (r rig) clean() {
	GinkgoHelper()
	Expect(r.Drops()).To(BeEmpty())
	Expect(r.ChecksumErrors()).To(BeEmpty())
}

// run runs a command in a host's namespace and returns what it printed.
func (r rig) run(host, input, name string, args ...string) string {
	GinkgoHelper()
	require.Tool(GinkgoT(), name)
	var out bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &out
	process, err := r.NS(host).Start(cmd)
	Expect(err).NotTo(HaveOccurred())
	Expect(process.Wait()).To(Succeed(), "%s %s on %s: %s", name, strings.Join(args, " "), host, &out)
	return out.String()
}

// iptables adds a rule, given as iptables(8) takes it, to IPv4's or IPv6's tables.
func (r rig) iptables(host string, family topo.Families, format string, args ...any) {
	GinkgoHelper()
	tool := "iptables"
	if family == topo.V6 {
		tool = "ip6tables"
	}
	r.run(host, "", tool, strings.Fields("-w "+fmt.Sprintf(format, args...))...)
}
