// SPDX-License-Identifier: Apache-2.0

package pinfs

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Lock is a right to write: to a pin directory, or to what its maps hold. It ends with Unlock or with the process,
// however that dies.
type Lock struct {
	file *os.File
	path string
}

// Lock takes the directory's exclusive lock without waiting. It fails with ErrLocked, and names the process
// that holds the lock where /proc/locks shows it.
func (d *Dir) Lock() (*Lock, error) { return lock(d.path, ErrLocked) }

// LockRows takes the right to fill the maps, which is a controller's beside the Lock of whoever pins them. It fails
// with ErrRowsLocked, as Lock does with ErrLocked, and with fs.ErrNotExist where no maps are pinned.
func (d *Dir) LockRows() (*Lock, error) { return lock(filepath.Join(d.path, mapsDir), ErrRowsLocked) }

// lock takes the exclusive lock of a folder.
func lock(path string, locked error) (*Lock, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, fmt.Errorf("lock pin directory: %w", err)
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		err = fmt.Errorf("%w: %s is locked by %s: stop it, or choose another --pin-dir", locked, path, holder(file))
	case err != nil:
		err = fmt.Errorf("lock pin directory %s: %w", path, err)
	default:
		err = checkSame(path, file, locked)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return &Lock{file, path}, nil
}

// Lost says that the folder was removed, or replaced by another one, which this lock says nothing of.
func (l *Lock) Lost() bool { return checkSame(l.path, l.file, fs.ErrNotExist) != nil }

// Unlock gives the lock back.
func (l *Lock) Unlock() error {
	if err := l.file.Close(); err != nil {
		return fmt.Errorf("unlock pin directory: %w", err)
	}
	return nil
}

// checkSame refuses a lock on a directory that was removed between opening and locking: its successor has
// the same path and no lock.
func checkSame(path string, file *os.File, locked error) error {
	before, err := file.Stat()
	if err != nil {
		return fmt.Errorf("lock pin directory: %w", err)
	}
	now, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("lock pin directory: %w", err)
	}
	if !os.SameFile(before, now) {
		return fmt.Errorf("%w: %s was replaced while it was locked: start again", locked, path)
	}
	return nil
}

// holder describes the process that holds the flock of an open file. A holder in a PID namespace that this
// process cannot see is only known to exist.
func holder(file *os.File) string {
	const unknown = "another process"
	var stat unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &stat); err != nil {
		return unknown
	}
	locks, err := os.Open("/proc/locks")
	if err != nil {
		return unknown
	}
	defer locks.Close()
	// "1: FLOCK  ADVISORY  WRITE 4711 00:2b:31 0 EOF"; device numbers are hexadecimal (lock_get_status,
	// fs/locks.c).
	inode := fmt.Sprintf("%02x:%02x:%d", unix.Major(stat.Dev), unix.Minor(stat.Dev), stat.Ino)
	for lines := bufio.NewScanner(locks); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 6 || fields[1] != "FLOCK" || fields[5] != inode {
			continue
		}
		comm, err := os.ReadFile("/proc/" + fields[4] + "/comm")
		if err != nil {
			return unknown
		}
		return fmt.Sprintf("process %s (%s)", fields[4], strings.TrimSpace(string(comm)))
	}
	return unknown
}
