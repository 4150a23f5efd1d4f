// SPDX-License-Identifier: Apache-2.0

// Package flood is the rig of packets that nobody honest sends: spoofed floods of every kind against a node with ten
// thousand connections, and forged tunnels. Invariant: maps have their default sizes, and what a flood is counted by
// is what arrived at the node, not what was sent.
package flood_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/beep"
	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
	"github.com/beep-lb/beep/src/model"
)

// TestMain is also the servers: a process has too few descriptors for both ends of ten thousand connections.
func TestMain(m *testing.M) {
	if at := os.Getenv(serveEnv); at != "" {
		os.Exit(serve(at))
	}
	os.Exit(m.Run())
}

func TestFlood(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "rig flood")
}

var _ = AfterSuite(func() { require.Report(GinkgoWriter) })

var _ = It("is drawn in its README", func() { scene.CheckReadme(GinkgoT(), plan()) })

const (
	limit = 60 * time.Second

	portLocal  = 80 // a pod on the dialled node, TCP and UDP
	portRemote = 81 // a pod on the other one
	portPod    = 8080
	portHost   = 22 // the node's own server
)

var fronts = []uint16{portLocal, portRemote}

func plan() topo.Plan { return topo.BehindRouter(2, topo.Options{}) }

// rig is two nodes behind a router. Spoofed packets come from the router's side, with sources in the upper halves of the
// clients' networks: what answers them is swallowed, as by addresses where nobody is.
type rig struct{ *scene.Scene }

// newRig starts both nodes, with further flags.
func newRig(offload scene.Offload, args ...string) rig {
	GinkgoHelper()
	r := rig{scene.New(GinkgoT(), plan(), offload)}
	var services []beep.Service
	for i, pod := range []string{"pod-a1", "pod-b1"} {
		r.startServer(pod)
		for _, proto := range []model.Proto{model.TCP, model.UDP} {
			services = append(services, beep.Service{Proto: proto, Port: fronts[i], TargetPort: portPod, Pods: []string{pod}})
		}
	}
	for _, network := range []string{"198.51.100.128/25", "2001:db8:c:0:8000::/65"} {
		_, dst, err := net.ParseCIDR(network)
		Expect(err).NotTo(HaveOccurred())
		Expect(r.NS("router").Netlink().RouteAdd(&netlink.Route{Dst: dst, Type: unix.RTN_BLACKHOLE})).To(Succeed())
	}
	_, err := traffic.ServeHTTP(r.NS("node-a"), "host", netip.AddrPortFrom(r.Addr("node-a", topo.V4), portHost))
	Expect(err).NotTo(HaveOccurred())
	r.Beep(beep.Options{Services: services, Args: args})
	return r
}

func (r rig) front(port uint16) netip.AddrPort {
	return netip.AddrPortFrom(r.Addr("node-a", topo.V4), port)
}

// fill is how full the maps of a node are, "FLOW_TABLE 15000/65536".
func (r rig) fill(node string, names ...string) string {
	GinkgoHelper()
	text, err := r.Nodes[node].Tool("status", "-o", "json")
	Expect(err).NotTo(HaveOccurred())
	var status struct {
		Maps []struct {
			Map          string
			Entries, Max uint32
		}
	}
	Expect(json.Unmarshal([]byte(text), &status)).To(Succeed())
	var fills []string
	for _, m := range status.Maps {
		for _, name := range names {
			if m.Map == name {
				fills = append(fills, fmt.Sprintf("%s %d/%d", m.Map, m.Entries, m.Max))
			}
		}
	}
	return node + ": " + strings.Join(fills, ", ")
}

// established are the client's sources that a node has proved flows of, over a protocol.
func (r rig) established(node string, proto model.Proto) map[netip.AddrPort]bool {
	GinkgoHelper()
	text, err := r.Nodes[node].Tool("flows", "-o", "json", "--client", r.Addr("client", topo.V4).String())
	Expect(err).NotTo(HaveOccurred())
	var flows []struct {
		Protocol, Table string
		Client          netip.AddrPort
	}
	Expect(json.Unmarshal([]byte(text), &flows)).To(Succeed())
	sources := map[netip.AddrPort]bool{}
	for _, f := range flows {
		if f.Table != "FLOW_PENDING" && strings.EqualFold(f.Protocol, proto.String()) {
			sources[f.Client] = true
		}
	}
	return sources
}

// report prints figures beside the spec, also where it passes.
func report(name, format string, args ...any) {
	AddReportEntry(name, ReportEntryVisibilityAlways, fmt.Sprintf(format, args...))
}
