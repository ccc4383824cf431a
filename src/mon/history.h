/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_MON_HISTORY_H
#define PEP_MON_HISTORY_H

/* The last ten minutes of both segments, one sample a second, in memory fixed at creation. */

#include <jansson.h>

#include "base/stats_read.h"

#define PEP_HISTORY_SECONDS 600

struct pep_history;

/** NULL when out of memory. */
struct pep_history *pep_history_new(void);
void pep_history_free(struct pep_history *history);

struct pep_history_tick {
	uint64_t mono_ns, real_ns;
	const struct pep_stats_block *totals;
	uint32_t min_rtt_us[PEP_SEGMENT_COUNT_]; /* least of the live legs, 0: none */
};

/** Adds a sample made of the difference to the last one. The first after a gap has no rates. */
void pep_history_push(struct pep_history *history, const struct pep_history_tick *tick);

/** Adds a sample that says that there was no daemon; what follows is not compared with the past. */
void pep_history_push_gap(struct pep_history *history, uint64_t real_ns);

/**
 * The last @seconds (1..PEP_HISTORY_SECONDS) as columns: {"time": [...], "wireless": {...}, ...},
 * null where there is no value. A new reference, or NULL when out of memory.
 */
json_t *pep_history_json(const struct pep_history *history, unsigned int seconds);

/**
 * What the segments did on average from @seconds ago, or from when the daemon was first watched,
 * until
 * @now (totals NULL: there is no daemon); with totals since the daemon's start. A new reference, or
 * NULL when out of memory.
 */
json_t *pep_history_segments_json(const struct pep_history *history,
				  const struct pep_history_tick *now, unsigned int seconds);

#endif
