/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The life of a flow's rows: half-open in FLOW_PENDING, moved once the flow has proved itself, to FLOW_TABLE or,
 * if it is UDP, to FLOW_DATAGRAMS; closed rows kept for late packets and free for reuse, and a pair of rows always
 * changed together.
 *
 * The rare steps are global functions: the verifier sees each once, with any arguments (so they check for
 * NULL), and not again on every path that leads there.
 */
#pragma once

#include "drop.h"
#include "maps.h"
#include "pkt.h"

#define NSEC_PER_SEC 1000000000ULL

/* Source ports tried towards an endpoint before a flow is refused. */
#define REMAP_CANDIDATES 512
#define REMAP_FIRST_PORT 1024

/* A row and where it was found: in FLOW_PENDING, or in its protocol's table of proved flows. */
struct flow_ref {
	struct flow *row; /* NULL: none */
	bool pending;
};

/* The second that a tick fell in: the tick's number above, 32 bits each. Any CPU's is everyone's. */
static __u64 tick_second;

/* The coarse clock only moves with the tick, so it is asked and divided once a tick. */
static __always_inline __u32 now_seconds(void)
{
	__u64 known = *(volatile __u64 *)&tick_second;
	__u32 tick = bpf_jiffies64(), now;

	if (known && known >> 32 == tick)
		return known;
	now = bpf_ktime_get_coarse_ns() / NSEC_PER_SEC;
	*(volatile __u64 *)&tick_second = (__u64)tick << 32 | now;
	return now;
}

/* Names the kind of row that a packet's key is for: in one write with what is beside it, which the kernel reads as one. */
static __always_inline void flow_key_kind(struct flow_key *key, enum flow_kind kind)
{
	*(__u32 *)&key->proto = key->proto | kind << 8;
}

static __always_inline struct flow *flow_lookup(const struct flow_key *key, bool pending)
{
	struct flow *row;

	if (pending)
		return bpf_map_lookup_elem(&FLOW_PENDING, key);
	if (key->proto == IPPROTO_UDP) {
		row = bpf_map_lookup_elem(&FLOW_DATAGRAMS, key);
		/* One call for either map would be a slow one: the kernel inlines the lookup in a map that it knows. */
		barrier_var(row);
		return row;
	}
	return bpf_map_lookup_elem(&FLOW_TABLE, key);
}

static __always_inline long flow_insert(const struct flow_key *key, const struct flow *row,
					bool pending, __u64 flags)
{
	if (pending)
		return bpf_map_update_elem(&FLOW_PENDING, key, row, flags);
	if (key->proto == IPPROTO_UDP)
		return bpf_map_update_elem(&FLOW_DATAGRAMS, key, row, flags);
	return bpf_map_update_elem(&FLOW_TABLE, key, row, flags);
}

static __always_inline void flow_remove(const struct flow_key *key, bool pending)
{
	if (pending)
		bpf_map_delete_elem(&FLOW_PENDING, key);
	else if (key->proto == IPPROTO_UDP)
		bpf_map_delete_elem(&FLOW_DATAGRAMS, key);
	else
		bpf_map_delete_elem(&FLOW_TABLE, key);
}

/* FLOW_PENDING last: a flow on its way from there is in both tables for a moment. */
static __always_inline struct flow_ref flow_find(const struct flow_key *key)
{
	struct flow_ref ref = { .row = flow_lookup(key, false) };

	if (!ref.row) {
		ref.row = flow_lookup(key, true);
		ref.pending = true;
	}
	return ref;
}

static __always_inline void flow_set(struct flow *row, __u32 flags)
{
	if ((row->flags & flags) != flags)
		__sync_fetch_and_or(&row->flags, flags);
}

/* The key of the other row of a pair. */
static __always_inline void mirror_key(const struct flow_key *key, const struct flow *row,
				       struct flow_key *mirror)
{
	mirror->proto = key->proto;
	mirror->pad[0] = 0;
	mirror->pad[1] = 0;
	if (key->kind == FLOW_REVERSE) {
		addr_copy(mirror->src, key->dst);
		addr_copy(mirror->dst, row->nat_addr);
		mirror->sport_be = row->client_port_be;
		mirror->dport_be = row->nat_port_be;
		mirror->kind = row->flags & FLOW_TUNNELLED ? FLOW_BACKEND : FLOW_FORWARD;
	} else {
		addr_copy(mirror->src, row->nat_addr);
		addr_copy(mirror->dst, key->src);
		mirror->sport_be = row->nat_port_be;
		mirror->dport_be = row->client_port_be;
		mirror->kind = FLOW_REVERSE;
	}
}

/* The other row of a pair, made beside the row or in its place: it differs in what it translates to. */
static __always_inline void mirror_row(const struct flow_key *key, const struct flow *row,
				       struct flow *mirror)
{
	if (mirror != row)
		__builtin_memcpy(mirror, row, sizeof(*mirror));
	if (key->kind == FLOW_REVERSE) {
		addr_copy(mirror->nat_addr, key->src);
		mirror->nat_port_be = key->sport_be;
		mirror->client_port_be = key->dport_be;
	} else {
		addr_copy(mirror->nat_addr, key->dst);
		mirror->nat_port_be = key->dport_be;
		mirror->client_port_be = key->sport_be;
	}
}

