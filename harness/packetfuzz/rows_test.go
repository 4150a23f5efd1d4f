// SPDX-License-Identifier: Apache-2.0

package packetfuzz

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/src/datapath/bpfobj"
	rows "github.com/beep-lb/beep/src/datapath/maps"
)

// knownFlags are all flags of a flow.
const knownFlags = uint32(rows.Replied | rows.FinClient | rows.FinEndpoint | rows.Closed | rows.Paired | rows.Tunnelled)

// checkRows says which written row holds what no packet and no configuration has said.
func (e *event) checkRows() error {
	said := e.addresses()
	var errs []error
	for name, tables := range map[string][2]map[bpfobj.BeepFlowKey]bpfobj.BeepFlow{
		"established": {e.before.established, e.after.established},
		"pending":     {e.before.pending, e.after.pending},
	} {
		for key, row := range tables[1] {
			if was, there := tables[0][key]; there && was == row {
				continue
			}
			if err := e.checkFlow(key, row, said); err != nil {
				errs = append(errs, fmt.Errorf("%s %+v %+v: %w", name, key, row, err))
			}
			if _, paired := tables[1][mirror(key, row)]; !paired && row.Flags&uint32(rows.Paired) != 0 {
				errs = append(errs, fmt.Errorf("%s %+v %+v: its mirror is not beside it", name, key, row))
			}
		}
	}
	errs = append(errs, e.checkProof())
	for key, row := range e.after.fragments {
		if was, there := e.before.fragments[key]; there && was == row {
			continue
		}
		if !said[ipOf(key.Src)] || !said[ipOf(key.Dst)] || !oneFamily(key.Src, key.Dst) || key.Pad != ([3]uint8{}) || !isFlowProto(key.Proto) {
			errs = append(errs, fmt.Errorf("FRAGMENTS %+v %+v", key, row))
		}
	}
	for key, row := range e.after.affinity {
		if was, there := e.before.affinity[key]; there && was == row {
			continue
		}
		if !said[ipOf(key.Client)] || key.Pad != 0 || row.Endpoint.Pad != 0 || !said[ipOf(row.Endpoint.Addr)] ||
			host(row.Endpoint.PortBe) != podPort || row.Generation != 1 || !e.isNow(row.LastSeen) {
			errs = append(errs, fmt.Errorf("AFFINITY %+v %+v", key, row))
		}
	}
	return errors.Join(errs...)
}

// checkFlow says what is wrong with a row.
func (e *event) checkFlow(key bpfobj.BeepFlowKey, row bpfobj.BeepFlow, said map[netip.Addr]bool) error {
	switch {
	case key.Kind < uint8(rows.Forward) || key.Kind > uint8(rows.Reverse):
		return errors.New("unknown kind")
	case !isFlowProto(key.Proto):
		return errors.New("unknown protocol")
	case key.Pad != ([2]uint8{}):
		return errors.New("pad is not zero")
	case !oneFamily(key.Src, key.Dst) || !oneFamily(key.Src, row.NatAddr):
		return errors.New("addresses of two families")
	case !said[ipOf(key.Src)] || !said[ipOf(key.Dst)] || !said[ipOf(row.NatAddr)]:
		return errors.New("an address that nobody said")
	case row.Flags&^knownFlags != 0:
		return errors.New("unknown flags")
	case row.Peer != ([16]byte{}) && !slices.Contains(peers, ipOf(row.Peer)):
		return errors.New("a peer that is none")
	case row.Uplink != uint32(e.w.eth0):
		return errors.New("another device")
	case int(row.FrontId) > len(e.w.fronts):
		return errors.New("unknown front")
	case row.Epoch != 0:
		return errors.New("unknown epoch")
	}
	for _, mac := range [][6]uint8{row.ClientMac, row.UplinkMac} {
		if mac != ([6]uint8{}) && mac != [6]byte(e.in[:6]) && mac != [6]byte(e.in[6:12]) && !e.oldMAC(mac) {
			return fmt.Errorf("a link-layer address that nobody said: %x", mac)
		}
	}
	return nil
}

// checkProof says which flow was moved to the established ones though the packet is no proof of it: a spoofed one must
// not get there.
func (e *event) checkProof() error {
	for key := range e.after.established {
		if _, there := e.before.established[key]; there {
			continue
		}
		was, there := e.before.pending[key]
		if !there || was.Flags&uint32(rows.Replied) == 0 && key.Proto == unix.IPPROTO_TCP {
			return fmt.Errorf("%+v is established without an answer", key)
		}
		if s := e.said(); key.Proto == unix.IPPROTO_TCP && (s.flags&0x16 != 0x10 || uint16(s.ack) != was.Proof) {
			return fmt.Errorf("%+v is established by flags %#x and number %d, which proves nothing: %d would", key, s.flags, s.ack, was.Proof)
		}
	}
	return nil
}

// said is the packet, or the one inside a tunnel.
func (e *event) said() seen {
	s, ok := parse(e.in, 14, uint16(e.in[12])<<8|uint16(e.in[13]))
	if ok && s.proto == unix.IPPROTO_UDP && s.fragment == whole && s.dport == 6081 {
		if t, ours := tunnel(e.in, s); ours && t.wellMade {
			s, _ = parse(e.in[:s.end], t.inner, innerType(e.in, t))
		}
	}
	return s
}

// oldMAC says whether a row from before holds the link-layer address.
func (e *event) oldMAC(mac [6]uint8) bool {
	for _, table := range []map[bpfobj.BeepFlowKey]bpfobj.BeepFlow{e.before.established, e.before.pending} {
		for row := range maps.Values(table) {
			if row.ClientMac == mac || row.UplinkMac == mac {
				return true
			}
		}
	}
	return false
}

func isFlowProto(proto uint8) bool { return proto == unix.IPPROTO_TCP || proto == unix.IPPROTO_UDP }

// oneFamily says whether two addresses of rows are of one family.
func oneFamily(a, b [16]byte) bool {
	return netip.AddrFrom16(a).Is4In6() == netip.AddrFrom16(b).Is4In6()
}

// isNow says whether a time in seconds is this one's or the last one's.
func (e *event) isNow(seconds uint32) bool {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC_COARSE, &t); err != nil {
		return false
	}
	return uint32(t.Sec)-seconds <= 2
}

// addresses are all that the packet or the configuration has said.
func (e *event) addresses() map[netip.Addr]bool {
	said := map[netip.Addr]bool{}
	for _, f := range families {
		for _, a := range []netip.Addr{f.self, f.peer, f.client, f.outside, f.here, f.there, f.frontOfPeer} {
			said[a] = true
		}
	}
	for _, table := range []map[bpfobj.BeepFlowKey]bpfobj.BeepFlow{e.before.established, e.before.pending} {
		for key := range table {
			said[ipOf(key.Src)], said[ipOf(key.Dst)] = true, true
		}
	}
	outer, ok := network(e.in, 14, uint16(e.in[12])<<8|uint16(e.in[13]))
	said[outer.src], said[outer.dst] = true, true
	if !ok || outer.end > len(e.in) {
		return said
	}
	if t, ours := tunnel(e.in, outer); ours && t.wellMade {
		inner, _ := network(e.in, t.inner, innerType(e.in, t))
		said[inner.src], said[inner.dst] = true, true
	}
	return said
}
