/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Invariant: heap[pos[s]] == s for each pending slot s, and no child comes before its parent. */
#include "evq.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

int sim_evq_init(struct sim_evq *q, unsigned int n_slots)
{
	*q = (struct sim_evq){.n_slots = n_slots};
	q->at = malloc(n_slots * sizeof(*q->at));
	q->heap = malloc(n_slots * sizeof(*q->heap));
	q->pos = malloc(n_slots * sizeof(*q->pos));
	if (!q->at || !q->heap || !q->pos) {
		sim_evq_fini(q);
		return -ENOMEM;
	}
	for (unsigned int i = 0; i < n_slots; i++)
		q->at[i] = SIM_NEVER;
	return 0;
}

void sim_evq_fini(struct sim_evq *q)
{
	free(q->at);
	free(q->heap);
	free(q->pos);
	*q = (struct sim_evq){0};
}

static bool before(const struct sim_evq *q, uint32_t a, uint32_t b)
{
	return q->at[a] != q->at[b] ? q->at[a] < q->at[b] : a < b;
}

static void put(struct sim_evq *q, unsigned int i, uint32_t slot)
{
	q->heap[i] = slot;
	q->pos[slot] = i;
}

static void sift_up(struct sim_evq *q, unsigned int i, uint32_t slot)
{
	while (i) {
		unsigned int up = (i - 1) / 2;

		if (!before(q, slot, q->heap[up]))
			break;
		put(q, i, q->heap[up]);
		i = up;
	}
	put(q, i, slot);
}

static void sift_down(struct sim_evq *q, unsigned int i, uint32_t slot)
{
	for (;;) {
		unsigned int down = 2 * i + 1;

		if (down >= q->n)
			break;
		if (down + 1 < q->n && before(q, q->heap[down + 1], q->heap[down]))
			down++;
		if (!before(q, q->heap[down], slot))
			break;
		put(q, i, q->heap[down]);
		i = down;
	}
	put(q, i, slot);
}

static void take_out(struct sim_evq *q, uint32_t slot)
{
	unsigned int i = q->pos[slot];
	uint32_t last = q->heap[--q->n];

	q->at[slot] = SIM_NEVER;
	if (last == slot)
		return;
	sift_down(q, i, last);
	sift_up(q, q->pos[last], last);
}

void sim_evq_set(struct sim_evq *q, uint32_t slot, uint64_t at_ns)
{
	uint64_t was = q->at[slot];

	if (was == at_ns)
		return;
	if (at_ns == SIM_NEVER) {
		take_out(q, slot);
		return;
	}
	q->at[slot] = at_ns;
	if (was == SIM_NEVER)
		sift_up(q, q->n++, slot);
	else if (at_ns < was)
		sift_up(q, q->pos[slot], slot);
	else
		sift_down(q, q->pos[slot], slot);
}
