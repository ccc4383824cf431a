/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_BASE_STATS_JSON_H
#define PEP_BASE_STATS_JSON_H

/* Flow records and the segment's header as JSON: one shape for the monitor and for edgepepctl. */

#include <jansson.h>

#include "base/stats_read.h"

/** Room for an address in text, IPv4-mapped shown as IPv4. */
#define PEP_STATS_ADDRESS_SIZE 46
const char *pep_stats_address(const struct in6_addr *addr, char text[PEP_STATS_ADDRESS_SIZE]);

/**
 * A new reference, or NULL when out of memory. @now_real_ns (CLOCK_REALTIME) gives a live flow's
 * age.
 */
json_t *pep_stats_flow_json(const struct pep_stats_flow *flow, const struct pep_stats_info *info,
			    uint64_t now_real_ns);

/** State, version, pid, times, limits and totals of the daemon; a new reference or NULL. */
json_t *pep_stats_status_json(const struct pep_stats_info *info,
			      const struct pep_stats_block *totals, uint64_t now_real_ns);

/** What a reader says when pep_stats_open(@path) gave @error: one line without newline. */
void pep_stats_explain(const char *path, int error, char *text, size_t size);

#endif
