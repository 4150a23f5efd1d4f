// SPDX-License-Identifier: Apache-2.0

// Package refusal is the rig of a kernel that is too old for beep: what an operator reads who tries. Invariant: the
// kernel that it runs on is older than 6.6, and nothing that beep does there changes the node.
package refusal_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/artifacts"
	"github.com/beep-lb/beep/harness/beep"
	"github.com/beep-lb/beep/harness/bpffs"
	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/topo"
)

func TestRefusal(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "rig refusal")
}

var _ = AfterSuite(func() { require.Report(os.Stdout) })

// persistent is what node-prep writes for the next boot.
const persistent = "/etc/sysctl.d/60-beep.conf"

// filters are what node-prep would loosen.
var filters = []string{"net.ipv4.conf.all.rp_filter", "net.ipv4.conf.eth0.rp_filter"}

func plan() topo.Plan { return topo.OneLAN(1, topo.Options{}) }

var _ = It("is drawn in its README", func() { scene.CheckReadme(GinkgoT(), plan()) })

var _ = Describe("a kernel that is too old", Label("netns"), func() {
	for _, command := range []string{"run", "load", "node-prep"} {
		It("is refused by beep "+command+" in one line that names it and the remedy, and nothing has changed", func(ctx SpecContext) {
			release := needOldKernel()
			topology := topo.New(GinkgoT(), plan())
			artifacts.New(GinkgoT(), topology)
			node, pins := topology.NS("node-a"), bpffs.New(GinkgoT())
			for _, filter := range filters {
				Expect(node.Sysctl(filter, "1")).To(Succeed()) // strict, which node-prep would change
			}
			binary, err := beep.Binary("beep")
			Expect(err).NotTo(HaveOccurred())
			before := snapshot(topology, pins)

			var out, complaint bytes.Buffer
			cmd := exec.Command(binary, command, "--pin-dir", filepath.Join(pins, "beep"), "--uplink-iface", "eth0")
			cmd.Stdout, cmd.Stderr = &out, &complaint
			var exit *exec.ExitError
			Expect(errors.As(node.Run(ctx, cmd), &exit)).To(BeTrue(), "%s%s", &out, &complaint)

			Expect(exit.ExitCode()).To(Equal(1))
			Expect(out.String()).To(BeEmpty())
			text := complaint.String()
			Expect(strings.Count(text, "\n")).To(Equal(1), "one line:\n%s", text)
			Expect(text).To(HavePrefix("beep: kernel " + release + " "))
			Expect(text).To(ContainSubstring("beep needs Linux 6.6 or later"))
			Expect(snapshot(topology, pins)).To(Equal(before))
		})
	}
})

// needOldKernel needs a kernel without tcx, and returns its release.
func needOldKernel() string {
	GinkgoHelper()
	var name unix.Utsname
	Expect(unix.Uname(&name)).To(Succeed())
	release := unix.ByteSliceToString(name.Release[:])
	var major, minor int
	_, err := fmt.Sscanf(release, "%d.%d", &major, &minor)
	Expect(err).NotTo(HaveOccurred())
	var recent error
	if major > 6 || major == 6 && minor >= 6 {
		recent = fmt.Errorf("this is %s: make rig-vm-kernels runs it on 6.1", release)
	}
	require.That(GinkgoT(), "a kernel older than 6.6", recent)
	return release
}

// snapshot is all that beep changes on a node that it likes, as text.
func snapshot(topology *topo.Topology, pins string) string {
	GinkgoHelper()
	var text strings.Builder
	for _, filter := range filters {
		value, err := topology.NS("node-a").ReadSysctl(filter)
		Expect(err).NotTo(HaveOccurred())
		fmt.Fprintf(&text, "%s=%s\n", filter, value)
	}
	content, err := os.ReadFile(persistent)
	fmt.Fprintf(&text, "%s: %q, %v\n", persistent, content, err)
	Expect(filepath.WalkDir(pins, func(path string, _ fs.DirEntry, err error) error {
		fmt.Fprintln(&text, path)
		return err
	})).To(Succeed())
	links, err := topology.NS("node-a").Netlink().LinkList()
	Expect(err).NotTo(HaveOccurred())
	for _, link := range links {
		fmt.Fprintf(&text, "%s: %d\n", link.Attrs().Name, link.Attrs().Index)
	}
	return text.String()
}
