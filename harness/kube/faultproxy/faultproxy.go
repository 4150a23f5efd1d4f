// SPDX-License-Identifier: Apache-2.0

// Package faultproxy stands between an API server and its clients and fails on purpose: it holds answers and the events of
// watches back, answers in the API server's place, ends watches, and is not there at all. Invariant: without a fault
// every client has its own identity and its own answers, byte for byte, and what is held back comes whole and in order.
//
// A spec uses it like this:
//
//	proxy, err := faultproxy.Launch(control, 7001)
//	kubeconfig, err := control.KubeconfigAt(proxy.Addr(), "beep-node-a", "beep:controllers")
//	held := proxy.Hold(faultproxy.Match{Verb: "watch", Resource: "services"})
//	… the client does not hear of what changes …
//	held.Lift()
package faultproxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"k8s.io/client-go/rest"

	"github.com/beep-lb/beep/harness/kube"
)

const (
	// handshake bounds what a client may take to say who it is.
	handshake = 30 * time.Second
	// bindDeadline bounds how long the port of a proxy that was cut may be taken still.
	bindDeadline = 10 * time.Second
)

// Proxy is one way to the API server. Its methods may be called from any goroutine, but not Cut and Mend at once.
type Proxy struct {
	control *kube.ControlPlane
	at      netip.AddrPort
	tls     *tls.Config
	forward *httputil.ReverseProxy

	mu      sync.Mutex
	server  *http.Server // nil while it is cut
	conns   map[net.Conn]bool
	ways    map[string]http.RoundTripper // to the API server, by user
	faults  []*Fault
	seen    []Request
	running map[*call]bool
}

// call is a request under way.
type call struct {
	Request
	index  int // in Proxy.seen
	cancel context.CancelFunc
}

type callKey struct{}

// Launch starts a proxy on a port (host order) of the control plane's own address. It ends with Close.
func Launch(control *kube.ControlPlane, port uint16) (*Proxy, error) {
	p := &Proxy{
		control: control, at: netip.AddrPortFrom(kube.Server.Addr(), port),
		conns: map[net.Conn]bool{}, ways: map[string]http.RoundTripper{}, running: map[*call]bool{},
	}
	certificate, err := control.ServingCertificate(p.at.Addr())
	if err != nil {
		return nil, fmt.Errorf("fault proxy: %w", err)
	}
	config, err := control.Config("nobody")
	if err != nil {
		return nil, fmt.Errorf("fault proxy: %w", err)
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(config.CAData)
	p.tls = &tls.Config{Certificates: []tls.Certificate{certificate}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients}
	target := &url.URL{Scheme: "https", Host: kube.Server.String()}
	p.forward = &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:      p,
		FlushInterval:  -1, // an event is on its way when it is there
		ModifyResponse: p.hold,
		// An API server that does not answer is one for the client too.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     log.New(io.Discard, "", 0),
	}
	return p, p.Mend()
}

// Addr is where clients find the proxy: see kube.ControlPlane.KubeconfigAt.
func (p *Proxy) Addr() netip.AddrPort { return p.at }

// Mend has a proxy that was cut serve again.
func (p *Proxy) Mend() error {
	p.mu.Lock()
	serving := p.server != nil
	p.mu.Unlock()
	if serving {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), bindDeadline)
	defer cancel()
	listener, err := backoff.Retry(ctx, func() (net.Listener, error) { return p.control.NS().Listen(p.at) },
		backoff.WithBackOff(backoff.NewConstantBackOff(50*time.Millisecond)))
	if err != nil {
		return fmt.Errorf("fault proxy: %w", err)
	}
	server := &http.Server{
		Handler: http.HandlerFunc(p.serve), TLSConfig: p.tls.Clone(), ReadHeaderTimeout: handshake,
		ConnState: p.note, ErrorLog: log.New(io.Discard, "", 0),
	}
	p.mu.Lock()
	p.server = server
	p.mu.Unlock()
	go server.ServeTLS(listener, "", "") //nolint:errcheck // it ends by Cut or Close, and then says so
	return nil
}

