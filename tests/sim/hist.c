/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Invariant: the counts of all buckets add up to n. */
#include "hist.h"

#include <stdlib.h>

/* The middle of bucket @i: the buckets below 2 * SIM_HIST_SUB are exact. */
static uint64_t value_of(unsigned int i)
{
	unsigned int shift;

	if (i < 2 * SIM_HIST_SUB)
		return i;
	shift = i / SIM_HIST_SUB - 1;
	return ((uint64_t)(i - SIM_HIST_SUB * shift) << shift) + (1ull << shift) / 2;
}

uint64_t sim_hist_quantile(const struct sim_hist *h, double q)
{
	uint64_t seen = 0, want = (uint64_t)(q * (double)h->n);

	if (!h->n)
		return 0;
	if (want >= h->n)
		want = h->n - 1;
	for (unsigned int i = 0; i < SIM_HIST_BUCKETS; i++) {
		seen += h->count[i];
		if (seen > want)
			return value_of(i);
	}
	return 0;
}

double sim_hist_mean(const struct sim_hist *h)
{
	return h->n ? (double)h->sum / (double)h->n : 0.0;
}

double sim_jain(const double *x, size_t n)
{
	double sum = 0, squares = 0;

	for (size_t i = 0; i < n; i++) {
		sum += x[i];
		squares += x[i] * x[i];
	}
	return squares > 0 ? sum * sum / ((double)n * squares) : 1.0;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double sim_median(double *x, size_t n)
{
	qsort(x, n, sizeof(*x), compare);
	return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}
