/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_CCA_CORE_BBR_PACING_H
#define PEP_CCA_CORE_BBR_PACING_H

/*
 * RTT-adjusted pacing: flows that share a path overestimate its bandwidth together, and a queue is
 * all that tells them. Each slows down by what the RTT is above that of the path. The strict form
 * takes the least RTT for the path's; the safe form adds what jitter does to it, which the few
 * packets of ProbeRTT show: where jitter keeps the order of packets, dense traffic never sees the
 * RTT that single packets see.
 */

#include "cca/core/bbr_mod.h"

/* -- jitter -- */

PEP_CORE void pep_sparse_rtt_start(struct pep_sparse_rtt *s)
{
	s->least_us = s->low_us[0] = s->low_us[1] = PEP_RTT_NONE;
	s->round_us = 0;
	s->rounds = 0;
}

/** An RTT sample while only the packets of ProbeRTT are in flight. */
PEP_CORE void pep_sparse_rtt_add(struct pep_sparse_rtt *s, uint32_t rtt_us, bool round_start)
{
	if (round_start && s->round_us) {
		s->rounds++;
		if (s->round_us < s->low_us[0]) {
			s->low_us[1] = s->low_us[0];
			s->low_us[0] = s->round_us;
		} else {
			s->low_us[1] = pep_min32(s->low_us[1], s->round_us);
		}
		s->round_us = 0;
	}
	s->least_us = pep_min32(s->least_us, rtt_us);
	s->round_us = pep_max32(s->round_us, rtt_us);
}

/** The end of ProbeRTT. Few rounds only correct what is known, more so when they show less. */
PEP_CORE void pep_sparse_rtt_end(struct pep_sparse_rtt *s)
{
	uint32_t most_us = s->low_us[1] == PEP_RTT_NONE ? s->low_us[0] : s->low_us[1];
	uint64_t jitter_us, known_us = s->jitter_us;

	if (!s->rounds)
		return;
	jitter_us = most_us > s->least_us
			    ? (uint64_t)PEP_BBR_SPARSE_FACTOR * (most_us - s->least_us)
			    : 0;
	if (s->jitter_us != PEP_RTT_NONE && s->rounds < PEP_BBR_SPARSE_ROUNDS)
		jitter_us = jitter_us < known_us ? (known_us + 3 * jitter_us) / 4
						 : (known_us + jitter_us) / 2;
	s->jitter_us = (uint32_t)pep_min64(jitter_us, PEP_RTT_NONE - 1);
}

/** Whether ProbeRTT, over by its length, has to go on: jitter that is not known yet is measured. */
PEP_CORE bool pep_bbr_jitter_wanted(const struct pep_bbr *b, const struct pep_bbr_params *p,
				    const struct pep_cc_sock *sk)
{
	const struct pep_sparse_rtt *s = &b->sparse;

	if (p->rtt_pacing != PEP_RTT_PACING_SAFE || s->jitter_us != PEP_RTT_NONE)
		return false;
	return s->rounds < PEP_BBR_SPARSE_ROUNDS &&
	       (!s->rounds ||
		pep_elapsed_us(sk->now_us, b->probe_rtt_done_us) <= PEP_BBR_SPARSE_LONG_US);
}

/* RTTs look like a queue's or jitter's, and which of both is not known. */
PEP_CORE bool pep_bbr_jitter_needs_check(const struct pep_bbr *b, const struct pep_cc_sock *sk)
{
	uint32_t rtt_us = pep_standing_rtt_get(&b->rtt);

	return b->sparse.jitter_us == PEP_RTT_NONE && !b->jitter_checked &&
	       rtt_us != PEP_RTT_NONE &&
	       pep_elapsed_us(sk->now_us, b->busy.since_us) > PEP_BBR_BASE_CHECK_US &&
	       rtt_us > (uint64_t)b->min_rtt_us + (b->min_rtt_us >> PEP_BBR_BASE_CHECK_SHIFT);
}

