/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The one thing that we must know of the kernel's own sk_buff: whether its transport checksum is still to be
 * completed by a device (CHECKSUM_PARTIAL). Read by BTF (bpf_cast_to_kern_ctx, Linux 6.2), no layout assumed.
 */
#pragma once

#include <stdbool.h>

#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

/* include/linux/skbuff.h */
#define CHECKSUM_PARTIAL 3

struct sk_buff {
	__u8 ip_summed : 2;
} __attribute__((preserve_access_index));

extern void *bpf_cast_to_kern_ctx(void *ctx) __ksym;

static __always_inline bool is_partial(struct __sk_buff *skb)
{
	struct sk_buff *kernel = bpf_cast_to_kern_ctx(skb);

	return BPF_CORE_READ_BITFIELD(kernel, ip_summed) == CHECKSUM_PARTIAL;
}
