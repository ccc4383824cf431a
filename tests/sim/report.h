/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_SIM_REPORT_H
#define PEP_SIM_REPORT_H

/* Prints results: as a table for people, as JSON, or as CSV. */

#include "scenario.h"

enum report_format {
	REPORT_FORMAT_TABLE,
	REPORT_FORMAT_JSON,
	REPORT_FORMAT_CSV,
};

struct report;

/** Returns 0 and stores a new report in @ret (report_finish frees it), or -ENOMEM. */
int report_new(enum report_format format, FILE *out, struct report **ret);

/** Adds one run. Returns 0 or -ENOMEM. */
int report_add(struct report *r, const char *cca, uint64_t seed, const struct sim_result *result,
	       const struct sim_world *world);

/** Prints what is left and frees. Returns 0 or -ENOMEM. */
int report_finish(struct report *r);

#endif
