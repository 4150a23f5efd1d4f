// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"

	"github.com/vishvananda/netlink"

	"github.com/beep-lb/beep/harness/netns"
	"github.com/beep-lb/beep/harness/topo"
)

const (
	segmentDevice = "segment" // the bridge, in the control plane's namespace
	nodeDevice    = "mgmt"    // a node's card on it
	firstNode     = 11        // the last byte of the first node's address
)

// addSegment makes the management network: a bridge that has the API server's address.
func (c *ControlPlane) addSegment() error {
	snooping := false
	attrs := netlink.NewLinkAttrs()
	attrs.Name = segmentDevice
	if err := c.ns.Netlink().LinkAdd(&netlink.Bridge{LinkAttrs: attrs, MulticastSnooping: &snooping}); err != nil {
		return fmt.Errorf("add bridge: %w", err)
	}
	return setAddress(c.ns, segmentDevice, netip.PrefixFrom(Server.Addr(), Management.Bits()))
}

// plug gives a node a card on the management network, outside of its plan: neither the drawing nor beep knows it.
func (c *ControlPlane) plug(topology *topo.Topology, node string) error {
	c.mu.Lock()
	number := c.plugged
	c.plugged++
	c.mu.Unlock()
	last := firstNode + number
	if last > 254 {
		return fmt.Errorf("node %s: the management network is full", node)
	}
	ns := topology.NS(node)
	attrs := netlink.NewLinkAttrs()
	attrs.Name = fmt.Sprintf("node%d", number)
	cable := &netlink.Veth{LinkAttrs: attrs, PeerName: nodeDevice, PeerNamespace: netlink.NsFd(ns.FD())}
	nl := c.ns.Netlink()
	if err := nl.LinkAdd(cable); err != nil {
		return fmt.Errorf("node %s: add veth: %w", node, err)
	}
	bridge, err := nl.LinkByName(segmentDevice)
	if err != nil {
		return fmt.Errorf("node %s: find %s: %w", node, segmentDevice, err)
	}
	if err := nl.LinkSetMaster(cable, bridge); err != nil {
		return fmt.Errorf("node %s: plug in: %w", node, err)
	}
	if err := nl.LinkSetUp(cable); err != nil {
		return fmt.Errorf("node %s: set its port up: %w", node, err)
	}
	c.mu.Lock()
	c.cards[node] = attrs.Name
	c.mu.Unlock()
	addr := Management.Addr().As4()
	addr[3] = byte(last)
	if err := setAddress(ns, nodeDevice, netip.PrefixFrom(netip.AddrFrom4(addr), Management.Bits())); err != nil {
		return fmt.Errorf("node %s: %w", node, err)
	}
	return nil
}

// SetCable pulls a node's cable to the management network, or plugs it in again: without it, nobody on the node has an
// API server, and nobody is told so.
func (c *ControlPlane) SetCable(node string, plugged bool) error {
	c.mu.Lock()
	name := c.cards[node]
	c.mu.Unlock()
	link, err := c.ns.Netlink().LinkByName(name)
	if err != nil {
		return fmt.Errorf("node %s: find its port %q: %w", node, name, err)
	}
	set := c.ns.Netlink().LinkSetDown
	if plugged {
		set = c.ns.Netlink().LinkSetUp
	}
	if err := set(link); err != nil {
		return fmt.Errorf("node %s: its cable: %w", node, err)
	}
	return nil
}

// setAddress sets a device up and gives it its address.
func setAddress(ns *netns.NS, device string, prefix netip.Prefix) error {
	nl := ns.Netlink()
	link, err := nl.LinkByName(device)
	if err != nil {
		return fmt.Errorf("find %s: %w", device, err)
	}
	if err := nl.LinkSetUp(link); err != nil {
		return fmt.Errorf("set %s up: %w", device, err)
	}
	address := &netlink.Addr{IPNet: &net.IPNet{
		IP: prefix.Addr().AsSlice(), Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen()),
	}}
	if err := nl.AddrAdd(link, address); err != nil {
		return fmt.Errorf("add %s to %s: %w", prefix, device, err)
	}
	return nil
}

// healthy asks a program of the control plane for its health, by a URL of its own namespace. Its certificate is one
// that it made for itself.
func (c *ControlPlane) healthy(ctx context.Context, url string) error {
	return askHealth(ctx, &http.Client{Transport: &http.Transport{
		DialContext: c.ns.DialContext, DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}, url)
}

// askHealth is nil if the answer is 200.
func askHealth(ctx context.Context, client *http.Client, url string) error {
	_, err := fetch(ctx, client, url)
	return err
}

// fetch returns the body of an answer of 200.
func fetch(ctx context.Context, client *http.Client, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	return exchange(client, request)
}

// exchange is fetch for any request.
func exchange(client *http.Client, request *http.Request) (string, error) {
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	return string(body), err
}

// RoutePods gives every node of a plan the routes of a routing CNI, to the pods of all others. kube-proxy cannot work
// without them; beep needs none.
func RoutePods(plan *topo.Plan) {
	for _, node := range plan.Hosts {
		if node.Role != topo.Node {
			continue
		}
		for _, cidr := range PodCIDRsOf(NodeOf(plan, node.Name)) {
			family := topo.V6
			if cidr.Addr().Is4() {
				family = topo.V4
			}
			via := plan.Addr(node.Name, family)
			for i := range plan.Hosts {
				if other := &plan.Hosts[i]; via.IsValid() && other.Role == topo.Node && other.Name != node.Name {
					other.Routes = append(other.Routes, topo.Route{To: cidr, Via: via})
				}
			}
		}
	}
}
