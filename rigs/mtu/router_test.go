// SPDX-License-Identifier: Apache-2.0

package mtu_test

import (
	"net/netip"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/fronts"
	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
)

// behindRouter is a client behind a router; the underlay speaks both families, client and pods the inner one.
func behindRouter(o topo.Options, edit func(*topo.Plan), offload scene.Offload, w way) rig {
	GinkgoHelper()
	o.Families = w.inner | w.outer
	plan := topo.BehindRouter(2, o)
	for i := range plan.Pods {
		addrs := plan.Addrs(plan.Pods[i].Name)
		plan.Pods[i].Addrs = nil
		for _, addr := range addrs {
			if w.inner.Has(addr) {
				plan.Pods[i].Addrs = append(plan.Pods[i].Addrs, addr)
			}
		}
	}
	if edit != nil {
		edit(&plan)
	}
	return start(plan, offload, w)
}

// narrowAtRouter has the router send nothing longer than narrowed towards the client.
func (r rig) narrowAtRouter() {
	GinkgoHelper()
	client := r.Addr("client", r.inner)
	r.narrow("router", netip.PrefixFrom(client, client.BitLen()), netip.Addr{}, narrowed)
}

// near are lengths around every bound.
func near(bounds []bound) []int {
	var lengths []int
	for _, b := range bounds {
		for length := b.longest - 2; length <= b.longest+2; length++ {
			lengths = append(lengths, length)
		}
	}
	return lengths
}

// expectBounds sends packets around all bounds, with DF and without.
func (r rig) expectBounds(pod string, bounds map[direction][]bound) {
	GinkgoHelper()
	r.expectBoundsFrom("client", r.dialled(), pod, bounds)
}

func (r rig) expectBoundsFrom(host string, dialled netip.Addr, pod string, bounds map[direction][]bound) {
	GinkgoHelper()
	for _, d := range both {
		t := r.openFrom(host, dialled, pod, dontFragment, dontFragment)
		for _, length := range near(bounds[d]) {
			Expect(t.try(d, bounds[d], length)).To(Succeed(), "DF, %s", d)
		}
		t.end()
	}
	r.forgetPaths(host, pod)
	for _, d := range both {
		t := r.openFrom(host, dialled, pod, mayFragment[r.inner], mayFragment[r.inner])
		for _, length := range near(bounds[d]) {
			Expect(t.insist(d, length, len(bounds[d]))).To(Succeed(), "no DF, %s", d)
		}
		t.end()
	}
}

var _ = Describe("a client behind a router", Label("netns"), func() {
	everywhere(func(w way, offload scene.Offload) {
		It("with a narrower link: the router's errors reach the pod, and downloads complete", func() {
			r := behindRouter(topo.Options{}, nil, offload, w)
			r.narrowAtRouter()
			for _, pod := range []string{remotePod, localPod} {
				transfer, err := traffic.Exchange(r.Context(limit), r.NS("client"), r.front(fronts.Stream, pod), 0, 1<<20)
				Expect(err).NotTo(HaveOccurred(), pod)
				Expect(transfer.Down).To(BeEquivalentTo(1 << 20))
			}
			Expect(r.Drops()).To(BeEmpty())
			router := r.only(r.Addr("router", w.inner))
			if w.inner == w.outer {
				r.expectBounds(localPod, map[direction][]bound{
					toPod:    {{1500, nil}},
					toClient: {{1500, nil}, {narrowed, r.Addrs("router")}},
				})
			}
			r.expectBounds(remotePod, map[direction][]bound{
				toPod:    {{1500, nil}, {w.forward(1500), r.only(r.dialled())}},
				toClient: {{1500, nil}, {w.back(1500), r.only(r.Addr("client", w.inner))}, {narrowed, append(router, r.Addrs("router")...)}},
			})
			r.expectRightChecksums()
		})

		It("with a smaller MTU of its own: streams go both ways", func() {
			r := behindRouter(topo.Options{}, func(plan *topo.Plan) { plan.LANs[0].MTU = 1300 }, offload, w)
			for _, pod := range []string{remotePod, localPod} {
				r.stream(pod)
			}
			r.expectBounds(remotePod, map[direction][]bound{
				toPod:    {{1300, nil}},
				toClient: {{1500, nil}, {w.back(1500), r.only(r.Addr("client", w.inner))}, {1300, r.Addrs("router")}},
			})
			r.expectRightChecksums()
		})

		It("with jumbo frames between the nodes only: the router refuses, or the node that knows the route's MTU", func() {
			r := behindRouter(topo.Options{PodMTU: 9000}, func(plan *topo.Plan) { plan.LANs[1].MTU = 9000 }, offload, w)
			bounds := map[direction][]bound{
				toPod:    {{1500, nil}},
				toClient: {{9000, nil}, {w.back(9000), r.only(r.Addr("client", w.inner))}, {1500, r.Addrs("router")}},
			}
			r.expectBounds(remotePod, bounds)
			r.stream(remotePod)
			client := r.Addr("client", w.inner)
			r.narrow("node-a", netip.PrefixFrom(client, client.BitLen()), r.gateway(), 1500)
			bounds[toClient][2].by = r.only(client)
			r.expectBounds(remotePod, bounds)
			r.stream(remotePod)
			r.expectRightChecksums()
		})
	})
})

