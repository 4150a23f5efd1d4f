// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/beep-lb/beep/harness/checkout"
)

// TestLinks holds links to the files and headings that they name. Other sites are nobody's here to promise.
func TestLinks(t *testing.T) {
	documents, err := Documents()
	if err != nil {
		t.Fatal(err)
	}
	if len(documents) < 10 {
		t.Fatalf("%d documents", len(documents))
	}
	headings := map[string][]string{}
	for _, document := range documents {
		headings[document.Path] = document.Headings
	}
	for _, document := range documents {
		for _, link := range document.Links {
			to, err := url.Parse(link)
			if err != nil {
				t.Errorf("%s: %q: %v", document.Path, link, err)
				continue
			}
			if to.IsAbs() {
				continue
			}
			path := document.Path
			if to.Path != "" {
				path = filepath.Join(filepath.Dir(document.Path), to.Path)
			}
			file, err := checkout.Path(path)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: %q leads nowhere", document.Path, link)
			} else if to.Fragment != "" && !slices.Contains(headings[path], to.Fragment) {
				t.Errorf("%s: %q: %s has no such heading, but %q", document.Path, link, path, headings[path])
			}
		}
	}
}

func TestReleaseNotes(t *testing.T) {
	changelog := filepath.Join(t.TempDir(), "CHANGELOG.md")
	text := "# Changes\n\n## Unreleased\n\nto come\n\n## v1.2.0\n\n### Added\n- much\n\n## v1.1.0\n\n- little\n"
	if err := os.WriteFile(changelog, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ version, notes, fault string }{
		{"v1.2.0", "### Added\n- much\n\n", ""},
		{"v1.1.0", "- little\n", ""},
		{"v1.1.0-4-g0123abc", "to come\n\n", ""},
		{"0123abc-dirty", "to come\n\n", ""},
		{"v1.3.0", "", `no section "## v1.3.0"`},
		{"v1.2.0-rc.1", "", `no section "## v1.2.0-rc.1"`},
	} {
		out, errout, err := script("ci/release-notes", tt.version, changelog)
		if out != tt.notes || !strings.Contains(errout, tt.fault) || (err != nil) != (tt.fault != "") {
			t.Errorf("%s: %v\n%s%s", tt.version, err, out, errout)
		}
	}
	// The section of today is there, so that the release of tomorrow can be written.
	if out, errout, err := script("ci/release-notes", "unknown"); err != nil || out == "" {
		t.Errorf("CHANGELOG.md: %v\n%s", err, errout)
	}
}
