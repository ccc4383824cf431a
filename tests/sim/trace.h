/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_SIM_TRACE_H
#define PEP_SIM_TRACE_H

/*
 * A capacity trace in Mahimahi's format: one line per chance to deliver one MTU, holding the time
 * in whole milliseconds, never decreasing. The trace starts again at its end.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define SIM_TRACE_CHANCE_BYTES 1500 /* what one line delivers */

struct sim_trace {
	uint32_t *ms; /* time of each chance */
	size_t n;
	uint32_t period_ms; /* the last line; > 0 */
};

/**
 * Reads @path. Messages ("FILE:LINE: what, what was expected") go to @errors. Returns 0 and fills
 * @ret (free with sim_trace_fini), or a negative errno and leaves @ret untouched.
 */
int sim_trace_load(const char *path, FILE *errors, struct sim_trace *ret);
void sim_trace_fini(struct sim_trace *t);

/** Mean capacity in bytes per second. */
double sim_trace_rate(const struct sim_trace *t);

#endif
