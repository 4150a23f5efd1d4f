// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/beep-lb/beep/harness/netns"
)

// chunk is how much a stream writes at once: enough for the kernel to build full GSO packets.
const chunk = 256 << 10

// Transfer is the result of one exchange over TCP.
type Transfer struct {
	Answer
	Up, Down int64 // bytes that arrived whole at the server, and at the client
	Took     time.Duration
}

// verdict is what the server says after a transfer, on the same connection.
type verdict struct {
	Answer
	Up      int64
	UpSum   []byte
	DownSum []byte
}

// ServeTCP starts a server for Exchange. It ends with its namespace, or when the returned function is called,
// which closes open connections too.
func ServeTCP(ns *netns.NS, name string, at netip.AddrPort) (stop func() error, err error) {
	listener, err := ns.Listen(at)
	if err != nil {
		return nil, err
	}
	s := &streamServer{name: name, conns: map[net.Conn]bool{}}
	s.running.Go(func() { s.accept(listener) })
	stop = sync.OnceValue(func() error {
		err := listener.Close()
		s.closeAll()
		s.running.Wait()
		return err
	})
	ns.OnClose(stop)
	return stop, nil
}

type streamServer struct {
	name    string
	running sync.WaitGroup

	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]bool
}

func (s *streamServer) accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			_ = conn.Close()
			return
		}
		s.conns[conn] = true
		s.mu.Unlock()
		s.running.Go(func() {
			s.serve(conn)
			s.mu.Lock()
			delete(s.conns, conn)
			s.mu.Unlock()
		})
	}
}

func (s *streamServer) closeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for conn := range s.conns {
		_ = conn.Close()
	}
}

// serve handles one exchange. A broken connection is for the client to report: it sees the same break.
func (s *streamServer) serve(conn net.Conn) {
	defer conn.Close()
	var sizes [2]int64
	if err := binary.Read(conn, binary.BigEndian, &sizes); err != nil {
		return
	}
	client := unmap(conn.RemoteAddr().(*net.TCPAddr).AddrPort())
	result := verdict{Answer: Answer{Server: s.name, Client: client}}
	var sending sync.WaitGroup
	var sendErr, receiveErr error
	sending.Go(func() { result.DownSum, sendErr = send(conn, sizes[1]) })
	result.Up, result.UpSum, receiveErr = receive(conn, sizes[0])
	sending.Wait()
	if sendErr != nil || receiveErr != nil {
		return
	}
	_ = json.NewEncoder(conn).Encode(result)
}

// Exchange moves up bytes to a ServeTCP server and down bytes back, both at once on one connection, and compares
// the checksums (SHA-256) that sender and receiver made of each direction. It fails if a byte is missing or
// changed, or if ctx ends first.
func Exchange(ctx context.Context, ns *netns.NS, at netip.AddrPort, up, down int64) (Transfer, error) {
	conn, err := ns.DialFrom(ctx, "tcp", netip.AddrPort{}, at)
	if err != nil {
		return Transfer{}, err
	}
	return ExchangeOn(ctx, conn, up, down)
}

// ExchangeOn is Exchange on a connection that the caller dialled, for instance from a source port of its own
// (netns.NS.DialFrom) or long before. It closes the connection.
func ExchangeOn(ctx context.Context, conn net.Conn, up, down int64) (transfer Transfer, err error) {
	stopWatch := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer func() {
		stopWatch()
		if err != nil {
			err = errors.Join(fmt.Errorf("exchange with tcp %s: %w", conn.RemoteAddr(), err), ctx.Err())
		}
		err = errors.Join(err, conn.Close())
	}()
	started := time.Now()
	if err := binary.Write(conn, binary.BigEndian, [2]int64{up, down}); err != nil {
		return Transfer{}, err
	}
	reader := bufio.NewReaderSize(conn, chunk)
	var sending sync.WaitGroup
	var upSum []byte
	var sendErr error
	sending.Go(func() { upSum, sendErr = send(conn, up) })
	got, downSum, receiveErr := receive(reader, down)
	if receiveErr != nil {
		_ = conn.SetDeadline(time.Unix(1, 0)) // the sender must not wait for a peer that is gone
	}
	sending.Wait()
	if err := errors.Join(sendErr, receiveErr); err != nil {
		return Transfer{}, fmt.Errorf("after %d of %d bytes down: %w", got, down, err)
	}
	var said verdict
	if err := json.NewDecoder(reader).Decode(&said); err != nil {
		return Transfer{}, fmt.Errorf("read the server's checksums: %w", err)
	}
	switch {
	case string(said.UpSum) != string(upSum):
		return Transfer{}, fmt.Errorf("checksum of %d bytes up differs: sent %x, arrived %x", up, upSum, said.UpSum)
	case string(said.DownSum) != string(downSum):
		return Transfer{}, fmt.Errorf("checksum of %d bytes down differs: sent %x, arrived %x", down, said.DownSum, downSum)
	}
	return Transfer{Answer: said.Answer, Up: said.Up, Down: got, Took: time.Since(started)}, nil
}

// send writes a stream in which no two chunks are equal, and returns its checksum.
func send(w io.Writer, size int64) ([]byte, error) {
	sum := sha256.New()
	block := make([]byte, chunk)
	var seed [32]byte
	binary.BigEndian.PutUint64(seed[:], rand.Uint64())
	if _, err := rand.NewChaCha8(seed).Read(block); err != nil {
		return nil, err
	}
	for sent := int64(0); sent < size; {
		binary.BigEndian.PutUint64(block, uint64(sent))
		part := block[:min(chunk, size-sent)]
		if _, err := w.Write(part); err != nil {
			return nil, fmt.Errorf("after %d of %d bytes sent: %w", sent, size, err)
		}
		sum.Write(part)
		sent += int64(len(part))
	}
	return sum.Sum(nil), nil
}

func receive(r io.Reader, size int64) (int64, []byte, error) {
	sum := sha256.New()
	n, err := io.CopyBuffer(struct{ io.Writer }{sum}, io.LimitReader(r, size), make([]byte, chunk))
	if err == nil && n < size {
		err = io.ErrUnexpectedEOF
	}
	return n, sum.Sum(nil), err
}
