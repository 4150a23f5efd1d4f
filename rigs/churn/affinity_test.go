// SPDX-License-Identifier: Apache-2.0

package churn_test

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/beep"
	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/topo"
)

// timeout is the affinity's, and clients is the number of its clients.
const (
	timeout = 5
	clients = 24
)

// addClients gives the client's device further addresses of a family, each a client of its own.
func (r *rig) addClients(family topo.Families, n int) []netip.Addr {
	GinkgoHelper()
	nl := r.NS("client").Netlink()
	link, err := nl.LinkByName("eth0")
	Expect(err).NotTo(HaveOccurred())
	pattern, bits := "198.51.100.%d", 24
	if family == topo.V6 {
		pattern, bits = "2001:db8:c::%d", 64
	}
	var addrs []netip.Addr
	for i := range n {
		addr, err := netlink.ParseAddr(fmt.Sprintf(pattern+"/%d", 100+i, bits))
		Expect(err).NotTo(HaveOccurred())
		addr.Flags = unix.IFA_F_NODAD // at once
		Expect(nl.AddrAdd(link, addr)).To(Succeed())
		addrs = append(addrs, netip.MustParseAddr(addr.IP.String()))
	}
	return addrs
}

// ask has each client open a connection to the front of its family, and returns who served it.
func (r *rig) ask(clients []netip.Addr) map[netip.Addr]string {
	GinkgoHelper()
	pods := map[netip.Addr]string{}
	for _, client := range clients {
		family := topo.V6
		if client.Is4() {
			family = topo.V4
		}
		pods[client] = r.dial(netip.AddrPortFrom(client, 0), r.front(family, x))
	}
	return pods
}

// differ is the number of clients who were served by another pod.
func differ(before, after map[netip.Addr]string) (n int) {
	for client, pod := range before {
		if after[client] != pod {
			n++
		}
	}
	return n
}

// idle waits until so many seconds have passed without a new flow. Time itself is the condition.
func idle(seconds int) {
	GinkgoHelper()
	start := time.Now()
	Eventually(func() time.Duration { return time.Since(start) }, limit).Should(BeNumerically(">", time.Duration(seconds)*time.Second))
}

var _ = Describe("affinity to the client's address", Label("netns"), func() {
	for _, offload := range scene.Offloads {
		It("holds for its time and no longer: "+offload.String(), func() {
			r := newRig(offload)
			r.edit = func(service *beep.Service) { service.Affinity, service.Timeout = true, timeout }
			r.begin([]string{"pod-a1", "pod-b1"}, nil)
			from := append(r.addClients(topo.V4, clients), r.addClients(topo.V6, clients)...)
			first := r.ask(from)
			Expect(differ(first, r.ask(from))).To(BeZero(), "every connection of a client goes to one pod")

			// New endpoints take no client away from its own.
			many := []string{"pod-a1", "pod-a2", "pod-a3", "pod-b1", "pod-b2", "pod-b3"}
			r.change(many, nil)
			Expect(differ(first, r.ask(from))).To(BeZero(), "while others join")
			idle(timeout - 2)
			Expect(differ(first, r.ask(from))).To(BeZero(), "before the time is over")
			idle(timeout + 1)
			second := r.ask(from)
			Expect(differ(first, second)).To(BeNumerically(">", clients/2), "after it, to %v", second)

			// Of the clients only those move whose pod leaves.
			leaves := second[from[0]]
			rest := slices.DeleteFunc(many, func(pod string) bool { return pod == leaves })
			r.change(rest, nil)
			third := r.ask(from)
			for client, pod := range second {
				if pod == leaves {
					Expect(rest).To(ContainElement(third[client]))
				} else {
					Expect(third[client]).To(Equal(pod))
				}
			}
			Expect(r.Drops()).To(BeEmpty())
		})
	}
})
