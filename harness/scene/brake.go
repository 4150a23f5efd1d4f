// SPDX-License-Identifier: Apache-2.0

package scene

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Brake is a connection that moves slowly until it is released, so that a transfer is under way for certain while a
// spec does something to the nodes. It slows both directions of its own side; TCP's windows slow the other side.
type Brake struct {
	net.Conn
	perSecond int64
	moved     atomic.Int64
	released  chan struct{}
	once      sync.Once
}

// NewBrake holds each direction to so many bytes a second.
func NewBrake(conn net.Conn, perSecond int64) *Brake {
	return &Brake{Conn: conn, perSecond: perSecond, released: make(chan struct{})}
}

// Release ends the limit. It may be called twice.
func (b *Brake) Release() { b.once.Do(func() { close(b.released) }) }

// Moved is the number of bytes so far, of both directions.
func (b *Brake) Moved() int64 { return b.moved.Load() }

func (b *Brake) Read(p []byte) (int, error) {
	n, err := b.Conn.Read(p)
	b.pay(n)
	return n, err
}

func (b *Brake) Write(p []byte) (int, error) {
	n, err := b.Conn.Write(p)
	b.pay(n)
	return n, err
}

// pay waits as long as n bytes take.
func (b *Brake) pay(n int) {
	b.moved.Add(int64(n))
	select {
	case <-b.released:
	case <-time.After(time.Duration(int64(n) * int64(time.Second) / b.perSecond)):
	}
}