/*
 * The second of a row's rare writes: at most once a second both rows of a pair get the time, which also
 * keeps the idle one from being evicted alone, and a mirror that is gone is made again.
 */
__noinline int flow_refresh(struct flow_key *key, struct flow *row, bool pending, __u32 now)
{
	struct flow_key other;
	struct flow *mirror, made;

	if (!key || !row)
		return 0;
	row->last_seen = now;
	if (!(row->flags & FLOW_PAIRED))
		return 0;
	mirror_key(key, row, &other);
	mirror = flow_lookup(&other, pending);
	if (mirror) {
		mirror->last_seen = now;
		return 0;
	}
	mirror_row(key, row, &made);
	flow_insert(&other, &made, pending, BPF_NOEXIST);
	return 0;
}

/*
 * A half-open TCP row is not refreshed by its client: it goes after its time however often a SYN is repeated.
 */
static __always_inline void flow_touch(struct flow_key *key, struct flow_ref *flow)
{
	__u32 now = now_seconds();

	if (flow->row->last_seen != now && !(flow->pending && key->proto == IPPROTO_TCP))
		flow_refresh(key, flow->row, flow->pending, now);
}

/* Tells the mirror, which the answers read, by which way the client's packets come now. */
__noinline int flow_moved(struct flow_key *key, struct flow *row, bool pending)
{
	struct flow_key other;
	struct flow *mirror;

	if (!key || !row || !(row->flags & FLOW_PAIRED))
		return 0;
	mirror_key(key, row, &other);
	mirror = flow_lookup(&other, pending);
	if (!mirror)
		return 0;
	mirror->uplink = row->uplink;
	__builtin_memcpy(mirror->client_mac, row->client_mac, sizeof(mirror->client_mac));
	__builtin_memcpy(mirror->uplink_mac, row->uplink_mac, sizeof(mirror->uplink_mac));
	return 0;
}

/* Sets flags, and the number that proves a TCP flow, on a row and on its mirror. */
__noinline int flow_mark(struct flow_key *key, struct flow *row, bool pending, __u32 flags,
			 __u16 proof)
{
	struct flow_key other;
	struct flow *mirror;

	if (!key || !row)
		return 0;
	flow_set(row, flags);
	row->proof = proof;
	if (!(row->flags & FLOW_PAIRED))
		return 0;
	mirror_key(key, row, &other);
	mirror = flow_lookup(&other, pending);
	if (!mirror)
		return 0;
	flow_set(mirror, flags);
	mirror->proof = proof;
	return 0;
}

/* Removes a row with its mirror. */
__noinline int flow_drop(struct flow_key *key, struct flow *row, bool pending)
{
	struct flow_key other;
	bool paired;

	if (!key || !row)
		return 0;
	paired = row->flags & FLOW_PAIRED;
	if (paired)
		mirror_key(key, row, &other);
	flow_remove(key, pending);
	if (paired)
		flow_remove(&other, pending);
	return 0;
}

/* Moves a row with its mirror out of FLOW_PENDING; readers look in the new place first. */
__noinline int flow_promote(struct flow_key *key, struct flow *row, __u32 now)
{
	struct flow_key other;
	struct flow made;

	if (!key || !row)
		return 0;
	/* This packet's row comes last: the other one's could push it out of a full table before it is read. */
	if (row->flags & FLOW_PAIRED) {
		mirror_key(key, row, &other);
		mirror_row(key, row, &made);
		made.last_seen = now;
		flow_insert(&other, &made, false, BPF_ANY);
	}
	__builtin_memcpy(&made, row, sizeof(made));
	made.last_seen = now;
	if (flow_insert(key, &made, false, BPF_ANY))
		return 0; /* stays half-open; the next packet tries again */
	if (row->flags & FLOW_PAIRED)
		flow_remove(&other, true);
	flow_remove(key, true);
	return 0;
}

/* Moves a row and lets flow point at it where it then is: the old place may be another flow's at once. */
static __always_inline void flow_establish(struct flow_key *key, struct flow_ref *flow)
{
	flow_promote(key, flow->row, now_seconds());
	*flow = flow_find(key);
}

/*
 * Whether a client's packet proves that it had an endpoint's answer, which a spoofed one cannot have: UDP by
 * there being an answer, TCP by acknowledging it.
 */
static __always_inline bool flow_proved(const struct flow *row, const struct pkt *p)
{
	if (!(row->flags & FLOW_REPLIED))
		return false;
	return p->key.proto != IPPROTO_TCP ||
	       ((p->tcp_flags & (TCP_ACK | TCP_SYN | TCP_RST)) == TCP_ACK &&
		p->tcp_ack == row->proof);
}

/*
 * What a packet of the client's (or one that a peer tunnelled for it) means to its flow. TCP is proved by the
 * client's first packet after the endpoint's answer. Leaves flow->row NULL if the row was lost.
 */
