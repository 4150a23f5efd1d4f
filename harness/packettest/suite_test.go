// SPDX-License-Identifier: Apache-2.0

// Package packettest says what the shipped programs do with a packet, as sentences: what the maps hold, a
// packet in, and then the verdict, the counted reason, the packet out and the rows. Invariant: every verdict
// and every drop reason has its sentence, and the kernel that answers is the real one.
package packettest

import (
	"os"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/require"
)

func TestPackets(t *testing.T) {
	require.Root(t)
	require.TCX(t)
	RegisterFailHandler(Fail)
	RunSpecs(t, "Packets")
}

var _ = AfterSuite(func() {
	closeIdle()
	require.Report(os.Stdout)
})
