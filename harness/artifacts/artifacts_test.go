// SPDX-License-Identifier: Apache-2.0

package artifacts_test

import (
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/beep-lb/beep/harness/artifacts"
	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
)

func TestMain(m *testing.M) { os.Exit(require.Main(m)) }

// spec is a test whose verdict is chosen; its cleanups run when end is called. Everything else is the real test's.
type spec struct {
	*testing.T
	failed   bool
	log      strings.Builder
	cleanups []func()
}

func (s *spec) Failed() bool     { return s.failed }
func (s *spec) Cleanup(f func()) { s.cleanups = append(s.cleanups, f) }
func (s *spec) Logf(format string, args ...any) {
	fmt.Fprintf(&s.log, format+"\n", args...)
}

func (s *spec) end() {
	for i := len(s.cleanups) - 1; i >= 0; i-- {
		s.cleanups[i]()
	}
}

// run is a spec that makes some traffic and ends; it returns what is left below the artifacts directory.
func run(t *testing.T, failed bool) (log string, left map[string]string) {
	t.Helper()
	root := t.TempDir()
	t.Setenv(artifacts.EnvDir, root)
	s := &spec{T: t, failed: failed}
	topology := topo.New(s, topo.TwoNodes(topo.Options{}))
	collector := artifacts.New(s, topology)
	collector.Register("drops", func(w io.Writer) { fmt.Fprintln(w, "overwritten") })
	collector.Register("drops", func(w io.Writer) { fmt.Fprintln(w, "no drops") })
	if err := collector.CaptureAll(); err != nil {
		t.Fatal(err)
	}
	at := netip.AddrPortFrom(topology.Addr("node-b", topo.V4), 80)
	if _, err := traffic.ServeHTTP(topology.NS("node-b"), "node-b", at); err != nil {
		t.Fatal(err)
	}
	if _, err := traffic.Get(t.Context(), topology.NS("client"), at); err != nil {
		t.Fatal(err)
	}
	s.end()

	left = map[string]string{}
	files, err := filepath.Glob(filepath.Join(root, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		left[filepath.Base(file)] = string(content)
	}
	if entries, err := os.ReadDir(root); err != nil || !failed && len(entries) > 0 {
		t.Errorf("%v is left in %s, %v", entries, root, err)
	}
	return s.log.String(), left
}

func TestSuccessLeavesNothing(t *testing.T) {
	require.Root(t)
	if log, left := run(t, false); log != "" || len(left) != 0 {
		t.Errorf("log %q, files %v", log, left)
	}
}

func TestFailureLeavesEverything(t *testing.T) {
	require.Root(t)
	log, left := run(t, true)
	if !strings.Contains(log, "TestFailureLeavesEverything") || strings.Contains(log, "incomplete") {
		t.Errorf("log does not name the directory, or complains: %q", log)
	}
	for file, want := range map[string]string{
		"topology.txt": "one client and 2 nodes",
		"client.txt":   "198.51.100.10/24 dev eth0",
		"node-a.txt":   "table 254: 10.42.1.11/32 dev pod-a1",
		"node-b.txt":   "192.0.2.12/24 dev eth0",
		"lan-lan.txt":  `alias "node-a eth0"`,
		"pod-b1.txt":   "via 169.254.1.1",
		"drops.txt":    "no drops",
	} {
		if !strings.Contains(left[file], want) {
			t.Errorf("%s does not say %q:\n%s", file, want, left[file])
		}
	}
	for file, content := range left {
		if strings.Contains(content, "INCOMPLETE") {
			t.Errorf("%s is incomplete:\n%s", file, content)
		}
	}
	for _, pcap := range []string{"client-eth0.pcap", "node-b-eth0.pcap", "pod-a1-eth0.pcap"} {
		if _, ok := left[pcap]; !ok {
			t.Errorf("no %s", pcap)
		}
	}
	if !strings.Contains(left["node-b-eth0.pcap"], "HTTP/1.1") {
		t.Error("the capture of node-b does not show the request")
	}
	if !strings.Contains(left["client.txt"], "192.0.2.12 dev eth0 lladdr") {
		t.Errorf("client's neighbours lack node-b:\n%s", left["client.txt"])
	}
}
