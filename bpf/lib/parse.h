/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From bytes to struct pkt. What is not understood to the last byte is not ours: the caller passes it on
 * (outside a tunnel) or drops it with a reason (inside one); nothing is ever guessed.
 */
#pragma once

#include "pkt.h"

/* IPv6 extension headers walked before the packet is given up (RFC 8200, section 4.1, lists five). */
#define MAX_EXTENSIONS 6

/* The part of ICMP and ICMPv6 that all messages share. */
#define ICMP_LEN 8
#define ICMP_FOR(family) ((family) == AF_INET ? IPPROTO_ICMP : IPPROTO_ICMPV6)

/* Bytes of the transport header that every ICMP error quotes (RFC 792). */
#define QUOTED_L4 8

struct extension {
	__u8 next;
	__u8 len;
	__u8 data[2];
};

struct fragment_header {
	__u8 next;
	__u8 pad;
	__be16 offset_be; /* 13 bits of offset, 2 reserved, 1 more-fragments */
	__u32 id;
};

/* Where the packet ends by its own length; what lies behind is padding, and none of its business. */
static __always_inline __u32 packet_end_off(const struct pkt *p)
{
	return p->l3_off + p->l3_len;
}

/* A pointer to the transport header, which the IP length covers (what lies behind it is padding). */
static __always_inline void *transport_header(struct __sk_buff *skb, const struct pkt *p, __u32 len)
{
	if (p->l4_off + len > packet_end_off(p))
		return NULL;
	return header(skb, p->l4_off, len);
}

static __always_inline bool parse_ports(struct __sk_buff *skb, struct pkt *p)
{
	if (p->fragment == FRAGMENT_LATER)
		return true;
	if (p->key.proto == IPPROTO_TCP) {
		struct tcphdr *tcp = transport_header(skb, p, sizeof(*tcp));

		if (!tcp)
			return false;
		__builtin_memcpy(&p->key.sport_be, &tcp->source, 2 * sizeof(tcp->source));
		p->tcp_flags = ((__u8 *)tcp)[13];
		p->l4_len = tcp->doff * 4;
		p->tcp_ack = bpf_ntohl(tcp->ack_seq);
		p->tcp_next = bpf_ntohl(tcp->seq) + packet_end_off(p) - p->l4_off - p->l4_len +
			      tcp->syn + tcp->fin;
		return p->l4_len >= sizeof(*tcp) && p->l4_off + p->l4_len <= packet_end_off(p);
	}
	if (p->key.proto == IPPROTO_UDP) {
		struct udphdr *udp = transport_header(skb, p, sizeof(*udp));

		if (!udp)
			return false;
		__builtin_memcpy(&p->key.sport_be, &udp->source, 2 * sizeof(udp->source));
		p->l4_len = sizeof(*udp);
	}
	if (p->key.proto == ICMP_FOR(p->family)) {
		__u8 *type = transport_header(skb, p, ICMP_LEN);

		if (!type)
			return false;
		p->icmp_type = *type;
		p->l4_len = ICMP_LEN;
	}
	return true;
}

static __always_inline bool parse_v4(struct __sk_buff *skb, struct pkt *p)
{
	struct iphdr *ip = header(skb, p->l3_off, sizeof(*ip));
	__u32 header_len;

	if (!ip || ip->version != 4 || ip->ihl < 5)
		return false;
	header_len = ip->ihl * 4;
	p->family = AF_INET;
	p->tos = ip->tos;
	p->l3_len = bpf_ntohs(ip->tot_len);
	p->l4_off = p->l3_off + header_len;
	p->key.proto = ip->protocol;
	addr_from_v4(p->key.src, ip->saddr);
	addr_from_v4(p->key.dst, ip->daddr);
	p->ip_len = header_len;
	p->id = ip->id;
	p->df = ip->frag_off & IP_DF ? 1 : 0;
	if (ip->frag_off & IP_OFFSET)
		p->fragment = FRAGMENT_LATER;
	else if (ip->frag_off & IP_MF)
		p->fragment = FRAGMENT_FIRST;
	return p->l3_len >= header_len;
}

struct extension_walk {
	struct __sk_buff *skb;
	struct pkt *p;
	int step; /* of the last extension_step */
};

