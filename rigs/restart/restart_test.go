// SPDX-License-Identifier: Apache-2.0

// Package restart is the rig of everything that an operator does to a running datapath: restarts, upgrades, other
// sizes, and starts that die half-way. Invariant: traffic of all kinds, through the tunnel and to a local pod, is under
// way all the time, so whatever a node does to it is counted.
package restart_test

import (
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/beep"
	"github.com/beep-lb/beep/harness/fronts"
	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/topo"
)

func TestRestart(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "rig restart")
}

var _ = AfterSuite(func() {
	Expect(os.RemoveAll(built)).To(Succeed())
	require.Report(GinkgoWriter)
})

var _ = It("is drawn in its README", func() { scene.CheckReadme(GinkgoT(), plan()) })

// limit ends whatever a spec waits for.
const limit = 30 * time.Second

func plan() topo.Plan { return topo.TwoNodes(topo.Options{}) }

type rig struct{ *scene.Scene }

// The flags that size the tables, and values that ask for other maps than small's.
var sizes = []string{"--flow-table-max-entries", "--max-fronts", "--endpoints-per-front", "--node-allow-max-entries"}

type caps [4]string

var (
	small  = caps{"4096", "64", "2", "8"}
	medium = caps{"8192", "128", "4", "16"}
	large  = caps{"32768", "512", "8", "64"}
)

func newRig(offload scene.Offload) rig {
	r := rig{scene.New(GinkgoT(), plan(), offload)}
	_, err := fronts.Serve(r.Topology)
	Expect(err).NotTo(HaveOccurred())
	r.Beep(beep.Options{Services: fronts.Services(&r.Plan, "pod-a1", "pod-b1"), Args: []string{
		sizes[0], small[0], sizes[1], small[1], sizes[2], small[2], sizes[3], small[3],
	}})
	return r
}

// nodes are both, that which clients dial first.
func (r rig) nodes() []*beep.Daemon { return []*beep.Daemon{r.Nodes["node-a"], r.Nodes["node-b"]} }

// resize has a node's next start ask for other sizes.
func resize(node *beep.Daemon, to caps) {
	for i, flag := range sizes {
		node.SetFlag(flag, to[i])
	}
}
