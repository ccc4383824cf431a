/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_LINKEMU_RNG_H
#define PEP_LINKEMU_RNG_H

/* A small random generator of our own (splitmix64), so that a seed means the same on every host. */

#include <stdbool.h>
#include <stdint.h>

struct pep_rng {
	uint64_t state;
};

static inline void pep_rng_seed(struct pep_rng *rng, uint64_t seed)
{
	rng->state = seed;
}

static inline uint64_t pep_rng_next(struct pep_rng *rng)
{
	uint64_t z = (rng->state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/** A number in [0, 1). */
static inline double pep_rng_unit(struct pep_rng *rng)
{
	return (double)(pep_rng_next(rng) >> 11) * 0x1.0p-53;
}

/** True with probability @p; draws a number only when the answer is open. */
static inline bool pep_rng_chance(struct pep_rng *rng, double p)
{
	if (p <= 0)
		return false;
	return p >= 1 || pep_rng_unit(rng) < p;
}

/**
 * About normal with mean 0 and deviation 1: a sum of twelve uniform numbers, which is bounded by
 * +-6 and needs no libm.
 */
static inline double pep_rng_normal(struct pep_rng *rng)
{
	double sum = -6;
	int i;

	for (i = 0; i < 12; i++)
		sum += pep_rng_unit(rng);
	return sum;
}

#endif
