// SPDX-License-Identifier: Apache-2.0

package churn_test

import (
	"errors"
	"net"
	"net/netip"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/src/datapath/maps"
)

// onRows opens the maps of a node.
func (r *rig) onRows(node string, use func(*maps.Kernel)) {
	GinkgoHelper()
	kernel, err := maps.Open(r.Nodes[node].PinDir())
	Expect(err).NotTo(HaveOccurred())
	defer kernel.Close()
	use(kernel)
}

// forget deletes every row of flows on all nodes, as if all had been evicted.
func (r *rig) forget() {
	GinkgoHelper()
	for node := range r.Nodes {
		r.onRows(node, func(kernel *maps.Kernel) {
			Expect(kernel.Flows(func(f maps.Flow) bool {
				if err := kernel.DeleteFlow(f.Table, f.FlowKey); !errors.Is(err, maps.ErrNoRow) {
					Expect(err).NotTo(HaveOccurred())
				}
				return true
			})).To(Succeed())
		})
	}
}

// forwardRows are the rows of clients' flows on a node, by client.
func (r *rig) forwardRows(node string) map[netip.AddrPort]netip.AddrPort {
	GinkgoHelper()
	rows := map[netip.AddrPort]netip.AddrPort{}
	r.onRows(node, func(kernel *maps.Kernel) {
		Expect(kernel.Flows(func(f maps.Flow) bool {
			if f.Kind == maps.Forward {
				rows[f.Src] = f.Nat
			}
			return true
		})).To(Succeed())
	})
	return rows
}

// connect opens a connection to Service x, which lasts as long as the spec.
func (r *rig) connect(family topo.Families) net.Conn {
	GinkgoHelper()
	conn, err := r.NS("client").DialFrom(r.Context(limit), "tcp", netip.AddrPort{}, r.front(family, x))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(conn.Close)
	return conn
}

// sockets are UDP clients, a flow each.
func (r *rig) sockets(at netip.AddrPort, n int) []net.Conn {
	GinkgoHelper()
	var conns []net.Conn
	for range n {
		conn, err := r.NS("client").DialFrom(r.Context(limit), "udp", netip.AddrPort{}, at)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(conn.Close)
		conns = append(conns, conn)
	}
	return conns
}

// askOnce asks on a UDP socket for the server's name.
func askOnce(conn net.Conn) string {
	GinkgoHelper()
	Expect(conn.SetDeadline(time.Now().Add(2 * time.Second))).To(Succeed())
	_, err := conn.Write(make([]byte, 8))
	Expect(err).NotTo(HaveOccurred())
	buffer := make([]byte, 64)
	n, err := conn.Read(buffer)
	Expect(err).NotTo(HaveOccurred(), "%s", conn.LocalAddr())
	return string(buffer[8:n])
}

func askEach(conns []net.Conn) []string {
	GinkgoHelper()
	var pods []string
	for _, conn := range conns {
		pods = append(pods, askOnce(conn))
	}
	return pods
}

var _ = Describe("rows that are lost", Label("netns"), func() {
	all := []string{"pod-a1", "pod-a2", "pod-b1", "pod-b2"}
	for _, offload := range scene.Offloads {
		It("leave a connection with its pod, as long as the pods are the same: "+offload.String(), func() {
			r := newRig(offload)
			r.begin(all, nil)
			for _, family := range scene.Families {
				for range 8 {
					conn := r.connect(family)
					pod, err := askOn(conn)
					Expect(err).NotTo(HaveOccurred())
					r.forget()
					Expect(askOn(conn)).To(Equal(pod))
				}
			}
		})

		It("end a connection that finds another pod by a reset from the front: "+offload.String(), func() {
			r := newRig(offload)
			r.begin([]string{"pod-a1"}, nil)
			for _, pods := range [][2]string{{"pod-a1", "pod-a2"}, {"pod-a2", "pod-b2"}, {"pod-b2", "pod-b1"}, {"pod-b1", "pod-a1"}} {
				conns := []net.Conn{r.connect(topo.V4), r.connect(topo.V6)}
				for _, conn := range conns {
					Expect(askOn(conn)).To(Equal(pods[0]))
				}
				r.change(pods[1:], nil) // which also sweeps the rows of the first
				for _, conn := range conns {
					start := time.Now()
					_, err := askOn(conn)
					Expect(err).To(MatchError(syscall.ECONNRESET), "%v", pods)
					Expect(time.Since(start)).To(BeNumerically("<", time.Second))
				}
			}
		})

		for _, family := range scene.Families {
			Context(offload.String()+", "+scene.FamilyName(family), func() {
				It("are of full tables: every flow goes on, and the host's own traffic is untouched", func() {
					r := newRig(offload)
					options := r.options([]string{"pod-a1"}, nil)
					options.Args = []string{"--flow-table-max-entries", "1024"}
					r.Beep(options)
					// Of two rows each, so that half of the flows do not fit.
					conns := r.sockets(r.front(family, x), 1024)
					Expect(askEach(conns)).To(HaveEach("pod-a1"))
					Expect(len(r.forwardRows("node-a"))).To(BeNumerically("<", len(conns)))
					Expect(askEach(conns)).To(HaveEach("pod-a1"), "also those whose rows were evicted, or one of the two")

					at := netip.AddrPortFrom(r.Addr("node-a", family), 9000)
					listener, err := r.NS("node-a").Listen(at)
					Expect(err).NotTo(HaveOccurred())
					DeferCleanup(listener.Close)
					host, err := r.NS("client").DialFrom(r.Context(limit), "tcp", netip.AddrPort{}, at)
					Expect(err).NotTo(HaveOccurred())
					Expect(host.Close()).To(Succeed())
					Expect(r.Drops()).To(BeEmpty())
				})

				It("are none of those that a start finds", func() {
					r := newRig(offload)
					r.begin(all, nil)
					conns := r.sockets(r.front(family, x), 500)
					pods := askEach(conns)
					before := r.forwardRows("node-a")
					Expect(before).To(HaveLen(len(conns)))
					r.change(all, nil)
					Expect(r.forwardRows("node-a")).To(Equal(before))
					Expect(askEach(conns)).To(Equal(pods))
					Expect(r.Drops()).To(BeEmpty())
				})
			})
		}
	}
})

var _ = Describe("a front that loses its last endpoint", Label("netns"), func() {
	for _, family := range scene.Families {
		It("drops new flows in silence, or refuses them where the operator asks for it: "+scene.FamilyName(family), func() {
			r := newRig(true)
			r.begin([]string{"pod-a1"}, nil)
			r.change(nil, nil)
			client := r.Addr("client", family)
			r.unreached(client, r.front(family, x))
			for _, node := range r.Nodes {
				node.SetFlag("--no-endpoints", "reject")
				Expect(node.Terminate()).To(Succeed())
				Expect(node.Restart()).To(Succeed())
			}
			start := time.Now()
			_, err := r.NS("client").DialFrom(r.Context(limit), "tcp", netip.AddrPort{}, r.front(family, x))
			Expect(err).To(MatchError(syscall.ECONNREFUSED))
			conn := r.sockets(r.front(family, x), 1)[0]
			_, err = conn.Write(make([]byte, 8))
			Expect(err).NotTo(HaveOccurred())
			_, err = conn.Read(make([]byte, 8))
			Expect(err).To(MatchError(syscall.ECONNREFUSED))
			Expect(time.Since(start)).To(BeNumerically("<", 2*time.Second))
		})
	}
})