// Cut takes the API server away: connections are reset, and new ones refused, until Mend.
func (p *Proxy) Cut() error {
	p.mu.Lock()
	server := p.server
	p.server = nil
	conns := p.conns
	p.conns = map[net.Conn]bool{}
	p.mu.Unlock()
	if server == nil {
		return nil
	}
	for conn := range conns {
		reset(conn)
	}
	if err := server.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("fault proxy: cut: %w", err)
	}
	return nil
}

// Close ends the proxy. It may be called twice.
func (p *Proxy) Close() error { return p.Cut() }

// reset closes a connection with a TCP reset, as a machine does that has lost its memory. That the other side was
// faster is no failure.
func reset(conn net.Conn) {
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

func (p *Proxy) note(conn net.Conn, state http.ConnState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch state {
	case http.StateNew:
		p.conns[conn] = true
	case http.StateClosed, http.StateHijacked:
		delete(p.conns, conn)
	}
}

// serve takes one request on.
func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	c := &call{Request: read(r), cancel: cancel}
	p.mu.Lock()
	c.index = len(p.seen)
	p.seen = append(p.seen, c.Request)
	p.running[c] = true
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.running, c)
	}()
	if failure := p.failure(c.Request); failure != nil {
		p.answered(c, failure.Code)
		write(w, failure)
		return
	}
	p.forward.ServeHTTP(w, r.WithContext(context.WithValue(ctx, callKey{}, c)))
}

func (p *Proxy) answered(c *call, code int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen[c.index].Code = int(code)
}

// hold keeps an answer back while a fault says so: all of it, or, once a watch has begun, its events.
func (p *Proxy) hold(response *http.Response) error {
	ctx := response.Request.Context()
	c := ctx.Value(callKey{}).(*call) // serve put it there
	p.answered(c, int32(response.StatusCode))
	if c.Verb == "watch" {
		response.Body = &gate{ReadCloser: response.Body, wait: func() error { return p.wait(ctx, c.Request) }}
		return nil
	}
	return p.wait(ctx, c.Request)
}

// gate lets what was read pass only after a wait.
type gate struct {
	io.ReadCloser
	wait func() error
}

// Read returns the next piece when it may pass.
func (g *gate) Read(b []byte) (int, error) {
	n, err := g.ReadCloser.Read(b)
	if waited := g.wait(); waited != nil {
		return 0, waited
	}
	return n, err
}

// RoundTrip sends a request on as the user who sent it.
func (p *Proxy) RoundTrip(request *http.Request) (*http.Response, error) {
	way, err := p.way(request.TLS.PeerCertificates[0])
	if err != nil {
		return nil, err
	}
	return way.RoundTrip(request)
}

// way is the connection to the API server of whoever shows this certificate.
func (p *Proxy) way(client *x509.Certificate) (http.RoundTripper, error) {
	user, groups := client.Subject.CommonName, client.Subject.Organization
	p.mu.Lock()
	defer p.mu.Unlock()
	key := user + "\x00" + fmt.Sprint(groups)
	if way := p.ways[key]; way != nil {
		return way, nil
	}
	config, err := p.control.Config(user, groups...)
	if err != nil {
		return nil, err
	}
	way, err := rest.TransportFor(config)
	if err == nil {
		p.ways[key] = way
	}
	return way, err
}

// Requests are those so far that match, in the order in which they came; also those that no API server has seen.
func (p *Proxy) Requests(of Match) []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.seen), func(r Request) bool { return !of.matches(r) })
}

// Break ends the watches under way that match, in the middle; their clients may begin others at once.
func (p *Proxy) Break(of Match) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.running {
		if c.Verb == "watch" && of.matches(c.Request) {
			c.cancel()
		}
	}
}
