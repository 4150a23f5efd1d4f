/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `beep trace`: two programs beside the datapath's on each side of an uplink, for as long as somebody looks. The one
 * before it keeps what a packet looked like, and the counters of this CPU; the one behind it sees what became of those that
 * went on. One that was redirected is seen again before the egress program, by its mark; and one that was dropped by the
 * counter that is another one when this CPU has its next packet. The datapath itself knows of none of this.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "lib/counters.h"
#include "lib/trace.h"

/* Which clients are wanted: the address, and how many bits of it count (IPv4 as ::ffff:a.b.c.d); 0: any. */
volatile const __u8 cfg_client[16] = {};
volatile const __u32 cfg_client_bits = 0;
/* Which front is wanted; all zero: any. */
volatile const __u8 cfg_front[16] = {};
/* Its port in network order, and its protocol; 0: any. */
volatile const __u16 cfg_front_port_be = 0;
volatile const __u8 cfg_front_proto = 0;
/* Bytes of link-layer header on the device. */
volatile const __u32 cfg_trace_l2_len = 14;
/* enum direction of the side that an instance hangs at. */
volatile const __u32 cfg_direction = DIR_INGRESS;
/* 1: what the programs leave alone is wanted, too. */
volatile const __u8 cfg_passes = 0;
/* Events a second, at most. */
volatile const __u32 cfg_rate = 1000;

#define NSEC_PER_SEC 1000000000ULL

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 19);
} EVENTS SEC(".maps");

/* What keeps a trace from taking a node's time, shared by all of its programs. */
struct trace_rate {
	__u64 second;	 /* the one that is running, of the monotonic clock */
	__u64 in_second; /* events in it */
	__u64 lost;	 /* events that were too many, or found the buffer full */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct trace_rate);
} RATE SEC(".maps");

/*
 * The packet that a CPU is at, or was last, and its counters before that. A CPU has one at a time: neither side of a
 * device is interrupted by the other.
 */
struct trace_pending {
	struct trace_event event;
	__u64 drops[DROP_REASONS];
	__u64 traffic[TRAFFIC_ROWS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct trace_pending);
} PENDING SEC(".maps");

static __always_inline struct trace_pending *pending(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&PENDING, &zero);
}

static __always_inline __u64 drops_at(__u32 reason, __u32 direction)
{
	__u32 index = reason * DIRECTIONS + direction;
	struct drop_count *count = bpf_map_lookup_elem(&DROPS, &index);

	return count ? count->packets : 0;
}

static __always_inline __u64 traffic_at(__u32 index)
{
	struct drop_count *count = bpf_map_lookup_elem(&TRAFFIC, &index);

	return count ? count->packets : 0;
}

/* Fills a view with the headers that the packet has now. */
static __always_inline void view(struct __sk_buff *skb, struct trace_view *v)
{
	struct trace_cursor c = { .skb = skb, .at = cfg_trace_l2_len };

	__builtin_memset(v, 0, sizeof(*v));
	trace_look(&c, v);
}

static __always_inline bool is_client(const __u8 *addr)
{
	for (__u32 i = 0; i < 16; i++) {
		__u32 bits = cfg_client_bits > i * 8 ? cfg_client_bits - i * 8 : 0;
		__u8 mask = bits >= 8 ? 0xff : 0xff << (8 - bits);

		if ((addr[i] ^ cfg_client[i]) & mask)
			return false;
	}
	return true;
}

static __always_inline bool is_front(const __u8 *addr, __be16 port, __u8 proto, bool any_port)
{
	__u8 named = 0;

	for (__u32 i = 0; i < 16; i++)
		named |= cfg_front[i];
	for (__u32 i = 0; named && i < 16; i++) {
		if (addr[i] != cfg_front[i])
			return false;
	}
	return (any_port || !cfg_front_port_be || port == cfg_front_port_be) &&
	       (!cfg_front_proto || proto == cfg_front_proto);
}

/* Whether the client and the front that are wanted are the two ends of a packet, or of what it is about. */
static __noinline bool view_wanted(const struct trace_view *v)
{
	bool later = v->fragment == FRAGMENT_LATER;

	if (v->quote_proto)
		return (is_client(v->quote_dst) &&
			is_front(v->quote_src, v->quote_sport_be, v->quote_proto, false)) ||
		       (is_client(v->quote_src) &&
			is_front(v->quote_dst, v->quote_dport_be, v->quote_proto, false));
	return (is_client(v->src) && is_front(v->dst, v->dport_be, v->proto, later)) ||
	       (is_client(v->dst) && is_front(v->src, v->sport_be, v->proto, later));
}

