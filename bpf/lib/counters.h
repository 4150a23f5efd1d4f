/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The maps that only count: of the programs, which write them, and of those that trace the programs.
 */
#pragma once

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "abi.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, DROP_REASONS * DIRECTIONS);
	__type(key, __u32);
	__type(value, struct drop_count);
} DROPS SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, TRAFFIC_ROWS);
	__type(key, __u32);
	__type(value, struct drop_count);
} TRAFFIC SEC(".maps");
