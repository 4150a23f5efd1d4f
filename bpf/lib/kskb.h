/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The two things that we must know of the kernel's own structures: what a device has done or is to do about a packet's
 * transport checksum, and whether a route may have changed. Read by BTF
 * (bpf_cast_to_kern_ctx, Linux 6.2), no layout assumed.
 */
#pragma once

#include <stdbool.h>

#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

/* include/linux/skbuff.h */
#define CHECKSUM_COMPLETE 2
#define CHECKSUM_PARTIAL 3

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	int counter;
} atomic_t;

struct netns_ipv4 {
	atomic_t rt_genid;
};

struct netns_ipv6 {
	atomic_t fib6_sernum;
};

struct net {
	struct netns_ipv4 ipv4;
	struct netns_ipv6 ipv6;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct net_device {
	possible_net_t nd_net;
};

struct sk_buff {
	struct net_device *dev;
	__u8 ip_summed : 2;
};

#pragma clang attribute pop

extern void *bpf_cast_to_kern_ctx(void *ctx) __ksym;

static __always_inline __u32 ip_summed(struct __sk_buff *skb)
{
	struct sk_buff *kernel = bpf_cast_to_kern_ctx(skb);

	return BPF_CORE_READ_BITFIELD(kernel, ip_summed);
}

static __always_inline bool is_partial(struct __sk_buff *skb)
{
	return ip_summed(skb) == CHECKSUM_PARTIAL;
}

/*
 * What the kernel counts up before a route of its own that it has cached, of either family, counts as stale: for any
 * change of routes, rules, addresses, devices, their MTU, and forwarding.
 */
static __always_inline __u64 route_generation(struct __sk_buff *skb)
{
	struct sk_buff *kernel = bpf_cast_to_kern_ctx(skb);
	struct net *net = kernel->dev->nd_net.net;
	__u64 generation = 0;

	/* A kernel may be built without IPv6. */
	if (bpf_core_field_exists(net->ipv6.fib6_sernum))
		generation = (__u64)net->ipv6.fib6_sernum.counter << 32;
	if (bpf_core_field_exists(net->ipv4.rt_genid))
		generation |= (__u32)net->ipv4.rt_genid.counter;
	return generation;
}
