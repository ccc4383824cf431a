/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_PROXY_TARGET_H
#define PEP_PROXY_TARGET_H

/*
 * How many bytes one direction of a flow may hold between its legs: enough to keep the sending leg
 * busy until the other end's answer to an opened window is there, and no more.
 *
 *	target = gain x rate of the sending leg x round trip of the reading leg
 *
 * The rate is known only while bytes wait for the sending leg. A direction whose bytes do not wait
 * queues nothing, and its target grows until they do. Pure arithmetic: the caller tells what
 * happened and when, and applies the result.
 */

#include <stdbool.h>
#include <stdint.h>

struct pep_target_conf {
	uint32_t min_bytes, max_bytes; /* 1 <= min <= max */
	uint32_t gain_percent;
};

/** The worker's budget for the targets of all directions whose bytes wait. */
struct pep_budget {
	uint64_t bytes; /* in all */
	uint64_t wanted[33];
	uint32_t count[33]; /* by the bits of what is wanted */
	uint32_t level;     /* most that one direction gets; UINT32_MAX: no pressure */
};

struct pep_target {
	uint64_t since_ns, since_bytes; /* start of the interval, and what had been sent by then */
	uint64_t waiting_since_ns, waiting_ns;
	uint64_t fast_rate,
		slow_rate; /* bytes/s: highest of the last round trips, of some seconds */
	uint32_t rtt_us;   /* of the reading leg; 0: not known yet */
	uint32_t interval_us;
	uint32_t want_bytes; /* before the budget; 0: bytes do not wait */
	uint32_t bytes;      /* the target */
};

void pep_budget_init(struct pep_budget *budget, uint64_t bytes);

void pep_target_init(struct pep_target *t, const struct pep_target_conf *conf, uint64_t now_ns);
/** Starts anew at @bytes: the target of a direction whose bytes have begun to wait. */
void pep_target_start(struct pep_target *t, const struct pep_target_conf *conf, uint32_t bytes,
		      uint64_t sent_bytes, uint64_t now_ns);

/** Gives the direction's share of the budget back. */
void pep_target_fini(struct pep_target *t, struct pep_budget *budget);

/** Bytes wait for the sending leg from now on, or (@waiting false) none does. May be repeated. */
void pep_target_waiting(struct pep_target *t, bool waiting, uint64_t now_ns);

/** Whether it is time for pep_target_update(). */
static inline bool pep_target_due(const struct pep_target *t, uint64_t now_ns)
{
	return now_ns - t->since_ns >= (uint64_t)t->interval_us * 1000u;
}

/**
 * Ends an interval. @sent_bytes: taken by the sending leg since the start of the flow; @rtt_us: of
 * the reading leg, 0 when unknown.
 *
 * Returns whether t->bytes has changed.
 */
bool pep_target_update(struct pep_target *t, struct pep_budget *budget,
		       const struct pep_target_conf *conf, uint64_t sent_bytes, uint32_t rtt_us,
		       uint64_t now_ns);

#endif
