// SPDX-License-Identifier: Apache-2.0

package beep_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/beep-lb/beep/harness/beep"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/src/config"
	"github.com/beep-lb/beep/src/model"
)

func TestFixturesOfATopology(t *testing.T) {
	web := beep.Service{Proto: model.TCP, Port: 80, TargetPort: 8080, Pods: []string{"pod-a1", "pod-b1"}}
	dns := beep.Service{Proto: model.UDP, Port: 53, Pods: []string{"pod-b1"}, Affinity: true}
	empty := beep.Service{Proto: model.TCP, Port: 81}
	some := beep.Service{Proto: model.TCP, Port: 82, Affinity: true, Timeout: 5, Sources: []string{"198.51.100.0/24", "2001:db8:c::/64"}}
	nobody := beep.Service{Proto: model.TCP, Port: 83, Sources: []string{}}
	for _, tc := range []struct {
		name     string
		plan     topo.Plan
		node     string
		underlay topo.Families
		services []beep.Service
		want     string
	}{
		{"dual stack, each front over its own family", topo.TwoNodes(topo.Options{}), "node-a", 0, []beep.Service{web}, `
node=192.0.2.11
node=2001:db8:b::11
peer=192.0.2.12
peer=2001:db8:b::12
target=TCP/10.42.1.11:8080
target=TCP/[2001:db8:a::1:11]:8080
front=TCP/192.0.2.11:80,10.42.1.11:8080
front=TCP/192.0.2.11:80,10.42.2.11:8080@192.0.2.12
front=TCP/[2001:db8:b::11]:80,[2001:db8:a::1:11]:8080
front=TCP/[2001:db8:b::11]:80,[2001:db8:a::2:11]:8080@2001:db8:b::12`},
		{"one underlay family, affinity", topo.TwoNodes(topo.Options{}), "node-a", topo.V6, []beep.Service{dns}, `
node=2001:db8:b::11
peer=2001:db8:b::12
front=UDP/192.0.2.11:53,10.42.2.11:53@2001:db8:b::12:affinity
front=UDP/[2001:db8:b::11]:53,[2001:db8:a::2:11]:53@2001:db8:b::12:affinity`},
		{"the other family of an underlay that lacks the front's", topo.TwoNodes(topo.Options{Families: topo.V4, Underlay: topo.V6}),
			"node-b", topo.V6, []beep.Service{web}, `
peer=2001:db8:b::11
node=2001:db8:b::12
target=TCP/10.42.2.11:8080
front=TCP/192.0.2.12:80,10.42.1.11:8080@2001:db8:b::11
front=TCP/192.0.2.12:80,10.42.2.11:8080`},
		{"a front without endpoints", topo.OneLAN(1, topo.Options{Families: topo.V4}), "node-a", topo.V4, []beep.Service{empty}, `
node=192.0.2.11
front=TCP/192.0.2.11:81`},
		{"limited to some clients, and to none", topo.OneLAN(1, topo.Options{Families: topo.V4}), "node-a", topo.V4,
			[]beep.Service{some, nobody}, `
node=192.0.2.11
front=TCP/192.0.2.11:82:affinity=5
source=TCP/192.0.2.11:82,198.51.100.0/24
source=TCP/192.0.2.11:82,2001:db8:c::/64
front=TCP/192.0.2.11:83
source=TCP/192.0.2.11:83`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := beep.Fixtures(&tc.plan, tc.node, tc.underlay, tc.services)
			if diff := cmp.Diff(strings.TrimSpace(tc.want), strings.Join(got, "\n")); diff != "" {
				t.Errorf("fixtures (-want +got):\n%s", diff)
			}
			if _, err := config.ParseFixtures(got); err != nil {
				t.Errorf("beep refuses them: %v", err)
			}
		})
	}
}
