// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// bench runs a Runner in a bubble of its own time and notes when it worked.
type bench struct {
	t       *testing.T
	changed chan struct{}
	start   time.Time
	runs    []time.Duration // since start
	err     error           // of the next runs
	again   time.Duration   // asked for by the next runs; 0 is never
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, changed: make(chan struct{}, 1), start: time.Now()}
	runner := Runner{Do: func(context.Context) (time.Time, error) {
		b.runs = append(b.runs, time.Since(b.start))
		if b.again == 0 {
			return time.Time{}, b.err
		}
		return time.Now().Add(b.again), b.err
	}}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); runner.Run(ctx, b.changed) }()
	t.Cleanup(func() { cancel(); <-done })
	return b
}

// change tells of one, and waits until it is taken in.
func (b *bench) change() {
	select {
	case b.changed <- struct{}{}:
	default:
	}
	synctest.Wait()
}

// pass lets time pass.
func (b *bench) pass(d time.Duration) { time.Sleep(d); synctest.Wait() }

func TestRunnerIsQuietWithoutChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.pass(time.Hour)
		if len(b.runs) != 0 {
			t.Errorf("ran at %v", b.runs)
		}
		b.change()
		b.pass(time.Hour)
		if len(b.runs) != 1 || b.runs[0] != time.Hour {
			t.Errorf("ran at %v, want once, at once", b.runs)
		}
	})
}

func TestRunnerComesBackWhenAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.again = 2 * time.Second
		b.change()
		b.again = 0
		b.pass(time.Hour)
		if len(b.runs) != 2 || b.runs[1] != 2*time.Second {
			t.Errorf("ran at %v, want 0s and 2s", b.runs)
		}
	})
}

func TestRunnerRetriesWithGrowingPausesAndNeverGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.err = errors.New("no")
		b.change()
		b.pass(time.Hour)
		if n := len(b.runs); n < 3600/45 || n > 3600/15+10 {
			t.Fatalf("%d runs in an hour", n)
		}
		if first := b.runs[1]; first < firstPause/2 || first > firstPause*3/2 {
			t.Errorf("the first retry came after %v", first)
		}
		for i := 20; i < len(b.runs); i++ {
			if pause := b.runs[i] - b.runs[i-1]; pause < longestPause/2 || pause > longestPause*3/2 {
				t.Errorf("pause %d is %v", i, pause)
			}
		}
		b.err = nil
		b.pass(time.Minute)
		count := len(b.runs)
		b.pass(time.Hour)
		if len(b.runs) != count {
			t.Errorf("%d runs after a success", len(b.runs)-count)
		}
		// The next failure begins anew.
		b.err = errors.New("no again")
		b.change()
		b.pass(firstPause * 2)
		if len(b.runs) < count+2 {
			t.Error("no early retry after a success")
		}
	})
}

func TestRunnersDoNotRetryInStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newBench(t), newBench(t)
		a.err, b.err = errors.New("no"), errors.New("no")
		a.change()
		b.change()
		a.pass(time.Minute)
		if a.runs[3] == b.runs[3] {
			t.Errorf("both ran at %v", a.runs[3])
		}
	})
}

func TestChangesNeverPostponeARetryNorMakeItHot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.err = errors.New("no")
		b.change()
		b.pass(10 * time.Minute) // the pauses are long now
		at := len(b.runs)
		last := b.runs[at-1]
		// A change every 10 seconds, each of which fails: the retry comes in between, when it was due.
		for range 6 {
			b.pass(10 * time.Second)
			b.change()
		}
		retried := false
		for _, run := range b.runs[at:] {
			onTheTen := (run-10*time.Minute)%(10*time.Second) == 0
			retried = retried || !onTheTen && run-last <= longestPause*3/2
		}
		if !retried {
			t.Errorf("ran at %v after %v, and never for the retry", b.runs[at:], last)
		}
		if n := len(b.runs) - at; n > 6+5 {
			t.Errorf("%d runs in a minute of 6 changes", n)
		}
	})
}

func TestAStormOfChangesIsTakenInGulps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		for range 1000 {
			b.change()
			b.pass(time.Millisecond)
		}
		b.pass(time.Second)
		if n := len(b.runs); n > 21 || n < 15 {
			t.Errorf("%d runs in a second", n)
		}
		if last := b.runs[len(b.runs)-1]; last < 950*time.Millisecond {
			t.Errorf("the last change was lost: last run at %v", last)
		}
	})
}
