// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// firstPort is the lowest of the client's ports. They are taken in turn, up to the last one there is, so that one comes again only long
// after its last connection was forgotten everywhere.
const firstPort = 1024

// connections are TCP connections of one way, one after the other, of which one thread holds both ends.
type connections struct {
	route
	listener int
	port     uint16 // of the last one
	made     int
	in       []byte
}

func openConnections(r route) (*connections, error) {
	listener, err := socket(r.pod, unix.SOCK_STREAM, r.at)
	if err != nil {
		return nil, err
	}
	if err := unix.Listen(listener, 64); err != nil {
		return nil, errors.Join(fmt.Errorf("listen on %s: %w", r.at, err), unix.Close(listener))
	}
	return &connections{route: r, listener: listener, in: make([]byte, 2)}, nil
}

// Close closes the listener.
func (c *connections) Close() error { return unix.Close(c.listener) }

// make makes so many connections, each to its end: the client connects, one byte goes each way, the client closes, the server closes.
func (c *connections) make(count int) error {
	for range count {
		if err := c.one(); err != nil {
			return fmt.Errorf("connection %d, from port %d: %w", c.made, c.port, err)
		}
	}
	return nil
}

func (c *connections) one() error {
	client, server, err := c.connect()
	if err != nil {
		return err
	}
	err = errors.Join(move(client, server, c.in[:1], c.in), move(server, client, c.in[:1], c.in), unix.Close(client))
	if n, last := read(server, c.in); last != nil || n != 0 {
		err = errors.Join(err, fmt.Errorf("%d bytes after the last one: %w", n, last))
	}
	return errors.Join(err, unix.Close(server))
}

// connect makes a connection from the next port, and checks whom the server sees.
func (c *connections) connect() (client, server int, err error) {
	c.port = max(c.port+1, firstPort)
	if client, err = c.dial(c.port); err != nil {
		return 0, 0, err
	}
	server, source, err := accept(c.listener)
	if err != nil {
		return 0, 0, errors.Join(err, unix.Close(client))
	}
	if err := c.check(addrOf(source)); err != nil {
		return 0, 0, errors.Join(err, unix.Close(client), unix.Close(server))
	}
	c.made++
	return client, server, nil
}

// dial connects from a port to the Service whose turn it is.
func (c *connections) dial(port uint16) (int, error) {
	fd, err := socket(c.client, unix.SOCK_STREAM, netip.AddrPortFrom(c.from, port))
	if err != nil {
		return 0, err
	}
	to := c.dialled[int(port)%len(c.dialled)]
	if err := connect(fd, to); err != nil {
		return 0, errors.Join(fmt.Errorf("from port %d: %w", port, err), unix.Close(fd))
	}
	return fd, nil
}

// move has all of out arrive, and in have room for it.
func move(from, to int, out, in []byte) error {
	if err := write(from, out); err != nil {
		return fmt.Errorf("send %d bytes: %w", len(out), err)
	}
	if n, err := read(to, in); err != nil || n != len(out) {
		return fmt.Errorf("received %d of %d bytes: %w", n, len(out), err)
	}
	return nil
}
