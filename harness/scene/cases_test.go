// SPDX-License-Identifier: Apache-2.0

package scene

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// known are the faults that rigs/README.md has a row of.
const known = "D1 D2 D4 D7 D8 D10 D11 D14 D15 D19 D23 D25 D27 D32 D34 D36 D38 D39 D40 D41 D45 D48 D49 D53 D54 D55 D58 D60 D62 D68 D69 " +
	"D72 D75 D76 D78"

// proof is a folder, or the words of a spec of the folder that was named last.
var proof = regexp.MustCompile("`((?:rigs|harness|src)/[^`]*)`|\\*([^*]+)\\*")

// TestEachFaultHasItsSpec: every row of a table of proofs in rigs/README.md names specs that are there, in their own words.
func TestEachFaultHasItsSpec(t *testing.T) {
	text, err := os.ReadFile("../../rigs/README.md")
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for line := range strings.Lines(string(text)) {
		if id, _, row := strings.Cut(strings.TrimPrefix(line, "| "), " | "); row && strings.HasPrefix(id, "D") {
			ids = append(ids, id)
		}
		if !strings.HasPrefix(line, "|") {
			continue
		}
		folder, specs := "", 0
		for _, match := range proof.FindAllStringSubmatch(line, -1) {
			if match[1] != "" {
				folder = match[1]
				continue
			}
			specs++
			if !strings.Contains(testsOf(t, folder), match[2]) {
				t.Errorf("no test of %s says %q:\n%s", folder, match[2], line)
			}
		}
		if folder != "" && specs == 0 {
			t.Errorf("this row names no spec:\n%s", line)
		}
	}
	if got := strings.Join(ids, " "); got != known {
		t.Errorf("rows of %s,\nwant    %s", got, known)
	}
}

var tests = map[string]string{}

// testsOf are the texts of a folder's tests, and the names of their data.
func testsOf(t *testing.T, folder string) string {
	t.Helper()
	if text, read := tests[folder]; read {
		return text
	}
	var all strings.Builder
	err := filepath.WalkDir(filepath.Join("../..", folder), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		all.WriteString(entry.Name() + "\n")
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		all.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	tests[folder] = all.String()
	return all.String()
}
