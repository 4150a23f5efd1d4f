// SPDX-License-Identifier: Apache-2.0

package restart_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/beep"
	"github.com/beep-lb/beep/harness/require"
)

// anotherBuild is a binary whose programs are another ELF object: the same sources but for one constant. It is built
// once.
var anotherBuild = sync.OnceValue(func() string {
	require.Tool(GinkgoT(), "clang-19")
	require.Tool(GinkgoT(), "llvm-strip-19")
	root := run("go", "list", "-m", "-f", "{{.Dir}}")
	dir, err := os.MkdirTemp("", "beep-build-*")
	Expect(err).NotTo(HaveOccurred())
	built = dir
	Expect(os.CopyFS(filepath.Join(dir, "bpf"), os.DirFS(filepath.Join(root, "bpf")))).To(Succeed())
	header := filepath.Join(dir, "bpf", "lib", "flow.h")
	source, err := os.ReadFile(header)
	Expect(err).NotTo(HaveOccurred())
	changed := bytes.Replace(source, []byte("#define REMAP_CANDIDATES 512"), []byte("#define REMAP_CANDIDATES 640"), 1)
	Expect(changed).NotTo(Equal(source), "the constant is there")
	Expect(os.WriteFile(header, changed, 0o600)).To(Succeed())

	object := filepath.Join(dir, "beep.o")
	run("clang-19", "-target", "bpfel", "-mcpu=v3", "-O2", "-g", "-nostdlibinc", "-I"+filepath.Join(dir, "bpf", "include"),
		"-c", filepath.Join(dir, "bpf", "beep.c"), "-o", object)
	run("llvm-strip-19", "-g", object)
	overlay, err := json.Marshal(map[string]map[string]string{
		"Replace": {filepath.Join(root, "src", "datapath", "bpfobj", "beep_bpfel.o"): object},
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600)).To(Succeed())
	binary := filepath.Join(dir, "beep")
	run("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w -X main.version=another", "-o", binary, filepath.Join(root, "src", "cmd", "beep"))
	return binary
})

// built is the directory of anotherBuild.
var built string

func run(name string, args ...string) string {
	GinkgoHelper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	Expect(err).NotTo(HaveOccurred(), "%s: %s", cmd, &stderr)
	return strings.TrimSpace(string(out))
}

// loaded is the kernel's hash of the instructions of each of a node's programs.
func (r rig) loaded(node *beep.Daemon) string {
	GinkgoHelper()
	require.Tool(GinkgoT(), "bpftool")
	out, err := node.Tool("status", "-o", "json")
	Expect(err).NotTo(HaveOccurred())
	var status struct{ Uplinks []struct{ Programs []int } }
	Expect(json.Unmarshal([]byte(out), &status)).To(Succeed())
	var tags []string
	for _, uplink := range status.Uplinks {
		for _, id := range uplink.Programs {
			var program struct{ Tag string }
			Expect(json.Unmarshal([]byte(run("bpftool", "-j", "prog", "show", "id", strconv.Itoa(id))), &program)).To(Succeed())
			tags = append(tags, program.Tag)
		}
	}
	Expect(tags).NotTo(BeEmpty())
	return strings.Join(tags, " ")
}
