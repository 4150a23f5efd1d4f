// SPDX-License-Identifier: Apache-2.0

// Package guest runs test binaries of this repository on a kernel of ci/kernels, in a machine without disks whose
// root file system they make up together with the tools and modules that they use. Invariant: a guest sees of the
// repository what a test sees that runs here: its package's directory, below a go.mod, beside bin/.
package guest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/beep-lb/beep/harness/beep"
	"github.com/beep-lb/beep/harness/checkout"
	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/vm"
	"github.com/beep-lb/beep/harness/vm/initramfs"
	"github.com/beep-lb/beep/harness/vm/job"
)

// root is where the guest has the repository.
const root = "/beep"

// tools are the programs that rigs run in their namespaces, and modprobe, by which the kernel itself asks for modules.
var tools = []string{"iptables", "nft", "setpriv", "modprobe"}

// moduleDirs are below the modules' directory: what has to do with networks, and what that stands on.
var moduleDirs = []string{"kernel/net/", "kernel/drivers/net/", "kernel/drivers/char/", "kernel/drivers/virtio/", "kernel/lib/",
	"kernel/crypto/", "kernel/arch/"}

// Binaries are compiled test packages, and the init that runs them in a guest. A suite of several processes builds them
// in one of these.
type Binaries struct {
	Dir      string   // holds them, and images while guests run; it exists
	Packages []string // named by their directories in the repository: rigs/smoke
}

// Require needs what Build and Boot do, except for a kernel.
func Require(tb require.TB) {
	tb.Helper()
	vm.Require(tb)
	for _, tool := range append([]string{"go", "ldd"}, tools...) {
		require.Tool(tb, tool)
	}
}

// Build compiles them, static, as a guest has no libraries but those of its tools.
func (b Binaries) Build(ctx context.Context) error {
	top, err := checkout.Root()
	if err != nil {
		return err
	}
	flags := []string{"-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", b.Dir + "/"}
	tests := append([]string{"test", "-c"}, flags...)
	for _, name := range b.Packages {
		tests = append(tests, "./"+name)
	}
	for _, args := range [][]string{append(append([]string{"build"}, flags...), "./harness/vm/init"), tests} {
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir, cmd.Env = top, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(out))
		}
	}
	return nil
}

// Test is the run of a package, named like it, as `make rig-NAME` would run it in CI: an unmet need fails; but with time
// for emulated processors. The program ends itself after the timeout, and says where it was.
func Test(name string, timeout time.Duration, flags ...string) job.Run {
	binary := path.Join(root, name, path.Base(name)+".test")
	return job.Run{
		Name: name, Dir: path.Dir(binary), Env: []string{require.EnvStrict + "=1", require.EnvEmulated + "=1"},
		Args: append([]string{binary, "-test.timeout=" + timeout.String()}, flags...),
	}
}

// Beep is the run of one of beep's own programs.
func Beep(name, program string, args ...string) job.Run {
	return job.Run{Name: name, Dir: "/", Args: append([]string{path.Join(root, "bin", program)}, args...)}
}

// image is a guest's root file system.
func (b Binaries) image(kernel vm.Kernel, todo []byte) (*initramfs.Image, error) {
	image := initramfs.New()
	image.AddFile(job.Path, todo, 0o644)
	image.AddFile(path.Join(root, "go.mod"), nil, 0o644)
	for _, dir := range []string{"/root", "/etc/sysctl.d"} {
		image.AddDir(dir)
	}
	if err := image.AddCopy("/init", filepath.Join(b.Dir, "init")); err != nil {
		return nil, err
	}
	if err := b.addPackages(image); err != nil {
		return nil, err
	}
	for _, program := range []string{"beep", "beep-controller"} {
		file, err := beep.Binary(program)
		if err != nil {
			return nil, err
		}
		if err := image.AddCopy(path.Join(root, "bin", program), file); err != nil {
			return nil, err
		}
	}
	if err := addTools(image); err != nil {
		return nil, err
	}
	return image, addModules(image, kernel)
}

// addPackages adds each test binary to what a test finds in its directory: its README, and testdata.
func (b Binaries) addPackages(image *initramfs.Image) error {
	for _, name := range b.Packages {
		at, binary := path.Join(root, name), path.Base(name)+".test"
		if err := image.AddCopy(path.Join(at, binary), filepath.Join(b.Dir, binary)); err != nil {
			return err
		}
		here, err := checkout.Path(filepath.FromSlash(name))
		if err != nil {
			return err
		}
		found := func(file string) bool { return file == "README.md" || strings.HasPrefix(file, "testdata/") }
		if err := image.AddTree(at, here, found); err != nil {
			return err
		}
	}
	return nil
}

// addTools adds programs with their libraries, iptables' plug-ins among them, which it loads by name.
func addTools(image *initramfs.Image) error {
	for _, tool := range tools {
		if err := image.AddProgram(tool); err != nil {
			return err
		}
	}
	// Where the kernel looks for it (CONFIG_MODPROBE_PATH).
	image.AddLink("/sbin/modprobe", "/usr/bin/modprobe")
	plugins, err := filepath.Glob("/usr/lib/*/xtables")
	if err != nil || len(plugins) == 0 {
		return fmt.Errorf("copy into an image: iptables has no plug-ins in /usr/lib/*/xtables (%w)", err)
	}
	for _, dir := range plugins {
		if err := image.AddTree(dir, dir, func(string) bool { return true }); err != nil {
			return err
		}
	}
	return nil
}

// addModules adds the kernel's modules with its own lists, by which modprobe finds them.
func addModules(image *initramfs.Image, kernel vm.Kernel) error {
	return image.AddTree(path.Join("/lib/modules", kernel.Release), kernel.Modules(), func(name string) bool {
		if !strings.Contains(name, "/") {
			return strings.HasPrefix(name, "modules.")
		}
		for _, dir := range moduleDirs {
			if strings.HasPrefix(name, dir) {
				return true
			}
		}
		return false
	})
}
