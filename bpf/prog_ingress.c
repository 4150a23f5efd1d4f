/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tcx ingress of an uplink: what clients send to a front, and what peers send through the tunnel. Anything
 * else goes on unchanged.
 */
#include "lib/csum.h"
#include "lib/drop.h"
#include "lib/flow.h"
#include "lib/parse.h"
#include "lib/select.h"
#include "lib/tunnel.h"

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
static __always_inline int to_endpoint(struct __sk_buff *skb, const struct config *cfg,
				       struct pkt *p, struct flow *row)
{
	struct rewrite to = { .sport_be = row->client_port_be, .dport_be = row->nat_port_be };

	if (!addr_is_zero(row->peer))
		return tunnel_send(skb, cfg, p, row, true);
	addr_copy(to.addr, row->nat_addr);
	return rewrite(skb, p, &to);
}

/* A client's packet whose flow has a row. */
static __always_inline int known_flow(struct __sk_buff *skb, const struct config *cfg,
				      struct pkt *p, struct flow_ref *flow)
{
	flow_touch(&p->key, flow);
	if (remember_way(skb, flow->row))
		flow_moved(&p->key, flow->row, flow->pending);
	flow_client_packet(&p->key, flow, p->tcp_flags);
	return to_endpoint(skb, cfg, p, flow->row);
}

/*
 * Makes the rows for a client's first packet, or for the first after they were lost: the ring names the
 * endpoint. Returns 0 or a negative drop reason.
 */
static __noinline int new_flow(struct __sk_buff *skb, const struct config *cfg, struct pkt *p,
			       const struct front_meta *front)
{
	__u64 hash = flow_hash(cfg, &p->key, front->flags & FRONT_CLIENT_IP_AFFINITY);
	const struct endpoint *endpoint;
	struct flow row = {};
	int err;

	err = select_endpoint(front, hash, &endpoint);
	if (err)
		return err;
	addr_copy(row.nat_addr, endpoint->addr);
	addr_copy(row.peer, endpoint->peer);
	row.nat_port_be = endpoint->port_be;
	row.front_id = front->id;
	row.last_seen = now_seconds();
	/* One behind: the first return asks NODE_ALLOW for the peer. */
	row.epoch = cfg->epoch - 1;
	row.client_port_be = p->key.sport_be;
	row.tunnel_port_be = tunnel_source_port(hash, &p->key);
	remember_way(skb, &row);
	if (addr_is_zero(row.peer))
		return flow_claim(&p->key, &row, hash);
	return flow_insert(&p->key, &row, true, BPF_ANY) ? -DROP_FLOW_INSERT : 0;
}

static __noinline int client_ingress(struct __sk_buff *skb, const struct config *cfg, struct pkt *p)
{
	struct flow_ref flow = {};
	struct socket_key name = {};
	struct front_meta *front;
	int err;

	if (p->fragment == FRAGMENT_LATER)
		return PASS;
	p->key.kind = FLOW_FORWARD;
	flow.row = flow_lookup(&p->key, false);
	if (flow.row && p->fragment == FRAGMENT_NONE && !flow_reopens(flow.row, p))
		return known_flow(skb, cfg, p, &flow);
	addr_copy(name.addr, p->key.dst);
	name.port_be = p->key.dport_be;
	name.proto = p->key.proto;
	front = bpf_map_lookup_elem(&FRONT_META, &name);
	if (!front)
		return PASS;
	if (p->fragment != FRAGMENT_NONE)
		return -DROP_FRAGMENT;
	if (!flow.row) {
		flow.row = flow_lookup(&p->key, true);
		flow.pending = true;
		if (flow.row && !flow_reopens(flow.row, p))
			return known_flow(skb, cfg, p, &flow);
	}
	if (flow.row)
		flow_drop(&p->key, flow.row, flow.pending);
	err = new_flow(skb, cfg, p, front);
	if (err)
		return err;
	flow = flow_find(&p->key);
	return flow.row ? to_endpoint(skb, cfg, p, flow.row) : -DROP_FLOW_INSERT;
}

