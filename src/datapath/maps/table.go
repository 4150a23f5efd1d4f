// SPDX-License-Identifier: Apache-2.0

package maps

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/src/datapath/bpfobj"
	"github.com/beep-lb/beep/src/model"
)

// store is one map of the kernel, or what stands in for it. Its errors are bare errnos.
type store[K comparable, V any] interface {
	// each calls visit for every row until it returns false, in no order.
	each(visit func(K, V) bool) error
	put(key K, value V) error
	remove(key K) error
	capacity() uint32
}

// tables are the maps that a reconciler writes, over one kind of store. Kernel and Fake share everything but
// the stores, so what one refuses the other does too.
type tables struct {
	fronts    store[bpfobj.BeepSocketKey, bpfobj.BeepFrontMeta]
	endpoints store[bpfobj.BeepEndpointKey, bpfobj.BeepEndpoint]
	rings     store[bpfobj.BeepRingKey, bpfobj.BeepRingBlock]
	sources   store[bpfobj.BeepSourceKey, uint32]
	peers     store[bpfobj.BeepNodeKey, uint32]
	targets   store[bpfobj.BeepSocketKey, uint32]
	config    store[uint32, bpfobj.BeepConfig]
}

// explain turns the errno of a write or a read into an error that names the map and the row.
func explain(name, doing string, key fmt.Stringer, room uint32, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.E2BIG):
		return fmt.Errorf("%s %s: %w: %s has room for %d rows: raise %s", doing, key, ErrCapacity, name, room, flagOf(name))
	case errors.Is(err, unix.ENOMEM):
		return fmt.Errorf("%s %s in %s: %w: %w", doing, key, name, ErrNoMemory, err)
	case errors.Is(err, unix.ENOENT):
		return fmt.Errorf("%s %s in %s: %w", doing, key, name, ErrNoRow)
	}
	return fmt.Errorf("%s %s in %s: %w", doing, key, name, err)
}

func put[K comparable, V any](s store[K, V], name string, named fmt.Stringer, key K, value V) error {
	return explain(name, "write", named, s.capacity(), s.put(key, value))
}

func remove[K comparable, V any](s store[K, V], name string, named fmt.Stringer, key K) error {
	return explain(name, "delete", named, s.capacity(), s.remove(key))
}

// list reads a whole map.
func list[K comparable, V any](s store[K, V], name string, visit func(K, V)) error {
	err := s.each(func(key K, value V) bool { visit(key, value); return true })
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return nil
}

// String names the row in errors.
func (k EndpointKey) String() string {
	return fmt.Sprintf("endpoint %d of front %d, generation %d", k.Index, k.Front, k.Generation)
}

// String names the row in errors.
func (k RingKey) String() string {
	return fmt.Sprintf("ring block %d of front %d, generation %d", k.Block, k.Front, k.Generation)
}

// String names the row in errors.
func (k SourceKey) String() string {
	return fmt.Sprintf("source range %s of front %d", k.Prefix, k.Front)
}

// configRow names the one row of CONFIG in errors.
type configRow struct{}

func (configRow) String() string { return "the configuration" }

func (t *tables) Fronts() ([]FrontMeta, error) {
	var fronts []FrontMeta
	err := list(t.fronts, bpfobj.BeepMapFRONT_META, func(key bpfobj.BeepSocketKey, row bpfobj.BeepFrontMeta) {
		fronts = append(fronts, fromFrontMeta(key, row))
	})
	slices.SortFunc(fronts, func(a, b FrontMeta) int { return a.Compare(b.Socket) })
	return fronts, err
}

func (t *tables) PutFront(front FrontMeta) error {
	key, err := toSocketKey(front.Socket)
	if err != nil {
		return fmt.Errorf("front %s: %w", front.Socket, err)
	}
	row, err := toFrontMeta(front)
	if err != nil {
		return fmt.Errorf("front %s: %w", front.Socket, err)
	}
	return put(t.fronts, bpfobj.BeepMapFRONT_META, front.Socket, key, row)
}

func (t *tables) DeleteFront(name model.Socket) error {
	key, err := toSocketKey(name)
	if err != nil {
		return fmt.Errorf("front %s: %w", name, err)
	}
	return remove(t.fronts, bpfobj.BeepMapFRONT_META, name, key)
}

func (t *tables) Endpoints() (map[EndpointKey]model.Endpoint, error) {
	endpoints := map[EndpointKey]model.Endpoint{}
	err := list(t.endpoints, bpfobj.BeepMapFRONT_ENDPOINTS, func(key bpfobj.BeepEndpointKey, row bpfobj.BeepEndpoint) {
		endpoints[EndpointKey{Front: key.FrontId, Generation: key.Generation, Index: key.Index}] = fromEndpoint(row)
	})
	return endpoints, err
}

func (t *tables) PutEndpoint(key EndpointKey, endpoint model.Endpoint) error {
	row, err := toEndpoint(endpoint)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return put(t.endpoints, bpfobj.BeepMapFRONT_ENDPOINTS, key, toEndpointKey(key), row)
}

func (t *tables) DeleteEndpoint(key EndpointKey) error {
	return remove(t.endpoints, bpfobj.BeepMapFRONT_ENDPOINTS, key, toEndpointKey(key))
}

