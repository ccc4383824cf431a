/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_SIM_SCENARIO_H
#define PEP_SIM_SCENARIO_H

/*
 * A scenario as the user writes it: settings by name ("rate", "20Mbit/s"), from a preset and from
 * options, and the simulations made from it, one per control and seed.
 */

#include <stdbool.h>
#include <stdio.h>

#include "world.h"

#define SCENARIO_MAX_GROUPS 32
#define SCENARIO_MAX_CCAS   16
#define SCENARIO_MAX_PARAMS 32

/** Flows that are alike ("flow" setting). */
struct scenario_group {
	const struct sim_cca *cca; /* NULL: the control under test */
	unsigned int count;
	uint64_t rtt_ns; /* 0: the scenario's */
	uint64_t start_ns, stop_ns;
	uint64_t bytes, app_rate, app_chunk;
};

struct scenario {
	uint64_t rate; /* bytes/s; 0 when there is a trace */
	struct sim_step steps[SIM_LINK_MAX_STEPS];
	unsigned int n_steps;
	struct sim_trace trace;
	uint64_t rtt_ns, bdp_rtt_ns; /* bdp_rtt 0: mean of the flows */
	double buffer_bdp;           /* the buffer in one of three units, 0: not this one */
	uint32_t buffer_packets;
	uint64_t buffer_bytes;
	double loss, burst_start, burst_end, burst_loss;
	uint64_t jitter_ns, ack_jitter_ns;
	const struct sim_cca *ccas[SCENARIO_MAX_CCAS]; /* under test */
	unsigned int n_ccas, n_flows;
	struct scenario_group groups[SCENARIO_MAX_GROUPS];
	unsigned int n_groups; /* 0: n_flows alike */
	struct scenario_param {
		char cca[16], key[32], value[32];
	} params[SCENARIO_MAX_PARAMS];
	unsigned int n_params;
	uint64_t stagger_ns; /* flows start at random within this time */
	uint32_t ack_every;
	uint64_t ack_delay_ns;
	uint64_t duration_ns, warmup_ns, series_ns;
	uint64_t seed;
	unsigned int n_seeds;
};

/** The defaults: 20 Mbit/s, 40 ms, 1 BDP, one flow. */
void scenario_init(struct scenario *s);
void scenario_fini(struct scenario *s);

/**
 * Sets @name to @value. Returns 0, -ENOENT (no such setting) or -EINVAL; what is wrong and what was
 * expected is then told on @errors in one line.
 */
int scenario_set(struct scenario *s, const char *name, const char *value, FILE *errors);

/** Takes the settings of preset @name. Same errors. */
int scenario_preset(struct scenario *s, const char *name, FILE *errors);

/** Prints the presets. */
void scenario_print_presets(FILE *out);

/** Whether the settings fit together; a line on @errors if not. Returns 0 or -EINVAL. */
int scenario_check(const struct scenario *s, FILE *errors);

/** One simulation of a scenario; @conf borrows from it. */
struct scenario_run {
	struct sim_conf conf;
	void *cca_conf[SCENARIO_MAX_GROUPS + 1];
};

/** The simulation of control @cca under test with @seed. Returns 0 and fills @ret, or -ENOMEM. */
int scenario_run_init(struct scenario_run *ret, const struct scenario *s, const struct sim_cca *cca,
		      uint64_t seed);
void scenario_run_fini(struct scenario_run *run);

/** Time with unit us, ms, s or min, in ns. Returns 0 or -EINVAL. */
int scenario_parse_time(const char *text, uint64_t *ret_ns);

/** A share in percent, "0.1%", as 0..1. Returns 0 or -EINVAL. */
int scenario_parse_share(const char *text, double *ret);

#endif
