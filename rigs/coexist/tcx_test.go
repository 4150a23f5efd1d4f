// SPDX-License-Identifier: Apache-2.0

package coexist_test

import (
	"net/netip"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/fronts"
	"github.com/beep-lb/beep/harness/packet"
	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/tcx"
	"github.com/beep-lb/beep/harness/topo"
)

// hooks are both sides of a device.
var hooks = []tcx.Hook{tcx.Ingress, tcx.Egress}

var _ = Describe("another tcx program on the uplink", Label("netns"), func() {
	for _, offload := range scene.Offloads {
		Context(offload.String(), func() {
			for _, place := range []tcx.Place{tcx.First, tcx.Last} {
				for _, early := range []bool{true, false} {
					when := "attached after beep"
					if early {
						when = "attached before beep"
					}
					It(string(place)+" in the chain, "+when+": sees traffic, and beep serves", func() {
						r := newRig(offload)
						var foreign []*tcx.Program
						if early {
							foreign = r.attachBoth(place)
							r.start()
						} else {
							r.start()
							foreign = r.attachBoth(place)
						}
						r.serves(local)
						r.serves(remote)
						for _, program := range foreign {
							Expect(program.Count()).To(BeNumerically(">", 0))
						}
						r.clean()
					})
				}
			}

			It("stays, in its place, when beep ends, is killed, and starts again", func() {
				r := newRig(offload)
				r.start()
				foreign := r.attachBoth(tcx.First)
				dialled := r.attach("node-a", tcx.Ingress, tcx.First, tcx.Rule{Port: r.port(local)})
				daemon := r.Nodes["node-a"]
				for _, end := range []func() error{daemon.Terminate, daemon.Kill9} {
					Expect(end()).To(Succeed())
					r.serves(local)
					r.serves(remote)
					Expect(daemon.Restart()).To(Succeed())
					before := count(dialled)
					r.serves(local)
					r.serves(remote)
					Expect(count(dialled)).To(BeNumerically(">", before), "it still sees the port that the client dials, which beep rewrites")
					for _, program := range foreign {
						Expect(program.Attached()).To(BeTrue())
					}
				}
				r.clean()
			})

			It("leaves, and beep stays", func() {
				r := newRig(offload)
				foreign := r.attachBoth(tcx.Last)
				r.start()
				foreign = append(foreign, r.attachBoth(tcx.First)...)
				r.serves(remote)
				for _, program := range foreign {
					Expect(program.Close()).To(Succeed())
				}
				r.serves(local)
				r.serves(remote)
				Expect(r.Nodes["node-a"].Tool("status")).NotTo(BeEmpty(), "and is healthy")
				r.clean()
			})
		})
	}

	DescribeTable("drops, and its verdict holds",
		func(node string, hook tcx.Hook, place tcx.Place, pick func(rig) uint16, blocked, served string) {
			r := newRig(true)
			r.start()
			foreign := r.attach(node, hook, place, tcx.Rule{Port: pick(r), Drop: true})
			for _, family := range families {
				before := count(foreign)
				r.blocked(netip.Addr{}, family, blocked)
				Expect(count(foreign)).To(BeNumerically(">", before))
			}
			r.serves(served)
			Expect(foreign.Close()).To(Succeed())
			r.serves(blocked)
		},
		Entry("before beep: the port that a client dials", "node-a", tcx.Ingress, tcx.First,
			func(r rig) uint16 { return r.port(remote) }, remote, local),
		Entry("before beep: the tunnel, where it comes in", "node-b", tcx.Ingress, tcx.First,
			func(rig) uint16 { return packet.GenevePort }, remote, local),
		Entry("behind beep: the pod's port, which beep has written", "node-a", tcx.Ingress, tcx.Last,
			func(rig) uint16 { return uint16(fronts.HTTP) }, local, remote),
		Entry("behind beep: the pod's port, out of the tunnel", "node-b", tcx.Ingress, tcx.Last,
			func(rig) uint16 { return uint16(fronts.HTTP) }, remote, local),
		Entry("before beep's egress: the tunnel, where it leaves", "node-a", tcx.Egress, tcx.First,
			func(rig) uint16 { return packet.GenevePort }, remote, local),
		Entry("behind beep's egress: the tunnel, where it leaves", "node-a", tcx.Egress, tcx.Last,
			func(rig) uint16 { return packet.GenevePort }, remote, local),
	)
})

// port is the one that a client dials for HTTP by a pod.
func (r rig) port(pod string) uint16 {
	return fronts.At(&r.Plan, r.Addr("node-a", topo.V4), fronts.HTTP, pod).Port()
}

func (r rig) attach(node string, hook tcx.Hook, place tcx.Place, rule tcx.Rule) *tcx.Program {
	GinkgoHelper()
	program, err := tcx.Attach(r.NS(node), "eth0", hook, place, rule)
	Expect(err).NotTo(HaveOccurred())
	return program
}

// attachBoth attaches a program that counts to both sides of both nodes' uplinks.
func (r rig) attachBoth(place tcx.Place) []*tcx.Program {
	GinkgoHelper()
	var programs []*tcx.Program
	for _, node := range nodes {
		for _, hook := range hooks {
			programs = append(programs, r.attach(node, hook, place, tcx.Rule{}))
		}
	}
	return programs
}

func count(program *tcx.Program) uint64 {
	GinkgoHelper()
	n, err := program.Count()
	Expect(err).NotTo(HaveOccurred())
	return n
}