/*
 * The epoch that a check gets stamped with: read before the maps are asked, so that a row which goes
 * meanwhile leaves the flow with the old one.
 */
static __always_inline __u32 current_epoch(const struct config *cfg)
{
	return *(const volatile __u32 *)&cfg->epoch;
}

static __always_inline bool peer_allowed(const struct pkt *outer)
{
	struct node_key key;

	addr_copy(key.addr, outer->key.src);
	return bpf_map_lookup_elem(&NODE_ALLOW, &key);
}

/* The checks of decapsulation that need maps. Returns 0 or a negative drop reason. */
static __always_inline int check_target(const struct pkt *outer, const struct received *r)
{
	if (!peer_allowed(outer))
		return -DROP_UNKNOWN_PEER;
	if (addr_is_v4(r->target.addr) != (r->inner.family == AF_INET))
		return -DROP_UNKNOWN_TARGET;
	if (!bpf_map_lookup_elem(&POD_TARGETS, &r->target))
		return -DROP_UNKNOWN_TARGET;
	return 0;
}

/* Whether a row is what this forward tunnel asks for; otherwise the ingress node has chosen anew. */
static __always_inline bool row_serves(const struct flow *row, const struct pkt *outer,
				       const struct received *r)
{
	return addr_equal(row->peer, outer->key.src) && addr_equal(row->nat_addr, r->target.addr) &&
	       row->nat_port_be == r->target.port_be;
}

static __noinline int new_backend_flow(struct __sk_buff *skb, const struct config *cfg,
				       const struct pkt *outer, struct received *r)
{
	__u32 epoch = current_epoch(cfg);
	struct flow row = { .flags = FLOW_TUNNELLED, .epoch = epoch };
	int err = check_target(outer, r);

	if (err)
		return err;
	addr_copy(row.nat_addr, r->target.addr);
	addr_copy(row.peer, outer->key.src);
	row.nat_port_be = r->target.port_be;
	row.uplink = skb->ifindex;
	row.last_seen = now_seconds();
	row.tunnel_port_be = outer->key.sport_be;
	return flow_claim(&r->inner.key, &row, bpf_get_prandom_u32());
}

/* Clamps an unwrapped SYN or SYN-ACK by the way back to the peer that it came from. */
static __noinline int clamp_unwrapped(struct __sk_buff *skb, const struct pkt *outer,
				      const struct pkt *p, bool data_forward)
{
	struct egress back;

	if (!(p->tcp_flags & TCP_SYN) ||
	    fib_lookup(skb, outer->key.dst, outer->key.src, 0, 0, &back))
		return 0;
	return clamp_syn(skb, p, back.mtu, outer->family == AF_INET, data_forward);
}

/* A client's packet that another node forwarded to an endpoint here. */
static __noinline int forward_tunnel(struct __sk_buff *skb, const struct config *cfg,
				     struct pkt *outer, struct received *r)
{
	struct pkt *p = &r->inner;
	struct rewrite to = { .dport_be = r->target.port_be };
	__u32 epoch = current_epoch(cfg);
	struct flow_ref flow;
	int err;

	p->key.kind = FLOW_BACKEND;
	flow = flow_find(&p->key);
	if (flow.row && (flow_reopens(flow.row, p) || !row_serves(flow.row, outer, r))) {
		/* Only a peer may replace a flow. */
		err = check_target(outer, r);
		if (err)
			return err;
		flow_drop(&p->key, flow.row, flow.pending);
		flow.row = NULL;
	}
	if (flow.row) {
		if (flow.row->epoch != epoch) {
			err = check_target(outer, r);
			if (err)
				return err;
			flow.row->epoch = epoch;
		}
		flow_touch(&p->key, &flow);
		flow_client_packet(&p->key, &flow, p->tcp_flags);
	} else {
		err = new_backend_flow(skb, cfg, outer, r);
		if (err)
			return err;
		flow = flow_find(&p->key);
		if (!flow.row)
			return -DROP_FLOW_INSERT;
	}
	to.sport_be = flow.row->client_port_be;
	err = tunnel_unwrap(skb, r);
	if (err)
		return err;
	err = clamp_unwrapped(skb, outer, p, false);
	if (err)
		return err;
	addr_copy(to.addr, r->target.addr);
	return rewrite(skb, p, &to);
}

