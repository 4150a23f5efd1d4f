/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ICMP errors of our own: a packet that cannot go on is turned, in place, into the error about it, from the
 * address that its sender dialled (RFC 792, RFC 1191, RFC 4443). Each counts as a drop of its reason, and a
 * CPU makes no more than a budget of them.
 */
#pragma once

#include "csum.h"
#include "drop.h"
#include "fib.h"
#include "geneve.h"
#include "maps.h"
#include "pkt.h"

#define ICMP_UNREACH 3
#define ICMP_UNREACH_PORT 3
#define ICMP_UNREACH_NEEDFRAG 4
#define ICMP6_UNREACH 1
#define ICMP6_UNREACH_PORT 4
#define ICMP6_TOO_BIG 2

/* A budget of 1000 a second and at most 50 at once, a CPU. */
#define ANSWER_COST 1000000ULL /* nanoseconds of credit */
#define ANSWER_BURST (50 * ANSWER_COST)

/* Bytes quoted: IP and transport headers and more, in a buffer that the verifier can bound. */
#define QUOTE_MAX 96
#define QUOTE_MIN 28

#define IPV6_MIN_MTU 1280 /* RFC 8200, section 5 */

/* Where the sender of the refused packet is, seen from the hook that we are in. */
enum answer_to {
	ANSWER_OUT,   /* where the packet came from: out of this device */
	ANSWER_POD,   /* on this node, behind the stack: the packet was on its way out */
	ANSWER_AGAIN, /* at the other end of a flow: as if the error came in on this device */
};

/* What the error says, and to whom. */
struct refusal {
	__u32 mtu;    /* too big: what would fit; 0: the port is unreachable */
	__u32 reason; /* enum drop_reason, counted */
	__u32 to;     /* enum answer_to */
	__u32 dir;    /* enum direction */
};

struct icmp_header {
	__u8 type;
	__u8 code;
	__sum16 check;
	__be16 unused_be; /* IPv6: the upper half of the MTU */
	__be16 mtu_be;
};
_Static_assert(sizeof(struct icmp_header) == ICMP_LEN, "icmp_header");

/* Whether this CPU may make another answer; if so, it is paid for. */
static __always_inline bool within_budget(void)
{
	__u64 now = bpf_ktime_get_coarse_ns(), credit;
	struct budget *budget;
	__u32 zero = 0;

	budget = bpf_map_lookup_elem(&BUDGET, &zero);
	if (!budget)
		return false;
	credit = budget->credit + (now - budget->refilled);
	if (credit > ANSWER_BURST)
		credit = ANSWER_BURST;
	budget->refilled = now;
	budget->credit = credit;
	if (credit < ANSWER_COST)
		return false;
	budget->credit = credit - ANSWER_COST;
	return true;
}

/* A GSO packet is quoted as one of the packets that it stands for. */
static __always_inline void quote_segment(struct __sk_buff *skb, const struct pkt *p, __u8 *quote)
{
	__u32 len;

	if (!skb->gso_size)
		return;
	len = p->l4_off - p->l3_off + p->l4_len + skb->gso_size;
	if (p->family == AF_INET) {
		struct iphdr *ip = (struct iphdr *)quote;
		__u32 sum = (__u16)~ip->check + (__u16)~ip->tot_len;

		ip->tot_len = bpf_htons(len);
		ip->check = ~fold(sum + ip->tot_len);
	} else {
		((struct ipv6hdr *)quote)->payload_len = bpf_htons(len - sizeof(struct ipv6hdr));
	}
}

static __always_inline void fill_icmp(struct icmp_header *icmp, const struct pkt *p, __u32 mtu)
{
	if (p->family == AF_INET) {
		icmp->type = ICMP_UNREACH;
		icmp->code = mtu ? ICMP_UNREACH_NEEDFRAG : ICMP_UNREACH_PORT;
	} else {
		icmp->type = mtu ? ICMP6_TOO_BIG : ICMP6_UNREACH;
		icmp->code = mtu ? 0 : ICMP6_UNREACH_PORT;
		if (mtu && mtu < IPV6_MIN_MTU)
			mtu = IPV6_MIN_MTU;
	}
	icmp->mtu_be = bpf_htons(mtu);
}

static __always_inline int write_v4(struct __sk_buff *skb, const struct pkt *p, __u32 mtu,
				    const __u8 *quote, __u32 len)
{
	struct {
		struct iphdr ip;
		struct icmp_header icmp;
	} h = {};

	h.ip.version = 4;
	h.ip.ihl = 5;
	h.ip.tot_len = bpf_htons(sizeof(h) + len);
	h.ip.ttl = TUNNEL_TTL;
	h.ip.protocol = IPPROTO_ICMP;
	h.ip.saddr = addr_v4(p->key.dst);
	h.ip.daddr = addr_v4(p->key.src);
	h.ip.check = header_checksum(&h.ip);
	fill_icmp(&h.icmp, p, mtu);
	h.icmp.check = ~fold(bpf_csum_diff(NULL, 0, (__be32 *)quote, QUOTE_MAX,
					   bpf_csum_diff(NULL, 0, (__be32 *)&h.icmp, ICMP_LEN, 0)));
	return bpf_skb_store_bytes(skb, p->l3_off, &h, sizeof(h), BPF_F_INVALIDATE_HASH);
}

