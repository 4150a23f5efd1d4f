// SPDX-License-Identifier: Apache-2.0

// Package bpfobj is the compiled datapath, and what traces it: the ELF objects of bpf/ and the Go types of their keys and
// values, as bpf2go writes them. Invariant: nothing here is written by hand but this file and the test of the ABI, and
// the generated files are what `make generate` makes of the tree's own headers.
package bpfobj

//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target bpfel -go-package bpfobj -output-stem beep Beep ../../../bpf/beep.c -- -mcpu=v3 -O2 -g -Wall -Wextra -Wno-unused-parameter -Werror -nostdlibinc -I../../../bpf/include
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target bpfel -go-package bpfobj -output-stem trace -type trace_event -type trace_view -type trace_rate -type trace_pending Trace ../../../bpf/trace.c -- -mcpu=v3 -O2 -g -Wall -Wextra -Wno-unused-parameter -Werror -nostdlibinc -I../../../bpf/include
