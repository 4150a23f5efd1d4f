/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The maps. Their names are part of the operator's interface. The sizes here are the defaults of the flags;
 * the loader sets them before it creates a map. Bucket arrays cost 16 bytes a slot (rounded up to a power of
 * two), a row its key and value rounded up to 8 bytes each and 48 bytes of the kernel's own (Linux 6.18).
 */
#pragma once

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "abi.h"
#include "counters.h"

/* Rows of FIB_ANSWERS, a power of two. */
#define FIB_SLOTS 256

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1024);
	__type(key, struct socket_key);
	__type(value, struct front_meta);
} FRONT_META SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 8192);
	__type(key, struct endpoint_key);
	__type(value, struct endpoint);
} FRONT_ENDPOINTS SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 19526);
	__type(key, struct ring_key);
	__type(value, struct ring_block);
} FRONT_RING SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, struct source_key);
	__type(value, __u32); /* 0 */
} FRONT_SOURCES SEC(".maps");

/*
 * Flows that have proved themselves, TCP here and UDP apart: the answer that proves a datagram is given to anybody
 * who asks under any address, so a flood of questions must have no connection to push out.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 49152);
	__type(key, struct flow_key);
	__type(value, struct flow);
} FLOW_TABLE SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct flow_key);
	__type(value, struct flow);
} FLOW_DATAGRAMS SEC(".maps");

/* Half-open flows, of both protocols. A flood fills this one. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct flow_key);
	__type(value, struct flow);
} FLOW_PENDING SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct affinity_key);
	__type(value, struct affinity);
} AFFINITY SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 2048);
	__type(key, struct fragment_key);
	__type(value, struct fragment_ports);
} FRAGMENTS SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 32);
	__type(key, struct node_key);
	__type(value, __u32); /* 0 */
} NODE_ALLOW SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 128);
	__type(key, struct socket_key);
	__type(value, __u32); /* 0 */
} POD_TARGETS SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct config);
} CONFIG SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct budget);
} BUDGET SEC(".maps");

/* Of one instance, not shared: not pinned. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, FIB_SLOTS);
	__type(key, __u32);
	__type(value, struct fib_answer);
} FIB_ANSWERS SEC(".maps");

/* The row of CONFIG. Never NULL in practice: an array map has all its rows. */
static __always_inline struct config *config_row(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&CONFIG, &zero);
}
