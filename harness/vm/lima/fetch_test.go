// SPDX-License-Identifier: Apache-2.0

package lima

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/beep-lb/beep/harness/checkout"
)

// fakeGH downloads a k3s of either architecture, and checksums in which that of $CONTENT is written.
const fakeGH = `#!/bin/sh
[ "$1 $2" = "release download" ] || exit 1
printf the-program >k3s
printf the-program >k3s-arm64
sum=$(printf %s "$CONTENT" | sha256sum | cut -d" " -f1)
for file in sha256sum-amd64.txt sha256sum-arm64.txt; do
	printf '%s  images.tar\n%s  k3s\n%s  k3s-arm64\n' "$sum" "$sum" "$sum" >$file
done
`

func TestFetchK3sChecksWhatItGets(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "gh"), []byte(fakeGH), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	fetch, err := checkout.Path("ci/fetch-k3s")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "new", "k3s")

	t.Setenv("CONTENT", "another-program")
	out, err := exec.Command(fetch, file).CombinedOutput()
	if _, there := os.Stat(file); err == nil || there == nil || !strings.Contains(string(out), "did NOT match") {
		t.Errorf("a k3s of another checksum: %v\n%s", err, out)
	}
	t.Setenv("CONTENT", "the-program")
	if out, err := exec.Command(fetch, file).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v", info, err)
	}
}
