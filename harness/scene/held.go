// SPDX-License-Identifier: Apache-2.0

package scene

import (
	"context"
	"net"

	"github.com/beep-lb/beep/harness/traffic"
)

const (
	// heldRate is what a held connection moves a second and direction, in bytes.
	heldRate = 64 << 10
	// heldBytes is more than it moves before its spec ends or releases it.
	heldBytes = 64 << 20
)

// Held is a TCP connection to a stream server that is under way until it is closed.
type Held struct {
	*Brake
	done chan error
}

// Hold begins an exchange on a connection.
func Hold(ctx context.Context, conn net.Conn) *Held {
	h := &Held{NewBrake(conn, heldRate), make(chan error, 1)}
	go func() {
		_, err := traffic.ExchangeOn(ctx, h.Brake, heldBytes, heldBytes)
		h.done <- err
	}()
	return h
}

// Done receives what the exchange ended with, once it has ended.
func (h *Held) Done() <-chan error { return h.done }

// Advanced says whether it has moved on for a second's worth since it had moved so many bytes.
func (h *Held) Advanced(before int64) bool { return h.Moved() >= before+heldRate }
