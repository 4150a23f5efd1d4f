/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rewriting addresses and ports with their checksums, by the helpers that also keep skb->csum and a partial
 * checksum right (an address is part of the pseudo-header, a port is not).
 */
#pragma once

#include "config.h"
#include "drop.h"
#include "kskb.h"
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

/* The 32-bit ones' complement sum of what a wider one holds. */
static __always_inline __u32 fold32(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	return (sum & 0xffffffff) + (sum >> 32);
}

/* What a checksum must take up when a word becomes another one (RFC 1624). */
static __always_inline __u64 diff_word(__u32 from, __u32 to)
{
	return (__u64)(__u32)~from + to;
}

static __always_inline __u64 diff_addr(const __u8 *from, const __u8 *to)
{
	const __u32 *f = (const __u32 *)from, *t = (const __u32 *)to;

	return diff_word(f[0], t[0]) + diff_word(f[1], t[1]) + diff_word(f[2], t[2]) +
	       diff_word(f[3], t[3]);
}

/* What the transport checksum must take up of both ports. */
static __always_inline __u64 diff_ports(const struct pkt *p, const struct rewrite *to)
{
	return diff_word((__u32)p->key.dport_be << 16 | p->key.sport_be,
			 (__u32)to->dport_be << 16 | to->sport_be);
}

/*
 * Has the transport checksum take up a change of address and of ports, by one call where that does: each costs more
 * than all arithmetic here. A checksum that a device will complete (CHECKSUM_PARTIAL) is the pseudo-header's alone, in
 * which ports are not. A device's sum of the whole packet (CHECKSUM_COMPLETE) stays right when ports and checksum
 * change together, and must itself take up an address, which the pseudo-header has counted a second time.
 */
static __always_inline int update_checksum(struct __sk_buff *skb, const struct pkt *p, __u64 addr,
					   __u64 ports)
{
	__u64 flags = checksum_flags(p);
	__u32 summed = ip_summed(skb);

	if (summed == CHECKSUM_COMPLETE) {
		if (bpf_l4_csum_replace(skb, checksum_off(p), 0, fold32(ports), flags))
			return -DROP_KERNEL_REFUSED;
	} else if (summed != CHECKSUM_PARTIAL) {
		addr += ports;
	}
	flags |= BPF_F_PSEUDO_HDR;
	if (p->family == AF_INET6 && cfg_csum_ipv6)
		flags |= BPF_F_IPV6;
	if (bpf_l4_csum_replace(skb, checksum_off(p), 0, fold32(addr), flags))
		return -DROP_KERNEL_REFUSED;
	return 0;
}

static __always_inline int write_ports(struct __sk_buff *skb, const struct pkt *p,
				       const struct rewrite *to)
{
	if (bpf_skb_store_bytes(skb, p->l4_off, &to->sport_be, 2 * sizeof(__be16), 0))
		return -DROP_KERNEL_REFUSED;
	return 0;
}

/* An IPv4 header from its checksum on, and the ports, which follow at once where it has no options. */
struct end_v4 {
	__u16 pad;
	__sum16 check;
	__be32 src;
	__be32 dst;
	__be16 sport_be;
	__be16 dport_be;
};

static __always_inline int rewrite_v4(struct __sk_buff *skb, const struct pkt *p,
				      const struct rewrite *to, bool ports)
{
	__be32 from = addr_v4(to->source ? p->key.src : p->key.dst), addr = addr_v4(to->addr);
	struct iphdr *ip = header(skb, p->l3_off, sizeof(*ip));
	bool adjoin = p->ip_len == sizeof(*ip);
	__u32 len = ports && adjoin ? 14 : 10;
	struct end_v4 end = {
		.src = to->source ? addr : addr_v4(p->key.src),
		.dst = to->source ? addr_v4(p->key.dst) : addr,
		.sport_be = to->sport_be,
		.dport_be = to->dport_be,
	};

	if (!ip)
		return -DROP_KERNEL_REFUSED;
	end.check = ~fold((__u16)~ip->check + diff_word(from, addr));
	if (bpf_skb_store_bytes(skb, p->l3_off + offsetof(struct iphdr, check), &end.check, len, 0))
		return -DROP_KERNEL_REFUSED;
	return ports && !adjoin ? write_ports(skb, p, to) : 0;
}
_Static_assert(offsetof(struct end_v4, sport_be) - offsetof(struct end_v4, check) == 10 &&
		       sizeof(struct end_v4) - offsetof(struct end_v4, check) == 14,
	       "rewrite_v4's lengths");

static __always_inline int rewrite_v6(struct __sk_buff *skb, const struct pkt *p,
				      const struct rewrite *to, bool ports)
{
	__u32 off = p->l3_off + (to->source ? 8 : 24);

	if (bpf_skb_store_bytes(skb, off, to->addr, 16, has_checksum(p) ? 0 : BPF_F_RECOMPUTE_CSUM))
		return -DROP_KERNEL_REFUSED;
	return ports ? write_ports(skb, p, to) : 0;
}

/*
 * Applies a rewrite to the packet whose headers p describes: of an ICMP message and of a later fragment only
 * the address. Returns 0 or a negative drop reason.
 */
__noinline int rewrite(struct __sk_buff *skb, const struct pkt *p, const struct rewrite *to)
{
	const __u8 *old;
	bool ports;

	if (!p || !to)
		return -DROP_KERNEL_REFUSED;
	old = to->source ? p->key.src : p->key.dst;
	ports = p->key.proto != ICMP_FOR(p->family) && p->fragment != FRAGMENT_LATER;
	if (has_checksum(p) &&
	    update_checksum(skb, p, diff_addr(old, to->addr), ports ? diff_ports(p, to) : 0))
		return -DROP_KERNEL_REFUSED;
	if (p->family == AF_INET)
		return rewrite_v4(skb, p, to, ports);
	return rewrite_v6(skb, p, to, ports);
}
