// SPDX-License-Identifier: Apache-2.0

package guest_test

import (
	"archive/tar"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/vm"
	"github.com/beep-lb/beep/harness/vm/guest"
	"github.com/beep-lb/beep/harness/vm/job"
)

func TestMain(m *testing.M) {
	// In the guest, this program is one of its runs.
	switch os.Getenv(part) {
	case "":
		os.Exit(require.Main(m))
	case "leave":
		if err := os.MkdirAll(job.Artifacts, 0o755); err != nil {
			panic(err)
		}
		if err := os.WriteFile(filepath.Join(job.Artifacts, "left.txt"), []byte("by a guest"), 0o644); err != nil {
			panic(err)
		}
	case "die":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
}

// part is the environment variable by which this program knows what it is in the guest.
const part = "GUEST_PART"

// limit is for one boot of an emulated machine beside others, and a moment in it.
const limit = 5 * time.Minute

// One machine has all kinds of runs.
func TestRuns(t *testing.T) {
	guest.Require(t)
	kernel, err := vm.FindKernel("6.12")
	require.That(t, "kernel 6.12", err)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	binaries := guest.Binaries{Dir: t.TempDir(), Packages: []string{"harness/bpffs", "harness/vm/guest"}}
	if err := binaries.Build(ctx); err != nil {
		t.Fatal(err)
	}
	playing := func(name string) job.Run {
		run := guest.Test("harness/vm/guest", limit)
		run.Name, run.Env = name, []string{part + "=" + name}
		return run
	}
	runs := []job.Run{
		guest.Test("harness/bpffs", limit),
		guest.Beep("misused", "beep", "no-such-command"),
		{Name: "missing", Args: []string{"/no/such/program"}},
		playing("leave"),
		playing("die"),
	}
	dir := t.TempDir()
	machine, err := binaries.Boot(ctx, kernel, guest.Options{Name: "runs", Modules: []string{"tun"}, Runs: runs, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := machine.Stop(); err != nil {
			t.Error(err)
		}
	})
	for _, want := range []struct {
		run  string
		code int
		says string // in the output, or the error
	}{
		{"harness/bpffs", 0, "PASS"},
		{"misused", 2, "no-such-command"},
		{"missing", -1, "no such file"},
		{"leave", 0, ""},
		{"die", 137, "killed"},
	} {
		result, err := machine.Await(ctx, want.run)
		if err != nil {
			t.Fatal(err)
		}
		if said := result.Output + result.Error; result.Code != want.code || !strings.Contains(said, want.says) {
			t.Errorf("%s: exit status %d, want %d, and %q in %q", want.run, result.Code, want.code, want.says, said)
		}
		if (result.Err() == nil) != (want.code == 0) {
			t.Errorf("%s: error %v of exit status %d", want.run, result.Err(), result.Code)
		}
	}
	if _, err := machine.Await(ctx, "none"); err == nil {
		t.Error("a run that there is not")
	}
	if err := machine.AwaitEnd(ctx); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join(dir, "harness-bpffs.log"))
	if err != nil || !strings.Contains(string(log), "PASS") {
		t.Errorf("the log of a run: %q, %v", log, err)
	}
	wantLeft(t, filepath.Join(dir, "artifacts.tar"))
}

// wantLeft reads what the run "leave" left, out of the archive that the guest sent.
func wantLeft(t *testing.T, name string) {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for archive := tar.NewReader(file); ; {
		header, err := archive.Next()
		if err != nil {
			t.Fatalf("find left.txt in the archive: %v", err)
		}
		if header.Name != "left.txt" {
			continue
		}
		if content, err := io.ReadAll(archive); err != nil || string(content) != "by a guest" {
			t.Errorf("left.txt: %q, %v", content, err)
		}
		return
	}
}
