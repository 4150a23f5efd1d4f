// SPDX-License-Identifier: Apache-2.0

package model

import (
	"net/netip"
	"slices"
	"testing"
	"time"
)

func TestLimits(t *testing.T) {
	v4, v6 := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8:b::1")
	for _, tt := range []struct {
		name    string
		addr    netip.Addr
		sources []string // nil: everybody
		ranges  []string
		limited bool
	}{
		{"no list", v4, nil, nil, false},
		{"an empty list", v4, []string{}, nil, true},
		{"ranges of the front's family", v4, []string{"10.0.0.0/8", "198.51.100.0/24", "2001:db8::/32"}, []string{"10.0.0.0/8", "198.51.100.0/24"}, true},
		{"ranges of the other family alone", v6, []string{"10.0.0.0/8"}, nil, true},
		{"everybody of the family", v4, []string{"0.0.0.0/0", "10.0.0.0/8"}, nil, false},
		{"everybody of the other family", v6, []string{"0.0.0.0/0"}, nil, true},
		{"half of the addresses", v6, []string{"::/1"}, []string{"::/1"}, true},
	} {
		front := Front{Socket: Socket{Addr: tt.addr, Port: 80, Proto: TCP}}
		if tt.sources != nil {
			front.Sources = []netip.Prefix{}
		}
		for _, source := range tt.sources {
			front.Sources = append(front.Sources, netip.MustParsePrefix(source))
		}
		ranges, limited := front.Limits()
		var got []string
		for _, source := range ranges {
			got = append(got, source.String())
		}
		if !slices.Equal(got, tt.ranges) || limited != tt.limited {
			t.Errorf("%s: %v, %t, want %v, %t", tt.name, got, limited, tt.ranges, tt.limited)
		}
	}
}

func TestAffinityFor(t *testing.T) {
	for _, tt := range []struct {
		front Front
		want  time.Duration
	}{
		{Front{}, 0},
		{Front{AffinityTimeout: time.Second}, 0},
		{Front{ClientIPAffinity: true}, 3 * time.Hour},
		{Front{ClientIPAffinity: true, AffinityTimeout: 5 * time.Second}, 5 * time.Second},
	} {
		if got := tt.front.AffinityFor(); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.front, got, tt.want)
		}
	}
}
