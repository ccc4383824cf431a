/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_CCA_CORE_BBR_H
#define PEP_CCA_CORE_BBR_H

/*
 * The BBR family: one function per callback of a congestion control. The caller fills the socket
 * and the rate sample, prepares @out with pep_cc_out_init, and applies what changed in it.
 *
 * BBR version 1 follows Linux (net/ipv4/tcp_bbr.c as of 6.18); the variants are in bbr_mod.h and
 * bbr_pacing.h.
 */

#include "cca/core/bbr_pacing.h"

/* -- pacing -- */

PEP_CORE uint64_t pep_bbr_rate(const struct pep_bbr_params *p, const struct pep_cc_sock *sk,
			       uint32_t bw, uint32_t gain)
{
	return pep_min64(pep_bw_bytes(bw, sk->mss_bytes, gain, p->margin_ppm), sk->max_pacing_rate);
}

PEP_CORE void pep_bbr_pace_from_rtt(struct pep_bbr *b, const struct pep_bbr_params *p,
				    const struct pep_cc_sock *sk, struct pep_cc_out *out)
{
	uint32_t rtt_us = PEP_BBR_FIRST_RTT_US;

	if (sk->srtt_us) {
		rtt_us = sk->srtt_us;
		b->has_seen_rtt = true;
	}
	out->pacing_rate = pep_bbr_rate(p, sk, pep_bw(out->cwnd, rtt_us), p->startup_gain);
}

PEP_CORE void pep_bbr_pace(struct pep_bbr *b, const struct pep_bbr_params *p,
			   const struct pep_cc_sock *sk, struct pep_cc_out *out, uint32_t gain)
{
	uint64_t rate = pep_bbr_rate(p, sk, pep_bbr_bw(b), gain);

	b->applied_gain = (uint16_t)gain;
	if (!b->has_seen_rtt && sk->srtt_us)
		pep_bbr_pace_from_rtt(b, p, sk, out);
	/* Until the pipe is full every sample is a lower bound, so the rate only rises. */
	if (b->full_bw_reached || rate > out->pacing_rate)
		out->pacing_rate = rate;
}

/* -- modes -- */

PEP_CORE void pep_bbr_save_cwnd(struct pep_bbr *b, uint32_t cwnd)
{
	if (b->prev_ca_state < PEP_CA_RECOVERY && b->mode != PEP_BBR_PROBE_RTT)
		b->prior_cwnd = cwnd;
	else
		b->prior_cwnd = pep_max32(b->prior_cwnd, cwnd);
}

PEP_CORE bool pep_bbr_phase_is_over(const struct pep_bbr *b, const struct pep_cc_sock *sk,
				    const struct pep_cc_rate *rs, const struct pep_cc_out *out)
{
	bool full_length = pep_elapsed_us(sk->delivered_us, b->cycle_us) > b->min_rtt_us;
	uint32_t inflight;

	if (b->pacing_gain == PEP_GAIN_UNIT)
		return full_length;
	inflight = pep_bbr_inflight_at_edt(b, sk, out, rs->prior_inflight);
	/* Asking for more ends when the more is in flight, or was too much. */
	if (b->pacing_gain > PEP_GAIN_UNIT)
		return full_length &&
		       (rs->losses ||
			inflight >= pep_bbr_target(b, sk, out, pep_bbr_max_bw(b), b->pacing_gain));
	/* Draining ends early once the queue is gone. */
	return full_length ||
	       inflight <= pep_bbr_target(b, sk, out, pep_bbr_max_bw(b), PEP_GAIN_UNIT);
}

PEP_CORE void pep_bbr_update_phase(struct pep_bbr *b, const struct pep_cc_sock *sk,
				   const struct pep_cc_rate *rs, const struct pep_cc_out *out)
{
	if (b->mode == PEP_BBR_PROBE_BW && pep_bbr_phase_is_over(b, sk, rs, out))
		pep_bbr_advance_phase(b, sk);
}

