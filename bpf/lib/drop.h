/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One exit for every packet. A step returns PASS, a TCX verdict, or a negative enum drop_reason; only
 * verdict() turns that into what the kernel gets, so that no drop goes uncounted.
 */
#pragma once

#include "abi.h"
#include "maps.h"

#define PASS 0 /* TCX_NEXT: the next program, or the stack, has it as it is now */

static __always_inline int verdict(struct __sk_buff *skb, int step, enum direction dir)
{
	struct drop_count *count;
	__u32 index;

	if (step == PASS)
		return TCX_NEXT;
	if (step > 0)
		return step;
	index = (__u32)-step * DIRECTIONS + dir;
	count = bpf_map_lookup_elem(&DROPS, &index);
	if (count) {
		count->packets++;
		count->bytes += skb->len;
	}
	return TCX_DROP;
}
