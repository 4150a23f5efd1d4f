/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What fits: sizes are judged before a packet is touched, by the MTU of the egress that the FIB names for
 * this peer now, and a GSO packet by the segments it will become.
 */
#pragma once

#include "drop.h"
#include "geneve.h"
#include "pkt.h"

#define TCP_OPTION_END 0
#define TCP_OPTION_NOP 1
#define TCP_OPTION_MSS 2
#define TCP_OPTION_MSS_LEN 4
#define TCP_OPTIONS_MAX 40

/* Bytes from the IP header on of the packet, or of its segments if it is a GSO packet. */
static __always_inline __u32 wire_len(struct __sk_buff *skb, const struct pkt *p)
{
	if (skb->gso_size)
		return p->l4_off - p->l3_off + p->l4_len + skb->gso_size;
	return p->l3_len;
}

struct option_walk {
	__u8 options[TCP_OPTIONS_MAX];
	__u32 pos;
	__u32 found; /* an MSS option begins at pos */
};

/* Looks at one option. Returns 1 to stop: found, at the end, or malformed. */
static long option_step(__u64 i, struct option_walk *walk)
{
	__u32 pos = walk->pos;
	__u8 kind, len;

	if (pos > TCP_OPTIONS_MAX - TCP_OPTION_MSS_LEN)
		return 1;
	kind = walk->options[pos];
	len = walk->options[pos + 1];
	if (kind == TCP_OPTION_NOP) {
		walk->pos = pos + 1;
		return 0;
	}
	if (kind == TCP_OPTION_MSS)
		walk->found = len == TCP_OPTION_MSS_LEN;
	if (kind == TCP_OPTION_MSS || kind == TCP_OPTION_END || len < 2)
		return 1;
	walk->pos = pos + len;
	return 0;
}

/*
 * Lowers the MSS option of a SYN or SYN-ACK (RFC 9293, section 3.7.1) to at most mss bytes. A lower one and
 * a missing one are left alone, so is an option list that is malformed. Returns 0 or a negative drop reason.
 */
__noinline int clamp_mss(struct __sk_buff *skb, __u32 l4_off, __u32 options_len, __u32 mss)
{
	struct option_walk walk = {};
	__be16 from, to;
	__u32 pos, at;

	if (options_len < TCP_OPTION_MSS_LEN || options_len > TCP_OPTIONS_MAX ||
	    l4_off > MAX_HEADER_OFFSET)
		return 0;
	if (bpf_skb_load_bytes(skb, l4_off + sizeof(struct tcphdr), walk.options, options_len))
		return 0;
	bpf_loop(TCP_OPTIONS_MAX, option_step, &walk, 0);
	pos = walk.pos;
	if (!walk.found || pos + TCP_OPTION_MSS_LEN > options_len ||
	    pos > TCP_OPTIONS_MAX - TCP_OPTION_MSS_LEN)
		return 0;
	if (((__u32)walk.options[pos + 2] << 8 | walk.options[pos + 3]) <= mss)
		return 0;
	at = l4_off + sizeof(struct tcphdr) + pos + 2;
	from = bpf_htons(walk.options[pos + 2] << 8 | walk.options[pos + 3]);
	to = bpf_htons(mss);
	if (bpf_skb_store_bytes(skb, at, &to, sizeof(to), 0))
		return -DROP_KERNEL_REFUSED;
	/* At an odd offset the option straddles the checksum's words: its bytes count swapped. */
	if (pos & 1) {
		from = bpf_htons(from);
		to = bpf_htons(to);
	}
	if (bpf_l4_csum_replace(skb, l4_off + 16, from, to, sizeof(to)))
		return -DROP_KERNEL_REFUSED;
	return 0;
}

/*
 * Clamps the MSS that the sender of this SYN or SYN-ACK announces, so that what the other side sends fits
 * the tunnel back towards it. data_forward: those segments travel on forward tunnels.
 */
static __always_inline int clamp_syn(struct __sk_buff *skb, const struct pkt *p, __u32 mtu,
				     bool outer_v4, bool data_forward)
{
	__u32 taken = tunnel_overhead(data_forward, outer_v4) + sizeof(struct tcphdr) +
		      (p->family == AF_INET ? sizeof(struct iphdr) : sizeof(struct ipv6hdr));

	if (p->key.proto != IPPROTO_TCP || !(p->tcp_flags & TCP_SYN) || mtu <= taken)
		return 0;
	return clamp_mss(skb, p->l4_off, p->l4_len - sizeof(struct tcphdr), mtu - taken);
}