PEP_CORE void pep_bbr_update_full_bw(struct pep_bbr *b, const struct pep_cc_rate *rs)
{
	if (b->full_bw_reached || !b->round_start || rs->app_limited)
		return;
	if (pep_bbr_max_bw(b) >= pep_gain(b->full_bw, PEP_BBR_FULL_BW_GAIN)) {
		b->full_bw = pep_bbr_max_bw(b);
		b->full_bw_cnt = 0;
		return;
	}
	b->full_bw_cnt++;
	b->full_bw_reached = b->full_bw_cnt >= PEP_BBR_FULL_BW_ROUNDS;
}

/*
 * A blocked radio comes back with several times the bandwidth at once, and a quarter more per cycle
 * takes dozens of round trips to find it. When asking for more has brought more and no queue, there
 * may be much more: search for it as at the start. Not beside other flows, whose pauses look like
 * it, and not with strict pacing, which keeps their queues too short to be seen.
 */
PEP_CORE void pep_bbr_regain(struct pep_bbr *b, const struct pep_bbr_params *p,
			     const struct pep_cc_sock *sk, const struct pep_cc_rate *rs)
{
	uint32_t base_us = pep_bbr_base_rtt(b);

	if (!p->regain || p->rtt_pacing == PEP_RTT_PACING_STRICT || b->mode != PEP_BBR_PROBE_BW ||
	    sk->ca_state != PEP_CA_OPEN || rs->app_limited || b->lt_use_bw || b->idle_rounds ||
	    b->cwnd_cap || !b->cycle_bw || b->quiet_cycles < PEP_BBR_QUIET_CYCLES ||
	    pep_bbr_max_bw(b) < pep_gain(b->cycle_bw, p->regain) ||
	    pep_standing_rtt_get(&b->rtt) > (uint64_t)base_us +
						    (base_us >> PEP_BBR_REGAIN_RISE_SHIFT) +
						    pep_bbr_jitter_us(b, sk))
		return;
	b->mode = PEP_BBR_STARTUP;
	b->full_bw_reached = false;
	b->full_bw = pep_bbr_max_bw(b);
	b->full_bw_cnt = PEP_BBR_REGAIN_CNT;
}

PEP_CORE void pep_bbr_update_drain(struct pep_bbr *b, const struct pep_cc_sock *sk,
				   struct pep_cc_out *out)
{
	uint32_t target;

	if (b->mode != PEP_BBR_DRAIN && !(b->mode == PEP_BBR_STARTUP && b->full_bw_reached))
		return;
	target = pep_bbr_target(b, sk, out, pep_bbr_max_bw(b), PEP_GAIN_UNIT);
	if (b->mode == PEP_BBR_STARTUP) {
		b->mode = PEP_BBR_DRAIN;
		out->ssthresh = target;
	}
	if (pep_bbr_inflight_at_edt(b, sk, out, sk->inflight) <= target)
		pep_bbr_enter_probe_bw(b, sk);
}

PEP_CORE void pep_bbr_check_probe_rtt_done(struct pep_bbr *b, const struct pep_bbr_params *p,
					   const struct pep_cc_sock *sk, struct pep_cc_out *out)
{
	if (!b->probe_rtt_done_us || sk->now_us <= b->probe_rtt_done_us)
		return;
	b->min_rtt_stamp_us = sk->now_us;
	pep_sparse_rtt_end(&b->sparse);
	b->idle_rounds = PEP_BBR_PACING_IDLE_ROUNDS;
	/* The authors' code lost this line: its window climbs from four packets every time. */
	if (p->verdict != PEP_VERDICT_AUTHOR)
		out->cwnd = pep_max32(out->cwnd, b->prior_cwnd);
	if (b->full_bw_reached)
		pep_bbr_enter_probe_bw(b, sk);
	else
		b->mode = PEP_BBR_STARTUP;
}

