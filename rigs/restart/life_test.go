// SPDX-License-Identifier: Apache-2.0

package restart_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"

	"github.com/beep-lb/beep/harness/beep"
	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/src/datapath/migrate"
)

var _ = Describe("traffic of all kinds through two nodes", Label("netns"), func() {
	for _, offload := range scene.Offloads {
		Context(offload.String(), func() {
			It("goes on while each daemon is killed, ends, and starts again", func() {
				r := newRig(offload)
				l := r.begin(r.Context(2 * limit))
				for _, node := range r.nodes() {
					for _, end := range []func() error{node.Kill9, node.Terminate} {
						Expect(end()).To(Succeed())
						l.flows()
						Expect(node.Restart()).To(Succeed())
						l.flows()
					}
				}
				l.end("restart and kill -9, " + offload.String())
			})

			It("goes on while each node is upgraded to another build and back", func() {
				r := newRig(offload)
				other := anotherBuild()
				l := r.begin(r.Context(2 * limit))
				for _, binary := range []string{other, ""} {
					for _, node := range r.nodes() {
						before := r.loaded(node)
						Expect(node.Terminate()).To(Succeed())
						Expect(node.UseBinary(binary)).To(Succeed())
						Expect(node.Restart()).To(Succeed())
						Expect(r.loaded(node)).NotTo(Equal(before), "other programs run now")
						l.flows()
					}
				}
				l.end("upgrade to another object, " + offload.String())
			})

			It("goes on while the tables of each node grow and shrink", func() {
				r := newRig(offload)
				l := r.begin(r.Context(2 * limit))
				for _, to := range []caps{large, medium, small} {
					for _, node := range r.nodes() {
						resize(node, to)
						Expect(node.Terminate()).To(Succeed())
						Expect(node.Restart()).To(Succeed())
						expectCaps(node, to)
						l.flows()
					}
				}
				l.end("grow and shrink, " + offload.String())
			})

			It("goes on wherever a start that replaces all maps of both nodes is killed, and the next start ends what it began", func() {
				r := newRig(offload)
				l := r.begin(r.Context(6 * limit))
				for i, step := range migrate.Steps() {
					to := []caps{medium, small}[i%2]
					together(r.nodes(), func(node *beep.Daemon) error {
						resize(node, to)
						return node.Terminate()
					})
					together(r.nodes(), func(node *beep.Daemon) error {
						err := node.RunToEnd(migrate.EnvKillAt + "=" + string(step))
						if err == nil || err.Error() != "signal: killed" {
							return fmt.Errorf("it does not get to %s: %w\n%s", step, err, node.Log())
						}
						return nil
					})
					l.flows()
					together(r.nodes(), (*beep.Daemon).Restart)
					for _, node := range r.nodes() {
						expectCaps(node, to)
					}
					l.flows()
				}
				l.end("killed at each of " + strconv.Itoa(len(migrate.Steps())) + " steps, " + offload.String())
			})
		})
	}

	It("is served as before where a row cannot be carried over", func() {
		r := newRig(true)
		l := r.begin(r.Context(2 * limit))
		for _, node := range r.nodes() {
			resize(node, large)
			Expect(node.Terminate()).To(Succeed())
			before, log := pins(node), len(node.Log())
			Expect(node.RunToEnd(migrate.EnvFailRestoreWrite + "=1")).To(MatchError("exit status 1"))
			said := node.Log()[log:]
			Expect(strings.Count(said, "cannot allocate memory")).To(Equal(1), "one clear error: %s", said)
			Expect(said).To(ContainSubstring("what was loaded before stays in force"))
			Expect(pins(node)).To(Equal(before))
			l.flows()
			resize(node, small)
			Expect(node.Restart()).To(Succeed())
			expectCaps(node, small)
		}
		l.end("a row that cannot be carried over")
	})
})

// together does something to all nodes at once.
func together(nodes []*beep.Daemon, do func(*beep.Daemon) error) {
	GinkgoHelper()
	var group errgroup.Group
	for _, node := range nodes {
		group.Go(func() error { return do(node) })
	}
	Expect(group.Wait()).To(Succeed())
}

// pins are the names that are pinned.
func pins(node *beep.Daemon) []string {
	GinkgoHelper()
	var names []string
	for _, folder := range []string{"maps", "links"} {
		entries, err := os.ReadDir(filepath.Join(node.PinDir(), folder))
		Expect(err).NotTo(HaveOccurred())
		for _, entry := range entries {
			names = append(names, folder+"/"+entry.Name())
		}
	}
	return names
}

// expectCaps wants a node to have converged: the sizes asked for, and nothing left of what was.
func expectCaps(node *beep.Daemon, want caps) {
	GinkgoHelper()
	out, err := node.Tool("status")
	Expect(err).NotTo(HaveOccurred())
	flows, err := strconv.Atoi(want[0])
	Expect(err).NotTo(HaveOccurred())
	Expect(out).To(MatchRegexp(`FLOW_TABLE\s+\d+\s+%d\s`, flows-flows/4))
	Expect(out).To(MatchRegexp(`FLOW_DATAGRAMS\s+\d+\s+%d\s`, flows/4))
	Expect(out).To(MatchRegexp(`FRONT_META\s+\d+\s+` + want[1]))
	for _, name := range pins(node) {
		Expect(name).NotTo(Or(HaveSuffix("_next"), HaveSuffix("_part")))
	}
}
