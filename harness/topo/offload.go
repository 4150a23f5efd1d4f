// SPDX-License-Identifier: Apache-2.0

package topo

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/safchain/ethtool"

	"github.com/beep-lb/beep/harness/netns"
)

// loopback is left alone by Offloads: it belongs to no wire.
const loopback = "lo"

// Offloads switches GRO, GSO, TSO (also of UDP and of tunnels), scatter-gather and transmit checksums on or off
// on every device of the topology, bridges and the node sides of pods included. With them off every packet on a
// wire is one that a simple NIC would send, with a complete checksum. With them on every veth has them all; a bridge
// and a tun device take what they can.
func (t *Topology) Offloads(on bool) error {
	var errs []error
	for _, member := range t.Members() {
		if err := setOffloads(member.NS, on); err != nil {
			errs = append(errs, fmt.Errorf("offloads of %s: %w", member.Name, err))
		}
	}
	return errors.Join(errs...)
}

// OffloadsOf is Offloads for the devices of one host or pod: what it hands over, it has finished itself, or has not.
func (t *Topology) OffloadsOf(name string, on bool) error {
	if err := setOffloads(t.NS(name), on); err != nil {
		return fmt.Errorf("offloads of %s: %w", name, err)
	}
	return nil
}

func setOffloads(ns *netns.NS, on bool) error {
	var handle *ethtool.Ethtool
	err := ns.Do(func() (err error) {
		handle, err = ethtool.NewEthtool() // its socket keeps the namespace
		return err
	})
	if err != nil {
		return err
	}
	defer handle.Close()
	links, err := ns.Netlink().LinkList()
	if err != nil {
		return fmt.Errorf("list devices: %w", err)
	}
	for _, link := range links {
		if name := link.Attrs().Name; name != loopback {
			if err := setDeviceOffloads(handle, name, on); err != nil {
				return fmt.Errorf("device %s: %w", name, err)
			}
		}
	}
	return nil
}

func setDeviceOffloads(handle *ethtool.Ethtool, device string, on bool) error {
	features, err := handle.FeaturesWithState(device)
	if err != nil {
		return fmt.Errorf("read features: %w", err)
	}
	want := map[string]bool{}
	for name, state := range features {
		if isOffload(name) && state.Available && !state.NeverChanged {
			want[name] = on
		}
	}
	// The library asks for the list of features again, and on a busy machine that question has come back short.
	for attempt := 0; ; attempt++ {
		if err = handle.Change(device, want); err == nil {
			break
		}
		if attempt == 3 {
			return fmt.Errorf("set features: %w", err)
		}
	}
	if on {
		return nil
	}
	features, err = handle.FeaturesWithState(device)
	if err != nil {
		return fmt.Errorf("read features: %w", err)
	}
	var kept []string
	for name := range want {
		if features[name].Active {
			kept = append(kept, name)
		}
	}
	if len(kept) > 0 {
		slices.Sort(kept)
		return fmt.Errorf("set to off, but the kernel kept %s", strings.Join(kept, ", "))
	}
	return nil
}

// isOffload tells by the kernel's names of features (net/ethtool/common.c) what Offloads switches.
func isOffload(feature string) bool {
	return feature == "rx-gro" || feature == "tx-scatter-gather" || strings.HasPrefix(feature, "tx-checksum-") ||
		strings.HasPrefix(feature, "tx-") && strings.HasSuffix(feature, "segmentation")
}
