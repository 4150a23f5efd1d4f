// SPDX-License-Identifier: Apache-2.0

// Package bpffs mounts private BPF filesystems, so that every suite pins its maps and links where no other
// suite and no installed beep can meet them. Invariant: a mount and its directory live exactly as long as the
// test that asked for them.
package bpffs

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/require"
)

// New mounts a bpffs for one test and returns its absolute path; it is unmounted, with every pin in it, at the
// test's cleanup. It needs root.
func New(tb require.TB) string {
	tb.Helper()
	dir, unmount, err := Mount()
	if err != nil {
		tb.Fatalf("%v", err)
	}
	tb.Cleanup(func() {
		if err := unmount(); err != nil {
			tb.Errorf("%v", err)
		}
	})
	return dir
}

// Mount mounts a bpffs in a new temporary directory, for a program that has no test around it. The caller calls
// unmount once, which removes all of it; pinned objects die with their last user.
func Mount() (dir string, unmount func() error, err error) {
	dir, err = os.MkdirTemp("", "beep-bpffs-")
	if err != nil {
		return "", nil, fmt.Errorf("make a mount point for bpffs: %w", err)
	}
	if err := unix.Mount("beep-harness", dir, "bpf", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=0700"); err != nil {
		return "", nil, errors.Join(fmt.Errorf("mount bpffs on %s: %w: it needs root", dir, err), os.Remove(dir))
	}
	return dir, func() error {
		// Detached, because a process that was killed a moment ago may still have the directory open.
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount bpffs %s: %w", dir, err)
		}
		return os.Remove(dir)
	}, nil
}
