// SPDX-License-Identifier: Apache-2.0

package vmcluster_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"

	"github.com/beep-lb/beep/harness/checkout"
)

// document is a text whose commands are run: all blocks fenced as ```sh. What cannot be run here is fenced as ```sh no-run.
type document struct {
	path   string
	blocks []*block
}

// block is a piece of it that a reader pastes into a shell.
type block struct {
	section string // the heading above
	line    int    // of the fence
	text    string
	ran     bool
}

// readDocument reads a document of the repository.
func readDocument(path string) (*document, error) {
	at, err := checkout.Path(filepath.FromSlash(path))
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(at)
	if err != nil {
		return nil, fmt.Errorf("commands of a document: %w", err)
	}
	return &document{path: path, blocks: blocksOf(string(text))}, nil
}

// blocksOf are the blocks that are to be run.
func blocksOf(text string) []*block {
	var blocks []*block
	var open *block
	section, fenced := "", false
	for i, line := range strings.Split(text, "\n") {
		switch {
		case strings.HasPrefix(line, "```") && fenced:
			open, fenced = nil, false
		case strings.HasPrefix(line, "```"):
			fenced = true
			if strings.TrimSpace(line) == "```sh" {
				open = &block{section: section, line: i + 1}
				blocks = append(blocks, open)
			}
		case fenced && open != nil:
			open.text += line + "\n"
		case !fenced && strings.HasPrefix(line, "#"):
			section = strings.TrimSpace(strings.TrimLeft(line, "#"))
		}
	}
	return blocks
}

// follow does what the blocks of a section say, in their order, and returns what was printed.
func (r *rig) follow(ctx context.Context, section string) string {
	GinkgoHelper()
	var said strings.Builder
	for _, block := range r.readme.blocks {
		if block.section == section {
			By(fmt.Sprintf("%s:%d, %s", r.readme.path, block.line, section))
			said.WriteString(r.runBlock(ctx, block))
		}
	}
	Expect(said.String()).NotTo(BeEmpty(), "%s has no commands in a section %q", r.readme.path, section)
	return said.String()
}

// runBlock runs a block as its reader does, who has kubectl, and sits beside a copy of deploy/, as in a release's manifests; what
// calls make sits in the repository. Lines that say so are for a root shell on every node, beside the image's archive.
func (r *rig) runBlock(ctx context.Context, b *block) string {
	GinkgoHelper()
	dir := r.desk
	root, err := checkout.Root()
	Expect(err).NotTo(HaveOccurred())
	if strings.HasPrefix(b.text, "make ") {
		dir = root
	}
	var said string
	if strings.Contains(b.text, "# on every node") {
		said = r.onEveryNode(ctx, filepath.Join(root, "build", "image", "beep.tar"), b.text)
	} else {
		said, err = r.Script(ctx, dir, b.text)
		Expect(err).NotTo(HaveOccurred(), "%s:%d: %s\n%s", r.readme.path, b.line, b.text, said)
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
func (d *document) unrun() []string {
	var left []string
	for _, block := range d.blocks {
		if !block.ran {
			left = append(left, fmt.Sprintf("%s:%d, %s:\n%s", d.path, block.line, block.section, block.text))
		}
	}
	return left
}