PEP_CORE void pep_bbr_run_probe_rtt(struct pep_bbr *b, const struct pep_bbr_params *p,
				    const struct pep_cc_sock *sk, struct pep_cc_out *out)
{
	/* So few packets say nothing of the bandwidth: have the samples marked. */
	out->app_limited = sk->delivered + sk->inflight;
	if (!out->app_limited)
		out->app_limited = 1;

	if (!b->probe_rtt_done_us && sk->inflight <= PEP_MIN_CWND) {
		b->probe_rtt_done_us = sk->now_us + (uint64_t)p->probe_rtt_ms * PEP_USEC_PER_MSEC;
		b->probe_rtt_round_done = false;
		b->next_rtt_delivered = sk->delivered;
	} else if (b->probe_rtt_done_us) {
		if (b->round_start)
			b->probe_rtt_round_done = true;
		if (b->probe_rtt_round_done && !pep_bbr_jitter_wanted(b, p, sk))
			pep_bbr_check_probe_rtt_done(b, p, sk, out);
	}
}

PEP_CORE void pep_bbr_update_min_rtt(struct pep_bbr *b, const struct pep_bbr_params *p,
				     const struct pep_cc_sock *sk, const struct pep_cc_rate *rs,
				     struct pep_cc_out *out)
{
	uint64_t window_us = (uint64_t)p->min_rtt_window_ms * PEP_USEC_PER_MSEC;
	bool expired = pep_elapsed_us(sk->now_us, b->min_rtt_stamp_us) > window_us;

	if (pep_bbr_probe_rtt_early(b, p, sk, rs))
		b->jitter_checked = expired = true;

	if (rs->rtt_us >= 0 &&
	    ((uint64_t)rs->rtt_us < b->min_rtt_us || (expired && !rs->ack_delayed))) {
		b->min_rtt_us = (uint32_t)pep_min64((uint64_t)rs->rtt_us, PEP_RTT_NONE - 1);
		b->min_rtt_stamp_us = sk->now_us;
	}
	pep_bbr_observe_rtt(b, p, sk, rs);

	if (p->probe_rtt_ms && expired && !b->idle_restart && b->mode != PEP_BBR_PROBE_RTT) {
		pep_bbr_save_cwnd(b, out->cwnd);
		b->mode = PEP_BBR_PROBE_RTT;
		b->probe_rtt_done_us = 0;
		pep_sparse_rtt_start(&b->sparse);
		b->probe_rtts++;
	}
	if (b->mode == PEP_BBR_PROBE_RTT && b->probe_rtt_done_us && b->probe_rtt_round_done &&
	    rs->rtt_us >= 0)
		pep_sparse_rtt_add(&b->sparse,
				   (uint32_t)pep_min64((uint64_t)rs->rtt_us, PEP_RTT_NONE - 1),
				   b->round_start);
	if (b->mode == PEP_BBR_PROBE_RTT)
		pep_bbr_run_probe_rtt(b, p, sk, out);
	if (rs->delivered > 0)
		b->idle_restart = false;
}

PEP_CORE uint32_t pep_bbr_phase_gain(const struct pep_bbr *b, const struct pep_bbr_params *p)
{
	if (b->lt_use_bw || b->cycle_idx > 1)
		return PEP_GAIN_UNIT;
	return b->cycle_idx == 0 ? p->probe_up_gain : p->probe_down_gain;
}

PEP_CORE void pep_bbr_update_gains(struct pep_bbr *b, const struct pep_bbr_params *p)
{
	switch ((enum pep_bbr_mode)b->mode) {
	case PEP_BBR_STARTUP:
		b->pacing_gain = b->cwnd_gain = (uint16_t)p->startup_gain;
		break;
	case PEP_BBR_DRAIN:
		b->pacing_gain = (uint16_t)p->drain_gain;
		b->cwnd_gain = (uint16_t)p->startup_gain;
		break;
	case PEP_BBR_PROBE_BW:
		b->pacing_gain = (uint16_t)pep_bbr_phase_gain(b, p);
		b->cwnd_gain = (uint16_t)p->cwnd_gain;
		break;
	case PEP_BBR_PROBE_RTT:
	case PEP_BBR_MODE_COUNT_:
		b->pacing_gain = b->cwnd_gain = PEP_GAIN_UNIT;
		break;
	}
}

