// SPDX-License-Identifier: Apache-2.0

package coexist_test

import (
	"encoding/json"
	"fmt"
	"net/netip"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/fronts"
	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
)

var _ = Describe("netfilter on the nodes", Label("netns"), func() {
	for _, offload := range scene.Offloads {
		Context(offload.String(), func() {
			It("tells clients apart by their own addresses, as a NetworkPolicy does, in iptables", func() {
				r := newRig(offload)
				r.start()
				for i, pod := range pods {
					for _, family := range families {
						r.iptables(nodes[i], family, "-A FORWARD -s %s -d %s -p tcp --dport %d -j DROP",
							others[family].Addr(), r.Addr(pod, family), fronts.HTTP)
						r.blocked(others[family].Addr(), family, pod)
					}
					r.serves(pod)
				}
				r.clean()
			})

			It("tells clients apart by their own addresses, as a NetworkPolicy does, in nftables", func() {
				r := newRig(offload)
				r.start()
				for i, pod := range pods {
					r.run(nodes[i], policy, "nft", "-f", "-")
					for _, family := range families {
						r.blocked(others[family].Addr(), family, pod)
					}
					r.serves(pod)
					Expect(r.counter(nodes[i], "refused")).To(BeNumerically(">=", 2))
				}
				r.clean()
			})

			It("finds nothing invalid under the strictest connection tracking, and nothing that needs a hole in the nodes' firewall", func() {
				r := newRig(offload)
				for _, node := range nodes {
					r.run(node, firewall, "nft", "-f", "-")
					Expect(r.NS(node).Sysctl("net.netfilter.nf_conntrack_tcp_be_liberal", "0")).To(Succeed())
					Expect(r.NS(node).Sysctl("net.netfilter.nf_conntrack_tcp_loose", "0")).To(Succeed())
					Expect(r.NS(node).Sysctl("net.netfilter.nf_conntrack_checksum", "1")).To(Succeed())
				}
				r.start()
				r.serves(local)
				r.serves(remote)
				for _, node := range nodes {
					Expect(r.counter(node, "invalid")).To(BeZero(), "invalid packets on %s", node)
					Expect(r.counter(node, "refused")).To(BeZero(), "packets that no rule accepts, on %s", node)
					Expect(r.counter(node, "established")).To(BeNumerically(">", load.Datagrams), "it does see the traffic, on %s", node)
				}
				r.clean()
			})

			It("masquerades what pods send on their own, as CNIs do, and leaves their answers alone", func() {
				r := newRig(offload)
				for _, node := range nodes {
					for _, family := range families {
						pods := map[topo.Families]string{topo.V4: "10.42.0.0/16", topo.V6: "2001:db8:a::/64"}[family]
						r.iptables(node, family, "-t nat -A POSTROUTING -s %s ! -d %s -j MASQUERADE", pods, pods)
					}
				}
				r.start()
				r.serves(local)
				r.serves(remote)
				for _, family := range families {
					at := netip.AddrPortFrom(r.Addr("client", family), 9000)
					_, err := traffic.ServeHTTP(r.NS("client"), "client", at)
					Expect(err).NotTo(HaveOccurred())
					for i, pod := range pods {
						answer, err := traffic.Get(r.Context(limit), r.NS(pod), at)
						Expect(err).NotTo(HaveOccurred())
						Expect(answer.Client.Addr()).To(Equal(r.Addr(nodes[i], family)), "the rule is in force for %s", pod)
					}
				}
				r.serves(local)
				r.serves(remote)
				r.clean()
			})
		})
	}
})

// policy refuses one client and counts what it refuses.
var policy = fmt.Sprintf(`
table inet networkpolicy {
	counter refused {}
	chain forward {
		type filter hook forward priority filter
		ip saddr %s tcp dport %d counter name refused drop
		ip6 saddr %s tcp dport %d counter name refused drop
	}
}
`, others[topo.V4].Addr(), fronts.HTTP, others[topo.V6].Addr(), fronts.HTTP)

// firewall accepts for pods what tracked connections of clients carry, and for the node itself nothing but neighbour
// discovery: neither the fronts' ports nor the tunnel's.
var firewall = fmt.Sprintf(`
table inet firewall {
	counter invalid {}
	counter refused {}
	counter established {}
	chain prerouting {
		type filter hook prerouting priority filter
		ct state invalid counter name invalid drop
	}
	chain forward {
		type filter hook forward priority filter; policy drop
		ct state invalid counter name invalid drop
		ct state established counter name established accept
		ip saddr 198.51.100.0/24 ip daddr 10.42.0.0/16 th dport { %[1]d, %[2]d, %[3]d } ct state new accept
		ip6 saddr 2001:db8:c::/64 ip6 daddr 2001:db8:a::/64 th dport { %[1]d, %[2]d, %[3]d } ct state new accept
		counter name refused
	}
	chain input {
		type filter hook input priority filter; policy drop
		iif lo accept
		meta l4proto ipv6-icmp accept
		counter name refused
	}
}
`, fronts.HTTP, fronts.Stream, fronts.Datagram)

// counter reads a named counter of nftables: packets.
func (r rig) counter(node, name string) int {
	GinkgoHelper()
	var listed struct {
		Nftables []struct {
			Counter struct {
				Name    string
				Packets int
			}
		}
	}
	out := r.run(node, "", "nft", "-j", "list", "counters")
	Expect(json.Unmarshal([]byte(out), &listed)).To(Succeed(), out)
	for _, object := range listed.Nftables {
		if object.Counter.Name == name {
			return object.Counter.Packets
		}
	}
	Fail("no counter " + name + " on " + node + ": " + out)
	return 0
}
