// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// silence is a node of which nothing was seen since a time, by the clock of who looked.
type silence struct {
	node  string
	since time.Time
}

// vigil is the election's lock as a candidate has it, who looks at it every few seconds: whoever is elected because the publisher
// before was silent has seen that silence, and need not wait for the whole of a Lease to call that node lost. What counts are looks in
// a row that the API server has answered: when nobody could look, nothing was seen.
type vigil struct {
	resourcelock.Interface
	now func() time.Time

	lock    sync.Mutex
	holder  string
	renewed metav1.Time
	looked  time.Time // when the API server answered last; zero if it did not
	since   time.Time
	ended   silence // of whoever held the lock before this candidate
}

// Get looks at the lock.
func (v *vigil) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := v.Interface.Get(ctx)
	v.lock.Lock()
	defer v.lock.Unlock()
	if err != nil {
		v.looked = time.Time{}
		return record, raw, err
	}
	now := v.now()
	same := record.HolderIdentity == v.holder && record.RenewTime.Equal(&v.renewed)
	if !same || now.Sub(v.looked) > electionRenew {
		v.since = now
	}
	v.holder, v.renewed, v.looked = record.HolderIdentity, record.RenewTime, now
	return record, raw, nil
}

// Update takes the lock, renews it, or gives it up.
func (v *vigil) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := v.Interface.Update(ctx, record)
	v.lock.Lock()
	defer v.lock.Unlock()
	if err == nil && v.holder != v.Identity() {
		node, _, _ := strings.Cut(v.holder, identitySeparator)
		v.ended = silence{node, v.since}
		v.holder = v.Identity()
	}
	return err
}

// before is the silence by which this candidate was elected; of no node if the lock was free.
func (v *vigil) before() silence {
	v.lock.Lock()
	defer v.lock.Unlock()
	return v.ended
}
