// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/beep-lb/beep/harness/packet"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
)

const (
	// stranger is in the nodes' network, but no node's address.
	stranger = "192.0.2.99"
	// unknownPeer is the reason, as `beep drops` names it.
	unknownPeer = "unknown-peer"
	// notice bounds the wait for the drop to be counted.
	notice = 5 * time.Second
)

// forge sends a packet that looks like another node's tunnel, to a pod, and shows that it is dropped and why.
func (d *demo) forge(ctx context.Context) error {
	target := netip.AddrPortFrom(d.topology.Addr("pod-b1", topo.V4), uint16(web.kind))
	d.heading("A stranger, %s, sends node-b a tunnel packet for %s, well formed in every byte.", stranger, target)
	if err := d.sendForged(target); err != nil {
		return err
	}
	drops, err := backoff.Retry(ctx, func() (map[string]uint64, error) {
		drops, err := d.daemons["node-b"].Drops()
		if err == nil && drops[unknownPeer] == 0 {
			err = fmt.Errorf("node-b has not dropped the forged packet: %v", drops)
		}
		return drops, err
	}, backoff.WithBackOff(backoff.NewConstantBackOff(10*time.Millisecond)), backoff.WithMaxElapsedTime(notice))
	if err != nil && ctx.Err() == nil {
		d.problem("%v", err)
	}
	if want := map[string]uint64{unknownPeer: 1}; err == nil && !maps.Equal(drops, want) {
		d.problem("node-b dropped %v, want %v", drops, want)
	}
	return d.tool("node-b", "drops")
}

// sendForged sends the packet from the client's device, past its own stack.
func (d *demo) sendForged(target netip.AddrPort) error {
	from, err := d.mac("client")
	if err != nil {
		return err
	}
	to, err := d.mac("node-b")
	if err != nil {
		return err
	}
	client, node := d.topology.Addr("client", topo.V4).String(), d.topology.Addr("node-b", topo.V4).String()
	raw, err := traffic.OpenRaw(d.topology.NS("client"), "eth0")
	if err != nil {
		return err
	}
	return raw.Send(packet.Build(packet.Eth(from, to), packet.IP(stranger, node).DF(), packet.Outer(50000),
		packet.Forward(target.String()), packet.IP(client, node).DF(), packet.TCP(50001, web.port).Flags("S").MSS(1400)))
}

// mac is the link-layer address of a host's eth0.
func (d *demo) mac(host string) (string, error) {
	link, err := d.topology.NS(host).Netlink().LinkByName("eth0")
	if err != nil {
		return "", fmt.Errorf("find eth0 of %s: %w", host, err)
	}
	return link.Attrs().HardwareAddr.String(), nil
}

// judge looks at what nobody sees on the screen: that no other node dropped anything.
func (d *demo) judge(context.Context) error {
	for _, node := range []string{"node-a", "node-c"} {
		drops, err := d.daemons[node].Drops()
		if err != nil {
			return err
		}
		if len(drops) > 0 {
			d.problem("%s dropped %v, want nothing", node, drops)
		}
	}
	return nil
}
