// SPDX-License-Identifier: Apache-2.0

package lima

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/beep-lb/beep/harness/checkout"
	"github.com/beep-lb/beep/harness/vm/node"
)

// machine is what machines of both kinds do alike.
type machine interface {
	Run(ctx context.Context, command string) (string, error)
	RunWith(ctx context.Context, command string, stdin io.Reader) (string, error)
	Copy(ctx context.Context, path string) (string, error)
}

var _, _ machine = (*Machine)(nil), (*node.Node)(nil)

// fakeLimactl writes its arguments to $LOG, a line a call, keeps the template that a machine is made by and what comes on its
// standard input, prints $NAMES for a list and $SAYS for a shell, and fails at a shell if $FAILS is set.
const fakeLimactl = `#!/bin/sh
line=
for arg; do line="$line|$arg"; done
printf '%s\n' "${line#|}" >>"$LOG"
case $1 in
list) printf '%s' "$NAMES" ;;
start)
	for last; do :; done
	[ ! -f "$last" ] || cp "$last" "$KEEP/$(basename "$last")" ;;
shell)
	cat >"$KEEP/stdin"
	echo 'a word on the other stream' >&2
	[ -z "$FAILS" ] || { echo "$FAILS" >&2; exit 3; }
	printf '%s' "$SAYS" ;;
esac
`

// fake is a limactl on the PATH that does nothing.
type fake struct {
	t    *testing.T
	dir  string
	keep string
}

func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{t: t, dir: t.TempDir(), keep: t.TempDir()}
	if err := os.WriteFile(filepath.Join(f.dir, "limactl"), []byte(fakeLimactl), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", f.dir+":"+os.Getenv("PATH"))
	t.Setenv("LOG", filepath.Join(f.dir, "log"))
	t.Setenv("KEEP", f.keep)
	return f
}

// calls are the command lines so far, their words separated by bars.
func (f *fake) calls() []string {
	f.t.Helper()
	text, err := os.ReadFile(filepath.Join(f.dir, "log"))
	if err != nil {
		f.t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

func (f *fake) kept(name string) string {
	f.t.Helper()
	text, err := os.ReadFile(filepath.Join(f.keep, name))
	if err != nil {
		f.t.Fatal(err)
	}
	return string(text)
}

func TestCheck(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if err := Check(); !errors.Is(err, ErrMissing) {
		t.Errorf("without limactl: %v", err)
	}
	if err := Rig(t.Context(), "smoke", io.Discard); !errors.Is(err, ErrMissing) {
		t.Errorf("a rig without limactl: %v", err)
	}
	newFake(t)
	want := ErrRoot
	if os.Geteuid() != 0 {
		want = nil
	}
	if err := Check(); !errors.Is(err, want) {
		t.Errorf("user %d: %v", os.Geteuid(), err)
	}
}

func TestStart(t *testing.T) {
	f := newFake(t)
	t.Setenv("NAMES", "default\nbeep-other\n")
	if _, err := Start(t.Context(), "rigs", "rig"); err != nil {
		t.Fatal(err)
	}
	calls := f.calls()
	if len(calls) != 2 || calls[0] != "list|--quiet" || !strings.HasPrefix(calls[1], "start|--tty=false|--name=beep-rigs|/") {
		t.Errorf("a new one: %q", calls)
	}
	t.Setenv("NAMES", "beep-rigs\n")
	if _, err := Start(t.Context(), "rigs", "rig"); err != nil {
		t.Fatal(err)
	}
	if calls := f.calls(); calls[len(calls)-1] != "start|--tty=false|beep-rigs" {
		t.Errorf("one that is there: %q", calls)
	}
	if _, err := Start(t.Context(), "new", "nothing"); err == nil {
		t.Error("a template that is not there")
	}
}

func TestTemplates(t *testing.T) {
	for _, name := range []string{"rig", "k3s"} {
		f := newFake(t)
		if _, err := Start(t.Context(), "new", name); err != nil {
			t.Fatal(err)
		}
		var template struct {
			Base      string `json:"base"`
			Plain     bool   `json:"plain"`
			Networks  []struct{ Lima string }
			Provision []struct{ Mode, Script string }
		}
		if err := yaml.Unmarshal([]byte(f.kept(name+".yaml")), &template); err != nil {
			t.Fatal(err)
		}
		if template.Base == "" || !template.Plain || len(template.Networks) != 1 || template.Networks[0].Lima != "user-v2" {
			t.Errorf("%s: %+v", name, template)
		}
		for _, step := range template.Provision {
			if step.Mode != "system" || !strings.HasPrefix(step.Script, "#!/bin/sh\nset -eu\n") || strings.Contains(step.Script, "    UNIT") {
				t.Errorf("%s: %s", name, step.Script)
			}
		}
	}
}

func TestRun(t *testing.T) {
	f := newFake(t)
	m := &Machine{"beep-rigs"}
	t.Setenv("SAYS", "hello")
	out, err := m.RunWith(t.Context(), `echo "$HOME" 'x'`, strings.NewReader("some input"))
	if err != nil || out != "hello" || f.kept("stdin") != "some input" {
		t.Errorf("%q, %v", out, err)
	}
	if want := `shell|--workdir=/|beep-rigs|sudo|--set-home|sh|-c|echo "$HOME" 'x'`; f.calls()[0] != want {
		t.Errorf("%s, want %s", f.calls()[0], want)
	}
	t.Setenv("FAILS", "no such file")
	if _, err := m.Run(t.Context(), "false"); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a command that fails: %v", err)
	}
	if err := m.Delete(t.Context()); err != nil || !slices.Contains(f.calls(), "delete|--force|beep-rigs") {
		t.Errorf("%v, %q", err, f.calls())
	}
}

func TestRigIsMadeInTheMachine(t *testing.T) {
	f := newFake(t)
	t.Setenv("SAYS", "PASS\n")
	var out strings.Builder
	if err := rig(t.Context(), "dualstack", &out); err != nil {
		t.Fatal(err)
	}
	calls := f.calls()
	want := "shell|--workdir=/|beep-rigs|sudo|--set-home|sh|-c|cd /root/beep && CI=true GOTOOLCHAIN=auto make VERSION=lima deps rig-dualstack"
	if calls[len(calls)-1] != want || !strings.HasSuffix(out.String(), "PASS\n") {
		t.Errorf("%q, %q", calls, out.String())
	}
	t.Setenv("FAILS", "make: *** [rig-dualstack] Error 1")
	if err := rig(t.Context(), "dualstack", io.Discard); err == nil {
		t.Error("a rig that failed passed")
	}
	for _, bad := range []string{"", "../x", "a b", "x;y", "-n"} {
		if err := Rig(t.Context(), bad, io.Discard); err == nil || errors.Is(err, ErrRoot) {
			t.Errorf("%q is a rig: %v", bad, err)
		}
	}
}

func TestMakeAsksTheProvider(t *testing.T) {
	root, err := checkout.Root()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ provider, want string }{
		{"lima", "go run ./harness/vm/lima/rig dualstack\n"},
		{"", "./rigs/dualstack"},
		{"qemu", "RIG_PROVIDER is qemu: want lima, or nothing"},
	} {
		out, err := exec.Command("make", "-C", root, "-n", "GO=go", "rig-dualstack", "RIG_PROVIDER="+tt.provider).CombinedOutput()
		if !strings.Contains(string(out), tt.want) || (err != nil) != (tt.provider == "qemu") {
			t.Errorf("%s: %v\n%s", tt.provider, err, out)
		}
	}
}

