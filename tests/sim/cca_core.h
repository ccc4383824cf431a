/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_SIM_CCA_CORE_H
#define PEP_SIM_CCA_CORE_H

/*
 * The controls of src/cca/core, as the simulated sender calls them. What the BPF programs do for
 * the kernel, cca_bbr.c and cca_bwe.c do here: fill the socket and the sample, apply the answer.
 */

#include "cca.h"
#include "cca/core/types.h"

extern const struct sim_cca sim_cca_bbr, sim_cca_bbr_acd, sim_cca_bbr_a, sim_cca_bbr_d;
extern const struct sim_cca sim_cca_bwe;

/** One parameter of a table in the core. */
struct sim_cca_param {
	const char *key, *unit, *help;
	uint32_t min, max;
	size_t offset; /* of an uint32_t in the parameters */
};

/** Sets @key in @conf by @table (ended by a NULL key). Returns 0, -ENOENT or -EINVAL. */
int sim_cca_param_set(const struct sim_cca_param *table, void *conf, const char *key,
		      const char *value);

/** Prints the table's keys, ranges and meaning. */
void sim_cca_param_print(const struct sim_cca_param *table, FILE *out);

/** The sender as the core sees it. */
struct pep_cc_sock sim_cca_sock(struct sim_tcp *tp);
struct pep_cc_rate sim_cca_rate(const struct sim_rate *rs);
void sim_cca_apply(struct sim_tcp *tp, const struct pep_cc_out *out);

#endif
