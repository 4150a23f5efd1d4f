// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// bench runs a Runner in a bubble of its own time and notes when it worked.
type bench struct {
	t       *testing.T
	changed chan struct{}
	start   time.Time
	lock    sync.Mutex
	at      []time.Duration // since start
	err     atomic.Pointer[error]
	again   atomic.Int64 // nanoseconds, asked for by the next runs; 0 is never
}

// fails has the next runs fail, or with nil succeed.
func (b *bench) fails(err error) { b.err.Store(&err) }

func newBench(t *testing.T) *bench {
	b := &bench{t: t, changed: make(chan struct{}, 1), start: time.Now()}
	b.fails(nil)
	runner := Runner{Do: func(context.Context) (time.Time, error) {
		b.lock.Lock()
		b.at = append(b.at, time.Since(b.start))
		b.lock.Unlock()
		if again := time.Duration(b.again.Load()); again != 0 {
			return time.Now().Add(again), *b.err.Load()
		}
		return time.Time{}, *b.err.Load()
	}}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); runner.Run(ctx, b.changed) }()
	t.Cleanup(func() { cancel(); <-done })
	return b
}

// runs is when it worked so far.
func (b *bench) runs() []time.Duration {
	b.lock.Lock()
	defer b.lock.Unlock()
	return slices.Clone(b.at)
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
		if len(b.runs()) != 0 {
			t.Errorf("ran at %v", b.runs())
		}
		b.change()
		b.pass(time.Hour)
		if len(b.runs()) != 1 || b.runs()[0] != time.Hour {
			t.Errorf("ran at %v, want once, at once", b.runs())
		}
	})
}

func TestRunnerComesBackWhenAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.again.Store(int64(2 * time.Second))
		b.change()
		b.again.Store(0)
		b.pass(time.Hour)
		if len(b.runs()) != 2 || b.runs()[1] != 2*time.Second {
			t.Errorf("ran at %v, want 0s and 2s", b.runs())
		}
	})
}

func TestRunnerRetriesWithGrowingPausesAndNeverGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.fails(errors.New("no"))
		b.change()
		b.pass(time.Hour)
		if n := len(b.runs()); n < 3600/45 || n > 3600/15+10 {
			t.Fatalf("%d runs in an hour", n)
		}
		if first := b.runs()[1]; first < firstPause/2 || first > firstPause*3/2 {
			t.Errorf("the first retry came after %v", first)
		}
		for i := 20; i < len(b.runs()); i++ {
			if pause := b.runs()[i] - b.runs()[i-1]; pause < longestPause/2 || pause > longestPause*3/2 {
				t.Errorf("pause %d is %v", i, pause)
			}
		}
		b.fails(nil)
		b.pass(time.Minute)
		count := len(b.runs())
		b.pass(time.Hour)
		if len(b.runs()) != count {
			t.Errorf("%d runs after a success", len(b.runs())-count)
		}
		// The next failure begins anew.
		b.fails(errors.New("no again"))
		b.change()
		b.pass(firstPause * 2)
		if len(b.runs()) < count+2 {
			t.Error("no early retry after a success")
		}
	})
}

func TestRunnersDoNotRetryInStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newBench(t), newBench(t)
		a.fails(errors.New("no"))
		b.fails(errors.New("no"))
		a.change()
		b.change()
		a.pass(time.Minute)
		if a.runs()[3] == b.runs()[3] {
			t.Errorf("both ran at %v", a.runs()[3])
		}
	})
}

func TestChangesNeverPostponeARetryNorMakeItHot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.fails(errors.New("no"))
		b.change()
		b.pass(10 * time.Minute) // the pauses are long now
		at := len(b.runs())
		last := b.runs()[at-1]
		// A change every 10 seconds, each of which fails: the retry comes in between, when it was due.
		for range 6 {
			b.pass(10 * time.Second)
			b.change()
		}
		retried := false
		for _, run := range b.runs()[at:] {
			onTheTen := (run-10*time.Minute)%(10*time.Second) == 0
			retried = retried || !onTheTen && run-last <= longestPause*3/2
		}
		if !retried {
			t.Errorf("ran at %v after %v, and never for the retry", b.runs()[at:], last)
		}
		if n := len(b.runs()) - at; n > 6+5 {
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
		if n := len(b.runs()); n > 21 || n < 15 {
			t.Errorf("%d runs in a second", n)
		}
		if last := b.runs()[len(b.runs())-1]; last < 950*time.Millisecond {
			t.Errorf("the last change was lost: last run at %v", last)
		}
	})
}
