// SPDX-License-Identifier: Apache-2.0

package bpffs_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/bpffs"
	"github.com/beep-lb/beep/harness/require"
)

func TestMain(m *testing.M) { os.Exit(require.Main(m)) }

func TestPrivateMount(t *testing.T) {
	require.Root(t)
	t.Parallel()
	var first string
	t.Run("holds pins while the test runs", func(t *testing.T) {
		first = bpffs.New(t)
		second := bpffs.New(t)
		var stat unix.Statfs_t
		if err := unix.Statfs(first, &stat); err != nil || stat.Type != unix.BPF_FS_MAGIC {
			t.Fatalf("statfs %s: type %#x, %v: want bpffs", first, stat.Type, err)
		}
		pinned, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer pinned.Close()
		if err := pinned.Pin(filepath.Join(first, "pin")); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(second, "pin")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a pin in one mount shows in another: %v", err)
		}
	})
	if _, err := os.Stat(first); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left behind: %v", first, err)
	}
}
