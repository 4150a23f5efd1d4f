// SPDX-License-Identifier: Apache-2.0

package scene

import (
	"context"
	"net/netip"
	"time"

	"github.com/beep-lb/beep/harness/traffic"
)

// Transfer is a TCP exchange under way, held by its Brake.
type Transfer struct {
	*Brake
	result traffic.Transfer
	err    error
	done   chan struct{}
}

// Exchange connects from a host to a ServeTCP server and begins to move so many bytes each way, held to perSecond
// bytes until Release. The test fails if it cannot connect; everything else is told by Wait.
func (s *Scene) Exchange(ctx context.Context, host string, at netip.AddrPort, up, down, perSecond int64) *Transfer {
	s.tb.Helper()
	conn, err := s.NS(host).DialFrom(ctx, "tcp", netip.AddrPort{}, at)
	if err != nil {
		s.tb.Fatalf("%v", err)
	}
	t := &Transfer{Brake: NewBrake(conn, perSecond), done: make(chan struct{})}
	go func() {
		defer close(t.done)
		t.result, t.err = traffic.ExchangeOn(ctx, t.Brake, up, down)
	}()
	return t
}

// Ended says whether the transfer is over, well or not.
func (t *Transfer) Ended() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// Wait releases the brake and returns what came of the transfer, as ExchangeOn does.
func (t *Transfer) Wait() (traffic.Transfer, error) {
	t.Release()
	<-t.done
	return t.result, t.err
}

// Stream is a flow of UDP datagrams under way.
type Stream struct {
	tally  traffic.Tally
	err    error
	cancel context.CancelFunc
	done   chan struct{}
}

// Stream sends datagrams from a host to a ServeUDP server until Stop.
func (s *Scene) Stream(ctx context.Context, host string, at netip.AddrPort, size int, every time.Duration) *Stream {
	ctx, cancel := context.WithCancel(ctx)
	stream := &Stream{cancel: cancel, done: make(chan struct{})}
	s.tb.Cleanup(cancel)
	go func() {
		defer close(stream.done)
		stream.tally, stream.err = traffic.SendUDP(ctx, s.NS(host), at, traffic.Datagrams{Size: size, Every: every})
	}()
	return stream
}

// Stop ends the stream and returns its tally. What was under way at that moment is neither received nor lost.
func (s *Stream) Stop() (traffic.Tally, error) {
	s.cancel()
	<-s.done
	return s.tally, s.err
}