// gateway is the router's address on the nodes' LAN.
func (r rig) gateway() netip.Addr {
	for _, port := range r.Host("router").Ports {
		if port.LAN != "nodes" {
			continue
		}
		for _, prefix := range port.Addrs {
			if r.inner.Has(prefix.Addr()) {
				return prefix.Addr()
			}
		}
	}
	panic("mtu: the router has no address on the nodes' LAN")
}

var _ = Describe("the way between the nodes", Label("netns"), func() {
	everywhere(func(w way, offload scene.Offload) {
		It("is narrower than the client's by a route with a locked MTU: each direction has its own limit", func() {
			r := onOneLAN(links{1500, 1500}, offload, w)
			for _, mtu := range []struct{ toPod, toClient int }{{narrowed, narrowed}, {narrowed, 1500}, {1500, narrowed}} {
				r.narrowTunnel("node-a", mtu.toPod)
				r.narrowTunnel("node-b", mtu.toClient)
				r.expectBounds(remotePod, map[direction][]bound{
					toPod:    {{1500, nil}, {w.forward(mtu.toPod), r.only(r.dialled())}},
					toClient: {{1500, nil}, {w.back(mtu.toClient), r.only(r.Addr("client", w.inner))}},
				})
				r.stream(remotePod)
			}
			r.expectRightChecksums()
		})
		It("is wide, but the pod's link is narrow: the node's own error carries the front's address", func() {
			r := onOneLAN(links{1500, 1300}, offload, w)
			r.expectBounds(remotePod, map[direction][]bound{
				toPod:    {{1500, nil}, {w.forward(1500), r.only(r.dialled())}, {1300, r.only(r.dialled())}},
				toClient: {{1300, nil}},
			})
			r.expectBounds(localPod, map[direction][]bound{
				toPod:    {{1500, nil}, {1300, r.only(r.dialled())}},
				toClient: {{1300, nil}},
			})
			r.stream(remotePod)
			r.expectRightChecksums()
		})
	})
})

var _ = Describe("a client on an uplink that no route leads to", Label("netns"), func() {
	for _, offload := range scene.Offloads {
		for _, family := range scene.Families {
			w := way{family, family}
			It("learns the limit of its own uplink, and so does the pod, "+w.String()+", "+offload.String(), func() {
				plan := topo.TwoUplinks(2, topo.Options{Families: family})
				for i := range plan.LANs {
					if plan.LANs[i].Name == "lan-2" {
						plan.LANs[i].MTU = 1340
					}
				}
				r := start(plan, offload, w)
				dialled := r.onLAN("node-a", "lan-2")
				r.expectBoundsFrom("client-2", dialled, remotePod, map[direction][]bound{
					toPod:    {{1340, nil}},
					toClient: {{1500, nil}, {w.back(1500), r.only(r.Addr("client-2", family))}, {1340, r.only(r.Addr("client-2", family))}},
				})
			})

			It("that has no link layer learns the limits of the tunnel, "+w.String()+", "+offload.String(), func() {
				r := start(topo.L3Uplink(topo.Options{Families: family}), offload, w)
				dialled := r.Wires[1].A.Addrs[0].Addr()
				r.expectBoundsFrom("client-2", dialled, remotePod, map[direction][]bound{
					toPod:    {{1500, nil}, {w.forward(1500), r.only(dialled)}},
					toClient: {{1500, nil}, {w.back(1500), r.only(r.Addr("client-2", family))}},
				})
			})
		}
	}
})

// onLAN is a host's first address on a LAN.
func (r rig) onLAN(host, lan string) netip.Addr {
	for _, port := range r.Host(host).Ports {
		if port.LAN == lan {
			return port.Addrs[0].Addr()
		}
	}
	panic("mtu: " + host + " is not on " + lan)
}
