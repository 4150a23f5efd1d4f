// SPDX-License-Identifier: Apache-2.0

// Package maglev computes the ring by which a flow's hash chooses an endpoint: Maglev hashing after Eisenbud et al., "Maglev: A
// Fast and Reliable Software Network Load Balancer" (NSDI '16), section 3.4, keyed with a secret. Every node of a cluster
// computes its own and must get the same.
// Invariant: which key holds a slot depends on the seed, the set of keys and the size only, never on the order of the keys or on
// the machine.
package maglev

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/dchest/siphash"
)

// MaxKeys is the largest number of keys: a slot holds 16 bits, and one value marks a slot that is not yet filled.
const MaxKeys = 65535

// ErrRing is the cause of every error of Table.
var ErrRing = errors.New("no ring")

// rungs are the sizes of a ring by the largest number of keys each serves: primes, with 50 slots a key or more.
//
// The size must not follow the number of keys closely. Another size is another permutation for every key: with the smallest
// prime above 50 slots a key, which differs for each number, one of 10 keys leaving moved 80 % of all slots instead of 10 %. On a
// rung it moves its own and few others, and those become fewer the more slots there are: 50 slots a key cost 3.7 % at 10 keys, 320
// cost 1.3 %. From 256 keys on, 50 are enough for 2 %.
var rungs = []struct{ keys, slots int }{
	{16, 3203}, {256, 12809}, {1024, 51203}, {4096, 204803}, {16384, 819229}, {MaxKeys, 3276773},
}

// Size is the number of slots of the ring of n keys, a prime of at least 50*n: 3203 for 2 to 16 keys, 12809 up to 256, and so on
// by fours. One key, or none, needs no ring: 0; so has n above MaxKeys none. A ring takes 2 bytes a slot: 6.3 KiB up to 16 keys,
// 25 KiB up to 256, 100 KiB up to 1024.
//
// Where n steps to another size, at 17, 257, 1025, 4097 and 16385, flows that no flow row pins are spread anew.
func Size(n int) int {
	if n <= 1 {
		return 0
	}
	for _, r := range rungs {
		if n <= r.keys {
			return r.slots
		}
	}
	return 0
}

// free marks a slot that no key has taken.
const free = MaxKeys

// walk is a key's way through the slots: a permutation, because the size is prime and the step is not 0.
type walk struct {
	next, step uint32
	index      uint16
}

// Table returns the ring of size slots: slot by slot, the index in keys of the key that holds it. seed is the cluster's secret:
// without it nobody can foretell which flow meets which endpoint. A key is the identity of an endpoint, such as 16 bytes of
// address and 2 bytes of port; its bytes are hashed as they are, so all nodes must write them alike. The size is Size(len(keys));
// size 0 is a nil ring, and any other must be a prime no smaller than the number of keys.
//
// The keys take turns, each taking the next free slot on its own way, until no slot is free: no key holds more than one slot more
// than another. If one key of n leaves, its slots go to the others; if one joins, it takes about 1/n of every other's. Few of the
// other slots change hands (see rungs).
//
// An error wraps ErrRing: two keys are equal, there are more than MaxKeys, or the size cannot be. Table hashes each key once
// (SipHash-2-4, 128 bits) and takes about size*ln(size) steps, 10 µs for 10 keys, 0.2 ms for 100, 1.3 ms for 1000; its memory is the ring
// and 20 bytes a key.
func Table(seed [16]byte, keys [][]byte, size int) ([]uint16, error) {
	order, err := sorted(keys)
	if err != nil {
		return nil, err
	}
	if size == 0 {
		return nil, nil
	}
	if size < len(keys) || len(keys) == 0 || !isPrime(size) {
		return nil, fmt.Errorf("%w: %d slots for %d keys: want a prime no smaller than the number of keys, as Size gives",
			ErrRing, size, len(keys))
	}
	walks := make([]walk, len(keys))
	k0, k1 := binary.LittleEndian.Uint64(seed[:8]), binary.LittleEndian.Uint64(seed[8:])
	for turn, index := range order {
		offset, skip := siphash.Hash128(k0, k1, keys[index])
		walks[turn] = walk{next: uint32(offset % uint64(size)), step: uint32(skip%uint64(size-1)) + 1, index: uint16(index)}
	}
	ring := slices.Repeat([]uint16{free}, size)
	for filled := 0; filled < size; {
		turns := min(len(walks), size-filled)
		for i := range turns {
			walks[i].take(ring)
		}
		filled += turns
	}
	return ring, nil
}

// take gives the key the next free slot on its way. There must be one.
func (w *walk) take(ring []uint16) {
	for {
		slot := w.next
		if w.next += w.step; w.next >= uint32(len(ring)) {
			w.next -= uint32(len(ring))
		}
		if ring[slot] == free {
			ring[slot] = w.index
			return
		}
	}
}

// sorted returns the indexes of keys in the order of the keys' bytes, which is the order of turns on every node.
func sorted(keys [][]byte) ([]int, error) {
	if len(keys) > MaxKeys {
		return nil, fmt.Errorf("%w: %d keys, at most %d fit", ErrRing, len(keys), MaxKeys)
	}
	order := make([]int, len(keys))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return bytes.Compare(keys[a], keys[b]) })
	for i := 1; i < len(order); i++ {
		if a, b := order[i-1], order[i]; bytes.Equal(keys[a], keys[b]) {
			return nil, fmt.Errorf("%w: keys %d and %d are the same (%x): give each endpoint once", ErrRing, min(a, b), max(a, b), keys[a])
		}
	}
	return order, nil
}

// isPrime divides by every number up to the root: at most 1810 divisions for the largest ring.
func isPrime(n int) bool {
	for d := 2; d*d <= n; d++ {
		if n%d == 0 {
			return false
		}
	}
	return n > 1
}
