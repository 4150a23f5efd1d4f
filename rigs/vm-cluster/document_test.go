// SPDX-License-Identifier: Apache-2.0

package vmcluster_test

import (
	"context"
	"path/filepath"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"

	"github.com/beep-lb/beep/harness/checkout"
	"github.com/beep-lb/beep/harness/repository"
)

// manual is what an operator reads. Its fenced blocks of the kind sh are run here; what cannot be run is of the kind
// "sh no-run".
const manual = "deploy/README.md"

// block is a piece of it that a reader pastes into a shell.
type block struct {
	repository.Fence
	ran bool
}

// blocks are those of the manual that are to be run.
func blocks() []*block {
	GinkgoHelper()
	document, err := repository.Read(manual)
	Expect(err).NotTo(HaveOccurred())
	var found []*block
	for _, fence := range document.Fences {
		if fence.Info == "sh" {
			found = append(found, &block{Fence: fence})
		}
	}
	return found
}

// follow does what the blocks of a section say, in their order, and returns what was printed.
func (r *rig) follow(ctx context.Context, section string) string {
	GinkgoHelper()
	var said strings.Builder
	for _, block := range r.blocks {
		if block.Section == section {
			By(manual + "#" + section)
			said.WriteString(r.runBlock(ctx, block))
		}
	}
	Expect(said.String()).NotTo(BeEmpty(), "%s#%s has no commands", manual, section)
	return said.String()
}

// runBlock runs a block as its reader does, who has kubectl, and sits beside a copy of deploy/, as in a release's manifests; what
// calls make sits in the repository. Lines that say so are for a root shell on every node, beside the image's archive.
func (r *rig) runBlock(ctx context.Context, b *block) string {
	GinkgoHelper()
	dir := r.desk
	root, err := checkout.Root()
	Expect(err).NotTo(HaveOccurred())
	if strings.HasPrefix(b.Text, "make ") {
		dir = root
	}
	var said string
	if strings.Contains(b.Text, "# on every node") {
		said = r.onEveryNode(ctx, filepath.Join(root, "build", "image", "beep.tar"), b.Text)
	} else {
		said, err = r.Script(ctx, dir, b.Text)
		Expect(err).NotTo(HaveOccurred(), "%s#%s: %s\n%s", manual, b.Section, b.Text, said)
	}
	b.ran = true
	GinkgoWriter.Println(said)
	return said
}

// onEveryNode runs a command on all nodes at once, in a directory that has the archive.
func (r *rig) onEveryNode(ctx context.Context, archive, command string) string {
	GinkgoHelper()
	var group errgroup.Group
	var mu sync.Mutex
	var said strings.Builder
	for _, node := range r.Nodes() {
		group.Go(func() error {
			if _, err := node.Copy(ctx, archive); err != nil {
				return err
			}
			out, err := node.Run(ctx, "cd /root && "+command)
			mu.Lock()
			defer mu.Unlock()
			said.WriteString(out)
			return err
		})
	}
	Expect(group.Wait()).To(Succeed())
	return said.String()
}

// unrun are the blocks that no spec has run.
func (r *rig) unrun() []string {
	var left []string
	for _, block := range r.blocks {
		if !block.ran {
			left = append(left, block.Section+":\n"+block.Text)
		}
	}
	return left
}
