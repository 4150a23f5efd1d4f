/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What `beep trace` tells of one packet, and how the headers of a packet are read that need not be one of beep's, nor
 * whole.
 */
#pragma once

#include "format.h"
#include "parse.h"

/* The headers of a packet at one moment. All zero: not IP, or not readable. */
struct trace_view {
	__u8 src[16]; /* of the innermost IP packet */
	__u8 dst[16];
	__u8 outer_src[16]; /* of the tunnel around it; all zero: none */
	__u8 outer_dst[16];
	__u8 target[16];    /* what the forward option names */
	__u8 quote_src[16]; /* of the packet that an ICMP error is about */
	__u8 quote_dst[16];
	__be16 sport_be;
	__be16 dport_be;
	__be16 target_port_be;
	__be16 quote_sport_be;
	__be16 quote_dport_be;
	__u8 proto;
	__u8 tcp_flags;
	__u8 fragment; /* enum fragment */
	__u8 option;   /* OPTION_FORWARD, OPTION_RETURN or 0 */
	__u8 icmp_type;
	__u8 icmp_code;
	__u8 quote_proto; /* 0: none */
	__u8 pad[7];
};
_Static_assert(sizeof(struct trace_view) == 136, "trace_view");

/* One run of a program of the datapath. */
struct trace_event {
	__u64 seq;  /* counts up on each CPU */
	__u64 time; /* nanoseconds of the monotonic clock; 0: no event */
	__u32 cpu;
	__u32 ifindex;
	__u32 out_ifindex; /* the device that it was redirected to; 0: not seen there */
	__u32 direction;   /* enum direction */
	__u32 reason;	   /* enum drop_reason that was counted; 0: none */
	__u32 counted;	   /* 1 << enum traffic of each counter that the packet is in */
	__u32 len;	   /* bytes that came, link layer included */
	__u32 len_after;   /* bytes that are left; 0: not seen again */
	__u32 gso_size;	   /* payload of a segment; 0: one packet */
	__u32 mark;	   /* the packet's, as it came */
	__u32 copies;	   /* 1: copies went out for it */
	__u32 pad;
	struct trace_view before;
	struct trace_view after;
};
_Static_assert(sizeof(struct trace_event) == 336, "trace_event");

/* A place in the packet. */
struct trace_cursor {
	struct __sk_buff *skb;
	__u32 at;
};

static __always_inline bool trace_read(const struct trace_cursor *c, void *to, __u32 len)
{
	return !bpf_skb_load_bytes(c->skb, c->at, to, len);
}

/* Steps over IPv6 extension headers. Returns the protocol behind them. */
static __always_inline __u8 trace_extensions(struct trace_cursor *c, __u8 next, __u8 *fragment)
{
	for (int i = 0; i < MAX_EXTENSIONS; i++) {
		struct fragment_header header;

		if (next != IPPROTO_HOPOPTS && next != IPPROTO_ROUTING && next != IPPROTO_DSTOPTS &&
		    next != IPPROTO_FRAGMENT)
			break;
		if (*fragment == FRAGMENT_LATER || !trace_read(c, &header, sizeof(header)))
			break;
		if (next == IPPROTO_FRAGMENT) {
			*fragment = header.offset_be & bpf_htons(0xfff8) ? FRAGMENT_LATER
									 : FRAGMENT_FIRST;
			c->at += sizeof(header);
		} else {
			c->at += (header.pad + 1) * 8; /* pad: its length in units of 8 bytes */
		}
		next = header.next;
	}
	return next;
}

