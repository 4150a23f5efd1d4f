// SPDX-License-Identifier: Apache-2.0

// Package lima has rigs and clusters of k3s run in machines of Lima, on hosts that reach the internet. Invariant: all that
// it does to a machine are commands of limactl, and a machine that it made has a name that begins with beep-.
//
// It is what harness/vm/guest and harness/vm/node are where QEMU, Debian's archive and root are at hand; a Machine has
// the methods of node.Node.
package lima

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// ErrMissing is that there is no limactl.
var ErrMissing = errors.New("limactl is not on the PATH: install Lima (lima-vm.io, Installation) and QEMU, or leave RIG_PROVIDER empty " +
	"and run the rig on this machine")

// ErrRoot is that limactl would refuse: it runs for ordinary users only.
var ErrRoot = errors.New("limactl does not run as root: run this as another user")

// prefix is of the names of all machines.
const prefix = "beep-"

//go:embed templates/*.yaml
var templates embed.FS

// Check fails with ErrMissing or ErrRoot where no machine can be had.
func Check() error {
	if _, err := exec.LookPath("limactl"); err != nil {
		return ErrMissing
	}
	if os.Geteuid() == 0 {
		return ErrRoot
	}
	return nil
}

// Machine is an instance of Lima. Its methods may be called from any goroutine.
type Machine struct {
	// Name is Lima's, with the prefix.
	Name string
}

// Start starts the machine of that name, which it makes by a template (rig, k3s) if there is none, and returns when its
// provisioning has ended. The first one of all downloads an image: minutes.
func Start(ctx context.Context, name, template string) (*Machine, error) {
	m := &Machine{prefix + name}
	names, err := limactl(ctx, nil, "list", "--quiet")
	if err != nil {
		return nil, err
	}
	if slices.Contains(strings.Fields(names), m.Name) {
		_, err := limactl(ctx, nil, "start", "--tty=false", m.Name)
		return m, err
	}
	source, err := templates.ReadFile("templates/" + template + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("template %s of a machine: %w", template, err)
	}
	dir, err := os.MkdirTemp("", "beep-lima-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, template+".yaml")
	if err := os.WriteFile(file, source, 0o644); err != nil {
		return nil, err
	}
	_, err = limactl(ctx, nil, "start", "--tty=false", "--name="+m.Name, file)
	return m, err
}

// Host is the name by which the other machines know this one.
func (m *Machine) Host() string { return "lima-" + m.Name + ".internal" }

// Run runs a command of the machine's shell as root and returns its standard output. That it ended with another code than 0
// is an error, with what it complained.
func (m *Machine) Run(ctx context.Context, command string) (string, error) {
	return m.RunWith(ctx, command, nil)
}

// RunWith is Run with a standard input.
func (m *Machine) RunWith(ctx context.Context, command string, stdin io.Reader) (string, error) {
	return limactl(ctx, stdin, m.shell("sh", "-c", command)...)
}

// RunTo is Run whose output goes to a writer as it comes.
func (m *Machine) RunTo(ctx context.Context, command string, out io.Writer) error {
	cmd := exec.CommandContext(ctx, "limactl", m.shell("sh", "-c", command)...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s in %s: %w", command, m.Name, err)
	}
	return nil
}

// Copy writes a file of this machine's to the other, as /root/NAME, whose path it returns.
func (m *Machine) Copy(ctx context.Context, path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	to := "/root/" + filepath.Base(path)
	_, err = m.RunWith(ctx, "cat >"+to+".new && mv "+to+".new "+to, file)
	return to, err
}

// CopyTree writes a directory of this machine's to the other, in place of what is there, without what tar(1) is told to
// leave out.
func (m *Machine) CopyTree(ctx context.Context, dir, to string, exclude ...string) error {
	args := []string{"-C", dir, "-c"}
	for _, pattern := range exclude {
		args = append(args, "--exclude="+pattern)
	}
	var complaints bytes.Buffer
	tar := exec.CommandContext(ctx, "tar", append(args, ".")...)
	tar.Stderr = &complaints
	archive, err := tar.StdoutPipe()
	if err != nil {
		return err
	}
	if err := tar.Start(); err != nil {
		return fmt.Errorf("pack %s: %w", dir, err)
	}
	_, err = m.RunWith(ctx, fmt.Sprintf("rm -rf %[1]s && mkdir -p %[1]s && tar -x -C %[1]s", to), archive)
	if packed := tar.Wait(); packed != nil {
		packed = fmt.Errorf("pack %s: %w: %s", dir, packed, &complaints)
		return errors.Join(err, packed)
	}
	return err
}

// Delete removes the machine with its disk.
func (m *Machine) Delete(ctx context.Context) error {
	_, err := limactl(ctx, nil, "delete", "--force", m.Name)
	return err
}

// shell are the arguments of a command that root runs; none of them is read by another shell than it is for.
func (m *Machine) shell(args ...string) []string {
	return append([]string{"shell", "--workdir=/", m.Name, "sudo", "--set-home"}, args...)
}

// limactl runs it, and returns its standard output. On the other stream it tells of its progress, and of what failed.
func limactl(ctx context.Context, stdin io.Reader, args ...string) (string, error) {
	var out, complaints bytes.Buffer
	cmd := exec.CommandContext(ctx, "limactl", args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &complaints
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("limactl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(complaints.String()))
	}
	return out.String(), nil
}
