// SPDX-License-Identifier: Apache-2.0

package maps

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestSources(t *testing.T) {
	both(t, func(t *testing.T, m Maps) {
		same := func(want ...SourceKey) {
			t.Helper()
			got, err := m.Sources()
			must(t, err)
			if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Prefix{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		}
		key := func(front uint32, prefix string) SourceKey { return SourceKey{front, netip.MustParsePrefix(prefix)} }
		// The widest ranges of both families, whose addresses are no addresses of hosts.
		half4, half6, one := key(1, "0.0.0.0/1"), key(1, "::/1"), key(2, "198.51.100.7/32")
		must(t, m.PutSource(one), m.PutSource(half6), m.PutSource(half4))
		same(half4, half6, one)
		must(t, m.PutSource(half4))

		refused(t, m.PutSource(key(3, "10.0.0.0/8")), ErrCapacity, "FRONT_SOURCES", "source range 10.0.0.0/8 of front 3", "3 rows")
		for _, bad := range []netip.Prefix{{}, netip.MustParsePrefix("10.0.0.1/8"), netip.MustParsePrefix("::ffff:10.0.0.0/104")} {
			if err := m.PutSource(SourceKey{1, bad}); err == nil {
				t.Errorf("%s was written", bad)
			}
		}

		must(t, m.DeleteSource(half4))
		same(half6, one)
		config, err := m.Config()
		if err != nil || config.Epoch != 1 {
			t.Errorf("after a deletion: %+v, %v, want epoch 1", config, err)
		}
		refused(t, m.DeleteSource(half4), ErrNoRow, "source range 0.0.0.0/1 of front 1")
	})
}
