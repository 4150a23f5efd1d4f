// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcoordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/beep-lb/beep/src/model"
)

const (
	// renewEvery is how often a Lease is renewed: a quarter of its duration, as kubelets do.
	renewEvery = leaseDuration / 4 * time.Second
	// renewAgain is the pause after a renewal that failed.
	renewAgain = 2 * time.Second
	// farewell bounds the last write of a process that was asked to end.
	farewell = 3 * time.Second
)

// NodeLease keeps a node's own Lease: what the publisher knows of it.
type NodeLease struct {
	leases typedcoordinationv1.LeaseInterface
	log    *slog.Logger
	now    func() time.Time

	lock sync.Mutex
	says model.Lease
	uid  string
	// told receives when says changed.
	told chan struct{}

	// held is the Lease as it was last read or written.
	held *coordinationv1.Lease
	// renewed is when, by this node's clock.
	renewed time.Time
}

// NewNodeLease prepares a Lease. Nothing is written before the first Say.
func NewNodeLease(leases typedcoordinationv1.LeaseInterface, log *slog.Logger) *NodeLease {
	return &NodeLease{leases: leases, log: log, now: time.Now, told: make(chan struct{}, 1)}
}

// Say replaces what the Lease says; says.Node is its name, and uid that of the Node. It is written soon.
func (l *NodeLease) Say(says model.Lease, uid string) {
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.uid == uid && says.Equal(&l.says) {
		return
	}
	l.says, l.uid = says, uid
	select {
	case l.told <- struct{}{}:
	default:
	}
}

// Run writes the Lease when it changes and renews it every ten seconds until ctx ends. Then it gives it up, so that
// the node leaves the Services at once.
func (l *NodeLease) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	timer.Stop()
	for {
		select {
		case <-ctx.Done():
			l.leave(context.WithoutCancel(ctx))
			return
		case <-l.told:
		case <-timer.C:
		}
		next := renewEvery
		if err := l.write(ctx, false); err != nil && ctx.Err() == nil {
			l.log.Warn("this node's Lease is not renewed, trying on", "error", err)
			next = renewAgain
		}
		timer.Reset(next)
	}
}

// Renewed is when the Lease was last written; zero if it was not.
func (l *NodeLease) Renewed() time.Time {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.renewed
}

func (l *NodeLease) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, farewell)
	defer cancel()
	if l.Renewed().IsZero() {
		return // nobody knows of this node
	}
	if err := l.write(ctx, true); err != nil {
		l.log.Warn("this node's Lease is not given up: it leaves the Services when the Lease runs out", "error", err)
	}
}

// write creates or renews the Lease. What another process wrote meanwhile is read, and replaced.
func (l *NodeLease) write(ctx context.Context, left bool) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	for try := 1; ; try++ {
		err := l.tryWrite(ctx, left)
		again := apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err)
		if !again || try == 3 {
			return err
		}
		l.held = nil
	}
}

func (l *NodeLease) tryWrite(ctx context.Context, left bool) error {
	l.lock.Lock()
	says, uid := l.says, l.uid
	l.lock.Unlock()
	says.Left = left
	if l.held == nil {
		held, err := l.leases.Get(ctx, says.Node, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("read Lease %s: %w", says.Node, err)
		}
		if err == nil {
			l.held = held
		}
	}
	next := &coordinationv1.Lease{}
	if l.held != nil {
		next = l.held.DeepCopy()
	}
	next.Name = says.Node
	next.OwnerReferences = owner(says.Node, uid)
	writeStatement(next, says)
	now := metav1.NewMicroTime(l.now())
	next.Spec.LeaseDurationSeconds = new(int32(leaseDuration))
	next.Spec.RenewTime = &now
	next.Spec.HolderIdentity = new(says.Node)
	var err error
	if l.held == nil {
		next, err = l.leases.Create(ctx, next, metav1.CreateOptions{})
	} else {
		next, err = l.leases.Update(ctx, next, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("write Lease %s: %w", says.Node, err)
	}
	l.held = next
	l.lock.Lock()
	l.renewed = l.now()
	l.lock.Unlock()
	return nil
}
