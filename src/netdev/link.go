// SPDX-License-Identifier: Apache-2.0

package netdev

import (
	"fmt"
	"strconv"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// MinIPv6MTU is the smallest MTU of a link that carries IPv6, in bytes (RFC 8200, section 5).
const MinIPv6MTU = 1280

// ethernetHeaderLen is the length of destination, source and EtherType, in bytes. A VLAN tag adds nothing:
// at TCX it is in the skb, not in the packet.
const ethernetHeaderLen = 14

// Link is one network device, comparable with ==.
type Link struct {
	Index int
	Name  string
	// MAC is the link-layer address as ip-link(8) prints it; empty where the device has none.
	MAC string
	// MTU is in bytes, without the link-layer header.
	MTU int
	// Type is the ARPHRD number of include/uapi/linux/if_arp.h.
	Type uint16
	// Kind is the type of a virtual device (veth, bond, wireguard, tuntap, …), "device" for others.
	Kind string
	// Up says that the device was switched on (IFF_UP); its carrier may still be missing.
	Up bool
}

// String names the device the way errors do.
func (l Link) String() string { return l.Name + " (ifindex " + strconv.Itoa(l.Index) + ")" }

// l3Only are the device types whose packets start at the IP header, by ARPHRD number.
var l3Only = map[uint16]string{
	unix.ARPHRD_PPP:     "PPP",
	unix.ARPHRD_RAWIP:   "RAWIP",
	unix.ARPHRD_TUNNEL:  "IPIP",
	unix.ARPHRD_TUNNEL6: "IP6IP6",
	unix.ARPHRD_SIT:     "SIT",
	unix.ARPHRD_IPGRE:   "GRE",
	unix.ARPHRD_IP6GRE:  "IP6GRE",
	unix.ARPHRD_NONE:    "NONE", // WireGuard, and tun devices
}

// L2HeaderLen is the number of bytes before the IP header of a packet on the device: 14 on Ethernet (VLANs,
// bonds and bridges included), 0 on types known to have none. Loopback and every other type is an error,
// since a wrong guess would read addresses from the wrong place.
func L2HeaderLen(link Link) (uint32, error) {
	switch link.Type {
	case unix.ARPHRD_ETHER:
		return ethernetHeaderLen, nil
	case unix.ARPHRD_LOOPBACK:
		return 0, fmt.Errorf("interface %s is loopback, which no client or peer comes through: leave it out of --uplink-iface", link.Name)
	}
	if _, known := l3Only[link.Type]; known {
		return 0, nil
	}
	return 0, fmt.Errorf("interface %s has link type %d (%s), whose header length is not known: "+
		"name an Ethernet device (ARPHRD 1) or an L3 tunnel with --uplink-iface", link.Name, link.Type, typeName(link.Type))
}

// typeName is the name of an ARPHRD number as ip-link(8) prints it.
func typeName(number uint16) string {
	return (&nl.IfInfomsg{IfInfomsg: unix.IfInfomsg{Type: number}}).EncapType()
}

// CheckMTU refuses an uplink that is too small for IPv6; ipv6 says whether the node's underlay has IPv6 or
// IPv6 clients are expected there. The kernel itself takes IPv6 off such a device, so its addresses would
// not tell.
func CheckMTU(link Link, ipv6 bool) error {
	if ipv6 && link.MTU < MinIPv6MTU {
		return fmt.Errorf("interface %s has MTU %d, and IPv6 needs at least %d (RFC 8200): "+
			"raise it with `ip link set %s mtu %d`, or leave IPv6 or this uplink out",
			link.Name, link.MTU, MinIPv6MTU, link.Name, MinIPv6MTU)
	}
	return nil
}

// decodeLink reads the payload of RTM_NEWLINK or RTM_DELLINK.
func decodeLink(payload []byte) (Link, error) {
	decoded, err := netlink.LinkDeserialize(nil, payload)
	if err != nil {
		return Link{}, fmt.Errorf("decode link message: %w", err)
	}
	header := nl.DeserializeIfInfomsg(payload)
	attrs := decoded.Attrs()
	return Link{
		Index: attrs.Index,
		Name:  attrs.Name,
		MAC:   attrs.HardwareAddr.String(),
		MTU:   attrs.MTU,
		Type:  header.Type,
		Kind:  decoded.Type(),
		Up:    header.Flags&unix.IFF_UP != 0,
	}, nil
}
