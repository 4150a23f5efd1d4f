// SPDX-License-Identifier: Apache-2.0

package scene

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

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

// Moves waits until it has moved on for a second's worth. That the exchange ends before, or ctx, is an error.
func (h *Held) Moves(ctx context.Context) error {
	ask := time.NewTicker(20 * time.Millisecond)
	defer ask.Stop()
	for before := h.Moved(); h.Moved() < before+heldRate; {
		select {
		case err := <-h.done:
			return errors.Join(fmt.Errorf("the connection to %s has ended", h.RemoteAddr()), err)
		case <-ctx.Done():
			return fmt.Errorf("the connection to %s has moved %d bytes meanwhile: %w", h.RemoteAddr(), h.Moved()-before, context.Cause(ctx))
		case <-ask.C:
		}
	}
	return nil
}
