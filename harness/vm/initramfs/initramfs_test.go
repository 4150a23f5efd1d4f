// SPDX-License-Identifier: Apache-2.0

package initramfs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cavaliergopher/cpio"

	"github.com/beep-lb/beep/harness/vm/initramfs"
)

func TestAnImageInWords(t *testing.T) {
	here := t.TempDir()
	write(t, filepath.Join(here, "tool"), "#!", 0o755)
	write(t, filepath.Join(here, "tree", "deep", "kept.ko"), "module", 0o644)
	write(t, filepath.Join(here, "tree", "deep", "left.txt"), "out", 0o644)

	image := initramfs.New()
	image.AddFile("/etc/job.json", []byte("{}"), 0o600)
	image.AddLink("/sbin/tool", "/usr/bin/tool")
	image.AddDir("/tmp")
	if err := os.Symlink("kept.ko", filepath.Join(here, "tree", "deep", "alias.ko")); err != nil {
		t.Fatal(err)
	}
	err := errors.Join(
		image.AddCopy("/usr/bin/tool", filepath.Join(here, "tool")),
		image.AddTree("/lib/modules", filepath.Join(here, "tree"), func(name string) bool { return strings.HasSuffix(name, ".ko") }),
	)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.TrimSpace(`
040755 etc
100600 etc/job.json {}
040755 lib
040755 lib/modules
040755 lib/modules/deep
120777 lib/modules/deep/alias.ko kept.ko
100644 lib/modules/deep/kept.ko module
040755 sbin
120777 sbin/tool /usr/bin/tool
040755 tmp
040755 usr
040755 usr/bin
100755 usr/bin/tool #!`)
	first := written(t, image)
	if got := list(t, first); got != want {
		t.Errorf("the image holds\n%s\nwant\n%s", got, want)
	}
	if !bytes.Equal(first, written(t, image)) {
		t.Error("written twice, it differs")
	}
}

// The program is one of every Debian that has libraries: the loader itself is among them.
func TestAProgramComesWithItsLibraries(t *testing.T) {
	if _, err := exec.LookPath("ldd"); err != nil {
		t.Skip(err)
	}
	image := initramfs.New()
	if err := image.AddProgram("sh"); err != nil {
		t.Fatal(err)
	}
	got := list(t, written(t, image))
	for _, part := range []string{"usr/bin/sh", "libc.so", "ld-linux"} {
		if !strings.Contains(got, part) {
			t.Errorf("no %s in\n%s", part, got)
		}
	}
}

func TestWhatIsNotThereIsNamed(t *testing.T) {
	image := initramfs.New()
	dir := t.TempDir()
	for what, err := range map[string]error{
		"/no/such/file":   image.AddCopy("/a", "/no/such/file"),
		"no-such-program": image.AddProgram("no-such-program"),
		dir:               image.AddCopy("/a", dir),
		"/no/such/tree":   image.AddTree("/a", "/no/such/tree", func(string) bool { return true }),
	} {
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("the error does not name %s: %v", what, err)
		}
	}
}

func write(t *testing.T, name, content string, mode os.FileMode) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(content), mode)); err != nil {
		t.Fatal(err)
	}
}

func written(t *testing.T, image *initramfs.Image) []byte {
	t.Helper()
	var archive bytes.Buffer
	if err := image.Write(&archive); err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}

// list prints an archive, one line an entry: mode in octal, name, and content if it is short.
func list(t *testing.T, archive []byte) string {
	t.Helper()
	var lines []string
	for reader := cpio.NewReader(bytes.NewReader(archive)); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return strings.Join(lines, "\n")
		}
		if err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprintf("%06o %s", uint32(header.Mode), header.Name)
		content := []byte(header.Linkname) // the reader takes a link's content for this
		if len(content) == 0 {
			if content, err = io.ReadAll(reader); err != nil {
				t.Fatal(err)
			}
		}
		if len(content) > 0 && len(content) < 100 {
			line += " " + string(content)
		}
		lines = append(lines, line)
	}
}
