/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fragments, both ways: the ports of a datagram's first fragment are remembered for its later ones, and a
 * packet too long for its way out is cut into pieces (IPv4 without DF; an IPv6 sender does that itself).
 */
#pragma once

#include "config.h"
#include "csum.h"
#include "drop.h"
#include "fib.h"
#include "kskb.h"
#include "maps.h"
#include "pkt.h"

/* Pieces one packet may become: what PIECE_MASK can number. */
#define MAX_PIECES (PIECE_MASK + 1)
/* bpf_skb_adjust_room moves less than 4096 bytes at once. */
#define MAX_ADJUST 4088
/* Bytes summed at a time. */
#define SUM_CHUNK 64
/* More than the headers before the transport header, link layer included, where the IP header has no options. */
#define FORGET_LEN 40

static __always_inline void fragment_key_of(const struct pkt *p, struct fragment_key *key)
{
	addr_copy(key->src, p->key.src);
	addr_copy(key->dst, p->key.dst);
	key->id = p->id;
	key->proto = p->key.proto;
	key->pad[0] = 0;
	key->pad[1] = 0;
	key->pad[2] = 0;
}

__noinline int fragment_keep(const struct pkt *p)
{
	struct fragment_ports ports = {};
	struct fragment_key key;

	if (!p)
		return 0;
	ports.sport_be = p->key.sport_be;
	ports.dport_be = p->key.dport_be;
	fragment_key_of(p, &key);
	bpf_map_update_elem(&FRAGMENTS, &key, &ports, BPF_ANY);
	return 0;
}

/* Keeps the ports of a first fragment that is ours for the fragments behind it. */
static __always_inline void fragment_remember(const struct pkt *p)
{
	if (p->fragment == FRAGMENT_FIRST)
		fragment_keep(p);
}

__noinline bool fragment_find(struct pkt *p)
{
	struct fragment_ports *ports;
	struct fragment_key key;

	if (!p)
		return false;
	fragment_key_of(p, &key);
	ports = bpf_map_lookup_elem(&FRAGMENTS, &key);
	if (!ports)
		return false;
	p->key.sport_be = ports->sport_be;
	p->key.dport_be = ports->dport_be;
	return true;
}

/* Gives a later fragment the ports of its datagram. False: its first fragment was none of ours, or is late. */
static __always_inline bool fragment_ports(struct pkt *p)
{
	return p->fragment != FRAGMENT_LATER || fragment_find(p);
}

struct sum_walk {
	struct __sk_buff *skb;
	__u32 off;
	__u32 end;
	__s64 sum;
};

static long sum_step(__u64 i, struct sum_walk *walk)
{
	__u8 chunk[SUM_CHUNK] = {};
	__u32 len = walk->end - walk->off;

	if (walk->off >= walk->end)
		return 1;
	if (len > SUM_CHUNK)
		len = SUM_CHUNK;
	/* From 1 to SUM_CHUNK, said so that the verifier sees it. */
	len = ((len - 1) & (SUM_CHUNK - 1)) + 1;
	if (bpf_skb_load_bytes(walk->skb, walk->off, chunk, len))
		return 1;
	walk->sum = bpf_csum_diff(NULL, 0, (__be32 *)chunk, sizeof(chunk), walk->sum);
	walk->off += len;
	return 0;
}

/*
 * Completes a transport checksum whose field holds the sum of the pseudo-header, as that of a partial one does, over
 * the packet that p describes.
 */
__noinline int finish_checksum(struct __sk_buff *skb, const struct pkt *p)
{
	struct sum_walk walk = { .skb = skb };
	__u16 check;

	if (!p)
		return -DROP_KERNEL_REFUSED;
	walk.off = p->l4_off;
	walk.end = packet_end_off(p);
	bpf_loop(0x10000 / SUM_CHUNK, sum_step, &walk, 0);
	check = ~fold(walk.sum);
	/* Zero would say that there is none (RFC 768). */
	if (!check && p->key.proto == IPPROTO_UDP)
		check = 0xffff;
	if (bpf_skb_store_bytes(skb, checksum_off(p), &check, sizeof(check), 0))
		return -DROP_KERNEL_REFUSED;
	return 0;
}

/*
 * Completes a partial checksum before the packet is cut, and has the kernel forget that a device should: nobody
 * behind us might, and a fragment is not what it would have to sum. The kernel forgets it when the front of the packet
 * goes, up to behind where the sum begins.
 */
