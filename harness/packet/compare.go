// SPDX-License-Identifier: Apache-2.0

package packet

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/onsi/gomega/types"
)

// Verify says what is wrong with the lengths, checksums and header chain of packet, all at once and by layer, inside a tunnel
// too. A UDP checksum of 0 is right on IPv4 and on the outside of a tunnel; the checksum of a fragment, or of what an ICMP
// error quotes in part, cannot be checked and is not. packet may begin with an Ethernet or an IP header. It does not judge
// whether a tunnel is beep's.
func Verify(packet []byte) error {
	var errs []error
	for _, l := range dissect(packet) {
		for _, f := range l.faults {
			errs = append(errs, fmt.Errorf("%s: %s", l.name, f))
		}
	}
	return errors.Join(errs...)
}

// Describe prints packet, one line a layer, each a name and then key=value. Layers inside a tunnel are named inner.*, those that
// an ICMP error quotes quote.*. Fields at their usual value are left out. The text is stable: tests may compare it.
func Describe(packet []byte) string {
	var b strings.Builder
	for _, l := range dissect(packet) {
		b.WriteString(l.String())
		b.WriteByte('\n')
	}
	return b.String()
}

// Diff prints the fields in which got differs from want, one a line; it is empty exactly if the packets are equal. A field is
// named LAYER.FIELD as Describe prints them, for example inner.ipv4.ttl. Those named in except are not compared: a test
// leaves out what it cannot foretell, such as the source port of a tunnel (udp.sport).
func Diff(want, got []byte, except ...string) string {
	if bytes.Equal(want, got) {
		return ""
	}
	var lines []string
	w, g := dissect(want), dissect(got)
	for i := range max(len(w), len(g)) {
		switch {
		case i >= len(w):
			lines = append(lines, "+ "+g[i].String())
		case i >= len(g):
			lines = append(lines, "- "+w[i].String())
		case w[i].name != g[i].name:
			lines = append(lines, "- "+w[i].String(), "+ "+g[i].String())
		default:
			lines = append(lines, diffFields(w[i], g[i], except)...)
		}
	}
	if len(lines) == 0 && len(except) == 0 {
		// No field tells: never call different bytes equal.
		i := 0
		for i < min(len(want), len(got)) && want[i] == got[i] {
			i++
		}
		lines = append(lines, fmt.Sprintf("byte %d: want %x, got %x", i, want[i:min(i+8, len(want))], got[i:min(i+8, len(got))]))
	}
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

func diffFields(want, got *layer, except []string) []string {
	var names []string
	values := map[string][2]string{}
	for side, l := range []*layer{want, got} {
		for _, f := range l.fields {
			v, known := values[f.name]
			if !known {
				names = append(names, f.name)
			}
			v[side] = f.value
			values[f.name] = v
		}
	}
	var lines []string
	for _, name := range names {
		v, key := values[name], want.name+"."+name
		if v[0] != v[1] && !slices.Contains(except, key) {
			lines = append(lines, fmt.Sprintf("%s: want %s, got %s", key, orUsual(v[0]), orUsual(v[1])))
		}
	}
	return lines
}

func orUsual(s string) string {
	if s == "" {
		return "(usual)"
	}
	return s
}

// EqualPacket matches a []byte that equals want but for the fields in except (see Diff). Its message is the difference and the
// whole packet that came.
func EqualPacket(want []byte, except ...string) types.GomegaMatcher {
	return &equalPacket{want: want, except: except}
}

type equalPacket struct {
	want   []byte
	except []string
}

func (m *equalPacket) Match(actual any) (bool, error) {
	got, ok := actual.([]byte)
	if !ok {
		return false, fmt.Errorf("EqualPacket compares packets of type []byte, not %T", actual)
	}
	return Diff(m.want, got, m.except...) == "", nil
}

func (m *equalPacket) FailureMessage(actual any) string {
	got, _ := actual.([]byte)
	diff := Diff(m.want, got, m.except...)
	return fmt.Sprintf("The packet differs:\n%s\nIt is:\n%s\nExpected:\n%s", diff, Describe(got), Describe(m.want))
}

func (m *equalPacket) NegatedFailureMessage(actual any) string {
	got, _ := actual.([]byte)
	return fmt.Sprintf("Expected another packet than:\n%s", Describe(got))
}
