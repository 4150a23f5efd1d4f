/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The binary interface between the programs and their user-space owner: keys and values of every map,
 * and the numbers both sides name. The rules:
 *  - fixed-width unsigned integers and byte arrays only; no implicit padding, pad fields are zero;
 *  - an address is 16 bytes in network order, IPv4 as ::ffff:a.b.c.d (RFC 4291, section 2.5.5.2);
 *  - a field that ends in _be is in network order, every other integer in host order;
 *  - numbers are never reused; a changed layout bumps BEEP_ABI.
 */
#pragma once

#include <linux/types.h>

#define BEEP_ABI 3

/* In source_key.front_id. */
#define SOURCE_V6 0x80000000u

/* Endpoint indexes in one FRONT_RING row. */
#define RING_BLOCK 512

/* Protocol, address, port: names a front in FRONT_META and a pod's port in POD_TARGETS. */
struct socket_key {
	__u8 addr[16];
	__be16 port_be;
	__u8 proto; /* IPPROTO_TCP or IPPROTO_UDP */
	__u8 pad;
} __attribute__((aligned(4)));
_Static_assert(sizeof(struct socket_key) == 20, "socket_key");

enum front_flag {
	FRONT_CLIENT_IP_AFFINITY = 1, /* hash the client address only, and remember the choice */
	FRONT_SOURCES_LIMITED = 2,    /* FRONT_SOURCES lists who may come */
};

struct front_meta {
	__u32 id;	  /* names the front in the other FRONT_ maps; never 0 */
	__u32 generation; /* the endpoint set in force */
	__u32 count;	  /* endpoints; 0: new flows are dropped */
	__u32 ring_size;  /* slots of the Maglev table (a prime); 0 with fewer than two endpoints */
	__u32 flags;	  /* enum front_flag */
	__u32 affinity_timeout; /* seconds a client keeps its endpoint after its last new flow */
};
_Static_assert(sizeof(struct front_meta) == 24, "front_meta");

struct endpoint_key {
	__u32 front_id;
	__u32 generation;
	__u32 index; /* 0 .. count - 1 */
};
_Static_assert(sizeof(struct endpoint_key) == 12, "endpoint_key");

struct endpoint {
	__u8 addr[16];
	__u8 peer[16]; /* underlay address of the node that runs it; all zero: this node */
	__be16 port_be;
	__u16 pad;
} __attribute__((aligned(4)));
_Static_assert(sizeof(struct endpoint) == 36, "endpoint");

/* A prefix of clients that a front takes, in the LPM trie FRONT_SOURCES. */
struct source_key {
	__u32 prefixlen; /* bits: 32 of front_id, then of the address; an IPv4 prefix has its 96 more */
	__u32 front_id; /* with SOURCE_V6 for an IPv6 prefix: ::/0 must not open IPv4 */
	__u8 addr[16];
} __attribute__((aligned(4)));
_Static_assert(sizeof(struct source_key) == 24, "source_key");

struct affinity_key {
	__u8 client[16];
	__u32 front_id;
	__u32 pad;
} __attribute__((aligned(8)));
_Static_assert(sizeof(struct affinity_key) == 24, "affinity_key");

struct affinity {
	struct endpoint endpoint;
	__u32 generation; /* the endpoint set in which it was last found */
	__u32 last_seen;  /* seconds of the coarse monotonic clock */
};
_Static_assert(sizeof(struct affinity) == 44, "affinity");

/* One datagram that travels in fragments. */
struct fragment_key {
	__u8 src[16];
	__u8 dst[16];
	__u32 id; /* as in the packet: not converted */
	__u8 proto;
	__u8 pad[3];
} __attribute__((aligned(8)));
_Static_assert(sizeof(struct fragment_key) == 40, "fragment_key");

struct fragment_ports {
	__be16 sport_be;
	__be16 dport_be;
};
_Static_assert(sizeof(struct fragment_ports) == 4, "fragment_ports");

/* What a CPU may still spend on answers of our own making. */
struct budget {
	__u64 refilled; /* nanoseconds of the coarse monotonic clock */
	__u64 credit;	/* nanoseconds */
};
_Static_assert(sizeof(struct budget) == 16, "budget");

