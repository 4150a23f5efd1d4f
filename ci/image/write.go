// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// writeLayout writes an OCI image layout (image-spec, image-layout.md) that names the index: by the standard's
// annotation, which is a tag, and by the one that containerd takes for the whole name.
func writeLayout(dir, name string, index v1.ImageIndex) error {
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	return path.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": name[strings.LastIndex(name, ":")+1:],
		"io.containerd.image.name":          name,
	}))
}

// archive writes a directory as a tar archive, in the order of names and of no time.
func archive(dir, path string) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := file.Close(); err == nil {
			err = closeErr
		}
	}()
	to := tar.NewWriter(file)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return addFile(to, dir, path)
	})
	if err != nil {
		return err
	}
	return to.Close()
}

func addFile(to *tar.Writer, dir, path string) error {
	name, err := filepath.Rel(dir, path)
	if err != nil {
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	header := &tar.Header{Name: name, Mode: 0o644, Size: info.Size(), ModTime: time.Unix(0, 0), Typeflag: tar.TypeReg}
	if err := to.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(to, file)
	return err
}
