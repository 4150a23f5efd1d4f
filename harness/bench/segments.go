// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// segments are TCP connections that stay, of which one thread holds both ends: what goes over them are packets of established
// connections, half of them each way. Other than UDP, TCP leaves room before its packets for what may come on top of them, as do the
// drivers of network cards: no balancer has to copy one to make room.
type segments struct {
	clients, servers []int
	in, out          []byte
}

// openSegments makes so many connections.
func openSegments(c *connections, count int) (*segments, error) {
	s := &segments{out: make([]byte, smallest), in: make([]byte, smallest)}
	for range count {
		client, server, err := c.connect()
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.clients, s.servers = append(s.clients, client), append(s.servers, server)
		if err := errors.Join(
			unix.SetsockoptInt(client, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1),
			unix.SetsockoptInt(server, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)); err != nil {
			return nil, errors.Join(fmt.Errorf("connection that stays: %w", err), s.Close())
		}
	}
	return s, nil
}

// Close closes all connections, the clients' ends first.
func (s *segments) Close() error { return errors.Join(closeAll(s.clients), closeAll(s.servers)) }

// exchange has every connection carry so many segments each way, one after the other: each answers the one before, and tells that it
// has arrived.
func (s *segments) exchange(each int) error {
	for range each {
		for i, client := range s.clients {
			if err := errors.Join(move(client, s.servers[i], s.out, s.in), move(s.servers[i], client, s.out, s.in)); err != nil {
				return fmt.Errorf("connection %d: %w", i, err)
			}
		}
	}
	return nil
}
