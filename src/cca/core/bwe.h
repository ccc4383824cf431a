/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_CCA_CORE_BWE_H
#define PEP_CCA_CORE_BWE_H

/*
 * Loss response from a bandwidth estimate: a loss sets the window to what the path was measured to
 * hold (estimate x least RTT), once per episode, in place of halving it. On a radio link with an
 * empty queue that leaves the window as it is; on a full queue it takes just the queue away.
 *
 * Three additions keep it going where there is at least one loss per round trip, which the plain
 * scheme does not survive: slow start ends at a queue, not at a radio loss; the window grows during
 * loss recovery while no queue stands; and the default estimator is the best of ten rounds instead
 * of a lagging mean.
 */

#include "cca/core/bwe_estimate.h"
#include "cca/core/growth.h"

#define PEP_BWE_QUEUE_SHIFT  3U /* a queue stands when the RTT is up by 1/8 of the least RTT ... */
#define PEP_BWE_JITTER_MDEV  2U /* ... and by two mean deviations, counted up to ... */
#define PEP_BWE_JITTER_SHIFT 1U /* ... half of the least RTT (cca.md 5.4) */
#define PEP_BWE_MIN_SAMPLES  8U /* RTT samples that must show the queue which ends slow start */
#define PEP_BWE_HEAVY_LOSS   8U /* a round that loses 1/8 is congestive, queue or not (policers) */
#define PEP_BWE_FIRST_RTT_US 1000U /* us; believed until an RTT is known */

struct pep_bwe {
	struct pep_estimate est;
	struct pep_growth growth;
	struct pep_standing_rtt rtt;
	uint32_t min_rtt_us;
	uint32_t rounds;
	uint32_t next_rtt_delivered; /* sock.delivered that ends the round */
	uint32_t round_delivered;    /* sock.delivered and ... */
	uint32_t round_lost;         /* ... sock.lost when the round began */
	uint32_t prior_cwnd;         /* packets; before the last loss episode */

	/* For observers. */
	uint32_t congestive_losses;
	uint32_t radio_losses;
	uint32_t cuts;

	uint8_t prev_ca_state;
	bool round_start;
	bool min_rtt_stale; /* after a timeout the least RTT is measured anew */
	bool timed_out;     /* a timeout waits for its answer */
	bool episode_cut;   /* this loss episode has had its cut */
	bool in_start;      /* below the threshold */
};

PEP_CORE uint32_t pep_bwe_bw(const struct pep_bwe *w, const struct pep_bwe_params *p)
{
	return pep_estimate_bw(&w->est, p->estimator);
}

/** What the path holds by the estimate, packets; at least four. */
PEP_CORE uint32_t pep_bwe_hold(const struct pep_bwe *w, const struct pep_bwe_params *p)
{
	if (w->min_rtt_us == PEP_RTT_NONE)
		return PEP_MIN_CWND;
	return pep_max32(pep_bw_packets_gain(pep_bwe_bw(w, p), w->min_rtt_us, p->loss_gain),
			 PEP_MIN_CWND);
}

PEP_CORE bool pep_bwe_queue_stands(const struct pep_bwe *w, const struct pep_cc_sock *sk)
{
	uint64_t jitter = pep_min64((uint64_t)PEP_BWE_JITTER_MDEV * sk->mdev_us,
				    w->min_rtt_us >> PEP_BWE_JITTER_SHIFT);
	uint32_t rtt_us = pep_standing_rtt_get(&w->rtt);

	if (rtt_us == PEP_RTT_NONE || w->min_rtt_us == PEP_RTT_NONE)
		return false;
	return rtt_us >= w->min_rtt_us + pep_max64(w->min_rtt_us >> PEP_BWE_QUEUE_SHIFT, jitter);
}

/* Whether this round loses a share that is not worth growing into. */
PEP_CORE bool pep_bwe_loses_much(const struct pep_bwe *w, const struct pep_cc_sock *sk)
{
	uint64_t lost = sk->lost - w->round_lost;

	/* A round has hardly begun until a window was delivered. */
	return lost * PEP_BWE_HEAVY_LOSS > pep_max32(sk->delivered - w->round_delivered, sk->cwnd);
}

PEP_CORE bool pep_bwe_loss_is_heavy(const struct pep_bwe *w, const struct pep_cc_sock *sk)
{
	/* A few packets are no rate. */
	return sk->lost - w->round_lost > PEP_MIN_CWND && pep_bwe_loses_much(w, sk);
}

