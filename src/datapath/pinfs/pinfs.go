// SPDX-License-Identifier: Apache-2.0

// Package pinfs is the pin directory: where on bpffs each map and link of the datapath has its name, and who
// may write there. Invariant: a Dir lies on bpffs, below it every pin has one path that only this package
// spells, and at most one process holds its lock.
package pinfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrLocked says that another process writes to the pin directory.
var ErrLocked = errors.New("pin directory is in use")

// ErrRowsLocked says that another process fills the maps of the pin directory.
var ErrRowsLocked = errors.New("another controller fills these maps")

// ErrNotBPFFS says that the pin directory is not on a BPF file system.
var ErrNotBPFFS = errors.New("not on bpffs")

const (
	mapsDir  = "maps"
	linksDir = "links"
	// bridgeSuffix follows the ifindex in the name of a bridge's pin.
	bridgeSuffix = "_egress_next"
	// mode keeps other users from opening the pins: whoever can open a map can rewrite where packets go.
	mode = 0o700
)

// Direction is the side of a device that a link is attached to.
type Direction string

// The directions of a link; their text is part of its pin's name.
const (
	Ingress Direction = "ingress"
	Egress  Direction = "egress"
)

// Link names one pinned link.
type Link struct {
	Ifindex   int
	Direction Direction
}

// name is the file name of the link's pin. It has no dot: bpffs answers EPERM to those
// (bpf_lookup in kernel/bpf/inode.c), so the device's own name could not be used.
func (l Link) name() string { return strconv.Itoa(l.Ifindex) + "_" + string(l.Direction) }

// parseLink reads what name writes.
func parseLink(name string) (Link, bool) {
	index, direction, _ := strings.Cut(name, "_")
	ifindex, err := strconv.Atoi(index)
	link := Link{Ifindex: ifindex, Direction: Direction(direction)}
	known := link.Direction == Ingress || link.Direction == Egress
	// Comparing with what name writes refuses "+5_ingress" and "05_ingress".
	return link, err == nil && ifindex > 0 && known && link.name() == name
}

// Dir is a pin directory on bpffs.
type Dir struct {
	path string
}

// Open returns the pin directory for a reader, which takes no lock and creates nothing. It fails with
// fs.ErrNotExist if the directory is missing, and with ErrNotBPFFS.
func Open(path string) (*Dir, error) {
	if err := checkBPFFS(path, path); err != nil {
		return nil, err
	}
	return &Dir{path: filepath.Clean(path)}, nil
}

// Create returns the pin directory for a writer, and makes it and its folders (mode 0700) where they are
// missing. It fails with ErrNotBPFFS, and if the directory could be written by other users.
func Create(path string) (*Dir, error) {
	path = filepath.Clean(path)
	// Checked before anything is made, so that a wrong path leaves nothing behind. What is made after is ours.
	existing, err := nearestExisting(path)
	if err != nil {
		return nil, err
	}
	if err := checkBPFFS(path, existing); err != nil {
		return nil, err
	}
	if err := checkOwners(existing); err != nil {
		return nil, err
	}
	for _, dir := range []string{path, filepath.Join(path, mapsDir), filepath.Join(path, linksDir)} {
		if err := os.MkdirAll(dir, mode); err != nil {
			return nil, explain(err)
		}
	}
	return &Dir{path: path}, nil
}

// Check says whether a pin directory could be made at path, and makes nothing: ErrNotBPFFS, mostly.
func Check(path string) error {
	path = filepath.Clean(path)
	existing, err := nearestExisting(path)
	if err != nil {
		return err
	}
	return checkBPFFS(path, existing)
}

// Clear unpins everything and removes the directory: the links first, which takes the programs off their devices,
// then the maps that they used. The caller holds the Lock.
func (d *Dir) Clear() error {
	for _, path := range []string{filepath.Join(d.path, linksDir), d.path} {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("remove pins: %w", err)
		}
	}
	return nil
}

// Path is the directory itself.
func (d *Dir) Path() string { return d.path }

// MapPath is where the map of that name is pinned.
func (d *Dir) MapPath(name string) string { return filepath.Join(d.path, mapsDir, name) }

// LinkPath is where the link is pinned.
func (d *Dir) LinkPath(link Link) string { return filepath.Join(d.path, linksDir, link.name()) }

// BridgePath is where an uplink's bridge is pinned: a second egress link, which is there while an upgrade moves the
// flows to other tables, and after one that was killed. It is none of Links.
func (d *Dir) BridgePath(ifindex int) string {
	return filepath.Join(d.path, linksDir, strconv.Itoa(ifindex)+bridgeSuffix)
}

