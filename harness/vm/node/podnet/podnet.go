// SPDX-License-Identifier: Apache-2.0

// Package podnet composes the network of a node's pods: a configuration list of the Container Network Interface, of the plugins
// bridge, host-local and portmap. Invariant: what it composes depends on its input alone, and every prefix in it is canonical, as
// host-local wants them.
package podnet

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Network is what a node's pods get.
type Network struct {
	Name           string         // of the list
	Subnets        []netip.Prefix // that the node's pods have addresses of, IPv4 first
	Routes         []netip.Prefix // that a pod has by its node
	DefaultGateway bool           // a pod has the default routes by its node, too
	Masquerade     bool           // what pods send elsewhere leaves with the node's address, by rules of the plugin
	MTU            int            // of the pods' devices, in bytes; 0 is the plugin's default
}

// A configuration list (CNI specification 1.0, section 1), as far as the plugins here need it.
type (
	list struct {
		Version string   `json:"cniVersion"`
		Name    string   `json:"name"`
		Plugins []plugin `json:"plugins"`
	}
	plugin struct {
		Type             string          `json:"type"`
		Bridge           string          `json:"bridge,omitempty"`
		IsGateway        bool            `json:"isGateway,omitempty"`
		IsDefaultGateway bool            `json:"isDefaultGateway,omitempty"`
		HairpinMode      bool            `json:"hairpinMode,omitempty"`
		IPMasq           bool            `json:"ipMasq,omitempty"`
		MTU              int             `json:"mtu,omitempty"`
		IPAM             *ipam           `json:"ipam,omitempty"`
		Capabilities     map[string]bool `json:"capabilities,omitempty"`
	}
	ipam struct {
		Type   string         `json:"type"`
		Ranges [][]ipamRange  `json:"ranges"`
		Routes []ipamRouteDst `json:"routes,omitempty"`
	}
	ipamRange struct {
		Subnet netip.Prefix `json:"subnet"`
	}
	ipamRouteDst struct {
		To netip.Prefix `json:"dst"`
	}
)

// Conflist is the configuration list, in JSON: a bridge cni0 that is the pods' gateway, and hostPorts.
func (n Network) Conflist() ([]byte, error) {
	addresses := &ipam{Type: "host-local"}
	for _, subnet := range n.Subnets {
		addresses.Ranges = append(addresses.Ranges, []ipamRange{{Subnet: subnet.Masked()}})
	}
	for _, to := range n.Routes {
		addresses.Routes = append(addresses.Routes, ipamRouteDst{To: to.Masked()})
	}
	text, err := json.MarshalIndent(list{Version: "1.0.0", Name: n.Name, Plugins: []plugin{
		{
			Type: "bridge", Bridge: "cni0", IsGateway: true, IsDefaultGateway: n.DefaultGateway, HairpinMode: true,
			IPMasq: n.Masquerade, MTU: n.MTU, IPAM: addresses,
		},
		{Type: "portmap", Capabilities: map[string]bool{"portMappings": true}},
	}}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("network %s: %w", n.Name, err)
	}
	return text, nil
}

// FromFlannel is the network that flannel's own plugin would hand on to bridge, out of the text of flanneld's subnet.env
// (https://github.com/flannel-io/cni-plugin, the delegate of flannel's kube-flannel.yml): the plugin masquerades if
// flanneld does not, and a pod has routes to all of flannel's network. A key that is missing or cannot be read is an error.
func FromFlannel(env string) (Network, error) {
	values := map[string]string{}
	for line := range strings.Lines(env) {
		if key, value, found := strings.Cut(strings.TrimSpace(line), "="); found {
			values[key] = value
		}
	}
	n := Network{Name: "cbr0", DefaultGateway: true}
	for _, family := range []struct{ subnet, network string }{
		{"FLANNEL_SUBNET", "FLANNEL_NETWORK"}, {"FLANNEL_IPV6_SUBNET", "FLANNEL_IPV6_NETWORK"},
	} {
		if values[family.subnet] == "" {
			continue // a family that flannel does not serve
		}
		subnet, err := netip.ParsePrefix(values[family.subnet])
		if err != nil {
			return Network{}, fmt.Errorf("subnet.env: %s: %w", family.subnet, err)
		}
		network, err := netip.ParsePrefix(values[family.network])
		if err != nil {
			return Network{}, fmt.Errorf("subnet.env: %s: %w", family.network, err)
		}
		n.Subnets, n.Routes = append(n.Subnets, subnet.Masked()), append(n.Routes, network.Masked())
	}
	if len(n.Subnets) == 0 {
		return Network{}, fmt.Errorf("subnet.env: neither FLANNEL_SUBNET nor FLANNEL_IPV6_SUBNET is there: %q", env)
	}
	var err error
	if n.MTU, err = strconv.Atoi(values["FLANNEL_MTU"]); err != nil {
		return Network{}, fmt.Errorf("subnet.env: FLANNEL_MTU: %w", err)
	}
	masqueraded, err := strconv.ParseBool(values["FLANNEL_IPMASQ"])
	if err != nil {
		return Network{}, fmt.Errorf("subnet.env: FLANNEL_IPMASQ: %w", err)
	}
	n.Masquerade = !masqueraded
	return n, nil
}
