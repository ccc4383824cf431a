/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_BASE_ATTRIBUTION_H
#define PEP_BASE_ATTRIBUTION_H

/*
 * What held a direction of a flow back during an interval. Pure arithmetic on what the relay
 * counted and on TCP_INFO of both legs before and after; doc/METRICS.md tells the reasoning at
 * length.
 *
 * Data wait somewhere or nowhere. Do they wait for the sending leg, that leg limits: its peer's
 * window (receiver) or its path. Do they wait in the reading leg's socket, or did our own window or
 * the memory cap stop the sender, the proxy limits. If they wait nowhere, the other end either has
 * nothing to send (application), which shows as silence longer than a round trip or as segments
 * that are not full, or its path brings them no faster.
 */

#include "base/stats.h"

/**
 * Counted by the relay, one per direction, over the current interval. Set up with
 * pep_attribution_init(); times are CLOCK_MONOTONIC (the event loop's cached time will do).
 */
struct pep_attribution_relay {
	uint64_t since_ns; /* start of the interval */
	uint64_t bytes_in, bytes_out;
	uint64_t last_read_ns; /* of the last read that gave bytes */
	uint64_t idle_gap_ns;  /* silence longer than this is idleness; set by each sample */
	uint64_t idle_ns;      /* such silences */
	uint64_t blocked_since_ns, blocked_ns;
	uint64_t capped_since_ns, capped_ns;
	uint64_t total_in; /* bytes read since the start of the flow */
	uint32_t bursts;   /* reads after a pause of more than a tenth of idle_gap_ns */
};

/** Starts the first interval. */
void pep_attribution_init(struct pep_attribution_relay *relay, uint64_t now_ns);

/** @bytes (> 0) were read from the reading leg. */
static inline void pep_attribution_read(struct pep_attribution_relay *relay, uint64_t now_ns,
					uint64_t bytes)
{
	uint64_t gap = now_ns - relay->last_read_ns;

	if (gap > relay->idle_gap_ns / 10) {
		relay->bursts++;
		if (gap > relay->idle_gap_ns)
			relay->idle_ns += relay->last_read_ns > relay->since_ns
						  ? gap
						  : now_ns - relay->since_ns;
	}
	relay->last_read_ns = now_ns;
	relay->bytes_in += bytes;
	relay->total_in += bytes;
}

/** @bytes (> 0) were taken by the sending leg. */
static inline void pep_attribution_written(struct pep_attribution_relay *relay, uint64_t bytes)
{
	relay->bytes_out += bytes;
}

/** The relay holds bytes that the sending leg did not take (EAGAIN). Repeating it is harmless. */
static inline void pep_attribution_blocked(struct pep_attribution_relay *relay, uint64_t now_ns)
{
	if (!relay->blocked_since_ns)
		relay->blocked_since_ns = now_ns;
}

/** The relay holds nothing any more. Repeating it is harmless. */
static inline void pep_attribution_drained(struct pep_attribution_relay *relay, uint64_t now_ns)
{
	if (relay->blocked_since_ns) {
		relay->blocked_ns += now_ns - relay->blocked_since_ns;
		relay->blocked_since_ns = 0;
	}
}

/** Reading is stopped by the memory cap of all relays, or for want of a pipe or buffer. */
static inline void pep_attribution_capped(struct pep_attribution_relay *relay, uint64_t now_ns)
{
	if (!relay->capped_since_ns)
		relay->capped_since_ns = now_ns;
}

/** It goes on. */
static inline void pep_attribution_uncapped(struct pep_attribution_relay *relay, uint64_t now_ns)
{
	if (relay->capped_since_ns) {
		relay->capped_ns += now_ns - relay->capped_since_ns;
		relay->capped_since_ns = 0;
	}
}

/** One interval of one direction. */
struct pep_attribution_input {
	enum pep_direction direction;
	uint64_t interval_ns;
	uint64_t bytes_in;
	uint64_t blocked_ns;   /* the sending leg kept the relay waiting */
	uint64_t capped_ns;    /* the proxy did not read, though it could have sent */
	uint64_t idle_ns;      /* silences of the reading leg longer than a round trip */
	uint32_t bursts;       /* groups of reads */
	uint64_t unread_bytes; /* in the reading leg's socket at the end */
	uint64_t window_bytes; /* the reading leg's window can be at most this; 0: unknown */
	const struct pep_stats_tcp *reading_before, *reading_after;
	const struct pep_stats_tcp *sending_before, *sending_after;
};

/** The verdict. An interval in which nothing arrived and nothing waited is the application's. */
enum pep_limit pep_attribution_judge(const struct pep_attribution_input *input);

/**
 * Ends the relay's interval at @now_ns: fills the relay's part of *@ret and starts the next, whose
 * idleness is judged by the reading leg's round trip in @reading.
 */
void pep_attribution_take(struct pep_attribution_relay *relay, uint64_t now_ns,
			  const struct pep_stats_tcp *reading, struct pep_attribution_input *ret);

/**
 * The segment that a verdict speaks about: the path's own; the receiver's for `receiver`; the
 * sender's for `application`; the one that waits for us for `proxy`.
 */
enum pep_segment pep_attribution_segment(enum pep_limit limit, enum pep_direction direction);

static inline enum pep_segment pep_direction_reading(enum pep_direction direction)
{
	return direction == PEP_DIRECTION_DOWNLINK ? PEP_SEGMENT_WIRED : PEP_SEGMENT_WIRELESS;
}

static inline enum pep_segment pep_direction_sending(enum pep_direction direction)
{
	return direction == PEP_DIRECTION_DOWNLINK ? PEP_SEGMENT_WIRELESS : PEP_SEGMENT_WIRED;
}

#endif
