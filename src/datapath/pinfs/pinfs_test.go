// SPDX-License-Identifier: Apache-2.0

package pinfs

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// lockEnv makes the test binary take the lock of the named directory, say so, and wait for its stdin.
const lockEnv = "PINFS_TEST_LOCK"

func TestMain(m *testing.M) {
	if path := os.Getenv(lockEnv); path != "" {
		holdLock(path)
		return
	}
	os.Exit(m.Run())
}

func holdLock(path string) {
	dir, err := Open(path)
	if err == nil {
		_, err = dir.Lock()
	}
	fmt.Println("locked:", err)
	bufio.NewReader(os.Stdin).ReadString('\n') //nolint:errcheck // the end of stdin is the signal
}

// mountBPFFS mounts a bpffs of its own for the test and returns its path.
func mountBPFFS(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("bpf", dir, "bpf", 0, ""); err != nil {
		t.Fatalf("mount a bpffs on %s (needs root): %v", dir, err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	return dir
}

func mustCreate(t *testing.T, path string) *Dir {
	t.Helper()
	dir, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestCreateMakesAPrivateDirectory(t *testing.T) {
	path := filepath.Join(mountBPFFS(t), "node", "beep")
	dir := mustCreate(t, path+"/")
	if dir.Path() != path {
		t.Errorf("path %s, want %s", dir.Path(), path)
	}
	for _, made := range []string{filepath.Dir(path), path, path + "/maps", path + "/links"} {
		info, err := os.Stat(made)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o700 {
			t.Errorf("%s has mode %s, want 0700", made, info.Mode())
		}
	}
	mustCreate(t, path) // a second time is the restart
	if _, err := Open(path); err != nil {
		t.Errorf("a reader: %v", err)
	}
}

func TestMountItselfMayBeThePinDirectory(t *testing.T) {
	mustCreate(t, mountBPFFS(t))
}

func TestRefusals(t *testing.T) {
	bpffs := mountBPFFS(t)
	plain := t.TempDir()
	open, foreign, file := bpffs+"/open", bpffs+"/foreign", plain+"/file"
	must(t, os.Mkdir(open, 0o700), os.Chmod(open, 0o777), os.Mkdir(foreign, 0o700), os.Chown(foreign, 65534, 65534),
		os.WriteFile(file, nil, 0o600))

	create := func(path string) error { _, err := Create(path); return err }
	read := func(path string) error { _, err := Open(path); return err }
	tests := []struct {
		name  string
		do    func(string) error
		path  string
		is    error
		words string
	}{
		{"a writer on another file system", create, plain + "/beep", ErrNotBPFFS,
			"pin directory " + plain + "/beep: not on bpffs (" + plain + " is on a file system of magic "},
		{"the remedy is named", create, plain, ErrNotBPFFS, "mount one with `mount -t bpf bpf /sys/fs/bpf` and name a directory below it"},
		{"a reader on another file system", read, plain, ErrNotBPFFS, "pin directory " + plain + ": not on bpffs"},
		{"a reader of nothing", read, bpffs + "/none", fs.ErrNotExist, "pin directory: statfs " + bpffs + "/none: no such file"},
		{"below a file", create, file + "/beep", unix.ENOTDIR, "pin directory: stat " + file + "/beep: not a directory"},
		{"a name with a dot", create, bpffs + "/beep.d", fs.ErrPermission, "bpffs allows no dot in a name"},
		{"a reader of a name with a dot", read, bpffs + "/beep.d", fs.ErrPermission, "bpffs allows no dot in a name"},
		{"writable by all", create, open, nil, "pin directory: " + open + " can be written by other users (mode 0777): chmod 700 it"},
		{"below what another user made", create, foreign + "/beep", nil, "pin directory: " + foreign + " belongs to user 65534 and this process is user 0"},
		{"made by another user", create, foreign, nil, "pin directory: " + foreign + " belongs to user 65534 and this process is user 0"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := test.do(test.path)
			if err == nil || !strings.Contains(err.Error(), test.words) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v\nwant one line with %q", err, test.words)
			}
			if test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("error %v is not %v", err, test.is)
			}
		})
	}
	for _, refused := range []string{plain + "/beep", foreign + "/beep", open + "/maps"} {
		if _, err := os.Stat(refused); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s was made for a refused pin directory: %v", refused, err)
		}
	}
}