/* -- window -- */

/* A loss verdict; true when the window was cut and is to be held until the round ends. */
PEP_CORE bool pep_bbr_judge_loss(struct pep_bbr *b, const struct pep_bbr_params *p,
				 const struct pep_cc_sock *sk, struct pep_cc_out *out)
{
	if (!pep_bbr_congested(b, p, sk))
		return false;
	b->congestive_losses++;
	b->cuts++;
	b->cut_round = true;
	b->episode_cut = true;
	out->cwnd = pep_bbr_halved(b, sk, out, out->cwnd);
	if (p->verdict == PEP_VERDICT_STANDING && p->regrow && b->full_bw_reached)
		b->cwnd_cap = out->cwnd;
	return true;
}

/* The authors' code: nothing but the losses on a radio loss, a halving per ACK on the other. */
PEP_CORE bool pep_bbr_recover_author(struct pep_bbr *b, const struct pep_bbr_params *p,
				     const struct pep_cc_sock *sk, struct pep_cc_out *out)
{
	uint8_t prev = b->prev_ca_state;

	if (sk->ca_state == PEP_CA_RECOVERY && prev != PEP_CA_RECOVERY) {
		if (pep_bbr_congested(b, p, sk)) {
			b->congestive_losses++;
			b->packet_conservation = true;
			b->next_rtt_delivered = sk->delivered;
		} else {
			b->radio_losses++;
		}
	} else if (prev >= PEP_CA_RECOVERY && sk->ca_state < PEP_CA_RECOVERY) {
		out->cwnd = pep_max32(out->cwnd, b->prior_cwnd);
		b->packet_conservation = false;
	}
	b->cut_round = b->packet_conservation;
	if (!b->packet_conservation)
		return false;
	out->cwnd = pep_bbr_halved(b, sk, out, out->cwnd);
	b->cuts++;
	return true;
}

/* Leaving Recovery: a congestive episode comes back to what the path holds, not to more. */
PEP_CORE void pep_bbr_restore(struct pep_bbr *b, const struct pep_bbr_params *p,
			      const struct pep_cc_sock *sk, struct pep_cc_out *out)
{
	uint32_t cwnd = b->prior_cwnd;

	if (p->verdict == PEP_VERDICT_STANDING && b->full_bw_reached)
		cwnd = pep_bbr_capped(b, pep_min32(cwnd, pep_bbr_target(b, sk, out, pep_bbr_bw(b),
									b->cwnd_gain)));
	out->cwnd = pep_max32(out->cwnd, cwnd);
	if (p->verdict != PEP_VERDICT_OFF && !b->episode_cut)
		b->radio_losses++;
	b->packet_conservation = false;
	b->cut_round = false;
}

/* True when Recovery decides the window of this ACK. */
PEP_CORE bool pep_bbr_recover(struct pep_bbr *b, const struct pep_bbr_params *p,
			      const struct pep_cc_sock *sk, const struct pep_cc_rate *rs,
			      struct pep_cc_out *out)
{
	bool conserve = p->verdict == PEP_VERDICT_OFF || p->verdict == PEP_VERDICT_STANDING;
	uint8_t prev = b->prev_ca_state;
	bool entry = sk->ca_state == PEP_CA_RECOVERY && prev != PEP_CA_RECOVERY;

	if (rs->losses)
		out->cwnd = out->cwnd > rs->losses ? out->cwnd - rs->losses : 1;

	if (p->verdict == PEP_VERDICT_AUTHOR) {
		bool held = pep_bbr_recover_author(b, p, sk, out);

		b->prev_ca_state = sk->ca_state;
		return held;
	}

