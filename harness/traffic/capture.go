// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/netns"
)

// maxFrame in bytes is the largest frame a device shows: a BIG TCP packet with its headers.
const maxFrame = 512 << 10

// The ancillary data of a frame: struct timespec on a 64-bit machine, and struct tpacket_auxdata (packet(7)).
const (
	timespecSize = 16
	auxdataSize  = 20
)

// captureBuffer in bytes is the socket's, large enough for a burst while the reader waits for a processor.
const captureBuffer = 32 << 20

// CaptureLimits bound what a capture writes.
type CaptureLimits struct {
	Snap  int   // bytes kept of a frame; 0 is all. The kernel copies no more, so a small one is cheap
	Total int64 // bytes kept, after which the capture takes no more frames; 0 is no limit
}

// Captured counts what a capture saw.
type Captured struct {
	Packets int  // frames written, of both directions
	Dropped int  // frames that did not fit the socket's buffer
	Full    bool // CaptureLimits.Total was reached
}

// Capture is a running capture of one device. It shows what tcpdump would: incoming frames before, and outgoing
// ones after, the tc programs; GSO packets whole; and outgoing checksums still to be filled in by the device.
// (pcapgo.EthernetHandle is not used because it can neither be stopped without loss nor given a larger buffer.)
type Capture struct {
	socket  *os.File
	raw     syscall.RawConn
	file    *os.File
	buffer  *bufio.Writer
	pcap    *pcapgo.Writer
	limits  CaptureLimits
	written int64
	count   Captured
	err     error
	done    chan struct{}
	once    sync.Once
}

// StartCapture writes every frame that passes a device of the namespace into a pcap file, until Stop or the end
// of the namespace. When it returns, no later frame is missed.
func StartCapture(ns *netns.NS, device, path string, limits CaptureLimits) (*Capture, error) {
	link, err := ns.Netlink().LinkByName(device)
	if err != nil {
		return nil, fmt.Errorf("capture %s in namespace %s: %w", device, ns.Name(), err)
	}
	kind := layers.LinkTypeEthernet
	if link.Attrs().EncapType != "ether" {
		kind = layers.LinkTypeRaw
	}
	c := &Capture{limits: limits, done: make(chan struct{})}
	if c.socket, err = captureSocket(ns, link.Attrs().Index, cmp.Or(limits.Snap, maxFrame)); err != nil {
		return nil, fmt.Errorf("capture %s in namespace %s: %w", device, ns.Name(), err)
	}
	if c.raw, err = c.socket.SyscallConn(); err != nil {
		return nil, errors.Join(err, c.socket.Close())
	}
	if c.file, err = os.Create(path); err != nil {
		return nil, errors.Join(err, c.socket.Close())
	}
	c.buffer = bufio.NewWriter(c.file)
	c.pcap = pcapgo.NewWriterNanos(c.buffer)
	if err := c.pcap.WriteFileHeader(uint32(cmp.Or(limits.Snap, maxFrame)), kind); err != nil {
		return nil, errors.Join(fmt.Errorf("write %s: %w", path, err), c.file.Close(), c.socket.Close())
	}
	go c.run()
	ns.OnClose(func() error { _, err := c.Stop(); return err })
	return c, nil
}

// captureSocket is bound before it gets a protocol, so it never holds another device's frames.
func captureSocket(ns *netns.NS, index, snap int) (socket *os.File, err error) {
	err = ns.Do(func() error {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			return fmt.Errorf("open a packet socket: %w", err)
		}
		err = errors.Join(
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, captureBuffer),
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
			unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_AUXDATA, 1),
			keep(fd, snap),
			unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: networkOrder(unix.ETH_P_ALL), Ifindex: index}))
		if err != nil {
			return errors.Join(fmt.Errorf("set up a packet socket: %w", err), unix.Close(fd))
		}
		socket = os.NewFile(uintptr(fd), "packet socket")
		return nil
	})
	return socket, err
}

// keep attaches the socket filter that keeps so many bytes of every frame; 0 refuses all.
func keep(fd, snap int) error {
	program := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: uint32(snap)}}
	return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &program[0]})
}

