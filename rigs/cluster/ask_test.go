// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/beep-lb/beep/harness/cluster"
	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/traffic"
)

const (
	// patience is how long one request may take: longer than a busy machine needs, with a retransmission or two.
	patience = 10 * time.Second
	// silence is how long no answer must come to count as none: many round trips.
	silence = 500 * time.Millisecond
	// tries are requests enough to meet each of a few pods: one of three is missed once in 10^10.
	tries = 60
)

// ask asks a front from the client.
func (r *rig) ask(ctx context.Context, at netip.AddrPort) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answer, err := r.Ask(ctx, "client", at)
	return answer.Server, err
}

// each asks of each of these fronts, all at once, until there is no error.
func (r *rig) each(fronts []netip.AddrPort, ask func(ctx context.Context, at netip.AddrPort) error) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(r.ctx, limit)
	defer cancel()
	errs := make([]error, len(fronts))
	var asking sync.WaitGroup
	for i, at := range fronts {
		asking.Go(func() { errs[i] = cluster.Await(ctx, func(ctx context.Context) error { return ask(ctx, at) }) })
	}
	asking.Wait()
	Expect(errors.Join(errs...)).To(Succeed())
}

// once is as long as one of many tries may take.
const once = 2 * time.Second

// reached waits until the client gets an answer by each of these fronts, from a pod that saw it.
func (r *rig) reached(fronts ...netip.AddrPort) {
	GinkgoHelper()
	r.each(fronts, func(ctx context.Context, at netip.AddrPort) error {
		ctx, cancel := context.WithTimeout(ctx, once)
		defer cancel()
		_, err := r.Ask(ctx, "client", at)
		return err
	})
}

// answered waits until the client gets an answer at each of these places, as anybody: kube-proxy hides it.
func (r *rig) answered(places ...netip.AddrPort) {
	GinkgoHelper()
	r.each(places, func(ctx context.Context, at netip.AddrPort) error {
		ctx, cancel := context.WithTimeout(ctx, once)
		defer cancel()
		_, err := traffic.Get(ctx, r.NS("client"), at)
		return err
	})
}

// refused waits until a connection to each of these fronts is refused (ICMP, or a reset), and not just lost.
func (r *rig) refused(fronts ...netip.AddrPort) {
	GinkgoHelper()
	r.each(fronts, func(ctx context.Context, at netip.AddrPort) error {
		ctx, cancel := context.WithTimeout(ctx, once)
		defer cancel()
		_, err := traffic.Get(ctx, r.NS("client"), at)
		if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EHOSTUNREACH) {
			return nil
		}
		return fmt.Errorf("%s is not refused: %w", at, cmp.Or(err, errAnswered))
	})
}

// unreached waits until a host gets no answer from each of these fronts, in whatever way.
func (r *rig) unreached(from string, fronts ...netip.AddrPort) {
	GinkgoHelper()
	r.each(fronts, func(ctx context.Context, at netip.AddrPort) error {
		ctx, cancel := context.WithTimeout(ctx, silence)
		defer cancel()
		if _, err := traffic.Get(ctx, r.NS(from), at); err == nil {
			return fmt.Errorf("%s from %s: %w", at, from, errAnswered)
		}
		return nil
	})
}

var errAnswered = errors.New("it answers")

// answerers are the pods that answer by a front, sorted.
func (r *rig) answerers(ctx context.Context, at netip.AddrPort) ([]string, error) {
	var pods []string
	for range tries {
		pod, err := r.ask(ctx, at)
		if err != nil {
			return nil, err
		}
		pods = append(pods, pod)
	}
	slices.Sort(pods)
	return slices.Compact(pods), nil
}

