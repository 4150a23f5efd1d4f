// SPDX-License-Identifier: Apache-2.0

package flood_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"
	"unsafe"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/packet"
	"github.com/beep-lb/beep/harness/topo"
)

// batch is how many frames one system call sends.
const batch = 256

// spoofer sends frames out of the router's device on the nodes' LAN, many a system call.
type spoofer struct {
	fd     int
	frames [batch][]byte
	parts  [batch]unix.Iovec
	heads  [batch]mmsghdr
	random *rand.Rand
}

// mmsghdr is struct mmsghdr of sendmmsg(2).
type mmsghdr struct {
	header unix.Msghdr
	len    uint32
	_      [4]byte
}

// newSpoofer opens the device, for copies of the templates in turn.
func (r rig) newSpoofer(templates ...[]byte) *spoofer {
	GinkgoHelper()
	s := &spoofer{random: rand.New(rand.NewPCG(1, 2))}
	link, err := r.NS("router").Netlink().LinkByName("eth1")
	Expect(err).NotTo(HaveOccurred())
	Expect(r.NS("router").Do(func() (err error) {
		if s.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		// Bound to no protocol: it receives nothing.
		return unix.Bind(s.fd, &unix.SockaddrLinklayer{Ifindex: link.Attrs().Index})
	})).To(Succeed())
	DeferCleanup(unix.Close, s.fd)
	for i := range s.frames {
		s.frames[i] = append([]byte(nil), templates[i%len(templates)]...)
		s.parts[i].Base = &s.frames[i][0]
		s.parts[i].SetLen(len(s.frames[i]))
		s.heads[i].header.Iov = &s.parts[i]
		s.heads[i].header.Iovlen = 1
	}
	return s
}

// send sends the whole batch.
func (s *spoofer) send() error {
	for done := 0; done < batch; {
		n, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&s.heads[done])), uintptr(batch-done), 0, 0, 0)
		if errno == unix.ENOBUFS || errno == unix.EAGAIN {
			continue
		}
		if errno != 0 {
			return fmt.Errorf("sendmmsg: %w", errno)
		}
		done += int(n)
	}
	return nil
}

// frame is a packet from the router to node-a.
func (r rig) frame(parts ...packet.Part) []byte {
	GinkgoHelper()
	from, err := r.NS("router").Netlink().LinkByName("eth1")
	Expect(err).NotTo(HaveOccurred())
	to, err := r.NS("node-a").Netlink().LinkByName("eth0")
	Expect(err).NotTo(HaveOccurred())
	eth := packet.Eth(from.Attrs().HardwareAddr.String(), to.Attrs().HardwareAddr.String())
	return packet.Build(append([]packet.Part{eth}, parts...)...)
}

// from4 and from6 are the first spoofed sources.
const (
	from4 = "198.51.100.128"
	from6 = "2001:db8:c:0:8000::"
)

// ip is an IP header from a spoofed source to node-a.
func (r rig) ip(family topo.Families) packet.IPPacket {
	if family == topo.V6 {
		return packet.IP(from6, r.Addr("node-a", family).String())
	}
	return packet.IP(from4, r.Addr("node-a", family).String())
}

// source gives a frame a random spoofed source address and port, and returns where its transport header is.
func (s *spoofer) source(b []byte) int {
	random := s.random.Uint64()
	l4 := 14 + 40
	if b[14]>>4 == 4 {
		b[29] = 128 | byte(random>>32)&127
		l4 = 14 + 20
	} else {
		binary.BigEndian.PutUint32(b[34:], uint32(random>>32))
	}
	binary.BigEndian.PutUint16(b[l4:], uint16(random)|1024)
	return l4
}

// mend makes the checksums of an unfragmented TCP or UDP frame right.
func mend(b []byte) {
	l4, pseudo, proto := 14+40, b[22:54], b[20]
	if b[14]>>4 == 4 {
		l4, pseudo, proto = 14+20, b[26:34], b[23]
		b[24], b[25] = 0, 0
		binary.BigEndian.PutUint16(b[24:], ^fold(sum(b[14:34])))
	}
	at := l4 + 16
	if proto == unix.IPPROTO_UDP {
		at = l4 + 6
	}
	b[at], b[at+1] = 0, 0
	total := sum(pseudo) + sum(b[l4:]) + uint32(proto) + uint32(len(b)-l4)
	check := ^fold(total)
	if check == 0 {
		check = 0xffff
	}
	binary.BigEndian.PutUint16(b[at:], check)
}

func sum(b []byte) (total uint32) {
	for ; len(b) > 1; b = b[2:] {
		total += uint32(b[0])<<8 | uint32(b[1])
	}
	if len(b) > 0 {
		total += uint32(b[0]) << 8
	}
	return total
}

func fold(total uint32) uint16 {
	for total>>16 != 0 {
		total = total&0xffff + total>>16
	}
	return uint16(total)
}

// flood is what came of one.
type flood struct {
	arrived uint64
	took    time.Duration
	busy    float64 // of all CPUs of the machine
}

func (f flood) String() string {
	return fmt.Sprintf("%d packets arrived in %.1f s, %.0f a second, CPUs busy %.0f %%",
		f.arrived, f.took.Seconds(), float64(f.arrived)/f.took.Seconds(), 100*f.busy)
}

// flood sends varied frames until so many have arrived at node-a and the others, if there are any, have tried often
// enough. They begin when a tenth has arrived and every table that can be filled is full.
func (r rig) flood(s *spoofer, count uint64, vary func([]byte), others *bystanders) flood {
	GinkgoHelper()
	before, began, busy := r.received(), time.Now(), busyTime()
	for rounds := 0; ; rounds++ {
		for _, b := range s.frames {
			vary(b)
		}
		Expect(s.send()).To(Succeed())
		if rounds%16 != 0 {
			continue
		}
		f := flood{arrived: r.received() - before, took: time.Since(began)}
		Expect(f.took).To(BeNumerically("<", 3*time.Minute), "the flood takes too long: %d arrived", f.arrived)
		if f.arrived >= count/10 {
			others.start()
		}
		if f.arrived >= count && others.ended() {
			now := busyTime()
			f.busy = (now.busy - busy.busy) / (now.all - busy.all)
			return f
		}
	}
}

// received is how many packets node-a's device has received.
func (r rig) received() uint64 {
	GinkgoHelper()
	link, err := r.NS("node-a").Netlink().LinkByName("eth0")
	Expect(err).NotTo(HaveOccurred())
	return link.Attrs().Statistics.RxPackets
}
