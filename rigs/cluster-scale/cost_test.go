// SPDX-License-Identifier: Apache-2.0

package cluster_scale_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/proc"
)

const mib = 1 << 20

func memoryOf(pid int) proc.Memory {
	GinkgoHelper()
	m, err := proc.MemoryOf(pid)
	Expect(err).NotTo(HaveOccurred())
	return m
}

// busy is the CPU time that a process has used.
func busy(pid int) time.Duration {
	GinkgoHelper()
	used, err := proc.CPUTime(pid)
	Expect(err).NotTo(HaveOccurred())
	return used
}
