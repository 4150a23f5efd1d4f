// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"

	"github.com/beep-lb/beep/src/datapath/maps"
)

var update = flag.Bool("update", false, "write what is exported into docs/metrics.md")

// The page that lists every metric, and the folder whose dashboards and rules may name no other.
const (
	page       = "../../docs/metrics.md"
	monitoring = "../../deploy/monitoring"
)

// exporters are a daemon and a controller that have something to say under every name that they know.
func exporters() map[string]*prometheus.Registry {
	daemon := New(sample(), node(nil))
	daemon.Swept("tcp-idle", 1)
	controller := NewController("v1", func() error { return nil })
	controller.Reconciled(time.Second, nil)
	controller.Stepped("front", "added")
	controller.Swept("endpoint", 1)
	controller.LeftOut(map[string]int{"PortConflict": 1})
	controller.Known(1, 1, 1)
	controller.StatusWrite("written")
	controller.Published(1, 0)
	controller.LeaseAge(func() time.Duration { return time.Second })
	return map[string]*prometheus.Registry{"beep run": daemon.registry, "beep-controller": controller.registry}
}

// families are the metrics of one process, but for those of every Go program.
func families(t *testing.T, registry *prometheus.Registry) []*dto.MetricFamily {
	t.Helper()
	all, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	own := slices.DeleteFunc(all, func(family *dto.MetricFamily) bool { return !strings.HasPrefix(family.GetName(), "beep_") })
	slices.SortFunc(own, func(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) })
	return own
}

// TestNothingIsUnsaid: the exporters above leave out no metric, or the page would.
func TestNothingIsUnsaid(t *testing.T) {
	for process, registry := range exporters() {
		said := map[string]bool{}
		all, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range all {
			said[family.GetName()] = true
		}
		descriptions := make(chan *prometheus.Desc)
		go func() {
			defer close(descriptions)
			registry.Describe(descriptions)
		}()
		for description := range descriptions {
			name := regexp.MustCompile(`fqName: "(beep_\w+)"`).FindStringSubmatch(description.String())
			if name != nil && !said[name[1]] {
				t.Errorf("%s describes %s: give it a value in exporters", process, name[1])
			}
		}
	}
}

func TestNamesAreAsPrometheusWantsThem(t *testing.T) {
	for process, registry := range exporters() {
		problems, err := testutil.GatherAndLint(registry)
		if err != nil || len(problems) > 0 {
			t.Errorf("%s: %v, %v", process, problems, err)
		}
	}
}

// TestPage compares the tables of docs/metrics.md with what is exported; go test ./src/telemetry -update writes them.
func TestPage(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	got := string(text)
	for process, registry := range exporters() {
		begin, end := fmt.Sprintf("<!-- %s -->\n", process), fmt.Sprintf("<!-- end of %s -->\n", process)
		before, rest, found := strings.Cut(got, begin)
		_, after, ended := strings.Cut(rest, end)
		if !found || !ended {
			t.Fatalf("%s has no lines %q and %q", page, begin, end)
		}
		got = before + begin + table(families(t, registry)) + end + after
	}
	if *update {
		if err := os.WriteFile(page, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(strings.Split(string(text), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s is not what is exported; go test ./src/telemetry -update (-page +exported):\n%s", page, diff)
	}
}

func table(families []*dto.MetricFamily) string {
	var b strings.Builder
	b.WriteString("| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for _, family := range families {
		var labels []string
		for _, label := range family.GetMetric()[0].GetLabel() {
			labels = append(labels, label.GetName())
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", family.GetName(), strings.ToLower(family.GetType().String()),
			strings.Join(labels, ", "), family.GetHelp())
	}
	return b.String()
}

// TestEveryLabelIsOnThePage: what labels of a closed set may be.
func TestEveryLabelIsOnThePage(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, path := range maps.Paths() {
		words = append(words, fmt.Sprintf("`%s` → `%s`", path.From, path.To))
	}
	for _, state := range States {
		words = append(words, fmt.Sprintf("`%s`", state))
	}
	for _, reason := range maps.Reasons() {
		words = append(words, fmt.Sprintf("`%s`", reason))
	}
	for _, word := range words {
		if !strings.Contains(string(text), word) {
			t.Errorf("%s does not say %s", page, word)
		}
	}
}

// TestDashboardsAndRulesNameWhatIsExported: a name that nobody exports is a panel that stays empty, and an alert that
// never fires.
func TestDashboardsAndRulesNameWhatIsExported(t *testing.T) {
	exported := map[string]bool{}
	for _, registry := range exporters() {
		all, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range all {
			exported[family.GetName()] = true
			if family.GetType() == dto.MetricType_HISTOGRAM {
				for _, suffix := range []string{"_bucket", "_sum", "_count"} {
					exported[family.GetName()+suffix] = true
				}
			}
		}
	}
	name := regexp.MustCompile(`\b(beep|process|go)_[a-z0-9_]+\b`)
	files, used := 0, 0
	err := filepath.WalkDir(monitoring, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		for _, word := range name.FindAllString(string(text), -1) {
			used++
			if !exported[word] {
				t.Errorf("%s names %s, which nobody exports", path, word)
			}
		}
		return nil
	})
	if err != nil || files < 3 || used < 50 {
		t.Errorf("%d names in %d files below %s, %v", used, files, monitoring, err)
	}
}
