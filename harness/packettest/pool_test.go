// SPDX-License-Identifier: Apache-2.0

package packettest

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/src/datapath/bpfobj"
)

// idle are loaded objects that no spec uses: the verifier takes longer than a sentence.
var idle []*bpfobj.BeepObjects

// loaded is the shipped object with empty maps of its own, until the spec ends.
func loaded(tweaks ...func(*ebpf.CollectionSpec)) *bpfobj.BeepObjects {
	GinkgoHelper()
	if last := len(idle) - 1; last >= 0 && len(tweaks) == 0 {
		objects := idle[last]
		idle = idle[:last]
		empty(objects)
		DeferCleanup(func() { idle = append(idle, objects) })
		return objects
	}
	spec, err := bpfobj.LoadBeep()
	Expect(err).NotTo(HaveOccurred())
	// Every sentence says what is counted; that nothing is by default has a spec of its own.
	Expect(spec.Variables[bpfobj.BeepVarCfgCountPackets].Set(uint8(1))).To(Succeed())
	for _, tweak := range tweaks {
		tweak(spec)
	}
	objects := &bpfobj.BeepObjects{}
	err = spec.LoadAndAssign(objects, nil)
	var refused *ebpf.VerifierError
	if errors.As(err, &refused) {
		Fail(fmt.Sprintf("%+v", refused))
	}
	Expect(err).NotTo(HaveOccurred())
	if len(tweaks) > 0 {
		DeferCleanup(objects.Close)
	} else {
		DeferCleanup(func() { idle = append(idle, objects) })
	}
	return objects
}

// empty takes every row out of an object's maps.
func empty(objects *bpfobj.BeepObjects) {
	GinkgoHelper()
	for _, m := range []*ebpf.Map{
		objects.AFFINITY, objects.FLOW_DATAGRAMS, objects.FLOW_PENDING, objects.FLOW_TABLE, objects.FRAGMENTS,
		objects.FRONT_ENDPOINTS, objects.FRONT_META, objects.FRONT_RING, objects.FRONT_SOURCES, objects.NODE_ALLOW,
		objects.POD_TARGETS,
	} {
		key := make([]byte, m.KeySize())
		for m.NextKey(nil, &key) == nil {
			Expect(m.Delete(key)).To(Succeed())
		}
	}
	cpus, err := ebpf.PossibleCPU()
	Expect(err).NotTo(HaveOccurred())
	for _, m := range []*ebpf.Map{objects.DROPS, objects.TRAFFIC} {
		for i := range m.MaxEntries() {
			Expect(m.Put(i, make([]bpfobj.BeepDropCount, cpus))).To(Succeed())
		}
	}
	Expect(objects.BUDGET.Put(uint32(0), make([]bpfobj.BeepBudget, cpus))).To(Succeed())
	Expect(objects.CONFIG.Put(uint32(0), bpfobj.BeepConfig{})).To(Succeed())
}

// closeIdle ends what loaded made.
func closeIdle() {
	GinkgoHelper()
	for _, objects := range idle {
		Expect(objects.Close()).To(Succeed())
	}
}
