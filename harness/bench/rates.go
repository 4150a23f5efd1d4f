// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// Rates is what a way can do, over every stand in turn: these figures have the threads of client and server on different CPUs, and
// what the machine does besides, in them.
type Rates struct {
	Way
	Total int           // Services in all
	Lasts time.Duration // each measurement
	// Load is how many requests a second the latency is measured under.
	Load          int
	Rounds, Least int // as in Block
	Limit         time.Duration
}

// The sizes in bytes: of a chunk of a stream, of a request and its answer, and of the last datagram of a flood, which no other has.
const (
	chunk    = 128 << 10
	request  = 64
	farewell = 1
)

// kept is how many connections carry the requests, and pairs how many clients and servers make connections at once.
const kept, pairs = 16, 2

// flood has one thread send datagrams as fast as it can by all flows, and returns how many a second another one received.
func (d *datagrams) flood(lasts time.Duration) (perSecond float64, err error) {
	var received, began = 0, time.Now()
	var group errgroup.Group
	over := make(chan struct{})
	group.Go(func() error {
		defer close(over)
		in := make([]byte, len(d.sent))
		for {
			n, err := read(d.server, in)
			if err != nil {
				return fmt.Errorf("receive a flood: %w", err)
			}
			if n == farewell {
				return nil
			}
			received++
		}
	})
	for time.Since(began) < lasts && err == nil {
		for _, fd := range d.clients {
			if err = write(fd, d.sent); err != nil {
				break
			}
		}
	}
	took := time.Since(began)
	// It may find the server's buffer full.
	for again := time.NewTicker(time.Millisecond); ; {
		err = errors.Join(err, write(d.clients[0], d.sent[:farewell]))
		select {
		case <-over:
			again.Stop()
			return float64(received) / took.Seconds(), errors.Join(err, group.Wait(), d.drain())
		case <-again.C:
		}
	}
}

// drain takes what is left of a flood's end.
func (d *datagrams) drain() error {
	for {
		if _, _, err := receiveFrom(d.server, d.in, unix.MSG_DONTWAIT); err != nil {
			if errors.Is(err, unix.EAGAIN) {
				return nil
			}
			return err
		}
	}
}

// stream sends bytes over one connection as fast as it can, and returns how many a second arrived.
func (c *connections) stream(lasts time.Duration) (perSecond float64, err error) {
	client, server, err := c.connect()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, unix.Close(server)) }()
	var group errgroup.Group
	received := 0
	group.Go(func() error {
		for in := make([]byte, chunk); ; {
			n, err := read(server, in)
			if err != nil || n == 0 {
				return err
			}
			received += n
		}
	})
	began, out, sent := time.Now(), make([]byte, chunk), 0
	for time.Since(began) < lasts && err == nil {
		err = again(func() (err error) {
			n, err := unix.Write(client, out) // of a large one, a signal may let a part through
			sent += max(0, n)
			return err
		})
	}
	err = errors.Join(err, unix.Close(client), group.Wait())
	if err == nil && received != sent {
		err = fmt.Errorf("a stream of %d bytes arrived as %d", sent, received)
	}
	return float64(received) / time.Since(began).Seconds(), err
}

// latency asks over connections that stay, so many times a second whether or not the answers keep up, and returns how long after
// their moment the answers came, sorted.
func (c *connections) latency(lasts time.Duration, perSecond int) (all []time.Duration, err error) {
	var (
		clients, servers []int
		group            errgroup.Group
	)
	defer func() { err = errors.Join(err, closeAll(clients), group.Wait(), closeAll(servers)) }()
	for range kept {
		client, server, err := c.connect()
		if err != nil {
			return nil, err
		}
		clients, servers = append(clients, client), append(servers, server)
		group.Go(func() error { return echo(server) })
	}
	out, in := make([]byte, request), make([]byte, request)
	began := time.Now()
	for i := range int(lasts.Seconds() * float64(perSecond)) {
		due := began.Add(time.Duration(i) * time.Second / time.Duration(perSecond))
		time.Sleep(time.Until(due))
		fd := clients[i%kept]
		if err := write(fd, out); err != nil {
			return nil, fmt.Errorf("request %d: %w", i, err)
		}
		if n, err := read(fd, in); err != nil || n != request {
			return nil, fmt.Errorf("request %d is answered by %d of %d bytes: %w", i, n, request, err)
		}
		all = append(all, time.Since(due))
	}
	slices.Sort(all)
	return all, nil
}