/* Reads an IP header and steps behind it. Returns its protocol, 0 if it is none that can be read. */
static __noinline __u8 trace_ip(struct trace_cursor *c, __u8 *src, __u8 *dst, __u8 *fragment)
{
	struct ipv6hdr ip6;
	struct iphdr ip;

	*fragment = FRAGMENT_NONE;
	if (!trace_read(c, &ip, sizeof(ip)))
		return 0;
	if (ip.version == 4) {
		addr_from_v4(src, ip.saddr);
		addr_from_v4(dst, ip.daddr);
		if (ip.frag_off & IP_OFFSET)
			*fragment = FRAGMENT_LATER;
		else if (ip.frag_off & IP_MF)
			*fragment = FRAGMENT_FIRST;
		c->at += ip.ihl * 4;
		return ip.protocol;
	}
	if (ip.version != 6 || !trace_read(c, &ip6, sizeof(ip6)))
		return 0;
	addr_put(src, (__u8 *)&ip6.saddr);
	addr_put(dst, (__u8 *)&ip6.daddr);
	c->at += sizeof(ip6);
	return trace_extensions(c, ip6.nexthdr, fragment);
}

/* Reads a tunnel's headers of our format and steps into it. */
static __always_inline bool trace_tunnel(struct trace_cursor *c, struct trace_view *v)
{
	struct tunnel t = {};

	/* Of any network and port: those of the programs are not known here. */
	if (!trace_read(c, &t, RETURN_LEN) || t.option.class_be != OPTION_CLASS ||
	    (t.option.type != OPTION_FORWARD && t.option.type != OPTION_RETURN))
		return false;
	v->option = t.option.type;
	if (v->option == OPTION_FORWARD) {
		if (!trace_read(c, &t, FORWARD_LEN))
			return false;
		addr_put(v->target, t.body.addr);
		v->target_port_be = t.body.port_be;
	}
	c->at += sizeof(t.udp) + sizeof(t.geneve) + (t.geneve.version_len & 0x3f) * 4;
	addr_copy(v->outer_src, v->src);
	addr_copy(v->outer_dst, v->dst);
	return true;
}

/* Reads what an ICMP error says of the packet that it is about. */
static __always_inline void trace_icmp(struct trace_cursor *c, struct trace_view *v)
{
	bool error = v->proto == IPPROTO_ICMP
			     ? v->icmp_type == 3 || v->icmp_type == 11 || v->icmp_type == 12
			     : v->icmp_type < 128;
	__be16 ports[2] = {};
	__u8 fragment;

	if (!error)
		return;
	c->at += ICMP_LEN;
	v->quote_proto = trace_ip(c, v->quote_src, v->quote_dst, &fragment);
	if (trace_read(c, ports, sizeof(ports))) {
		v->quote_sport_be = ports[0];
		v->quote_dport_be = ports[1];
	}
}

static __always_inline void trace_transport(struct trace_cursor *c, struct trace_view *v)
{
	__be16 ports[2] = {};
	__u8 type[2] = {};

	if (v->fragment == FRAGMENT_LATER)
		return;
	if (v->proto == IPPROTO_TCP || v->proto == IPPROTO_UDP) {
		if (trace_read(c, ports, sizeof(ports))) {
			v->sport_be = ports[0];
			v->dport_be = ports[1];
		}
		c->at += 13;
		if (v->proto == IPPROTO_TCP)
			trace_read(c, &v->tcp_flags, sizeof(v->tcp_flags));
	} else if (v->proto == IPPROTO_ICMP || v->proto == IPPROTO_ICMPV6) {
		if (trace_read(c, type, sizeof(type))) {
			v->icmp_type = type[0];
			v->icmp_code = type[1];
			trace_icmp(c, v);
		}
	}
}

/* Reads the headers from an IP header on, through a tunnel of ours. */
static __noinline int trace_look(struct trace_cursor *c, struct trace_view *v)
{
	v->proto = trace_ip(c, v->src, v->dst, &v->fragment);
	if (v->proto == IPPROTO_UDP && v->fragment == FRAGMENT_NONE && trace_tunnel(c, v))
		v->proto = trace_ip(c, v->src, v->dst, &v->fragment);
	trace_transport(c, v);
	return 0;
}
