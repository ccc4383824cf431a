/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_MON_FLOWSET_H
#define PEP_MON_FLOWSET_H

/*
 * The flows as they were at the last tick, and the last ten minutes of those that are watched: the
 * fastest ones and those that somebody asked for, PEP_FLOWSET_WATCHED at most.
 */

#include <jansson.h>

#include "base/stats_read.h"

#define PEP_FLOWSET_WATCHED 256
#define PEP_FLOWSET_SECONDS 600

struct pep_flowset;

/** NULL when out of memory. */
struct pep_flowset *pep_flowset_new(void);
void pep_flowset_free(struct pep_flowset *set);

/** Copies the live flows of @reader. Returns 0 or -ENOMEM, with the old flows in place then. */
int pep_flowset_tick(struct pep_flowset *set, const struct pep_stats_reader *reader,
		     uint64_t real_ns);

/** No daemon: no flows, no histories. */
void pep_flowset_clear(struct pep_flowset *set);

size_t pep_flowset_count(const struct pep_flowset *set);

/** The least min_rtt of the live legs of @segment, 0 when there is none. */
uint32_t pep_flowset_min_rtt_us(const struct pep_flowset *set, enum pep_segment segment);

enum pep_flowset_sort {
	PEP_FLOWSET_SORT_RATE, /* both directions together */
	PEP_FLOWSET_SORT_BYTES,
	PEP_FLOWSET_SORT_AGE,
	PEP_FLOWSET_SORT_QUEUED, /* in the relay and in both legs' sockets */
	PEP_FLOWSET_SORT_WIRELESS_RTT,
	PEP_FLOWSET_SORT_WIRED_RTT,
	PEP_FLOWSET_SORT_RETRANSMITTED,
	PEP_FLOWSET_SORT_COUNT_,
};

const char *pep_flowset_sort_name(enum pep_flowset_sort sort);

struct pep_flowset_query {
	enum pep_flowset_sort sort;
	bool ascending;
	unsigned int limit;
	bool by_client;
	struct in6_addr client; /* IPv4 as v4-mapped */
};

/** {"total": matching flows, "flows": [...]}; a new reference, or NULL when out of memory. */
json_t *pep_flowset_json(struct pep_flowset *set, const struct pep_stats_info *info,
			 const struct pep_flowset_query *query, uint64_t real_ns);

/**
 * The history of flow @id as columns, null when it is not watched; from now on it is. A new
 * reference, or NULL when out of memory.
 */
json_t *pep_flowset_history_json(struct pep_flowset *set, uint64_t id);

#endif
