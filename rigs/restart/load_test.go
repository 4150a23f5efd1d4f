// SPDX-License-Identifier: Apache-2.0

package restart_test

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/fronts"
	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
)

const (
	// rate keeps a transfer going for longer than any spec.
	rate = 4 << 20
	// every is between two datagrams of a stream.
	every = time.Millisecond
	// pause is between two connections of a storm, of which there is one a way: more would only keep the nodes waiting.
	pause = 4 * time.Millisecond
)

// way is what one client does through one front: to the pod of the other node, or to that of the node it dials.
type way struct {
	r        rig
	name     string
	addr     netip.Addr
	pod      string
	transfer *scene.Transfer
	stream   *scene.Stream
	idle     *http.Client
	first    traffic.Answer // of the idle connection
	storm    *storm
}

// load is all that is under way in a spec.
type load struct {
	r    rig
	ways []*way
	// repeated are the handshakes' packets that were sent twice before.
	repeated int64
}

// repeated is how often client and pods sent a SYN or its answer again, as their kernels count it: time alone says
// nothing on a machine that others use.
func (r rig) repeated() (sum int64) {
	for _, name := range []string{"client", "pod-a1", "pod-b1"} {
		sum += r.Counters(name)["TcpExt.TCPSynRetrans"]
	}
	return sum
}

// begin starts everything.
func (r rig) begin(ctx context.Context) load {
	l := load{r: r, repeated: r.repeated()}
	for _, family := range scene.Families {
		for _, pod := range []string{"pod-b1", "pod-a1"} {
			w := &way{r: r, name: scene.FamilyName(family) + " to " + pod, addr: r.Addr("node-a", family), pod: pod}
			w.transfer = r.Exchange(ctx, "client", w.at(fronts.Stream), 1<<30, 1<<30, rate)
			w.stream = r.Stream(ctx, "client", w.at(fronts.Datagram), 512, every)
			w.idle = &http.Client{Transport: &http.Transport{DialContext: r.NS("client").DialContext}}
			w.first = w.ask()
			w.storm = r.storm(ctx, w)
			l.ways = append(l.ways, w)
		}
	}
	l.flows()
	return l
}

func (w *way) at(kind fronts.Kind) netip.AddrPort { return fronts.At(&w.r.Plan, w.addr, kind, w.pod) }

// ask uses the idle connection once.
func (w *way) ask() traffic.Answer {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	answer, err := traffic.Ask(ctx, w.idle, w.at(fronts.HTTP))
	Expect(err).NotTo(HaveOccurred(), w.name)
	Expect(answer.Server).To(Equal(w.pod))
	return answer
}

// flows waits until everything that is under way has moved on from now, and new connections have been made.
func (l load) flows() {
	GinkgoHelper()
	for _, w := range l.ways {
		moved, made := w.transfer.Moved(), w.storm.made.Load()
		Eventually(w.transfer.Moved, limit, time.Millisecond).Should(BeNumerically(">", moved+rate/16), "%s: the transfer goes on", w.name)
		Eventually(w.storm.made.Load, limit, time.Millisecond).Should(BeNumerically(">", made+3), "%s: connections are made: %v", w.name, w.storm)
		Expect(w.transfer.Ended()).To(BeFalse(), "%s: the transfer was cut", w.name)
	}
}

// end stops everything and reports what it saw; nothing may have been reset, refused or lost.
func (l load) end(what string) {
	GinkgoHelper()
	var lost, sent, made int
	for _, w := range l.ways {
		Expect(w.ask()).To(Equal(w.first), "%s: the idle connection is the same", w.name)
		w.idle.CloseIdleConnections()
		w.storm.stop()
		made += int(w.storm.made.Load())
		Expect(w.storm.failures()).To(BeEmpty(), "%s: new connections", w.name)
		Expect(w.transfer.Ended()).To(BeFalse(), "%s: the transfer was under way all the time", w.name)
		Expect(w.transfer.Close()).To(Succeed())
		tally, err := w.stream.Stop()
		Expect(err).NotTo(HaveOccurred())
		sent += tally.Sent
		lost += tally.Lost
		Expect([]int{tally.Duplicated, tally.Corrupted, len(tally.Refused)}).To(HaveEach(0), "%s: %s", w.name, tally)
		Expect(tally.Sources).To(HaveLen(1), "%s: the pod saw one source: %s", w.name, tally)
	}
	repeated := l.r.repeated() - l.repeated
	report := fmt.Sprintf("%s: %d datagrams, %d lost; %d new connections, 0 failed, %d SYNs or answers repeated", what, sent, lost, made, repeated)
	AddReportEntry("figures", report)
	GinkgoWriter.Println(report)
	Expect(lost).To(BeZero(), report)
	Expect(repeated).To(BeZero(), report)
	Expect(l.r.Drops()).To(BeEmpty())
	Expect(l.r.ChecksumErrors()).To(BeEmpty())
}

// storm makes one connection after the other, each for one request.
type storm struct {
	made   atomic.Int64
	cancel context.CancelFunc
	done   chan struct{}
	mu     sync.Mutex
	errs   []error
}

func (r rig) storm(ctx context.Context, w *way) *storm {
	ctx, cancel := context.WithCancel(ctx)
	s := &storm{cancel: cancel, done: make(chan struct{})}
	from := r.Addr("client", topo.V6)
	if w.addr.Is4() {
		from = r.Addr("client", topo.V4)
	}
	go func() {
		defer close(s.done)
		tick := time.NewTicker(pause)
		defer tick.Stop()
		for ctx.Err() == nil {
			<-tick.C
			answer, err := traffic.Get(ctx, r.NS("client"), w.at(fronts.HTTP))
			if err == nil && (answer.Server != w.pod || answer.Client.Addr() != from) {
				err = fmt.Errorf("%s answered and saw %s", answer.Server, answer.Client)
			}
			s.count(ctx, err)
		}
	}()
	return s
}

func (s *storm) count(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return // stopped in the middle
	}
	s.made.Add(1)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.errs = append(s.errs, err)
	}
}

func (s *storm) stop() {
	s.cancel()
	<-s.done
}

func (s *storm) failures() []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.errs
}

// String is for failures.
func (s *storm) String() string {
	return fmt.Sprintf("%d made, errors %v", s.made.Load(), s.failures())
}
