// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write what is compiled into testdata")

// separator stands between what a file says and what is compiled of it.
const separator = "----\n"

// TestScenarios compiles every file below testdata on every one of its nodes and compares it with what the file says.
// The name of a test is the first comment of its file: the rows of the tables of faults that it covers, and what it is.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scenario below testdata", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		input, want, _ := strings.Cut(string(text), separator)
		s := parseScenario(t, input)
		t.Run(s.title, func(t *testing.T) {
			got := s.dump()
			if *update {
				if err := os.WriteFile(file, []byte(input+separator+got), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", file, diff)
			}
		})
	}
}
