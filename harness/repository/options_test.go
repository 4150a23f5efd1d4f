// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/beep-lb/beep/src/compile"
	"github.com/beep-lb/beep/src/config"
	"github.com/beep-lb/beep/src/datapath/maps"
)

// option is a row of the tables of options.
type option struct{ flag, environment, initial, text string }

// options are the rows of the table below deploy/README.md's nth "flag | environment | …".
func options(t *testing.T, n int) map[string]option {
	t.Helper()
	document, err := Read("deploy/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range document.Tables {
		if table[0][0] != "flag" {
			continue
		}
		if n > 0 {
			n--
			continue
		}
		rows := map[string]option{}
		for _, row := range table[1:] {
			code := func(cell string) string { return strings.Trim(cell, "`") }
			rows[code(row[0])] = option{code(row[0]), code(row[1]), row[2], row[3]}
		}
		return rows
	}
	t.Fatal("deploy/README.md lacks a table of options")
	return nil
}

// inWords are defaults that the flags' own texts tell, where there is no value.
var inWords = map[string]string{
	"--pin-dir": "required", "--node-name": "required", "--node-ip": "of the Node", "--pod-cidr": "of the Node", "--kubeconfig": "the pod's token",
	"--seed-namespace": "the pod's, or the kubeconfig's", "--lease-namespace": "as `--seed-namespace`", "--load-balancer-class": "none",
	"--explain-socket": "the ready file's name and `.sock`", "--fixture": "", "--flow-hash-seed": "", "--manifests": "",
}

func TestOptionsAreThoseOfThePrograms(t *testing.T) {
	for n, flags := range []reflect.Type{reflect.TypeFor[config.Datapath](), reflect.TypeFor[config.Controller]()} {
		rows := options(t, n)
		for _, field := range reflect.VisibleFields(flags) {
			name := field.Tag.Get("name")
			if name == "" {
				continue
			}
			flag := "--" + name
			row, found := rows[flag]
			if !found {
				t.Errorf("%s: deploy/README.md has no row of %s", flags.Name(), flag)
				continue
			}
			delete(rows, flag)
			want, ok := field.Tag.Lookup("default")
			if !ok {
				want = inWords[flag]
			}
			if row.environment != field.Tag.Get("env") || row.initial != want || row.text == "" {
				t.Errorf("%s: deploy/README.md has %+v, want %q and %q", flags.Name(), row, field.Tag.Get("env"), want)
			}
		}
		for flag := range rows {
			t.Errorf("%s: there is no %s", flags.Name(), flag)
		}
	}
}

// TestOptionsCostWhatIsSaid compares the documents' figures with what package maps computes, which rig memory compares
// with the kernel's.
func TestOptionsCostWhatIsSaid(t *testing.T) {
	defaults := config.Datapath{MaxFronts: 1024, EndpointsPerFront: 4, FlowTableMaxEntries: 65536, NodeAllowMaxEntries: 32, PodTargetsMax: 128}
	fixed, full := cost(defaults)
	source := content(t, "deploy/README.md")
	if want := fmt.Sprintf("the defaults it is %s at start and %s with every row in use", size(fixed), size(full)); !strings.Contains(source, want) {
		t.Errorf("deploy/README.md does not say: %s", want)
	}
	rows := options(t, 0)
	for flag, double := range map[string]func(*config.Datapath){
		"--max-fronts":              func(d *config.Datapath) { d.MaxFronts *= 2 },
		"--endpoints-per-front":     func(d *config.Datapath) { d.EndpointsPerFront *= 2 },
		"--flow-table-max-entries":  func(d *config.Datapath) { d.FlowTableMaxEntries *= 2 },
		"--node-allow-max-entries":  func(d *config.Datapath) { d.NodeAllowMaxEntries *= 2 },
		"--pod-targets-max-entries": func(d *config.Datapath) { d.PodTargetsMax *= 2 },
	} {
		doubled := defaults
		double(&doubled)
		fixedThen, fullThen := cost(doubled)
		want := fmt.Sprintf("Twice as many cost %s more", size(fixedThen-fixed))
		if fullThen-full != fixedThen-fixed {
			want += fmt.Sprintf(", and %s more in use", size(fullThen-full))
		}
		if !strings.HasSuffix(rows[flag].text, want) {
			t.Errorf("%s: deploy/README.md says %q, want at its end %q", flag, rows[flag].text, want)
		}
	}
}

// cost is the kernel's memory in bytes, at start and with every row in use.
func cost(flags config.Datapath) (fixed, full uint64) {
	sizes := maps.SizesOf(&flags)
	entries := sizes.ByMap()
	for name, memory := range sizes.Bytes() {
		fixed += memory.Fixed
		full += memory.Fixed + memory.Row*uint64(entries[name])
	}
	return fixed, full
}

func size(bytes uint64) string {
	if bytes < 1<<20 {
		return fmt.Sprintf("%.1f KiB", float64(bytes)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
}

// TestEventsAreThoseThatAreWritten compares the table of Events with the codes of package compile, and with the three that
// beep-controller has beside them.
func TestEventsAreThoseThatAreWritten(t *testing.T) {
	want := []string{compile.MapFull.String(), "MapRestoreFailed", "IPVSUnsupported"}
	for code := compile.ForeignClass; code <= compile.NodeNotChosen; code++ {
		if code.Event() {
			want = append(want, code.String())
		}
	}
	document, err := Read("deploy/README.md")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, table := range document.Tables {
		if table[0][0] != "Event" {
			continue
		}
		for _, row := range table[1:] {
			got = append(got, strings.Split(row[0], ", ")...)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("deploy/README.md has the Events\n%q, want\n%q", got, want)
	}
}
