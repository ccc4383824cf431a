/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_CCA_CORE_BWE_ESTIMATE_H
#define PEP_CCA_CORE_BWE_ESTIMATE_H

/*
 * Four estimators of the bandwidth a connection gets, all in packets per microsecond x 2^24.
 *
 * Filters keep eight more bits: at a sample every 100 us and a time constant of 500 ms a filter
 * without them would stop up to three percent short of its input.
 */

#include "cca/core/bwe_params.h"
#include "cca/core/filter.h"

#define PEP_FINE_SHIFT      8U                 /* extra bits of a filter */
#define PEP_SAMPLE_MAX      ((1ULL << 34) - 1) /* of one ACK; keeps the Tustin sum below 2^64 */
#define PEP_WESTWOOD_OLD    9U                 /* Westwood+: 9/10 old, ... */
#define PEP_WESTWOOD_NEW    1U                 /* ... 1/10 new */
#define PEP_WESTWOOD_SUM    10U
#define PEP_TUSTIN_IDLE_DIV 2U /* without ACKs for tau / this, samples of zero are put in ... */
#define PEP_TUSTIN_IDLE_MAX 4U /* ... so many at most: a gap counts as at most 2 tau */

struct pep_estimate {
	uint64_t fine;             /* the filtered estimate, 2^8 finer */
	uint64_t last_us;          /* time of the last sample; 0: none yet */
	uint64_t last_sample;      /* tustin: the sample before */
	struct pep_max_filter max; /* clock in rounds */
	uint32_t acked;            /* packets since last_us */
};

PEP_CORE void pep_estimate_reset(struct pep_estimate *e, uint64_t now_us)
{
	*e = (struct pep_estimate){.last_us = now_us};
}

PEP_CORE uint32_t pep_estimate_bw(const struct pep_estimate *e, uint32_t estimator)
{
	return estimator == PEP_ESTIMATOR_MAX ? pep_max_filter_get(&e->max)
					      : pep_sat32(e->fine >> PEP_FINE_SHIFT);
}

/* One step of B' = ((2 tau - D) B + D (b + b_before)) / (2 tau + D), 1 <= D <= 2 tau. */
PEP_CORE void pep_tustin_step(struct pep_estimate *e, uint64_t tau2_us, uint64_t gap_us,
			      uint64_t sample)
{
	sample = pep_min64(sample, PEP_SAMPLE_MAX);
	e->fine = ((tau2_us - gap_us) * e->fine +
		   ((gap_us * (sample + e->last_sample)) << PEP_FINE_SHIFT)) /
		  (tau2_us + gap_us);
	e->fine = pep_min64(e->fine, (uint64_t)UINT32_MAX << PEP_FINE_SHIFT);
	e->last_sample = sample;
}

PEP_CORE void pep_tustin_add(struct pep_estimate *e, uint32_t tau_ms, uint32_t acked,
			     uint64_t gap_us)
{
	uint64_t tau_us = (uint64_t)tau_ms * PEP_USEC_PER_MSEC;
	uint64_t idle_us = tau_us / PEP_TUSTIN_IDLE_DIV, sample;

	for (uint32_t i = 0; i < PEP_TUSTIN_IDLE_MAX && gap_us > idle_us; i++) {
		pep_tustin_step(e, 2 * tau_us, idle_us, 0);
		gap_us -= idle_us;
	}
	gap_us = pep_max64(pep_min64(gap_us, idle_us), 1);
	sample = ((uint64_t)acked << PEP_BW_SHIFT) / gap_us;
	if (!e->fine) { /* the first sample is the best guess */
		e->fine = pep_min64(sample, UINT32_MAX) << PEP_FINE_SHIFT;
		e->last_sample = pep_min64(sample, PEP_SAMPLE_MAX);
		return;
	}
	pep_tustin_step(e, 2 * tau_us, gap_us, sample);
}

PEP_CORE void pep_westwood_add(struct pep_estimate *e, uint32_t acked, uint64_t gap_us)
{
	uint64_t sample = (uint64_t)pep_bw(acked, gap_us) << PEP_FINE_SHIFT;

	if (!e->fine)
		e->fine = sample;
	else
		e->fine =
			(PEP_WESTWOOD_OLD * e->fine + PEP_WESTWOOD_NEW * sample) / PEP_WESTWOOD_SUM;
}

/* R' = (RTT R + L) / (gap + RTT), the gap being that since the last estimate. */
PEP_CORE void pep_tsw_add(struct pep_estimate *e, uint32_t acked, uint64_t gap_us, uint32_t rtt_us)
{
	/* fine < 2^40 and rtt < 2^23 (8 s) keep the product in 64 bits. */
	uint64_t rtt = pep_min64(pep_max64(rtt_us, 1), (1ULL << 23) - 1);
	uint64_t packets = (uint64_t)pep_min32(acked, (1U << 24) - 1)
			   << (PEP_BW_SHIFT + PEP_FINE_SHIFT);

	if (!e->fine)
		e->fine = packets / gap_us;
	else
		e->fine = (rtt * e->fine + packets) / (gap_us + rtt);
	e->fine = pep_min64(e->fine, (uint64_t)UINT32_MAX << PEP_FINE_SHIFT);
}

/**
 * Takes an ACK. @round is the count of rounds, @round_start whether one began with this ACK. A
 * sender without data measures itself: such samples count only when they raise the estimate.
 */
PEP_CORE void pep_estimate_add(struct pep_estimate *e, const struct pep_bwe_params *p,
			       const struct pep_cc_sock *sk, const struct pep_cc_rate *rs,
			       uint32_t round, bool round_start)
{
	uint64_t gap_us = pep_elapsed_us(sk->delivered_us, e->last_us);
	uint32_t bw = pep_estimate_bw(e, p->estimator);
	bool per_ack = p->estimator == PEP_ESTIMATOR_TUSTIN;

	if (p->estimator == PEP_ESTIMATOR_MAX) {
		uint32_t sample;

		if (rs->delivered < 0 || rs->interval_us <= 0)
			return;
		sample = pep_bw((uint32_t)rs->delivered, (uint64_t)rs->interval_us);
		if (!rs->app_limited || sample >= bw)
			pep_max_filter_add(&e->max, p->bw_window_rounds, round, sample);
		return;
	}

	e->acked = pep_sat32((uint64_t)e->acked + rs->acked_sacked);
	if (!gap_us || !e->acked || !(per_ack || round_start))
		return;
	if (!rs->app_limited || pep_bw(e->acked, gap_us) >= bw) {
		if (per_ack)
			pep_tustin_add(e, p->tau_ms, e->acked, gap_us);
		else if (p->estimator == PEP_ESTIMATOR_WESTWOOD)
			pep_westwood_add(e, e->acked, gap_us);
		else
			pep_tsw_add(e, e->acked, gap_us, sk->srtt_us);
	}
	e->acked = 0;
	e->last_us = sk->delivered_us;
}

#endif
