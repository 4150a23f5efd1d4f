// SPDX-License-Identifier: Apache-2.0

// Package vmkernels is the rig of other kernels than the one at hand: the packet suite and rigs of namespaces in machines
// that boot the kernels of ci/kernels. Invariant: what runs there is built from this tree, and a need that a machine does
// not meet fails.
package vmkernels_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/artifacts"
	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/vm"
	"github.com/beep-lb/beep/harness/vm/guest"
	"github.com/beep-lb/beep/harness/vm/job"
)

func TestVMKernels(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "rig vm-kernels")
}

var _ = AfterSuite(func() { require.Report(os.Stdout) })

// envShort and envPrograms name environment variables: one that is not empty has each program run its short form, and a
// regular expression leaves all programs out that it does not match.
const (
	envShort    = "BEEP_VM_SHORT"
	envPrograms = "BEEP_VM_PROGRAMS"
)

const (
	// bootLimit is for compiling, and for starting a machine.
	bootLimit = 10 * time.Minute
	// runLimit ends one program, in the machine; the host waits a little longer.
	runLimit = 25 * time.Minute
)

// program is a test package and what of it runs in a machine.
type program struct {
	name  string // its directory
	focus string // regular expression of the specs that run; all if empty
	skip  string // of the specs that do not
	short string // focus of the short form; the program is left out of it if empty
}

// The programs, those that fail first where a kernel differs in front. README.md says why these.
var (
	everywhere = []program{
		{name: "harness/packettest", short: everything},
		{name: "rigs/underlays", short: "offloads on.*(WireGuard over IPv4|VLAN|geneve device.*before)"},
		{name: "rigs/trace"},
		{name: "rigs/smoke", short: "offloads on.*(serves TCP|serves UDP|deleted)"},
		{name: "rigs/crossnode", short: "offloads on.*(one port at once|come out right)"},
		{name: "rigs/uplinks", focus: "uplink without a link layer|answers through", short: "offloads on.*answers through"},
	}
	tooOld = []program{{name: "rigs/refusal", short: everything}}
)

// everything is a focus.
const everything = "."

// machines are what boots. The short form is run by .ci/run.
var machines = []struct {
	kernel   string // of ci/kernels
	programs []program
}{
	{"6.12", everywhere},
	{"7.x", everywhere},
	{"6.1", tooOld},
}

// binaries are built once, by the first of the suite's processes.
var binaries guest.Binaries

var _ = SynchronizedBeforeSuite(func() []byte {
	guest.Require(GinkgoT())
	dir, err := os.MkdirTemp("", "beep-vm-kernels-")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, dir)
	ctx, cancel := context.WithTimeout(context.Background(), bootLimit)
	defer cancel()
	Expect(guest.Binaries{Dir: dir, Packages: packages()}.Build(ctx)).To(Succeed())
	return []byte(dir)
}, func(dir []byte) { binaries = guest.Binaries{Dir: string(dir), Packages: packages()} })

func packages() []string {
	var names []string
	for _, machine := range machines {
		for _, program := range machine.programs {
			if !slices.Contains(names, program.name) {
				names = append(names, program.name)
			}
		}
	}
	return names
}

// run is the program as it runs in this form of the rig; ok is false if it does not.
func (p program) run() (run job.Run, ok bool) {
	flags := []string{"-ginkgo.v", "-ginkgo.no-color", "-ginkgo.poll-progress-after=2m"}
	if wanted := regexp.MustCompile(os.Getenv(envPrograms)); !wanted.MatchString(p.name) {
		return job.Run{}, false
	}
	focus := p.focus
	if os.Getenv(envShort) != "" {
		if p.short == "" {
			return job.Run{}, false
		}
		focus = p.short
	}
	if focus != "" {
		flags = append(flags, "-ginkgo.focus="+focus)
	}
	if p.skip != "" {
		flags = append(flags, "-ginkgo.skip="+p.skip)
	}
	return guest.Test(p.name, runLimit, flags...), true
}

// One machine a kernel: a boot costs more than most programs. A program that fails leaves the others their turn.
var _ = Describe("a machine", Label("vm"), func() {
	for _, m := range machines {
		Context("with Linux "+m.kernel, Ordered, ContinueOnFailure, func() {
			var (
				machine *guest.Guest
				failed  bool
				runs    []job.Run
			)
			for _, program := range m.programs {
				if run, ok := program.run(); ok {
					runs = append(runs, run)
				}
			}
			BeforeAll(func() { machine = boot(m.kernel, runs, &failed) })
			AfterEach(func() { failed = failed || CurrentSpecReport().Failed() })

			for _, run := range runs {
				It("passes "+run.Name, func() { passes(machine, run.Name) })
			}
			It("ends by itself", func() {
				ctx, cancel := context.WithTimeout(context.Background(), bootLimit)
				defer cancel()
				Expect(machine.AwaitEnd(ctx)).To(Succeed())
			})
		})
	}
})

// boot starts a machine that ends with its container. What it said is kept if one of the specs has failed.
func boot(name string, runs []job.Run, failed *bool) *guest.Guest {
	GinkgoHelper()
	kernel, err := vm.FindKernel(name)
	require.That(GinkgoT(), "kernel "+name, err)
	evidence := artifacts.New(container{GinkgoT(), failed}, &topo.Topology{})
	log, err := evidence.Path("serial.log")
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithTimeout(context.Background(), bootLimit)
	defer cancel()
	machine, err := binaries.Boot(ctx, kernel, guest.Options{
		Name: "linux-" + name, Modules: []string{"tun"}, Runs: runs, Dir: filepath.Dir(log),
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(machine.Stop)
	AddReportEntry("kernel", kernel.Release, ReportEntryVisibilityAlways)
	return machine
}

// container is a test that has failed if one of an ordered container's specs has.
type container struct {
	GinkgoTInterface
	failed *bool
}

func (c container) Failed() bool { return *c.failed }

// summary is how a suite of ginkgo ends.
var summary = regexp.MustCompile(`(?m)^Ran \d+ of \d+ Specs in .*$`)

// passes waits for a program and expects that it ran something, and well.
func passes(machine *guest.Guest, run string) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(context.Background(), runLimit+bootLimit)
	defer cancel()
	result, err := machine.Await(ctx, run)
	if err == nil {
		err = result.Err()
	}
	Expect(err).NotTo(HaveOccurred(), "%s", telling(result.Output))
	ran := summary.FindString(result.Output)
	Expect(ran).NotTo(BeEmpty(), "%s", telling(result.Output))
	Expect(ran).NotTo(HavePrefix("Ran 0 "), "no spec is of this focus any more")
	AddReportEntry(run, ran, ReportEntryVisibilityAlways)
}

// telling is what a person reads first of a suite that failed: the failures, as ginkgo sums them up, or its last lines.
func telling(output string) string {
	if at := strings.LastIndex(output, "Summarizing"); at >= 0 {
		output = output[at:]
	}
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return fmt.Sprintf("its output ends like this:\n%s", strings.Join(lines[max(0, len(lines)-60):], "\n"))
}
