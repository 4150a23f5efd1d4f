/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Both ends of the tunnel: putting a packet into it towards a peer, and judging and unwrapping what a peer
 * sent. Congestion marks follow RFC 6040 at both ends.
 */
#pragma once

#include "fib.h"
#include "frag.h"
#include "geneve.h"
#include "icmp.h"
#include "maps.h"
#include "mtu.h"
#include "parse.h"
#include "pkt.h"
#include "quote.h"
#include "segment.h"

#define ECN_MASK 3
#define ECN_NOT_ECT 0
#define ECN_ECT_1 1
#define ECN_CE 3

/* The end of a tunnel on this node for a peer's family; NULL: there is none. */
static __always_inline const __u8 *underlay_for(const struct config *cfg, const __u8 *peer)
{
	const __u8 *self = addr_is_v4(peer) ? cfg->underlay_v4 : cfg->underlay_v6;

	return addr_is_zero(self) ? NULL : self;
}

/* The way that a packet of a flow takes out of this node. */
struct way {
	struct egress out;
	__u32 limit;  /* the longest IP packet that fits it, before encapsulation */
	__u8 forward; /* set by the caller of tunnel_way: to the endpoint, not back */
	__u8 by_mac;  /* no route: the link-layer path of the client's last frame */
	__u8 pad[2];
};

/* Finds the way through the tunnel to a flow's peer. Returns 0 or a negative drop reason. */
static __always_inline int stream_way(struct __sk_buff *skb, const struct config *cfg,
				      const struct pkt *p, const struct flow *flow, struct way *way)
{
	const __u8 *self = underlay_for(cfg, flow->peer);
	__u32 overhead;
	int err;

	if (!self)
		return -DROP_NO_UNDERLAY;
	err = fib_lookup(skb, self, flow->peer, p->tos, 0, &way->out);
	if (err)
		return err == NO_DEVICE ? -DROP_NO_ROUTE : err;
	overhead = tunnel_overhead(way->forward, addr_is_v4(flow->peer));
	if (way->out.mtu <= overhead)
		return -DROP_NO_ROUTE;
	way->limit = way->out.mtu - overhead;
	return 0;
}

/* stream_way, called: for packets that are few. */
__noinline int tunnel_way(struct __sk_buff *skb, const struct config *cfg, const struct pkt *p,
			  const struct flow *flow, struct way *way)
{
	if (!cfg || !p || !flow || !way)
		return -DROP_NO_UNDERLAY;
	return stream_way(skb, cfg, p, flow, way);
}

/* What encapsulation needs to know, from a flow and its way. */
static __always_inline void tunnel_ends_of(const struct config *cfg, const struct flow *flow,
					   const struct way *way, struct tunnel_ends *ends)
{
	ends->self = addr_is_v4(flow->peer) ? cfg->underlay_v4 : cfg->underlay_v6;
	ends->peer = flow->peer;
	ends->endpoint = way->forward ? flow->nat_addr : NULL;
	ends->endpoint_port_be = flow->nat_port_be;
	ends->source_port_be = flow->tunnel_port_be;
}

__noinline int tunnel_push_v4(struct __sk_buff *skb, const struct config *cfg, const struct pkt *p,
			      const struct flow *flow, struct way *way)
{
	struct tunnel_ends ends;
	int err;

	if (!cfg || !p || !flow || !way)
		return -DROP_NO_UNDERLAY;
	tunnel_ends_of(cfg, flow, way, &ends);
	err = push_v4(skb, p, &ends);
	return err ? err : redirect_to(skb, &way->out);
}

__noinline int tunnel_push_v6(struct __sk_buff *skb, const struct config *cfg, const struct pkt *p,
			      const struct flow *flow, struct way *way)
{
	struct tunnel_ends ends;
	int err;

	if (!cfg || !p || !flow || !way)
		return -DROP_NO_UNDERLAY;
	tunnel_ends_of(cfg, flow, way, &ends);
	err = push_v6(skb, p, &ends);
	return err ? err : redirect_to(skb, &way->out);
}

/*
 * Puts a packet that fits into the tunnel, whose way tunnel_way has found. The caller has translated the inner packet.
 * Returns a verdict or a negative drop reason.
 */
