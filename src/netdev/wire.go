// SPDX-License-Identifier: Apache-2.0

package netdev

import (
	"fmt"

	"github.com/vishvananda/netlink"
)

// virtioBus is the bus of paravirtual devices, whose host may be another kernel that takes packets as they are
// (segmentation of UDP tunnels across virtio-net came with Linux 6.17).
const virtioBus = "virtio"

// HandsOver says whether any of the devices may give its packets to their receiver as the kernel has them, instead of
// as bytes on a wire: all but those whose packets a physical device sends, directly or as VLAN, bond or bridge, and
// WireGuard.
func (h *Host) HandsOver(uplinks []Link) (bool, error) {
	all, err := dump(func() ([]device, error) { return dumpAs(h, decodeDevice) })
	if err != nil {
		return false, fmt.Errorf("list interfaces: %w", err)
	}
	for _, uplink := range uplinks {
		if !wired(all, uplink.Index, len(all)) {
			return true, nil
		}
	}
	return false, nil
}

// device is what a device is made of.
type device struct {
	index  int
	kind   string // as Link.Kind
	bus    string // of the physical device; empty where there is none
	lower  int    // ifindex of the device below, or of the other end
	master int    // ifindex of the device that this one is a port of
}

func decodeDevice(payload []byte) (device, error) {
	decoded, err := netlink.LinkDeserialize(nil, payload)
	if err != nil {
		return device{}, fmt.Errorf("decode link message: %w", err)
	}
	attrs := decoded.Attrs()
	return device{attrs.Index, decoded.Type(), attrs.ParentDevBus, attrs.ParentIndex, attrs.MasterIndex}, nil
}

// wired says whether what a device sends becomes bytes on a wire. depth bounds how many devices stand on each other.
func wired(all []device, index, depth int) bool {
	for _, d := range all {
		if d.index != index || depth == 0 {
			continue
		}
		switch d.kind {
		case "wireguard":
			return true
		case "vlan", "macvlan":
			return wired(all, d.lower, depth-1)
		case "bond", "team", "bridge":
			return portsWired(all, index, depth-1)
		}
		return d.bus != "" && d.bus != virtioBus
	}
	return false
}

// portsWired says whether all ports of a device are, and that it has one.
func portsWired(all []device, master, depth int) bool {
	ports := 0
	for _, d := range all {
		if d.master != master {
			continue
		}
		if !wired(all, d.index, depth) {
			return false
		}
		ports++
	}
	return ports > 0
}
