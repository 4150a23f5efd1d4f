/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tcx egress of an uplink: what endpoints on this node answer. The answer gets the front's address back and
 * leaves by the node, and by the uplink, that the client dialled.
 */
#include "lib/csum.h"
#include "lib/drop.h"
#include "lib/flow.h"
#include "lib/parse.h"
#include "lib/tunnel.h"

/*
 * Our tunnel format in a packet that no program of ours made: a pod's own, which masquerading would have
 * given this node's address and so a peer's trust.
 */
static __always_inline bool is_forged_tunnel(struct __sk_buff *skb, struct pkt *p)
{
	struct tunnel *t;

	if (p->key.proto != IPPROTO_UDP || p->fragment == FRAGMENT_LATER ||
	    p->key.dport_be != bpf_htons(cfg_geneve_port))
		return false;
	t = transport_header(skb, p, RETURN_LEN);
	return t && tunnel_is_ours(t);
}

/* Finds the way of an answer that must leave otherwise than the host has it: a flow's peer, or its uplink. */
static __always_inline int answer_way(struct __sk_buff *skb, const struct config *cfg,
				      const struct pkt *p, const struct flow *row, struct way *way)
{
	struct flow_key key = {};

	if (row->flags & FLOW_TUNNELLED)
		return tunnel_way(skb, cfg, p, row, way);
	addr_copy(key.src, p->key.dst);
	addr_copy(key.dst, row->nat_addr);
	return client_way(skb, &key, row, p->tos, way);
}

static __always_inline int answer_push(struct __sk_buff *skb, const struct config *cfg,
				       const struct pkt *p, const struct flow *row, struct way *way)
{
	if (forget_route(skb))
		return -DROP_KERNEL_REFUSED;
	if (row->flags & FLOW_TUNNELLED)
		return tunnel_push(skb, cfg, p, row, way);
	return client_push(skb, p, row, way);
}

/* Whether the host's own way is the flow's: a local endpoint's answer that leaves by the client's uplink. */
static __always_inline bool host_way(struct __sk_buff *skb, const struct flow *row)
{
	return !(row->flags & FLOW_TUNNELLED) && row->uplink == skb->ifindex;
}

/* Gives an answer the front's address back. */
static __always_inline int translate_answer(struct __sk_buff *skb, const struct pkt *p,
					    const struct flow *row)
{
	struct rewrite to = {
		.sport_be = row->nat_port_be,
		.dport_be = row->client_port_be,
		.source = 1,
	};

	addr_copy(to.addr, row->nat_addr);
	return rewrite(skb, p, &to);
}

/* Sends an answer on by its flow's way where that is not the host's. */
__noinline int answer_elsewhere(struct __sk_buff *skb, const struct config *cfg, struct pkt *p,
				const struct flow *row)
{
	struct way way = {};
	int err;

	if (!cfg || !p || !row)
		return -DROP_NO_FLOW;
	if (row->flags & FLOW_TUNNELLED)
		err = stream_way(skb, cfg, p, row, &way);
	else
		err = answer_way(skb, cfg, p, row, &way);
	if (err)
		return err;
	if (wire_len(skb, p) > way.limit) {
		struct refusal too_big = { way.limit, DROP_TOO_BIG, ANSWER_POD, DIR_EGRESS };

		return oversize(skb, p, &too_big, skb->ifindex);
	}
	if (row->flags & FLOW_TUNNELLED && must_split(skb, p))
		return send_segments(skb, p, skb->ifindex);
	err = translate_answer(skb, p, row);
	return err ? err : answer_push(skb, cfg, p, row, &way);
}

/* Inlined: a call costs foreign packets a twelfth of the little that we take of their time. */
static __always_inline int endpoint_egress(struct __sk_buff *skb, const struct config *cfg,
					   struct pkt *p)
{
	struct flow_ref flow;

	if (!fragment_ports(p))
		return PASS;
	flow_key_kind(&p->key, FLOW_REVERSE);
	flow = flow_find(&p->key);
	if (!flow.row)
		return PASS;
	flow_touch(&p->key, &flow);
	flow_endpoint_packet(&p->key, &flow, p);
	if (!flow.row)
		return -DROP_FLOW_INSERT;
	fragment_remember(p);
	if (host_way(skb, flow.row))
		return taken(translate_answer(skb, p, flow.row));
	return answer_elsewhere(skb, cfg, p, flow.row);
}

