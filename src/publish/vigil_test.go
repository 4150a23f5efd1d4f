// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// scripted is a lock that answers what a test wants. Everything else of a lock is not called.
type scripted struct {
	resourcelock.Interface
	record resourcelock.LeaderElectionRecord
	err    error
}

func (s *scripted) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record := s.record
	return &record, nil, s.err
}

func (s *scripted) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	if s.err == nil {
		s.record = record
	}
	return s.err
}

func (s *scripted) Identity() string { return "me_1" }

func TestSilenceCountsOnlyWhereSomebodyLooked(t *testing.T) {
	away := errors.New("the API server is away")
	const look = 3 * time.Second
	for name, tt := range map[string]struct {
		before func(looks func(count int), lock *scripted, clock *time.Time)
		node   string
		since  time.Duration // before the election
	}{
		"a publisher that died": {func(looks func(int), _ *scripted, _ *time.Time) { looks(6) }, "other", 5 * look},
		"one that has renewed once more": {func(looks func(int), lock *scripted, _ *time.Time) {
			looks(3)
			lock.record.RenewTime = metav1.Time{Time: time.Unix(2, 0)}
			looks(4)
		}, "other", 3 * look},
		"another one that came between": {func(looks func(int), lock *scripted, _ *time.Time) {
			looks(3)
			lock.record.HolderIdentity = "third_3"
			looks(2)
		}, "third", look},
		"an API server that was away": {func(looks func(int), lock *scripted, _ *time.Time) {
			looks(6)
			lock.err = away
			looks(1)
			lock.err = nil
			looks(1)
		}, "other", 0},
		"a look that took too long": {func(looks func(int), _ *scripted, clock *time.Time) {
			looks(6)
			*clock = clock.Add(electionRenew)
			looks(1)
		}, "other", 0},
		"one that gave up": {func(looks func(int), lock *scripted, _ *time.Time) {
			looks(3)
			lock.record.HolderIdentity = ""
			looks(1)
		}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			clock := time.Unix(1e9, 0)
			lock := &scripted{record: resourcelock.LeaderElectionRecord{HolderIdentity: "other_2", RenewTime: metav1.Time{Time: time.Unix(1, 0)}}}
			v := &vigil{Interface: lock, now: func() time.Time { return clock }}
			looks := func(count int) {
				for range count {
					clock = clock.Add(look)
					if _, _, err := v.Get(t.Context()); !errors.Is(err, lock.err) {
						t.Fatal(err)
					}
				}
			}
			tt.before(looks, lock, &clock)
			if err := v.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "me_1"}); err != nil {
				t.Fatal(err)
			}
			want := silence{tt.node, clock.Add(-tt.since)}
			if got := v.before(); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
			// Renewals of its own change nothing of that.
			looks(1)
			if err := v.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "me_1"}); err != nil {
				t.Fatal(err)
			}
			if got := v.before(); got != want {
				t.Errorf("after a renewal: %+v, want %+v", got, want)
			}
		})
	}
}

func TestALockThatWasNotTakenEndsNoSilence(t *testing.T) {
	lock := &scripted{record: resourcelock.LeaderElectionRecord{HolderIdentity: "other_2"}}
	v := &vigil{Interface: lock, now: time.Now}
	if _, _, err := v.Get(t.Context()); err != nil {
		t.Fatal(err)
	}
	lock.err = errors.New("another one was faster")
	if err := v.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "me_1"}); !errors.Is(err, lock.err) {
		t.Fatal(err)
	}
	if got := v.before(); got != (silence{}) {
		t.Errorf("%+v", got)
	}
}
