/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The tunnel on the wire (RFC 8926): outer IP, UDP, Geneve with one option of ours, then the inner IP packet.
 * The outer UDP checksum is zero in both families (RFC 6935; both ends are beep).
 */
#pragma once

#include "config.h"
#include "csum.h"
#include "drop.h"
#include "fib.h"
#include "format.h"
#include "pkt.h"

/* Whether a Geneve packet is of our network and begins with an option of ours. Reserved bits are ignored. */
static __always_inline bool tunnel_is_ours(const struct tunnel *t)
{
	return (t->geneve.vni_be & bpf_htonl(0xffffff00)) == bpf_htonl(cfg_geneve_vni << 8) &&
	       t->geneve.version_len & 0x3f && t->option.class_be == OPTION_CLASS;
}

/* Bytes that the tunnel adds in front of the inner packet: the one place that knows. */
static __always_inline __u32 tunnel_overhead(bool forward, bool outer_v4)
{
	return (outer_v4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr)) +
	       (forward ? FORWARD_LEN : RETURN_LEN);
}
_Static_assert(sizeof(struct iphdr) + FORWARD_LEN == 60, "forward overhead over IPv4");
_Static_assert(sizeof(struct ipv6hdr) + RETURN_LEN == 60, "return overhead over IPv6");

struct outer_v4 {
	struct iphdr ip;
	struct tunnel tunnel;
};

struct outer_v6 {
	struct ipv6hdr ip;
	struct tunnel tunnel;
};

/* What encapsulation needs to know. Addresses are of one family. */
struct tunnel_ends {
	const __u8 *self;
	const __u8 *peer;
	const __u8 *endpoint; /* forward only, else NULL */
	__be16 endpoint_port_be;
	__be16 source_port_be;
};

static __always_inline void fill_tunnel(struct tunnel *t, const struct tunnel_ends *ends,
					__u8 inner_family, __u32 inner_len)
{
	bool forward = ends->endpoint;
	__u32 udp_len = inner_len + (forward ? FORWARD_LEN : RETURN_LEN);
	__u32 option_len = sizeof(struct geneve_option) +
			   (forward ? sizeof(struct forward_body) : 0);

	t->udp.source = ends->source_port_be;
	t->udp.dest = bpf_htons(cfg_geneve_port);
	/* Only a GSO packet can be longer, and each of its segments gets its own length. */
	t->udp.len = bpf_htons(udp_len > 0xffff ? 0xffff : udp_len);
	t->udp.check = 0;
	t->geneve.version_len = option_len / 4;
	t->geneve.flags = GENEVE_CRITICAL;
	t->geneve.protocol_be = inner_family == AF_INET ? bpf_htons(ETH_P_IP)
							: bpf_htons(ETH_P_IPV6);
	t->geneve.vni_be = bpf_htonl(cfg_geneve_vni << 8);
	t->option.class_be = OPTION_CLASS;
	t->option.type = forward ? OPTION_FORWARD : OPTION_RETURN;
	t->option.len = (option_len - sizeof(struct geneve_option)) / 4;
	if (forward) {
		addr_put(t->body.addr, ends->endpoint);
		t->body.port_be = ends->endpoint_port_be;
		t->body.flags_be = 0;
	}
}