/* An endpoint's answer that another node sends back to a flow that entered here. */
static __noinline int return_tunnel(struct __sk_buff *skb, const struct config *cfg,
				    struct pkt *outer, struct received *r)
{
	struct pkt *p = &r->inner;
	__u32 epoch = current_epoch(cfg);
	struct flow_key key = {};
	struct flow_ref flow;
	int err;

	addr_copy(key.src, p->key.dst);
	addr_copy(key.dst, p->key.src);
	key.sport_be = p->key.dport_be;
	key.dport_be = p->key.sport_be;
	key.proto = p->key.proto;
	key.kind = FLOW_FORWARD;
	flow = flow_find(&key);
	if (flow.row) {
		if (!addr_equal(flow.row->peer, outer->key.src))
			return -DROP_WRONG_PEER;
		if (flow.row->epoch != epoch) {
			if (!peer_allowed(outer))
				return -DROP_UNKNOWN_PEER;
			flow.row->epoch = epoch;
		}
		flow_touch(&key, &flow);
		flow_endpoint_packet(&key, &flow, p->tcp_flags);
	} else {
		struct socket_key name = {};

		if (!peer_allowed(outer))
			return -DROP_UNKNOWN_PEER;
		addr_copy(name.addr, p->key.src);
		name.port_be = p->key.sport_be;
		name.proto = p->key.proto;
		if (!bpf_map_lookup_elem(&FRONT_META, &name))
			return -DROP_NO_FLOW;
	}
	err = tunnel_unwrap(skb, r);
	if (err)
		return err;
	err = clamp_unwrapped(skb, outer, p, true);
	if (err)
		return err;
	return to_client(skb, p, flow.row);
}

/* Whether a packet is UDP to the tunnel's port on this node's end of the tunnel. */
static __always_inline bool is_tunnel(const struct config *cfg, const struct pkt *p)
{
	return p->key.proto == IPPROTO_UDP && p->fragment == FRAGMENT_NONE &&
	       p->key.dport_be == bpf_htons(cfg_geneve_port) &&
	       addr_equal(p->key.dst, p->family == AF_INET ? cfg->underlay_v4 : cfg->underlay_v6);
}

static __noinline int tunnel_ingress(struct __sk_buff *skb, const struct config *cfg, struct pkt *p)
{
	struct received r = {};
	int step = tunnel_read(skb, p, &r);

	if (step <= 0)
		return step;
	if (r.type == OPTION_FORWARD)
		return forward_tunnel(skb, cfg, p, &r);
	return return_tunnel(skb, cfg, p, &r);
}

SEC("tcx/ingress")
int beep_ingress(struct __sk_buff *skb)
{
	struct config *cfg = config_row();
	struct pkt p = {};
	int step;

	/* A tagged packet belongs to a VLAN device above, which is an uplink of its own. */
	if (!cfg || skb->vlan_present || !parse_ip(skb, cfg_l2_len, skb->protocol, &p))
		return TCX_NEXT;
	if (p.key.proto != IPPROTO_TCP && p.key.proto != IPPROTO_UDP)
		return TCX_NEXT;
	if (is_tunnel(cfg, &p))
		step = tunnel_ingress(skb, cfg, &p);
	else
		step = client_ingress(skb, cfg, &p);
	return verdict(skb, step, DIR_INGRESS);
}
