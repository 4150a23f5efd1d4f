/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tcx ingress of an uplink: what clients send to a front, and what peers send through the tunnel. Anything
 * else goes on unchanged.
 */
#include "lib/client.h"
#include "lib/csum.h"
#include "lib/drop.h"
#include "lib/flow.h"
#include "lib/parse.h"
#include "lib/tunnel.h"

/* The checks of decapsulation that need maps. Returns 0 or a negative drop reason. */
static __always_inline int check_target(const struct pkt *outer, const struct received *r)
{
	if (!peer_allowed(outer->key.src))
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

__noinline int new_backend_flow(struct __sk_buff *skb, const struct config *cfg,
				const struct pkt *outer, struct received *r)
{
	struct flow row = { .flags = FLOW_TUNNELLED };
	int err;

	if (!cfg || !outer || !r)
		return -DROP_FLOW_INSERT;
	row.epoch = current_epoch(cfg);
	err = check_target(outer, r);
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
__noinline int clamp_unwrapped_syn(struct __sk_buff *skb, const struct pkt *outer,
				   const struct pkt *p, bool data_forward)
{
	struct egress back;

	if (!outer || !p || fib_lookup(skb, outer->key.dst, outer->key.src, 0, 0, &back))
		return 0;
	return clamp_syn(skb, p, back.mtu, outer->family == AF_INET, data_forward);
}

static __always_inline int clamp_unwrapped(struct __sk_buff *skb, const struct pkt *outer,
					   const struct pkt *p, bool data_forward)
{
	return p->tcp_flags & TCP_SYN ? clamp_unwrapped_syn(skb, outer, p, data_forward) : 0;
}

/* Takes a forwarded packet out of its tunnel, for the endpoint here that it names. */
static __always_inline int deliver_here(struct __sk_buff *skb, const struct pkt *outer,
					struct received *r, __be16 client_port_be)
{
	struct rewrite to = { .sport_be = client_port_be, .dport_be = r->target.port_be };
	int err = tunnel_unwrap(skb, r);

	if (err)
		return err;
	err = clamp_unwrapped(skb, outer, &r->inner, false);
	if (err)
		return err;
	addr_copy(to.addr, r->target.addr);
	return taken(rewrite(skb, &r->inner, &to));
}

/* A client's packet that another node forwarded to an endpoint here. */
__noinline int forward_tunnel(struct __sk_buff *skb, const struct config *cfg, struct pkt *outer,
			      struct received *r)
{
	struct flow_ref flow;
	struct pkt *p;
	__u32 epoch;
	int err;

	if (!cfg || !outer || !r)
		return -DROP_NO_FLOW;
	epoch = current_epoch(cfg);
	p = &r->inner;
	flow_key_kind(&p->key, FLOW_BACKEND);
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
		flow_client_packet(&p->key, &flow, p);
	} else {
		err = new_backend_flow(skb, cfg, outer, r);
		if (err)
			return err;
		count_traffic(skb, TRAFFIC_NEW_HERE, 1);
		flow = flow_find(&p->key);
		if (flow.row && flow.row->client_port_be != p->key.sport_be)
			count_traffic(skb, TRAFFIC_REMAPPED, 1);
	}
	if (!flow.row)
		return -DROP_FLOW_INSERT;
	fragment_remember(p);
	return deliver_here(skb, outer, r, flow.row->client_port_be);
}

/* An ICMP error that another node forwarded: from the client's side, about what an endpoint here sent. */
__noinline int forward_error(struct __sk_buff *skb, const struct config *cfg, struct pkt *outer,
			     struct received *r)
{
	struct pkt *p, quote = {};
	struct flow_ref flow;
	struct flow_key key;
	__u32 epoch;
	int err;

	if (!cfg || !outer || !r)
		return -DROP_NO_FLOW;
	epoch = current_epoch(cfg);
	p = &r->inner;
	if (!quote_of(skb, p, &quote))
		return -DROP_TUNNEL_INNER;
	answer_key(&quote, FLOW_BACKEND, &key);
	r->target.proto = quote.key.proto;
	flow = flow_find(&key);
	if (!flow.row || flow.row->epoch != epoch || !row_serves(flow.row, outer, r)) {
		err = check_target(outer, r);
		if (err)
			return err;
		if (!flow.row || !row_serves(flow.row, outer, r))
			return -DROP_NO_FLOW;
	}
	err = tunnel_unwrap(skb, r);
	if (err)
		return err;
	quote.l3_off -= r->outer_len;
	quote.l4_off -= r->outer_len;
	return taken(error_to_endpoint(skb, p, &quote, flow.row));
}

/* The key of the FORWARD row that a packet from an endpoint, or an error about the client's, belongs to. */
__noinline bool forward_key(struct __sk_buff *skb, const struct pkt *p, struct flow_key *key)
{
	struct pkt quote = {};

	if (!p || !key)
		return false;
	if (!is_icmp_error(p)) {
		answer_key(p, FLOW_FORWARD, key);
		return true;
	}
	if (!quote_of(skb, p, &quote))
		return false;
	__builtin_memcpy(key, &quote.key, sizeof(*key));
	key->kind = FLOW_FORWARD;
	return true;
}

/* Whether a return may pass, by its flow or, where the row is gone, by the front that it comes from. */
__noinline int check_return(const struct pkt *outer, struct flow_key *key, struct flow *row,
			    bool pending, __u32 epoch)
{
	if (!outer || !key)
		return -DROP_NO_FLOW;
	if (!row) {
		if (!peer_allowed(outer->key.src))
			return -DROP_UNKNOWN_PEER;
		return front_of(key) ? 0 : -DROP_NO_FLOW;
	}
	if (!addr_equal(row->peer, outer->key.src))
		return -DROP_WRONG_PEER;
	return row->epoch == epoch ? 0 : check_flow(key, row, pending, epoch);
}

/* An endpoint's answer that another node sends back to a flow that entered here. */
__noinline int return_tunnel(struct __sk_buff *skb, const struct config *cfg, struct pkt *outer,
			     struct received *r)
{
	struct flow_ref flow = {};
	struct flow_key key = {};
	struct way way = {};
	struct pkt *p;
	__u32 epoch;
	int err;

	if (!cfg || !outer || !r)
		return -DROP_NO_FLOW;
	epoch = current_epoch(cfg);
	p = &r->inner;
	if (!forward_key(skb, p, &key))
		return -DROP_TUNNEL_INNER;
	flow = flow_find(&key);
	err = check_return(outer, &key, flow.row, flow.pending, epoch);
	if (err)
		return err;
	if (flow.row && p->key.proto == key.proto) {
		flow_touch(&key, &flow);
		flow_endpoint_packet(&key, &flow, p);
	}
	fragment_remember(p);
	err = tunnel_unwrap(skb, r);
	if (err)
		return err;
	err = clamp_unwrapped(skb, outer, p, true);
	if (err)
		return err;
	err = client_way(skb, &key, flow.row, p->tos, &way);
	if (err)
		return err;
	if (wire_len(skb, p) > way.limit) {
		struct refusal too_big = { way.limit, DROP_TOO_BIG, ANSWER_AGAIN, DIR_INGRESS };

		return oversize(skb, p, &too_big, way.out.ifindex);
	}
	return client_push(skb, p, flow.row, &way);
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
	if (r.type == OPTION_RETURN)
		return return_tunnel(skb, cfg, p, &r);
	if (is_icmp_error(&r.inner))
		return forward_error(skb, cfg, p, &r);
	return forward_tunnel(skb, cfg, p, &r);
}

SEC("tcx/ingress")
int beep_ingress(struct __sk_buff *skb)
{
	struct config *cfg = config_row();
	enum traffic from = TRAFFIC_CLIENT;
	struct pkt p = {};
	int step;

	/* A tagged packet belongs to a VLAN device above, which is an uplink of its own. */
	if (!cfg || skb->vlan_present || !parse_ip(skb, cfg_l2_len, skb->protocol, &p))
		return TCX_NEXT;
	if (is_tunnel(cfg, &p)) {
		step = tunnel_ingress(skb, cfg, &p);
		from = TRAFFIC_PEER;
	} else if (p.key.proto == IPPROTO_TCP || p.key.proto == IPPROTO_UDP) {
		step = client_ingress(skb, cfg, &p);
	} else if (is_icmp_error(&p)) {
		step = client_error(skb, cfg, &p);
	} else {
		step = PASS;
	}
	return verdict(skb, step, DIR_INGRESS, from);
}