func (t *tables) RingBlocks() (map[RingKey][]uint16, error) {
	blocks := map[RingKey][]uint16{}
	err := list(t.rings, bpfobj.BeepMapFRONT_RING, func(key bpfobj.BeepRingKey, row bpfobj.BeepRingBlock) {
		blocks[RingKey{Front: key.FrontId, Generation: key.Generation, Block: key.Block}] = row.Index[:]
	})
	return blocks, err
}

func (t *tables) PutRingBlock(key RingKey, indexes []uint16) error {
	if len(indexes) == 0 || len(indexes) > RingBlock {
		return fmt.Errorf("%s: %d indexes: want 1 to %d", key, len(indexes), RingBlock)
	}
	var row bpfobj.BeepRingBlock
	copy(row.Index[:], indexes)
	return put(t.rings, bpfobj.BeepMapFRONT_RING, key, toRingKey(key), row)
}

func (t *tables) DeleteRingBlock(key RingKey) error {
	return remove(t.rings, bpfobj.BeepMapFRONT_RING, key, toRingKey(key))
}

func (t *tables) Sources() ([]SourceKey, error) {
	var sources []SourceKey
	err := list(t.sources, bpfobj.BeepMapFRONT_SOURCES, func(key bpfobj.BeepSourceKey, _ uint32) {
		sources = append(sources, fromSourceKey(key))
	})
	slices.SortFunc(sources, func(a, b SourceKey) int {
		return cmp.Or(cmp.Compare(a.Front, b.Front), a.Prefix.Addr().Compare(b.Prefix.Addr()),
			cmp.Compare(a.Prefix.Bits(), b.Prefix.Bits()))
	})
	return sources, err
}

func (t *tables) PutSource(key SourceKey) error {
	row, err := toSourceKey(key)
	if err != nil {
		return err
	}
	return put(t.sources, bpfobj.BeepMapFRONT_SOURCES, key, row, 0)
}

func (t *tables) DeleteSource(key SourceKey) error {
	row, err := toSourceKey(key)
	if err != nil {
		return err
	}
	if err := remove(t.sources, bpfobj.BeepMapFRONT_SOURCES, key, row); err != nil {
		return err
	}
	return t.RaiseEpoch()
}

func (t *tables) Peers() ([]netip.Addr, error) {
	peers := map[netip.Addr]bool{}
	err := list(t.peers, bpfobj.BeepMapNODE_ALLOW, func(key bpfobj.BeepNodeKey, _ uint32) {
		peers[fromAddr16(key.Addr)] = true
	})
	return slices.SortedFunc(maps.Keys(peers), netip.Addr.Compare), err
}

func (t *tables) PutPeer(peer netip.Addr) error {
	addr, err := toAddr16(peer)
	if err != nil {
		return fmt.Errorf("peer: %w", err)
	}
	return put(t.peers, bpfobj.BeepMapNODE_ALLOW, peer, bpfobj.BeepNodeKey{Addr: addr}, 0)
}

func (t *tables) DeletePeer(peer netip.Addr) error {
	addr, err := toAddr16(peer)
	if err != nil {
		return fmt.Errorf("peer: %w", err)
	}
	if err := remove(t.peers, bpfobj.BeepMapNODE_ALLOW, peer, bpfobj.BeepNodeKey{Addr: addr}); err != nil {
		return err
	}
	return t.RaiseEpoch()
}

func (t *tables) Targets() ([]model.Socket, error) {
	var targets []model.Socket
	err := list(t.targets, bpfobj.BeepMapPOD_TARGETS, func(key bpfobj.BeepSocketKey, _ uint32) {
		targets = append(targets, fromSocketKey(key))
	})
	slices.SortFunc(targets, model.Socket.Compare)
	return targets, err
}

func (t *tables) PutTarget(target model.Socket) error {
	key, err := toSocketKey(target)
	if err != nil {
		return fmt.Errorf("target %s: %w", target, err)
	}
	return put(t.targets, bpfobj.BeepMapPOD_TARGETS, target, key, 0)
}

func (t *tables) DeleteTarget(target model.Socket) error {
	key, err := toSocketKey(target)
	if err != nil {
		return fmt.Errorf("target %s: %w", target, err)
	}
	if err := remove(t.targets, bpfobj.BeepMapPOD_TARGETS, target, key); err != nil {
		return err
	}
	return t.RaiseEpoch()
}

func (t *tables) Config() (Config, error) {
	row, err := t.configRow()
	return fromConfig(row), err
}

func (t *tables) SetConfig(config Config) error {
	row, err := toConfig(config)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	return put(t.config, bpfobj.BeepMapCONFIG, configRow{}, 0, row)
}

func (t *tables) configRow() (bpfobj.BeepConfig, error) {
	var row bpfobj.BeepConfig
	err := list(t.config, bpfobj.BeepMapCONFIG, func(_ uint32, value bpfobj.BeepConfig) { row = value })
	return row, err
}

// RaiseEpoch has the programs check each flow's peer and endpoint once more. Flows that the programs check at
// the old epoch meanwhile are checked again, since the row was gone before.
func (t *tables) RaiseEpoch() error {
	row, err := t.configRow()
	if err != nil {
		return err
	}
	row.Epoch++
	return put(t.config, bpfobj.BeepMapCONFIG, configRow{}, 0, row)
}
