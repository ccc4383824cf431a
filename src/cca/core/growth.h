/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_CCA_CORE_GROWTH_H
#define PEP_CCA_CORE_GROWTH_H

/* Window growth in congestion avoidance: Reno's packet per round, and CUBIC's curve (RFC 9438). */

#include "cca/core/bwe_params.h"

#define PEP_CUBIC_C_SHIFT 10U        /* C = 410/1024 packets/s^3, RFC 9438's 0.4 */
#define PEP_CUBIC_C       410U       /* (tcp_cubic.c: bic_scale 41 x 10) */
#define PEP_CUBIC_T_SHIFT 10U        /* time in 1/1024 s */
#define PEP_CUBIC_T_MAX   (1U << 17) /* 1/1024 s: 128 s, where the curve is beyond any window */
#define PEP_CUBIC_W_MAX   (1U << 22) /* packets; keeps the argument of the root in 64 bits */
#define PEP_CUBIC_MIN_CNT 2U         /* ACKed packets per packet of growth: 1.5 times a round */
#define PEP_CUBIC_FLAT    100U       /* per window, growth on the plateau: 1 % a round */

#define PEP_CUBE_ROOT_STEPS 6

struct pep_growth {
	uint64_t epoch_us; /* when this curve began; 0: not begun */
	uint32_t last_max; /* packets; window of the last cut */
	uint32_t origin;   /* packets; where the curve is flat */
	uint32_t k;        /* 1/1024 s from the epoch to there */
	uint32_t acked;    /* packets acked and not yet turned into growth */
};

/** Number of the highest bit set plus one; 0 for 0. clang 14 has no builtin for it in BPF. */
PEP_CORE uint32_t pep_bit_length(uint64_t x)
{
	uint32_t n = 0;

	for (uint32_t step = 32; step; step >>= 1) {
		if (x >> step) {
			x >>= step;
			n += step;
		}
	}
	return n + (uint32_t)x;
}

/** Largest r with r^3 <= @x, for @x < 2^63. */
PEP_CORE uint32_t pep_cube_root(uint64_t x)
{
	uint64_t r = 1ULL << ((pep_bit_length(x) + 2) / 3);

	if (!x)
		return 0;
	/* From above and less than twice too large, Newton's method is there in six steps. */
	for (int i = 0; i < PEP_CUBE_ROOT_STEPS; i++)
		r = (2 * r + x / (r * r)) / 3;
	if (r * r * r > x)
		r--;
	return (uint32_t)r;
}

/** The window was cut from @from to @to packets: a new curve begins. */
PEP_CORE void pep_growth_cut(struct pep_growth *g, uint32_t from)
{
	/* A window smaller than last time makes room for others (RFC 9438, 4.7). */
	g->last_max =
		from < g->last_max ? (uint32_t)(((uint64_t)from * (1024 + 717)) / 2048) : from;
	g->epoch_us = 0;
	g->acked = 0;
}

PEP_CORE void pep_growth_begin(struct pep_growth *g, uint64_t now_us, uint32_t cwnd)
{
	uint32_t gap = g->last_max > cwnd ? pep_min32(g->last_max - cwnd, PEP_CUBIC_W_MAX) : 0;

	g->epoch_us = pep_max64(now_us, 1);
	g->origin = pep_max32(g->last_max, cwnd);
	g->k = gap ? pep_cube_root(((uint64_t)gap << (PEP_CUBIC_C_SHIFT + 3 * PEP_CUBIC_T_SHIFT)) /
				   PEP_CUBIC_C)
		   : 0;
}

/** Packets that must be acked for one packet of growth. */
PEP_CORE uint32_t pep_cubic_count(struct pep_growth *g, uint64_t now_us, uint32_t min_rtt_us,
				  uint32_t cwnd)
{
	uint64_t t, off, delta, target;

	if (!g->epoch_us)
		pep_growth_begin(g, now_us, cwnd);
	t = pep_elapsed_us(now_us, g->epoch_us);
	if (min_rtt_us != PEP_RTT_NONE)
		t += min_rtt_us; /* the window a round ahead */
	t = pep_min64((t << PEP_CUBIC_T_SHIFT) / PEP_USEC_PER_SEC, PEP_CUBIC_T_MAX);

	/* off < 2^21 and its cube < 2^63 only without C; so two shifts. */
	off = pep_min64(t > g->k ? t - g->k : g->k - t, PEP_CUBIC_T_MAX);
	delta = ((off * off * off) >> (3 * PEP_CUBIC_T_SHIFT - PEP_CUBIC_C_SHIFT)) * PEP_CUBIC_C >>
		(2 * PEP_CUBIC_C_SHIFT);
	if (t >= g->k)
		target = g->origin + delta;
	else
		target = g->origin > delta ? g->origin - delta : 0;
	if (target <= cwnd)
		return pep_sat32((uint64_t)cwnd * PEP_CUBIC_FLAT);
	return pep_max32(cwnd / pep_sat32(target - cwnd), PEP_CUBIC_MIN_CNT);
}

/** The window after @acked more packets were acked above the threshold. */
PEP_CORE uint32_t pep_growth_avoid(struct pep_growth *g, const struct pep_bwe_params *p,
				   uint64_t now_us, uint32_t min_rtt_us, uint32_t cwnd,
				   uint32_t acked)
{
	uint32_t count = pep_max32(cwnd, 1), steps;

	if (p->growth == PEP_GROWTH_CUBIC)
		count = pep_min32(count, pep_cubic_count(g, now_us, min_rtt_us, cwnd));
	count = pep_max32(count, 1);
	g->acked = pep_sat32((uint64_t)g->acked + acked);
	steps = g->acked / count;
	g->acked -= steps * count;
	return pep_sat32((uint64_t)cwnd + steps);
}

#endif
