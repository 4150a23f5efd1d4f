// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/cilium/ebpf/link"

	"github.com/beep-lb/beep/src/datapath/pinfs"
)

// Attachment is a pinned link as the kernel knows it.
type Attachment struct {
	// Link names the pin: ifindex and direction.
	pinfs.Link
	// Severed says that the device is gone, or that the link is on another device or hook than its name says:
	// no packet of the uplink meets the program.
	Severed bool
	// Program is the kernel's id of the program, as bpftool prints it.
	Program uint32
	// Since is when the program was put there: the pin's time of modification, see update. The kernel knows when it was loaded,
	// but opens a program by its id only for CAP_SYS_ADMIN (bpf_prog_get_fd_by_id), which no container of deploy/base has.
	Since time.Time
}

// Attached lists the pinned links by ifindex and direction. It needs no lock, and works in any namespace that
// sees the devices under the same ifindex.
func Attached(dir *pinfs.Dir) ([]Attachment, error) {
	pins, err := dir.Links()
	if err != nil {
		return nil, err
	}
	var attached []Attachment
	for _, pin := range pins {
		one, err := read(dir, pin)
		if errors.Is(err, fs.ErrNotExist) {
			one, err = read(dir, pin) // its program was replaced between two looks
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue // unpinned since it was listed
		}
		if err != nil {
			return nil, fmt.Errorf("pinned link %s: %w", dir.LinkPath(pin), err)
		}
		attached = append(attached, one)
	}
	return attached, nil
}

func read(dir *pinfs.Dir, pin pinfs.Link) (Attachment, error) {
	pinned, err := link.LoadPinnedLink(dir.LinkPath(pin), nil)
	if err != nil {
		return Attachment{}, err
	}
	defer pinned.Close()
	on, err := look(pinned)
	if err != nil {
		return Attachment{}, err
	}
	severed := on.ifindex != pin.Ifindex || on.hook != hooks[pin.Direction]
	put, err := os.Stat(dir.LinkPath(pin))
	if err != nil {
		return Attachment{}, err
	}
	return Attachment{Link: pin, Severed: severed, Program: uint32(on.program), Since: put.ModTime()}, nil
}
