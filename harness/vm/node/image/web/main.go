// SPDX-License-Identifier: Apache-2.0

// Command web is the server in the pods of a rig: it says who asked, and in which pod it runs, and what is posted it sends back.
// Invariant: a request that it has begun is answered; told to end, it goes on for the time that a load balancer needs to hear of it.
//
//	web [-listen :8080] [-linger 10s]
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/beep-lb/beep/harness/traffic"
)

func main() {
	listen := flag.String("listen", ":8080", "TCP address of the server")
	linger := flag.Duration("linger", 10*time.Second, "how long it takes new connections after SIGTERM")
	flag.Parse()
	name, err := os.Hostname()
	if err == nil {
		err = serve(*listen, name, *linger)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "web:", err)
		os.Exit(1)
	}
}

func serve(listen, name string, linger time.Duration) error {
	server := &http.Server{
		Addr: listen, ReadHeaderTimeout: 10 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				echo(w, r, name)
			} else {
				answer(w, r, name)
			}
		}),
	}
	told, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()
	select {
	case err := <-ended:
		return err
	case <-told.Done():
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(linger):
	}
	last, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := server.Shutdown(last); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// answer answers as the servers of the other rigs do, so that one client asks both.
func answer(w http.ResponseWriter, r *http.Request, name string) {
	client, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	// An error here means that the client has gone; it notices by itself.
	_ = json.NewEncoder(w).Encode(traffic.Answer{
		Server: name, Client: netip.AddrPortFrom(client.Addr().Unmap(), client.Port()),
	})
}

// most is what echo takes at once, in bytes.
const most = 16 << 20

// echo sends back what has been posted once all of it is here, and says in headers what answer says in its text.
func echo(w http.ResponseWriter, r *http.Request, name string) {
	posted, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Server", name)
	w.Header().Set("Client", r.RemoteAddr)
	w.Header().Set("Content-Type", "application/octet-stream")
	// As above.
	_, _ = w.Write(posted)
}