// Bridges lists the ifindexes of the pinned bridges, in no order.
func (d *Dir) Bridges() ([]int, error) {
	names, err := list(filepath.Join(d.path, linksDir))
	if err != nil {
		return nil, err
	}
	var bridges []int
	for _, name := range names {
		index, isBridge := strings.CutSuffix(name, bridgeSuffix)
		if ifindex, err := strconv.Atoi(index); isBridge && err == nil {
			bridges = append(bridges, ifindex)
		}
	}
	return bridges, nil
}

// Maps lists the names below the map folder, sorted. A directory without that folder has none.
func (d *Dir) Maps() ([]string, error) { return list(filepath.Join(d.path, mapsDir)) }

// Links lists the pinned links by ifindex and direction. Names that are no link's are left out.
func (d *Dir) Links() ([]Link, error) {
	names, err := list(filepath.Join(d.path, linksDir))
	if err != nil {
		return nil, err
	}
	var links []Link
	for _, name := range names {
		if link, ok := parseLink(name); ok {
			links = append(links, link)
		}
	}
	slices.SortFunc(links, func(a, b Link) int {
		if a.Ifindex != b.Ifindex {
			return a.Ifindex - b.Ifindex
		}
		return strings.Compare(string(a.Direction), string(b.Direction))
	})
	return links, nil
}

// Publish gives the pin at staged the name final, in place of whatever was pinned there: a reader finds the
// old object or the new one, never neither. cilium/ebpf's objects remember the path they were pinned at, and
// Unpin of the replaced one would take the new one's pin away, so use Remove instead of it.
func (d *Dir) Publish(staged, final string) error {
	for _, path := range []string{staged, final} {
		if err := d.owns(path); err != nil {
			return err
		}
	}
	if err := os.Rename(staged, final); err != nil {
		return fmt.Errorf("publish pin %s: %w", final, err)
	}
	return nil
}

// Remove unpins what is at path, if anything; the kernel frees an object with its last user.
func (d *Dir) Remove(path string) error {
	if err := d.owns(path); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove pin: %w", err)
	}
	return nil
}

// owns refuses paths outside the directory, and the directory itself.
func (d *Dir) owns(path string) error {
	if !strings.HasPrefix(filepath.Clean(path), d.path+"/") {
		return fmt.Errorf("pin %s: not below the pin directory %s", path, d.path)
	}
	return nil
}

// list returns the names in a folder, sorted; a missing folder is empty.
func list(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list pins: %w", err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names, nil
}

// nearestExisting is path, or its closest ancestor that exists.
func nearestExisting(path string) (string, error) {
	for {
		_, err := os.Stat(path)
		if err == nil {
			return path, nil
		}
		if parent := filepath.Dir(path); errors.Is(err, fs.ErrNotExist) && parent != path {
			path = parent
			continue
		}
		return "", explain(err)
	}
}

// checkBPFFS refuses a pin directory whose existing part is not on bpffs.
func checkBPFFS(dir, existing string) error {
	var stat unix.Statfs_t
	if err := unix.Statfs(existing, &stat); err != nil {
		return explain(&fs.PathError{Op: "statfs", Path: existing, Err: err})
	}
	if uint32(stat.Type) != unix.BPF_FS_MAGIC {
		return fmt.Errorf("pin directory %s: %w (%s is on a file system of magic %#x): "+
			"mount one with `mount -t bpf bpf /sys/fs/bpf` and name a directory below it",
			dir, ErrNotBPFFS, existing, uint32(stat.Type))
	}
	return nil
}

// checkOwners refuses a directory that another user could fill or move away: the root of bpffs is open to
// everyone (mode 1777), so somebody else may have made ours, or one above it, first.
func checkOwners(dir string) error {
	var below unix.Stat_t
	for first := true; ; first = false {
		var stat unix.Stat_t
		if err := unix.Stat(dir, &stat); err != nil {
			return explain(&fs.PathError{Op: "stat", Path: dir, Err: err})
		}
		if !first && stat.Dev != below.Dev {
			return nil // above the mount, which is not beep's to judge
		}
		if uid := os.Geteuid(); stat.Uid != 0 && int(stat.Uid) != uid {
			return fmt.Errorf("pin directory: %s belongs to user %d and this process is user %d: remove it or chown it",
				dir, stat.Uid, uid)
		}
		// In a sticky directory, such as the root of bpffs, others can add names and not touch ours.
		if stat.Mode&0o022 != 0 && stat.Mode&unix.S_ISVTX == 0 {
			return fmt.Errorf("pin directory: %s can be written by other users (mode %04o): chmod 700 it", dir, stat.Mode&0o7777)
		}
		below, dir = stat, filepath.Dir(dir)
	}
}

// explain adds the remedy to the one refusal that its errno does not explain. Even a look at a name with a
// dot is EPERM.
func explain(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) && errors.Is(err, unix.EPERM) && strings.Contains(filepath.Base(pathErr.Path), ".") {
		return fmt.Errorf("pin directory: %w: bpffs allows no dot in a name, choose another", err)
	}
	return fmt.Errorf("pin directory: %w", err)
}