PEP_CORE void pep_bwe_pace(const struct pep_bwe *w, const struct pep_bwe_params *p,
			   const struct pep_cc_sock *sk, struct pep_cc_out *out)
{
	uint32_t gain = w->in_start ? p->start_gain : p->pacing_gain;
	uint32_t rtt_us = sk->srtt_us ? sk->srtt_us : PEP_BWE_FIRST_RTT_US;

	out->pacing_rate =
		pep_min64(pep_bw_bytes(pep_bw(out->cwnd, rtt_us), sk->mss_bytes, gain, 0),
			  sk->max_pacing_rate);
}

PEP_CORE void pep_bwe_update_round(struct pep_bwe *w, const struct pep_cc_sock *sk,
				   const struct pep_cc_rate *rs)
{
	w->round_start =
		rs->delivered > 0 && pep_seq_reached(rs->prior_delivered, w->next_rtt_delivered);
	if (!w->round_start)
		return;
	w->rounds++;
	w->next_rtt_delivered = sk->delivered;
	pep_standing_rtt_round(&w->rtt);
}

PEP_CORE void pep_bwe_update_rtt(struct pep_bwe *w, const struct pep_cc_sock *sk,
				 const struct pep_cc_rate *rs)
{
	uint32_t rtt_us;

	if (rs->rtt_us < 0)
		return;
	rtt_us = (uint32_t)pep_min64((uint64_t)rs->rtt_us, PEP_RTT_NONE - 1);
	if (w->min_rtt_stale || rtt_us < w->min_rtt_us) {
		/* A timeout comes with a full queue as well: the path's RTT is not above what the
		 * kernel saw in the last minutes.
		 */
		w->min_rtt_us = pep_max32(pep_min32(rtt_us, sk->min_rtt_us), 1);
		w->min_rtt_stale = false;
	}
	pep_standing_rtt_add(&w->rtt, rtt_us);
}

/* Whether the losses of this episode are to be answered. */
PEP_CORE bool pep_bwe_must_cut(const struct pep_bwe *w, const struct pep_bwe_params *p,
			       const struct pep_cc_sock *sk)
{
	if (!p->start_through_loss || sk->cwnd >= sk->ssthresh || sk->ca_state == PEP_CA_CWR)
		return true;
	return pep_bwe_queue_stands(w, sk) || pep_bwe_loss_is_heavy(w, sk);
}

PEP_CORE void pep_bwe_cut(struct pep_bwe *w, const struct pep_bwe_params *p,
			  const struct pep_cc_sock *sk, struct pep_cc_out *out)
{
	uint32_t hold = pep_bwe_hold(w, p);

	w->episode_cut = true;
	if (pep_bwe_queue_stands(w, sk) || pep_bwe_loss_is_heavy(w, sk))
		w->congestive_losses++;
	else
		w->radio_losses++;
	/* A loss that takes nothing away does not end the curve: it would never get anywhere. */
	if (hold < out->cwnd) {
		w->cuts++;
		pep_growth_cut(&w->growth, out->cwnd);
	}
	out->ssthresh = hold;
	out->cwnd = pep_min32(out->cwnd, hold);
}

PEP_CORE void pep_bwe_recover(struct pep_bwe *w, const struct pep_bwe_params *p,
			      const struct pep_cc_sock *sk, struct pep_cc_out *out)
{
	bool reduced = sk->ca_state == PEP_CA_RECOVERY || sk->ca_state == PEP_CA_CWR;

	if (w->timed_out) {
		w->timed_out = false;
		out->ssthresh = pep_bwe_hold(w, p);
	}
	if (!reduced) {
		w->episode_cut = false;
		return;
	}
	/* An episode that goes on losing heavily has not been answered by one cut. */
	if (w->prev_ca_state != sk->ca_state || (w->round_start && pep_bwe_loss_is_heavy(w, sk)))
		w->episode_cut = false;
	if (!w->episode_cut && pep_bwe_must_cut(w, p, sk))
		pep_bwe_cut(w, p, sk, out);
	else if (w->prev_ca_state != sk->ca_state)
		w->radio_losses++;
}