static __always_inline int write_v6(struct __sk_buff *skb, const struct pkt *p, __u32 mtu,
				    const __u8 *quote, __u32 len)
{
	struct {
		struct ipv6hdr ip;
		struct icmp_header icmp;
	} h = {};
	__s64 sum;

	h.ip.payload_len = bpf_htons(ICMP_LEN + len);
	h.ip.nexthdr = IPPROTO_ICMPV6;
	addr_put(&h.ip.saddr, p->key.dst);
	addr_put(&h.ip.daddr, p->key.src);
	fill_icmp(&h.icmp, p, mtu);
	/* The pseudo-header (RFC 8200, section 8.1) is this header with no other field set yet. */
	h.ip.hop_limit = 0;
	sum = bpf_csum_diff(NULL, 0, (__be32 *)&h, sizeof(h), 0);
	/* nexthdr stands in the upper byte of its word here, in the lower one there. */
	sum = sum - bpf_htons(IPPROTO_ICMPV6 << 8) + bpf_htons(IPPROTO_ICMPV6);
	h.icmp.check = ~fold(bpf_csum_diff(NULL, 0, (__be32 *)quote, QUOTE_MAX, fold(sum)));
	h.ip.version = 6;
	h.ip.hop_limit = TUNNEL_TTL;
	return bpf_skb_store_bytes(skb, p->l3_off, &h, sizeof(h), BPF_F_INVALIDATE_HASH);
}

/* Leads the finished error to its receiver. */
static __always_inline int deliver_answer(struct __sk_buff *skb, __u32 to)
{
	struct ethhdr *eth, turned;

	if (cfg_l2_len && to != ANSWER_AGAIN) {
		eth = header(skb, 0, sizeof(*eth));
		if (!eth)
			return -DROP_KERNEL_REFUSED;
		__builtin_memcpy(turned.h_dest, eth->h_source, ETH_ALEN);
		__builtin_memcpy(turned.h_source, eth->h_dest, ETH_ALEN);
		turned.h_proto = eth->h_proto;
		if (bpf_skb_store_bytes(skb, 0, &turned, sizeof(turned), 0))
			return -DROP_KERNEL_REFUSED;
	}
	if (to != ANSWER_OUT) {
		skb->mark = 0;
		return bpf_redirect(skb->ifindex, BPF_F_INGRESS);
	}
	skb->mark = MARK_OURS;
	return bpf_redirect(skb->ifindex, 0);
}

/*
 * Whether an address is one host's: no ICMP error goes to others (RFC 1122, section 3.2.2; RFC 4443, section
 * 2.4). The first byte tells: 0/8, 127/8, multicast and above; ::/8 holds :: and ::1, ff00::/8 is multicast.
 */
static __always_inline bool is_one_host(const __u8 *addr)
{
	if (addr_is_v4(addr))
		return addr[12] && addr[12] != 127 && addr[12] < 224;
	return addr[0] && addr[0] != 0xff;
}

/*
 * Answers a packet, which p describes as its sender made it, with the error that r names; the packet becomes
 * the error. Returns a verdict, or the negative drop reason where no answer may be made (the drop is counted
 * either way).
 */
__noinline int refuse(struct __sk_buff *skb, const struct pkt *p, const struct refusal *r)
{
	__u8 quote[QUOTE_MAX] = {};
	__u32 len, head, skip;
	int err;

	if (!p || !r)
		return -DROP_KERNEL_REFUSED;
	/* No error about a later fragment (RFC 1122, section 3.2.2). */
	if (p->fragment == FRAGMENT_LATER || p->l3_off > ETH_HLEN || !is_one_host(p->key.src) ||
	    !within_budget())
		return -(int)r->reason;
	len = p->l3_len > QUOTE_MAX ? QUOTE_MAX : p->l3_len;
	if (len < QUOTE_MIN || bpf_skb_load_bytes(skb, p->l3_off, quote, len))
		return -(int)r->reason;
	quote_segment(skb, p, quote);
	head = ICMP_LEN + (p->family == AF_INET ? sizeof(struct iphdr) : sizeof(struct ipv6hdr));
	/*
	 * Room is made by removing the front of the packet up to behind its transport checksum: the kernel
	 * then forgets that a device should complete it. The tail is set first, so that just enough is left.
	 */
	skip = p->l4_off + 24;
	if (skip > MAX_HEADER_OFFSET ||
	    bpf_skb_change_tail(skb, p->l3_off + skip + head + len, 0) ||
	    bpf_skb_adjust_room(skb, -(__s32)skip, BPF_ADJ_ROOM_MAC, 0))
		return -(int)r->reason;
	if (bpf_skb_store_bytes(skb, p->l3_off + head, quote, len, 0))
		return -(int)r->reason;
	err = p->family == AF_INET ? write_v4(skb, p, r->mtu, quote, len)
				   : write_v6(skb, p, r->mtu, quote, len);
	if (err)
		return -(int)r->reason;
	count_drop(skb, r->reason, r->dir);
	return deliver_answer(skb, r->to);
}
