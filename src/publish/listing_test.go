// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"maps"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/beep-lb/beep/src/compile"
	"github.com/beep-lb/beep/src/model"
)

func TestOnlyListedAddressesAreToRecall(t *testing.T) {
	known := []netip.Addr{nodeAddr(1), nodeAddr(2), nodeAddr(3)}
	service := &model.Service{Ingress: []model.Ingress{{IP: "192.0.2.1"}, {IP: "192.0.2.9"}, {Hostname: "elsewhere.example"}}}
	l := newListing()
	l.take([]*model.Service{service})
	got := l.toRecall(known, []compile.Status{{Service: service, Ingress: []model.Ingress{{IP: "::ffff:192.0.2.3"}}, Changed: true}})
	if want := []netip.Addr{nodeAddr(1), nodeAddr(3)}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestListing draws Services that come, change and go: what was read before makes no difference.
func TestListing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newListing()
		services := map[int]*model.Service{}
		for range rapid.IntRange(1, 10).Draw(t, "snapshots") {
			for range rapid.IntRange(0, 3).Draw(t, "changes") {
				number := rapid.IntRange(0, 5).Draw(t, "service")
				service := &model.Service{}
				for _, ip := range rapid.SliceOfN(rapid.SampledFrom([]string{"192.0.2.1", "::ffff:192.0.2.1", "192.0.2.2", "", "2001:db8:b::1"}), 0, 3).Draw(t, "listed") {
					service.Ingress = append(service.Ingress, model.Ingress{IP: ip})
				}
				if services[number] = service; rapid.Bool().Draw(t, "goes") {
					delete(services, number)
				}
			}
			now := slices.Collect(maps.Values(services))
			if got, want := l.take(now), newListing().take(now); !maps.Equal(got, want) {
				t.Fatalf("%v, want %v", got, want)
			}
		}
	})
}
