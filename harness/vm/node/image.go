// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/beep-lb/beep/harness/checkout"
	"github.com/beep-lb/beep/harness/kube"
	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/vm"
)

// Image is the directory of a node's disk and kernel, as image/build makes it.
type Image string

func (i Image) file(name string) string { return filepath.Join(string(i), name) }

// FindImage returns the image of this checkout. It builds nothing, and an error says which command does.
func FindImage() (Image, error) {
	script, err := checkout.Path("harness", "vm", "node", "image", "build")
	if err != nil {
		return "", err
	}
	var stderr bytes.Buffer
	cmd := exec.Command(script, "--print")
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", strings.TrimSpace(stderr.String()), err)
	}
	return Image(strings.TrimSpace(string(out))), nil
}

// Require states what a cluster of machines needs of the one that it runs on.
func Require(tb require.TB) {
	tb.Helper()
	vm.Require(tb)
	require.Tool(tb, "mke2fs")
	_, err := kube.FindBinaries()
	require.That(tb, "Kubernetes programs", err)
	_, err = FindImage()
	require.That(tb, "the nodes' disk", err)
}
