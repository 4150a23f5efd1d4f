// SPDX-License-Identifier: Apache-2.0

// Command image puts beep's programs into container images of nothing but them: an OCI layout of both architectures,
// the same as a tar archive, and a bill of materials for each. Invariant: what it writes depends on its input alone, so
// that whoever builds the same source gets the same digest.
//
//	image -programs DIR -name NAME:TAG -out DIR
//
// The programs are at PROGRAMS/ARCH/beep and PROGRAMS/ARCH/beep-controller, for linux. Below OUT it writes oci/ (the
// layout), beep.tar (for `ctr -n k8s.io images import`) and beep-ARCH.cdx.json, and prints the digest of the index.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	programs := flag.String("programs", "", "directory of ARCH/beep and ARCH/beep-controller")
	name := flag.String("name", "", "NAME:TAG that a node knows the image by")
	out := flag.String("out", "", "directory to write to; what is there is replaced")
	flag.Parse()
	if *programs == "" || *name == "" || *out == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(*programs, *name, *out); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(programs, name, out string) error {
	index, boms, err := build(programs)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for arch, bom := range boms {
		if err := os.WriteFile(filepath.Join(out, "beep-"+arch+".cdx.json"), bom, 0o644); err != nil {
			return err
		}
	}
	layoutDir := filepath.Join(out, "oci")
	if err := writeLayout(layoutDir, name, index); err != nil {
		return err
	}
	if err := archive(layoutDir, filepath.Join(out, "beep.tar")); err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	_, err = fmt.Printf("%s@%s\n", name, digest)
	return err
}
