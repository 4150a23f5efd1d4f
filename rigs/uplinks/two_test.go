// SPDX-License-Identifier: Apache-2.0

package uplinks_test

import (
	"encoding/json"
	"net/netip"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/beep"
	"github.com/beep-lb/beep/harness/fronts"
	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/topo"
)

var _ = Describe("a node with two uplinks", Label("netns"), func() {
	for _, offload := range scene.Offloads {
		Context(offload.String(), func() {
			It("answers through the uplink that the client came in on, though its routes lead out of the other", func() {
				r := newRig(topo.TwoUplinks(2, topo.Options{}), offload, beep.Options{})
				for _, family := range families {
					client, front := r.Addr("client-2", family), r.on("node-a", "eth1", family)
					astray, right := r.watching("node-a", "eth0"), r.watching("node-a", "eth1")
					r.serves("client-2", front)
					_, to, _ := passed(astray, client)
					Expect(to).To(BeZero(), "answers to client-2 that left through eth0")
					from, to, _ := passed(right, client)
					Expect(from).To(BeNumerically(">", load.Datagrams))
					Expect(to).To(BeNumerically(">", load.Datagrams))
				}
				r.clean()
			})

			It("serves clients of both uplinks at once", func() {
				r := newRig(topo.TwoUplinks(2, topo.Options{}), offload, beep.Options{})
				for _, family := range families {
					done := make(chan error)
					go func() {
						done <- fronts.Try(r.Context(limit), r.Topology, "client-1", r.on("node-a", "eth0", family), "pod-b1", load)
					}()
					other := fronts.Try(r.Context(limit), r.Topology, "client-2", r.on("node-a", "eth1", family), "pod-b1", load)
					Expect(<-done).To(Succeed())
					Expect(other).To(Succeed())
				}
				r.clean()
			})

			It("answers so, too, where the client dials the address of the other uplink", func() {
				plan := topo.TwoUplinks(2, topo.Options{})
				var dialled []netip.Addr
				client := plan.Host("client-2")
				for _, family := range families {
					dialled = append(dialled, plan.Addr("node-a", family))
				}
				r := newRig(plan, offload, beep.Options{})
				for i, family := range families {
					via := topo.Route{To: netip.PrefixFrom(dialled[i], dialled[i].BitLen()), Via: r.on("node-a", "eth1", family)}
					Expect(r.ReplaceRoute(client.Name, via)).To(Succeed())
					r.serves("client-2", dialled[i])
				}
				r.clean()
			})
		})
	}

	It("finds its uplinks: the devices of its addresses and of its default routes", func() {
		r := newRig(topo.TwoUplinks(2, topo.Options{}), true, beep.Options{Uplinks: []string{"auto"}})
		Expect(r.uplinks("node-a")).To(ConsistOf("eth0", "eth1"))
		for _, family := range families {
			r.serves("client-2", r.on("node-a", "eth1", family))
			r.serves("client-1", r.on("node-a", "eth0", family))
		}
		r.clean()
	})

	It("leaves alone a device that is not named", func() {
		r := newRig(topo.TwoUplinks(2, topo.Options{}), true, beep.Options{Uplinks: []string{"eth0"}})
		Expect(r.uplinks("node-a")).To(ConsistOf("eth0"))
		r.serves("client-1", r.on("node-a", "eth0", topo.V4))
	})
})

// uplinks are the devices that `beep status` calls so.
func (r rig) uplinks(node string) []string {
	GinkgoHelper()
	out, err := r.Nodes[node].Tool("status", "-o", "json")
	Expect(err).NotTo(HaveOccurred())
	var status struct {
		Uplinks []struct{ Device string }
	}
	Expect(json.Unmarshal([]byte(out), &status)).To(Succeed(), out)
	var names []string
	for _, uplink := range status.Uplinks {
		names = append(names, uplink.Device)
	}
	return names
}