static __always_inline int tunnel_push(struct __sk_buff *skb, const struct config *cfg,
				       const struct pkt *p, const struct flow *flow,
				       struct way *way)
{
	bool outer_v4 = addr_is_v4(flow->peer);
	/* A SYN announces what comes back on the other kind of leg. */
	int err = clamp_syn(skb, p, way->out.mtu, outer_v4, !way->forward);

	if (err)
		return err;
	if (outer_v4)
		return tunnel_push_v4(skb, cfg, p, flow, way);
	return tunnel_push_v6(skb, cfg, p, flow, way);
}

/*
 * What becomes of a packet longer than its way out takes: pieces where its sender allows that (IPv4 without
 * DF), else the ICMP error that r describes. Copies leave through ifindex.
 */
static __always_inline int oversize(struct __sk_buff *skb, const struct pkt *p,
				    const struct refusal *r, __u32 ifindex)
{
	if (p->df || (skb->gso_size && p->key.proto != IPPROTO_UDP))
		return refuse(skb, p, r);
	if (skb->gso_size)
		return send_segments(skb, p, ifindex);
	return send_pieces(skb, p, r->mtu, ifindex);
}

/* What a tunnel packet for us carries. */
struct received {
	struct pkt inner;
	__u32 outer_len; /* bytes from the outer IP header to the inner one */
	__u8 type;	 /* OPTION_FORWARD or OPTION_RETURN */
	__u8 outer_tos;
	__u8 outer_family;
	__u8 pad;
	struct socket_key target; /* forward only */
};

/* Where the outer packet ends. A GSO packet may be longer than its headers can say. */
static __always_inline __u32 outer_end(struct __sk_buff *skb, const struct pkt *p)
{
	return skb->gso_size ? skb->len : packet_end_off(p);
}

/*
 * Reads a UDP packet to our tunnel port on our underlay address. Returns PASS if it is none of ours (another
 * VNI or option class), 1 if *r describes it, or a negative drop reason if it is ours but not our format.
 */
__noinline int tunnel_read(struct __sk_buff *skb, const struct pkt *p, struct received *r)
{
	struct tunnel *t;
	__be16 ethertype;

	if (!p || !r)
		return PASS;
	t = transport_header(skb, p, RETURN_LEN);
	if (!t || !tunnel_is_ours(t))
		return PASS;
	r->type = t->option.type;
	r->outer_tos = p->tos;
	r->outer_family = p->family;
	ethertype = t->geneve.protocol_be;
	if (t->geneve.version_len >> 6 || t->geneve.flags != GENEVE_CRITICAL || t->udp.check)
		return -DROP_TUNNEL_MALFORMED;
	if (r->type == OPTION_RETURN) {
		if (t->geneve.version_len != 1 || t->option.len)
			return -DROP_TUNNEL_MALFORMED;
		r->outer_len = p->l4_off - p->l3_off + RETURN_LEN;
	} else if (r->type == OPTION_FORWARD) {
		if (t->geneve.version_len != 6 || t->option.len != sizeof(t->body) / 4)
			return -DROP_TUNNEL_MALFORMED;
		r->outer_len = p->l4_off - p->l3_off + FORWARD_LEN;
		t = transport_header(skb, p, FORWARD_LEN);
		if (!t)
			return -DROP_TUNNEL_MALFORMED;
		addr_copy(r->target.addr, t->body.addr);
		r->target.port_be = t->body.port_be;
	} else {
		return -DROP_TUNNEL_MALFORMED;
	}
	if (!parse_ip(skb, p->l3_off + r->outer_len, ethertype, &r->inner) ||
	    packet_end_off(&r->inner) > outer_end(skb, p))
		return -DROP_TUNNEL_INNER;
	if (r->inner.key.proto != IPPROTO_TCP && r->inner.key.proto != IPPROTO_UDP &&
	    !is_icmp_error(&r->inner))
		return -DROP_TUNNEL_INNER;
	if (!fragment_ports(&r->inner))
		return -DROP_FRAGMENT_ORPHAN;
	r->target.proto = r->inner.key.proto;
	return 1;
}

/* RFC 6040, section 4.2, figure 4. Returns the inner packet's new field, or -1 for a packet to drop. */
static __always_inline int combine_ecn(__u8 inner, __u8 outer)
{
	inner &= ECN_MASK;
	outer &= ECN_MASK;
	if (outer == ECN_CE)
		return inner == ECN_NOT_ECT ? -1 : ECN_CE;
	if (outer == ECN_ECT_1 && inner != ECN_NOT_ECT && inner != ECN_CE)
		return ECN_ECT_1;
	return inner;
}