/*
 * A queue that stood is suddenly gone: another flow is in ProbeRTT. Those whose own is near join
 * in. Otherwise the one that goes on measures the others' bandwidth as its own, and the queue
 * overflows when they come back; and each would see the others' queue in its ProbeRTT.
 */
PEP_CORE bool pep_bbr_may_join(const struct pep_bbr *b, const struct pep_bbr_params *p,
			       const struct pep_cc_sock *sk, const struct pep_cc_rate *rs)
{
	uint64_t window_us = (uint64_t)p->min_rtt_window_ms * PEP_USEC_PER_MSEC;
	uint64_t path_us = (uint64_t)b->min_rtt_us + b->sparse.jitter_us;

	if (b->sparse.jitter_us > b->min_rtt_us >> PEP_BBR_JITTER_MUCH_SHIFT || rs->rtt_us < 0 ||
	    b->rtt.before_us == PEP_RTT_NONE)
		return false;
	return pep_elapsed_us(sk->now_us, b->min_rtt_stamp_us) >
		       window_us - (window_us >> PEP_BBR_JOIN_SHIFT) &&
	       b->rtt.before_us > path_us + (b->min_rtt_us >> PEP_BBR_JOIN_QUEUE_SHIFT) &&
	       (uint64_t)rs->rtt_us <= path_us + (b->min_rtt_us >> PEP_BBR_JOIN_GONE_SHIFT);
}

/** Whether ProbeRTT is to come before its time. */
PEP_CORE bool pep_bbr_probe_rtt_early(const struct pep_bbr *b, const struct pep_bbr_params *p,
				      const struct pep_cc_sock *sk, const struct pep_cc_rate *rs)
{
	return p->rtt_pacing == PEP_RTT_PACING_SAFE && p->probe_rtt_ms &&
	       b->mode == PEP_BBR_PROBE_BW && b->min_rtt_us != PEP_RTT_NONE &&
	       (pep_bbr_jitter_needs_check(b, sk) || pep_bbr_may_join(b, p, sk, rs));
}

/* -- pacing -- */

/** What the RTT may be, us, and by which factor (1/256) pacing may slow down at most. */
struct pep_bbr_room {
	uint64_t allowed_us;
	uint32_t rtt_us;
	uint32_t floor;
};

PEP_CORE struct pep_bbr_room pep_bbr_safe_room(const struct pep_bbr *b,
					       const struct pep_cc_sock *sk)
{
	uint32_t jitter_us = b->sparse.jitter_us;
	struct pep_bbr_room r = {b->min_rtt_us, sk->srtt_us, PEP_BBR_STRICT_FLOOR};

	if (jitter_us == PEP_RTT_NONE) {
		/* Not jitter, please: only what two rounds have in common. */
		r.rtt_us = pep_standing_rtt_get(&b->rtt);
		r.allowed_us += b->min_rtt_us >> PEP_BBR_NEW_SLACK_SHIFT;
		r.floor = PEP_BBR_JITTER_FLOOR;
		return r;
	}
	r.allowed_us += (uint64_t)jitter_us + (b->min_rtt_us >> PEP_BBR_SAFE_SLACK_SHIFT);
	/*
	 * A rate that is lowered without a queue to blame must find back: with the floor, asking
	 * for more still is more. No queue can be told from jitter beyond the RTT itself.
	 */
	if (jitter_us > b->min_rtt_us)
		r.floor = PEP_GAIN_UNIT;
	else if (jitter_us > b->min_rtt_us >> PEP_BBR_JITTER_MUCH_SHIFT)
		r.floor = PEP_BBR_JITTER_FLOOR;
	return r;
}

