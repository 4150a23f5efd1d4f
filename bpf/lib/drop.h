/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One exit for every packet. A step returns PASS, a TCX verdict, or a negative enum drop_reason; only
 * verdict() turns that into what the kernel gets, so that no drop goes uncounted.
 */
#pragma once

#include "abi.h"
#include "maps.h"

#define PASS 0 /* TCX_NEXT: the next program, or the stack, has it as it is now */

static __always_inline void count_drop(struct __sk_buff *skb, __u32 reason, __u32 dir)
{
	__u32 index = reason * DIRECTIONS + dir;
	struct drop_count *count = bpf_map_lookup_elem(&DROPS, &index);

	if (count) {
		count->packets++;
		count->bytes += skb->len;
	}
}

static __always_inline int verdict(struct __sk_buff *skb, int step, enum direction dir)
{
	if (step == PASS)
		return TCX_NEXT;
	if (step > 0)
		return step;
	count_drop(skb, -step, dir);
	return TCX_DROP;
}