/* RFC 1071 over a header of 20 bytes whose check field is zero. */
static __always_inline __sum16 header_checksum(const struct iphdr *ip)
{
	const __u16 *words = (const __u16 *)ip;
	__u32 sum = 0;

#pragma unroll
	for (int i = 0; i < 10; i++)
		sum += words[i];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

/* Names the protocol of the new outermost header, where the packet has a link layer that can. */
static __always_inline int write_ethertype(struct __sk_buff *skb, __u8 family)
{
	__be16 type = ethertype_of(family);

	if (cfg_l2_len &&
	    bpf_skb_store_bytes(skb, offsetof(struct ethhdr, h_proto), &type, sizeof(type), 0))
		return -DROP_KERNEL_REFUSED;
	return 0;
}

/*
 * Makes room for the outer headers and names their family. The kernel must know of a tunnel whose packet it cuts up,
 * and a device that completes checksums by protocol; where the packet may be handed over as it is, only the former.
 */
static __always_inline long make_room(struct __sk_buff *skb, __u32 overhead, __u8 inner, __u8 outer)
{
	const __s32 grown = sizeof(struct ipv6hdr) - sizeof(struct iphdr);
	__s32 room = overhead;

	if (!cfg_handover || skb->gso_size)
		return bpf_skb_adjust_room(skb, room, BPF_ADJ_ROOM_MAC,
					   BPF_F_ADJ_ROOM_FIXED_GSO | BPF_F_ADJ_ROOM_ENCAP_L4_UDP |
						   (outer == AF_INET
							    ? BPF_F_ADJ_ROOM_ENCAP_L3_IPV4
							    : BPF_F_ADJ_ROOM_ENCAP_L3_IPV6));
	if (inner == outer)
		return bpf_skb_adjust_room(skb, room, BPF_ADJ_ROOM_MAC, 0);
	/* The change of family adds the difference of the IP headers in front, or takes it away. */
	room += outer == AF_INET6 ? -grown : grown;
	if (bpf_skb_adjust_room(skb, room, BPF_ADJ_ROOM_MAC, 0))
		return -1;
	return bpf_skb_change_proto(skb, ethertype_of(outer), 0);
}

static __always_inline int push_v4(struct __sk_buff *skb, const struct pkt *p,
				   const struct tunnel_ends *ends)
{
	__u32 overhead = tunnel_overhead(ends->endpoint, true), len = p->l3_len + overhead;
	struct outer_v4 outer = {};

	if (make_room(skb, overhead, p->family, AF_INET))
		return -DROP_KERNEL_REFUSED;
	outer.ip.version = 4;
	outer.ip.ihl = 5;
	outer.ip.tos = p->tos;
	outer.ip.tot_len = bpf_htons(len > 0xffff ? 0xffff : len);
	outer.ip.frag_off = IP_DF; /* so an identification of 0 is enough (RFC 6864) */
	outer.ip.ttl = TUNNEL_TTL;
	outer.ip.protocol = IPPROTO_UDP;
	outer.ip.saddr = addr_v4(ends->self);
	outer.ip.daddr = addr_v4(ends->peer);
	/* From the fields: what has just been written in other widths is slow to read. */
	outer.ip.check = ~fold((__u64)bpf_htons(0x4500 | p->tos) + outer.ip.tot_len + IP_DF +
			       bpf_htons(TUNNEL_TTL << 8 | IPPROTO_UDP) + addr_v4(ends->self) +
			       addr_v4(ends->peer));
	fill_tunnel(&outer.tunnel, ends, p->family, p->l3_len);
	if (bpf_skb_store_bytes(skb, p->l3_off, &outer, overhead, BPF_F_INVALIDATE_HASH))
		return -DROP_KERNEL_REFUSED;
	return p->family == AF_INET ? 0 : write_ethertype(skb, AF_INET);
}

static __always_inline int push_v6(struct __sk_buff *skb, const struct pkt *p,
				   const struct tunnel_ends *ends)
{
	__u32 overhead = tunnel_overhead(ends->endpoint, false);
	__u32 len = p->l3_len + overhead - sizeof(struct ipv6hdr);
	struct outer_v6 outer = {};

	if (make_room(skb, overhead, p->family, AF_INET6))
		return -DROP_KERNEL_REFUSED;
	outer.ip.version = 6;
	outer.ip.priority = p->tos >> 4;
	outer.ip.flow_lbl[0] = p->tos << 4;
	outer.ip.payload_len = bpf_htons(len > 0xffff ? 0xffff : len);
	outer.ip.nexthdr = IPPROTO_UDP;
	outer.ip.hop_limit = TUNNEL_TTL;
	addr_put(&outer.ip.saddr, ends->self);
	addr_put(&outer.ip.daddr, ends->peer);
	fill_tunnel(&outer.tunnel, ends, p->family, p->l3_len);
	if (bpf_skb_store_bytes(skb, p->l3_off, &outer, overhead, BPF_F_INVALIDATE_HASH))
		return -DROP_KERNEL_REFUSED;
	return p->family == AF_INET6 ? 0 : write_ethertype(skb, AF_INET6);
}
