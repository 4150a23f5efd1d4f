// SPDX-License-Identifier: Apache-2.0

// Package checkout finds the files of the repository that are no Go packages: scripts, lists, what make built.
// Invariant: it answers by the working directory alone, and go test runs a test in its package's directory.
package checkout

import (
	"fmt"
	"os"
	"path/filepath"
)

// Root is the absolute path of the directory that holds the product's go.mod: the nearest one above the working
// directory that has one.
func Root() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("find the repository: no go.mod above %s", start)
		}
	}
}

// Path is the absolute path of a file below Root.
func Path(elements ...string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	return filepath.Join(append([]string{root}, elements...)...), nil
}
