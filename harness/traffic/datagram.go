// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/netns"
)

// The payload of a datagram, all numbers in network order: run 8 (random, one a SendUDP call), sequence 8,
// source 18 (zero on the way there; on the way back the IPv6 or v4-mapped address and port that the server saw),
// CRC-32C 4 of everything else, filler. An answer is as long as its question, so both directions meet the same MTU.
const (
	offsetSequence = 8
	offsetSource   = 16
	offsetPort     = 32
	offsetSum      = 34
	offsetFiller   = 38
)

// MinDatagram is the smallest UDP payload in bytes that carries what SendUDP checks.
const MinDatagram = offsetFiller

// maxDatagram is the largest UDP payload there is.
const maxDatagram = 65507

// socketBuffer in bytes is what both ends ask the kernel for: far above the largest window.
const socketBuffer = 4 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum covers the datagram without its own four bytes.
func checksum(datagram []byte) uint32 {
	sum := crc32.Update(0, castagnoli, datagram[:offsetSum])
	return crc32.Update(sum, castagnoli, datagram[offsetFiller:])
}

func seal(datagram []byte) {
	binary.BigEndian.PutUint32(datagram[offsetSum:], checksum(datagram))
}

func intact(datagram []byte) bool {
	return len(datagram) >= MinDatagram && binary.BigEndian.Uint32(datagram[offsetSum:]) == checksum(datagram)
}

// question fills a datagram; the filler differs with every sequence number.
func question(datagram []byte, run, sequence uint64) {
	binary.BigEndian.PutUint64(datagram, run)
	binary.BigEndian.PutUint64(datagram[offsetSequence:], sequence)
	clear(datagram[offsetSource:offsetFiller])
	for i := offsetFiller; i < len(datagram); i += 8 {
		var word [8]byte
		binary.BigEndian.PutUint64(word[:], rand.Uint64())
		copy(datagram[i:], word[:])
	}
	seal(datagram)
}

// answer turns a question into its answer.
func answer(datagram []byte, source netip.AddrPort) {
	address := source.Addr().As16()
	copy(datagram[offsetSource:], address[:])
	binary.BigEndian.PutUint16(datagram[offsetPort:], source.Port())
	seal(datagram)
}

func sourceIn(datagram []byte) netip.AddrPort {
	address := netip.AddrFrom16([16]byte(datagram[offsetSource:offsetPort]))
	return netip.AddrPortFrom(address.Unmap(), binary.BigEndian.Uint16(datagram[offsetPort:]))
}

// Echo is a running UDP server.
type Echo struct {
	conn    *net.UDPConn
	running sync.WaitGroup
	stop    func() error

	mu    sync.Mutex
	count Echoed
}

// Echoed counts what an Echo received.
type Echoed struct {
	Answered int // datagrams that were whole
	Foreign  int // datagrams that were damaged or are none of SendUDP's; they get no answer
}

// ServeUDP starts a server for SendUDP: it answers every whole datagram from the address it was sent to, with the
// source that it saw. Bind it to a specific address. It ends with its namespace or by Close.
func ServeUDP(ns *netns.NS, at netip.AddrPort) (*Echo, error) {
	conn, err := ns.ListenPacket(at)
	if err != nil {
		return nil, err
	}
	e := &Echo{conn: conn}
	if err := bigBuffers(conn); err != nil {
		return nil, errors.Join(fmt.Errorf("serve udp %s: %w", at, err), conn.Close())
	}
	e.running.Go(e.serve)
	e.stop = sync.OnceValue(func() error {
		err := conn.Close()
		e.running.Wait()
		return err
	})
	ns.OnClose(e.stop)
	return e, nil
}

// Close ends the server. It may be called twice.
func (e *Echo) Close() error { return e.stop() }

// Count is what came in so far.
func (e *Echo) Count() Echoed {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.count
}

func (e *Echo) serve() {
	datagram := make([]byte, maxDatagram)
	for {
		n, source, err := e.conn.ReadFromUDPAddrPort(datagram)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // an ICMP error that concerns one client
		}
		whole := intact(datagram[:n])
		e.mu.Lock()
		if whole {
			e.count.Answered++
		} else {
			e.count.Foreign++
		}
		e.mu.Unlock()
		if whole {
			answer(datagram[:n], unmap(source))
			_, _ = e.conn.WriteToUDPAddrPort(datagram[:n], source) // a refused answer shows as lost at the client
		}
	}
}

// bigBuffers asks by force, as root may exceed net.core.rmem_max.
func bigBuffers(conn *net.UDPConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var forced error
	err = raw.Control(func(fd uintptr) {
		forced = errors.Join(
			unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, socketBuffer),
			unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, socketBuffer))
	})
	if err := errors.Join(err, forced); err != nil {
		return fmt.Errorf("enlarge socket buffers: %w", err)
	}
	return nil
}
