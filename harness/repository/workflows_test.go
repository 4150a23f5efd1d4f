// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/beep-lb/beep/harness/checkout"
)

// workflow is what is looked at of a file below .github/workflows.
type workflow struct {
	Permissions map[string]string `json:"permissions"`
	Jobs        map[string]job    `json:"jobs"`
}

type job struct {
	Uses        string            `json:"uses"`
	With        lane              `json:"with"`
	Permissions map[string]string `json:"permissions"`
	// Timeout is a number, or an expression of one.
	Timeout json.RawMessage `json:"timeout-minutes"`
	Steps   []step          `json:"steps"`
}

// lane is what make.yml takes.
type lane struct {
	Targets string `json:"targets"`
	Minutes int    `json:"minutes"`
	Accel   string `json:"accel"`
}

type step struct {
	Uses string `json:"uses"`
	Run  string `json:"run"`
}

// mayWrite are the jobs that may do more than read, and what they may write.
var mayWrite = map[string]map[string]string{"release.yml publish": {"contents": "write"}}

var (
	pinned = regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40}$`)
	// aMake is a make at the end of a command, aScript one of ours; aLane takes its targets from a variable.
	aMake   = regexp.MustCompile(`^(?:sudo env (?:\S+ )*)?make ([a-z0-9 -]+)$`)
	aScript = regexp.MustCompile(`^(ci/[a-z0-9-]+)(?: [\w/.-]+)*$`)
	aLane   = regexp.MustCompile(`^xargs sudo env .* make --keep-going <<<"\$TARGETS"$`)
)

func workflows(t *testing.T) map[string]workflow {
	t.Helper()
	root, err := checkout.Root()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, ".github/workflows/*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	parsed := map[string]workflow{}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var w workflow
		if err := yaml.Unmarshal(source, &w); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		parsed[filepath.Base(file)] = w
	}
	return parsed
}

func TestWorkflowsHaveLeastRightsAndAnEnd(t *testing.T) {
	read := map[string]string{"contents": "read"}
	for file, workflow := range workflows(t) {
		if !equal(workflow.Permissions, read) {
			t.Errorf("%s: permissions %v, want %v", file, workflow.Permissions, read)
		}
		for name, job := range workflow.Jobs {
			at := file + " " + name
			if !equal(job.Permissions, mayWrite[at]) {
				t.Errorf("%s: permissions %v, want %v", at, job.Permissions, mayWrite[at])
			}
			if job.Uses == "" && job.Timeout == nil {
				t.Errorf("%s: no timeout-minutes", at)
			}
			for _, uses := range append([]string{job.Uses}, used(job.Steps)...) {
				if uses != "" && !strings.HasPrefix(uses, "./") && !pinned.MatchString(uses) {
					t.Errorf("%s: %s is not pinned by the digest of a commit", at, uses)
				}
			}
		}
	}
}

// TestWorkflowsOnlyMake holds steps to make targets and scripts that are there. The checkout comes before there is a Makefile.
func TestWorkflowsOnlyMake(t *testing.T) {
	var checkouts, targets []string
	for file, workflow := range workflows(t) {
		for name, job := range workflow.Jobs {
			at := file + " " + name
			if job.Uses == "./.github/workflows/make.yml" {
				if job.With.Minutes < 5 || job.With.Targets == "" {
					t.Errorf("%s: %+v", at, job.With)
				}
				for _, word := range strings.Fields(job.With.Targets) {
					if !strings.Contains(word, "=") { // a variable of make's
						targets = append(targets, word)
					}
				}
			}
			for _, step := range job.Steps {
				run := strings.TrimSpace(step.Run)
				match, script := aMake.FindStringSubmatch(run), aScript.FindStringSubmatch(run)
				switch {
				case match != nil:
					targets = append(targets, strings.Fields(match[1])...)
				case script != nil:
					content(t, script[1])
				case strings.HasPrefix(run, "git init "):
					checkouts = append(checkouts, run)
				case run != "" && !aLane.MatchString(run):
					t.Errorf("%s: this is no make target and no script of ci/: %s", at, run)
				}
			}
		}
	}
	if len(slices.Compact(checkouts)) != 1 {
		t.Errorf("checkouts are not alike:\n%s", strings.Join(checkouts, "\n\n"))
	}
	unknown, err := MakeTargets(targets)
	if err != nil || len(unknown) > 0 || len(targets) == 0 {
		t.Errorf("no targets of the Makefile: %v of %v, %v", unknown, targets, err)
	}
}

func TestMakeTargets(t *testing.T) {
	unknown, err := MakeTargets([]string{"build", "rig-smoke", "rig-nothing", "tset", "release", "GO"})
	if want := []string{"rig-nothing", "tset", "GO"}; err != nil || !slices.Equal(unknown, want) {
		t.Errorf("%v, %v; want %v", unknown, err, want)
	}
}

func used(steps []step) []string {
	var uses []string
	for _, step := range steps {
		uses = append(uses, step.Uses)
	}
	return uses
}

func equal(a, b map[string]string) bool {
	for name, value := range a {
		if b[name] != value {
			return false
		}
	}
	return len(a) == len(b)
}

// script runs a script of the repository.
func script(name string, args ...string) (out, errout string, err error) {
	path, err := checkout.Path(name)
	if err != nil {
		return "", "", err
	}
	var stdout, stderr strings.Builder
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	return stdout.String(), stderr.String(), err
}

// text is a file of the repository.
func content(t *testing.T, name string) string {
	t.Helper()
	path, err := checkout.Path(name)
	if err != nil {
		t.Fatal(err)
	}
	read, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(read)
}
