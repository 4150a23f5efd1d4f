// SPDX-License-Identifier: Apache-2.0

package flood_test

import (
	"encoding/binary"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/packet"
	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/src/model"
)

const (
	connections = 10_000
	million     = 1_000_000
)

var _ = Describe("ten thousand connections", Label("netns"), func() {
	for _, offload := range scene.Offloads {
		Context(offload.String(), func() {
			It("survive a million spoofed SYNs and a million spoofed ACKs, while others come and the host answers", func() {
				r := newRig(offload)
				began := time.Now()
				all := r.gather("tcp", connections)
				report("connections", "%d in %.1f s; %s; %s", connections, time.Since(began).Seconds(),
					r.fill("node-a", "FLOW_TABLE"), r.fill("node-b", "FLOW_TABLE"))
				for _, flags := range []string{"S", "A"} {
					others := r.watch()
					spoofed := r.newSpoofer(r.segments(flags)...)
					f := r.flood(spoofed, million, func(b []byte) {
						l4 := spoofed.source(b)
						binary.BigEndian.PutUint32(b[l4+4:], spoofed.random.Uint32())
						mend(b)
					}, others)
					report("flood of "+flags, "%s\n%s\n%s\n%s", f, others,
						r.fill("node-a", "FLOW_TABLE", "FLOW_PENDING"), r.fill("node-b", "FLOW_TABLE", "FLOW_PENDING"))
					others.unhurt()
					r.intact(all, model.TCP, 0)
				}
			})

			It("survive a hundred thousand spoofed handshakes, whose ACKs guess what the pod has said", func() {
				r := newRig(offload)
				all := r.gather("tcp", connections)
				spoofed := r.newSpoofer(append(r.segments("S"), r.segments("A")...)...)
				turn := 0
				var source [4][14]byte
				f := r.flood(spoofed, 200_000, func(b []byte) {
					l4 := spoofed.source(b)
					// Two SYNs, and then the ACKs of the same two.
					if turn %= 4; turn < 2 {
						copy(source[turn][:], b[26:l4+2])
					} else {
						copy(b[26:l4+2], source[turn-2][:l4+2-26])
					}
					turn++
					mend(b)
				}, nil)
				report("flood of handshakes", "%s\n%s\n%s", f, r.fill("node-a", "FLOW_TABLE", "FLOW_PENDING"),
					r.fill("node-b", "FLOW_TABLE", "FLOW_PENDING"))
				r.intact(all, model.TCP, 0)
			})
		})
	}
})

// segments are TCP segments to both fronts.
func (r rig) segments(flags string) (all [][]byte) {
	for _, port := range fronts {
		segment := packet.TCP(1024, port).Flags(flags)
		if flags == "S" {
			segment = segment.MSS(1460)
		}
		all = append(all, r.frame(r.ip(topo.V4), segment))
	}
	return all
}

// intact says that at most so many connections of a crowd have lost their rows, and that all still work.
func (r rig) intact(all crowd, proto model.Proto, lost int) {
	GinkgoHelper()
	var remote crowd
	for i, conn := range all {
		if i%2 == 1 {
			remote = append(remote, conn)
		}
	}
	atA, atB := all.missing(r.established("node-a", proto)), remote.missing(r.established("node-b", proto))
	report("evicted", "%d of %d at node-a, %d of %d at node-b", atA, len(all), atB, len(remote))
	Expect(all.echo(2)).To(Succeed())
	Expect(atA).To(BeNumerically("<=", lost), "rows of node-a")
	Expect(atB).To(BeNumerically("<=", lost), "rows of node-b")
}
