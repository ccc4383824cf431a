/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_SIM_PRNG_H
#define PEP_SIM_PRNG_H

/*
 * The simulator's own random numbers: the same seed gives the same run on every machine.
 *
 * The generator is xoshiro256++ (Blackman and Vigna, public domain), seeded through splitmix64.
 */

#include <stdbool.h>
#include <stdint.h>

struct sim_prng {
	uint64_t s[4];
};

static inline uint64_t sim_prng_splitmix(uint64_t *x)
{
	uint64_t z = (*x += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/** Starts stream number @stream of @seed: two streams of one seed are unrelated. */
static inline void sim_prng_seed(struct sim_prng *p, uint64_t seed, uint64_t stream)
{
	uint64_t x = seed;

	x = sim_prng_splitmix(&x) + stream;
	for (int i = 0; i < 4; i++)
		p->s[i] = sim_prng_splitmix(&x);
}

static inline uint64_t sim_prng_next(struct sim_prng *p)
{
	uint64_t *s = p->s, sum = s[0] + s[3], t = s[1] << 17;
	uint64_t out = ((sum << 23) | (sum >> 41)) + s[0];

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = (s[3] << 45) | (s[3] >> 19);
	return out;
}

/** Uniform in 0..@n-1; @n > 0. The bias is below n/2^32. */
static inline uint32_t sim_prng_below(struct sim_prng *p, uint32_t n)
{
	return (uint32_t)(((sim_prng_next(p) >> 32) * n) >> 32);
}

/** Uniform in 0..@ns-1 for long times; 0 when @ns is 0. */
static inline uint64_t sim_prng_below64(struct sim_prng *p, uint64_t ns)
{
	return ns ? sim_prng_next(p) % ns : 0;
}

/** A probability as the threshold that sim_prng_chance() compares with; @p is 0..1. */
static inline uint64_t sim_prng_threshold(double p)
{
	if (p >= 1.0)
		return UINT64_MAX;
	return p <= 0.0 ? 0 : (uint64_t)(p * 18446744073709551616.0);
}

static inline bool sim_prng_chance(struct sim_prng *p, uint64_t threshold)
{
	return threshold && sim_prng_next(p) <= threshold;
}

#endif
