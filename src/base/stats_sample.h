/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_BASE_STATS_SAMPLE_H
#define PEP_BASE_STATS_SAMPLE_H

/*
 * One sample of one flow: both legs' TCP_INFO and the relay's counts go in; the record, the totals
 * made of TCP_INFO (sent and retransmitted bytes, RTT, limited time) and the attribution come out.
 * Worker thread; once a second per flow, and once more just before pep_stats_flow_release().
 */

#include "base/attribution.h"

struct pep_stats_sample {
	uint64_t now_ns;            /* CLOCK_MONOTONIC */
	int fd[PEP_SEGMENT_COUNT_]; /* sockets of the legs; -1: not open */
	struct {
		struct pep_attribution_relay *relay; /* its interval ends here; not NULL */
		uint64_t bytes; /* written to the sending leg since the start */
		uint64_t held_bytes;
		uint64_t target_bytes;
		uint64_t window_bytes; /* TCP_WINDOW_CLAMP of the reading leg, 0: none */
	} path[PEP_DIRECTION_COUNT_];
};

/** @flow may be NULL: then only the relays' intervals end. */
void pep_stats_flow_sample(struct pep_stats_worker *w, struct pep_stats_flow *flow,
			   const struct pep_stats_sample *sample);

#endif
