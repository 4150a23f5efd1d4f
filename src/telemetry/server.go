// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Who scrapes is on the network: none may hold a connection for long, and the end of the daemon waits for none.
const (
	headerTimeout = 5 * time.Second
	writeTimeout  = 30 * time.Second
	idleTimeout   = 2 * time.Minute
	stopTimeout   = time.Second
)

// Server answers on one address.
type Server struct {
	listener net.Listener
	server   http.Server
}

// Listen takes the address, in the network namespace of the calling thread; requests wait until Serve. An address
// that is in use, or that is no address of this node, is an error at once.
func Listen(addr string) (*Server, error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("serve metrics: %w: choose another --metrics-addr, or an empty one for none", err)
	}
	return At(listener), nil
}

// At is a server at a listener of any kind, which it closes.
func At(listener net.Listener) *Server {
	return &Server{listener: listener, server: http.Server{
		ReadHeaderTimeout: headerTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
	}}
}

// Addr is the address with the port that was taken.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Serve answers requests until ctx ends, then finishes those that run, for a second at most.
func (s *Server) Serve(ctx context.Context, handler http.Handler) error {
	s.server.Handler = handler
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		deadline, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		if s.server.Shutdown(deadline) != nil {
			s.server.Close()
		}
	})
	err := s.server.Serve(s.listener)
	if !stop() {
		<-stopped
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve at %s: %w", s.Addr(), err)
}
