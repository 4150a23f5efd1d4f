// SPDX-License-Identifier: Apache-2.0

// Package publish is all that beep writes to an API server: the hash seed's Secret, each node's Lease, and by the one
// node that is elected the Services' published addresses and the Events. Invariant: a write is made only of what an
// API server said and the writer saw itself, never twice for the same difference, and nothing is written that is
// already so.
package publish

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// permanent says that waiting does not help: a right is missing, or an object is not what it should be.
func permanent(err error) bool {
	var malformed *malformedError
	return errors.As(err, &malformed) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsInvalid(err)
}
