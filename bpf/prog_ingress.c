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
	struct way way = { .forward = 1 };
	int err;

	if (addr_is_zero(row->peer)) {
		addr_copy(to.addr, row->nat_addr);
		return taken(rewrite(skb, p, &to));
	}
	err = tunnel_way(skb, cfg, p, row, &way);
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
	struct socket_key name = { .port_be = key->dport_be, .proto = key->proto };

	addr_copy(name.addr, key->dst);
	return bpf_map_lookup_elem(&FRONT_META, &name);
}

/*
 * Checks a FORWARD row against what was changed since it was last checked: the front's source ranges, and the
 * peer. Returns 0, or a negative drop reason; a client that may come no more loses the flow.
 */
static __noinline int check_flow(struct flow_key *key, struct flow *row, bool pending, __u32 epoch)
{
	const struct front_meta *front = front_of(key);

	if (front && !source_allowed(front, key->src)) {
		flow_drop(key, row, pending);
		return -DROP_SOURCE_DENIED;
	}
	if (!addr_is_zero(row->peer) && !peer_allowed(row->peer))
		return -DROP_UNKNOWN_PEER;
	row->epoch = epoch;
	return 0;
}

/* A client's packet whose flow has a row. */
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
	return to_endpoint(skb, cfg, p, flow->row);
}

/*
 * Makes the rows for a client's first packet, or for the first after they were lost. Returns 0 or a negative
 * drop reason.
 */
static __noinline int new_flow(struct __sk_buff *skb, const struct config *cfg, struct pkt *p,
			       const struct front_meta *front)
{
	__u64 hash = flow_hash(cfg, &p->key, front->flags & FRONT_CLIENT_IP_AFFINITY);
	struct flow row = { .epoch = current_epoch(cfg) };
	struct endpoint endpoint;
	int err;

	if (!source_allowed(front, p->key.src))
		return -DROP_SOURCE_DENIED;
	err = select_endpoint(front, &p->key, hash, &endpoint);
	if (err)
		return err;
	addr_copy(row.nat_addr, endpoint.addr);
	addr_copy(row.peer, endpoint.peer);
	row.nat_port_be = endpoint.port_be;
	row.front_id = front->id;
	row.last_seen = now_seconds();
	row.client_port_be = p->key.sport_be;
	row.tunnel_port_be = tunnel_source_port(hash, &p->key);
	remember_way(skb, &row);
	if (addr_is_zero(row.peer))
		return flow_claim(&p->key, &row, hash);
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

static __noinline int client_ingress(struct __sk_buff *skb, const struct config *cfg, struct pkt *p)
{
	struct flow_ref flow = {};
	struct front_meta *front;
	int err;

	if (!fragment_ports(p))
		return PASS;
	p->key.kind = FLOW_FORWARD;
	flow.row = flow_lookup(&p->key, false);
	if (flow.row && !flow_reopens(flow.row, p))
		return known_flow(skb, cfg, p, &flow);
	front = front_of(&p->key);
	if (!front)
		return PASS;
	if (!flow.row) {
		flow.row = flow_lookup(&p->key, true);
		flow.pending = true;
		if (flow.row && !flow_reopens(flow.row, p))
			return known_flow(skb, cfg, p, &flow);
	}
	if (flow.row)
		flow_drop(&p->key, flow.row, flow.pending);
	err = new_flow(skb, cfg, p, front);
	if (err == -DROP_NO_ENDPOINT)
		return no_endpoint(skb, p);
	if (err)
		return err;
	count_traffic(skb, TRAFFIC_NEW, 1);
	flow = flow_find(&p->key);
	if (!flow.row)
		return -DROP_FLOW_INSERT;
	if (flow.row->client_port_be != p->key.sport_be)
		count_traffic(skb, TRAFFIC_REMAPPED, 1);
	fragment_remember(p);
	return to_endpoint(skb, cfg, p, flow.row);
}

/* An ICMP error from the client's side, about what a front sent: it goes where that came from. */
static __noinline int client_error(struct __sk_buff *skb, const struct config *cfg, struct pkt *p)
{
	struct way way = { .forward = 1 };
	struct pkt quote = {};
	struct flow_ref flow;
	struct flow_key key;
	int err;

	if (!quote_of(skb, p, &quote))
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

/* Takes a forwarded packet out of its tunnel, for the endpoint here that it names. */
static __noinline int deliver_here(struct __sk_buff *skb, const struct pkt *outer,
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
static __noinline int forward_tunnel(struct __sk_buff *skb, const struct config *cfg,
				     struct pkt *outer, struct received *r)
{
	struct pkt *p = &r->inner;
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
static __noinline int forward_error(struct __sk_buff *skb, const struct config *cfg,
				    struct pkt *outer, struct received *r)
{
	__u32 epoch = current_epoch(cfg);
	struct pkt *p = &r->inner, quote = {};
	struct flow_ref flow;
	struct flow_key key;
	int err;

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
static __noinline bool forward_key(struct __sk_buff *skb, const struct pkt *p, struct flow_key *key)
{
	struct pkt quote = {};

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
static __noinline int check_return(const struct config *cfg, const struct pkt *outer,
				   const struct pkt *p, struct flow_key *key, struct flow_ref *flow)
{
	__u32 epoch = current_epoch(cfg);

	*flow = flow_find(key);
	if (!flow->row) {
		if (!peer_allowed(outer->key.src))
			return -DROP_UNKNOWN_PEER;
		return front_of(key) ? 0 : -DROP_NO_FLOW;
	}
	if (!addr_equal(flow->row->peer, outer->key.src))
		return -DROP_WRONG_PEER;
	if (flow->row->epoch != epoch)
		return check_flow(key, flow->row, flow->pending, epoch);
	return 0;
}

/* An endpoint's answer that another node sends back to a flow that entered here. */
static __noinline int return_tunnel(struct __sk_buff *skb, const struct config *cfg,
				    struct pkt *outer, struct received *r)
{
	struct pkt *p = &r->inner;
	struct flow_ref flow = {};
	struct way way = {};
	struct flow_key key;
	int err;

	if (!forward_key(skb, p, &key))
		return -DROP_TUNNEL_INNER;
	err = check_return(cfg, outer, p, &key, &flow);
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
