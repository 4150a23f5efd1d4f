// SPDX-License-Identifier: Apache-2.0

// Command report makes tables and figures of a record that the bench wrote (make bench). Invariant: every number that it prints is a
// median over rounds or comes from one, and stands beside its spread; what differs between variants is paired by the round.
//
//	report -in RECORD -out DIR
//
// Below DIR it writes results.md, which has the tables, and SVG figures that results.md shows.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	in := flag.String("in", "", "record to read")
	out := flag.String("out", "", "directory to write to")
	flag.Parse()
	if *in == "" || *out == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(*in, *out); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run(in, out string) error {
	file, err := os.Open(in)
	if err != nil {
		return err
	}
	defer file.Close()
	r, err := read(file, in)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	figures, err := r.draw(out)
	if err != nil {
		return err
	}
	text := r.write(figures)
	fmt.Print(text)
	return os.WriteFile(filepath.Join(out, "results.md"), []byte(text), 0o644)
}
