// SPDX-License-Identifier: Apache-2.0

package dualstack_test

import (
	"net/netip"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/beep"
	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
)

var _ = Describe("families mixed", Label("netns"), func() {
	for _, offload := range scene.Offloads {
		Context(offload.String(), func() {
			It("on one pair of nodes: all combinations at once, over both protocols and in both directions", func() {
				r := rig{scene.New(GinkgoT(), topo.TwoNodes(topo.Options{}), offload)}
				Expect(r.Evidence.CaptureAll()).To(Succeed())
				// Each pod is served by two ports: the tunnels of one are IPv4, those of the other IPv6.
				over := map[uint16]topo.Families{port: topo.V4, port + 1: topo.V6}
				ways := map[string]string{"node-a": "pod-b1", "node-b": "pod-a1"}
				var all []beep.Service
				for _, pod := range ways {
					for p, underlay := range over {
						r.serve(pod, r.own(pod, p))
						all = append(all, services(r.own(pod, p), underlay, pod)...)
					}
				}
				r.Beep(beep.Options{Services: all})

				var transfers []*scene.Transfer
				var streams []*scene.Stream
				var clients []netip.Addr
				for node, pod := range ways {
					for p, underlay := range over {
						for _, family := range scene.Families {
							front := r.front(node, family, r.own(pod, p))
							// Slow enough that no queue of the machine overflows: what is lost, beep has lost.
							transfers = append(transfers, r.Exchange(r.Context(limit), "client", front, 16<<20, 16<<20, 8<<20))
							streams = append(streams, r.Stream(r.Context(limit), "client", front, largest(family, underlay), time.Millisecond))
							clients = append(clients, r.Addr("client", family))
						}
					}
				}
				for _, transfer := range transfers {
					Eventually(transfer.Moved).WithTimeout(limit).Should(BeNumerically(">", 16<<20))
				}
				for i, stream := range streams {
					tally, err := stream.Stop()
					Expect(err).NotTo(HaveOccurred())
					Expect(tally.Received).To(BeNumerically(">", 100), "%s", tally)
					Expect([]int{tally.Lost, tally.Duplicated, tally.Corrupted, len(tally.Refused)}).To(HaveEach(0), "%s", tally)
					for source := range tally.Sources {
						Expect(source.Addr()).To(Equal(clients[i]))
					}
				}
				for i, transfer := range transfers {
					result, err := transfer.Wait()
					Expect(err).NotTo(HaveOccurred())
					Expect(result.Client.Addr()).To(Equal(clients[i]))
				}
				r.expectClean()
			})

			It("where an endpoint has its node's own address, as a hostNetwork pod does", func() {
				r := rig{scene.New(GinkgoT(), topo.TwoNodes(topo.Options{}), offload)}
				Expect(r.Evidence.CaptureAll()).To(Succeed())
				const own = port + 1000 // what it listens on is not what clients dial
				over := map[uint16]topo.Families{port: topo.V4, port + 1: topo.V6}
				r.serve("node-b", own)
				var all []beep.Service
				for p, underlay := range over {
					for _, service := range services(p, underlay, "node-b") {
						service.TargetPort = own
						all = append(all, service)
					}
				}
				r.Beep(beep.Options{Services: all})
				for _, node := range []string{"node-a", "node-b"} {
					for p, underlay := range over {
						for _, family := range scene.Families {
							front := r.front(node, family, p)
							By(front.String())
							// The client's socket takes no answer but the front's.
							transfer, err := traffic.Exchange(r.Context(limit), r.NS("client"), front, 1<<20, 1<<20)
							Expect(err).NotTo(HaveOccurred())
							Expect(transfer.Server).To(Equal("node-b"))
							Expect(transfer.Client.Addr()).To(Equal(r.Addr("client", family)))
							tally, err := traffic.SendUDP(r.Context(limit), r.NS("client"), front,
								traffic.Datagrams{Count: 200, Size: largest(family, underlay)})
							Expect(err).NotTo(HaveOccurred())
							Expect(tally.Received).To(Equal(200), "%s", tally)
						}
					}
				}
				r.expectClean()
			})

			It("in one cluster: a node of IPv6 only beside one of both", func() {
				plan := topo.TwoNodes(topo.Options{})
				is4 := func(prefix netip.Prefix) bool { return prefix.Addr().Is4() }
				node, pod := plan.Host("node-b"), plan.Pod("pod-b1")
				node.Ports[0].Addrs = slices.DeleteFunc(node.Ports[0].Addrs, is4)
				node.Routes = slices.DeleteFunc(node.Routes, func(route topo.Route) bool { return is4(route.To) })
				pod.Addrs = slices.DeleteFunc(pod.Addrs, netip.Addr.Is4)
				r := rig{scene.New(GinkgoT(), plan, offload)}
				Expect(r.Evidence.CaptureAll()).To(Succeed())
				r.serve("pod-a1", port)
				r.serve("pod-b1", port)
				r.Beep(beep.Options{Services: services(port, 0, "pod-a1", "pod-b1")})

				for front, want := range map[netip.AddrPort][]string{
					r.front("node-a", topo.V4, port): {"pod-a1"},
					r.front("node-a", topo.V6, port): {"pod-a1", "pod-b1"},
					r.front("node-b", topo.V6, port): {"pod-a1", "pod-b1"},
				} {
					servers := map[string]bool{}
					for range 48 {
						transfer, err := traffic.Exchange(r.Context(limit), r.NS("client"), front, 1000, 1000)
						Expect(err).NotTo(HaveOccurred())
						Expect(transfer.Client.Addr()).To(BeElementOf(r.Addrs("client")))
						servers[transfer.Server] = true

						tally, err := traffic.SendUDP(r.Context(limit), r.NS("client"), front, traffic.Datagrams{Count: 2, Size: 1200})
						Expect(err).NotTo(HaveOccurred())
						Expect(tally.Received).To(Equal(2), "%s", tally)
					}
					Expect(servers).To(HaveLen(len(want)), "front %s", front)
					for _, pod := range want {
						Expect(servers).To(HaveKey(pod), "front %s", front)
					}
				}
				r.expectClean()
			})
		})
	}
})

// own is a pod's own pair of ports of a front's.
func (rig) own(pod string, port uint16) uint16 {
	if pod == "pod-a1" {
		return port + 10
	}
	return port + 20
}
