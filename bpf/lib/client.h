/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What clients send to a front: the flow that it belongs to or begins, and its way to the flow's endpoint, here or
 * through the tunnel.
 */
#pragma once

#include "csum.h"
#include "drop.h"
#include "flow.h"
#include "parse.h"
#include "select.h"
#include "tunnel.h"

/*
 * Notes the device and the link-layer addresses by which the client's frame came in, the way back to it.
 * Returns whether they changed.
 */
static __always_inline bool remember_way(struct __sk_buff *skb, struct flow *row)
{
	bool moved = row->uplink != skb->ifindex;
	struct ethhdr *eth;

	if (moved)
		row->uplink = skb->ifindex;
	if (!cfg_l2_len)
		return moved;
	eth = header(skb, 0, sizeof(*eth));
	if (!eth)
		return moved;
	if (__builtin_memcmp(row->client_mac, eth->h_source, ETH_ALEN) ||
	    __builtin_memcmp(row->uplink_mac, eth->h_dest, ETH_ALEN)) {
		__builtin_memcpy(row->client_mac, eth->h_source, ETH_ALEN);
		__builtin_memcpy(row->uplink_mac, eth->h_dest, ETH_ALEN);
		moved = true;
	}
	return moved;
}

/* Sends a client's packet to its flow's endpoint: up the stack, or to the node that has it. */
static __always_inline int stream_to_endpoint(struct __sk_buff *skb, const struct config *cfg,
					      struct pkt *p, struct flow *row)
{
	struct rewrite to = { .sport_be = row->client_port_be, .dport_be = row->nat_port_be };
	struct way way = { .forward = 1 };
	int err;

	if (addr_is_zero(row->peer)) {
		addr_copy(to.addr, row->nat_addr);
		return taken(rewrite(skb, p, &to));
	}
	err = stream_way(skb, cfg, p, row, &way);
	if (err)
		return err;
	if (wire_len(skb, p) > way.limit) {
		struct refusal too_big = { way.limit, DROP_TOO_BIG, ANSWER_OUT, DIR_INGRESS };

		return oversize(skb, p, &too_big, skb->ifindex);
	}
	if (must_split(skb, p))
		return send_segments(skb, p, skb->ifindex);
	return tunnel_push(skb, cfg, p, row, &way);
}

/* stream_to_endpoint, called: for packets that are few. */
__noinline int to_endpoint(struct __sk_buff *skb, const struct config *cfg, struct pkt *p,
			   struct flow *row)
{
	if (!cfg || !p || !row)
		return -DROP_FLOW_INSERT;
	return stream_to_endpoint(skb, cfg, p, row);
}

/*
 * The epoch that a check gets stamped with: read before the maps are asked, so that a row which goes
 * meanwhile leaves the flow with the old one.
 */
static __always_inline __u32 current_epoch(const struct config *cfg)
{
	return *(const volatile __u32 *)&cfg->epoch;
}

static __always_inline bool peer_allowed(const __u8 *addr)
{
	struct node_key key;

	addr_copy(key.addr, addr);
	return bpf_map_lookup_elem(&NODE_ALLOW, &key);
}

static __always_inline struct front_meta *front_of(const struct flow_key *key)
{
	struct socket_key __attribute__((aligned(8))) name = { .port_be = key->dport_be,
							       .proto = key->proto };

	addr_copy(name.addr, key->dst);
	return bpf_map_lookup_elem(&FRONT_META, &name);
}

/*
 * Checks a FORWARD row against what was changed since it was last checked: the front's source ranges, and the
 * peer. Returns 0, or a negative drop reason; a client that may come no more loses the flow.
 */
__noinline int check_flow(struct flow_key *key, struct flow *row, bool pending, __u32 epoch)
{
	const struct front_meta *front;

	if (!key || !row)
		return -DROP_NO_FLOW;
	front = front_of(key);
	if (front && !source_allowed(front, key->src)) {
		flow_drop(key, row, pending);
		return -DROP_SOURCE_DENIED;
	}
	if (!addr_is_zero(row->peer) && !peer_allowed(row->peer))
		return -DROP_UNKNOWN_PEER;
	row->epoch = epoch;
	return 0;
}

/* A client's packet whose flow has a row, which it leaves in flow. Returns 0 or a negative drop reason. */
static __always_inline int known_flow(struct __sk_buff *skb, const struct config *cfg,
				      struct pkt *p, struct flow_ref *flow)
{
	__u32 epoch = current_epoch(cfg);
	int err;

	if (flow->row->epoch != epoch) {
		err = check_flow(&p->key, flow->row, flow->pending, epoch);
		if (err)
			return err;
	}
	flow_touch(&p->key, flow);
	if (remember_way(skb, flow->row))
		flow_moved(&p->key, flow->row, flow->pending);
	flow_client_packet(&p->key, flow, p);
	if (!flow->row)
		return -DROP_FLOW_INSERT;
	fragment_remember(p);
	return 0;
}

