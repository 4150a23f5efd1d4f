// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/src/explain"
)

// serve answers at a socket until the test ends.
func serve(t *testing.T, socket string, answer func(context.Context, string) (explain.Answer, error)) {
	t.Helper()
	listener, err := explain.Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: explain.Handler(answer)}
	go server.Serve(listener) //nolint:errcheck // it ends with the test
	t.Cleanup(func() { server.Close() })
}

func TestASocketWithALongPath(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("d", 120))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "ready.sock")
	f := facts()
	serve(t, socket, func(_ context.Context, name string) (explain.Answer, error) {
		if name == "early" {
			return explain.Answer{}, errors.New("nothing is known yet")
		}
		return explain.Explain(*f, name)
	})
	info, err := os.Stat(socket)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v: others may ask", info.Mode(), err)
	}
	answer, err := explain.Ask(t.Context(), socket, "shop/web")
	if err != nil || answer.Service == nil || len(answer.Service.Endpoints) != 2 {
		t.Errorf("%+v, %v", answer, err)
	}
	for name, want := range map[string]string{"early": "nothing is known yet", "x&name=web": `no Node is called "x&name=web"`} {
		if _, err := explain.Ask(t.Context(), socket, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhoseSocketItIs(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	if _, err := explain.Ask(t.Context(), socket, "web"); err == nil ||
		!strings.Contains(err.Error(), fmt.Sprintf("no controller answers at %s: ", socket)) {
		t.Error(err)
	}
	listener, err := explain.Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := explain.Listen(socket); err == nil || !strings.Contains(err.Error(), "another process answers there") {
		t.Errorf("a second one: %v", err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(socket); !os.IsNotExist(err) {
		t.Errorf("the socket outlives its listener: %v", err)
	}

	// One that a process left that was killed.
	if err := os.WriteFile(socket, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := explain.Listen(socket); err == nil || !strings.Contains(err.Error(), "is there and no socket") {
		t.Errorf("a file: %v", err)
	}
	if err := os.Remove(socket); err != nil {
		t.Fatal(err)
	}
	leaveSocket(t, socket)
	listener, err = explain.Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
}

// leaveSocket makes a socket that nobody listens at.
func leaveSocket(t *testing.T, socket string) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: socket}); err != nil {
		t.Fatal(err)
	}
}
