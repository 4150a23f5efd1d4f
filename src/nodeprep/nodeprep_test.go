// SPDX-License-Identifier: Apache-2.0

package nodeprep

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// newNode is a node whose filters are as given, by device.
func newNode(t *testing.T, filters map[string]int) Node {
	t.Helper()
	n := Node{Proc: t.TempDir(), Persistent: t.TempDir()}
	for device, value := range filters {
		n.put(t, device, value)
	}
	return n
}

func (n Node) put(t *testing.T, device string, value int) {
	t.Helper()
	path := filepath.Join(n.Proc, setting(device))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strconv.Itoa(value)+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// persisted are the settings in the file, without its comments.
func (n Node) persisted(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(n.Persistent, FileName))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(strings.Split(strings.TrimSpace(string(text)), "\n"), func(line string) bool { return strings.HasPrefix(line, "#") })
}

func TestLoosenReversePath(t *testing.T) {
	for _, tt := range []struct {
		name      string
		filters   map[string]int
		uplinks   []string
		changes   []string
		persisted []string
	}{
		{"strict for all", map[string]int{"all": 1, "eth0": 0}, []string{"eth0"},
			[]string{"net/ipv4/conf/eth0/rp_filter: 0 -> 2"}, []string{"net/ipv4/conf/eth0/rp_filter = 2"}},
		{"strict for the device", map[string]int{"all": 0, "eth0": 1, "eth1": 1}, []string{"eth0"},
			[]string{"net/ipv4/conf/eth0/rp_filter: 1 -> 2"}, []string{"net/ipv4/conf/eth0/rp_filter = 2"}},
		{"loose for all, a device strict on its own", map[string]int{"all": 2, "eth0": 1}, []string{"eth0"},
			nil, []string{"net/ipv4/conf/eth0/rp_filter = 2"}},
		{"off", map[string]int{"all": 0, "eth0": 0}, []string{"eth0"}, nil, nil},
		{"a device whose name has a dot", map[string]int{"all": 1, "eth0.7": 1, "wg0": 2}, []string{"wg0", "eth0.7"},
			[]string{"net/ipv4/conf/eth0.7/rp_filter: 1 -> 2"},
			[]string{"net/ipv4/conf/eth0.7/rp_filter = 2", "net/ipv4/conf/wg0/rp_filter = 2"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(t, tt.filters)
			changes, err := n.LoosenReversePath(tt.uplinks)
			if err != nil {
				t.Fatal(err)
			}
			var words []string
			for _, change := range changes {
				words = append(words, change.String())
			}
			if !slices.Equal(words, tt.changes) || !slices.Equal(n.persisted(t), tt.persisted) {
				t.Errorf("changed %q, persisted %q; want %q, %q", words, n.persisted(t), tt.changes, tt.persisted)
			}
			again, err := n.LoosenReversePath(tt.uplinks)
			if err != nil || len(again) > 0 || !slices.Equal(n.persisted(t), tt.persisted) {
				t.Errorf("a second time: changed %v, persisted %q, %v", again, n.persisted(t), err)
			}
		})
	}
}

func TestLoosenReversePathErrors(t *testing.T) {
	n := newNode(t, map[string]int{"all": 1})
	if _, err := n.LoosenReversePath([]string{"eth0"}); err == nil || !strings.Contains(err.Error(), "net/ipv4/conf/eth0/rp_filter") {
		t.Errorf("an uplink that is not there: %v", err)
	}
	n.put(t, "eth0", 1)
	n.Persistent = filepath.Join(n.Persistent, "missing")
	if _, err := n.LoosenReversePath([]string{"eth0"}); err == nil || !strings.Contains(err.Error(), FileName) {
		t.Errorf("nowhere to persist: %v", err)
	}
}

func TestForget(t *testing.T) {
	n := newNode(t, map[string]int{"all": 1, "eth0": 1})
	if removed, err := n.Forget(); removed || err != nil {
		t.Errorf("before: %v, %v", removed, err)
	}
	if _, err := n.LoosenReversePath([]string{"eth0"}); err != nil {
		t.Fatal(err)
	}
	if removed, err := n.Forget(); !removed || err != nil || n.persisted(t) != nil {
		t.Errorf("after: %v, %v, %q", removed, err, n.persisted(t))
	}
}
