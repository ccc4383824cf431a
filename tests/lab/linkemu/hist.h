/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_LINKEMU_HIST_H
#define PEP_LINKEMU_HIST_H

/* A log-linear histogram of times: 32 steps for each power of two, so a percentile is within 3 %.
 */

#include <stdint.h>

#define PEP_HIST_SUB_BITS 5
#define PEP_HIST_SLOTS    ((64 - PEP_HIST_SUB_BITS + 1) << PEP_HIST_SUB_BITS)

struct pep_hist {
	uint64_t slots[PEP_HIST_SLOTS];
	uint64_t count, sum, max; /* sum and max in the unit of the values */
};

void pep_hist_add(struct pep_hist *hist, uint64_t value);

/** The value that a share @q (0..1) of all values does not exceed; 0 when there is none. */
uint64_t pep_hist_quantile(const struct pep_hist *hist, double q);

static inline double pep_hist_mean(const struct pep_hist *hist)
{
	return hist->count ? (double)hist->sum / (double)hist->count : 0;
}

#endif