static __always_inline int write_tos(struct __sk_buff *skb, const struct pkt *p, __u8 tos)
{
	__be16 from, to;

	if (p->family == AF_INET) {
		struct iphdr *ip = header(skb, p->l3_off, sizeof(*ip));

		if (!ip)
			return -DROP_KERNEL_REFUSED;
		from = bpf_htons(((__u8 *)ip)[0] << 8 | p->tos);
		to = bpf_htons(((__u8 *)ip)[0] << 8 | tos);
		if (bpf_l3_csum_replace(skb, p->l3_off + 10, from, to, sizeof(to)))
			return -DROP_KERNEL_REFUSED;
	} else {
		struct ipv6hdr *ip6 = header(skb, p->l3_off, sizeof(*ip6));

		if (!ip6)
			return -DROP_KERNEL_REFUSED;
		to = bpf_htons(6 << 12 | tos << 4 | (ip6->flow_lbl[0] & 0xf));
	}
	if (bpf_skb_store_bytes(skb, p->l3_off, &to, sizeof(to), BPF_F_RECOMPUTE_CSUM))
		return -DROP_KERNEL_REFUSED;
	return 0;
}

/* Takes the outer headers off; r->inner describes the packet as it then is. */
__noinline int tunnel_unwrap(struct __sk_buff *skb, struct received *r)
{
	__u64 flags = BPF_F_ADJ_ROOM_FIXED_GSO;
	struct pkt *p;
	int ecn;

	if (!r)
		return -DROP_KERNEL_REFUSED;
	p = &r->inner;
	ecn = combine_ecn(p->tos, r->outer_tos);
	if (ecn < 0)
		return -DROP_ECN;
	/* Names the inner protocol where it is another than the outer (Linux 6.3). */
	if (p->family != r->outer_family)
		flags |= p->family == AF_INET ? BPF_F_ADJ_ROOM_DECAP_L3_IPV4
					      : BPF_F_ADJ_ROOM_DECAP_L3_IPV6;
	if (bpf_skb_adjust_room(skb, -(__s32)r->outer_len, BPF_ADJ_ROOM_MAC, flags))
		return -DROP_KERNEL_REFUSED;
	p->l3_off -= r->outer_len;
	p->l4_off -= r->outer_len;
	if (p->family != r->outer_family && write_ethertype(skb, p->family))
		return -DROP_KERNEL_REFUSED;
	if (ecn != (p->tos & ECN_MASK)) {
		__u8 tos = (p->tos & ~ECN_MASK) | ecn;

		if (write_tos(skb, p, tos))
			return -DROP_KERNEL_REFUSED;
		p->tos = tos;
	}
	return 0;
}

/*
 * Finds the way to the client: by the device its packets come in on, if the flow is known. src is the front's
 * address. Returns 0 or a negative drop reason.
 */
__noinline int client_way(struct __sk_buff *skb, const struct flow_key *key, const struct flow *row,
			  __u8 tos, struct way *way)
{
	__u32 oif;
	int err;

	if (!key || !way)
		return -DROP_NO_ROUTE;
	oif = row ? row->uplink : 0;
	err = fib_lookup(skb, key->dst, key->src, tos, oif, &way->out);
	if (err == NO_DEVICE) {
		row = NULL;
		err = fib_lookup(skb, key->dst, key->src, tos, 0, &way->out);
	}
	way->limit = way->out.mtu;
	if (err && row) {
		way->out.ifindex = row->uplink;
		/* Only the device's MTU is asked for here, whatever this packet's length. */
		way->out.mtu = 0;
		bpf_check_mtu(skb, row->uplink, &way->out.mtu, 0, 0);
		way->limit = way->out.mtu;
		way->by_mac = 1;
		return 0;
	}
	return err == NO_DEVICE ? -DROP_NO_ROUTE : err;
}

/* Sends a translated answer on its way to the client. Returns a verdict or a negative drop reason. */
static __always_inline int client_push(struct __sk_buff *skb, const struct pkt *p,
				       const struct flow *row, struct way *way)
{
	if (way->by_mac && row)
		return redirect_by_mac(skb, row, p->family);
	return redirect_to(skb, &way->out);
}
