// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// console is where a command talks to: answers to out, what is wrong to err.
type console struct{ out, err io.Writer }

// table prints rows below a header, in columns for people. Cells of no text print as "-", so that every column
// stays a word for awk(1), if not the last.
func (c console) table(header string, rows [][]string) error {
	// Lines are built first: a tabwriter's own error would come late and only once.
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(strings.Fields(header), "\t"))
	for _, row := range rows {
		for i := range row {
			if row[i] == "" {
				row[i] = "-"
			}
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}

// json prints a value for programs. A list without elements is [], not null.
func (c console) json(value any) error {
	encoder := json.NewEncoder(c.out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// line prints a value for programs that read one a line.
func (c console) line(value any) error { return json.NewEncoder(c.out).Encode(value) }

// complain prints an error, each of its lines on a line of its own.
func (c console) complain(err error) {
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintf(c.err, "beep: %s\n", strings.TrimRight(line, "\n"))
	}
}

// size is bytes for people, in powers of 1024.
func size(bytes uint64) string {
	const unit = 1024
	switch {
	case bytes < unit:
		return fmt.Sprintf("%d B", bytes)
	case bytes < unit*unit:
		return fmt.Sprintf("%.1f KiB", float64(bytes)/unit)
	}
	return fmt.Sprintf("%.1f MiB", float64(bytes)/(unit*unit))
}
