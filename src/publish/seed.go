// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// SeedSecret is the name of the Secret that holds the hash seed, and seedKey that of its sixteen bytes in it.
const (
	SeedSecret = "beep-hash-seed"
	seedKey    = "seed"
)

// lookAtSeed is how often the Secret is read: it may be read by name alone, and so not watched.
const lookAtSeed = time.Minute

// Seed is the flow hash's, the same on every node of the cluster. It is kept in a Secret, since who knows it can
// compute where a flow goes. Its methods may be called from any goroutine.
type Seed struct {
	secrets typedcorev1.SecretInterface
	log     *slog.Logger
	value   atomic.Pointer[[16]byte]
}

// OpenSeed reads the Secret, and creates it with a random seed where there is none. It waits for an API server that
// cannot be reached, telling waits why, and fails if the right is missing or the Secret holds something else: without the cluster's
// seed, a node would send flows elsewhere than all others.
func OpenSeed(ctx context.Context, secrets typedcorev1.SecretInterface, log *slog.Logger, waits func(error)) (*Seed, error) {
	s := &Seed{secrets: secrets, log: log}
	return s, insist(ctx, log.With("for", "the hash seed"), waits, func(ctx context.Context) error {
		value, err := s.read(ctx)
		if err == nil {
			s.value.Store(&value)
		}
		return err
	})
}

// Value is the seed as it was last read.
func (s *Seed) Value() [16]byte { return *s.value.Load() }

// Run reads the Secret once a minute until ctx ends, and calls changed after the seed did. A Secret that is gone is
// created again with the seed in force, so that no flow moves.
func (s *Seed) Run(ctx context.Context, changed func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(jittered(lookAtSeed)):
		}
		value, err := s.read(ctx)
		switch {
		case err != nil:
			s.log.Warn("the hash seed stays as it was", "error", err)
		case value != s.Value():
			s.log.Warn("the hash seed changed, and flows that no row pins go elsewhere")
			s.value.Store(&value)
			changed()
		}
	}
}

// read reads the Secret, or creates it. Whoever is late reads what the first one created.
func (s *Seed) read(ctx context.Context) ([16]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	secret, err := s.secrets.Get(ctx, SeedSecret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		secret, err = s.secrets.Create(ctx, s.fresh(), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			secret, err = s.secrets.Get(ctx, SeedSecret, metav1.GetOptions{})
		}
	}
	if err != nil {
		return [16]byte{}, fmt.Errorf("hash seed: %w", err)
	}
	var seed [16]byte
	data := secret.Data[seedKey]
	if len(data) != len(seed) {
		return seed, &malformedError{fmt.Sprintf(
			"hash seed: Secret %s/%s has %d bytes under %q and not %d: delete it, and a new seed is drawn",
			secret.Namespace, secret.Name, len(data), seedKey, len(seed))}
	}
	return [16]byte(data), nil
}

// fresh is the Secret as it is created: with the seed in force, or at first with a random one.
func (s *Seed) fresh() *corev1.Secret {
	var seed [16]byte
	rand.Read(seed[:]) // never fails, says its documentation
	if now := s.value.Load(); now != nil {
		seed = *now
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: SeedSecret, Labels: map[string]string{"app.kubernetes.io/name": "beep"}},
		Type:       corev1.SecretTypeOpaque, Data: map[string][]byte{seedKey: seed[:]},
	}
}

// malformedError is a Secret that somebody else filled.
type malformedError struct{ text string }

func (e *malformedError) Error() string { return e.text }