func TestCopyTree(t *testing.T) {
	f := newFake(t)
	dir := t.TempDir()
	for _, name := range []string{"Makefile", "src/bin/x.go", "bin/beep", "build/big"} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	m := &Machine{"beep-rigs"}
	if err := m.CopyTree(t.Context(), dir, "/root/beep", "./bin", "./build"); err != nil {
		t.Fatal(err)
	}
	var files []string
	for archive := tar.NewReader(strings.NewReader(f.kept("stdin"))); ; {
		header, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			files = append(files, header.Name)
		}
	}
	slices.Sort(files)
	if want := []string{"./Makefile", "./src/bin/x.go"}; !slices.Equal(files, want) {
		t.Errorf("%q, want %q", files, want)
	}
	if err := m.CopyTree(t.Context(), filepath.Join(dir, "nothing"), "/root/beep"); err == nil || !strings.Contains(err.Error(), "pack") {
		t.Errorf("a directory that is not there: %v", err)
	}
}

func TestK3s(t *testing.T) {
	f := newFake(t)
	t.Setenv("SAYS", "True True")
	program := filepath.Join(t.TempDir(), "k3s")
	if err := os.WriteFile(program, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := launch(ctx, program)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Import(ctx, program), c.Close(ctx)); err != nil {
		t.Fatal(err)
	}
	calls := strings.Join(f.calls(), "\n")
	for _, want := range []string{
		"--name=beep-k3s-server", "--name=beep-k3s-agent", "--name=beep-k3s-client",
		"echo ROLE=server >/etc/default/k3s", "echo ROLE=agent >/etc/default/k3s",
		"|beep-k3s-agent|sudo|--set-home|sh|-c|k3s ctr images import /root/k3s",
		"delete|--force|beep-k3s-server", "delete|--force|beep-k3s-agent", "delete|--force|beep-k3s-client",
	} {
		if !strings.Contains(calls, want) {
			t.Errorf("no %q in\n%s", want, calls)
		}
	}
	if strings.Contains(calls, "beep-k3s-client|sudo") {
		t.Errorf("the client gets k3s:\n%s", calls)
	}

	t.Setenv("SAYS", "True False")
	ctx, cancel = context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if c, err := launch(ctx, program); c == nil || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a node that is not ready: %v", err)
	}
}
