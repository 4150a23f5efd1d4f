// SPDX-License-Identifier: Apache-2.0

package maps

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/beep-lb/beep/src/datapath/bpfobj"
	"github.com/beep-lb/beep/src/model"
)

// toNetwork turns a number into what the kernel's __be16 holds, and back: the object is little-endian only.
func toNetwork(host uint16) uint16 {
	var wire [2]byte
	binary.BigEndian.PutUint16(wire[:], host)
	return binary.LittleEndian.Uint16(wire[:])
}

// toHost is the inverse of toNetwork.
func toHost(network uint16) uint16 { return toNetwork(network) }

// toAddr16 writes an address as the ABI has it: 16 bytes, IPv4 mapped (RFC 4291, section 2.5.5.2).
func toAddr16(addr netip.Addr) ([16]byte, error) {
	if !addr.IsValid() || addr.Zone() != "" || addr.Is4In6() || addr.IsUnspecified() {
		return [16]byte{}, fmt.Errorf("address %q: want an unmapped unicast address without a zone", addr)
	}
	return addr.As16(), nil
}

// toOptional16 is toAddr16 where the zero Addr means none: all bytes zero.
func toOptional16(addr netip.Addr) ([16]byte, error) {
	if addr == (netip.Addr{}) {
		return [16]byte{}, nil
	}
	return toAddr16(addr)
}

func fromAddr16(addr [16]byte) netip.Addr { return netip.AddrFrom16(addr).Unmap() }

func fromOptional16(addr [16]byte) netip.Addr {
	if addr == ([16]byte{}) {
		return netip.Addr{}
	}
	return fromAddr16(addr)
}

func toSocketKey(socket model.Socket) (bpfobj.BeepSocketKey, error) {
	addr, err := toAddr16(socket.Addr)
	if err != nil {
		return bpfobj.BeepSocketKey{}, err
	}
	if socket.Proto != model.TCP && socket.Proto != model.UDP {
		return bpfobj.BeepSocketKey{}, fmt.Errorf("%s: want TCP or UDP", socket.Proto)
	}
	return bpfobj.BeepSocketKey{Addr: addr, PortBe: toNetwork(socket.Port), Proto: uint8(socket.Proto)}, nil
}

func fromSocketKey(key bpfobj.BeepSocketKey) model.Socket {
	return model.Socket{Addr: fromAddr16(key.Addr), Port: toHost(key.PortBe), Proto: model.Proto(key.Proto)}
}

func toFrontMeta(front FrontMeta) (bpfobj.BeepFrontMeta, error) {
	if front.ID == 0 {
		return bpfobj.BeepFrontMeta{}, fmt.Errorf("front id 0: ids start at 1")
	}
	row := bpfobj.BeepFrontMeta{
		Id: front.ID, Generation: front.Generation, Count: front.Count, RingSize: front.RingSize,
		AffinityTimeout: front.AffinitySeconds,
	}
	if front.ClientIPAffinity {
		row.Flags |= uint32(bpfobj.BeepFrontFlagFRONT_CLIENT_IP_AFFINITY)
	}
	if front.SourcesLimited {
		row.Flags |= uint32(bpfobj.BeepFrontFlagFRONT_SOURCES_LIMITED)
	}
	return row, nil
}

func fromFrontMeta(key bpfobj.BeepSocketKey, row bpfobj.BeepFrontMeta) FrontMeta {
	return FrontMeta{
		Socket: fromSocketKey(key), ID: row.Id, Generation: row.Generation, Count: row.Count, RingSize: row.RingSize,
		ClientIPAffinity: row.Flags&uint32(bpfobj.BeepFrontFlagFRONT_CLIENT_IP_AFFINITY) != 0,
		AffinitySeconds:  row.AffinityTimeout,
		SourcesLimited:   row.Flags&uint32(bpfobj.BeepFrontFlagFRONT_SOURCES_LIMITED) != 0,
	}
}

func toEndpointKey(key EndpointKey) bpfobj.BeepEndpointKey {
	return bpfobj.BeepEndpointKey{FrontId: key.Front, Generation: key.Generation, Index: key.Index}
}

func toEndpoint(endpoint model.Endpoint) (bpfobj.BeepEndpoint, error) {
	addr, err := toAddr16(endpoint.Addr)
	if err != nil {
		return bpfobj.BeepEndpoint{}, err
	}
	peer, err := toOptional16(endpoint.Peer)
	if err != nil {
		return bpfobj.BeepEndpoint{}, fmt.Errorf("peer: %w", err)
	}
	return bpfobj.BeepEndpoint{Addr: addr, Peer: peer, PortBe: toNetwork(endpoint.Port)}, nil
}

func fromEndpoint(row bpfobj.BeepEndpoint) model.Endpoint {
	return model.Endpoint{Addr: fromAddr16(row.Addr), Port: toHost(row.PortBe), Peer: fromOptional16(row.Peer)}
}

// The bits of a source_key in front of an address, and those of an address in front of an IPv4 one.
const (
	sourceFrontBits = 32
	mappedBits      = 96
)

// sourceV6 is SOURCE_V6 of bpf/lib/abi.h.
const sourceV6 = 1 << 31

func toSourceKey(key SourceKey) (bpfobj.BeepSourceKey, error) {
	addr := key.Prefix.Addr()
	if !key.Prefix.IsValid() || key.Prefix != key.Prefix.Masked() || addr.Is4In6() || addr.Zone() != "" {
		return bpfobj.BeepSourceKey{}, fmt.Errorf("source range %s: want a network address with its length", key.Prefix)
	}
	row := bpfobj.BeepSourceKey{Prefixlen: uint32(sourceFrontBits + key.Prefix.Bits()), FrontId: key.Front, Addr: addr.As16()}
	if addr.Is4() {
		row.Prefixlen += mappedBits
	} else {
		row.FrontId |= sourceV6
	}
	return row, nil
}

func fromSourceKey(row bpfobj.BeepSourceKey) SourceKey {
	addr, bits := netip.AddrFrom16(row.Addr), int(row.Prefixlen)-sourceFrontBits
	if row.FrontId&sourceV6 == 0 {
		addr, bits = addr.Unmap(), bits-mappedBits
	}
	return SourceKey{Front: row.FrontId &^ sourceV6, Prefix: netip.PrefixFrom(addr, bits)}
}

func toRingKey(key RingKey) bpfobj.BeepRingKey {
	return bpfobj.BeepRingKey{FrontId: key.Front, Generation: key.Generation, Block: key.Block}
}

func toConfig(config Config) (bpfobj.BeepConfig, error) {
	if config.ABI != ABI {
		return bpfobj.BeepConfig{}, fmt.Errorf("layout %d: this build writes layout %d", config.ABI, ABI)
	}
	row := bpfobj.BeepConfig{Seed: config.Seed, Abi: config.ABI, Epoch: config.Epoch}
	var err error
	if row.UnderlayV4, err = toOptional16(config.Underlay4); err != nil {
		return bpfobj.BeepConfig{}, fmt.Errorf("IPv4 underlay: %w", err)
	}
	if row.UnderlayV6, err = toOptional16(config.Underlay6); err != nil {
		return bpfobj.BeepConfig{}, fmt.Errorf("IPv6 underlay: %w", err)
	}
	return row, nil
}

func fromConfig(row bpfobj.BeepConfig) Config {
	return Config{
		Seed: row.Seed, Underlay4: fromOptional16(row.UnderlayV4), Underlay6: fromOptional16(row.UnderlayV6),
		ABI: row.Abi, Epoch: row.Epoch,
	}
}
