// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// smallest is the payload of a small datagram in bytes.
const smallest = 64

// Block is what one way costs over every stand in turn, round by round.
type Block struct {
	Way
	Total int // Services in all
	// Flows is how many UDP flows, and how many TCP connections that stay, a sample has; Each is how many datagrams a flow sends one way,
	// four times as many as a connection sends segments; Size is a datagram's payload in bytes.
	Flows, Each, Size int
	// Connections is how many TCP connections a sample has.
	Connections int
	// Rounds is how many are written down, and Limit when no further one begins; Least are made all the same. One more
	// comes before them all and is forgotten.
	Rounds, Least int
	Limit         time.Duration

	visits func(ends) ([]sample, error) // what is done on one stand in one round
}

// name is a benchmark's.
func (b *Block) name(what string, variant Variant) string {
	return fmt.Sprintf("%s/%s/services=%d/variant=%s", what, b.Way, b.Total, variant)
}

// ends are the open sockets of a block on one stand.
type ends struct {
	stand *Stand
	flows *datagrams
	conns *connections
	stay  *segments
}

// sample is a line of a round that is not written yet.
type sample struct {
	name   string
	work   int
	values []Value
}

// Run measures CPU time and writes it down.
func (b *Block) Run(ctx context.Context, stands []*Stand, out *Record) error {
	m, err := newMeter()
	if err != nil {
		return err
	}
	b.visits = func(e ends) ([]sample, error) { return b.spend(m, e) }
	return pinned(func() error { return b.run(ctx, stands, out) })
}

// spend has a stand do the work of a round, and says what CPU time it took.
func (b *Block) spend(m *meter, e ends) (samples []sample, err error) {
	if err := e.flows.touch(); err != nil {
		return nil, err
	}
	for _, work := range b.kinds(e) {
		spent, err := m.measure(work.do)
		if err != nil {
			return nil, err
		}
		samples = append(samples, sample{b.name(work.what, e.stand.Variant), work.count, spent.values(work.count)})
	}
	return samples, nil
}

// kind is one kind of work.
type kind struct {
	what  string
	count int // of packets, or of connections
	do    func() error
}

// exchanges is how many segments each connection carries one way in a sample.
func (b *Block) exchanges() int { return max(1, b.Each/4) }

// kinds are the kinds of work of a block on a stand whose flows were touched.
func (b *Block) kinds(e ends) []kind {
	return []kind{
		{"packet/dir=in", b.Flows * b.Each, func() error { return e.flows.toPod(b.Each) }},
		{"packet/dir=out", b.Flows * b.Each, func() error { return e.flows.fromPod(b.Each) }},
		{"segment", 2 * b.Flows * b.exchanges(), func() error { return e.stay.exchange(b.exchanges()) }},
		{"connection", b.Connections, func() error { return e.conns.make(b.Connections) }},
	}
}

// values are the figures of so much work.
func (s Spent) values(work int) []Value {
	return []Value{{float64(s.CPU) / float64(work), "cpu-ns/op"}, {float64(s.Wall) / float64(work), "ns/op"}}
}

// open opens the sockets of the block on a stand.
func (b *Block) open(stand *Stand) (ends, error) {
	r := stand.route(b.Way)
	flows, err := openDatagrams(r, b.Flows, b.Size)
	if err != nil {
		return ends{}, err
	}
	conns, err := openConnections(r)
	if err != nil {
		return ends{}, errors.Join(err, flows.Close())
	}
	stay, err := openSegments(conns, b.Flows)
	if err != nil {
		return ends{}, errors.Join(err, flows.Close(), conns.Close())
	}
	return ends{stand, flows, conns, stay}, nil
}

func (e ends) close() error { return errors.Join(e.flows.Close(), e.stay.Close(), e.conns.Close()) }

func (b *Block) run(ctx context.Context, stands []*Stand, out *Record) (err error) {
	var all []ends
	defer func() {
		for _, e := range all {
			err = errors.Join(err, e.close())
		}
	}()
	for _, stand := range stands {
		e, err := b.open(stand)
		if err != nil {
			return err
		}
		all = append(all, e)
	}
	var broken error // what could not be opened again
	return rounds{b.Rounds, b.Least, b.Limit}.run(ctx, len(all), out, func(i int) ([]sample, error) {
		if broken != nil {
			return nil, broken
		}
		samples, err := b.visits(all[i])
		if err == nil {
			return samples, nil
		}
		err = fmt.Errorf("stand %s, %s: %w", all[i].stand.Variant, b.Way, err)
		// What is left on the way must not meet the next round.
		err = errors.Join(err, all[i].close())
		if all[i], broken = b.open(all[i].stand); broken != nil {
			all = slices.Delete(all, i, i+1)
		}
		return nil, err
	})
}
