// SPDX-License-Identifier: Apache-2.0

package require

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2"
)

// The interface has to fit both kinds of test.
var (
	_ TB = (*testing.T)(nil)
	_ TB = ginkgo.GinkgoTInterface(nil)
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

// verdict records what a need did to the test; the methods it does not override are never called.
type verdict struct {
	TB
	skipped, failed string
}

func (v *verdict) Helper()                           {}
func (v *verdict) Skipf(format string, args ...any)  { v.skipped = fmt.Sprintf(format, args...) }
func (v *verdict) Fatalf(format string, args ...any) { v.failed = fmt.Sprintf(format, args...) }

func TestMissingNeed(t *testing.T) {
	tests := []struct {
		sentence   string
		ci, strict string
		fails      bool
	}{
		{"a laptop skips", "", "", false},
		{"CI=true fails", "true", "", true},
		{"BEEP_REQUIRE=1 fails", "", "1", true},
		{"CI=false skips", "false", "", false},
	}
	for _, test := range tests {
		t.Run(test.sentence, func(t *testing.T) {
			t.Setenv(EnvCI, test.ci)
			t.Setenv(EnvStrict, test.strict)
			var got verdict
			before := Skips()
			Tool(&got, "no-such-tool-anywhere")
			if failed := got.failed != ""; failed != test.fails {
				t.Errorf("failed = %t, want %t (%+v)", failed, test.fails, got)
			}
			if skipped := got.skipped != ""; skipped == test.fails {
				t.Errorf("skipped = %t, want %t (%+v)", skipped, !test.fails, got)
			}
			if counted := Skips() > before; counted == test.fails {
				t.Errorf("counted = %t, want %t", counted, !test.fails)
			}
		})
	}
	t.Cleanup(func() { skips.reasons = nil }) // these were no skips of this suite
	var report strings.Builder
	Report(&report)
	if !strings.Contains(report.String(), "no-such-tool-anywhere") {
		t.Errorf("report does not name the missing tool:\n%s", &report)
	}
}

func TestMetNeedIsQuiet(t *testing.T) {
	var got verdict
	Tool(&got, "go")
	Kernel(&got, 2, 6)
	That(&got, "nothing", nil)
	if got.skipped != "" || got.failed != "" {
		t.Errorf("a met need skipped or failed: %+v", got)
	}
}

func TestThatTellsTheReason(t *testing.T) {
	t.Setenv(EnvCI, "true")
	var got verdict
	That(&got, "programs", errors.New("run make programs"))
	if !strings.Contains(got.failed, "need programs: run make programs") {
		t.Errorf("failed with %q", got.failed)
	}
}

func TestAtLeast(t *testing.T) {
	tests := []struct {
		release string
		old     bool
	}{
		{"6.6.0", false}, {"6.18.44-fc", false}, {"7.0.0-rc1", false}, {"6.1.0-18-amd64", true}, {"5.15.0", true},
	}
	for _, test := range tests {
		if err := atLeast(test.release, 6, 6); errors.Is(err, errOldKernel) != test.old {
			t.Errorf("atLeast(%q, 6, 6) = %v, want too old: %t", test.release, err, test.old)
		}
	}
	if err := atLeast("linux", 6, 6); err == nil || errors.Is(err, errOldKernel) {
		t.Errorf("atLeast(\"linux\") = %v, want a parse error", err)
	}
}
