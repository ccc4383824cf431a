/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_SIM_EVQ_H
#define PEP_SIM_EVQ_H

/*
 * What happens next: an indexed binary heap with one place per event source ("slot").
 *
 * A source has at most one event pending. Packets and ACKs in flight are kept in order by their
 * flows, and only the first of each is here, so the heap stays as small as the number of flows.
 * Two events at the same time are taken in slot order, which keeps runs repeatable.
 */

#include <stdint.h>

#define SIM_NEVER UINT64_MAX

struct sim_evq {
	unsigned int n_slots, n;
	uint64_t *at;   /* by slot: time in ns, SIM_NEVER when not pending */
	uint32_t *heap; /* slots, ordered */
	uint32_t *pos;  /* by slot: place in heap, valid while pending */
};

/** Makes an empty queue of @n_slots slots. Returns 0 or -ENOMEM. */
int sim_evq_init(struct sim_evq *q, unsigned int n_slots);
void sim_evq_fini(struct sim_evq *q);

/** Moves the event of @slot to @at_ns; SIM_NEVER removes it. */
void sim_evq_set(struct sim_evq *q, uint32_t slot, uint64_t at_ns);

static inline uint64_t sim_evq_at(const struct sim_evq *q, uint32_t slot)
{
	return q->at[slot];
}

/** The slot of the first event; the queue must not be empty. */
static inline uint32_t sim_evq_first(const struct sim_evq *q)
{
	return q->heap[0];
}

#endif
