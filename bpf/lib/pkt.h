/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A parsed packet as a value, addresses as 16 bytes, and the way to its bytes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "abi.h"

/* Linux's values (include/linux/socket.h), not in the UAPI headers. */
#define AF_INET 2
#define AF_INET6 10

#define IP_DF bpf_htons(0x4000)
#define IP_MF bpf_htons(0x2000)
#define IP_OFFSET bpf_htons(0x1fff)

#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_RST 0x04
#define TCP_ACK 0x10

/* Every header we read starts below this; it bounds the verifier's arithmetic, too. */
#define MAX_HEADER_OFFSET 512

enum fragment {
	FRAGMENT_NONE,
	FRAGMENT_FIRST,
	FRAGMENT_LATER, /* has no ports */
};

struct pkt {
	struct flow_key key; /* addresses, ports, protocol; kind is the caller's */
	__u16 l3_off;	     /* from skb->data */
	__u16 l4_off;
	__u32 l3_len;	/* from the IP header: header and payload */
	__u16 tcp_next; /* low 16 bits of the sequence number behind this segment */
	__u16 tcp_ack;	/* and of its acknowledgement number */
	__u8 family;	/* AF_INET or AF_INET6 */
	__u8 fragment;	/* enum fragment */
	__u8 tcp_flags;
	__u8 l4_len;	/* transport header, bytes */
	__u8 tos;	/* DSCP and ECN: IPv4 TOS or IPv6 traffic class */
	__u8 ip_len;	/* IPv4: header, bytes; IPv6: 40 */
	__u8 df;	/* 1: routers must not fragment it (always so for IPv6) */
	__u8 icmp_type; /* of an ICMP or ICMPv6 message */
	__u32 id;	/* of a fragment's datagram, as in the packet */
};

/*
 * The packet's bounds. By hand, as clang would keep the 32-bit field in a register and widen it again, which
 * makes a number of a pointer in the verifier's eyes.
 */
static __always_inline void *packet_start(const struct __sk_buff *skb)
{
	void *at;

	asm volatile("%0 = *(u32 *)(%1 + %2)"
		     : "=r"(at)
		     : "r"(skb), "i"(offsetof(struct __sk_buff, data)));
	return at;
}

static __always_inline void *packet_end(const struct __sk_buff *skb)
{
	void *at;

	asm volatile("%0 = *(u32 *)(%1 + %2)"
		     : "=r"(at)
		     : "r"(skb), "i"(offsetof(struct __sk_buff, data_end)));
	return at;
}

/* A pointer to len bytes at off, made linear if need be. NULL if the packet is shorter. */
static __always_inline void *header(struct __sk_buff *skb, __u32 off, __u32 len)
{
	void *at;

	if (off > MAX_HEADER_OFFSET)
		return NULL;
	at = packet_start(skb) + off;
	if (at + len <= packet_end(skb))
		return at;
	if (off + len > skb->len || bpf_skb_pull_data(skb, off + len))
		return NULL;
	at = packet_start(skb) + off;
	if (at + len <= packet_end(skb))
		return at;
	return NULL;
}

static __always_inline __be16 ethertype_of(__u8 family)
{
	return family == AF_INET ? bpf_htons(ETH_P_IP) : bpf_htons(ETH_P_IPV6);
}

/*
 * Addresses are handled as two words: what has been written as four is slow to read as two, as the kernel does with
 * a map's key. On the stack they must be aligned to 8 bytes.
 */
static __always_inline void addr_copy(__u8 *to, const __u8 *from)
{
	((__u64 *)to)[0] = ((const __u64 *)from)[0];
	((__u64 *)to)[1] = ((const __u64 *)from)[1];
}

/* As addr_copy, from or to a place that is aligned to 4 bytes only. */
static __always_inline void addr_put(void *to, const __u8 *from)
{
	((__u32 *)to)[0] = ((const __u32 *)from)[0];
	((__u32 *)to)[1] = ((const __u32 *)from)[1];
	((__u32 *)to)[2] = ((const __u32 *)from)[2];
	((__u32 *)to)[3] = ((const __u32 *)from)[3];
}

static __always_inline bool addr_equal(const __u8 *a, const __u8 *b)
{
	return ((const __u64 *)a)[0] == ((const __u64 *)b)[0] &&
	       ((const __u64 *)a)[1] == ((const __u64 *)b)[1];
}

static __always_inline bool addr_is_zero(const __u8 *a)
{
	return !(((const __u64 *)a)[0] | ((const __u64 *)a)[1]);
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the order of the halves below");

/* The prefix ::ffff:0:0/96 of IPv4-mapped addresses (RFC 4291, section 2.5.5.2), the half of it that is not zero. */
#define V4_MAPPED bpf_htonl(0xffff)

static __always_inline void addr_from_v4(__u8 *to, __be32 v4)
{
	((__u64 *)to)[0] = 0;
	((__u64 *)to)[1] = (__u64)v4 << 32 | V4_MAPPED;
}

static __always_inline bool addr_is_v4(const __u8 *a)
{
	return !((const __u64 *)a)[0] && ((const __u32 *)a)[2] == V4_MAPPED;
}

static __always_inline __be32 addr_v4(const __u8 *a)
{
	return ((const __u32 *)a)[3];
}
