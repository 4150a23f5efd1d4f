/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What beep writes on packets: the bytes of the tunnel behind the outer IP header (RFC 8926), and the marks by which
 * its programs know what others of them have sent.
 */
#pragma once

#include <linux/types.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>

/* Experimental use (RFC 8926, section 7). */
#define OPTION_CLASS bpf_htons(0xffbe)
#define OPTION_CRITICAL 0x80
#define OPTION_FORWARD (OPTION_CRITICAL | 1)
#define OPTION_RETURN (OPTION_CRITICAL | 2)

#define GENEVE_OAM 0x80	     /* O: a control packet */
#define GENEVE_CRITICAL 0x40 /* C: critical options present */
#define TUNNEL_TTL 64

struct geneve {
	__u8 version_len; /* version 2 bits, option length 6 bits in units of 4 bytes */
	__u8 flags;
	__be16 protocol_be;
	__be32 vni_be; /* 24 bits and a reserved byte */
};

struct geneve_option {
	__be16 class_be;
	__u8 type;
	__u8 len; /* 5 bits, units of 4 bytes, without this header */
};

/* Forward: the endpoint that the ingress node chose. */
struct forward_body {
	__u8 addr[16];
	__be16 port_be;
	__be16 flags_be; /* 0; others are for later versions and ignored */
};

struct tunnel {
	struct udphdr udp;
	struct geneve geneve;
	struct geneve_option option;
	struct forward_body body; /* forward only */
};
_Static_assert(sizeof(struct tunnel) == 40, "tunnel");

#define RETURN_LEN (sizeof(struct tunnel) - sizeof(struct forward_body))
#define FORWARD_LEN sizeof(struct tunnel)

/*
 * Mark of a packet that our programs redirect to a device, so that the egress program there knows it. The
 * kernel clears the mark of a packet that leaves another network namespace: a pod cannot set it.
 */
#define MARK_OURS 0x62656570

/*
 * Mark of a copy that stands for one fragment of a packet too long for its way out: the egress program cuts
 * the piece out whose number is in the low bits.
 */
#define MARK_PIECE 0x62656500
#define PIECE_MASK 0x0f

/* Mark of a copy that stands for one datagram of a UDP GSO packet, whose number is in the low bits. */
#define MARK_SEGMENT 0x62656600
#define SEGMENT_MASK 0xff
