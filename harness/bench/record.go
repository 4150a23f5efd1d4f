// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Record writes results in Go's benchmark format (https://go.dev/design/14313-benchmark-format), so that benchstat and its libraries
// read them: one line a sample, and before it, as the format's configuration, what holds for it and all that follow.
type Record struct {
	out    io.Writer
	config map[string]string
	err    error // the first that a write met
}

// NewRecord writes a record to out, beginning with the machine.
func NewRecord(out io.Writer) *Record {
	r := &Record{out: out, config: map[string]string{}}
	for _, fact := range Machine() {
		r.Config(fact.Key, fact.Value)
	}
	return r
}

// Config says what holds from here on. A key is lower case, without spaces.
func (r *Record) Config(key, value string) {
	if r.config[key] == value {
		return
	}
	r.config[key] = value
	r.printf("%s: %s\n", key, value)
}

// Note writes a line for people, which programs that read the format leave out.
func (r *Record) Note(format string, args ...any) { r.printf("# "+format+"\n", args...) }

// Value is one figure of a sample.
type Value struct {
	Value float64
	Unit  string // as cpu-ns/op
}

// Sample writes the figures of one sample, each a mean of so much work. The name has the form packet/path=remote/variant=beep.
func (r *Record) Sample(name string, work int, values ...Value) {
	var line strings.Builder
	for _, v := range values {
		fmt.Fprintf(&line, " %s %s", strconv.FormatFloat(v.Value, 'g', 6, 64), v.Unit)
	}
	r.printf("Benchmark%s%s %d%s\n", strings.ToUpper(name[:1]), name[1:], work, line.String())
}

// Err is the first error that a write met.
func (r *Record) Err() error { return r.err }

func (r *Record) printf(format string, args ...any) {
	if _, err := fmt.Fprintf(r.out, format, args...); err != nil && r.err == nil {
		r.err = fmt.Errorf("write the record: %w", err)
	}
}

// Fact is something about the machine.
type Fact struct{ Key, Value string }

// Machine is what a reader must know of where figures were taken: CPU, number of CPUs, kernel, hypervisor.
func Machine() []Fact {
	facts := []Fact{
		{"goos", runtime.GOOS}, {"goarch", runtime.GOARCH}, {"cpu", cpuLine("model name")}, {"cpus", fmt.Sprint(runtime.NumCPU())},
	}
	var uname unix.Utsname
	if unix.Uname(&uname) == nil {
		facts = append(facts, Fact{"kernel", unix.ByteSliceToString(uname.Release[:])})
	}
	if slices.Contains(strings.Fields(cpuLine("flags")), "hypervisor") {
		facts = append(facts, Fact{"virtual", "yes"})
	}
	return facts
}

// cpuLine is what /proc/cpuinfo says of the first CPU.
func cpuLine(key string) string {
	file, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if name, value, _ := strings.Cut(lines.Text(), ":"); strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}
