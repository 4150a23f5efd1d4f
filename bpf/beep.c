/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The one compilation unit: one ELF object, one set of Go types.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "prog_ingress.c"
#include "prog_egress.c"

char __license[] SEC("license") = "Dual BSD/GPL";

/* An enum reaches the Go types only by way of BTF, and BTF only by way of a variable. */
volatile const enum direction abi_direction = DIR_INGRESS;
volatile const enum drop_reason abi_drop_reason = DROP_UNUSED;
volatile const enum flow_flag abi_flow_flag = FLOW_REPLIED;
volatile const enum flow_kind abi_flow_kind = FLOW_FORWARD;
volatile const enum front_flag abi_front_flag = FRONT_CLIENT_IP_AFFINITY;
volatile const enum traffic abi_traffic = TRAFFIC_CLIENT;
