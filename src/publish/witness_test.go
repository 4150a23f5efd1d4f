// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/beep-lb/beep/src/model"
)

// watchtower is a witness with a clock that is moved by hand. Node x has 192.0.2.x.
type watchtower struct {
	*witness
	t       *testing.T
	clock   time.Time
	renewal int
	news    int
	listed  map[netip.Addr]bool
	nodes   []*model.Node
}

func newWatchtower(t *testing.T, listed ...int) *watchtower {
	w := &watchtower{t: t, clock: time.Unix(1e9, 0), listed: map[netip.Addr]bool{}}
	for _, n := range listed {
		w.listed[nodeAddr(n)] = true
	}
	w.witness = newWitness(func() time.Time { return w.clock }, silence{}, func() { w.news++ })
	return w
}

func nodeAddr(n int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, byte(n)}) }

// lease is a Lease of node n as it is renewed now. The times in it are of a clock that is wrong.
func (w *watchtower) lease(n int, left bool) *coordinationv1.Lease {
	w.renewal++
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(n)}}
	renewed := metav1.NewMicroTime(time.Unix(int64(w.renewal), 0))
	lease.Spec.RenewTime = &renewed
	writeStatement(lease, model.Lease{Node: lease.Name, Addresses: []netip.Addr{nodeAddr(n)}, Attached: true, Left: left})
	return lease
}

func (w *watchtower) list(leases ...*coordinationv1.Lease) {
	var objects []any
	for _, lease := range leases {
		objects = append(objects, lease)
	}
	if err := w.Replace(objects, "1"); err != nil {
		w.t.Fatal(err)
	}
}

func (w *watchtower) update(lease *coordinationv1.Lease) {
	if err := w.Update(lease); err != nil {
		w.t.Fatal(err)
	}
}

// want compares the leases that count: 1 2late 3left.
func (w *watchtower) want(after time.Duration, want string) {
	w.t.Helper()
	w.clock = w.clock.Add(after)
	live, _, _ := w.leases(w.nodes, w.listed)
	var words []string
	for _, lease := range live {
		word := lease.Node
		if lease.Late {
			word += "late"
		}
		if lease.Left {
			word += "left"
		}
		words = append(words, word)
	}
	if got := strings.Join(words, " "); got != want {
		w.t.Errorf("after %v: %q, want %q", w.clock.Sub(time.Unix(1e9, 0)), got, want)
	}
}

func TestALeaseCountsFortySecondsFromTheRenewalThatWasSeen(t *testing.T) {
	w := newWatchtower(t)
	if _, _, ok := w.leases(nil, nil); ok {
		t.Error("complete before the list")
	}
	w.list()
	w.update(w.lease(1, false))
	w.want(0, "1")
	w.want(24*time.Second, "1")
	w.want(time.Second, "1late")
	w.want(14999*time.Millisecond, "1late")
	w.want(time.Millisecond, "")
	w.update(w.lease(1, false))
	w.want(0, "1")
}

func TestALeaseOfTheFirstListCountsOnlyForANodeThatIsListed(t *testing.T) {
	w := newWatchtower(t, 1)
	one, two, three := w.lease(1, false), w.lease(2, false), w.lease(3, false)
	w.list(one, two, three)
	w.want(0, "1")
	w.list(one, two, three) // nothing was renewed
	w.want(time.Second, "1")
	// Whoever is alive renews within ten seconds; they join together.
	w.update(w.lease(2, false))
	w.want(9*time.Second, "1")
	w.update(w.lease(3, false))
	w.want(999*time.Millisecond, "1")
	w.want(time.Millisecond, "1 2 3")
	w.want(23*time.Second, "1late 2late 3") // and node 1 was never seen to renew
	w.update(w.lease(1, false))
	w.want(0, "1 2late 3")
}

func TestAllLeasesCountWhereNobodyIsListed(t *testing.T) {
	w := newWatchtower(t)
	w.list(w.lease(1, false), w.lease(2, false))
	w.want(time.Millisecond, "")
	w.update(w.lease(3, false)) // the others of a cluster that starts come with them
	w.want(gather-2*time.Millisecond, "")
	w.want(time.Millisecond, "1 2 3")
	w.listed[nodeAddr(1)] = true
	w.want(time.Second, "1 2 3")
}

func TestNodesThatAppearJoinTogether(t *testing.T) {
	w := newWatchtower(t)
	w.list()
	w.want(500*time.Millisecond, "")
	w.update(w.lease(1, false))
	w.want(time.Second, "")
	w.update(w.lease(2, false))
	if _, next, _ := w.leases(nil, nil); !next.Equal(w.began.Add(gather)) {
		t.Errorf("asks again at %v", next.Sub(w.began))
	}
	w.want(1500*time.Millisecond, "1 2")
	w.update(w.lease(3, false))
	w.want(0, "1 2 3")
}