// Stop writes what has arrived so far, closes the file, and returns the counts. It may be called twice.
func (c *Capture) Stop() (Captured, error) {
	c.once.Do(func() {
		err := c.socket.SetReadDeadline(time.Unix(1, 0)) // wakes the reader, which then drains the socket
		<-c.done
		c.err = errors.Join(err, c.err, c.countDropped(), c.socket.Close(), c.buffer.Flush(), c.file.Close())
		if c.err != nil {
			c.err = fmt.Errorf("capture into %s: %w", c.file.Name(), c.err)
		}
	})
	return c.count, c.err
}

func (c *Capture) run() {
	defer close(c.done)
	frame, control := make([]byte, maxFrame), make([]byte, unix.CmsgSpace(timespecSize)+unix.CmsgSpace(auxdataSize))
	var last error
	read := func(fd uintptr) (again bool) {
		last = c.readOne(int(fd), frame, control)
		return !errors.Is(last, unix.EAGAIN)
	}
	for c.raw.Read(read) == nil && c.keepGoing(last) {
	}
	for last = nil; last == nil; { // the deadline of Stop: take what is queued
		if err := c.raw.Control(func(fd uintptr) { last = c.readOne(int(fd), frame, control) }); err != nil {
			return
		}
	}
	c.keepGoing(last)
}

// keepGoing remembers an error that ends the capture. A device that goes down or away (ENETDOWN) does not: it may
// be recreated, and Stop is the only end.
func (c *Capture) keepGoing(err error) bool {
	if err == nil || errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.ENETDOWN) || errors.Is(err, unix.EINTR) {
		return true
	}
	c.err = err
	return false
}

func (c *Capture) readOne(fd int, frame, control []byte) error {
	n, controlLength, _, _, err := unix.Recvmsg(fd, frame, control, unix.MSG_DONTWAIT)
	if err != nil {
		return err
	}
	if c.count.Full {
		return nil // it was queued before the socket refused frames
	}
	info := frameInfo(control[:controlLength])
	info.CaptureLength, info.Length = n, max(n, info.Length)
	if err := c.pcap.WritePacket(info, frame[:n]); err != nil {
		return err
	}
	c.count.Packets++
	c.written += int64(n)
	if c.limits.Total != 0 && c.written >= c.limits.Total {
		c.count.Full = true
		return keep(fd, 0)
	}
	return nil
}

// frameInfo reads the kernel's time stamp, by which captures of several wires can be merged in order, and the
// frame's length before it was cut.
func frameInfo(control []byte) gopacket.CaptureInfo {
	info := gopacket.CaptureInfo{Timestamp: time.Now()}
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return info
	}
	for _, message := range messages {
		switch {
		case message.Header.Level == unix.SOL_SOCKET && message.Header.Type == unix.SO_TIMESTAMPNS:
			var stamp struct{ Seconds, Nanoseconds int64 }
			if _, err := binary.Decode(message.Data, binary.NativeEndian, &stamp); err == nil {
				info.Timestamp = time.Unix(stamp.Seconds, stamp.Nanoseconds)
			}
		case message.Header.Level == unix.SOL_PACKET && message.Header.Type == unix.PACKET_AUXDATA:
			var aux struct{ Status, Length uint32 } // its first two members
			if _, err := binary.Decode(message.Data, binary.NativeEndian, &aux); err == nil {
				info.Length = int(aux.Length)
			}
		}
	}
	return info
}

func (c *Capture) countDropped() error {
	var failed error
	err := c.raw.Control(func(fd uintptr) {
		stats, err := unix.GetsockoptTpacketStats(int(fd), unix.SOL_PACKET, unix.PACKET_STATISTICS)
		if err != nil {
			failed = fmt.Errorf("read the capture's statistics: %w", err)
			return
		}
		c.count.Dropped = int(stats.Drops)
	})
	return errors.Join(err, failed)
}

// ReadCapture reads a pcap file of a stopped capture whole. Its packets decode when their layers are asked for.
func ReadCapture(path string) (packets []gopacket.Packet, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	reader, err := pcapgo.NewReader(bufio.NewReader(file))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	for {
		data, info, err := reader.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return packets, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read %s after %d packets: %w", path, len(packets), err)
		}
		packet := gopacket.NewPacket(data, reader.LinkType(), gopacket.Lazy)
		packet.Metadata().CaptureInfo = info
		packets = append(packets, packet)
	}
}
