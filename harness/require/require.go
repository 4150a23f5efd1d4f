// SPDX-License-Identifier: Apache-2.0

// Package require lets a spec state what it needs of the machine (root, a kernel, TCX, a tool), and holds the
// small interface by which the harness talks to a test. Invariant: an unmet need is never silent: it skips
// with its reason and is counted, and where EnvCI or EnvStrict is set it fails.
package require

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// EnvCI and EnvStrict name the environment variables that turn a skip into a failure: CI=true, as CI services
// set it, and BEEP_REQUIRE=1 for a person who wants the same at home.
const (
	EnvCI     = "CI"
	EnvStrict = "BEEP_REQUIRE"
)

// EnvEmulated names the environment variable by which whoever emulates the processors (harness/vm/guest) says so.
const EnvEmulated = "BEEP_EMULATED"

// Within is the time in which a spec wants something that beep promises: as long as it is promised for a machine of its
// own, and thirty times that where processors are emulated.
func Within(promised time.Duration) time.Duration {
	if os.Getenv(EnvEmulated) == "1" {
		return 30 * promised
	}
	return promised
}

// TB is what the whole harness needs of a running test. *testing.T, *testing.B and ginkgo's GinkgoT() satisfy
// it, so fixtures work in plain tests and in suites alike.
type TB interface {
	Helper()
	Name() string
	Failed() bool
	Cleanup(cleanup func())
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}

var skips struct {
	sync.Mutex
	reasons map[string]int
}

// Root needs the effective user 0: namespaces, devices and BPF maps are made by it.
func Root(tb TB) {
	tb.Helper()
	if os.Geteuid() != 0 {
		unmet(tb, "root", fmt.Errorf("effective user is %d: run the suite as root (sudo make test)", os.Geteuid()))
	}
}

// Kernel needs the running kernel to be at least major.minor.
func Kernel(tb TB, major, minor int) {
	tb.Helper()
	release, err := kernelRelease()
	if err == nil {
		err = atLeast(release, major, minor)
	}
	if err != nil {
		unmet(tb, fmt.Sprintf("kernel %d.%d", major, minor), err)
	}
}

// TCX needs the kernel to know tcx attachments (Linux 6.6): it asks by querying the programs on loopback.
func TCX(tb TB) {
	tb.Helper()
	const loopback = 1 // the ifindex of lo in every network namespace
	_, err := link.QueryPrograms(link.QueryOptions{Target: loopback, Attach: ebpf.AttachTCXIngress})
	if err != nil {
		unmet(tb, "tcx", fmt.Errorf("query tcx programs on lo: %w: run on Linux 6.6 or newer, as root", err))
	}
}

// Tun needs a working /dev/net/tun, which L3-only links of a topology are made of.
func Tun(tb TB) {
	tb.Helper()
	const device = "/dev/net/tun"
	file, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		unmet(tb, "tun", fmt.Errorf("%w: load the tun module or pass the device into the container", err))
		return
	}
	if err := file.Close(); err != nil {
		tb.Logf("close %s: %v", device, err)
	}
}

// Tool needs an executable of that name in PATH.
func Tool(tb TB, name string) {
	tb.Helper()
	if _, err := exec.LookPath(name); err != nil {
		unmet(tb, "tool "+name, fmt.Errorf("%w: run ci/install-deps", err))
	}
}

// That needs what the caller has checked itself: reason is nil if the need is met, and otherwise says what is missing
// and what to do.
func That(tb TB, need string, reason error) {
	tb.Helper()
	if reason != nil {
		unmet(tb, need, reason)
	}
}

// Runner is *testing.M, which runs all tests of a package and returns the exit code.
type Runner interface {
	Run() int
}

// Main runs a package's tests and then prints the number of skipped specs, as in
//
//	func TestMain(m *testing.M) { os.Exit(require.Main(m)) }
//
// A ginkgo suite that has no TestMain calls Report in AfterSuite instead.
func Main(m Runner) int {
	code := m.Run()
	Report(os.Stdout)
	return code
}

// Skips is the number of needs that were found unmet in this process.
func Skips() int {
	skips.Lock()
	defer skips.Unlock()
	total := 0
	for _, count := range skips.reasons {
		total += count
	}
	return total
}

// Report prints how many specs of this process were skipped, and one line a reason. A write error is not
// reported: it concerns the suite's own output.
func Report(w io.Writer) {
	total := Skips()
	fmt.Fprintf(w, "skipped for a missing need: %d\n", total)
	skips.Lock()
	defer skips.Unlock()
	lines := make([]string, 0, len(skips.reasons))
	for reason, count := range skips.reasons {
		lines = append(lines, fmt.Sprintf("%5d × %s\n", count, reason))
	}
	slices.Sort(lines)
	fmt.Fprint(w, strings.Join(lines, ""))
}

// unmet skips the test, or fails it where skipping is not allowed.
func unmet(tb TB, need string, reason error) {
	tb.Helper()
	if os.Getenv(EnvCI) == "true" || os.Getenv(EnvStrict) == "1" {
		tb.Fatalf("need %s: %v (a missing need fails because %s=true or %s=1 is set)", need, reason, EnvCI, EnvStrict)
		return
	}
	skips.Lock()
	if skips.reasons == nil {
		skips.reasons = make(map[string]int)
	}
	skips.reasons[fmt.Sprintf("need %s: %v", need, reason)]++
	skips.Unlock()
	tb.Skipf("need %s: %v", need, reason)
}

// kernelRelease is what uname -r prints.
func kernelRelease() (string, error) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return "", fmt.Errorf("uname: %w", err)
	}
	return unix.ByteSliceToString(name.Release[:]), nil
}

var errOldKernel = errors.New("kernel is too old")

// atLeast compares a release such as 6.18.0-3-amd64 with a version. It reads only the first two numbers, as
// distributions write what they like behind them.
func atLeast(release string, major, minor int) error {
	var haveMajor, haveMinor int
	if _, err := fmt.Sscanf(release, "%d.%d", &haveMajor, &haveMinor); err != nil {
		return fmt.Errorf("kernel release %q: want MAJOR.MINOR first: %w", release, err)
	}
	if haveMajor > major || haveMajor == major && haveMinor >= minor {
		return nil
	}
	return fmt.Errorf("%w: release %s: run on Linux %d.%d or newer", errOldKernel, release, major, minor)
}
