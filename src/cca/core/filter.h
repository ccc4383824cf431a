/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_CCA_CORE_FILTER_H
#define PEP_CCA_CORE_FILTER_H

/* A windowed maximum in constant space, and the standing RTT that our loss verdicts rest on. */

#include "cca/core/types.h"

/** The best, second and third best sample of a sliding window (Kathleen Nichols' algorithm). */
struct pep_max_filter {
	uint32_t t[3];
	uint32_t v[3];
};

PEP_CORE void pep_max_filter_reset(struct pep_max_filter *f, uint32_t t, uint32_t v)
{
	f->t[0] = f->t[1] = f->t[2] = t;
	f->v[0] = f->v[1] = f->v[2] = v;
}

PEP_CORE uint32_t pep_max_filter_get(const struct pep_max_filter *f)
{
	return f->v[0];
}

/** Lets the older samples go when they have left the window or gone stale inside it. */
PEP_CORE void pep_max_filter_age(struct pep_max_filter *f, uint32_t window, uint32_t t, uint32_t v)
{
	uint32_t age = t - f->t[0];

	if (age > window) {
		f->t[0] = f->t[1];
		f->v[0] = f->v[1];
		f->t[1] = f->t[2];
		f->v[1] = f->v[2];
		f->t[2] = t;
		f->v[2] = v;
		if (t - f->t[0] > window) {
			f->t[0] = f->t[1];
			f->v[0] = f->v[1];
			f->t[1] = f->t[2];
			f->v[1] = f->v[2];
		}
	} else if (f->t[1] == f->t[0] && age > window / 4) {
		f->t[1] = f->t[2] = t;
		f->v[1] = f->v[2] = v;
	} else if (f->t[2] == f->t[1] && age > window / 2) {
		f->t[2] = t;
		f->v[2] = v;
	}
}

/** Takes sample @v at time @t; @window and @t share any unit, @t wraps. */
PEP_CORE void pep_max_filter_add(struct pep_max_filter *f, uint32_t window, uint32_t t, uint32_t v)
{
	if (v >= f->v[0] || t - f->t[2] > window) {
		pep_max_filter_reset(f, t, v);
		return;
	}
	if (v >= f->v[1]) {
		f->t[1] = f->t[2] = t;
		f->v[1] = f->v[2] = v;
	} else if (v >= f->v[2]) {
		f->t[2] = t;
		f->v[2] = v;
	}
	pep_max_filter_age(f, window, t, v);
}

/*
 * Standing RTT: the least RTT of this and the previous round. Radio schedulers and HARQ lift single
 * samples; a queue that stands lifts the least of two rounds too.
 */
struct pep_standing_rtt {
	uint32_t now_us;    /* least RTT of this round, PEP_RTT_NONE before its first sample */
	uint32_t before_us; /* least RTT of the round before */
	uint16_t n_now;     /* samples in this round, saturated */
	uint16_t n_before;
};

PEP_CORE void pep_standing_rtt_reset(struct pep_standing_rtt *s)
{
	s->now_us = s->before_us = PEP_RTT_NONE;
	s->n_now = s->n_before = 0;
}

/** Call at the start of a round, before that round's first sample. */
PEP_CORE void pep_standing_rtt_round(struct pep_standing_rtt *s)
{
	s->before_us = s->now_us;
	s->n_before = s->n_now;
	s->now_us = PEP_RTT_NONE;
	s->n_now = 0;
}

PEP_CORE void pep_standing_rtt_add(struct pep_standing_rtt *s, uint32_t rtt_us)
{
	s->now_us = pep_min32(s->now_us, rtt_us);
	if (s->n_now < UINT16_MAX)
		s->n_now++;
}

/** PEP_RTT_NONE without any sample. */
PEP_CORE uint32_t pep_standing_rtt_get(const struct pep_standing_rtt *s)
{
	return pep_min32(s->now_us, s->before_us);
}

PEP_CORE uint32_t pep_standing_rtt_samples(const struct pep_standing_rtt *s)
{
	return (uint32_t)s->n_now + s->n_before;
}

#endif