func TestANodeThatIsListedAndHasNoLeaseGetsItsTime(t *testing.T) {
	w := newWatchtower(t, 1)
	w.nodes = []*model.Node{{Name: "1", InternalIPs: []netip.Addr{nodeAddr(1)}}, {Name: "2", InternalIPs: []netip.Addr{nodeAddr(2)}}}
	w.list()
	w.want(39*time.Second, "1")
	w.want(time.Second, "")
}

func TestALeaseThatIsGivenUpCountsOnForAMoment(t *testing.T) {
	w := newWatchtower(t, 1)
	w.list()
	w.update(w.lease(1, false))
	w.update(w.lease(1, true))
	w.want(leaveAfter-1, "1")
	w.want(1, "1left")
	// Back within the moment, it was never away.
	w.update(w.lease(1, false))
	w.update(w.lease(1, true))
	w.want(time.Second, "1")
	w.update(w.lease(1, false))
	w.want(10*time.Second, "1")
	if w.news != 6 {
		t.Errorf("told %d times, want at the list and at each of five changes", w.news)
	}
}

func TestALeaseThatWasGivenUpBeforeTheTermCountsForLess(t *testing.T) {
	w := newWatchtower(t, 1)
	w.list(w.lease(1, true))
	w.want(leaveAfterFirst-1, "1")
	w.want(1, "1left")
}

func TestADeletedLeaseIsLostOnlyWhenItsTimeIsOver(t *testing.T) {
	w := newWatchtower(t)
	w.list()
	lease := w.lease(1, false)
	w.update(lease)
	if err := w.Delete(lease); err != nil {
		t.Fatal(err)
	}
	w.want(39*time.Second, "1late")
	w.want(time.Second, "")
}

func TestARenewalThatSaysNothingNewTellsNobody(t *testing.T) {
	w := newWatchtower(t)
	w.list()
	w.update(w.lease(1, false))
	before := w.news
	for range 10 {
		w.clock = w.clock.Add(renewEvery)
		w.update(w.lease(1, false))
	}
	if w.news != before {
		t.Errorf("told %d times", w.news-before)
	}
	if _, next, _ := w.leases(nil, nil); !next.Equal(w.clock.Add(lateAfter)) {
		t.Errorf("asks again at %v", next.Sub(w.clock))
	}
}

func TestStatements(t *testing.T) {
	says := model.Lease{Node: "a", Addresses: []netip.Addr{nodeAddr(1), netip.MustParseAddr("2001:db8:b::1")}, Attached: true, Left: true,
		Refused: []model.ObjectKey{{Namespace: "shop", Name: "web"}, {Namespace: "x", Name: "y"}}}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	writeStatement(lease, says)
	if got := readStatement(lease); !got.Equal(&says) {
		t.Errorf("%+v, want %+v", got, says)
	}
	for range 100000 {
		says.Refused = append(says.Refused, model.ObjectKey{Namespace: "shop", Name: "web"})
	}
	writeStatement(lease, says)
	if got := readStatement(lease); len(lease.Annotations[annotationRefused]) > refusedLimit || len(got.Refused) < 10000 ||
		got.Refused[len(got.Refused)-1] != says.Refused[0] {
		t.Errorf("%d refused in %d bytes", len(got.Refused), len(lease.Annotations[annotationRefused]))
	}
	says = model.Lease{Node: "a"}
	writeStatement(lease, says)
	if got := readStatement(lease); !got.Equal(&says) {
		t.Errorf("%+v, want nothing said", got)
	}
}

// A publisher that is lost was silent before anybody else was elected.
func TestWhoeverPublishedBeforeIsLostSoonerUnlessItIsHeardOf(t *testing.T) {
	w := newWatchtower(t, 1, 2, 3)
	w.before = silence{"1", w.clock.Add(-17 * time.Second)}
	w.list(w.lease(1, false), w.lease(2, false), w.lease(3, false))
	w.want(0, "1 2 3")
	w.update(w.lease(2, false))
	w.update(w.lease(3, false))
	w.want(lateAfter-17*time.Second, "1late 2 3")
	w.want(lostAfter-lateAfter-time.Millisecond, "1late 2 3")
	w.want(time.Millisecond, "2 3")

	w = newWatchtower(t, 1, 2)
	w.before = silence{"1", w.clock.Add(-17 * time.Second)}
	w.list(w.lease(1, false), w.lease(2, false))
	w.want(time.Second, "1 2")
	w.update(w.lease(1, false)) // its controller has been started again, and is another candidate
	w.want(lostAfter-2*time.Second, "1late 2late")
}
