// SPDX-License-Identifier: Apache-2.0

// Package trace is the rig of `beep trace`: what it tells of real packets on both nodes of a tunnel. Invariant: every
// spec starts the tool as an operator does, and reads what it prints.
package trace_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/beep"
	"github.com/beep-lb/beep/harness/netns"
	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/tcx"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
	"github.com/beep-lb/beep/src/model"
)

func TestTrace(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "rig trace")
}

var _ = AfterSuite(func() { require.Report(GinkgoWriter) })

var _ = It("is drawn in its README", func() { scene.CheckReadme(GinkgoT(), plan()) })

// limit ends whatever a spec waits for.
const limit = 30 * time.Second

// The ports of the fronts, on every node: near is served by pod-a1, far by pod-b1, nobody by none. The pods listen on
// 1000 more.
const (
	near   = 8001
	far    = 8002
	nobody = 8003
)

func plan() topo.Plan { return topo.TwoNodes(topo.Options{Families: topo.V4}) }

type rig struct{ *scene.Scene }

func newRig() rig {
	r := rig{scene.New(GinkgoT(), plan(), true)}
	for pod, port := range map[string]uint16{"pod-a1": near + 1000, "pod-b1": far + 1000} {
		at := netip.AddrPortFrom(r.Addr(pod, topo.V4), port)
		_, err := traffic.ServeTCP(r.NS(pod), pod, at)
		Expect(err).NotTo(HaveOccurred())
		_, err = traffic.ServeUDP(r.NS(pod), at)
		Expect(err).NotTo(HaveOccurred())
	}
	var services []beep.Service
	for _, proto := range []model.Proto{model.TCP, model.UDP} {
		services = append(services,
			beep.Service{Proto: proto, Port: near, TargetPort: near + 1000, Pods: []string{"pod-a1"}},
			beep.Service{Proto: proto, Port: far, TargetPort: far + 1000, Pods: []string{"pod-b1"}},
			beep.Service{Proto: proto, Port: nobody})
	}
	r.Beep(beep.Options{Services: services})
	return r
}

// front is a port of node-a, which the specs dial.
func (r rig) front(port uint16) netip.AddrPort {
	return netip.AddrPortFrom(r.Addr("node-a", topo.V4), port)
}

func (r rig) client(port uint16) netip.AddrPort {
	return netip.AddrPortFrom(r.Addr("client", topo.V4), port)
}

func (r rig) pod(name string, port uint16) netip.AddrPort {
	return netip.AddrPortFrom(r.Addr(name, topo.V4), port)
}

// talk exchanges a few bytes by TCP.
func (r rig) talk(from uint16, port uint16) {
	GinkgoHelper()
	conn, err := r.NS("client").DialFrom(r.Context(limit), "tcp", r.client(from), r.front(port))
	Expect(err).NotTo(HaveOccurred())
	_, err = traffic.ExchangeOn(r.Context(limit), conn, 100, 100)
	Expect(err).NotTo(HaveOccurred())
}

// line is a line of `beep trace -o json`, without its time, sizes and numbers.
type line struct {
	Device, Direction, From, To, Reason, Protocol, Flags, Note string
	NewFlow                                                    bool
	Client, Front, Endpoint                                    netip.AddrPort
	Peer                                                       netip.Addr
	Bytes, BytesAfter                                          int
}

// look is a running `beep trace`.
type look struct {
	*netns.Process
	mu       sync.Mutex
	out, err bytes.Buffer
}

type part struct {
	of *look
	to *bytes.Buffer
}

func (p part) Write(b []byte) (int, error) {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	return p.to.Write(b)
}

func (l *look) text(of *bytes.Buffer) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return of.String()
}

// look starts the tool on a node and returns when it is attached.
func (r rig) look(node string, flags ...string) *look {
	GinkgoHelper()
	return r.lookAs(nil, node, flags...)
}

// lookAs has another program start the tool.
func (r rig) lookAs(starter []string, node string, flags ...string) *look {
	GinkgoHelper()
	binary, err := beep.Binary("beep")
	Expect(err).NotTo(HaveOccurred())
	l := &look{}
	words := slices.Concat(starter, []string{binary, "trace", "--pin-dir", r.Nodes[node].PinDir()}, flags)
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Stdout, cmd.Stderr = part{l, &l.out}, part{l, &l.err}
	l.Process, err = r.NS(node).Start(cmd)
	Expect(err).NotTo(HaveOccurred())
	Eventually(func() string { return l.text(&l.err) }, limit, 5*time.Millisecond).Should(ContainSubstring("tracing"))
	return l
}

// await waits until a line has the text.
func (l *look) await(text string) {
	GinkgoHelper()
	Eventually(func() string { return l.text(&l.out) }, limit, 5*time.Millisecond).Should(ContainSubstring(text))
}

// end interrupts the tool, as Ctrl-C does, and returns its lines.
func (l *look) end() []line {
	GinkgoHelper()
	Expect(l.Signal(syscall.SIGINT)).To(Succeed())
	return l.lines()
}

// lines are what the tool, which ends, has printed.
func (l *look) lines() []line {
	GinkgoHelper()
	Eventually(l.Done(), limit).Should(BeClosed())
	Expect(l.Wait()).To(Succeed(), l.text(&l.err))
	var lines []line
	for text := range strings.Lines(l.text(&l.out)) {
		var one line
		Expect(json.Unmarshal([]byte(text), &one)).To(Succeed(), text)
		lines = append(lines, one)
	}
	return lines
}

// ways counts lines by where they came from and went.
func ways(lines []line) map[string]int {
	counts := map[string]int{}
	for _, one := range lines {
		counts[fmt.Sprintf("%s>%s %s", one.From, one.To, one.Reason)]++
	}
	return counts
}

// fragmentable lets routers cut the datagrams of a socket.
func fragmentable(conn net.Conn) {
	GinkgoHelper()
	raw, err := conn.(*net.UDPConn).SyscallConn()
	Expect(err).NotTo(HaveOccurred())
	Expect(raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DONT)
	})).To(Succeed())
	Expect(err).NotTo(HaveOccurred())
}

// programs are what is attached to the node's uplink, on both sides.
func (r rig) programs(node string) []uint32 {
	GinkgoHelper()
	var all []uint32
	for _, side := range []tcx.Hook{tcx.Ingress, tcx.Egress} {
		programs, err := tcx.Programs(r.NS(node), "eth0", side)
		Expect(err).NotTo(HaveOccurred())
		all = append(all, programs...)
	}
	return all
}
