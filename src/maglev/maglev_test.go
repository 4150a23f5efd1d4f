// SPDX-License-Identifier: Apache-2.0

package maglev

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var seed = [16]byte([]byte("0123456789abcdef"))

// endpoints are n keys as a caller makes them: an IPv4-mapped address and a port.
func endpoints(n int) [][]byte {
	keys := make([][]byte, n)
	for i := range keys {
		key := append(make([]byte, 10), 0xff, 0xff, 10, 42, byte(i>>8), byte(i))
		keys[i] = binary.BigEndian.AppendUint16(key, 8080)
	}
	return keys
}

// ring is the ring of keys at its own size.
func ring(t interface{ Fatalf(string, ...any) }, seed [16]byte, keys [][]byte) []uint16 {
	table, err := Table(seed, keys, Size(len(keys)))
	if err != nil {
		t.Fatalf("%d keys: %v", len(keys), err)
	}
	return table
}

func drawSeed(t *rapid.T) [16]byte {
	return [16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "seed"))
}

// drawKeys draws distinct keys of any bytes and lengths.
func drawKeys(t *rapid.T, least, most int) [][]byte {
	return rapid.SliceOfNDistinct(rapid.SliceOfN(rapid.Byte(), 0, 18), least, most,
		func(key []byte) string { return string(key) }).Draw(t, "keys")
}

func TestSize(t *testing.T) {
	last := 0
	for n := range MaxKeys + 1 {
		size := Size(n)
		if n < 2 {
			if size != 0 {
				t.Fatalf("Size(%d) = %d: one endpoint needs no ring", n, size)
			}
			continue
		}
		if size < 50*n || size < last || size != last && !isPrime(size) {
			t.Fatalf("Size(%d) = %d after %d: want a prime of at least %d, not smaller than the last", n, size, last, 50*n)
		}
		last = size
	}
	for _, n := range []int{-1, MaxKeys + 1} {
		if Size(n) != 0 {
			t.Errorf("Size(%d) = %d, want 0", n, Size(n))
		}
	}
}

// No slot is empty, every key appears, and no key holds more than one slot more than another.
func TestBalance(t *testing.T) {
	check := func(t interface{ Fatalf(string, ...any) }, seed [16]byte, keys [][]byte) {
		held := make([]int, len(keys))
		for slot, index := range ring(t, seed, keys) {
			if int(index) >= len(keys) {
				t.Fatalf("slot %d holds %d of %d keys", slot, index, len(keys))
			}
			held[index]++
		}
		if slices.Max(held)-slices.Min(held) > 1 || slices.Min(held) < 50 {
			t.Fatalf("a key holds %d slots, another %d", slices.Min(held), slices.Max(held))
		}
	}
	rapid.Check(t, func(t *rapid.T) { check(t, drawSeed(t), drawKeys(t, 2, 60)) })
	for _, n := range []int{300, 5000, MaxKeys} {
		check(t, seed, endpoints(n))
	}
}

// Nodes that list the same endpoints in another order agree on every slot's endpoint.
func TestOrderDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed, keys := drawSeed(t), drawKeys(t, 2, 60)
		other := rapid.Permutation(keys).Draw(t, "other order")
		a, b := ring(t, seed, keys), ring(t, seed, other)
		for slot := range a {
			if string(keys[a[slot]]) != string(other[b[slot]]) {
				t.Fatalf("slot %d: %x in one order, %x in the other", slot, keys[a[slot]], other[b[slot]])
			}
		}
	})
}

// disturbed compares the rings with and without key x: own is x's share of the slots, others the share that moved between keys
// that stayed. Read backwards, it is what a joining key takes, and what it disturbs.
func disturbed(t *testing.T, seed [16]byte, keys [][]byte, x int) (own, others float64) {
	with, without := ring(t, seed, keys), ring(t, seed, slices.Delete(slices.Clone(keys), x, x+1))
	if len(with) != len(without) {
		t.Fatalf("%d keys stand on another rung than %d", len(keys), len(keys)-1)
	}
	for slot := range with {
		was, is := int(with[slot]), int(without[slot])
		if is >= x {
			is++
		}
		switch {
		case was == x:
			own++
		case was != is:
			others++
		}
	}
	return own / float64(len(with)), others / float64(len(with))
}