/* Walks one extension header. Returns 1 to go on, 0 at the upper layer, -1 to give up. */
static __always_inline int extension_step(struct __sk_buff *skb, struct pkt *p)
{
	struct extension *ext;

	switch (p->key.proto) {
	case IPPROTO_HOPOPTS:
	case IPPROTO_DSTOPTS:
	case IPPROTO_ROUTING:
		ext = header(skb, p->l4_off, sizeof(*ext));
		if (!ext)
			return -1;
		/* With segments left the packet is not at its destination (RFC 8200, section 4.4). */
		if (p->key.proto == IPPROTO_ROUTING && ext->data[1])
			return -1;
		p->key.proto = ext->next;
		p->l4_off += (ext->len + 1) * 8;
		return 1;
	case IPPROTO_AH:
		ext = header(skb, p->l4_off, sizeof(*ext));
		if (!ext)
			return -1;
		p->key.proto = ext->next;
		p->l4_off += (ext->len + 2) * 4; /* RFC 4302, section 2.2 */
		return 1;
	case IPPROTO_FRAGMENT: {
		struct fragment_header *frag = header(skb, p->l4_off, sizeof(*frag));

		if (!frag)
			return -1;
		if (frag->offset_be & bpf_htons(0xfff8))
			p->fragment = FRAGMENT_LATER;
		else if (frag->offset_be & bpf_htons(1))
			p->fragment = FRAGMENT_FIRST;
		p->id = frag->id;
		p->key.proto = frag->next;
		p->l4_off += 8;
		/* What follows in a later fragment is payload, whatever it looks like. */
		return p->fragment == FRAGMENT_LATER ? 0 : 1;
	}
	default:
		return 0;
	}
}

static long extension_next(__u64 i, struct extension_walk *walk)
{
	walk->step = extension_step(walk->skb, walk->p);
	return walk->step <= 0;
}

static __always_inline bool is_extension(__u8 proto)
{
	return proto == IPPROTO_HOPOPTS || proto == IPPROTO_DSTOPTS || proto == IPPROTO_ROUTING ||
	       proto == IPPROTO_AH || proto == IPPROTO_FRAGMENT;
}

/* Walks the extension headers, the first of which p names. Returns whether it got to the upper layer. */
__noinline bool walk_extensions(struct __sk_buff *skb, struct pkt *p)
{
	struct extension_walk walk = { .skb = skb, .p = p };

	if (!p)
		return false;
	bpf_loop(MAX_EXTENSIONS, extension_next, &walk, 0);
	return walk.step == 0 || (walk.step > 0 && !is_extension(p->key.proto));
}

static __always_inline bool parse_v6(struct __sk_buff *skb, struct pkt *p)
{
	struct ipv6hdr *ip6 = header(skb, p->l3_off, sizeof(*ip6));

	if (!ip6 || ip6->version != 6)
		return false;
	p->family = AF_INET6;
	p->ip_len = sizeof(*ip6);
	p->df = 1;
	p->tos = ip6->priority << 4 | ip6->flow_lbl[0] >> 4;
	p->l3_len = sizeof(*ip6) + bpf_ntohs(ip6->payload_len);
	p->l4_off = p->l3_off + sizeof(*ip6);
	p->key.proto = ip6->nexthdr;
	addr_copy(p->key.src, (__u8 *)&ip6->saddr);
	addr_copy(p->key.dst, (__u8 *)&ip6->daddr);
	/*
	 * No packet has IPv4-mapped addresses on the wire (RFC 4291, section 2.5.5.2); one that has must not meet
	 * the rows of an IPv4 address.
	 */
	if (addr_is_v4(p->key.src) || addr_is_v4(p->key.dst))
		return false;
	return !is_extension(p->key.proto) || walk_extensions(skb, p);
}

static __always_inline bool parse_network(struct __sk_buff *skb, __u32 off, __be16 ethertype,
					  struct pkt *p)
{
	if (off > MAX_HEADER_OFFSET)
		return false;
	p->l3_off = off;
	if (ethertype == bpf_htons(ETH_P_IP))
		return parse_v4(skb, p);
	if (ethertype == bpf_htons(ETH_P_IPV6))
		return parse_v6(skb, p);
	return false;
}

/*
 * Parses the IP packet of the given EtherType at off into p, which the caller zeroed. False: too short,
 * inconsistent, another protocol than IP, or an IPv6 header chain that is not for this node to end. Inlined:
 * a call costs foreign packets a sixth of the little that we take of their time.
 */
static __always_inline bool parse_ip(struct __sk_buff *skb, __u32 off, __be16 ethertype,
				     struct pkt *p)
{
	if (!parse_network(skb, off, ethertype, p))
		return false;
	if (p->l3_len > skb->len - p->l3_off || p->l4_off > packet_end_off(p))
		return false;
	return parse_ports(skb, p);
}

/*
 * Parses the packet that an ICMP error quotes at off, up to end: as parse_ip, but all that must be there of it
 * is the header chain and the ports (RFC 792 quotes no more than 8 bytes of TCP or UDP).
 */
__noinline int parse_quote(struct __sk_buff *skb, __u32 off, __be16 ethertype, __u32 end,
			   struct pkt *q)
{
	__be16 *ports;

	if (!q || !parse_network(skb, off, ethertype, q) || q->fragment == FRAGMENT_LATER)
		return false;
	if (q->key.proto != IPPROTO_TCP && q->key.proto != IPPROTO_UDP)
		return false;
	if (q->l4_off + QUOTED_L4 > end)
		return false;
	ports = header(skb, q->l4_off, QUOTED_L4);
	if (!ports)
		return false;
	q->key.sport_be = ports[0];
	q->key.dport_be = ports[1];
	return true;
}
