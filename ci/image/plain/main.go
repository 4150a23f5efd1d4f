// SPDX-License-Identifier: Apache-2.0

// Command plain puts one static program into a container image of nothing else, for rigs whose clusters can pull nothing.
// Invariant: what it writes depends on its input alone.
//
//	plain -program FILE -name NAME:TAG -out FILE.tar
//
// The program, for linux/amd64, is /FILE there and the entry point. OUT is what `ctr -n k8s.io images import` takes.
package main

import (
	"archive/tar"
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	containername "github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func main() {
	program := flag.String("program", "", "static program for linux/amd64")
	name := flag.String("name", "", "NAME:TAG that a node knows the image by")
	out := flag.String("out", "", "archive to write")
	flag.Parse()
	if *program == "" || *name == "" || *out == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(*program, *name, *out); err != nil {
		fmt.Fprintln(os.Stderr, "plain image:", err)
		os.Exit(1)
	}
}

func run(program, name, out string) error {
	tag, err := containername.NewTag(name)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	base := filepath.Base(program)
	var text bytes.Buffer
	archive := tar.NewWriter(&text)
	header := &tar.Header{Name: base, Mode: 0o755, Size: int64(len(content)), ModTime: time.Unix(0, 0), Typeflag: tar.TypeReg}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	if _, err := archive.Write(content); err != nil {
		return err
	}
	if err := archive.Close(); err != nil {
		return err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text.Bytes())), nil })
	if err != nil {
		return err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", "amd64"
	config.Config.Entrypoint = []string{"/" + base}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return err
	}
	return tarball.WriteToFile(out, tag, image)
}
