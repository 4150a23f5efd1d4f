// SPDX-License-Identifier: Apache-2.0

// Package traffic holds the real servers and clients of the rigs (HTTP, TCP streams, UDP datagrams, raw frames,
// captures), whose sockets live in a namespace. Invariant: every byte that a transfer reports as moved was
// compared at its end, and every server reports the source address that its own kernel saw.
package traffic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"github.com/beep-lb/beep/harness/netns"
)

// Answer is what a server says about one request.
type Answer struct {
	Server string         // the name that the server was started with
	Client netip.AddrPort // the source address and port that the server's socket saw
}

// ServeHTTP starts an HTTP/1.1 server that answers every request with an Answer in JSON. It ends with its
// namespace, or when the returned function is called.
func ServeHTTP(ns *netns.NS, name string, at netip.AddrPort) (stop func() error, err error) {
	listener, err := ns.Listen(at)
	if err != nil {
		return nil, err
	}
	server := &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			client, err := netip.ParseAddrPort(r.RemoteAddr)
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			// An error here means that the client has gone; it notices by itself.
			_ = json.NewEncoder(w).Encode(Answer{Server: name, Client: unmap(client)})
		}),
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // always http.ErrServerClosed or the listener's end
	}()
	stop = func() error {
		err := server.Close()
		<-done
		return err
	}
	ns.OnClose(stop)
	return stop, nil
}

// HTTPClient is an ordinary client whose connections start in the namespace. It keeps connections alive, so one
// client that asks twice uses one connection; CloseIdleConnections ends them. URLs must have literal addresses.
func HTTPClient(ns *netns.NS) *http.Client {
	client := &http.Client{Transport: &http.Transport{DialContext: ns.DialContext}}
	ns.OnClose(func() error { client.CloseIdleConnections(); return nil })
	return client
}

// Get asks a ServeHTTP server once, on a connection of its own.
func Get(ctx context.Context, ns *netns.NS, at netip.AddrPort) (Answer, error) {
	return Ask(ctx, &http.Client{Transport: &http.Transport{DialContext: ns.DialContext, DisableKeepAlives: true}}, at)
}

// Ask asks a ServeHTTP server by the given client.
func Ask(ctx context.Context, client *http.Client, at netip.AddrPort) (answer Answer, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at.String()+"/", nil)
	if err != nil {
		return Answer{}, fmt.Errorf("ask http %s: %w", at, err)
	}
	response, err := client.Do(request)
	if err != nil {
		return Answer{}, fmt.Errorf("ask http %s: %w", at, err)
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		return Answer{}, fmt.Errorf("ask http %s: status %s", at, response.Status)
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return Answer{}, fmt.Errorf("read the answer of http %s: %w", at, err)
	}
	return answer, nil
}

func unmap(ap netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port()) }
