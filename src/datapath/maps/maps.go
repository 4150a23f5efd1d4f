// SPDX-License-Identifier: Apache-2.0

// Package maps is the one place where Go and the kernel's maps meet: typed rows in netip values and host byte
// order on one side, the generated ABI types on the other. It ships a Fake that refuses what the kernel refuses.
// Invariant: nothing of cilium/ebpf and no network byte order leaves this package, and a row that is written
// has every byte set.
package maps

import (
	"errors"
	"net/netip"

	"github.com/beep-lb/beep/src/datapath/bpfobj"
	"github.com/beep-lb/beep/src/model"
)

// ABI is the version of the layout of every map (BEEP_ABI of bpf/lib/abi.h; a test compares the two).
const ABI = 3

// RingBlock is the number of endpoint indexes in one row of FRONT_RING.
const RingBlock = len(bpfobj.BeepRingBlock{}.Index)

// The causes that a caller can act on. Every error of this package that wraps none of them is the kernel's, with
// the text of its errno.
var (
	// ErrCapacity says that a map has as many rows as its flag allows (E2BIG). The error names map and flag.
	ErrCapacity = errors.New("map is full")
	// ErrNoMemory says that the kernel has no memory for a row right now (ENOMEM): try again.
	ErrNoMemory = errors.New("no memory for a row")
	// ErrNoRow says that there is no row of that key (ENOENT).
	ErrNoRow = errors.New("no such row")
)

// FrontMeta is a row of FRONT_META: a front, and which endpoint set is in force.
type FrontMeta struct {
	model.Socket
	// ID names the front in the other FRONT_ maps; never 0.
	ID uint32
	// Generation is the endpoint set in force.
	Generation uint32
	// Count is the number of endpoints; with 0, new flows are dropped.
	Count uint32
	// RingSize is the number of slots of the ring; 0 with fewer than two endpoints.
	RingSize uint32
	// ClientIPAffinity hashes the client's address only, and remembers the choice.
	ClientIPAffinity bool
	// AffinitySeconds is how long a client keeps its endpoint after its last new flow; 0 is not at all.
	AffinitySeconds uint32
	// SourcesLimited says that FRONT_SOURCES lists who may come.
	SourcesLimited bool
}

// EndpointKey is a key of FRONT_ENDPOINTS. Index runs from 0 to the front's Count - 1.
type EndpointKey struct{ Front, Generation, Index uint32 }

// RingKey is a key of FRONT_RING. Block b holds the slots from b * RingBlock on.
type RingKey struct{ Front, Generation, Block uint32 }

// SourceKey is a key of FRONT_SOURCES: a range of clients that a front takes.
type SourceKey struct {
	Front  uint32
	Prefix netip.Prefix
}

// Config is the one row of CONFIG: what may change while the programs run.
type Config struct {
	// Seed keys the flow hash.
	Seed [16]byte
	// Underlay4 and Underlay6 are this node's tunnel addresses; the zero Addr means none of that family.
	Underlay4, Underlay6 netip.Addr
	// ABI is the layout of the maps beside it.
	ABI uint32
	// Epoch rises when a peer, a target or a source range goes, so that the programs check every flow anew.
	Epoch uint32
}

// Maps is what a reconciler needs: whole tables to read, single rows to write. Put replaces a row of the same
// key. Delete of an absent row is ErrNoRow. A row that cannot be written as it is (an address with a zone, an
// unknown protocol) is an error before the kernel is asked. One process writes at a time (pinfs.Lock).
type Maps interface {
	// Fronts lists FRONT_META sorted by Socket.
	Fronts() ([]FrontMeta, error)
	PutFront(front FrontMeta) error
	DeleteFront(name model.Socket) error

	// Endpoints holds FRONT_ENDPOINTS, all generations.
	Endpoints() (map[EndpointKey]model.Endpoint, error)
	PutEndpoint(key EndpointKey, endpoint model.Endpoint) error
	DeleteEndpoint(key EndpointKey) error

	// RingBlocks holds FRONT_RING, all generations; every block has RingBlock indexes.
	RingBlocks() (map[RingKey][]uint16, error)
	// PutRingBlock writes 1 to RingBlock indexes; those that are left out are 0.
	PutRingBlock(key RingKey, indexes []uint16) error
	DeleteRingBlock(key RingKey) error

	// Sources lists FRONT_SOURCES, sorted by front, address and length.
	Sources() ([]SourceKey, error)
	PutSource(key SourceKey) error
	// DeleteSource also raises Config.Epoch, after the row is gone: flows of that front are checked anew.
	DeleteSource(key SourceKey) error

	// Peers lists NODE_ALLOW, sorted.
	Peers() ([]netip.Addr, error)
	PutPeer(peer netip.Addr) error
	// DeletePeer also raises Config.Epoch, after the row is gone: flows of that peer are checked anew.
	DeletePeer(peer netip.Addr) error

	// Targets lists POD_TARGETS, sorted.
	Targets() ([]model.Socket, error)
	PutTarget(target model.Socket) error
	// DeleteTarget also raises Config.Epoch, after the row is gone: flows to that target are checked anew.
	DeleteTarget(target model.Socket) error

	// RaiseEpoch has the programs check every flow anew: for a front that takes fewer clients than before.
	RaiseEpoch() error

	Config() (Config, error)
	// SetConfig replaces the row; take Epoch from Config. It refuses an ABI other than this package's.
	SetConfig(config Config) error

	// Capacity is max_entries of the maps as they are, which may differ from what the flags ask.
	Capacity() Sizes
}