struct ring_key {
	__u32 front_id;
	__u32 generation;
	__u32 block; /* slot / RING_BLOCK */
};
_Static_assert(sizeof(struct ring_key) == 12, "ring_key");

struct ring_block {
	__u16 index[RING_BLOCK]; /* endpoint index of each slot; slots past ring_size are 0 */
};
_Static_assert(sizeof(struct ring_block) == 2 * RING_BLOCK, "ring_block");

/*
 * What a flow's row answers for. A flow through a local endpoint has FORWARD and REVERSE on one node; a
 * tunnelled one has FORWARD on the ingress node, BACKEND and REVERSE on the backend node.
 */
enum flow_kind {
	FLOW_FORWARD = 1, /* client -> front, on the node that the client dialled */
	FLOW_BACKEND = 2, /* client -> front, as the inner packet of a forward tunnel */
	FLOW_REVERSE = 3, /* endpoint -> client, on the node that runs the endpoint */
};

struct flow_key {
	__u8 src[16];
	__u8 dst[16];
	__be16 sport_be;
	__be16 dport_be;
	__u8 proto; /* IPPROTO_TCP or IPPROTO_UDP */
	__u8 kind;  /* enum flow_kind */
	__u8 pad[2];
} __attribute__((aligned(8)));
_Static_assert(sizeof(struct flow_key) == 40, "flow_key");

enum flow_flag {
	FLOW_REPLIED = 1,      /* the endpoint has answered (TCP: with anything but a reset) */
	FLOW_FIN_CLIENT = 2,   /* TCP FIN seen from the client */
	FLOW_FIN_ENDPOINT = 4, /* TCP FIN seen from the endpoint */
	FLOW_CLOSED = 8,       /* TCP RST, or FIN both ways: still forwards, free for reuse */
	FLOW_PAIRED = 16,      /* a mirror row lives beside it: FORWARD or BACKEND, and REVERSE */
	FLOW_TUNNELLED = 32,   /* the pair is BACKEND and REVERSE */
};

struct flow {
	__u8 nat_addr[16]; /* FORWARD, BACKEND: the endpoint; REVERSE: the front */
	__u8 peer[16];	   /* underlay address of the node at the other end; all zero: none */
	__u32 uplink;	   /* ifindex that the client's (BACKEND: the peer's) packets come in on */
	__u32 front_id;	   /* 0 on a backend node */
	__u32 last_seen;   /* seconds of the coarse monotonic clock */
	__u32 epoch;	   /* struct config.epoch at which peer and endpoint were last checked */
	__u32 flags;	   /* enum flow_flag */
	__be16 nat_port_be;
	__be16 client_port_be; /* FORWARD, BACKEND: what the endpoint sees; REVERSE: the client's own */
	__be16 tunnel_port_be; /* outer UDP source port */
	__u8 client_mac[6];    /* link-layer sender of the client's last frame; zero without L2 */
	__u8 uplink_mac[6];    /* and its destination: our own address on that uplink */
	__u16 proof; /* half-open TCP: low 16 bits of what acknowledges the endpoint's last packet */
} __attribute__((aligned(8)));
_Static_assert(sizeof(struct flow) == 72, "flow");

/* A peer's underlay address in NODE_ALLOW. */
struct node_key {
	__u8 addr[16];
} __attribute__((aligned(8)));
_Static_assert(sizeof(struct node_key) == 16, "node_key");

/* The one row of CONFIG: what may change while the programs run. */
struct config {
	__u8 seed[16];	      /* SipHash key of the flow hash, equal on all nodes */
	__u8 underlay_v4[16]; /* this node's tunnel address; all zero: none of that family */
	__u8 underlay_v6[16];
	__u32 abi;   /* BEEP_ABI of the maps beside it */
	__u32 epoch; /* bumped when a row of NODE_ALLOW or POD_TARGETS goes: flows are checked anew */
} __attribute__((aligned(8)));
_Static_assert(sizeof(struct config) == 56, "config");