// One endpoint of n leaving, or joining, moves 1/n of the slots and on average below 2 % of the rest. The worst single case over
// many secrets is bounded too: walks of two keys can happen to run alike.
func TestDisruption(t *testing.T) {
	for _, tc := range []struct{ n, trials int }{
		{3, 400}, {4, 400}, {5, 400}, {8, 400}, {10, 400}, {16, 400}, {18, 100}, {64, 100}, {256, 40}, {1000, 4}, {4000, 1},
	} {
		t.Run(fmt.Sprint(tc.n), func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, uint64(tc.n)))
			sum, worst := 0.0, 0.0
			for range tc.trials {
				var seed [16]byte
				binary.LittleEndian.PutUint64(seed[:], random.Uint64())
				own, others := disturbed(t, seed, endpoints(tc.n), random.IntN(tc.n))
				if share := 1 / float64(tc.n); own < share*0.98-0.001 || own > share*1.02+0.001 {
					t.Fatalf("a key of %d holds %.4f of the slots, want %.4f", tc.n, own, share)
				}
				sum, worst = sum+others, max(worst, others)
			}
			mean := sum / float64(tc.trials)
			t.Logf("other slots that moved: mean %.4f, worst %.4f of %d", mean, worst, tc.trials)
			if mean > 0.02 || worst > 0.12 {
				t.Errorf("other slots that moved: mean %.4f, worst %.4f, want at most 0.02 and 0.12", mean, worst)
			}
		})
	}
}

// Without the secret nobody can foretell the ring: another seed agrees on a slot only by chance.
func TestSeedsGiveDifferentRings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := endpoints(20)
		one := drawSeed(t)
		other := one
		bit := rapid.IntRange(0, 127).Draw(t, "bit")
		other[bit/8] ^= 1 << (bit % 8)
		a, b := ring(t, one, keys), ring(t, other, keys)
		same := 0
		for slot := range a {
			if a[slot] == b[slot] {
				same++
			}
		}
		if same > len(a)/10 {
			t.Fatalf("%d of %d slots are the same, want about one in %d", same, len(a), len(keys))
		}
	})
}

// A ring is part of the protocol between nodes, also of two versions: it must never change by accident.
func TestGolden(t *testing.T) {
	for n, want := range map[int]string{
		3:    "35a63178539dade8",
		1000: "87881c6c232af7c2",
	} {
		sum := sha256.New()
		for _, index := range ring(t, seed, endpoints(n)) {
			sum.Write(binary.BigEndian.AppendUint16(nil, index))
		}
		if got := fmt.Sprintf("%x", sum.Sum(nil)[:8]); got != want {
			t.Errorf("%d keys: the ring changed from %s to %s: nodes of two versions would disagree", n, want, got)
		}
	}
}

func TestRefused(t *testing.T) {
	twice := endpoints(5)
	twice[4] = twice[1]
	for _, tc := range []struct {
		name string
		keys [][]byte
		size int
		want string
	}{
		{"the same endpoint twice", twice, 3203, "keys 1 and 4 are the same (00000000000000000000ffff0a2a00011f90)"},
		{"the same endpoint twice where no ring is needed", twice[1:5], 0, "are the same"},
		{"too many", endpoints(MaxKeys + 1), 3276773, "65536 keys, at most 65535"},
		{"no prime", endpoints(5), 3205, "3205 slots for 5 keys"},
		{"too small", endpoints(5), 3, "3 slots for 5 keys"},
		{"negative", endpoints(5), -7, "-7 slots"},
		{"nobody to fill it", nil, 3203, "3203 slots for 0 keys"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Table(seed, tc.keys, tc.size)
			if !errors.Is(err, ErrRing) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want ErrRing with %q", err, tc.want)
			}
		})
	}
	for n := range 2 {
		if table, err := Table(seed, endpoints(n), Size(n)); table != nil || err != nil {
			t.Errorf("%d keys: got %v, %v, want no ring", n, table, err)
		}
	}
}

func BenchmarkTable(b *testing.B) {
	for _, n := range []int{10, 100, 1000, MaxKeys} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			keys, size := endpoints(n), Size(n)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Table(seed, keys, size); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
