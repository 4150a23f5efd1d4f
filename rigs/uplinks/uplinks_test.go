// SPDX-License-Identifier: Apache-2.0

// Package uplinks is the rig of nodes with more than one uplink, and of uplinks without a link layer. Invariant:
// each spec has namespaces, maps and daemons of its own.
package uplinks_test

import (
	"net/netip"
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/beep"
	"github.com/beep-lb/beep/harness/fronts"
	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/watch"
)

func TestUplinks(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "rig uplinks")
}

var _ = AfterSuite(func() { require.Report(os.Stdout) })

// limit ends whatever a spec waits for.
var limit = require.Within(30 * time.Second)

// load is what each client sends to each pod over each family.
var load = fronts.Load{Bytes: 4 << 20, Datagrams: 300, Patience: require.Within(time.Second)}

// pods are one on each node.
var pods = []string{"pod-a1", "pod-b1"}

var families = []topo.Families{topo.V4, topo.V6}

// rig is a topology whose pods serve and whose nodes run beep.
type rig struct{ *scene.Scene }

func newRig(plan topo.Plan, offload scene.Offload, o beep.Options) rig {
	GinkgoHelper()
	r := rig{scene.New(GinkgoT(), plan, offload)}
	Expect(r.Evidence.CaptureAll()).To(Succeed())
	_, err := fronts.Serve(r.Topology)
	Expect(err).NotTo(HaveOccurred())
	o.Services = fronts.Services(&r.Plan, pods...)
	r.Beep(o)
	return r
}

// on is the address of one device of a host.
func (r rig) on(host, device string, family topo.Families) netip.Addr {
	GinkgoHelper()
	for _, end := range r.Devices() {
		for _, prefix := range end.Addrs {
			if end.Host == host && end.Device == device && family.Has(prefix.Addr()) {
				return prefix.Addr()
			}
		}
	}
	Fail("no address on " + host + " " + device)
	return netip.Addr{}
}

// serves expects both pods to serve a client through an address, and nothing to be dropped or damaged.
func (r rig) serves(client string, addr netip.Addr) {
	GinkgoHelper()
	for _, pod := range pods {
		Expect(fronts.Try(r.Context(limit), r.Topology, client, addr, pod, load)).To(Succeed())
	}
}

// clean expects that no node dropped and no kernel complained.
func (r rig) clean() {
	GinkgoHelper()
	Expect(r.Drops()).To(BeEmpty())
	Expect(r.ChecksumErrors()).To(BeEmpty())
}

// watching starts to watch a device.
func (r rig) watching(host, device string) *watch.Watch {
	GinkgoHelper()
	w, err := watch.Start(r.Topology, host, device)
	Expect(err).NotTo(HaveOccurred())
	return w
}

// passed counts what a watch has seen: packets from and to a client itself, and tunnel packets.
func passed(w *watch.Watch, client netip.Addr) (fromClient, toClient, tunnels int) {
	GinkgoHelper()
	packets, err := w.Packets()
	Expect(err).NotTo(HaveOccurred())
	for _, p := range packets {
		src, dst, ok := watch.Ends(p)
		switch {
		case !ok:
		case watch.IsTunnel(p):
			tunnels++
		case src == client:
			fromClient++
		case dst == client:
			toClient++
		}
	}
	return fromClient, toClient, tunnels
}
