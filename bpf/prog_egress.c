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

	if (p->key.proto != IPPROTO_UDP || p->key.dport_be != bpf_htons(cfg_geneve_port))
		return false;
	t = header(skb, p->l4_off, RETURN_LEN);
	return t && t->geneve.vni_be >> 8 == bpf_htonl(cfg_geneve_vni << 8) >> 8 &&
	       t->option.class_be == OPTION_CLASS;
}

static __always_inline int endpoint_egress(struct __sk_buff *skb, const struct config *cfg,
					   struct pkt *p)
{
	struct flow_ref flow;
	struct rewrite to = { .source = true };
	int err;

	p->key.kind = FLOW_REVERSE;
	flow = flow_find(&p->key);
	if (!flow.row)
		return PASS;
	if (p->fragment != FRAGMENT_NONE)
		return -DROP_FRAGMENT;
	flow_touch(&p->key, &flow);
	flow_endpoint_packet(&p->key, &flow, p->tcp_flags);
	addr_copy(to.addr, flow.row->nat_addr);
	to.sport_be = flow.row->nat_port_be;
	to.dport_be = flow.row->client_port_be;
	err = rewrite(skb, p, &to);
	if (err)
		return err;
	if (!(flow.row->flags & FLOW_TUNNELLED) && flow.row->uplink == skb->ifindex)
		return PASS;
	if (forget_route(skb))
		return -DROP_KERNEL_REFUSED;
	if (flow.row->flags & FLOW_TUNNELLED)
		return tunnel_send(skb, cfg, p, flow.row, false);
	return to_client(skb, p, flow.row);
}

SEC("tcx/egress")
int beep_egress(struct __sk_buff *skb)
{
	struct config *cfg = config_row();
	struct pkt p = {};
	int step;

	if (skb->mark == MARK_OURS) {
		skb->mark = 0;
		return TCX_NEXT;
	}
	if (!cfg || skb->vlan_present || !parse_ip(skb, cfg_l2_len, skb->protocol, &p))
		return TCX_NEXT;
	if ((p.key.proto != IPPROTO_TCP && p.key.proto != IPPROTO_UDP) ||
	    p.fragment == FRAGMENT_LATER)
		return TCX_NEXT;
	if (is_forged_tunnel(skb, &p))
		step = -DROP_FORGED_TUNNEL;
	else
		step = endpoint_egress(skb, cfg, &p);
	return verdict(skb, step, DIR_EGRESS);
}
