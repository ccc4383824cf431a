/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_PROXY_TARGET_H
#define PEP_PROXY_TARGET_H

/*
 * How many bytes one direction of a flow may hold between its legs: enough to keep the sending leg
 * busy until the other end's answer to an opened window is there, and no more.
 *
 *	target = rate of the sending leg x (gain x round trip of the reading leg + PEP_TARGET_SLACK)
 *
 * and two round trips on top while the reading leg loses (HOLE_PERCENT).
 *
 * The rate is known only while bytes wait for the sending leg. A direction whose bytes do not wait
 * queues nothing: its target grows until they do, or until it needs no bound any more. Pure
 * arithmetic: the caller tells what happened and when, and applies the result.
 */

#include <stdbool.h>
#include <stdint.h>

/*
 * What the legs' round trip leaves out: the other end, the scheduler and we ourselves take that
 * long to do our part. A queue that lasts for so long is nobody's trouble.
 */
#define PEP_TARGET_SLACK_US 20000u

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
	uint64_t since_ns, since_bytes; /* start of the interval, what was delivered by then */
	uint64_t waiting_since_ns, waiting_ns;
	uint64_t grown_ns;
	uint64_t fast_rate, slow_rate; /* bytes/s: highest of the last round trips, of seconds */
	uint32_t rtt_us;               /* of the reading leg; 0: not known yet */
	uint32_t hole_us;              /* left of the time that a hole is reckoned with */
	uint32_t interval_us;
	uint32_t want_bytes; /* before the budget; 0: bytes do not wait */
	uint32_t last_bytes; /* the target when bytes waited last; 0: they never did */
	uint32_t bytes;      /* the target; UINT32_MAX: needs no bound */
};

void pep_budget_init(struct pep_budget *budget, uint64_t bytes);

/** A direction that needs no bound so far. */
void pep_target_init(struct pep_target *t, uint64_t now_ns);

/** Starts anew at @bytes: bytes begin to wait. */
void pep_target_start(struct pep_target *t, uint32_t bytes, uint64_t delivered_bytes,
		      uint64_t now_ns);

/** Gives the direction's share of the budget back. */
void pep_target_fini(struct pep_target *t, struct pep_budget *budget);

/** Bytes wait for the sending leg from now on, or (@waiting false) none does. May be repeated. */
static inline void pep_target_waiting(struct pep_target *t, bool waiting, uint64_t now_ns)
{
	if (waiting && !t->waiting_since_ns) {
		t->waiting_since_ns = now_ns;
	} else if (!waiting && t->waiting_since_ns) {
		t->waiting_ns += now_ns - t->waiting_since_ns;
		t->waiting_since_ns = 0;
	}
}

/** Whether it is time for pep_target_update(). */
static inline bool pep_target_due(const struct pep_target *t, uint64_t now_ns)
{
	return now_ns - t->since_ns >= (uint64_t)t->interval_us * 1000u;
}

/** What was seen of the legs at the end of an interval. */
struct pep_target_seen {
	uint64_t delivered_bytes; /* to the sending leg's other end, since the start of the flow */
	uint32_t rtt_us;          /* of the reading leg, 0 when unknown */
	bool dry;                 /* the sending leg has nothing to send */
	bool hole;                /* the reading leg got bytes behind missing ones */
};

/** Ends an interval. */
void pep_target_update(struct pep_target *t, struct pep_budget *budget,
		       const struct pep_target_conf *conf, const struct pep_target_seen *seen,
		       uint64_t now_ns);

#endif