__noinline int finish_partial(struct __sk_buff *skb, const struct pkt *p)
{
	__u8 front[FORGET_LEN];

	if (!p)
		return -DROP_KERNEL_REFUSED;
	if (!is_partial(skb))
		return 0;
	if (finish_checksum(skb, p) || bpf_skb_load_bytes(skb, p->l3_off, front, sizeof(front)) ||
	    bpf_skb_adjust_room(skb, -(__s32)sizeof(front), BPF_ADJ_ROOM_MAC, 0) ||
	    bpf_skb_adjust_room(skb, sizeof(front), BPF_ADJ_ROOM_MAC, 0) ||
	    bpf_skb_store_bytes(skb, p->l3_off, front, sizeof(front), 0))
		return -DROP_KERNEL_REFUSED;
	return 0;
}

/* Payload bytes of a piece under a limit for the whole IP packet (RFC 791: units of 8). */
static __always_inline __u32 piece_payload(const struct pkt *p, __u32 limit)
{
	return (limit - p->ip_len) & ~7u;
}

/*
 * Cuts piece number i of those under limit out of the packet and makes p describe it. Returns 0 or a
 * negative drop reason.
 */
__noinline int cut_piece(struct __sk_buff *skb, struct pkt *p, __u32 i, __u32 limit)
{
	__u32 per, skip, payload, left, len;
	__be16 from[2], to[2]; /* total length; flags and offset */

	if (!p || p->ip_len != sizeof(struct iphdr) || limit < p->ip_len + 8 || i >= MAX_PIECES ||
	    p->l3_off > ETH_HLEN || p->l3_len <= p->ip_len)
		return -DROP_TOO_BIG;
	per = piece_payload(p, limit);
	skip = i * per;
	payload = p->l3_len - p->ip_len;
	if (skip >= payload)
		return -DROP_TOO_BIG;
	len = payload - skip > per ? per : payload - skip;
	if (bpf_skb_load_bytes(skb, p->l3_off + 2, &from[0], 2) ||
	    bpf_skb_load_bytes(skb, p->l3_off + 6, &from[1], 2))
		return -DROP_KERNEL_REFUSED;
	to[0] = bpf_htons(p->ip_len + len);
	to[1] = bpf_htons(bpf_ntohs(from[1]) + skip / 8);
	if (skip + len < payload)
		to[1] |= IP_MF;
	if (!i && p->fragment != FRAGMENT_LATER && finish_partial(skb, p))
		return -DROP_KERNEL_REFUSED;
	if (bpf_skb_change_tail(skb, p->l3_off + p->ip_len + skip + len, 0))
		return -DROP_KERNEL_REFUSED;
	left = skip;
	for (int n = 0; n < 4 && left; n++) {
		__u32 step = left > MAX_ADJUST ? MAX_ADJUST : left;

		if (bpf_skb_adjust_room(skb, -(__s32)step, BPF_ADJ_ROOM_NET, 0))
			return -DROP_KERNEL_REFUSED;
		left -= step;
	}
	if (left || bpf_l3_csum_replace(skb, p->l3_off + 10, from[0], to[0], 2) ||
	    bpf_l3_csum_replace(skb, p->l3_off + 10, from[1], to[1], 2) ||
	    bpf_skb_store_bytes(skb, p->l3_off + 2, &to[0], 2, 0) ||
	    bpf_skb_store_bytes(skb, p->l3_off + 6, &to[1], 2, 0))
		return -DROP_KERNEL_REFUSED;
	p->l3_len = p->ip_len + len;
	if (i)
		p->fragment = FRAGMENT_LATER;
	else if (p->fragment == FRAGMENT_NONE)
		p->fragment = FRAGMENT_FIRST;
	return 0;
}

/*
 * Sends a packet longer than limit on in pieces: a copy for each through the egress program of the device,
 * which cuts it, in order, the first one first. Returns a verdict or a negative drop reason.
 */
__noinline int send_pieces(struct __sk_buff *skb, const struct pkt *p, __u32 limit, __u32 ifindex)
{
	__u32 per, payload, last;

	if (!p || p->ip_len != sizeof(struct iphdr) || limit < p->ip_len + 8 || p->l3_len <= limit)
		return -DROP_TOO_BIG;
	if (ensure_l2(skb))
		return -DROP_KERNEL_REFUSED;
	per = piece_payload(p, limit);
	payload = p->l3_len - p->ip_len;
	last = (payload - 1) / per;
	if (last >= MAX_PIECES)
		return -DROP_TOO_BIG;
	for (__u32 i = 0; i < MAX_PIECES - 1; i++) {
		if (i >= last)
			break;
		skb->mark = MARK_PIECE | i;
		/* Above 0 is what became of the copy, which the egress program has counted. */
		if (bpf_clone_redirect(skb, ifindex, 0) < 0)
			return -DROP_KERNEL_REFUSED;
	}
	skb->mark = MARK_PIECE | last;
	return bpf_redirect(ifindex, 0);
}
