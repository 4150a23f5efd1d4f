// SPDX-License-Identifier: Apache-2.0

package proc_test

import (
	"os"
	"testing"
	"time"

	"github.com/beep-lb/beep/harness/proc"
)

func TestOwnProcess(t *testing.T) {
	m, err := proc.MemoryOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if m.All < 1<<20 || m.Own == 0 || m.Own+m.Files > m.All {
		t.Errorf("memory of this process: %s", m)
	}
	before, err := proc.CPUTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; {
		used, err := proc.CPUTime(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		if used > before {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("a busy loop uses no CPU time")
		}
	}
}

func TestNoProcess(t *testing.T) {
	const none = 1 << 30 // above PID_MAX_LIMIT
	if _, err := proc.MemoryOf(none); err == nil {
		t.Error("memory of nobody")
	}
	if _, err := proc.CPUTime(none); err == nil {
		t.Error("CPU time of nobody")
	}
}
