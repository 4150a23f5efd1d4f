/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The maps that only count: of the programs, which write them, and of those that trace the programs.
 */
#pragma once

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "abi.h"

/*
 * What a program before the datapath's leaves in skb->cb[0], which programs at one hook of a device share, to have that
 * packet counted in TRAFFIC. No packet carries it from outside.
 */
#define COUNT_ASKED 0x62656570

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
