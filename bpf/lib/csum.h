/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rewriting addresses and ports with their checksums, by the helpers that also keep skb->csum and a partial
 * checksum right (an address is part of the pseudo-header, a port is not).
 */
#pragma once

#include "config.h"
#include "drop.h"
#include "parse.h"
#include "pkt.h"

#ifndef BPF_F_IPV6
#define BPF_F_IPV6 (1ULL << 7) /* Linux 6.16; younger than the vendored header */
#endif

/* The 16-bit ones' complement sum of what a wider one holds (RFC 1071). */
static __always_inline __u16 fold(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* What a packet's addresses and ports become. */
struct rewrite {
	__u8 addr[16];
	__be16 sport_be;
	__be16 dport_be;
	__u8 source; /* 1: addr replaces the source, not the destination */
	__u8 pad[3];
} __attribute__((aligned(8)));

/* The transport checksum is in the first fragment; an ICMP one has no pseudo-header over IPv4. */
static __always_inline bool has_checksum(const struct pkt *p)
{
	return p->fragment != FRAGMENT_LATER && p->key.proto != IPPROTO_ICMP;
}

static __always_inline __u32 checksum_off(const struct pkt *p)
{
	if (p->key.proto == IPPROTO_TCP)
		return p->l4_off + 16;
	return p->l4_off + (p->key.proto == IPPROTO_UDP ? 6 : 2);
}

/* An absent UDP checksum stays absent (RFC 768). */
static __always_inline __u64 checksum_flags(const struct pkt *p)
{
	return p->key.proto == IPPROTO_UDP ? BPF_F_MARK_MANGLED_0 : 0;
}

static __always_inline int rewrite_addr_v4(struct __sk_buff *skb, const struct pkt *p,
					   const __u8 *old, const struct rewrite *to)
{
	__be32 from = addr_v4(old), addr = addr_v4(to->addr);
	__u32 off = p->l3_off + (to->source ? 12 : 16);

	if (has_checksum(p) &&
	    bpf_l4_csum_replace(skb, checksum_off(p), from, addr,
				checksum_flags(p) | BPF_F_PSEUDO_HDR | sizeof(addr)))
		return -DROP_KERNEL_REFUSED;
	if (bpf_l3_csum_replace(skb, p->l3_off + 10, from, addr, sizeof(addr)) ||
	    bpf_skb_store_bytes(skb, off, &addr, sizeof(addr), 0))
		return -DROP_KERNEL_REFUSED;
	return 0;
}

static __always_inline int rewrite_addr_v6(struct __sk_buff *skb, const struct pkt *p,
					   const __u8 *old, const struct rewrite *to)
{
	__u64 flags = checksum_flags(p) | BPF_F_PSEUDO_HDR;
	__u32 off = p->l3_off + (to->source ? 8 : 24);
	__s64 diff;

	if (!has_checksum(p))
		return bpf_skb_store_bytes(skb, off, to->addr, 16, BPF_F_RECOMPUTE_CSUM)
			       ? -DROP_KERNEL_REFUSED
			       : 0;
	if (cfg_csum_ipv6)
		flags |= BPF_F_IPV6;
	diff = bpf_csum_diff((__be32 *)old, 16, (__be32 *)to->addr, 16, 0);
	if (bpf_l4_csum_replace(skb, checksum_off(p), 0, diff, flags) ||
	    bpf_skb_store_bytes(skb, off, to->addr, 16, 0))
		return -DROP_KERNEL_REFUSED;
	return 0;
}

static __always_inline int rewrite_port(struct __sk_buff *skb, const struct pkt *p, __u32 field,
					__be16 from, __be16 to)
{
	if (from == to)
		return 0;
	if (bpf_l4_csum_replace(skb, checksum_off(p), from, to, checksum_flags(p) | sizeof(to)) ||
	    bpf_skb_store_bytes(skb, p->l4_off + field, &to, sizeof(to), 0))
		return -DROP_KERNEL_REFUSED;
	return 0;
}

/*
 * Applies a rewrite to the packet whose headers p describes: of an ICMP message and of a later fragment only
 * the address. Returns 0 or a negative drop reason.
 */
__noinline int rewrite(struct __sk_buff *skb, const struct pkt *p, const struct rewrite *to)
{
	const __u8 *old;
	int err;

	if (!p || !to)
		return -DROP_KERNEL_REFUSED;
	old = to->source ? p->key.src : p->key.dst;
	if (p->family == AF_INET)
		err = rewrite_addr_v4(skb, p, old, to);
	else
		err = rewrite_addr_v6(skb, p, old, to);
	if (p->key.proto == ICMP_FOR(p->family) || p->fragment == FRAGMENT_LATER)
		return err;
	if (!err)
		err = rewrite_port(skb, p, 0, p->key.sport_be, to->sport_be);
	if (!err)
		err = rewrite_port(skb, p, 2, p->key.dport_be, to->dport_be);
	return err;
}