/*
 * Makes the rows for a client's first packet, or for the first after they were lost. Returns 0 or a negative
 * drop reason.
 */
static __always_inline int new_flow(struct __sk_buff *skb, const struct config *cfg, struct pkt *p,
				    const struct front_meta *front)
{
	struct flow row = {};
	__u64 hash;
	int err;

	row.epoch = current_epoch(cfg);
	hash = flow_hash(cfg, &p->key, front->flags & FRONT_CLIENT_IP_AFFINITY);
	if (!source_allowed(front, p->key.src))
		return -DROP_SOURCE_DENIED;
	row.last_seen = now_seconds();
	err = select_endpoint(front, &p->key, hash, &row);
	if (err)
		return err;
	row.front_id = front->id;
	row.client_port_be = p->key.sport_be;
	row.tunnel_port_be = tunnel_source_port(hash, &p->key);
	remember_way(skb, &row);
	if (addr_is_zero(row.peer)) {
		err = flow_claim(&p->key, &row, hash);
		if (!err && row.client_port_be != p->key.sport_be)
			count_traffic(skb, TRAFFIC_REMAPPED, 1);
		return err;
	}
	if (!peer_allowed(row.peer))
		return -DROP_UNKNOWN_PEER;
	return flow_insert(&p->key, &row, true, BPF_ANY) ? -DROP_FLOW_INSERT : 0;
}

/* A new flow that finds no endpoint: dropped, or answered where the operator asked for that. */
static __always_inline int no_endpoint(struct __sk_buff *skb, struct pkt *p)
{
	struct refusal unreachable = { 0, DROP_NO_ENDPOINT, ANSWER_OUT, DIR_INGRESS };

	if (!cfg_reject || p->tcp_flags & TCP_RST)
		return -DROP_NO_ENDPOINT;
	return refuse(skb, p, &unreachable);
}

/*
 * Makes the row of a client's packet to a front whose flow is new or begins anew; closed is the row that it has then,
 * else NULL. Returns 0 or a negative drop reason.
 */
__noinline int begin_flow(struct __sk_buff *skb, struct pkt *p, const struct front_meta *front,
			  struct flow *closed, bool pending)
{
	struct config *cfg = config_row();
	int err;

	if (!cfg || !p || !front)
		return -DROP_FLOW_INSERT;
	if (closed)
		flow_drop(&p->key, closed, pending);
	err = new_flow(skb, cfg, p, front);
	if (err)
		return err;
	count_traffic(skb, TRAFFIC_NEW, 1);
	fragment_remember(p);
	return 0;
}

__noinline int client_ingress(struct __sk_buff *skb, const struct config *cfg, struct pkt *p)
{
	struct flow_ref flow = {};
	struct front_meta *front;
	int err;

	if (!cfg || !p || !fragment_ports(p))
		return PASS;
	flow_key_kind(&p->key, FLOW_FORWARD);
	flow.row = flow_lookup(&p->key, false);
	if (flow.row && !flow_reopens(flow.row, p)) {
		err = known_flow(skb, cfg, p, &flow);
		return err ? err : stream_to_endpoint(skb, cfg, p, flow.row);
	}
	front = front_of(&p->key);
	if (!front)
		return PASS;
	if (!flow.row) {
		flow.row = flow_lookup(&p->key, true);
		flow.pending = true;
		if (flow.row && !flow_reopens(flow.row, p)) {
			err = known_flow(skb, cfg, p, &flow);
			return err ? err : to_endpoint(skb, cfg, p, flow.row);
		}
	}
	err = begin_flow(skb, p, front, flow.row, flow.pending);
	if (err == -DROP_NO_ENDPOINT)
		return no_endpoint(skb, p);
	if (err)
		return err;
	flow = flow_find(&p->key);
	return flow.row ? to_endpoint(skb, cfg, p, flow.row) : -DROP_FLOW_INSERT;
}

/* An ICMP error from the client's side, about what a front sent: it goes where that came from. */
__noinline int client_error(struct __sk_buff *skb, const struct config *cfg, struct pkt *p)
{
	struct way way = { .forward = 1 };
	struct pkt quote = {};
	struct flow_ref flow;
	struct flow_key key;
	int err;

	if (!cfg || !p || !quote_of(skb, p, &quote))
		return PASS;
	answer_key(&quote, FLOW_FORWARD, &key);
	flow = flow_find(&key);
	if (!flow.row)
		return PASS;
	if (addr_is_zero(flow.row->peer))
		return taken(error_to_endpoint(skb, p, &quote, flow.row));
	err = tunnel_way(skb, cfg, p, flow.row, &way);
	if (err)
		return err;
	/* There is no error about an error. */
	if (wire_len(skb, p) > way.limit)
		return -DROP_TOO_BIG;
	return tunnel_push(skb, cfg, p, flow.row, &way);
}
