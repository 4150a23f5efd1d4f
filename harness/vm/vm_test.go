// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/beep-lb/beep/harness/require"
)

func TestMain(m *testing.M) { os.Exit(require.Main(m)) }

// limit is for one boot of an emulated machine beside others.
const limit = 3 * time.Minute

func kernel(t *testing.T, name string) Kernel {
	t.Helper()
	Require(t)
	kernel, err := FindKernel(name)
	require.That(t, "kernel "+name, err)
	return kernel
}

func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// A kernel without anything to start panics, which ends a machine that may not reboot.
func TestAMachineThatPanicsEnds(t *testing.T) {
	log := filepath.Join(t.TempDir(), "serial.log")
	kernel := kernel(t, "6.12")
	machine := New(bounded(t), t, Config{Name: "bare", Kernel: kernel.Image(), Log: log})

	banner, err := machine.AwaitSerial(bounded(t), regexp.MustCompile(`Linux version (\S+) `))
	if err != nil {
		t.Fatal(err)
	}
	if banner[1] != kernel.Release {
		t.Errorf("booted %s, want %s", banner[1], kernel.Release)
	}
	if err := machine.Wait(bounded(t)); err != nil {
		t.Error(err)
	}
	if _, err := machine.AwaitSerial(bounded(t), regexp.MustCompile("login:")); err == nil ||
		!strings.Contains(err.Error(), "ended and has not printed") || !strings.Contains(err.Error(), "Kernel Offset") {
		t.Errorf("no login, and the last words of a panic: %v", err)
	}
	if content, err := os.ReadFile(log); err != nil || !strings.Contains(string(content), "Kernel panic") {
		t.Errorf("the log ends with the panic: %v, %q", err, content)
	}
	if err := machine.Stop(); err != nil {
		t.Error(err)
	}
}

func TestMistakesAreNamed(t *testing.T) {
	t.Setenv(EnvAccel, "hvf")
	_, err := Start(bounded(t), Config{Name: "a b", Kernel: "/no/such/kernel", Disks: []Disk{{Path: "/no,such", Format: "vdi"}},
		NICs: []NIC{{Tap: "tap0"}}})
	if err == nil {
		t.Fatal("started")
	}
	for _, part := range []string{`"a b"`, "/no/such/kernel", "/no,such", `"vdi"`, "namespace", EnvAccel} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not name %s: %v", part, err)
		}
	}
	if _, err := Start(context.Background(), Config{Name: "a", Kernel: os.DevNull}); err == nil || !strings.Contains(err.Error(), EnvAccel) {
		t.Errorf("an accelerator that does not exist: %v", err)
	}
	t.Setenv(EnvAccel, "")
	if _, err := Start(context.Background(), Config{Name: "a", Kernel: os.DevNull}); err == nil || !strings.Contains(err.Error(), "deadline") {
		t.Errorf("a start without a deadline: %v", err)
	}
}

func TestWhatQEMURefusesIsTold(t *testing.T) {
	Require(t)
	config := Config{Name: "refused", Kernel: os.DevNull, MemoryMiB: -1, Ports: []string{"port"}}
	if _, err := Start(bounded(t), config); err == nil || !strings.Contains(err.Error(), "said:") {
		t.Errorf("started, or failed without QEMU's words: %v", err)
	}
}
