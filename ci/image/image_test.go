// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// programs is a directory of programs: the test's own stands for all of them.
func programs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	for _, arch := range architectures {
		if err := os.Mkdir(filepath.Join(dir, arch), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, name := range executables {
			if err := os.WriteFile(filepath.Join(dir, arch, name), content, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

func TestTheSameProgramsMakeTheSameImage(t *testing.T) {
	dir := programs(t)
	out := []string{filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")}
	for _, out := range out {
		if err := run(dir, "localhost/beep:v1", out); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"beep.tar", "beep-amd64.cdx.json", "beep-arm64.cdx.json"} {
		a, errA := os.ReadFile(filepath.Join(out[0], name))
		b, errB := os.ReadFile(filepath.Join(out[1], name))
		if errA != nil || errB != nil || len(a) == 0 || !slices.Equal(a, b) {
			t.Errorf("%s: %d and %d bytes, the same %v; %v %v", name, len(a), len(b), slices.Equal(a, b), errA, errB)
		}
	}
}

func TestTheLayoutIsValidAndNamed(t *testing.T) {
	out := filepath.Join(t.TempDir(), "image")
	if err := run(programs(t), "localhost/beep:v1", out); err != nil {
		t.Fatal(err)
	}
	path, err := layout.FromPath(filepath.Join(out, "oci"))
	if err != nil {
		t.Fatal(err)
	}
	index, err := path.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 || manifest.Manifests[0].Annotations["io.containerd.image.name"] != "localhost/beep:v1" ||
		manifest.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "v1" {
		t.Errorf("index.json: %+v, %v", manifest, err)
	}
	images, err := index.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	inner, err := images.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for i, arch := range architectures {
		image, err := images.Image(inner.Manifests[i].Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil || config.Architecture != arch || config.OS != "linux" || config.Config.Entrypoint[0] != "/beep" {
			t.Errorf("%s: %+v, %v", arch, config, err)
		}
	}
	var bom struct{ Components []struct{ Name string } }
	text, err := os.ReadFile(filepath.Join(out, "beep-amd64.cdx.json"))
	if err == nil {
		err = json.Unmarshal(text, &bom)
	}
	const known = "github.com/google/go-containerregistry"
	if err != nil || !slices.ContainsFunc(bom.Components, func(c struct{ Name string }) bool { return c.Name == known }) {
		t.Errorf("the bill of materials lacks %s: %d components, %v", known, len(bom.Components), err)
	}
}

func TestAMissingProgramIsNamed(t *testing.T) {
	dir := programs(t)
	missing := filepath.Join(dir, "arm64", "beep-controller")
	if err := os.Remove(missing); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "image")
	if err := run(dir, "localhost/beep:v1", out); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(out); !os.IsNotExist(err) {
		t.Errorf("something was written: %v", err)
	}
}
