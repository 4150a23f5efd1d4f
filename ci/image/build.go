// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// architectures are those that the eBPF object is for: little-endian.
var architectures = []string{"amd64", "arm64"}

// executables are the programs in the image, at its root.
var executables = []string{"beep", "beep-controller"}

// build makes the index of both images, and the bill of materials of each.
func build(programs string) (v1.ImageIndex, map[string][]byte, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	boms := map[string][]byte{}
	for _, arch := range architectures {
		bom, err := billOfMaterials(filepath.Join(programs, arch))
		if err != nil {
			return nil, nil, err
		}
		boms[arch] = bom
		image, err := imageOf(filepath.Join(programs, arch), arch, bom)
		if err != nil {
			return nil, nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
	}
	return index, boms, nil
}

// imageOf is one image: a layer that seldom changes, and one of the programs.
func imageOf(dir, arch string, bom []byte) (v1.Image, error) {
	files := map[string][]byte{}
	for _, name := range executables {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, fmt.Errorf("program: %w (make image builds it)", err)
		}
		files[name] = content
	}
	base, err := layer([]entry{
		{name: "etc/", mode: 0o755}, {name: "etc/ssl/", mode: 0o755}, {name: "etc/ssl/certs/", mode: 0o755},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, content: authorities()},
		{name: "tmp/", mode: 0o1777},
	})
	if err != nil {
		return nil, err
	}
	programs, err := layer([]entry{
		{name: "beep", mode: 0o755, content: files["beep"]},
		{name: "beep-controller", mode: 0o755, content: files["beep-controller"]},
		{name: "beep.cdx.json", mode: 0o644, content: bom},
	})
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.AppendLayers(image, base, programs)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", arch
	config.Config.Entrypoint = []string{"/beep"}
	config.Config.WorkingDir = "/"
	config.Config.Labels = map[string]string{"org.opencontainers.image.title": "beep", "org.opencontainers.image.licenses": "Apache-2.0"}
	return mutate.ConfigFile(image, config)
}

// authorities are the roots of Mozilla's list, as PEM.
func authorities() []byte {
	var text bytes.Buffer
	for root := range bundle.Roots() {
		// Writing to memory does not fail.
		_ = pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
	}
	return text.Bytes()
}

// entry is a file of a layer, or a directory if its name ends in a slash.
type entry struct {
	name    string
	mode    int64
	content []byte
}

// layer is a layer of these entries, owned by root and of no time.
func layer(entries []entry) (v1.Layer, error) {
	var text bytes.Buffer
	archive := tar.NewWriter(&text)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(e.content)), ModTime: time.Unix(0, 0), Typeflag: tar.TypeReg}
		if e.name[len(e.name)-1] == '/' {
			header.Typeflag = tar.TypeDir
		}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(e.content); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(9))
}
