/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Choosing an endpoint: policy is in user space, which puts only eligible endpoints into a front's
 * generation and draws its ring; here a keyed hash of the client picks a slot.
 */
#pragma once

#include "config.h"
#include "drop.h"
#include "maps.h"
#include "pkt.h"

/* RFC 6335, section 6: the dynamic ports, from which the tunnel's source port is taken. */
#define DYNAMIC_PORTS 0xc000

static __always_inline __u64 rotate(__u64 x, int by)
{
	return x << by | x >> (64 - by);
}

static __always_inline void sip_round(__u64 *v)
{
	v[0] += v[1];
	v[1] = rotate(v[1], 13) ^ v[0];
	v[0] = rotate(v[0], 32);
	v[2] += v[3];
	v[3] = rotate(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotate(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotate(v[1], 17) ^ v[2];
	v[2] = rotate(v[2], 32);
}

/* SipHash-2-4 (Aumasson and Bernstein, 2012) of three words, as of a message of 24 bytes. */
__noinline __u64 siphash(const struct config *cfg, __u64 a, __u64 b, __u64 c)
{
	__u64 words[4] = { a, b, c, 24ULL << 56 };
	__u64 v[4], k0, k1;

	if (!cfg)
		return 0;
	k0 = ((const __u64 *)cfg->seed)[0];
	k1 = ((const __u64 *)cfg->seed)[1];
	v[0] = k0 ^ 0x736f6d6570736575ULL;
	v[1] = k1 ^ 0x646f72616e646f6dULL;
	v[2] = k0 ^ 0x6c7967656e657261ULL;
	v[3] = k1 ^ 0x7465646279746573ULL;
#pragma unroll
	for (int i = 0; i < 4; i++) {
		v[3] ^= words[i];
		sip_round(v);
		sip_round(v);
		v[0] ^= words[i];
	}
	v[2] ^= 0xff;
	sip_round(v);
	sip_round(v);
	sip_round(v);
	sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* The hash of a client's address and, without affinity, of its port and of the front's port and protocol. */
static __always_inline __u64 flow_hash(const struct config *cfg, const struct flow_key *key,
				       bool client_only)
{
	const __u64 *addr = (const __u64 *)key->src;
	__u64 ports = 0;

	if (!client_only)
		ports = (__u64)bpf_ntohs(key->sport_be) << 32 |
			(__u64)bpf_ntohs(key->dport_be) << 16 | key->proto;
	return siphash(cfg, addr[0], addr[1], ports);
}

/* Spreads the flows of one pair of nodes over RSS queues and ECMP paths. */
static __always_inline __be16 tunnel_source_port(__u64 hash, const struct flow_key *key)
{
	__u32 mixed = ((__u32)hash ^ key->sport_be) * 0x9e3779b1u;

	return bpf_htons(DYNAMIC_PORTS | mixed >> 18);
}

/* Gives a new flow's row its endpoint. */
static __always_inline void take_endpoint(struct flow *row, const struct endpoint *endpoint)
{
	addr_copy(row->nat_addr, endpoint->addr);
	addr_copy(row->peer, endpoint->peer);
	row->nat_port_be = endpoint->port_be;
}

/* Gives a new flow the endpoint that the ring names. Returns 0 or a negative drop reason. */
__noinline int ring_endpoint(const struct front_meta *front, __u64 hash, struct flow *row)
{
	const struct endpoint *endpoint;
	struct endpoint_key key = {};
	struct ring_block *block;
	struct ring_key at = {};
	__u32 slot;

	if (!front || !row || !front->count)
		return -DROP_NO_ENDPOINT;
	key.front_id = at.front_id = front->id;
	key.generation = at.generation = front->generation;
	if (front->ring_size) {
		slot = hash % front->ring_size;
		at.block = slot / RING_BLOCK;
		block = bpf_map_lookup_elem(&FRONT_RING, &at);
		if (!block)
			return -DROP_FRONT_INCOMPLETE;
		key.index = block->index[slot % RING_BLOCK];
	}
	endpoint = bpf_map_lookup_elem(&FRONT_ENDPOINTS, &key);
	if (!endpoint)
		return -DROP_FRONT_INCOMPLETE;
	take_endpoint(row, endpoint);
	return 0;
}

struct endpoint_scan {
	struct endpoint_key key;
	const struct affinity *wanted;
	__u32 found;
};

static long scan_endpoint(__u64 i, struct endpoint_scan *scan)
{
	struct endpoint *have;

	scan->key.index = i;
	have = bpf_map_lookup_elem(&FRONT_ENDPOINTS, &scan->key);
	if (have && addr_equal(have->addr, scan->wanted->endpoint.addr) &&
	    have->port_be == scan->wanted->endpoint.port_be)
		scan->found = 1;
	return scan->found;
}

/* Whether a remembered endpoint still serves the front: looked for once in each endpoint set. */
static __always_inline bool affinity_serves(const struct front_meta *front, struct affinity *row)
{
	struct endpoint_scan scan = {
		.key = { .front_id = front->id, .generation = front->generation },
		.wanted = row,
	};

	if (row->generation == front->generation)
		return true;
	bpf_loop(front->count, scan_endpoint, &scan, 0);
	if (scan.found)
		row->generation = front->generation;
	return scan.found;
}

/*
 * Gives a new flow the endpoint that its client had within the front's timeout, as long as that serves. False:
 * there is none.
 */
__noinline bool affinity_endpoint(const struct front_meta *front, const struct flow_key *key,
				  struct flow *flow)
{
	struct affinity_key client = {};
	struct affinity *row;

	if (!front || !key || !flow)
		return false;
	client.front_id = front->id;
	addr_copy(client.client, key->src);
	row = bpf_map_lookup_elem(&AFFINITY, &client);
	if (!row || flow->last_seen - row->last_seen >= front->affinity_timeout ||
	    !affinity_serves(front, row))
		return false;
	row->last_seen = flow->last_seen;
	take_endpoint(flow, &row->endpoint);
	return true;
}

/* Keeps a new flow's endpoint for its client. */
__noinline int affinity_remember(const struct front_meta *front, const struct flow_key *key,
				 const struct flow *flow)
{
	struct affinity_key client = {};
	struct affinity made = {};

	if (!front || !key || !flow)
		return 0;
	client.front_id = front->id;
	addr_copy(client.client, key->src);
	addr_put(made.endpoint.addr, flow->nat_addr);
	addr_put(made.endpoint.peer, flow->peer);
	made.endpoint.port_be = flow->nat_port_be;
	made.generation = front->generation;
	made.last_seen = flow->last_seen;
	bpf_map_update_elem(&AFFINITY, &client, &made, BPF_ANY);
	return 0;
}

/*
 * Finds the endpoint for a new flow, whose row knows the time: with affinity the one that the client had, else
 * the ring's. Returns 0, or a negative drop reason.
 */
static __always_inline int select_endpoint(const struct front_meta *front,
					   const struct flow_key *key, __u64 hash, struct flow *row)
{
	bool affine = front->flags & FRONT_CLIENT_IP_AFFINITY && front->count > 1;
	int err;

	if (affine && affinity_endpoint(front, key, row))
		return 0;
	err = ring_endpoint(front, hash, row);
	if (!err && affine)
		affinity_remember(front, key, row);
	return err;
}

/* Whether a front takes this client. */
static __always_inline bool source_allowed(const struct front_meta *front, const __u8 *client)
{
	struct source_key key = { .prefixlen = 8 * (sizeof(key) - sizeof(key.prefixlen)) };

	if (!(front->flags & FRONT_SOURCES_LIMITED))
		return true;
	key.front_id = addr_is_v4(client) ? front->id : front->id | SOURCE_V6;
	addr_put(key.addr, client);
	return bpf_map_lookup_elem(&FRONT_SOURCES, &key);
}
