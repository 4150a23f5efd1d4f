// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"fmt"
	"os"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// loopbackIfindex is the same in every network namespace (LOOPBACK_IFINDEX, include/net/flow.h).
const loopbackIfindex = 1

// tcxNext lets a packet go on to the next program unchanged (TCX_NEXT, include/uapi/linux/bpf.h).
const tcxNext = -1

// helpers are what the programs in bpf/ call, less what every kernel with BPF has.
var helpers = []struct {
	name   string
	helper asm.BuiltinFunc
}{
	{"bpf_redirect_neigh", asm.FnRedirectNeigh},
	{"bpf_fib_lookup", asm.FnFibLookup},
	{"bpf_skb_adjust_room", asm.FnSkbAdjustRoom},
	{"bpf_skb_change_head", asm.FnSkbChangeHead},
	{"bpf_skb_pull_data", asm.FnSkbPullData},
	{"bpf_skb_load_bytes", asm.FnSkbLoadBytes},
	{"bpf_skb_store_bytes", asm.FnSkbStoreBytes},
	{"bpf_csum_diff", asm.FnCsumDiff},
	{"bpf_l3_csum_replace", asm.FnL3CsumReplace},
	{"bpf_l4_csum_replace", asm.FnL4CsumReplace},
	{"bpf_loop", asm.FnLoop},
	{"bpf_ktime_get_coarse_ns", asm.FnKtimeGetCoarseNs},
}

var mapTypes = []struct {
	name    string
	mapType ebpf.MapType
}{
	{"LRU hash", ebpf.LRUHash},
	{"hash", ebpf.Hash},
	{"array", ebpf.Array},
	{"per-CPU array", ebpf.PerCPUArray},
}

// Look asks the kernel. It needs no rights; what it may not ask shows as EPERM in the findings. The trial
// attaches a program that passes every packet to the loopback device of the calling thread's namespace, for a
// moment and beside other programs.
func Look() Findings {
	findings := Findings{
		Release:      release(),
		Capabilities: effectiveCapabilities(),
		TCX:          tryTCX(),
		Sysctls:      map[string]string{},
	}
	for _, h := range helpers {
		findings.Features = append(findings.Features, Check{"helper " + h.name, features.HaveProgramHelper(ebpf.SchedCLS, h.helper)})
	}
	for _, m := range mapTypes {
		findings.Features = append(findings.Features, Check{"map type " + m.name, features.HaveMapType(m.mapType)})
	}
	for name := range advice {
		// A missing file is a feature that is switched off, or a namespace that does not show it.
		if value, err := os.ReadFile("/proc/sys/" + strings.ReplaceAll(name, ".", "/")); err == nil {
			findings.Sysctls[name] = strings.TrimSpace(string(value))
		}
	}
	return findings
}

// tryTCX loads a program that does nothing, attaches it, and takes it away again.
func tryTCX() error {
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name:         "beep_probe",
		Type:         ebpf.SchedCLS,
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, tcxNext), asm.Return()},
		License:      "GPL",
	})
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	defer program.Close()
	attached, err := link.AttachTCX(link.TCXOptions{
		Interface: loopbackIfindex,
		Program:   program,
		Attach:    ebpf.AttachTCXIngress,
	})
	if err != nil {
		return err
	}
	// The link was never pinned, so closing it detaches.
	return attached.Close()
}

// release is the kernel's version string, or a word for its absence.
func release() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return "of unknown release"
	}
	return unix.ByteSliceToString(name.Release[:])
}

// effectiveCapabilities is the thread's effective set; none if the kernel does not tell.
func effectiveCapabilities() uint64 {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return 0
	}
	return uint64(data[0].Effective) | uint64(data[1].Effective)<<32
}
