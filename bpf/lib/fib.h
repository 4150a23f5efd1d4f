/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where a packet leaves: the kernel's own routes decide, the kernel's own neighbour table resolves the next hop. An
 * answer of the FIB is kept as long as the kernel keeps its own (until a route, rule, address or device changes), and
 * not past the tick that it was given in: what no generation tells of, as a path MTU learned, takes effect with the
 * next one (docs/adr/0014). Of neighbours nothing is remembered.
 */
#pragma once

#include "config.h"
#include "drop.h"
#include "kskb.h"
#include "maps.h"
#include "pkt.h"

/* The loopback device has this index in every network namespace (Linux, net/core/dev.c). */
#define LOOPBACK_IFINDEX 1

/* The device that a lookup is bound to is gone: no drop reason, the caller asks again without it. */
#define NO_DEVICE (-DROP_REASONS)

struct egress {
	struct bpf_redir_neigh next_hop;
	__u32 ifindex;
	__u32 mtu; /* of the route or of its device, bytes from the IP header on */
};

static __always_inline int fib_reason(long result)
{
	if (result < 0)
		return NO_DEVICE;
	if (result == BPF_FIB_LKUP_RET_FWD_DISABLED)
		return -DROP_FORWARDING_OFF;
	return -DROP_NO_ROUTE;
}

static __always_inline struct fib_answer *fib_answer_of(const __u8 *src, const __u8 *dst, __u32 tos,
							__u32 oif)
{
	const __u32 *s = (const __u32 *)src, *d = (const __u32 *)dst;
	__u32 mixed = (d[3] ^ d[1] * 5 ^ s[3] * 3 ^ oif << 8 ^ tos) * 0x9e3779b1u;
	__u32 slot = mixed >> 24;

	return bpf_map_lookup_elem(&FIB_ANSWERS, &slot);
}
_Static_assert(FIB_SLOTS == 1 << 8, "fib_answer_of makes eight bits");

/* Asks the FIB what the answer's src, dst, oif and tos say. Returns 0, NO_DEVICE or a negative drop reason. */
__noinline int fib_ask(struct __sk_buff *skb, struct fib_answer *answer)
{
	struct bpf_fib_lookup fib = {};
	__u32 flags = BPF_FIB_LOOKUP_SKIP_NEIGH;
	long result;

	if (!answer)
		return -DROP_NO_ROUTE;
	answer->tick = 0;
	/* Read before the answer is: what changes meanwhile is asked for again. */
	answer->generation = route_generation(skb);
	/* Policy rules see iif lo where no device is named. */
	fib.ifindex = LOOPBACK_IFINDEX;
	if (answer->oif) {
		fib.ifindex = answer->oif;
		flags |= BPF_FIB_LOOKUP_OUTPUT;
	}
	/* A length turns on the answer's MTU; we compare sizes ourselves. */
	fib.tot_len = 1;
	if (addr_is_v4(answer->dst)) {
		fib.family = AF_INET;
		fib.tos = answer->tos & 0xfc;
		fib.ipv4_src = addr_v4(answer->src);
		fib.ipv4_dst = addr_v4(answer->dst);
	} else {
		fib.family = AF_INET6;
		fib.flowinfo = bpf_htonl(answer->tos << 20);
		addr_put(fib.ipv6_src, answer->src);
		addr_put(fib.ipv6_dst, answer->dst);
	}
	result = bpf_fib_lookup(skb, &fib, sizeof(fib), flags);
	if (result != BPF_FIB_LKUP_RET_SUCCESS)
		return fib_reason(result);
	/* For IPv6 the device is a wish to the kernel's lookup, not a bound. */
	if (answer->oif && fib.ifindex != answer->oif)
		return -DROP_NO_ROUTE;
	answer->ifindex = fib.ifindex;
	answer->mtu = fib.mtu_result;
	/* The next hop may be of the other family (RFC 9229 allows an IPv6 gateway for IPv4). */
	answer->nh_family = fib.family;
	addr_put(answer->next_hop, (__u8 *)fib.ipv6_dst);
	answer->tick = bpf_jiffies64();
	return 0;
}

static __always_inline bool fib_answers(struct __sk_buff *skb, const struct fib_answer *answer,
					const __u8 *src, const __u8 *dst, __u8 tos, __u32 oif)
{
	return answer->tick == bpf_jiffies64() && answer->generation == route_generation(skb) &&
	       addr_equal(answer->dst, dst) && addr_equal(answer->src, src) && answer->tos == tos &&
	       answer->oif == oif;
}

/*
 * Looks up the way from src to dst. oif 0: as a packet that this node makes; otherwise only through that device.
 * Returns 0, NO_DEVICE or a negative drop reason.
 */
static __always_inline int fib_lookup(struct __sk_buff *skb, const __u8 *src, const __u8 *dst,
				      __u8 tos, __u32 oif, struct egress *out)
{
	struct fib_answer *answer = fib_answer_of(src, dst, tos, oif);
	int err;

	if (!answer)
		return -DROP_NO_ROUTE;
	if (!fib_answers(skb, answer, src, dst, tos, oif)) {
		addr_copy(answer->src, src);
		addr_copy(answer->dst, dst);
		answer->tos = tos;
		answer->oif = oif;
		err = fib_ask(skb, answer);
		if (err)
			return err;
	}
	out->ifindex = answer->ifindex;
	out->mtu = answer->mtu;
	out->next_hop.nh_family = answer->nh_family;
	addr_put(out->next_hop.ipv6_nh, answer->next_hop);
	return 0;
}

/*
 * Drops the route that the host chose for a packet which leaves otherwise. A packet that waits for its
 * neighbour is sent by the route it carries, if it has one (Linux, neigh_update), not by the one that it was
 * redirected to; the metadata route that this puts in its place knows no neighbour.
 */
static __always_inline int forget_route(struct __sk_buff *skb)
{
	static const struct bpf_tunnel_key none;

	return bpf_skb_set_tunnel_key(skb, (void *)&none, sizeof(none), 0) ? -DROP_KERNEL_REFUSED
									   : 0;
}

/*
 * bpf_redirect_neigh wants room for a link-layer header in front of the network header, which a packet of an
 * L3-only device does not have.
 */
static __always_inline int ensure_l2(struct __sk_buff *skb)
{
	if (!cfg_l2_len && bpf_skb_change_head(skb, ETH_HLEN, 0))
		return -DROP_KERNEL_REFUSED;
	return 0;
}

/* Sends the packet out; the kernel resolves the neighbour and writes the link-layer header. */
static __always_inline int redirect_to(struct __sk_buff *skb, struct egress *out)
{
	if (ensure_l2(skb))
		return -DROP_KERNEL_REFUSED;
	skb->mark = MARK_OURS;
	return bpf_redirect_neigh(out->ifindex, &out->next_hop, sizeof(out->next_hop), 0);
}

/* Sends the packet back along the link-layer path that the client's last frame took. */
static __always_inline int redirect_by_mac(struct __sk_buff *skb, const struct flow *flow,
					   __u8 family)
{
	struct ethhdr eth;

	if (ensure_l2(skb))
		return -DROP_KERNEL_REFUSED;
	__builtin_memcpy(eth.h_dest, flow->client_mac, ETH_ALEN);
	__builtin_memcpy(eth.h_source, flow->uplink_mac, ETH_ALEN);
	eth.h_proto = ethertype_of(family);
	if (bpf_skb_store_bytes(skb, 0, &eth, sizeof(eth), 0))
		return -DROP_KERNEL_REFUSED;
	skb->mark = MARK_OURS;
	return bpf_redirect(flow->uplink, 0);
}