/* An ICMP error from an endpoint, or from this node about the way to it: the client must know the front. */
__noinline int endpoint_error(struct __sk_buff *skb, const struct config *cfg, struct pkt *p)
{
	struct pkt quote = {};
	struct flow_ref flow;
	struct way way = {};
	struct flow_key key;
	int err;

	if (!cfg || !p || !quote_of(skb, p, &quote))
		return PASS;
	answer_key(&quote, FLOW_REVERSE, &key);
	flow = flow_find(&key);
	if (!flow.row)
		return PASS;
	if (!host_way(skb, flow.row)) {
		err = answer_way(skb, cfg, p, flow.row, &way);
		if (err)
			return err;
		/* There is no error about an error. */
		if (wire_len(skb, p) > way.limit)
			return -DROP_TOO_BIG;
	}
	err = error_to_client(skb, p, &quote, flow.row);
	if (err || host_way(skb, flow.row))
		return taken(err);
	return answer_push(skb, cfg, p, flow.row, &way);
}

/* Whether a mark is one of our copies', and of which kind. */
static __always_inline bool is_piece(__u32 mark)
{
	return (mark & ~PIECE_MASK) == MARK_PIECE;
}

static __always_inline bool is_segment(__u32 mark)
{
	return (mark & ~SEGMENT_MASK) == MARK_SEGMENT;
}

/* Has a copy fit its way out. Returns 0, or a verdict or negative drop reason where that is all there is to do. */
__noinline int fit_copy(struct __sk_buff *skb, struct pkt *p, __u32 mark, __u32 limit)
{
	if (!p)
		return -DROP_TOO_BIG;
	if (is_piece(mark))
		return cut_piece(skb, p, mark & PIECE_MASK, limit);
	if (p->l3_len <= limit)
		return 0;
	/* The packet was judged by its segments: the limit has changed since. */
	if (p->df)
		return -DROP_TOO_BIG;
	return send_pieces(skb, p, limit, skb->ifindex);
}

/*
 * A copy that stands for a part of a packet: it is made that part and goes the flow's way. The packet is a client's,
 * an endpoint's, or an answer that came through a tunnel.
 */
__noinline int copy_egress(struct __sk_buff *skb, const struct config *cfg, struct pkt *p,
			   __u32 mark)
{
	struct way way = {};
	struct flow_ref flow;
	struct flow_key key;
	int err;

	if (!cfg || !p || !fragment_ports(p))
		return -DROP_FRAGMENT_ORPHAN;
	if (is_segment(mark)) {
		err = cut_segment(skb, p, mark & SEGMENT_MASK);
		if (err)
			return err;
	}
	flow_key_kind(&p->key, FLOW_REVERSE);
	flow = flow_find(&p->key);
	if (flow.row) {
		err = answer_way(skb, cfg, p, flow.row, &way);
		if (!err)
			err = fit_copy(skb, p, mark, way.limit);
		if (!err)
			err = translate_answer(skb, p, flow.row);
		return err ? err : answer_push(skb, cfg, p, flow.row, &way);
	}
	flow_key_kind(&p->key, FLOW_FORWARD);
	flow = flow_find(&p->key);
	if (flow.row && !addr_is_zero(flow.row->peer)) {
		way.forward = 1;
		err = tunnel_way(skb, cfg, p, flow.row, &way);
		if (!err)
			err = fit_copy(skb, p, mark, way.limit);
		return err ? err : tunnel_push(skb, cfg, p, flow.row, &way);
	}
	answer_key(p, FLOW_FORWARD, &key);
	flow = flow_find(&key);
	err = client_way(skb, &key, flow.row, p->tos, &way);
	if (!err)
		err = fit_copy(skb, p, mark, way.limit);
	return err ? err : client_push(skb, p, flow.row, &way);
}

SEC("tcx/egress")
int beep_egress(struct __sk_buff *skb)
{
	struct config *cfg = config_row();
	enum traffic from = TRAFFIC_ENDPOINT;
	__u32 mark = skb->mark;
	struct pkt p = {};
	int step;

	if (mark == MARK_OURS) {
		if (!cfg_bridge)
			skb->mark = 0;
		return TCX_NEXT;
	}
	if (!cfg || skb->vlan_present || !parse_ip(skb, cfg_l2_len, skb->protocol, &p))
		return TCX_NEXT;
	if (is_piece(mark) || is_segment(mark)) {
		skb->mark = 0;
		step = copy_egress(skb, cfg, &p, mark);
		from = TRAFFIC_COPY;
	} else if (is_forged_tunnel(skb, &p)) {
		step = -DROP_FORGED_TUNNEL;
	} else if (p.key.proto == IPPROTO_TCP || p.key.proto == IPPROTO_UDP) {
		step = endpoint_egress(skb, cfg, &p);
	} else if (is_icmp_error(&p)) {
		step = endpoint_error(skb, cfg, &p);
	} else {
		step = PASS;
	}
	return verdict(skb, step, DIR_EGRESS, from);
}
