// SPDX-License-Identifier: Apache-2.0

// Package initramfs puts together the root file system that a machine has in memory: programs with the libraries
// they need, the modules of a kernel, files. Invariant: what is written depends on what was added and on nothing else:
// no time, owner or order of the machine that wrote it.
package initramfs

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/cavaliergopher/cpio"
)

// Image is a root file system to be. A path is absolute, and its directories come by themselves. Whatever was added
// last under a path is there.
type Image struct{ entries map[string]entry }

// entry is a directory, a link, or a file of given content or of another's.
type entry struct {
	mode    cpio.FileMode
	content []byte // a link's target
	from    string // a path here whose content is read as the image is written; empty for content
}

// New is an image with nothing in it.
func New() *Image { return &Image{entries: make(map[string]entry)} }

// AddFile adds a file of given content.
func (i *Image) AddFile(at string, content []byte, mode fs.FileMode) {
	i.add(at, entry{mode: cpio.TypeReg | cpio.FileMode(mode.Perm()), content: content})
}

// AddLink adds a symbolic link.
func (i *Image) AddLink(at, target string) {
	i.add(at, entry{mode: cpio.TypeSymlink | 0o777, content: []byte(target)})
}

// AddDir adds an empty directory.
func (i *Image) AddDir(at string) { i.add(at, entry{mode: cpio.TypeDir | 0o755}) }

// AddCopy adds the file that a path here leads to, with its permissions.
func (i *Image) AddCopy(at, from string) error {
	info, err := os.Stat(from)
	if err != nil {
		return fmt.Errorf("copy into an image: %w", err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("copy into an image: %s is no regular file", from)
	}
	i.add(at, entry{mode: cpio.TypeReg | cpio.FileMode(info.Mode().Perm()), from: from})
	return nil
}

// AddTree adds all regular files below a directory here that want names true, which gets paths below it, and symbolic links as
// they are.
func (i *Image) AddTree(at, from string, want func(name string) bool) error {
	err := fs.WalkDir(os.DirFS(from), ".", func(name string, file fs.DirEntry, err error) error {
		if err != nil || file.IsDir() || !want(name) {
			return err
		}
		here := filepath.Join(from, name)
		if file.Type() != fs.ModeSymlink {
			return i.AddCopy(path.Join(at, name), here)
		}
		target, err := os.Readlink(here)
		i.AddLink(path.Join(at, name), target)
		return err
	})
	if err != nil {
		return fmt.Errorf("copy %s into an image: %w", from, err)
	}
	return nil
}

// AddProgram adds an installed program under its own name in /usr/bin, and the libraries that it needs under their
// own paths.
func (i *Image) AddProgram(name string) error {
	file, err := exec.LookPath(name)
	if err != nil {
		return fmt.Errorf("copy into an image: %w", err)
	}
	if err := i.AddCopy(path.Join("/usr/bin", name), file); err != nil {
		return err
	}
	return i.AddLibraries(file)
}

// AddLibraries adds what an executable or a shared object needs of shared objects.
func (i *Image) AddLibraries(file string) error {
	libraries, err := needed(file)
	if err != nil {
		return err
	}
	for _, library := range libraries {
		if err := i.AddCopy(library, library); err != nil {
			return err
		}
	}
	return nil
}

var (
	libraryPath = regexp.MustCompile(`(/\S+) \(0x[0-9a-f]+\)`)
	missing     = regexp.MustCompile(`(\S+) => not found`)
)

// needed asks the dynamic loader itself, as ldd(1).
func needed(file string) ([]string, error) {
	out, err := exec.Command("ldd", file).CombinedOutput()
	text := string(out)
	if strings.Contains(text, "not a dynamic executable") || strings.Contains(text, "statically linked") {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("libraries of %s: %w: %s", file, err, strings.TrimSpace(text))
	}
	if lost := missing.FindStringSubmatch(text); lost != nil {
		return nil, fmt.Errorf("libraries of %s: %s is not installed", file, lost[1])
	}
	var libraries []string
	for _, match := range libraryPath.FindAllStringSubmatch(text, -1) {
		libraries = append(libraries, match[1])
	}
	return libraries, nil
}

// add places an entry and its directories.
func (i *Image) add(at string, e entry) {
	at = path.Clean("/" + at)
	i.entries[at] = e
	for dir := path.Dir(at); dir != "/"; dir = path.Dir(dir) {
		if _, there := i.entries[dir]; there {
			return
		}
		i.entries[dir] = entry{mode: cpio.TypeDir | 0o755}
	}
}

// Write writes the image as the kernel takes it: a cpio archive in the newc format, uncompressed, for emulated machines
// copy faster than they decompress.
func (i *Image) Write(w io.Writer) error {
	archive := cpio.NewWriter(w)
	// A directory sorts before what it holds.
	for _, at := range slices.Sorted(maps.Keys(i.entries)) {
		if err := i.entries[at].write(archive, at); err != nil {
			return fmt.Errorf("write %s into an image: %w", at, err)
		}
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("write an image: %w", err)
	}
	return nil
}

// write writes one entry. What a link points to is its content (Linux, Documentation/driver-api/early-userspace/
// buffer-format.rst).
func (e entry) write(archive *cpio.Writer, at string) error {
	content, size := io.Reader(bytes.NewReader(e.content)), int64(len(e.content))
	if e.from != "" {
		file, err := os.Open(e.from)
		if err != nil {
			return err
		}
		defer file.Close()
		info, err := file.Stat()
		if err != nil {
			return err
		}
		content, size = file, info.Size()
	}
	err := archive.WriteHeader(&cpio.Header{Name: strings.TrimPrefix(at, "/"), Mode: e.mode, Size: size, Links: 1})
	if err != nil || size == 0 {
		return err
	}
	_, err = io.Copy(archive, content)
	return err
}
