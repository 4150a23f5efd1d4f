// SPDX-License-Identifier: Apache-2.0

package maps

import (
	"math/rand/v2"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/src/datapath/bpfobj"
)

// Op is what a Call does.
type Op string

// The operations of a Call.
const (
	// List reads a whole map.
	List Op = "list"
	// Put writes a row.
	Put Op = "put"
	// Delete removes a row.
	Delete Op = "delete"
)

// Call is one access to a map, as the kernel would get it.
type Call struct {
	Op Op
	// Map is the name of the map, as FRONT_META.
	Map string
}

// Fake is Maps in memory for tests of what lies above: it converts and refuses as Kernel does, full maps and
// absent rows included. It is safe for concurrent use.
type Fake struct {
	tables
	sizes Sizes
	state *fakeState
}

var _ Maps = (*Fake)(nil)

// fakeState is what the stores of one Fake share.
type fakeState struct {
	sync.Mutex
	inject func(Call) error
}

// NewFake makes empty maps of those sizes, with a configuration of this build's ABI.
func NewFake(sizes Sizes) *Fake {
	state := &fakeState{}
	f := &Fake{sizes: sizes, state: state}
	config := newFakeStore[uint32, bpfobj.BeepConfig](state, bpfobj.BeepMapCONFIG, 1)
	config.rows[0] = bpfobj.BeepConfig{Abi: ABI}
	f.tables = tables{
		fronts:    newFakeStore[bpfobj.BeepSocketKey, bpfobj.BeepFrontMeta](state, bpfobj.BeepMapFRONT_META, sizes.FrontMeta),
		endpoints: newFakeStore[bpfobj.BeepEndpointKey, bpfobj.BeepEndpoint](state, bpfobj.BeepMapFRONT_ENDPOINTS, sizes.FrontEndpoints),
		rings:     newFakeStore[bpfobj.BeepRingKey, bpfobj.BeepRingBlock](state, bpfobj.BeepMapFRONT_RING, sizes.FrontRing),
		sources:   newFakeStore[bpfobj.BeepSourceKey, uint32](state, bpfobj.BeepMapFRONT_SOURCES, sizes.FrontSources),
		peers:     newFakeStore[bpfobj.BeepNodeKey, uint32](state, bpfobj.BeepMapNODE_ALLOW, sizes.NodeAllow),
		targets:   newFakeStore[bpfobj.BeepSocketKey, uint32](state, bpfobj.BeepMapPOD_TARGETS, sizes.PodTargets),
		config:    config,
	}
	return f
}

// Capacity is the sizes it was made with.
func (f *Fake) Capacity() Sizes { return f.sizes }

// Inject has every later access ask fail first: an error from it (as a rule an errno, unix.ENOMEM) is treated as
// the kernel's, and the map stays as it was. It is called in the order of the accesses, so it can also record
// them, and must not use the Fake itself. nil ends it.
func (f *Fake) Inject(fail func(Call) error) {
	f.state.Lock()
	defer f.state.Unlock()
	f.state.inject = fail
}

// Randomly is a failure for Inject: each write fails with that probability and errno, the same ones for the same
// seed.
func Randomly(seed uint64, probability float64, errno unix.Errno) func(Call) error {
	random := rand.New(rand.NewPCG(seed, 0))
	return func(call Call) error {
		if call.Op == List || random.Float64() >= probability {
			return nil
		}
		return errno
	}
}

// fakeStore is one map in memory.
type fakeStore[K comparable, V any] struct {
	state *fakeState
	name  string
	max   uint32
	rows  map[K]V
}

func newFakeStore[K comparable, V any](state *fakeState, name string, capacity uint32) *fakeStore[K, V] {
	return &fakeStore[K, V]{state: state, name: name, max: capacity, rows: map[K]V{}}
}

// call starts an access, and says whether it fails on purpose. The caller holds the lock.
func (s *fakeStore[K, V]) call(op Op) error {
	if s.state.inject == nil {
		return nil
	}
	return s.state.inject(Call{Op: op, Map: s.name})
}

func (s *fakeStore[K, V]) each(visit func(K, V) bool) error {
	s.state.Lock()
	defer s.state.Unlock()
	if err := s.call(List); err != nil {
		return err
	}
	for key, value := range s.rows {
		if !visit(key, value) {
			break
		}
	}
	return nil
}

// put refuses a new row in a full map (E2BIG); a row that is there can always be replaced.
func (s *fakeStore[K, V]) put(key K, value V) error {
	s.state.Lock()
	defer s.state.Unlock()
	if err := s.call(Put); err != nil {
		return err
	}
	if _, present := s.rows[key]; !present && len(s.rows) >= int(s.max) {
		return unix.E2BIG
	}
	s.rows[key] = value
	return nil
}

func (s *fakeStore[K, V]) remove(key K) error {
	s.state.Lock()
	defer s.state.Unlock()
	if err := s.call(Delete); err != nil {
		return err
	}
	if _, present := s.rows[key]; !present {
		return unix.ENOENT
	}
	delete(s.rows, key)
	return nil
}

func (s *fakeStore[K, V]) capacity() uint32 { return s.max }
