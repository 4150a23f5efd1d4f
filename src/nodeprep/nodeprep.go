// SPDX-License-Identifier: Apache-2.0

// Package nodeprep makes a node fit for beep before its daemon starts, and tells what makes it unfit: reverse-path
// filtering of the uplinks, and who serves ClusterIPs beside beep. Invariant: a setting is only ever loosened, never
// tightened, and what is written to the kernel is written to the file that brings it back after a reboot, and for a
// device that is made again.
package nodeprep

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The modes of net.ipv4.conf.*.rp_filter (Documentation/networking/ip-sysctl.rst). The kernel applies the larger one of
// `all` and the device's.
const (
	strict = 1
	loose  = 2
)

// FileName is what the settings are called below /etc/sysctl.d, which systemd applies at boot and, by udev, to each
// device that appears.
const FileName = "60-beep.conf"

// Node is where a node has its settings; tests have others than a node's.
type Node struct {
	// Proc is where the kernel's settings are files: /proc/sys.
	Proc string
	// Persistent is the directory of settings for the next boot: /etc/sysctl.d.
	Persistent string
}

// Host is the node that this process is on.
var Host = Node{Proc: "/proc/sys", Persistent: "/etc/sysctl.d"}

// Change is one setting as it was and is.
type Change struct {
	// Name is the setting as sysctl(8) has it, with slashes: a device's name may have dots.
	Name     string
	From, To int
}

// String is for people.
func (c Change) String() string { return fmt.Sprintf("%s: %d -> %d", c.Name, c.From, c.To) }

// LoosenReversePath sets rp_filter of each uplink from strict to loose: packets of a client that came through another
// node would fail the strict test. A filter that is off stays off. It returns what it changed in the kernel; the file
// names every uplink whose device would be strict, also if it is loose by now. IPv6 has no such filter in the kernel.
func (n Node) LoosenReversePath(uplinks []string) ([]Change, error) {
	all, err := n.read(setting("all"))
	if err != nil {
		return nil, err
	}
	var changes []Change
	var lines []string
	for _, uplink := range slices.Sorted(slices.Values(uplinks)) {
		name := setting(uplink)
		own, err := n.read(name)
		if err != nil {
			return changes, err
		}
		if max(all, own) == strict {
			if err := os.WriteFile(filepath.Join(n.Proc, name), []byte(strconv.Itoa(loose)), 0o644); err != nil {
				return changes, fmt.Errorf("set %s to %d: %w (node-prep must be privileged and see the host's /proc/sys)", name, loose, err)
			}
			changes = append(changes, Change{name, own, loose})
		}
		if all == strict || own != 0 {
			lines = append(lines, fmt.Sprintf("%s = %d\n", name, loose))
		}
	}
	return changes, n.persist(lines)
}

// Forget removes the file of settings for the next boot. The kernel keeps what it has.
func (n Node) Forget() (removed bool, err error) {
	err = os.Remove(filepath.Join(n.Persistent, FileName))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func setting(device string) string { return "net/ipv4/conf/" + device + "/rp_filter" }

func (n Node) read(name string) (int, error) {
	text, err := os.ReadFile(filepath.Join(n.Proc, name))
	if err != nil {
		return 0, fmt.Errorf("read %s: %w (is the uplink there?)", name, err)
	}
	value, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", name, err)
	}
	return value, nil
}

// persist writes the file anew; one that says the same stays untouched.
func (n Node) persist(lines []string) error {
	const header = "# Written by `beep node-prep`: clients may come back through another node than their route names.\n" +
		"# `beep uninstall` removes it.\n"
	path := filepath.Join(n.Persistent, FileName)
	if len(lines) == 0 {
		_, err := n.Forget()
		return err
	}
	text := header + strings.Join(lines, "")
	if before, err := os.ReadFile(path); err == nil && string(before) == text {
		return nil
	}
	// Renamed into place: a boot must not find half a file.
	aside := path + ".new"
	if err := os.WriteFile(aside, []byte(text), 0o644); err != nil {
		return fmt.Errorf("write %s: %w (mount the host's /etc/sysctl.d there, writable)", path, err)
	}
	return os.Rename(aside, path)
}