/** Factor (1/256, at most 256) by which pacing gives way to a queue. */
PEP_CORE uint32_t pep_bbr_rtt_factor(const struct pep_bbr *b, const struct pep_bbr_params *p,
				     const struct pep_cc_sock *sk)
{
	struct pep_bbr_room r = {b->min_rtt_us, sk->srtt_us, PEP_BBR_STRICT_FLOOR};

	if ((b->mode != PEP_BBR_DRAIN && b->mode != PEP_BBR_PROBE_BW) ||
	    b->min_rtt_us == PEP_RTT_NONE)
		return PEP_GAIN_UNIT;
	if (p->rtt_pacing != PEP_RTT_PACING_STRICT) {
		if (pep_standing_rtt_samples(&b->rtt) < PEP_BBR_PACING_MIN_SAMPLES)
			return PEP_GAIN_UNIT;
		r = pep_bbr_safe_room(b, sk);
		/* What is in flight has no part in the queue: the RTT is older news. */
		if (sk->inflight <= pep_bw_packets(pep_bbr_bw(b), r.allowed_us))
			return PEP_GAIN_UNIT;
	}
	if (r.allowed_us >= r.rtt_us)
		return PEP_GAIN_UNIT;
	return pep_max32((uint32_t)(r.allowed_us * PEP_GAIN_UNIT / r.rtt_us),
			 p->rtt_pacing_floor ? p->rtt_pacing_floor : r.floor);
}

/** The pacing gain to use: the phase's, lowered after a cut and by a standing queue. */
PEP_CORE uint32_t pep_bbr_applied_gain(const struct pep_bbr *b, const struct pep_bbr_params *p,
				       const struct pep_cc_sock *sk, uint32_t bw)
{
	uint32_t gain = b->pacing_gain, slow;

	if (b->cut_round && p->cut_gain != PEP_GAIN_UNIT)
		return p->cut_gain;
	if (p->rtt_pacing == PEP_RTT_PACING_OFF)
		return gain;
	slow = (gain * pep_bbr_rtt_factor(b, p, sk)) >> PEP_GAIN_SHIFT;
	/* Never so slow that the ACK clock stops: four packets per unloaded round trip. */
	return pep_bbr_bdp(b, bw, slow) < PEP_MIN_CWND ? gain : slow;
}

/**
 * Window that jitter calls for, packets: what the path holds at the greatest RTT that ProbeRTT saw.
 * With jitter of several RTTs, two bandwidth-delay products of the least RTT are less than that,
 * and the rate would follow the window down.
 */
PEP_CORE uint32_t pep_bbr_jitter_cwnd(const struct pep_bbr *b, const struct pep_bbr_params *p)
{
	if (p->rtt_pacing != PEP_RTT_PACING_SAFE || b->mode != PEP_BBR_PROBE_BW ||
	    b->sparse.jitter_us == PEP_RTT_NONE)
		return 0;
	return pep_bw_packets(pep_bbr_bw(b), (uint64_t)b->min_rtt_us +
						     b->sparse.jitter_us / PEP_BBR_SPARSE_FACTOR);
}

/* -- other flows -- */

/*
 * A queue that stands when the one of our own probing is gone is other flows'. Their pauses look
 * like bandwidth that came back, so that no search begins until some cycles were without.
 */
PEP_CORE void pep_bbr_watch_others(struct pep_bbr *b, const struct pep_bbr_params *p,
				   const struct pep_cc_sock *sk)
{
	uint32_t base_us = pep_bbr_base_rtt(b), rtt_us = pep_standing_rtt_get(&b->rtt);

	if (!p->regain)
		return;
	if (b->mode == PEP_BBR_PROBE_RTT)
		b->quiet_cycles = 0;
	if (b->mode == PEP_BBR_PROBE_BW && b->cycle_idx >= PEP_BBR_QUIET_PHASE &&
	    rtt_us != PEP_RTT_NONE &&
	    rtt_us > (uint64_t)base_us + (base_us >> PEP_BBR_QUIET_RISE_SHIFT) +
			     PEP_BBR_QUIET_BURST_US + pep_bbr_jitter_us(b, sk))
		b->quiet_cycles = 0;
}

#endif
