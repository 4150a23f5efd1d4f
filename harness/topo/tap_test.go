// SPDX-License-Identifier: Apache-2.0

package topo_test

import (
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/topo"
)

func TestATapIsAPortOfItsLAN(t *testing.T) {
	require.Root(t)
	require.Tun(t)
	topology := topo.New(t, topo.OneLAN(1, topo.Options{}))
	ns, err := topology.AddTap(topology.LANs[0].Name, "tap1")
	if err != nil {
		t.Fatal(err)
	}
	tap, err := ns.Netlink().LinkByName("tap1")
	if err != nil {
		t.Fatal(err)
	}
	bridge, err := ns.Netlink().LinkByIndex(tap.Attrs().MasterIndex)
	if err != nil || bridge.Type() != (&netlink.Bridge{}).Type() || tap.Type() != (&netlink.Tuntap{}).Type() {
		t.Errorf("%s on %+v, %v", tap.Type(), bridge, err)
	}
	if _, err := topology.AddTap("nowhere", "tap2"); err == nil {
		t.Error("a LAN that is not there has a tap")
	}
}
