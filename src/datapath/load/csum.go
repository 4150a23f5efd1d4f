// SPDX-License-Identifier: Apache-2.0

package load

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// Flags of bpf_l4_csum_replace (include/uapi/linux/bpf.h).
const (
	pseudoHeader = 1 << 4
	// ipv6Flag came with Linux 6.16 and some stable kernels (ead7f9b8de65, "bpf: Fix L4 csum update on IPv6 in
	// CHECKSUM_COMPLETE"), so the release says nothing.
	ipv6Flag = 1 << 7
)

// KnowsCsumIPv6 is cfg_csum_ipv6: 1 if this kernel's bpf_l4_csum_replace takes BPF_F_IPV6. An older one refuses
// unknown flags with EINVAL when it is called, so the helper is run once.
func KnowsCsumIPv6() (uint8, error) {
	result, err := csumReplace(pseudoHeader | ipv6Flag)
	if err != nil {
		return 0, fmt.Errorf("probe bpf_l4_csum_replace for BPF_F_IPV6: %w", err)
	}
	if result != 0 {
		return 0, nil
	}
	return 1, nil
}

// csumReplace runs the helper on an empty packet, a replacement that changes nothing, and returns its result.
func csumReplace(flags int32) (int32, error) {
	const checksumOffset, packetLen = 40, 64
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "beep_probe_csum", Type: ebpf.SchedCLS, License: "GPL",
		Instructions: asm.Instructions{
			asm.Mov.Imm(asm.R2, checksumOffset),
			asm.Mov.Imm(asm.R3, 0),
			asm.Mov.Imm(asm.R4, 0),
			asm.Mov.Imm(asm.R5, flags),
			asm.FnL4CsumReplace.Call(),
			asm.Return(),
		},
	})
	if err != nil {
		return 0, err
	}
	defer program.Close()
	result, err := program.Run(&ebpf.RunOptions{Data: make([]byte, packetLen), DataOut: make([]byte, packetLen)})
	return int32(result), err
}
