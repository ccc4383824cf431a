/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_SIM_HIST_H
#define PEP_SIM_HIST_H

/*
 * A histogram of times with a relative error below 1/64, and the small statistics of the reports.
 */

#include <stddef.h>
#include <stdint.h>

#define SIM_HIST_SUB     64 /* steps within one power of two */
#define SIM_HIST_BUCKETS (SIM_HIST_SUB * 40)

struct sim_hist {
	uint64_t n, sum;
	uint64_t count[SIM_HIST_BUCKETS];
};

/** Adds one value (ns; values beyond about 10 minutes count as the largest). */
static inline void sim_hist_add(struct sim_hist *h, uint64_t v)
{
	unsigned int shift, i;

	h->n++;
	h->sum += v;
	if (v < 2 * SIM_HIST_SUB) {
		h->count[v]++;
		return;
	}
	shift = 57u - (unsigned int)__builtin_clzll(v);
	i = SIM_HIST_SUB * shift + (unsigned int)(v >> shift);
	h->count[i < SIM_HIST_BUCKETS ? i : SIM_HIST_BUCKETS - 1]++;
}

/** The value below which the share @q (0..1) of all values lies; 0 when empty. */
uint64_t sim_hist_quantile(const struct sim_hist *h, double q);

double sim_hist_mean(const struct sim_hist *h);

/** Jain's fairness index of @n values: 1 when all are equal, 1/n when one has all; 1 if all are 0.
 */
double sim_jain(const double *x, size_t n);

/** The median of @n > 0 values; sorts @x in place. */
double sim_median(double *x, size_t n);

#endif
