// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/beep-lb/beep/harness/checkout"
)

// Kernel is an unpacked kernel of ci/kernels.
type Kernel struct {
	Name    string // as ci/kernels names it: 6.12
	Version string // of Debian's package: 6.12.9-1
	Release string // as uname -r prints it: 6.12.9+deb13-cloud-amd64
	Dir     string // holds lib/modules/RELEASE with its modules, uncompressed, and modules.dep
}

// Image is the path of the kernel itself.
func (k Kernel) Image() string { return filepath.Join(k.Dir, "vmlinuz") }

// Modules is the path of the directory that modprobe knows as /lib/modules/RELEASE.
func (k Kernel) Modules() string { return filepath.Join(k.Dir, "lib", "modules", k.Release) }

// FindKernel returns a kernel of ci/kernels by its name. It fetches nothing, and an error says which command does.
func FindKernel(name string) (Kernel, error) {
	script, err := checkout.Path("harness", "vm", "kernels", "fetch")
	if err != nil {
		return Kernel{}, err
	}
	var stderr bytes.Buffer
	cmd := exec.Command(script, "--print", name)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return Kernel{}, fmt.Errorf("kernel %s: %s: %w", name, strings.TrimSpace(stderr.String()), err)
	}
	kernel := Kernel{Name: name, Dir: strings.TrimSpace(string(out))}
	var errs []error
	for file, value := range map[string]*string{"version": &kernel.Version, "release": &kernel.Release} {
		content, err := os.ReadFile(filepath.Join(kernel.Dir, file))
		errs = append(errs, err)
		*value = strings.TrimSpace(string(content))
	}
	if err := errors.Join(errs...); err != nil {
		return Kernel{}, fmt.Errorf("kernel %s: %w", name, err)
	}
	return kernel, nil
}