func TestLinkNames(t *testing.T) {
	dir := Dir{path: "/pins"}
	if got := dir.LinkPath(Link{Ifindex: 12, Direction: Egress}); got != "/pins/links/12_egress" {
		t.Errorf("path %s", got)
	}
	for name, want := range map[string]bool{
		"1_ingress": true, "12_egress": true,
		"": false, "x": false, "0_ingress": false, "-1_ingress": false, "+5_ingress": false, "05_ingress": false,
		"5": false, "5_": false, "5_xdp": false, "5_ingress_new": false, "5 _ingress": false,
	} {
		link, ok := parseLink(name)
		if ok != want || ok && link.name() != name {
			t.Errorf("%q: %+v, %v, want %v", name, link, ok, want)
		}
	}
}

func newMap(t *testing.T, name string) *ebpf.Map {
	t.Helper()
	m, err := ebpf.NewMap(&ebpf.MapSpec{Name: name, Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func TestListAndRemove(t *testing.T) {
	dir := mustCreate(t, mountBPFFS(t)+"/beep")
	// Any object serves as a pin here; that a link is a link is its own package's concern.
	for _, path := range []string{
		dir.MapPath("FRONT_META"), dir.MapPath("CONFIG"), dir.path + "/links/strange",
		dir.LinkPath(Link{10, Ingress}), dir.LinkPath(Link{9, Ingress}), dir.LinkPath(Link{9, Egress}),
	} {
		must(t, newMap(t, "pinned").Pin(path))
	}

	checkMaps(t, dir, "CONFIG", "FRONT_META")
	links, err := dir.Links()
	if diff := cmp.Diff([]Link{{9, Egress}, {9, Ingress}, {10, Ingress}}, links); err != nil || diff != "" {
		t.Errorf("links: %v (-want +got):\n%s", err, diff)
	}

	must(t, dir.Remove(dir.MapPath("FRONT_META")), dir.Remove(dir.MapPath("FRONT_META")), dir.Remove(dir.LinkPath(Link{9, Egress})))
	checkMaps(t, dir, "CONFIG")
	for _, outside := range []string{"/tmp/x", dir.path, dir.path + "/../x", dir.path + "2/x"} {
		if err := dir.Remove(outside); err == nil || !strings.Contains(err.Error(), "not below the pin directory "+dir.path) {
			t.Errorf("remove %s: %v", outside, err)
		}
	}
}

func checkMaps(t *testing.T, dir *Dir, want ...string) {
	t.Helper()
	got, err := dir.Maps()
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("maps: %v (-want +got):\n%s", err, diff)
	}
}

func TestEmptyDirectoryListsNothing(t *testing.T) {
	path := mountBPFFS(t) + "/bare"
	must(t, os.Mkdir(path, 0o700))
	dir, err := Open(path)
	must(t, err)
	links, err := dir.Links()
	if err != nil || len(links) != 0 {
		t.Errorf("links %v, %v", links, err)
	}
	checkMaps(t, dir)
}

// TestPublishReplaces opens the pin all the while: a reader must find the old map or the new one.
func TestPublishReplaces(t *testing.T) {
	dir := mustCreate(t, mountBPFFS(t)+"/beep")
	final, staged := dir.MapPath("FRONT_META"), dir.MapPath("FRONT_META_next")
	before, after := newMap(t, "before"), newMap(t, "after")
	// A map that believes itself at final would remove its successor's pin by Unpin.
	must(t, before.Pin(staged), dir.Publish(staged, final))

	stop, seen := make(chan struct{}), make(chan error, 1)
	go func() { seen <- readUntil(final, stop) }()
	for range 200 {
		for _, m := range []*ebpf.Map{after, before} {
			must(t, m.Unpin(), m.Pin(staged), dir.Publish(staged, final))
		}
	}
	close(stop)
	if err := <-seen; err != nil {
		t.Errorf("a reader found no map: %v", err)
	}
	checkMaps(t, dir, "FRONT_META")

	now, err := ebpf.LoadPinnedMap(final, nil)
	must(t, err)
	defer now.Close()
	info, err := now.Info()
	if err != nil || info.Name != "before" {
		t.Errorf("published map %q, %v; want the last one", info.Name, err)
	}
	if err := dir.Publish(staged, final); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("publishing nothing: %v", err)
	}
	if err := dir.Publish(final, "/tmp/x"); err == nil || !strings.Contains(err.Error(), "not below") {
		t.Errorf("publishing outside: %v", err)
	}
}

func readUntil(path string, stop chan struct{}) error {
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		m, err := ebpf.LoadPinnedMap(path, nil)
		if err != nil {
			return err
		}
		m.Close()
	}
}