/* DROPS[reason * DIRECTIONS + direction] and TRAFFIC[enum traffic], one a CPU. */
struct drop_count {
	__u64 packets;
	__u64 bytes; /* as the program saw them, link layer included */
};
_Static_assert(sizeof(struct drop_count) == 16, "drop_count");

/* What the kernel's FIB answered, in FIB_ANSWERS[a hash of the question], one a CPU. */
struct fib_answer {
	__u8 src[16];
	__u8 dst[16];
	__u32 oif; /* the device that the question was bound to; 0: none */
	__u32 tos;
	__u64 tick;	  /* jiffies when it was asked; 0: never */
	__u64 generation; /* of the kernel's routes then */
	__u8 next_hop[16];
	__u32 nh_family; /* AF_INET or AF_INET6: of next_hop, the host's order */
	__u32 ifindex;
	__u32 mtu; /* bytes */
	__u32 pad;
} __attribute__((aligned(8)));
_Static_assert(sizeof(struct fib_answer) == 88, "fib_answer");

enum direction {
	DIR_INGRESS = 0,
	DIR_EGRESS = 1,
	DIRECTIONS = 2,
};

/* What TRAFFIC counts: packets by where they came from, and those that began a flow. */
enum traffic {
	TRAFFIC_CLIENT = 0, /* from a client, to an endpoint on this node */
	TRAFFIC_AWAY = 1,   /* ... into the tunnel. Added to the other even ones: redirected too */
	TRAFFIC_PEER = 2,   /* out of a tunnel, to an endpoint on this node; away: to the client */
	TRAFFIC_ENDPOINT = 4, /* from an endpoint, the host's way; away: a tunnel, another uplink */
	TRAFFIC_COPY = 6, /* copies that stand for parts of a packet, counted beside it; all away */
	TRAFFIC_NEW = 8,  /* a client's packet that began a flow */
	TRAFFIC_NEW_HERE = 9, /* one out of a tunnel that did, on the node that runs the endpoint */
	TRAFFIC_REMAPPED = 10, /* flows whose endpoint sees another source port: theirs was taken */
	TRAFFIC_ROWS = 11,
};

/* Why a packet was dropped. The words for people are in src/datapath/maps. */
enum drop_reason {
	DROP_UNUSED = 0,
	DROP_NO_ENDPOINT = 1,	    /* a new flow through a front that has no endpoint */
	DROP_FRONT_INCOMPLETE = 2,  /* FRONT_META names a row that is not there */
	DROP_FRAGMENT_ORPHAN = 3,   /* a later fragment whose first one was not seen */
	DROP_FLOW_INSERT = 4,	    /* no row could be made for a new flow */
	DROP_REMAP_EXHAUSTED = 5,   /* no free source port towards the endpoint */
	DROP_NO_UNDERLAY = 6,	    /* the peer's family has no tunnel address on this node */
	DROP_NO_ROUTE = 7,	    /* the FIB has no route to the peer or to the client */
	DROP_FORWARDING_OFF = 8,    /* the kernel's forwarding sysctl is off */
	DROP_TOO_BIG = 9,	    /* does not fit the egress MTU once encapsulated */
	DROP_KERNEL_REFUSED = 10,   /* the kernel refused to resize the packet or a write into it */
	DROP_TUNNEL_MALFORMED = 11, /* our VNI and option class, but not our format */
	DROP_TUNNEL_INNER = 12,	    /* the inner packet is not one that beep tunnels */
	DROP_UNKNOWN_PEER = 13,	    /* a tunnel from an address that is not in NODE_ALLOW */
	DROP_UNKNOWN_TARGET = 14,   /* a tunnel to a socket that is not in POD_TARGETS */
	DROP_WRONG_PEER = 15,	    /* a return from another node than the flow's */
	DROP_NO_FLOW = 16,	    /* a return that matches no flow and no front */
	DROP_ECN = 17,		 /* congestion marked outside, inner not ECN-capable (RFC 6040) */
	DROP_FORGED_TUNNEL = 18, /* our tunnel format leaving this node, but not made by beep */
	DROP_SOURCE_DENIED = 19, /* the client is in none of the front's source ranges */
	DROP_REASONS = 20,
};
