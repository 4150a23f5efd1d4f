// SPDX-License-Identifier: Apache-2.0

package flood_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/src/model"
)

var _ = Describe("clients that vanish without a FIN", Label("netns"), func() {
	for _, offload := range scene.Offloads {
		It("fill the table but push nobody out who is there, and are forgotten after their time: "+offload.String(), func() {
			const vanishing, table = 6000, 4096
			r := newRig(offload, fmt.Sprint("--flow-table-max-entries=", table), "--tcp-idle-sweep-secs=5")
			busy := r.gather("tcp", 100)
			began := time.Now()
			for i := range vanishing {
				Expect(r.vanish(fronts[i%len(fronts)])).To(Succeed(), "client %d", i)
				if i%200 == 0 {
					Expect(busy.echo(i)).To(Succeed(), "after %d others", i)
				}
			}
			report("one-shot clients", "%d in %.1f s; %s; %s", vanishing, time.Since(began).Seconds(),
				r.fill("node-a", "FLOW_TABLE", "FLOW_PENDING"), r.fill("node-b", "FLOW_TABLE", "FLOW_PENDING"))
			r.intact(busy, model.TCP, 0)

			By("the sweep: who vanished goes, who is there stays")
			Eventually(func(g Gomega) {
				g.Expect(busy.echo(vanishing)).To(Succeed())
				g.Expect(len(r.established("node-a", model.TCP))).To(Equal(len(busy)))
				g.Expect(len(r.established("node-b", model.TCP))).To(Equal(len(busy) / 2))
			}).WithTimeout(limit).WithPolling(time.Second).Should(Succeed())
			report("after the sweep", "%s; %s", r.fill("node-a", "FLOW_TABLE"), r.fill("node-b", "FLOW_TABLE"))
		})
	}
})

// vanish is a client that connects, gets its echo, and is never heard of again.
func (r rig) vanish(port uint16) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := r.NS("client").DialFrom(ctx, "tcp", netip.AddrPort{}, r.front(port))
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := echo(conn, "hello", patience); err != nil {
		return err
	}
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		return err
	}
	// A socket under repair is closed in silence.
	failed := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_TCP, unix.TCP_REPAIR, 1) })
	if failed != nil {
		return failed
	}
	return err
}