	if (entry) {
		b->next_rtt_delivered = sk->delivered;
		b->episode_cut = false;
		if (p->verdict == PEP_VERDICT_OFF || !pep_bbr_judge_loss(b, p, sk, out)) {
			b->packet_conservation = conserve;
			if (conserve)
				out->cwnd = sk->inflight + rs->acked_sacked;
		}
	} else if (prev >= PEP_CA_RECOVERY && sk->ca_state < PEP_CA_RECOVERY) {
		pep_bbr_restore(b, p, sk, out);
	} else if (p->verdict == PEP_VERDICT_STANDING && sk->ca_state == PEP_CA_RECOVERY &&
		   !b->cut_round && (b->round_start || rs->losses)) {
		/* Congestion may show only after the first loss of an episode. */
		pep_bbr_judge_loss(b, p, sk, out);
	}
	b->prev_ca_state = sk->ca_state;

	if (b->cut_round) {
		out->cwnd = pep_max32(out->cwnd, PEP_MIN_CWND);
		return true;
	}
	if (b->packet_conservation)
		out->cwnd = pep_max32(out->cwnd, sk->inflight + rs->acked_sacked);
	return b->packet_conservation;
}

PEP_CORE void pep_bbr_grow(struct pep_bbr *b, const struct pep_bbr_params *p,
			   const struct pep_cc_sock *sk, uint32_t acked, struct pep_cc_out *out)
{
	uint32_t target =
		pep_max32(pep_bbr_bdp(b, pep_bbr_bw(b), b->cwnd_gain), pep_bbr_jitter_cwnd(b, p));

	target = pep_sat32((uint64_t)target + pep_bbr_aggregation_cwnd(b, p));
	target = pep_bbr_quantize(b, sk, out, target);
	if (b->cwnd_cap && b->round_start)
		b->cwnd_cap += pep_max32(pep_bbr_bdp(b, pep_bbr_bw(b), p->regrow), 1);
	target = pep_bbr_capped(b, target);
	if (b->full_bw_reached)
		out->cwnd = pep_min32(pep_sat32((uint64_t)out->cwnd + acked), target);
	else if (out->cwnd < target || sk->delivered < PEP_INIT_CWND)
		out->cwnd = pep_sat32((uint64_t)out->cwnd + acked);
	out->cwnd = pep_max32(out->cwnd, PEP_MIN_CWND);
}

/* -- callbacks -- */

/** init: @b need not be cleared before; @out gets ssthresh and the first pacing rate. */
PEP_CORE void pep_bbr_init(struct pep_bbr *b, const struct pep_bbr_params *p,
			   const struct pep_cc_sock *sk, struct pep_cc_out *out)
{
	*b = (struct pep_bbr){
		.min_rtt_us = sk->min_rtt_us,
		.min_rtt_stamp_us = sk->now_us,
		.epoch_us = sk->now_us,
		.tick_us = sk->delivered_us,
		.next_rtt_delivered = sk->delivered,
		.last_rtt_us = PEP_RTT_NONE,
		.random = sk->random,
		.mode = PEP_BBR_STARTUP,
		.prev_ca_state = PEP_CA_OPEN,
	};
	pep_standing_rtt_reset(&b->rtt);
	b->sparse.jitter_us = PEP_RTT_NONE;
	pep_sparse_rtt_start(&b->sparse);
	b->busy = (struct pep_busy_rtt){sk->now_us, PEP_RTT_NONE, PEP_RTT_NONE};
	b->usual = (struct pep_usual_loss){0, sk->lost, sk->delivered};
	pep_bbr_lt_reset(b, sk);
	pep_bbr_update_gains(b, p);
	out->ssthresh = PEP_SSTHRESH_NONE;
	pep_bbr_pace_from_rtt(b, p, sk, out);
}

/*
 * An ACK in three steps, which the BPF verifier checks one by one: a program that holds them all
 * has more paths than it is willing to walk.
 */

/** cong_control, first step: bandwidth and rounds. */
PEP_CORE void pep_bbr_ack_bw(struct pep_bbr *b, const struct pep_bbr_params *p,
			     const struct pep_cc_sock *sk, const struct pep_cc_rate *rs,
			     const struct pep_cc_out *out)
{
	pep_bbr_update_bw(b, p, sk, rs);
	pep_bbr_update_aggregation(b, p, sk, rs, out);
}

