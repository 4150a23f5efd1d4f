// SPDX-License-Identifier: Apache-2.0

package mtu_test

import (
	. "github.com/onsi/gomega"

	. "github.com/onsi/ginkgo/v2"

	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
)

// quic is the datagram size in bytes that every path of QUIC's carries (RFC 9000, section 14).
const quic = 1200

// segments sends bursts by UDP_SEGMENT in a direction: of QUIC's size, of the largest that fits, of one byte more.
func (r rig) segments(d direction, bounds []bound) {
	GinkgoHelper()
	fits := bounds[0].longest
	for _, b := range bounds {
		fits = min(fits, b.longest)
	}
	fits -= r.header() + udpHeader
	t := r.open(remotePod, dontFragment, dontFragment)
	for _, size := range []int{quic, fits} {
		burst := segmented(size)
		leg, frames, err := t.send(d, burst)
		Expect(err).NotTo(HaveOccurred())
		Expect(leg.Whole()).To(BeTrue(), "%s, %+v: %s", d, burst, leg)
		Expect(frames).To(BeEmpty())
	}
	t.end()

	b, bounded := first(bounds, fits+1+r.header()+udpHeader)
	if !bounded || b.by == nil {
		return // the sender's kernel takes no longer ones
	}
	t = r.open(remotePod, dontFragment, dontFragment)
	leg, frames, err := t.send(d, segmented(fits+1))
	Expect(err).NotTo(HaveOccurred())
	Expect(leg.Refusal).NotTo(BeNil(), "%s, segments of one byte more than fits: %s", d, leg)
	Expect(frames).NotTo(BeEmpty())
	Expect(t.judgeError(d, b, leg, frames[0], fits+1)).To(Succeed())
	Expect(t.Close()).To(Succeed()) // without offloads each segment draws an error: strays

	if r.inner == topo.V4 {
		r.forgetPaths("client", remotePod) // by which they would refuse longer segments
		t = r.open(remotePod, mayFragment[topo.V4], mayFragment[topo.V4])
		leg, _, err := t.send(d, small(fits+1))
		Expect(err).NotTo(HaveOccurred())
		Expect(leg.Whole()).To(BeTrue(), "%s, segments of one byte more than fits, that may be fragmented: %s", d, leg)
		t.end()
	}
}

// segmented is as many datagrams of a size as go into one burst, but no more than a node answers at once.
func segmented(size int) traffic.Burst {
	const most = 30
	return traffic.Burst{Size: size, Count: min(most, 65507/size)}
}

// small is a burst of at most 16 KB, or of two datagrams: each of those that a node cuts out of one packet itself takes
// as much memory as the packet did, and a receiver's socket buffer must have room for them all.
func small(size int) traffic.Burst {
	return traffic.Burst{Size: size, Count: max(2, min(10, 16384/size))}
}
