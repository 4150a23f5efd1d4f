// SPDX-License-Identifier: Apache-2.0

package maps

import (
	"fmt"
	"net/netip"

	"github.com/beep-lb/beep/src/datapath/bpfobj"
	"github.com/beep-lb/beep/src/model"
)

// AffinityKey is a key of AFFINITY: a client of a front.
type AffinityKey struct {
	Client netip.Addr
	Front  uint32
}

// String names the row in errors.
func (k AffinityKey) String() string { return fmt.Sprintf("client %s of front %d", k.Client, k.Front) }

// Affinity is a row of AFFINITY: the endpoint that a client keeps.
type Affinity struct {
	AffinityKey
	Endpoint model.Endpoint
	// Generation is the endpoint set in which the endpoint was last found.
	Generation uint32
	// LastSeen is in seconds of the coarse monotonic clock.
	LastSeen uint32
}

// Affinities calls visit for every row until it returns false. visit may delete rows.
func (k *Kernel) Affinities(visit func(Affinity) bool) error {
	err := k.affinity.each(func(key bpfobj.BeepAffinityKey, row bpfobj.BeepAffinity) bool {
		return visit(Affinity{
			AffinityKey: AffinityKey{Client: fromAddr16(key.Client), Front: key.FrontId},
			Endpoint:    fromEndpoint(row.Endpoint), Generation: row.Generation, LastSeen: row.LastSeen,
		})
	})
	if err != nil {
		return fmt.Errorf("read %s: %w", bpfobj.BeepMapAFFINITY, err)
	}
	return nil
}

// DeleteAffinity removes one row. An absent row is ErrNoRow.
func (k *Kernel) DeleteAffinity(key AffinityKey) error {
	wire := bpfobj.BeepAffinityKey{Client: key.Client.As16(), FrontId: key.Front}
	return remove(k.affinity, bpfobj.BeepMapAFFINITY, key, wire)
}

// PutAffinity writes one row; in a full table the kernel evicts another. The programs write their rows themselves:
// this is for tests that need a row of a certain state.
func (k *Kernel) PutAffinity(row Affinity) error {
	endpoint, err := toEndpoint(row.Endpoint)
	if err != nil {
		return fmt.Errorf("%s: %w", row.AffinityKey, err)
	}
	wire := bpfobj.BeepAffinityKey{Client: row.Client.As16(), FrontId: row.Front}
	return put(k.affinity, bpfobj.BeepMapAFFINITY, row.AffinityKey, wire,
		bpfobj.BeepAffinity{Endpoint: endpoint, Generation: row.Generation, LastSeen: row.LastSeen})
}