/* Whether an event is wanted. What left the node unseen may be any front's: whoever reads the events can tell. */
static __always_inline bool wanted(const struct trace_event *e)
{
	if (!cfg_passes && !e->counted && !e->reason && !e->copies)
		return false;
	if (view_wanted(&e->before))
		return true;
	if (e->after.proto)
		return view_wanted(&e->after);
	return e->direction == DIR_EGRESS;
}

/* Whether this second has room for one more event. */
static __always_inline bool within_rate(struct trace_rate *rate, __u64 now)
{
	__u64 second = now / NSEC_PER_SEC;

	/* Two CPUs that both begin a second let through a few events more. */
	if (rate->second != second) {
		rate->second = second;
		rate->in_second = 0;
	}
	return __sync_fetch_and_add(&rate->in_second, 1) < cfg_rate;
}

/* Tells what became of this CPU's packet. */
static __noinline int conclude(struct trace_pending *p)
{
	struct trace_event *e = &p->event;
	struct trace_rate *rate;
	__u32 key = 0;

	for (__u32 i = 1; i < DROP_REASONS; i++) {
		if (drops_at(i, e->direction) != p->drops[i])
			e->reason = i;
	}
	for (__u32 i = 0; i < TRAFFIC_ROWS; i++) {
		if (traffic_at(i) != p->traffic[i])
			e->counted |= 1 << i;
	}
	rate = bpf_map_lookup_elem(&RATE, &key);
	if (rate && wanted(e) &&
	    (!within_rate(rate, e->time) || bpf_ringbuf_output(&EVENTS, e, sizeof(*e), 0)))
		__sync_fetch_and_add(&rate->lost, 1);
	e->time = 0;
	return 0;
}

/* A redirected packet before the egress program, or one that goes on behind either. */
static __always_inline void conclude_seen(struct trace_pending *p, struct __sk_buff *skb)
{
	p->event.len_after = skb->len;
	view(skb, &p->event.after);
	conclude(p);
}

static __always_inline bool is_copy(__u32 mark)
{
	return cfg_direction == DIR_EGRESS &&
	       ((mark & ~PIECE_MASK) == MARK_PIECE || (mark & ~SEGMENT_MASK) == MARK_SEGMENT);
}

/* Whether what is seen of a packet so far leaves open that it is wanted. An endpoint's answer does not name its front. */
static __always_inline bool may_be_wanted(const struct trace_event *e)
{
	if (!e->before.proto)
		return false;
	if (cfg_direction == DIR_EGRESS)
		return is_client(e->before.dst) || is_client(e->before.src);
	return view_wanted(&e->before);
}

SEC("tcx/ingress")
int trace_before(struct __sk_buff *skb)
{
	struct trace_pending *p = pending();
	bool ours = cfg_direction == DIR_EGRESS && skb->mark == MARK_OURS;
	struct trace_event *e;

	if (!p)
		return TCX_NEXT;
	e = &p->event;
	if (e->time) {
		e->copies = is_copy(skb->mark);
		if (ours) {
			e->out_ifindex = skb->ifindex;
			conclude_seen(p, skb);
		} else {
			conclude(p);
		}
	}
	if (ours || skb->vlan_present)
		return TCX_NEXT;
	view(skb, &e->before);
	if (!may_be_wanted(e))
		return TCX_NEXT;
	__builtin_memset(&e->after, 0, sizeof(e->after));
	e->seq++;
	e->time = bpf_ktime_get_ns();
	e->cpu = bpf_get_smp_processor_id();
	e->ifindex = skb->ifindex;
	e->out_ifindex = 0;
	e->direction = cfg_direction;
	e->reason = 0;
	e->counted = 0;
	e->copies = 0;
	e->len = skb->len;
	e->len_after = 0;
	e->gso_size = skb->gso_size;
	e->mark = skb->mark;
	skb->cb[0] = COUNT_ASKED;
	for (__u32 i = 1; i < DROP_REASONS; i++)
		p->drops[i] = drops_at(i, cfg_direction);
	for (__u32 i = 0; i < TRAFFIC_ROWS; i++)
		p->traffic[i] = traffic_at(i);
	return TCX_NEXT;
}

SEC("tcx/ingress")
int trace_behind(struct __sk_buff *skb)
{
	struct trace_pending *p = pending();

	/* Marked: redirected here, and seen by the one before. */
	if (p && p->event.time && !(cfg_direction == DIR_EGRESS && skb->mark == MARK_OURS))
		conclude_seen(p, skb);
	return TCX_NEXT;
}

char __license[] SEC("license") = "Dual BSD/GPL";
