// SPDX-License-Identifier: Apache-2.0

package coldneigh_test

import (
	"net"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/topo"
)

// recovery is how long a node may be out of reach after its link-layer address changed: "seconds". Where nobody
// announces the change it is the kernel's own ageing that ends it (see age).
const recovery = 5 * time.Second

var _ = Describe("a neighbour whose MAC address changes", Label("netns"), func() {
	for _, offload := range scene.Offloads {
		Context(offload.String(), func() {
			for _, node := range []string{"node-a", "node-b"} {
				It(node+", announced: is found again at once", func() {
					r := newRig(topo.TwoNodes(topo.Options{}), offload, "client", "eth0")
					r.announces(node)
					for i, family := range families {
						s := r.stream(family, "pod-b1")
						r.changeMAC(node, byte(i))
						s.recovers(time.Second)
					}
					r.clean()
				})

				It(node+", silent: is found again within seconds, as the kernel notices", func() {
					r := newRig(topo.TwoNodes(topo.Options{}), offload, "client", "eth0")
					r.age()
					for i, family := range families {
						s := r.stream(family, "pod-b1")
						r.changeMAC(node, byte(i))
						s.recovers(recovery)
					}
					r.clean()
				})

				It(node+", with a device that was deleted and made anew: serves again within seconds", func() {
					r := newRig(topo.TwoNodes(topo.Options{}), offload, "client", "eth0")
					r.age()
					for _, family := range families {
						s := r.stream(family, "pod-b1")
						Expect(r.Recreate(node, "eth0")).To(Succeed())
						s.recovers(recovery)
					}
				})
			}

			It("a client to which no route leads: is answered at its new address with its next packet", func() {
				r := newRig(topo.TwoUplinks(2, topo.Options{}), offload, "client-2", "eth1")
				for i, family := range families {
					for j, pod := range pods {
						s := r.stream(family, pod)
						r.changeMAC("client-2", byte(2*i+j))
						s.recovers(time.Second)
					}
				}
				r.clean()
			})
		})
	}
})

// announces has a host tell its neighbours of a new address, as network daemons do.
func (r rig) announces(host string) {
	GinkgoHelper()
	Expect(r.NS(host).Sysctl("net.ipv4.conf.all.arp_notify", "1")).To(Succeed())
	Expect(r.NS(host).Sysctl("net.ipv6.conf.all.ndisc_notify", "1")).To(Succeed())
}

// age shortens the time after which every host doubts a neighbour and asks again: by default up to 45 seconds of
// trust and 5 of waiting, which is the kernel's policy and not what is tested.
func (r rig) age() {
	GinkgoHelper()
	for _, host := range r.Hosts {
		for _, family := range []string{"ipv4", "ipv6"} {
			at := "net." + family + ".neigh.eth0."
			Expect(r.NS(host.Name).Sysctl(at+"base_reachable_time_ms", "500")).To(Succeed())
			Expect(r.NS(host.Name).Sysctl(at+"retrans_time_ms", "200")).To(Succeed())
			Expect(r.NS(host.Name).Sysctl(at+"delay_first_probe_time", "1")).To(Succeed())
		}
	}
}

// changeMAC gives a host's first device another address, one for each number.
func (r rig) changeMAC(host string, number byte) {
	GinkgoHelper()
	nl := r.NS(host).Netlink()
	eth0, err := nl.LinkByName("eth0")
	Expect(err).NotTo(HaveOccurred())
	Expect(nl.LinkSetHardwareAddr(eth0, net.HardwareAddr{2, 0, 0, 0, 0xee, number})).To(Succeed())
}
