/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One exit for every packet. A step returns PASS, TAKEN, a TCX verdict, or a negative enum drop_reason; only
 * verdict() turns that into what the kernel gets, so that nothing of ours goes uncounted.
 */
#pragma once

#include <stdbool.h>

#include "abi.h"
#include "config.h"
#include "maps.h"

#define PASS 0	/* TCX_NEXT: the next program, or the stack, has it; it is none of ours */
#define TAKEN 1 /* TCX_NEXT, and ours: translated, and on the host's way */

static __always_inline void count_drop(struct __sk_buff *skb, __u32 reason, __u32 dir)
{
	__u32 index = reason * DIRECTIONS + dir;
	struct drop_count *count = bpf_map_lookup_elem(&DROPS, &index);

	if (count) {
		count->packets++;
		count->bytes += skb->len;
	}
}

/* Not inlined: rare, and as below. */
static __noinline int drop(struct __sk_buff *skb, __u32 reason, __u32 dir)
{
	count_drop(skb, reason, dir);
	return TCX_DROP;
}

static __always_inline void count_traffic(struct __sk_buff *skb, enum traffic what, __u32 packets)
{
	__u32 index = what;
	struct drop_count *count = bpf_map_lookup_elem(&TRAFFIC, &index);

	if (count) {
		count->packets += packets;
		count->bytes += skb->len;
	}
}

/* Nothing is written for a packet of an established flow but its row's time, unless somebody wants it counted. */
static __always_inline bool counted(const struct __sk_buff *skb)
{
	return cfg_count_packets || skb->cb[0] == COUNT_ASKED;
}

/* What a step that translates in place returns to the one that ends with it. */
static __always_inline int taken(int err)
{
	return err ? err : TAKEN;
}

/* from is one of the even members of enum traffic. */
static __always_inline int verdict(struct __sk_buff *skb, int step, enum direction dir,
				   enum traffic from)
{
	if (step == PASS)
		return TCX_NEXT;
	if (step < 0)
		return drop(skb, -step, dir);
	if (counted(skb))
		count_traffic(skb, step == TAKEN ? from : from + TRAFFIC_AWAY, skb->gso_segs ?: 1);
	return step == TAKEN ? TCX_NEXT : step;
}
