// SPDX-License-Identifier: Apache-2.0

package smoke_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/scene"
)

var _ = Describe("the daemon of a node", Label("netns"), func() {
	for _, offload := range scene.Offloads {
		Context(offload.String(), func() {
			for _, family := range scene.Families {
				name := scene.FamilyName(family)
				It("is killed, ends, and starts again without loss over "+name, func() {
					r := newRig(offload)
					ctx := r.Context(limit)
					transfer := r.Exchange(ctx, "client", r.front(family, bulk.Port), 256<<20, 256<<20, 50<<20)
					stream := r.Stream(ctx, "client", r.front(family, dns.Port), 1200, 200*time.Microsecond)
					for _, end := range []func() error{r.node().Kill9, r.node().Terminate} {
						moved := transfer.Moved()
						Eventually(transfer.Moved, limit).Should(BeNumerically(">", moved+1<<20))
						Expect(end()).To(Succeed())
						moved = transfer.Moved()
						Eventually(transfer.Moved, limit).Should(BeNumerically(">", moved+1<<20), "flows go on without a process")
						Expect(r.get(r.from(family, 0), r.front(family, web.Port)).Server).To(HaveSuffix(" web"), "new ones begin")
						Expect(r.node().Restart()).To(Succeed())
					}
					Expect(transfer.Ended()).To(BeFalse(), "the transfer was under way all the time")
					result, err := transfer.Wait()
					Expect(err).NotTo(HaveOccurred())
					Expect(result.Client.Addr()).To(Equal(r.Addr("client", family)))

					tally, err := stream.Stop()
					Expect(err).NotTo(HaveOccurred())
					Expect(tally.Received).To(BeNumerically(">", 100))
					Expect([]int{tally.Lost, tally.Duplicated, tally.Corrupted, len(tally.Refused)}).To(HaveEach(0), "%s", tally)
					Expect(tally.Sources).To(HaveLen(1))
					Expect(r.Drops()).To(BeEmpty())
					Expect(r.ChecksumErrors()).To(BeEmpty())
				})
			}

			It("refuses a second instance and keeps serving", func() {
				r := newRig(offload)
				args := r.node().RunArgs()
				_, err := r.node().Tool(args[0], append(args[1:], "--metrics-addr", "")...)
				Expect(err).To(MatchError(ContainSubstring("exit status 1")))
				Expect(err).To(MatchError(ContainSubstring(r.node().PinDir())), "the error names what is in use")
				for _, family := range scene.Families {
					Expect(r.get(r.from(family, 0), r.front(family, web.Port)).Server).To(HaveSuffix(" web"))
				}
				Expect(r.node().Running()).To(BeTrue())
			})
		})
	}
})
