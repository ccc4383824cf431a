/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The state is opened once and kept until the end, so that workers may read it at any time. */
#include "proxy/beliefs.h"

#include "cca/state.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

struct pep_beliefs {
	_Atomic(struct pep_cca_state *) state;
};

int pep_beliefs_new(struct pep_beliefs **ret)
{
	struct pep_beliefs *beliefs = calloc(1, sizeof(*beliefs));

	if (!beliefs)
		return -ENOMEM;
	pep_beliefs_refresh(beliefs);
	*ret = beliefs;
	return 0;
}

void pep_beliefs_free(struct pep_beliefs *beliefs)
{
	if (!beliefs)
		return;
	pep_cca_state_free(atomic_load(&beliefs->state));
	free(beliefs);
}

void pep_beliefs_refresh(struct pep_beliefs *beliefs)
{
	struct pep_cca_state *state;

	if (!atomic_load(&beliefs->state) && pep_cca_state_open(NULL, &state) == 0)
		atomic_store(&beliefs->state, state);
}

static uint32_t clamp_u32(uint64_t value)
{
	return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

int pep_beliefs_read(const struct pep_beliefs *beliefs, int fd, struct pep_stats_belief *ret)
{
	const struct pep_cca_state *state =
		atomic_load_explicit(&beliefs->state, memory_order_acquire);
	struct pep_cca_view view;
	int err;

	if (!state)
		return -ENOENT;
	err = pep_cca_state_read(state, fd, &view);
	if (err)
		return err;
	*ret = (struct pep_stats_belief){
		.bandwidth = view.bandwidth,
		.min_rtt_us = view.min_rtt_us,
		.pacing_gain_256 = view.pacing_gain,
		.cwnd_gain_256 = view.cwnd_gain,
		.congestions = clamp_u32(view.congestive_losses),
		.cuts = clamp_u32(view.cuts),
		.mode = (uint8_t)view.kind,
		.valid = 1,
	};
	snprintf(ret->mode_name, sizeof(ret->mode_name), "%s", view.mode);
	return 0;
}
