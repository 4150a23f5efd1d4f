// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// path is where a controller answers, and parameter what is asked for.
	path      = "/explain"
	parameter = "name"
	// answerLimit bounds what is read of an answer, in bytes.
	answerLimit = 64 << 20
	// dialTimeout bounds the look for somebody who answers.
	dialTimeout = time.Second
)

// Listen makes the socket at which a controller answers; only its own user may ask. One that a controller before left
// is replaced; one that another controller answers at is an error.
func Listen(socket string) (net.Listener, error) {
	fault := func(err error) error { return fmt.Errorf("--explain-socket %s: %w", socket, err) }
	if conn, err := dial(context.Background(), socket); err == nil {
		conn.Close()
		return nil, fault(errors.New("another process answers there: name another, or another --ready-file"))
	}
	switch info, err := os.Lstat(socket); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fault(err)
	case info.Mode().Type() != fs.ModeSocket:
		return nil, fault(errors.New("is there and no socket: name another"))
	default:
		if err := os.Remove(socket); err != nil {
			return nil, fault(err)
		}
	}
	var listener net.Listener
	err := near(socket, func(name string) (err error) {
		// The umask is the process's: this is for its start.
		defer unix.Umask(unix.Umask(0o177))
		listener, err = net.Listen("unix", name)
		return err
	})
	if err != nil {
		return nil, fault(err)
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false) // by a name that may be another's by then
	return &removed{Listener: listener, socket: socket}, nil
}

// removed is a listener whose socket goes with it.
type removed struct {
	net.Listener
	socket string
	once   sync.Once
	fault  error
}

// Close removes the socket, too. A second time it does nothing: the name may be another's by then.
func (r *removed) Close() error {
	r.once.Do(func() {
		r.fault = r.Listener.Close()
		if err := os.Remove(r.socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
			r.fault = errors.Join(r.fault, err)
		}
	})
	return r.fault
}

// near calls use with a name of the socket that fits into the 107 bytes that the kernel takes (unix(7)), however long
// its path is.
func near(socket string, use func(name string) error) error {
	dir, err := os.Open(filepath.Dir(socket))
	if err != nil {
		return err
	}
	defer dir.Close()
	return use(fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(socket)))
}

func dial(ctx context.Context, socket string) (conn net.Conn, err error) {
	err = near(socket, func(name string) (err error) {
		conn, err = (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "unix", name)
		return err
	})
	return conn, err
}

// Handler answers with what explain says. Its error is the answer, too: that of an unknown name, or that nothing is
// known yet.
func Handler(explain func(ctx context.Context, name string) (Answer, error)) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
		answer, err := explain(r.Context(), r.URL.Query().Get(parameter))
		if err != nil {
			status := http.StatusServiceUnavailable
			if errors.Is(err, ErrUnknown) {
				status = http.StatusNotFound
			}
			http.Error(w, err.Error(), status)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(answer) //nolint:errcheck // who asked has gone
	})
	return mux
}

// Ask asks the controller at the socket. The error is its answer, or says that none answers.
func Ask(ctx context.Context, socket, name string) (Answer, error) {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, socket) }}}
	query := url.Values{parameter: {name}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://beep-controller"+path+"?"+query.Encode(), nil)
	if err != nil {
		return Answer{}, err
	}
	response, err := client.Do(request)
	if err != nil {
		var to *url.Error
		if errors.As(err, &to) {
			err = to.Err // the address in it is made up
		}
		return Answer{}, fmt.Errorf("no controller answers at %s: %w: run it where beep-controller runs (its container), "+
			"and with its --ready-file or --explain-socket", socket, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, answerLimit))
	if err != nil {
		return Answer{}, fmt.Errorf("answer of the controller: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return Answer{}, errors.New(strings.TrimSpace(string(body)))
	}
	var answer Answer
	if err := json.Unmarshal(body, &answer); err != nil {
		return Answer{}, fmt.Errorf("answer of the controller: %w", err)
	}
	return answer, nil
}
