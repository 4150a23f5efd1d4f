/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * UDP GSO packets (UDP_SEGMENT, as QUIC sends) as the datagrams that they stand for, where the kernel could not cut
 * them up behind us or they do not fit: a copy for each through the egress program, which makes the datagram of it.
 * To cut its tail off, the kernel makes a copy linear, so it keeps the memory of the whole: this is for the rare case.
 */
#pragma once

#include "config.h"
#include "csum.h"
#include "drop.h"
#include "fib.h"
#include "frag.h"
#include "kskb.h"
#include "pkt.h"

/* Bytes of payload moved at a time. */
#define MOVE_CHUNK 64
#define MOVES_MAX (0x10000 / MOVE_CHUNK)

/*
 * Whether a packet must not enter a tunnel as one, since the kernel could not cut it up there: each of its datagrams has
 * a checksum of its own that is finished (GSO by fragment list).
 */
static __always_inline bool must_split(struct __sk_buff *skb, const struct pkt *p)
{
	return skb->gso_size && p->key.proto == IPPROTO_UDP && !is_partial(skb);
}

struct move_walk {
	struct __sk_buff *skb;
	__u32 from;
	__u32 to;
	__u32 left;
	__u32 failed;
};

static long move_step(__u64 i, struct move_walk *walk)
{
	__u8 chunk[MOVE_CHUNK];
	__u32 len = walk->left;

	if (!len)
		return 1;
	if (len > MOVE_CHUNK)
		len = MOVE_CHUNK;
	/* From 1 to MOVE_CHUNK, said so that the verifier sees it. */
	len = ((len - 1) & (MOVE_CHUNK - 1)) + 1;
	if (bpf_skb_load_bytes(walk->skb, walk->from, chunk, len) ||
	    bpf_skb_store_bytes(walk->skb, walk->to, chunk, len, 0)) {
		walk->failed = 1;
		return 1;
	}
	walk->from += len;
	walk->to += len;
	walk->left -= len;
	return 0;
}

/* Moves len bytes forward in the packet. */
static __noinline int move_payload(struct __sk_buff *skb, __u32 from, __u32 to, __u32 len)
{
	struct move_walk walk = { .skb = skb, .from = from, .to = to, .left = len };

	if (from == to)
		return 0;
	bpf_loop(MOVES_MAX, move_step, &walk, 0);
	return walk.failed || walk.left ? -DROP_KERNEL_REFUSED : 0;
}

/* Names the length of datagram number i in its IP header and, of IPv4, an identification of its own. */
static __noinline int write_ip_len(struct __sk_buff *skb, const struct pkt *p, __u32 len, __u32 i)
{
	__be16 from[2], to[2]; /* total length; identification */

	if (p->family == AF_INET6) {
		to[0] = bpf_htons(len - sizeof(struct ipv6hdr));
		return bpf_skb_store_bytes(skb, p->l3_off + 4, &to[0], 2, 0) ? -DROP_KERNEL_REFUSED
									     : 0;
	}
	if (bpf_skb_load_bytes(skb, p->l3_off + 2, from, sizeof(from)))
		return -DROP_KERNEL_REFUSED;
	to[0] = bpf_htons(len);
	to[1] = bpf_htons(bpf_ntohs(from[1]) + i);
	if (bpf_l3_csum_replace(skb, p->l3_off + 10, from[0], to[0], 2) ||
	    bpf_l3_csum_replace(skb, p->l3_off + 10, from[1], to[1], 2) ||
	    bpf_skb_store_bytes(skb, p->l3_off + 2, to, sizeof(to), 0))
		return -DROP_KERNEL_REFUSED;
	return 0;
}

