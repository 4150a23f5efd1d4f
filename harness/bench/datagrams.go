// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// datagrams are UDP flows of one way, of which one thread holds both ends: it sends one datagram a flow and then receives as
// many, so that no figure has a wake-up or a change of threads in it, and every datagram has a known fate.
type datagrams struct {
	route
	clients  []int // connected sockets, one a flow
	server   int
	sources  []unix.Sockaddr // of each flow, as the server sees it
	sent, in []byte
}

// openDatagrams opens flows of datagrams of so many bytes of payload, at least 8.
func openDatagrams(r route, flows, size int) (*datagrams, error) {
	d := &datagrams{route: r, sources: make([]unix.Sockaddr, flows), sent: make([]byte, size), in: make([]byte, size+1)}
	var err error
	if d.server, err = socket(r.pod, unix.SOCK_DGRAM, r.at); err != nil {
		return nil, err
	}
	for i := range flows {
		fd, err := d.dial(i)
		if err != nil {
			return nil, errors.Join(err, d.Close())
		}
		d.clients = append(d.clients, fd)
	}
	return d, nil
}

func (d *datagrams) dial(flow int) (int, error) {
	fd, err := socket(d.client, unix.SOCK_DGRAM, netip.AddrPortFrom(d.from, 0))
	if err != nil {
		return 0, err
	}
	to := d.dialled[flow%len(d.dialled)]
	if err := connect(fd, to); err != nil {
		return 0, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// Close closes all sockets.
func (d *datagrams) Close() error { return closeAll(append(d.clients, d.server)) }

// touch has every flow ask and be answered once, and checks whom the server sees. Both balancers take a flow for established only
// after that.
func (d *datagrams) touch() error {
	for flow, fd := range d.clients {
		if err := write(fd, d.sent); err != nil {
			return fmt.Errorf("flow %d asks: %w", flow, err)
		}
		n, source, err := receiveFrom(d.server, d.in, 0)
		if err != nil || n != len(d.sent) {
			return fmt.Errorf("flow %d: the server received %d of %d bytes: %w", flow, n, len(d.sent), err)
		}
		if err := d.check(addrOf(source)); err != nil {
			return fmt.Errorf("flow %d: %w", flow, err)
		}
		d.sources[flow] = source
		if err := unix.Sendto(d.server, d.sent, 0, source); err != nil {
			return fmt.Errorf("flow %d is answered: %w", flow, err)
		}
		if n, err := read(fd, d.in); err != nil || n != len(d.sent) {
			return fmt.Errorf("flow %d: the client received %d of %d bytes: %w", flow, n, len(d.sent), err)
		}
	}
	return nil
}

// toPod sends so many datagrams by each flow, one after the other, and sees that the server has each of them once.
func (d *datagrams) toPod(each int) error {
	var sequence, got uint64
	for range each {
		var due uint64
		for _, fd := range d.clients {
			binary.NativeEndian.PutUint64(d.sent, sequence)
			if err := write(fd, d.sent); err != nil {
				return fmt.Errorf("send datagram %d to the pod: %w", sequence, err)
			}
			due += sequence
			sequence++
		}
		for range d.clients {
			if err := d.receive(d.server, &got); err != nil {
				return err
			}
		}
		if got -= due; got != 0 {
			return fmt.Errorf("datagrams up to %d: one arrived twice and another did not", sequence)
		}
	}
	return d.silent(d.server)
}

// fromPod sends so many datagrams by each flow back to the client.
func (d *datagrams) fromPod(each int) error {
	var sequence, got uint64
	for range each {
		var due uint64
		for _, source := range d.sources {
			binary.NativeEndian.PutUint64(d.sent, sequence)
			if err := unix.Sendto(d.server, d.sent, 0, source); err != nil {
				return fmt.Errorf("send datagram %d to the client: %w", sequence, err)
			}
			due += sequence
			sequence++
		}
		for _, fd := range d.clients {
			if err := d.receive(fd, &got); err != nil {
				return err
			}
		}
		if got -= due; got != 0 {
			return fmt.Errorf("datagrams up to %d: one arrived twice and another did not", sequence)
		}
	}
	for _, fd := range d.clients {
		if err := d.silent(fd); err != nil {
			return err
		}
	}
	return nil
}

// receive adds the number of the next datagram to a sum.
func (d *datagrams) receive(fd int, sum *uint64) error {
	n, err := read(fd, d.in)
	if err != nil || n != len(d.sent) {
		return fmt.Errorf("received %d of %d bytes: %w", n, len(d.sent), err)
	}
	*sum += binary.NativeEndian.Uint64(d.in)
	return nil
}

// silent sees that nothing is left to receive.
func (d *datagrams) silent(fd int) error {
	switch n, _, err := receiveFrom(fd, d.in, unix.MSG_DONTWAIT); {
	case err == nil:
		return fmt.Errorf("a datagram of %d bytes too many", n)
	case !errors.Is(err, unix.EAGAIN):
		return err
	}
	return nil
}
