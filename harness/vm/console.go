// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"io"
	"strings"
	"sync"
)

// console keeps what comes from a serial line, and wakes who waits for it.
type console struct {
	log io.Writer // gets a copy as it comes; nil for none

	mu    sync.Mutex
	kept  strings.Builder
	ended bool
	more  chan struct{} // closed at the next change
}

func newConsole() *console { return &console{more: make(chan struct{})} }

// Write is QEMU's output. It never fails: QEMU would end.
func (c *console) Write(p []byte) (int, error) {
	if c.log != nil {
		_, _ = c.log.Write(p)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range p {
		// A terminal wants the carriage return; who reads lines does not.
		if b != '\r' {
			c.kept.WriteByte(b)
		}
	}
	c.wake()
	return len(p), nil
}

// end says that no more will come.
func (c *console) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	c.wake()
}

func (c *console) wake() {
	close(c.more)
	c.more = make(chan struct{})
}

func (c *console) text() string {
	text, _, _ := c.state()
	return text
}

// state is all text so far, whether that is the end, and a channel that is closed when this is out of date.
func (c *console) state() (text string, ended bool, more <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kept.String(), c.ended, c.more
}
