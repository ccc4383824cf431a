/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_CTL_RULES_NETLINK_H
#define PEP_CTL_RULES_NETLINK_H

/* One question to the netfilter netlink family, and its answers. */

#include <libmnl/libmnl.h>
#include <linux/netfilter/nfnetlink.h>

#define RULES_NETLINK_SIZE 4096 /* every message of ours fits */

/** Begins a message of @type in @buf, which is zeroed. */
struct nlmsghdr *rules_netlink_begin(void *buf, uint16_t type, uint16_t flags, uint8_t family,
				     uint16_t res_id);

/**
 * Sends @size bytes and hands each answer to @cb until all is acknowledged. Returns 0 or the
 * negative errno that the kernel gave.
 */
int rules_netlink_talk(const void *buf, size_t size, mnl_cb_t cb, void *data);

#endif
