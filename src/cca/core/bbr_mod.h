/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_CCA_CORE_BBR_MOD_H
#define PEP_CCA_CORE_BBR_MOD_H

/*
 * What the variants add to BBR's window: a verdict on losses (BBR-ACD, BBR-A). It is a parameter;
 * when off nothing here changes anything. Pacing that follows the RTT is in bbr_pacing.h.
 */

#include "cca/core/bbr_model.h"

PEP_CORE bool pep_bbr_uses_rtt(const struct pep_bbr_params *p)
{
	return p->verdict != PEP_VERDICT_OFF || p->rtt_pacing != PEP_RTT_PACING_OFF || p->regain;
}

/** How far a radio's jitter may lift even a standing RTT, us. */
PEP_CORE uint32_t pep_bbr_jitter_us(const struct pep_bbr *b, const struct pep_cc_sock *sk)
{
	return (uint32_t)pep_min64((uint64_t)PEP_BBR_JITTER_MDEV * sk->mdev_us,
				   b->min_rtt_us >> PEP_BBR_JITTER_CAP_SHIFT);
}

/** Whether @rtt_us is @ratio (1/256) times the least RTT, or more. */
PEP_CORE bool pep_bbr_rtt_above(const struct pep_bbr *b, uint32_t rtt_us, uint32_t ratio)
{
	return (uint64_t)rtt_us << PEP_GAIN_SHIFT >= (uint64_t)b->min_rtt_us * ratio;
}

/* Standing RTT well above the least RTT, in this and the previous round. */
PEP_CORE bool pep_bbr_rtt_risen(const struct pep_bbr *b, const struct pep_bbr_params *p,
				const struct pep_cc_sock *sk)
{
	uint32_t rise =
		pep_max32(pep_gain(b->min_rtt_us, p->verdict_rise), pep_bbr_jitter_us(b, sk));

	return pep_standing_rtt_get(&b->rtt) >= (uint64_t)b->min_rtt_us + rise;
}

/* Same RTT as the sample before, and above the least one: the published sign of a full queue. */
PEP_CORE bool pep_bbr_rtt_same(const struct pep_bbr *b, const struct pep_bbr_params *p,
			       uint32_t rtt_us)
{
	uint32_t tol = p->same_tol_us, last = b->last_rtt_us;

	if (rtt_us <= b->min_rtt_us || last == PEP_RTT_NONE)
		return false;
	if (p->verdict == PEP_VERDICT_AUTHOR)
		/* Unsigned on purpose: below the tolerance the authors' code never says "same". */
		return rtt_us >= last - tol && rtt_us <= last + tol;
	tol = pep_min32(tol, b->min_rtt_us >> PEP_BBR_SAME_TOL_SHIFT);
	return (rtt_us > last ? rtt_us - last : last - rtt_us) <= tol;
}

/** Takes the RTT of an ACK; call after the least RTT was updated with it. */
PEP_CORE void pep_bbr_observe_rtt(struct pep_bbr *b, const struct pep_bbr_params *p,
				  const struct pep_cc_sock *sk, const struct pep_cc_rate *rs)
{
	uint32_t rtt_us = (uint32_t)pep_min64((uint64_t)rs->rtt_us, PEP_RTT_NONE - 1);
	bool sign;

	if (!pep_bbr_uses_rtt(p) || rs->rtt_us < 0)
		return;
	pep_standing_rtt_add(&b->rtt, rtt_us);
	if (p->verdict == PEP_VERDICT_OFF)
		return;
	sign = p->verdict == PEP_VERDICT_STANDING ? pep_bbr_rtt_risen(b, p, sk)
						  : pep_bbr_rtt_same(b, p, rtt_us);
	if (!sign)
		b->rise_count = 0;
	else if (b->rise_count < UINT8_MAX)
		b->rise_count++;
	b->last_rtt_us = rtt_us;
}

/*
 * Whether this round has lost far more than rounds usually do. A standing RTT alone convicts every
 * radio loss of a path with jitter, and a window cut for it is a rate cut there.
 */
PEP_CORE bool pep_bbr_losses_burst(const struct pep_bbr *b, const struct pep_bbr_params *p,
				   const struct pep_cc_sock *sk)
{
	uint32_t lost = sk->lost - b->usual.lost;
	uint32_t sent = sk->delivered - b->usual.delivered + lost + sk->inflight;
	uint64_t usual = ((uint64_t)sent * b->usual.share * p->verdict_burst) >> 16;

	return !p->verdict_burst ||
	       lost >= usual + PEP_BBR_BURST_MIN + (sent >> PEP_BBR_BURST_SHIFT);
}

/** Whether losses at this moment come from a full queue. */
PEP_CORE bool pep_bbr_congested(const struct pep_bbr *b, const struct pep_bbr_params *p,
				const struct pep_cc_sock *sk)
{
	if (b->min_rtt_us == PEP_RTT_NONE)
		return false;
	switch ((enum pep_verdict)p->verdict) {
	case PEP_VERDICT_STANDING:
		return pep_bbr_losses_burst(b, p, sk) &&
		       (b->rise_count >= p->verdict_need ||
			pep_bbr_rtt_above(b, pep_standing_rtt_get(&b->rtt), p->verdict_ratio));
	case PEP_VERDICT_PAPER:
		/* n equal RTTs in a row are n - 1 repetitions. */
		return b->rise_count + 1U >= p->verdict_need ||
		       (b->last_rtt_us != PEP_RTT_NONE &&
			pep_bbr_rtt_above(b, b->last_rtt_us, p->verdict_ratio));
	case PEP_VERDICT_AUTHOR:
		/* "More than", where the paper says "at least". */
		return b->rise_count + 1U >= p->verdict_need ||
		       (b->last_rtt_us != PEP_RTT_NONE &&
			(uint64_t)b->last_rtt_us << PEP_GAIN_SHIFT >
				(uint64_t)b->min_rtt_us * p->verdict_ratio);
	case PEP_VERDICT_OFF:
		break;
	}
	return false;
}

/** Half of @cwnd, at most one bandwidth-delay product, at least four packets. */
PEP_CORE uint32_t pep_bbr_halved(const struct pep_bbr *b, const struct pep_cc_sock *sk,
				 const struct pep_cc_out *out, uint32_t cwnd)
{
	uint32_t target = pep_bbr_target(b, sk, out, pep_bbr_bw(b), PEP_GAIN_UNIT);

	return pep_max32(pep_min32(cwnd / 2, target), PEP_MIN_CWND);
}

/** The window allowed now, at most @target: after a cut the queue's part comes back step by step.
 */
PEP_CORE uint32_t pep_bbr_capped(struct pep_bbr *b, uint32_t target)
{
	uint32_t bdp, cap;

	if (!b->cwnd_cap)
		return target;
	bdp = pep_bbr_bdp(b, pep_bbr_bw(b), PEP_GAIN_UNIT);
	cap = pep_max32(b->cwnd_cap, bdp);
	if (cap < target)
		return cap;
	b->cwnd_cap = 0;
	return target;
}

/** RTT of the path without a queue that stands: as busy rounds see it, once there were any. */
PEP_CORE uint32_t pep_bbr_base_rtt(const struct pep_bbr *b)
{
	uint32_t busy_us = pep_min32(b->busy.now_us, b->busy.before_us);

	return busy_us == PEP_RTT_NONE ? b->min_rtt_us : busy_us;
}

#endif