func TestLock(t *testing.T) {
	dir := mustCreate(t, mountBPFFS(t)+"/beep")
	other := exec.Command(os.Args[0])
	other.Env = append(os.Environ(), lockEnv+"="+dir.path)
	stdin, err := other.StdinPipe()
	must(t, err)
	stdout, err := other.StdoutPipe()
	must(t, err, other.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || line != "locked: <nil>\n" {
		t.Fatalf("the other process: %q, %v", line, err)
	}

	_, err = dir.Lock()
	want := fmt.Sprintf("pin directory is in use: %s is locked by process %d (pinfs.test): stop it, or choose another --pin-dir",
		dir.path, other.Process.Pid)
	if !errors.Is(err, ErrLocked) || err.Error() != want {
		t.Errorf("second instance: %v\nwant %s", err, want)
	}

	// kill -9 must not leave the directory locked.
	must(t, other.Process.Kill())
	other.Wait() //nolint:errcheck // it was killed
	stdin.Close()
	lock, err := dir.Lock()
	must(t, err)
	if _, err := dir.Lock(); !errors.Is(err, ErrLocked) {
		t.Errorf("twice in one process: %v", err)
	}
	must(t, lock.Unlock())
	lock, err = dir.Lock()
	must(t, err, lock.Unlock())
}

func TestWhoPinsAndWhoFillsTheMapsHaveALockEach(t *testing.T) {
	path := mountBPFFS(t) + "/beep"
	must(t, os.Mkdir(path, 0o700))
	if _, err := (&Dir{path: path}).LockRows(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no maps are there: %v", err)
	}
	dir := mustCreate(t, path)
	pinner, err := dir.Lock()
	must(t, err)
	filler, err := dir.LockRows()
	must(t, err)
	if _, err := dir.LockRows(); !errors.Is(err, ErrRowsLocked) || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
		t.Errorf("a second controller: %v", err)
	}
	if pinner.Lost() || filler.Lost() {
		t.Error("lost, and the folders are there")
	}
	must(t, os.Remove(path+"/maps"))
	if !filler.Lost() {
		t.Error("held, and its folder is gone")
	}
	dir = mustCreate(t, path)
	if !filler.Lost() || pinner.Lost() {
		t.Error("held, and its folder is another one")
	}
	must(t, pinner.Unlock(), filler.Unlock())
	filler, err = dir.LockRows()
	must(t, err, filler.Unlock())
}

func TestLockSeesAReplacedDirectory(t *testing.T) {
	path := mountBPFFS(t) + "/beep"
	must(t, os.Mkdir(path, 0o700))
	file, err := os.Open(path)
	must(t, err)
	defer file.Close()
	must(t, os.Remove(path), os.Mkdir(path, 0o700))
	if err := checkSame(path, file, ErrLocked); !errors.Is(err, ErrLocked) {
		t.Errorf("error %v", err)
	}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
