// SPDX-License-Identifier: Apache-2.0

package flood_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/topo"
)

// serveEnv names the variable that makes this program the echo server of a pod; its value is where.
const serveEnv = "BEEP_FLOOD_SERVE"

// serve echoes TCP and UDP until its standard input ends, and says when it is ready. It returns the exit code.
func serve(at string) int {
	listener, err := net.Listen("tcp", at)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	packets, err := net.ListenPacket("udp", at)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { // 64 bytes are enough, and cheap
				_, _ = io.CopyBuffer(struct{ io.Writer }{conn}, struct{ io.Reader }{conn}, make([]byte, 64))
				conn.Close()
			}()
		}
	}()
	go func() {
		buffer := make([]byte, 64<<10)
		for {
			n, from, err := packets.ReadFrom(buffer)
			if err != nil {
				return
			}
			_, _ = packets.WriteTo(buffer[:n], from)
		}
	}()
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

// startServer starts the server of a pod.
func (r rig) startServer(pod string) {
	GinkgoHelper()
	self, err := os.Executable()
	Expect(err).NotTo(HaveOccurred())
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), serveEnv+"="+netip.AddrPortFrom(r.Addr(pod, topo.V4), portPod).String())
	cmd.Stderr = GinkgoWriter
	_, err = cmd.StdinPipe() // ends with this process
	Expect(err).NotTo(HaveOccurred())
	out, err := cmd.StdoutPipe()
	Expect(err).NotTo(HaveOccurred())
	_, err = r.NS(pod).Start(cmd)
	Expect(err).NotTo(HaveOccurred())
	line, err := bufio.NewReader(out).ReadString('\n')
	Expect(err).NotTo(HaveOccurred(), "the server of %s does not start", pod)
	Expect(line).To(Equal("ready\n"))
}

// crowd is many idle connections of the client.
type crowd []net.Conn

// gather opens as many connections as it says, the fronts in turn.
func (r rig) gather(network string, count int) crowd {
	GinkgoHelper()
	ctx := r.Context(limit)
	var all crowd
	DeferCleanup(func() {
		for _, conn := range all {
			conn.Close()
		}
	})
	for i := range count {
		conn, err := r.NS("client").DialFrom(ctx, network, netip.AddrPort{}, r.front(fronts[i%len(fronts)]))
		Expect(err).NotTo(HaveOccurred(), "connection %d", i)
		all = append(all, conn)
	}
	Expect(all.echo(0)).To(Succeed())
	// A TCP flow is proved on all nodes once the client has spoken after the handshake.
	Expect(all.echo(1)).To(Succeed())
	return all
}

// echo has each connection send a few bytes of its own and get them back.
func (c crowd) echo(round int) error {
	var errs []error
	for i, conn := range c {
		if err := echo(conn, fmt.Sprintf("%08d %08d", i, round), 5*time.Second); err != nil && len(errs) < 10 {
			errs = append(errs, fmt.Errorf("connection %d: %w", i, err))
		}
	}
	return errors.Join(errs...)
}

func (c crowd) sources() (all []netip.AddrPort) {
	for _, conn := range c {
		all = append(all, netip.MustParseAddrPort(conn.LocalAddr().String()))
	}
	return all
}

// missing is how many sources of the crowd are not among those.
func (c crowd) missing(known map[netip.AddrPort]bool) (n int) {
	for _, source := range c.sources() {
		if !known[source] {
			n++
		}
	}
	return n
}

func echo(conn net.Conn, text string, patience time.Duration) error {
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte(text)); err != nil {
		return err
	}
	answer := make([]byte, len(text))
	if _, err := io.ReadFull(conn, answer); err != nil {
		return err
	}
	if string(answer) != text {
		return fmt.Errorf("echo of %q is %q", text, answer)
	}
	return nil
}
