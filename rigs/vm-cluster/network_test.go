// SPDX-License-Identifier: Apache-2.0

package vmcluster_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/kube"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
	"github.com/beep-lb/beep/harness/vm/node"
)

// flannel looks for what makes a network flannel's: its routes lead pods to each other, and it masquerades what they send elsewhere.
func (r *rig) flannel(ctx context.Context) {
	GinkgoHelper()
	listen := netip.AddrPortFrom(r.Addrs(node.Client)[0], 8080)
	stop, err := traffic.ServeHTTP(r.NS(node.Client), "client", listen)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(stop)
	for i, own := range r.Nodes() {
		other := kube.PodCIDRsOfNumber(2 - i)
		Expect(r.on(ctx, own.Name, "ip route show "+other[0].String())).To(ContainSubstring("dev flannel.1"))
		Expect(r.on(ctx, own.Name, "ip -6 route show "+other[1].String())).To(ContainSubstring("dev flannel-v6.1"))
		figure("%s: the pods' MTU is %s", own.Name, r.on(ctx, own.Name, "cat /sys/class/net/cni0/mtu"))

		By("a pod of " + own.Name + " goes out by the node's address")
		var answer traffic.Answer
		said := r.on(ctx, own.Name, fmt.Sprintf("nsenter --target $(pgrep -x web) --net curl --silent --show-error --max-time 60 http://%s/", listen))
		Expect(json.Unmarshal([]byte(said), &answer)).To(Succeed(), said)
		Expect(answer.Client.Addr()).To(Equal(own.Addr(topo.V4)))
	}
}

// bulk is what goes each way, in bytes.
const bulk = 1 << 20

// leastSegment is less than what the narrowest way leaves of a segment (an IPv6 front through a tunnel over IPv6, with
// timestamps: 1500 − 80 − 60 − 12) and more than what senders use who know nothing of the way, in bytes.
const leastSegment = 1300

// carries sends a MiB to the pods of both nodes by every front, and gets it back: one of the two is behind the tunnel.
func (r *rig) carries(ctx context.Context) {
	GinkgoHelper()
	posted := make([]byte, bulk)
	_, err := rand.NewChaCha8([32]byte{}).Read(posted)
	Expect(err).NotTo(HaveOccurred())
	pods, err := r.webPods(ctx)
	Expect(err).NotTo(HaveOccurred())
	for _, front := range r.Fronts(80, families...) {
		segments := map[string]uint32{}
		await(ctx, "1 MiB each way by "+front.String(), func(ctx context.Context) error {
			pod, segment, err := r.post(ctx, front, posted)
			if err != nil {
				return err
			}
			segments[pod] = segment
			if len(segments) < len(pods) {
				return fmt.Errorf("%s has led to %v only", front, segments)
			}
			return nil
		})
		figure("%s: 1 MiB each way in segments of %v bytes", front, segments)
		for pod, segment := range segments {
			Expect(segment).To(BeNumerically(">=", leastSegment), "bytes of a segment to %s by %s", pod, front)
		}
	}
}

// post posts to a front, on a connection of its own, and wants the same back from a pod that saw the client. It returns the pod and
// the size of the segments that were sent, in bytes.
func (r *rig) post(ctx context.Context, front netip.AddrPort, posted []byte) (pod string, segment uint32, err error) {
	ctx, cancel := context.WithTimeout(ctx, 4*askLimit)
	defer cancel()
	var conn net.Conn
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (_ net.Conn, err error) {
			conn, err = r.NS(node.Client).DialContext(ctx, network, address)
			return conn, err
		},
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+front.String()+"/", bytes.NewReader(posted))
	if err != nil {
		return "", 0, err
	}
	begun := time.Now()
	response, err := client.Do(request)
	if err != nil {
		return "", 0, err
	}
	defer response.Body.Close()
	// While the answer is not read, the connection is open.
	if segment, err = segmentOf(conn); err != nil {
		return "", 0, fmt.Errorf("%s: %w", front, err)
	}
	back := make([]byte, len(posted))
	if _, err := io.ReadFull(response.Body, back); err != nil {
		return "", 0, fmt.Errorf("after %v: %w", time.Since(begun), err)
	}
	pod = response.Header.Get("Server")
	saw, err := netip.ParseAddrPort(response.Header.Get("Client"))
	switch {
	case response.StatusCode != http.StatusOK:
		return "", 0, fmt.Errorf("%s: status %s", front, response.Status)
	case !bytes.Equal(back, posted):
		return "", 0, fmt.Errorf("%s: pod %s sent back other bytes than it was sent", front, pod)
	case err != nil || !slices.Contains(r.Addrs(node.Client), saw.Addr().Unmap()):
		return "", 0, fmt.Errorf("the client posted to %s, and pod %s saw %s", front, pod, response.Header.Get("Client"))
	}
	return pod, segment, nil
}

// segmentOf is what the kernel sends at once on a TCP connection, in bytes of payload.
func segmentOf(conn net.Conn) (uint32, error) {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return 0, fmt.Errorf("a connection of the kind %T, not of TCP", conn)
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return 0, err
	}
	var info *unix.TCPInfo
	var errInfo error
	if err := raw.Control(func(fd uintptr) { info, errInfo = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) }); err != nil {
		return 0, err
	}
	if errInfo != nil {
		return 0, errInfo
	}
	return info.Snd_mss, nil
}
