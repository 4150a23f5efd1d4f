// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// EnvBinaries names the environment variable that says in which directory the Kubernetes programs are, for a machine
// that has them from elsewhere. Without it they are where `make kube-binaries` puts them.
const EnvBinaries = "BEEP_KUBE_BINARIES"

// needed are the programs without which nothing here works.
var needed = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-proxy", "kubectl"}

// Binaries is a directory of Kubernetes programs.
type Binaries string

func (b Binaries) path(name string) string { return filepath.Join(string(b), name) }

// FindBinaries returns the directory that holds the Kubernetes programs. It builds nothing: that takes minutes, and
// an error says which command does it.
func FindBinaries() (Binaries, error) { return findBinaries() }

// findBinaries asks the build script once a process, since only that knows what decides the result.
var findBinaries = sync.OnceValues(func() (Binaries, error) {
	dir := os.Getenv(EnvBinaries)
	if dir == "" {
		var err error
		if dir, err = askScript(); err != nil {
			return "", err
		}
	}
	var errs []error
	for _, name := range needed {
		if _, err := exec.LookPath(Binaries(dir).path(name)); err != nil {
			errs = append(errs, fmt.Errorf("kube binaries: %w: run make kube-binaries, or mend %s", err, EnvBinaries))
		}
	}
	return Binaries(dir), errors.Join(errs...)
})

// askScript has the build script below the repository's root say where its results are. go test runs in the directory
// of the package, below that root.
func askScript() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("kube binaries: find the repository: %w", err)
	}
	script := filepath.Join("harness", "kube", "binaries", "build")
	for {
		if _, err := os.Stat(filepath.Join(dir, script)); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("kube binaries: no %s above the working directory: set %s to the directory that holds the programs",
				script, EnvBinaries)
		}
		dir = filepath.Dir(dir)
	}
	var stderr bytes.Buffer
	cmd := exec.Command(filepath.Join(dir, script), "--print")
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", strings.TrimSpace(stderr.String()), err)
	}
	return strings.TrimSpace(string(out)), nil
}
