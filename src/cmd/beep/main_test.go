// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/src/model"
)

func TestMain(m *testing.M) {
	code := require.Main(m)
	if binary, err := build(); err == nil {
		os.RemoveAll(filepath.Dir(binary))
	}
	os.Exit(code)
}

func TestPattern(t *testing.T) {
	for _, tt := range []struct {
		pattern, socket string
		proto           model.Proto
		match           bool
	}{
		{"", "198.51.100.7:40000", model.TCP, true},
		{"198.51.100.7", "198.51.100.7:40000", model.TCP, true},
		{"198.51.100.7", "198.51.100.8:40000", model.TCP, false},
		{"198.51.100.0/24", "198.51.100.8:40000", model.UDP, true},
		{"198.51.100.9/24", "198.51.101.8:40000", model.UDP, false},
		{"198.51.100.7:40000", "198.51.100.7:40000", model.TCP, true},
		{"198.51.100.7:40001", "198.51.100.7:40000", model.TCP, false},
		{"tcp/192.0.2.1:80", "192.0.2.1:80", model.TCP, true},
		{"TCP/192.0.2.1:80", "192.0.2.1:80", model.UDP, false},
		{"udp/192.0.2.1", "192.0.2.1:80", model.UDP, true},
		{"2001:db8:c::7", "[2001:db8:c::7]:40000", model.TCP, true},
		{"[2001:db8:c::7]", "[2001:db8:c::7]:40000", model.TCP, true},
		{"[2001:db8:c::7]:40000", "[2001:db8:c::7]:40000", model.TCP, true},
		{"2001:db8:c::/64", "[2001:db8:c::7]:40000", model.TCP, true},
		{"::ffff:198.51.100.7", "198.51.100.7:1", model.TCP, true},
	} {
		var p pattern
		if tt.pattern != "" {
			if err := p.UnmarshalText([]byte(tt.pattern)); err != nil {
				t.Errorf("%s: %v", tt.pattern, err)
			}
		}
		if got := p.matches(tt.proto, netip.MustParseAddrPort(tt.socket)); got != tt.match {
			t.Errorf("%q matches %s %s: %t", tt.pattern, tt.proto, tt.socket, got)
		}
	}
	for _, bad := range []string{"", "tcp/", "sctp/192.0.2.1:80", "192.0.2.1/33", "192.0.2.1:x", "eth0"} {
		if err := new(pattern).UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q is a pattern", bad)
		}
	}
}
