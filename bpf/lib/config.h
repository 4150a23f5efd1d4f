/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Constants of one loaded program instance, set before load: the verifier removes what they switch off.
 */
#pragma once

#include <linux/types.h>

#include "format.h"

/* Bytes of link-layer header on the uplink that this instance is attached to: 14, or 0 on L3-only devices. */
volatile const __u32 cfg_l2_len = 14;
/* UDP destination port of the tunnel, host order. */
volatile const __u16 cfg_geneve_port = 6081;
/* Virtual network identifier of the tunnel, 24 bits, host order. */
volatile const __u32 cfg_geneve_vni = 48873;
/* 1: bpf_l4_csum_replace knows BPF_F_IPV6, which keeps CHECKSUM_COMPLETE right (Linux 6.16 and stable). */
volatile const __u8 cfg_csum_ipv6 = 0;

/*
 * 1: an egress instance before another one, which uses the maps of an older start: that one must know our packets
 * too, and would take what comes through the tunnel for forged without its mark.
 */
volatile const __u8 cfg_bridge = 0;

/* 1: a new flow through a front without endpoints is answered with an ICMP error, not dropped in silence. */
volatile const __u8 cfg_reject = 0;

/* 1: each packet that is forwarded is counted in TRAFFIC; 0: only those that `beep trace` asks for, see counted(). */
volatile const __u8 cfg_count_packets = 0;

/*
 * 1: an uplink may hand the kernel's own packet to the next node, not bytes on a wire (veth, virtio). What the kernel
 * notes at encapsulation would then be noted there too, which no helper takes off again: the packet could be neither
 * refused nor wrapped once more.
 */
volatile const __u8 cfg_handover = 0;
