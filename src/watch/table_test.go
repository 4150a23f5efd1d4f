// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/beep-lb/beep/src/model"
)

// board is a table of Nodes and what it told.
type board struct {
	*table[*corev1.Node, *model.Node]
	t       *testing.T
	changes int
	doubts  []string
}

func newBoard(t *testing.T) *board {
	b := &board{t: t, table: &table[*corev1.Node, *model.Node]{
		kind: "Nodes", strip: stripNode, convert: convertNode, weigh: func(*model.Node) int { return 1 },
		doubt: func(list map[string]*model.Node) string {
			if list["a"] == nil {
				return "no a"
			}
			return ""
		},
		rows: map[string]*model.Node{},
	}}
	b.changed = func() { b.changes++ }
	b.doubted = func(reason string) { b.doubts = append(b.doubts, reason) }
	return b
}

func named(names string) []*corev1.Node {
	var list []*corev1.Node
	for _, name := range strings.Fields(names) {
		list = append(list, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return list
}

// relist gives the table a whole list.
func (b *board) relist(names string) {
	b.t.Helper()
	var objects []any
	for _, node := range named(names) {
		objects = append(objects, node)
	}
	if err := b.Replace(objects, "1"); err != nil {
		b.t.Fatal(err)
	}
}

// want compares what is believed.
func (b *board) want(names string, complete bool, changes, doubts int) {
	b.t.Helper()
	values, ok := b.values()
	var got []string
	for _, node := range values {
		got = append(got, node.Name)
	}
	slices.Sort(got)
	if text := strings.Join(got, " "); text != names || ok != complete || b.changes != changes || len(b.doubts) != doubts {
		b.t.Errorf("%q complete %v, %d changes, doubts %q; want %q %v %d %d", text, ok, b.changes, b.doubts, names, complete, changes, doubts)
	}
}

func TestATableIsIncompleteUntilTheFirstListIsBelieved(t *testing.T) {
	b := newBoard(t)
	b.want("", false, 0, 0)
	b.relist("b c")
	b.want("", false, 0, 1)
	if b.confirm(named("b c")) != true {
		t.Error("the second read said the same")
	}
	b.want("b c", true, 1, 1)
}

func TestEventsChangeATable(t *testing.T) {
	b := newBoard(t)
	b.relist("a")
	for _, step := range []struct {
		do      func() error
		names   string
		changes int
	}{
		{func() error { return b.Add(named("b")[0]) }, "a b", 2},
		{func() error { return b.Update(named("b")[0]) }, "a b", 2}, // a heartbeat
		{func() error {
			node := named("b")[0]
			node.Labels = map[string]string{labelZone: "z"}
			return b.Update(node)
		}, "a b", 3},
		{func() error { return b.Delete(named("b")[0]) }, "a", 4},
		{func() error { return b.Delete(named("b")[0]) }, "a", 4},
		{b.Resync, "a", 4},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		b.want(step.names, true, step.changes, 0)
	}
	if err := b.Add(&corev1.Pod{}); err == nil {
		t.Error("a Pod is no Node")
	}
}

func TestAnImplausibleListIsHeldBackUntilASecondRead(t *testing.T) {
	const before = "a b c d e f"
	for _, tt := range []struct {
		name, relist, reason, second, after string
		right                               bool
	}{
		{"without this node, confirmed", "b c d e f", "no a", "b c d e f", "b c d e f", true},
		{"without this node, denied", "b c d e f", "no a", before, before, false},
		{"most are gone, confirmed", "a b", "4 of 6 are gone at once", "a b", "a b", true},
		{"most are gone, denied", "a b", "4 of 6 are gone at once", "a b c d e", "a b c d e", false},
		{"all are gone, confirmed", "", "6 of 6 are gone at once", "", "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBoard(t)
			b.relist(before)
			b.relist(tt.relist)
			b.want(before, true, 1, 1)
			if b.doubts[0] != tt.reason {
				t.Errorf("reason %q, want %q", b.doubts[0], tt.reason)
			}
			if right := b.confirm(named(tt.second)); right != tt.right {
				t.Errorf("the first read was right: %v", right)
			}
			b.want(tt.after, true, 2, 1)
			b.confirm(named("z")) // nothing is held: nobody is asked
			b.want(tt.after, true, 2, 1)
		})
	}
}

func TestEventsWhileAListIsHeldBackAreNotLost(t *testing.T) {
	b := newBoard(t)
	b.relist("a b c d e f")
	b.relist("a")
	if err := b.Add(named("new")[0]); err != nil {
		t.Fatal(err)
	}
	b.want("a b c d e f", true, 1, 1)
	b.confirm(named("a new"))
	b.want("a new", true, 2, 1)
}

func TestAPlausibleListEndsTheDoubt(t *testing.T) {
	b := newBoard(t)
	b.relist("a b c d e f")
	b.relist("a")
	b.relist("a b c d")
	b.want("a b c d", true, 2, 1)
	b.confirm(named("a")) // the second read came late
	b.want("a b c d", true, 2, 1)
}

func TestFewOrHalfMayGoAtOnce(t *testing.T) {
	for _, tt := range []struct{ before, after string }{
		{"a b c", "a"}, {"a b c d", "a b"}, {"a b c d e f", "a b c x y z"},
	} {
		b := newBoard(t)
		b.relist(tt.before)
		b.relist(tt.after)
		b.want(tt.after, true, 2, 0)
	}
}

func TestEndpointsThatLeaveTheirSlicesAreADeparture(t *testing.T) {
	slice := func(endpoints int) *model.Slice {
		s := &model.Slice{}
		for range endpoints {
			s.Endpoints = append(s.Endpoints, model.SliceEndpoint{})
		}
		return s
	}
	// Nobody is asked.
	c := NewCluster(kubernetes.NewForConfigOrDie(&rest.Config{}), Expectations{}, slog.New(slog.DiscardHandler))
	before := map[string]*model.Slice{"x/1": slice(50), "x/2": slice(50)}
	for _, tt := range []struct {
		after  map[string]*model.Slice
		reason string
	}{
		{map[string]*model.Slice{"x/1": slice(50)}, ""},
		{map[string]*model.Slice{"x/1": slice(20), "x/2": slice(20)}, fmt.Sprintf("%d of %d are gone at once", 60, 100)},
		{map[string]*model.Slice{"x/1": slice(100), "x/2": slice(0)}, ""},
	} {
		if got := c.slices.implausible(before, tt.after); got != tt.reason {
			t.Errorf("%q, want %q", got, tt.reason)
		}
	}
}
