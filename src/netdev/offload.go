// SPDX-License-Identifier: Apache-2.0

package netdev

import "fmt"

// Features of a device as ethtool(8) names them.
const (
	segmentsTunnels = "tx-udp_tnl-segmentation"
	segmentsUDP     = "tx-udp-segmentation"
)

// featureTries bounds how often a change of features is asked for: on a busy machine the list of their names, which
// the library reads before it, has come back short.
const featureTries = 3

// CutUDP has the kernel cut UDP GSO packets up before a device that would hand them over in their tunnel as they are,
// and returns whether that was not so before. The receiver could not: of the tunnel that its program takes off, the
// kernel still knows in the packet (Linux 6.18), and drops a UDP one that it then has to cut up. TCP is not affected,
// nor is a device that does not take GSO packets in tunnels. The setting is the device's own and stays.
func (h *Host) CutUDP(link Link) (changed bool, err error) {
	features, err := h.features.Features(link.Name)
	if err != nil {
		return false, fmt.Errorf("interface %s: read offloads: %w", link.Name, err)
	}
	if !features[segmentsTunnels] || !features[segmentsUDP] {
		return false, nil
	}
	for range featureTries {
		if err = h.features.Change(link.Name, map[string]bool{segmentsUDP: false}); err == nil {
			return true, nil
		}
	}
	return false, fmt.Errorf("interface %s: `ethtool -K %[1]s %s off`, without which UDP_SEGMENT (QUIC) is lost in tunnels: %w",
		link.Name, segmentsUDP, err)
}