/** cong_control, second step: mode, phase and least RTT. */
PEP_CORE void pep_bbr_ack_mode(struct pep_bbr *b, const struct pep_bbr_params *p,
			       const struct pep_cc_sock *sk, const struct pep_cc_rate *rs,
			       struct pep_cc_out *out)
{
	pep_bbr_update_phase(b, sk, rs, out);
	pep_bbr_update_full_bw(b, rs);
	pep_bbr_regain(b, p, sk, rs);
	pep_bbr_update_drain(b, sk, out);
	pep_bbr_update_min_rtt(b, p, sk, rs, out);
	pep_bbr_update_gains(b, p);
}

/** cong_control, third step: pacing and window. */
PEP_CORE void pep_bbr_ack_send(struct pep_bbr *b, const struct pep_bbr_params *p,
			       const struct pep_cc_sock *sk, const struct pep_cc_rate *rs,
			       struct pep_cc_out *out)
{
	pep_bbr_pace(b, p, sk, out, pep_bbr_applied_gain(b, p, sk, pep_bbr_bw(b)));
	pep_bbr_watch_others(b, p, sk);
	if (rs->acked_sacked && !pep_bbr_recover(b, p, sk, rs, out))
		pep_bbr_grow(b, p, sk, rs->acked_sacked, out);
	out->cwnd = pep_min32(out->cwnd, sk->cwnd_clamp);
	if (b->mode == PEP_BBR_PROBE_RTT)
		out->cwnd = pep_min32(out->cwnd, PEP_MIN_CWND);
}

/** cong_control: every ACK. */
PEP_CORE void pep_bbr_ack(struct pep_bbr *b, const struct pep_bbr_params *p,
			  const struct pep_cc_sock *sk, const struct pep_cc_rate *rs,
			  struct pep_cc_out *out)
{
	pep_bbr_ack_bw(b, p, sk, rs, out);
	pep_bbr_ack_mode(b, p, sk, rs, out);
	pep_bbr_ack_send(b, p, sk, rs, out);
}

/** ssthresh: entry to CWR, Recovery or Loss; returns the threshold, which stays as it is. */
PEP_CORE uint32_t pep_bbr_ssthresh(struct pep_bbr *b, const struct pep_cc_sock *sk)
{
	pep_bbr_save_cwnd(b, sk->cwnd);
	return sk->ssthresh;
}

/** undo_cwnd: the loss was none; returns the window. */
PEP_CORE uint32_t pep_bbr_undo_cwnd(struct pep_bbr *b, const struct pep_cc_sock *sk)
{
	b->full_bw = 0;
	b->full_bw_cnt = 0;
	b->cwnd_cap = 0;
	pep_bbr_lt_reset(b, sk);
	return sk->cwnd;
}

/** set_state: @state is the coming enum pep_ca_state. */
PEP_CORE void pep_bbr_set_state(struct pep_bbr *b, const struct pep_bbr_params *p,
				const struct pep_cc_sock *sk, uint8_t state)
{
	if (state != PEP_CA_LOSS)
		return;
	b->prev_ca_state = PEP_CA_LOSS;
	b->full_bw = 0;
	b->round_start = true;
	if (p->policer)
		pep_bbr_lt_sample(b, sk, true, false);
}

/** cwnd_event TX_START: data again after the network was empty. */
PEP_CORE void pep_bbr_tx_start(struct pep_bbr *b, const struct pep_bbr_params *p,
			       const struct pep_cc_sock *sk, struct pep_cc_out *out)
{
	if (!sk->app_limited)
		return;
	b->idle_restart = true;
	b->idle_rounds = PEP_BBR_PACING_IDLE_ROUNDS;
	b->epoch_us = sk->now_us;
	b->epoch_acked = 0;
	/* What was standing before the pause tells nothing of now. */
	pep_standing_rtt_reset(&b->rtt);
	if (b->mode == PEP_BBR_PROBE_BW)
		pep_bbr_pace(b, p, sk, out, PEP_GAIN_UNIT);
	else if (b->mode == PEP_BBR_PROBE_RTT)
		pep_bbr_check_probe_rtt_done(b, p, sk, out);
}

#endif
