// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/beep-lb/beep/src/config"
	"github.com/beep-lb/beep/src/model"
	"github.com/beep-lb/beep/src/netdev"
)

// findUplinks returns the devices that the flags name, or those that `auto` finds for the node's addresses, and
// refuses, all at once, those that beep cannot serve.
func findUplinks(host *netdev.Host, flags *config.Datapath, desired model.Desired) ([]netdev.Link, error) {
	links, err := namedUplinks(host, flags.Uplinks())
	if flags.AutoUplinks() {
		links, err = host.AutoUplinks(nodeAddresses(desired))
	}
	if err != nil {
		return nil, err
	}
	if len(links) > config.MaxUplinks {
		return nil, fmt.Errorf("auto finds %d uplinks, at most %d are served: name them with --uplink-iface", len(links), config.MaxUplinks)
	}
	ipv6, err := expectsIPv6(host, flags, desired)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, link := range links {
		errs = append(errs, checkUplink(link, ipv6))
	}
	return links, errors.Join(errs...)
}

// checkUplink refuses a device that the programs cannot serve.
func checkUplink(link netdev.Link, ipv6 bool) error {
	if _, err := netdev.L2HeaderLen(link); err != nil {
		return err
	}
	return netdev.CheckMTU(link, ipv6)
}

func namedUplinks(host *netdev.Host, names []string) ([]netdev.Link, error) {
	var links []netdev.Link
	var errs []error
	for _, name := range names {
		link, err := host.ByName(name)
		if err != nil {
			errs = append(errs, fmt.Errorf("%w: name another with --uplink-iface", err))
			continue
		}
		links = append(links, link)
	}
	return links, errors.Join(errs...)
}

// nodeAddresses are the addresses that clients and peers reach this node at, as far as fixtures tell.
func nodeAddresses(desired model.Desired) []netip.Addr {
	addresses := []netip.Addr{desired.Underlay4, desired.Underlay6}
	for _, front := range desired.Fronts {
		addresses = append(addresses, front.Addr)
	}
	addresses = slices.DeleteFunc(addresses, func(addr netip.Addr) bool { return !addr.IsValid() })
	slices.SortFunc(addresses, netip.Addr.Compare)
	return slices.Compact(addresses)
}

// expectsIPv6 says whether IPv6 will pass the uplinks: by the fixtures, or where there are none by the addresses
// of the node's devices.
func expectsIPv6(host *netdev.Host, flags *config.Datapath, desired model.Desired) (bool, error) {
	if flags.FixtureRun() {
		return slices.ContainsFunc(nodeAddresses(desired), netip.Addr.Is6), nil
	}
	addresses, err := host.Addresses()
	return slices.ContainsFunc(addresses, func(a netdev.Address) bool {
		addr := a.Prefix.Addr()
		return addr.Is6() && addr.IsGlobalUnicast()
	}), err
}