// echo answers requests until the client closes.
func echo(fd int) error {
	for in := make([]byte, request); ; {
		n, err := read(fd, in)
		if err != nil || n == 0 {
			return err
		}
		if err := write(fd, in[:n]); err != nil {
			return err
		}
	}
}

// rate makes connections on several threads, each to its end, and returns how many a second.
func (c *connections) rate(lasts time.Duration) (perSecond float64, err error) {
	var (
		clients, servers errgroup.Group
		made             atomic.Int64
		began            = time.Now()
	)
	for range pairs {
		servers.Go(func() error { return c.serve() })
	}
	for i := range pairs {
		clients.Go(func() error {
			// Every other port, and none of those that single connections have used last.
			for n := i; time.Since(began) < lasts; n += pairs {
				if err := c.ask(c.port + uint16(n) + 1); err != nil {
					return err
				}
				made.Add(1)
			}
			return nil
		})
	}
	err = clients.Wait()
	perSecond = float64(made.Load()) / time.Since(began).Seconds()
	c.port += uint16(pairs * made.Load())
	// One connection more for each server, that says nothing: it ends.
	for i := range pairs {
		fd, last := c.dial(c.port + uint16(i) + 1)
		if last == nil {
			last = unix.Close(fd)
		}
		err = errors.Join(err, last)
	}
	c.port += pairs
	return perSecond, errors.Join(err, servers.Wait())
}

// ask makes one connection as a client.
func (c *connections) ask(port uint16) error {
	fd, err := c.dial(max(port, firstPort))
	if err != nil {
		return err
	}
	in := make([]byte, 1)
	if err = write(fd, in); err == nil {
		_, err = read(fd, in)
	}
	return errors.Join(err, unix.Close(fd))
}

// serve accepts and answers connections until one says nothing.
func (c *connections) serve() error {
	for in := make([]byte, 2); ; {
		fd, source, err := accept(c.listener)
		if err != nil {
			return err
		}
		n, err := read(fd, in)
		if err == nil && n > 0 {
			err = errors.Join(c.check(addrOf(source)), write(fd, in[:n]))
			_, end := read(fd, in)
			err = errors.Join(err, end)
		}
		if err = errors.Join(err, unix.Close(fd)); err != nil || n == 0 {
			return err
		}
	}
}

// Run measures and writes down, round by round, as Block.Run.
func (r *Rates) Run(ctx context.Context, stands []*Stand, out *Record) error {
	b := Block{Way: r.Way, Total: r.Total, Flows: 32, Size: smallest, Rounds: r.Rounds, Least: r.Least, Limit: r.Limit}
	b.visits = func(e ends) (samples []sample, err error) {
		name := func(what string) string { return b.name(what, e.stand.Variant) }
		if err := e.flows.touch(); err != nil {
			return nil, err
		}
		packets, err := e.flows.flood(r.Lasts)
		if err != nil {
			return nil, err
		}
		bytes, err := e.conns.stream(r.Lasts)
		if err != nil {
			return nil, err
		}
		made, err := e.conns.rate(r.Lasts)
		if err != nil {
			return nil, err
		}
		waits, err := e.conns.latency(r.Lasts, r.Load)
		if err != nil {
			return nil, err
		}
		return []sample{
			{name("flood"), 1, []Value{{packets, "packets/s"}}},
			{name("stream"), 1, []Value{{bytes / 1e6, "MB/s"}}},
			{name("connections"), 1, []Value{{made, "connections/s"}}},
			{name("request"), len(waits), []Value{
				{float64(waits[len(waits)/2]), "p50-ns"}, {float64(waits[len(waits)*99/100]), "p99-ns"},
			}},
		}, nil
	}
	return b.run(ctx, stands, out)
}
