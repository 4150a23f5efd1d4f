// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/beep"
	"github.com/beep-lb/beep/harness/require"
)

func TestDemo(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "rig demo")
}

var _ = AfterSuite(func() { require.Report(os.Stdout) })

// limit ends a run of the demo that hangs.
const limit = time.Minute

// binary is the demo as `make demo` builds it.
var binary string

var _ = BeforeSuite(func() {
	require.Root(GinkgoT())
	require.TCX(GinkgoT())
	binary = filepath.Join(GinkgoT().TempDir(), "demo")
	out, err := exec.Command("go", "build", "-buildvcs=false", "-o", binary, ".").CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s", out)
})

var _ = Describe("the demo", Label("netns"), func() {
	It("shows that all is as it should be, and leaves nothing behind", func() {
		r := run(nil)
		Expect(r.code).To(BeZero(), "%s", r.errors)
		Expect(r.left).To(BeEmpty())
		for _, text := range []string{
			"═╦═ lan", "TCP 192.0.2.13:80", "UDP [2001:db8:b::13]:53", "2001:db8:c::10\n",
			"ipFamilies: [IPv4, IPv6]", "shop/web   192.0.2.11, 2001:db8:b::11, 192.0.2.12, 2001:db8:b::12, 192.0.2.13, 2001:db8:b::13\n",
			"# beep explain shop/web", "192.0.2.13      node-c  published", "beep fronts --pin-dir /", "beep flows --pin-dir /", "beep drops --pin-dir /", "unknown-peer",
			"All is as it should be: 48 of 48",
		} {
			Expect(r.output).To(ContainSubstring(text))
		}
		Expect(strings.Count(r.output, "\n")).To(BeNumerically("<", 130), "about three screens")
	})

	for _, signal := range []syscall.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP} {
		for _, line := range []string{"A client, three nodes", "beep-controller --manifests", "EXTERNAL-IP", "# beep fronts", "A stranger"} {
			It("interrupted by "+signal.String()+" at "+line+": leaves nothing behind", func() {
				sent := false
				r := run(func(p *os.Process, output string) bool {
					if !sent && strings.Contains(output, line) {
						sent = p.Signal(signal) == nil
					}
					return false
				})
				Expect(sent).To(BeTrue())
				Expect(r.left).To(BeEmpty())
				if r.code != 0 { // the signal may come after the last step
					Expect(r.errors).To(ContainSubstring("interrupted; what it had made is removed"))
				}
			})
		}
	}

	for _, moment := range []time.Duration{0, 20, 60, 100, 150, 200, 300, 400, 500, 700} {
		moment *= time.Millisecond
		It("interrupted "+moment.String()+" after its start, and once more in the cleanup: leaves nothing behind", func() {
			r := run(func(p *os.Process, output string) bool {
				if output == "" { // called once before the first line
					time.AfterFunc(moment, func() {
						p.Signal(unix.SIGTERM) //nolint:errcheck // it may have ended
						p.Signal(unix.SIGINT)  //nolint:errcheck // it may have ended
					})
				}
				return false
			})
			Expect(r.left).To(BeEmpty())
		})
	}

	It("whose reader goes away, as with | head: leaves nothing behind", func() {
		r := run(func(_ *os.Process, output string) bool { return output != "" })
		Expect(r.left).To(BeEmpty())
	})

	It("without the binary: says what to do, and leaves nothing behind", func() {
		r := run(nil, beep.EnvBinary+"=/nonexistent/beep")
		Expect(r.code).To(Equal(1))
		Expect(r.errors).To(ContainSubstring("no binary /nonexistent/beep: run `make build`"))
		Expect(r.left).To(BeEmpty())
	})
})

// result is how a run ended.
type result struct {
	code           int
	output, errors string
	left           []string // namespaces, mounts, files and processes that are still there
}

// run runs the demo. After each line, and once before the first, it calls look with the output so far; where that
// returns true it reads no further and closes the pipe.
func run(look func(p *os.Process, output string) bool, env ...string) (r result) {
	GinkgoHelper()
	done := make(chan any, 1)
	// A thread of its own, in a mount namespace of its own in which no other program makes namespaces or mounts. It
	// stays locked, and so ends with the goroutine.
	go func() {
		defer func() { done <- recover() }()
		defer GinkgoRecover()
		runtime.LockOSThread()
		temp := GinkgoT().TempDir()
		Expect(unix.Unshare(unix.CLONE_NEWNS)).To(Succeed())
		Expect(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")).To(Succeed())
		Expect(os.MkdirAll("/run/netns", 0o755)).To(Succeed())
		Expect(unix.Mount("demo", "/run/netns", "tmpfs", 0, "")).To(Succeed())
		before := mounts()
		mark := "BEEP_DEMO_TEST=" + rand.Text()
		cmd := exec.Command(binary)
		cmd.Env = append(os.Environ(), append(env, mark, "TMPDIR="+temp)...)
		r = follow(cmd, look)
		r.left = append(files("/run/netns"), files(temp)...)
		for _, mount := range mounts() {
			if !slices.Contains(before, mount) {
				r.left = append(r.left, mount)
			}
		}
		r.left = append(r.left, processes(mark)...)
	}()
	Eventually(done, limit).Should(Receive(BeNil()))
	return r
}

// follow runs a command to its end.
func follow(cmd *exec.Cmd, look func(p *os.Process, output string) bool) (r result) {
	var output, errors bytes.Buffer
	cmd.Stderr = &errors
	stdout, err := cmd.StdoutPipe()
	Expect(err).NotTo(HaveOccurred())
	Expect(cmd.Start()).To(Succeed())
	enough := look != nil && look(cmd.Process, "")
	for lines := bufio.NewScanner(stdout); !enough && lines.Scan(); {
		output.WriteString(lines.Text() + "\n")
		enough = look != nil && look(cmd.Process, output.String())
	}
	cmd.Wait() //nolint:errcheck // the code says it; Wait closes the pipe, read or not
	return result{code: cmd.ProcessState.ExitCode(), output: output.String(), errors: errors.String()}
}

func files(dir string) (names []string) {
	entries, err := os.ReadDir(dir)
	Expect(err).NotTo(HaveOccurred())
	for _, entry := range entries {
		names = append(names, filepath.Join(dir, entry.Name()))
	}
	return names
}

// mounts are the mount points of the calling thread's mount namespace.
func mounts() (points []string) {
	text, err := os.ReadFile("/proc/thread-self/mountinfo")
	Expect(err).NotTo(HaveOccurred())
	for line := range strings.Lines(string(text)) {
		points = append(points, strings.Fields(line)[4])
	}
	return points
}

// processes are those that have a variable in their environment.
func processes(variable string) (names []string) {
	paths, err := filepath.Glob("/proc/[0-9]*/environ")
	Expect(err).NotTo(HaveOccurred())
	for _, path := range paths {
		// A process that has ended meanwhile cannot be read.
		if text, err := os.ReadFile(path); err == nil && bytes.Contains(text, []byte(variable)) {
			names = append(names, path)
		}
	}
	return names
}