// podNames are the pods that are to stay, sorted.
func (r *rig) podNames(ctx context.Context) ([]string, error) {
	list, err := r.pods().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			names = append(names, pod.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// allAnswer waits until by each of these fronts all pods answer, and nobody else.
func (r *rig) allAnswer(fronts ...netip.AddrPort) {
	GinkgoHelper()
	r.each(fronts, func(ctx context.Context, at netip.AddrPort) error {
		want, err := r.podNames(ctx)
		if err != nil {
			return err
		}
		got, err := r.answerers(ctx, at)
		if err == nil && !slices.Equal(got, want) {
			err = fmt.Errorf("by %s answer %v, want %v", at, got, want)
		}
		return err
	})
}

// load is requests at a steady rate, each on a connection of its own.
type load struct {
	r      *rig
	before map[string]uint64 // what the nodes had dropped
	cancel context.CancelFunc
	asking sync.WaitGroup

	mu      sync.Mutex
	done    int
	slowest time.Duration
	failed  []error
}

// begin asks so often in a second, by the fronts that are the targets at that moment, one after the other.
func (r *rig) begin(perSecond int, targets func() []netip.AddrPort) *load {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(r.ctx)
	l := &load{r: r, before: r.drops(), cancel: cancel}
	DeferCleanup(l.stop)
	l.asking.Go(func() {
		ticks := time.NewTicker(time.Second / time.Duration(perSecond))
		defer ticks.Stop()
		for turn := 0; ; turn++ {
			select {
			case <-ctx.Done():
				return
			case <-ticks.C:
			}
			all := targets()
			at := all[turn%len(all)]
			l.asking.Go(func() {
				start := time.Now()
				_, err := r.ask(r.ctx, at)
				l.note(at, start, err)
			})
		}
	})
	return l
}

func (l *load) note(at netip.AddrPort, start time.Time, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	took := time.Since(start)
	l.done++
	l.slowest = max(l.slowest, took)
	if err != nil {
		l.failed = append(l.failed, fmt.Errorf("%s by %s after %v: %w", start.Format(time.StampMilli), at, took, err))
	}
}

// stop ends the load when what was asked is answered. It may be called twice.
func (l *load) stop() {
	l.cancel()
	l.asking.Wait()
}

// lossless ends the load and expects that every request was answered.
func (l *load) lossless() {
	GinkgoHelper()
	l.stop()
	AddReportEntry("load", fmt.Sprintf("%d requests, %d failed, the slowest took %v; packets dropped meanwhile: %v",
		l.done, len(l.failed), l.slowest.Round(time.Millisecond), since(l.before, l.r.drops())))
	Expect(l.done).To(BeNumerically(">", 0))
	Expect(l.failed).To(BeEmpty())
}

// drops are the packets that each node has dropped, by node and reason: "node-a no-endpoint".
func (r *rig) drops() map[string]uint64 {
	GinkgoHelper()
	drops := map[string]uint64{}
	for _, node := range r.Nodes() {
		if !node.Datapath.Running() {
			continue // it is off, and what it counted is gone
		}
		counts, err := node.Datapath.Drops()
		Expect(err).NotTo(HaveOccurred())
		for reason, packets := range counts {
			drops[node.Name+" "+reason] = packets
		}
	}
	return drops
}

// since are the counters that rose.
func since(before, after map[string]uint64) map[string]uint64 {
	rose := map[string]uint64{}
	for name, count := range after {
		if count > before[name] {
			rose[name] = count - before[name]
		}
	}
	return rose
}

// hold keeps a connection to a front busy until release.
func (r *rig) hold(at netip.AddrPort) *scene.Held {
	GinkgoHelper()
	var conn net.Conn
	r.eventually(func(ctx context.Context) (err error) {
		conn, err = r.NS("client").DialContext(ctx, "tcp", at.String())
		return err
	})
	h := scene.Hold(r.ctx, conn)
	DeferCleanup(h.Close)
	return h
}

// moves waits until more bytes have passed.
func (r *rig) moves(h *scene.Held) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(r.ctx, limit)
	defer cancel()
	Expect(h.Moves(ctx)).To(Succeed())
}
