/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ICMP errors about our flows: which flow a quoted packet belongs to, and the error as the other side must
 * see it: translated outside and inside, whoever made it and however little it quotes.
 */
#pragma once

#include "csum.h"
#include "drop.h"
#include "icmp.h"
#include "parse.h"
#include "pkt.h"

#define ICMP_TIME_EXCEEDED 11
#define ICMP_PARAMETER 12
#define ICMP6_ERROR_LAST 127 /* RFC 4443, section 2.1: errors are below 128 */

/* Whether a packet is an ICMP error (a redirect is the host's own affair, and no error). */
static __always_inline bool is_icmp_error(const struct pkt *p)
{
	if (p->fragment != FRAGMENT_NONE)
		return false;
	if (p->family == AF_INET && p->key.proto == IPPROTO_ICMP)
		return p->icmp_type == ICMP_UNREACH || p->icmp_type == ICMP_TIME_EXCEEDED ||
		       p->icmp_type == ICMP_PARAMETER;
	return p->family == AF_INET6 && p->key.proto == IPPROTO_ICMPV6 && p->icmp_type &&
	       p->icmp_type <= ICMP6_ERROR_LAST;
}

/*
 * Parses what an ICMP error quotes. False also if the error does not go to who sent that (RFC 792, RFC 4443,
 * section 2.4): then it is in transit, or forged.
 */
static __always_inline bool quote_of(struct __sk_buff *skb, const struct pkt *p, struct pkt *q)
{
	return parse_quote(skb, p->l4_off + ICMP_LEN, ethertype_of(p->family), packet_end_off(p),
			   q) &&
	       addr_equal(q->key.src, p->key.dst);
}

/* The key of the packets that go the other way than the quoted one. */
static __always_inline void answer_key(const struct pkt *q, __u8 kind, struct flow_key *key)
{
	addr_copy(key->src, q->key.dst);
	addr_copy(key->dst, q->key.src);
	key->sport_be = q->key.dport_be;
	key->dport_be = q->key.sport_be;
	key->proto = q->key.proto;
	key->kind = kind;
	key->pad[0] = 0;
	key->pad[1] = 0;
}

/* Changes two bytes of the quote, and the ICMP checksum that covers them. */
static __always_inline int quote_write(struct __sk_buff *skb, const struct pkt *p, __u32 off,
				       __be16 from, __be16 to)
{
	if (from == to)
		return 0;
	if (bpf_l4_csum_replace(skb, p->l4_off + 2, from, to, sizeof(to)) ||
	    bpf_skb_store_bytes(skb, off, &to, sizeof(to), 0))
		return -DROP_KERNEL_REFUSED;
	return 0;
}

/* Changes one address of the quote. IPv4: its header checksum takes up the change, the ICMP one sees none. */
static __always_inline int quote_address(struct __sk_buff *skb, const struct pkt *p,
					 const struct pkt *q, const struct rewrite *to,
					 const __u8 *old)
{
	__u32 off = q->l3_off;
	__s64 diff;

	if (q->family == AF_INET) {
		__be32 from = addr_v4(old), addr = addr_v4(to->addr);

		off += to->source ? 12 : 16;
		if (bpf_l3_csum_replace(skb, q->l3_off + 10, from, addr, sizeof(addr)) ||
		    bpf_skb_store_bytes(skb, off, &addr, sizeof(addr), 0))
			return -DROP_KERNEL_REFUSED;
		return 0;
	}
	off += to->source ? 8 : 24;
	diff = bpf_csum_diff((__be32 *)old, 16, (__be32 *)to->addr, 16, 0);
	if (bpf_l4_csum_replace(skb, p->l4_off + 2, 0, diff, 0) ||
	    bpf_skb_store_bytes(skb, off, to->addr, 16, 0))
		return -DROP_KERNEL_REFUSED;
	return 0;
}

/* Keeps the quoted transport checksum in step (RFC 1624), where the quote reaches that far and has one. */
static __always_inline int quote_checksum(struct __sk_buff *skb, const struct pkt *p,
					  const struct pkt *q, const struct rewrite *to,
					  const __u8 *old)
{
	__be16 before[2] = { q->key.sport_be, q->key.dport_be },
	       after[2] = { to->sport_be, to->dport_be };
	__u16 from, updated;
	__s64 sum;

	if (checksum_off(q) + sizeof(from) > packet_end_off(p) ||
	    bpf_skb_load_bytes(skb, checksum_off(q), &from, sizeof(from)))
		return 0;
	if (!from && q->key.proto == IPPROTO_UDP)
		return 0;
	sum = bpf_csum_diff((__be32 *)old, 16, (__be32 *)to->addr, 16, (__u16)~from);
	sum = bpf_csum_diff((__be32 *)before, sizeof(before), (__be32 *)after, sizeof(after),
			    fold(sum));
	updated = ~fold(sum);
	return quote_write(skb, p, checksum_off(q), from, updated);
}

/*
 * Translates an ICMP error: in the quote what *to says (the address on the side that to->source names, and
 * both ports), outside the address of the other side, which is the same machine. Returns 0 or a negative
 * drop reason.
 */
__noinline int translate_error(struct __sk_buff *skb, const struct pkt *p, const struct pkt *q,
			       const struct rewrite *to)
{
	struct rewrite outside = {};
	const __u8 *old;
	int err;

	if (!p || !q || !to)
		return -DROP_KERNEL_REFUSED;
	old = to->source ? q->key.src : q->key.dst;
	err = quote_checksum(skb, p, q, to, old);
	if (!err)
		err = quote_address(skb, p, q, to, old);
	if (!err)
		err = quote_write(skb, p, q->l4_off, q->key.sport_be, to->sport_be);
	if (!err)
		err = quote_write(skb, p, q->l4_off + 2, q->key.dport_be, to->dport_be);
	if (err)
		return err;
	addr_copy(outside.addr, to->addr);
	outside.source = !to->source;
	return rewrite(skb, p, &outside);
}

/* What an error about a front's packet must say to the endpoint: it quotes what the endpoint sent. */
static __always_inline int error_to_endpoint(struct __sk_buff *skb, const struct pkt *p,
					     const struct pkt *q, const struct flow *row)
{
	struct rewrite to = {
		.sport_be = row->nat_port_be,
		.dport_be = row->client_port_be,
		.source = 1,
	};

	addr_copy(to.addr, row->nat_addr);
	return translate_error(skb, p, q, &to);
}

/* What an error about a client's packet must say to the client: it quotes what the client sent. */
static __always_inline int error_to_client(struct __sk_buff *skb, const struct pkt *p,
					   const struct pkt *q, const struct flow *row)
{
	struct rewrite to = { .sport_be = row->client_port_be, .dport_be = row->nat_port_be };

	addr_copy(to.addr, row->nat_addr);
	return translate_error(skb, p, q, &to);
}
