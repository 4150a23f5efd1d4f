// SPDX-License-Identifier: Apache-2.0

package netdev

import "testing"

func TestCutUDP(t *testing.T) {
	inNamespace(t, func(t *testing.T) {
		ip(t, `link add eth0 type veth peer name eth1
			tuntap add dev tun0 mode tun`)
		host := open(t)
		for _, step := range []struct {
			name    string
			changed bool
		}{
			{"eth0", true},
			{"eth0", false}, // it is so already
			{"tun0", false}, // takes no GSO packets in tunnels
		} {
			link, err := host.ByName(step.name)
			if err != nil {
				t.Error(err)
				return
			}
			handsOver, err := host.HandsOver([]Link{link})
			if err != nil || !handsOver {
				t.Errorf("%s hands over: %v, %v", step.name, handsOver, err)
			}
			changed, err := host.CutUDP(link)
			if err != nil || changed != step.changed {
				t.Errorf("%s: changed %v, %v; want %v", step.name, changed, err, step.changed)
			}
		}
		features, err := host.features.Features("eth0")
		if err != nil || features[segmentsUDP] || !features[segmentsTunnels] {
			t.Errorf("eth0: %s %v, %s %v, %v", segmentsUDP, features[segmentsUDP], segmentsTunnels, features[segmentsTunnels], err)
		}
		if _, err := host.CutUDP(Link{Name: "eth7"}); err == nil {
			t.Error("no error about a device that is not there")
		}
	})
}

func TestWired(t *testing.T) {
	all := []device{
		{index: 2, kind: "device", bus: "pci"},
		{index: 3, kind: "device", bus: "virtio"},
		{index: 4, kind: "veth", lower: 2},
		{index: 5, kind: "vlan", lower: 2},
		{index: 6, kind: "vlan", lower: 4},
		{index: 7, kind: "bond"},
		{index: 8, kind: "device", bus: "pci", master: 7},
		{index: 9, kind: "device", bus: "usb", master: 7},
		{index: 10, kind: "bridge"},
		{index: 11, kind: "device", bus: "pci", master: 10},
		{index: 12, kind: "tuntap", master: 10},
		{index: 13, kind: "bond"},
		{index: 14, kind: "wireguard"},
		{index: 15, kind: "tuntap"},
		{index: 16, kind: "vlan", lower: 7},
		{index: 17, kind: "vlan", lower: 99},
		{index: 18, kind: "vlan", lower: 18},
	}
	for name, tt := range map[string]struct {
		index int
		want  bool
	}{
		"a network card":                         {2, true},
		"a paravirtual one":                      {3, false},
		"veth, whatever index its other end has": {4, false},
		"a VLAN on a card":                       {5, true},
		"a VLAN on veth":                         {6, false},
		"a bond of cards":                        {7, true},
		"a bridge with a tap":                    {10, false},
		"a bond without ports":                   {13, false},
		"WireGuard":                              {14, true},
		"a tunnel to a program":                  {15, false},
		"a VLAN on a bond":                       {16, true},
		"a VLAN on a device of elsewhere":        {17, false},
		"a device on itself":                     {18, false},
		"no device":                              {50, false},
	} {
		if got := wired(all, tt.index, len(all)); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
