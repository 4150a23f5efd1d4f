// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/beep-lb/beep/src/datapath/sweep"
	"github.com/beep-lb/beep/src/model"
	"github.com/beep-lb/beep/src/reconcile"
)

// ledger notes what departures swept, and fails on demand.
type ledger struct {
	*departures
	t     *testing.T
	clock time.Time
	swept []string
	fails map[string]bool // sockets, or "strangers"
}

func newLedger(t *testing.T) *ledger {
	l := &ledger{departures: newDepartures(), t: t, clock: time.Unix(1000, 0), fails: map[string]bool{}}
	l.now = func() time.Time { return l.clock }
	l.remove = func(gone []model.Socket) (sweep.Departures, error) {
		result := sweep.Departures{Failed: map[model.Socket]error{}}
		var errs []error
		for _, socket := range gone {
			l.swept = append(l.swept, word(socket))
			if l.fails[word(socket)] {
				result.Failed[socket] = errors.New(word(socket) + " fails")
				errs = append(errs, result.Failed[socket])
			}
		}
		return result, errors.Join(errs...)
	}
	l.removeStrangers = func(known func(model.Socket) bool) (sweep.Departures, error) {
		l.swept = append(l.swept, "strangers")
		if !known(model.Socket{Addr: netip.MustParseAddr("10.42.1.5")}) {
			t.Error("10.42.1.5 is known")
		}
		if l.fails["strangers"] {
			return sweep.Departures{}, errors.New("strangers fail")
		}
		return sweep.Departures{}, nil
	}
	return l
}

func word(socket model.Socket) string {
	if socket.Port == 0 {
		return socket.Addr.String()
	}
	return socket.String()
}

// pods are a snapshot of one slice; each is an address and the UID of its pod, as 10.42.1.5=a.
func pods(words ...string) model.Snapshot {
	slice := &model.Slice{ObjectKey: model.ObjectKey{Namespace: "default", Name: "web-1"}, Service: "web", Family: model.IPv4,
		Ports: []model.SlicePort{{Proto: model.TCP, Port: 80}}}
	for _, word := range words {
		addr, uid, _ := strings.Cut(word, "=")
		slice.Endpoints = append(slice.Endpoints, model.SliceEndpoint{Addr: netip.MustParseAddr(addr), TargetUID: uid})
	}
	return model.Snapshot{Slices: []*model.Slice{slice}}
}

// run takes a snapshot in as a worker does, and returns what was swept and what is left of desired.
func (l *ledger) run(words ...string) (swept, installed string, err error) {
	l.t.Helper()
	l.swept = nil
	snapshot := pods(words...)
	front := model.Front{}
	for _, endpoint := range snapshot.Slices[0].Endpoints {
		front.Endpoints = append(front.Endpoints, model.Endpoint{Addr: endpoint.Addr, Port: 80})
	}
	desired := model.Desired{Fronts: []model.Front{front}}
	l.take(snapshot)
	err = errors.Join(l.before(&desired), l.after(snapshot))
	var left []string
	for _, endpoint := range desired.Fronts[0].Endpoints {
		left = append(left, endpoint.Addr.String())
	}
	slices.Sort(l.swept)
	return strings.Join(l.swept, " "), strings.Join(left, " "), err
}

func TestDepartures(t *testing.T) {
	type step struct {
		fails            string
		pods             string
		swept, installed string
		pass             time.Duration // before the step
	}
	for _, tt := range []struct {
		name  string
		steps []step
	}{
		{"one sweep after a restart, and none while nobody leaves", []step{
			{pods: "10.42.1.5=a", swept: "strangers", installed: "10.42.1.5"},
			{pods: "10.42.1.5=a 10.42.1.6=b", swept: "", installed: "10.42.1.5 10.42.1.6"},
		}},
		{"the sweep after a restart is tried until it succeeds", []step{
			{pods: "10.42.1.5=a", fails: "strangers", swept: "strangers", installed: "10.42.1.5"},
			{pods: "10.42.1.5=a", swept: "strangers", installed: "10.42.1.5"},
			{pods: "10.42.1.5=a", swept: "", installed: "10.42.1.5"},
		}},
		{"who leaves is swept at once, and once more after the grace", []step{
			{pods: "10.42.1.5=a 10.42.1.6=b", swept: "strangers", installed: "10.42.1.5 10.42.1.6"},
			{pods: "10.42.1.5=a", swept: "10.42.1.6", installed: "10.42.1.5"},
			{pods: "10.42.1.5=a", swept: "", installed: "10.42.1.5"},
			{pods: "10.42.1.5=a", pass: reconcile.Grace, swept: "10.42.1.6", installed: "10.42.1.5"},
			{pods: "10.42.1.5=a", pass: time.Hour, swept: "", installed: "10.42.1.5"},
		}},
		{"who came back is not swept a second time", []step{
			{pods: "10.42.1.5=a 10.42.1.6=b", swept: "strangers", installed: "10.42.1.5 10.42.1.6"},
			{pods: "10.42.1.5=a", swept: "10.42.1.6", installed: "10.42.1.5"},
			{pods: "10.42.1.5=a 10.42.1.6=c", swept: "", installed: "10.42.1.5 10.42.1.6"},
			{pods: "10.42.1.5=a 10.42.1.6=c", pass: reconcile.Grace, swept: "", installed: "10.42.1.5 10.42.1.6"},
		}},
		{"an address that another pod has now is swept once, and installed", []step{
			{pods: "10.42.1.5=a", swept: "strangers", installed: "10.42.1.5"},
			{pods: "10.42.1.5=b", swept: "10.42.1.5", installed: "10.42.1.5"},
			{pods: "10.42.1.5=b", pass: reconcile.Grace, swept: "", installed: "10.42.1.5"},
		}},
		{"a sweep that fails withholds that address alone, until it succeeds", []step{
			{pods: "10.42.1.5=a 10.42.1.6=b", swept: "strangers", installed: "10.42.1.5 10.42.1.6"},
			{pods: "10.42.1.5=a", fails: "10.42.1.6", swept: "10.42.1.6", installed: "10.42.1.5"},
			{pods: "10.42.1.5=a 10.42.1.6=c", fails: "10.42.1.6", swept: "10.42.1.6 10.42.1.6", installed: "10.42.1.5"},
			{pods: "10.42.1.5=a 10.42.1.6=c", swept: "10.42.1.6", installed: "10.42.1.5 10.42.1.6"},
			{pods: "10.42.1.5=a 10.42.1.6=c", pass: time.Hour, swept: "", installed: "10.42.1.5 10.42.1.6"},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLedger(t)
			for i, step := range tt.steps {
				l.clock = l.clock.Add(step.pass)
				clear(l.fails)
				if step.fails != "" {
					l.fails[step.fails] = true
				}
				swept, installed, err := l.run(strings.Fields(step.pods)...)
				if swept != step.swept || installed != step.installed || (err != nil) != (step.fails != "") {
					t.Errorf("step %d: swept %q, installed %q, %v; want %q, %q", i, swept, installed, err, step.swept, step.installed)
				}
			}
		})
	}
}

func TestTheSecondSweepIsDue(t *testing.T) {
	l := newLedger(t)
	_, _, _ = l.run("10.42.1.5=a", "10.42.1.6=b")
	if at := l.due(); !at.IsZero() {
		t.Errorf("due at %v and nobody left", at)
	}
	_, _, _ = l.run("10.42.1.5=a")
	if at := l.due(); !at.Equal(l.clock.Add(reconcile.Grace)) {
		t.Errorf("due at %v", at)
	}
}