PEP_CORE void pep_bwe_grow(struct pep_bwe *w, const struct pep_bwe_params *p,
			   const struct pep_cc_sock *sk, uint32_t acked, struct pep_cc_out *out)
{
	bool queue = pep_bwe_queue_stands(w, sk);

	if (!acked || !sk->cwnd_limited)
		return;
	if ((sk->ca_state == PEP_CA_RECOVERY || sk->ca_state == PEP_CA_CWR) &&
	    (!p->recovery_growth || queue || pep_bwe_loses_much(w, sk) ||
	     sk->ca_state == PEP_CA_CWR))
		return;
	if (out->cwnd < out->ssthresh) {
		if (p->start_exit && queue && sk->ca_state != PEP_CA_LOSS &&
		    pep_standing_rtt_samples(&w->rtt) >= PEP_BWE_MIN_SAMPLES) {
			out->ssthresh = out->cwnd;
			return;
		}
		out->cwnd = pep_min32(pep_sat32((uint64_t)out->cwnd + acked), out->ssthresh);
		return;
	}
	out->cwnd = pep_growth_avoid(&w->growth, p, sk->now_us, w->min_rtt_us, out->cwnd, acked);
}

/** init: @w need not be cleared before. */
PEP_CORE void pep_bwe_init(struct pep_bwe *w, const struct pep_bwe_params *p,
			   const struct pep_cc_sock *sk, struct pep_cc_out *out)
{
	*w = (struct pep_bwe){
		.min_rtt_us = sk->min_rtt_us,
		.next_rtt_delivered = sk->delivered,
		.round_delivered = sk->delivered,
		.round_lost = sk->lost,
		.in_start = true,
	};
	pep_estimate_reset(&w->est, sk->now_us);
	pep_standing_rtt_reset(&w->rtt);
	out->ssthresh = PEP_SSTHRESH_NONE;
	pep_bwe_pace(w, p, sk, out);
}

/** cong_control, first step: rounds, RTT and estimate. */
PEP_CORE void pep_bwe_ack_estimate(struct pep_bwe *w, const struct pep_bwe_params *p,
				   const struct pep_cc_sock *sk, const struct pep_cc_rate *rs)
{
	pep_bwe_update_round(w, sk, rs);
	pep_bwe_update_rtt(w, sk, rs);
	pep_estimate_add(&w->est, p, sk, rs, w->rounds, w->round_start);
}

/** cong_control, second step: window and pacing. */
PEP_CORE void pep_bwe_ack_send(struct pep_bwe *w, const struct pep_bwe_params *p,
			       const struct pep_cc_sock *sk, const struct pep_cc_rate *rs,
			       struct pep_cc_out *out)
{
	pep_bwe_recover(w, p, sk, out);
	pep_bwe_grow(w, p, sk, rs->acked_sacked, out);
	w->prev_ca_state = sk->ca_state;
	if (w->round_start) {
		w->round_delivered = sk->delivered;
		w->round_lost = sk->lost;
	}
	out->cwnd = pep_min32(out->cwnd, sk->cwnd_clamp);
	w->in_start = out->cwnd < out->ssthresh;
	pep_bwe_pace(w, p, sk, out);
}

/** cong_control: every ACK. */
PEP_CORE void pep_bwe_ack(struct pep_bwe *w, const struct pep_bwe_params *p,
			  const struct pep_cc_sock *sk, const struct pep_cc_rate *rs,
			  struct pep_cc_out *out)
{
	pep_bwe_ack_estimate(w, p, sk, rs);
	pep_bwe_ack_send(w, p, sk, rs, out);
}

/** ssthresh: entry to CWR, Recovery or Loss; the window itself is cut on the next ACK. */
PEP_CORE uint32_t pep_bwe_ssthresh(struct pep_bwe *w, const struct pep_bwe_params *p,
				   const struct pep_cc_sock *sk)
{
	w->prior_cwnd = sk->cwnd;
	return pep_bwe_must_cut(w, p, sk) ? pep_bwe_hold(w, p) : sk->ssthresh;
}

/** undo_cwnd: the loss was none; returns the window. */
PEP_CORE uint32_t pep_bwe_undo_cwnd(struct pep_bwe *w, const struct pep_cc_sock *sk)
{
	w->growth.epoch_us = 0;
	return pep_max32(sk->cwnd, w->prior_cwnd);
}

/** set_state: @state is the coming enum pep_ca_state. */
PEP_CORE void pep_bwe_set_state(struct pep_bwe *w, uint8_t state)
{
	if (state != PEP_CA_LOSS)
		return;
	w->min_rtt_stale = true;
	w->timed_out = true;
	w->prev_ca_state = PEP_CA_LOSS;
	w->congestive_losses++;
	w->cuts++;
	pep_growth_cut(&w->growth, w->prior_cwnd);
}

#endif