static __always_inline void flow_client_packet(struct flow_key *key, struct flow_ref *flow,
					       const struct pkt *p)
{
	__u32 have = flow->row->flags, set = 0;

	if (key->proto == IPPROTO_TCP) {
		if (p->tcp_flags & TCP_RST)
			set = FLOW_CLOSED;
		else if (p->tcp_flags & TCP_FIN)
			set = FLOW_FIN_CLIENT | (have & FLOW_FIN_ENDPOINT ? FLOW_CLOSED : 0);
		if (set & ~have)
			flow_mark(key, flow->row, flow->pending, set, flow->row->proof);
	}
	if (flow->pending && flow_proved(flow->row, p))
		flow_establish(key, flow);
}

/*
 * What an endpoint's packet means to its flow. UDP is proved by the first answer; of TCP the number is kept that
 * acknowledges it. As above for a lost row.
 */
static __always_inline void flow_endpoint_packet(struct flow_key *key, struct flow_ref *flow,
						 const struct pkt *p)
{
	__u32 have = flow->row->flags, set = FLOW_REPLIED;
	__u16 proof = flow->row->proof;

	if (key->proto == IPPROTO_TCP) {
		if (p->tcp_flags & TCP_RST)
			set = FLOW_CLOSED;
		else if (p->tcp_flags & TCP_FIN)
			set |= FLOW_FIN_ENDPOINT | (have & FLOW_FIN_CLIENT ? FLOW_CLOSED : 0);
		if (flow->pending && !(p->tcp_flags & TCP_RST))
			proof = p->tcp_next;
	}
	if (set & ~have || proof != flow->row->proof)
		flow_mark(key, flow->row, flow->pending, set, proof);
	if (!flow->pending)
		return;
	if (key->proto == IPPROTO_UDP)
		flow_establish(key, flow);
	else if (!(p->tcp_flags & (TCP_SYN | TCP_RST)) && flow->row->last_seen != now_seconds())
		flow_refresh(key, flow->row, true, now_seconds());
}

/* Whether a SYN begins a new connection on a row whose last one has ended. */
static __always_inline bool flow_reopens(const struct flow *row, const struct pkt *p)
{
	return row->flags & FLOW_CLOSED && (p->tcp_flags & (TCP_SYN | TCP_ACK)) == TCP_SYN;
}

struct claim {
	struct flow_key key;
	struct flow *row; /* as the reverse row while the loop runs */
	__u32 base;
	__u8 found;   /* a candidate is there */
	__u8 closed;  /* ... but a closed flow's pair has to go first */
	__u8 pending; /* the table it is in */
	__u8 pad;
};

/* The same flow through the same front: what is left of a pair whose other half is gone. */
static __always_inline bool same_flow(const struct flow *a, const struct flow *b)
{
	return addr_equal(a->nat_addr, b->nat_addr) && addr_equal(a->peer, b->peer) &&
	       a->nat_port_be == b->nat_port_be && a->client_port_be == b->client_port_be;
}

/* Tries one candidate of a claim. Returns 1 to stop the loop. */
static long claim_candidate(__u64 i, struct claim *c)
{
	struct flow_ref taken;

	/* The first candidate is the client's own port, then every 7th of the others from a hashed start. */
	if (i)
		c->key.dport_be = bpf_htons(
			REMAP_FIRST_PORT + (c->base + (__u32)i * 7) % (0x10000 - REMAP_FIRST_PORT));
	taken = flow_find(&c->key);
	if (!taken.row) {
		c->found = !flow_insert(&c->key, c->row, true, BPF_NOEXIST);
		c->pending = true;
		return c->found;
	}
	c->pending = taken.pending;
	c->closed = taken.row->flags & FLOW_CLOSED ? 1 : 0;
	c->found = c->closed || same_flow(taken.row, c->row);
	return c->found;
}

/*
 * Makes both rows of a new flow on the node that runs its endpoint: picks the source port that the endpoint
 * will see (the client's own unless another flow has it) and sets row->client_port_be. Returns 0, or a
 * negative drop reason.
 */
__noinline int flow_claim(struct flow_key *key, struct flow *row, __u32 hash)
{
	struct claim c = { .row = row, .base = hash };

	if (!key || !row)
		return -DROP_FLOW_INSERT;
	row->flags |= FLOW_PAIRED;
	row->client_port_be = key->sport_be;
	mirror_key(key, row, &c.key);
	mirror_row(key, row, row);
	bpf_loop(REMAP_CANDIDATES, claim_candidate, &c, 0);
	if (!c.found)
		return -DROP_REMAP_EXHAUSTED;
	if (c.closed) {
		struct flow *old = flow_lookup(&c.key, c.pending);

		if (old)
			flow_drop(&c.key, old, c.pending);
		if (flow_insert(&c.key, row, true, BPF_NOEXIST))
			return -DROP_FLOW_INSERT;
		c.pending = true;
	}
	mirror_row(&c.key, row, row);
	if (flow_insert(key, row, c.pending, BPF_ANY)) {
		flow_remove(&c.key, c.pending);
		return -DROP_FLOW_INSERT;
	}
	return 0;
}