/* Names the length of a datagram in its UDP header and makes its checksum right, if it has one. */
static __noinline int write_udp_len(struct __sk_buff *skb, const struct pkt *p, __u32 len)
{
	__be16 from[2], to[2] = { bpf_htons(len), 0 }; /* length; checksum */
	bool partial = is_partial(skb);

	if (bpf_skb_load_bytes(skb, p->l4_off + offsetof(struct udphdr, len), from, sizeof(from)))
		return -DROP_KERNEL_REFUSED;
	if (from[1] && partial)
		/* The field holds the sum of the pseudo-header, in which the length is. */
		to[1] = fold((__u16)~from[0] + from[1] + to[0]);
	else if (from[1])
		/* Source and destination stand side by side; what makes IPv6 form of an IPv4 address adds nothing. */
		to[1] = fold(bpf_csum_diff(NULL, 0, (__be32 *)p->key.src, 32,
					   bpf_htons(IPPROTO_UDP) + to[0]));
	if (bpf_skb_store_bytes(skb, p->l4_off + offsetof(struct udphdr, len), to, sizeof(to), 0))
		return -DROP_KERNEL_REFUSED;
	return from[1] && !partial ? finish_checksum(skb, p) : 0;
}

/*
 * Makes datagram number i of a copy of a UDP GSO packet, and makes p describe it. Returns 0 or a negative drop
 * reason.
 */
__noinline int cut_segment(struct __sk_buff *skb, struct pkt *p, __u32 i)
{
	__u32 size = skb->gso_size, start, end, from, len;

	if (!p || !size || p->l4_off > MAX_HEADER_OFFSET || p->l3_off > ETH_HLEN)
		return -DROP_KERNEL_REFUSED;
	start = p->l4_off + sizeof(struct udphdr);
	end = p->l3_off + p->l3_len;
	from = start + (i & SEGMENT_MASK) * size;
	if (from >= end)
		return -DROP_KERNEL_REFUSED;
	len = end - from > size ? size : end - from;
	if (move_payload(skb, from, start, len))
		return -DROP_KERNEL_REFUSED;
	/* Which also ends that it is a GSO packet. */
	if (bpf_skb_change_tail(skb, start + len, 0))
		return -DROP_KERNEL_REFUSED;
	p->l3_len = start + len - p->l3_off;
	if (write_ip_len(skb, p, p->l3_len, i))
		return -DROP_KERNEL_REFUSED;
	return write_udp_len(skb, p, sizeof(struct udphdr) + len);
}

struct segment_walk {
	struct __sk_buff *skb;
	__u32 last;
	__u32 ifindex;
	__u32 failed;
};

static long segment_step(__u64 i, struct segment_walk *walk)
{
	if (i >= walk->last)
		return 1;
	walk->skb->mark = MARK_SEGMENT | i;
	/* Above 0 is what became of the copy, which the egress program has counted. */
	if ((int)bpf_clone_redirect(walk->skb, walk->ifindex, 0) < 0) {
		walk->failed = 1;
		return 1;
	}
	return 0;
}

/*
 * Sends a UDP GSO packet on as datagrams, in order: a copy for each through the egress program of the device.
 * Returns a verdict or a negative drop reason.
 */
__noinline int send_segments(struct __sk_buff *skb, const struct pkt *p, __u32 ifindex)
{
	struct segment_walk walk = { .skb = skb, .ifindex = ifindex };
	__u32 size = skb->gso_size, payload;

	if (!p || !size || p->l3_len <= (__u32)(p->l4_off - p->l3_off) + sizeof(struct udphdr))
		return -DROP_TOO_BIG;
	if (ensure_l2(skb))
		return -DROP_KERNEL_REFUSED;
	payload = p->l3_len - (p->l4_off - p->l3_off) - sizeof(struct udphdr);
	walk.last = (payload - 1) / size;
	if (walk.last > SEGMENT_MASK)
		return -DROP_TOO_BIG;
	bpf_loop(SEGMENT_MASK, segment_step, &walk, 0);
	if (walk.failed)
		return -DROP_KERNEL_REFUSED;
	skb->mark = MARK_SEGMENT | walk.last;
	return bpf_redirect(ifindex, 0);
}
