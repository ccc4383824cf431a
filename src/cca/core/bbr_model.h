/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_CCA_CORE_BBR_MODEL_H
#define PEP_CCA_CORE_BBR_MODEL_H

/*
 * What BBR believes of the path: bandwidth with rounds, policer and ACK aggregation. Same decisions
 * in the same order as BBR version 1 in Linux, on clocks in microseconds.
 */

#include "cca/core/bbr_state.h"

PEP_CORE uint32_t pep_bbr_max_bw(const struct pep_bbr *b)
{
	return pep_max_filter_get(&b->bw);
}

/** The bandwidth to act on: the policer's when one was recognised. */
PEP_CORE uint32_t pep_bbr_bw(const struct pep_bbr *b)
{
	return b->lt_use_bw ? b->lt_bw : pep_bbr_max_bw(b);
}

/** ceil(@bw x least RTT x @gain), packets; the initial window while no RTT is known. */
PEP_CORE uint32_t pep_bbr_bdp(const struct pep_bbr *b, uint32_t bw, uint32_t gain)
{
	if (b->min_rtt_us == PEP_RTT_NONE)
		return PEP_INIT_CWND;
	return pep_bw_packets_gain(bw, b->min_rtt_us, gain);
}

/** Adds what bursts, delayed ACKs and the rounding of the last phase need. */
PEP_CORE uint32_t pep_bbr_quantize(const struct pep_bbr *b, const struct pep_cc_sock *sk,
				   const struct pep_cc_out *out, uint32_t cwnd)
{
	uint64_t sum = (uint64_t)cwnd + 3 * pep_tso_goal(sk, out->pacing_rate);

	sum = (sum + 1) & ~1ULL;
	if (b->mode == PEP_BBR_PROBE_BW && b->cycle_idx == 0)
		sum += 2;
	return pep_sat32(sum);
}

/** Packets in flight that @bw x @gain calls for. */
PEP_CORE uint32_t pep_bbr_target(const struct pep_bbr *b, const struct pep_cc_sock *sk,
				 const struct pep_cc_out *out, uint32_t bw, uint32_t gain)
{
	return pep_bbr_quantize(b, sk, out, pep_bbr_bdp(b, bw, gain));
}

/* What is in the network when the next packet leaves, not when it was handed to the pacer. */
PEP_CORE uint32_t pep_bbr_inflight_at_edt(const struct pep_bbr *b, const struct pep_cc_sock *sk,
					  const struct pep_cc_out *out, uint32_t inflight)
{
	uint32_t delivered = 0;

	if (sk->wstamp_ns > sk->clock_ns)
		delivered = pep_bw_packets(pep_bbr_bw(b),
					   (sk->wstamp_ns - sk->clock_ns) / PEP_NSEC_PER_USEC);
	if (b->pacing_gain > PEP_GAIN_UNIT)
		inflight += pep_tso_goal(sk, out->pacing_rate);
	return delivered >= inflight ? 0 : inflight - delivered;
}

PEP_CORE void pep_bbr_advance_phase(struct pep_bbr *b, const struct pep_cc_sock *sk)
{
	b->cycle_idx = (b->cycle_idx + 1) % PEP_BBR_CYCLE_LEN;
	b->cycle_us = sk->delivered_us;
	if (b->cycle_idx)
		return;
	b->cycle_bw = pep_bbr_max_bw(b);
	if (b->quiet_cycles < UINT8_MAX)
		b->quiet_cycles++;
}

PEP_CORE void pep_bbr_enter_probe_bw(struct pep_bbr *b, const struct pep_cc_sock *sk)
{
	b->mode = PEP_BBR_PROBE_BW;
	/* Flows of one start do not probe together; the multiplication spreads over [0, RAND). */
	b->cycle_idx = PEP_BBR_CYCLE_LEN - 1 -
		       (uint32_t)(((uint64_t)pep_random(&b->random) * PEP_BBR_CYCLE_RAND) >> 32);
	pep_bbr_advance_phase(b, sk);
}

/* -- policer -- */

PEP_CORE void pep_bbr_lt_restart_interval(struct pep_bbr *b, const struct pep_cc_sock *sk)
{
	b->lt_last_us = sk->delivered_us;
	b->lt_last_delivered = sk->delivered;
	b->lt_last_lost = sk->lost;
	b->lt_rounds = 0;
}

PEP_CORE void pep_bbr_lt_reset(struct pep_bbr *b, const struct pep_cc_sock *sk)
{
	b->lt_bw = 0;
	b->lt_use_bw = false;
	b->lt_is_sampling = false;
	pep_bbr_lt_restart_interval(b, sk);
}

/* Two intervals in a row with the same rate and heavy loss: a policer. */
PEP_CORE void pep_bbr_lt_interval_done(struct pep_bbr *b, const struct pep_cc_sock *sk, uint32_t bw)
{
	uint32_t diff = bw > b->lt_bw ? bw - b->lt_bw : b->lt_bw - bw;

	if (b->lt_bw &&
	    ((uint64_t)diff * PEP_GAIN_UNIT <= (uint64_t)PEP_BBR_LT_BW_RATIO * b->lt_bw ||
	     pep_bw_bytes(diff, sk->mss_bytes, PEP_GAIN_UNIT, 0) <= PEP_BBR_LT_BW_DIFF)) {
		b->lt_bw = (uint32_t)(((uint64_t)bw + b->lt_bw) >> 1);
		b->lt_use_bw = true;
		b->pacing_gain = PEP_GAIN_UNIT;
		b->lt_rounds = 0;
		return;
	}
	b->lt_bw = bw;
	pep_bbr_lt_restart_interval(b, sk);
}

PEP_CORE void pep_bbr_lt_measure(struct pep_bbr *b, const struct pep_cc_sock *sk)
{
	uint32_t lost = sk->lost - b->lt_last_lost;
	uint32_t delivered = sk->delivered - b->lt_last_delivered;
	uint64_t us = pep_elapsed_us(sk->delivered_us, b->lt_last_us);

	if (!delivered ||
	    (uint64_t)lost << PEP_GAIN_SHIFT < (uint64_t)PEP_BBR_LT_LOSS_THRESH * delivered)
		return;
	if (us < PEP_USEC_PER_MSEC)
		return;
	if (us >= PEP_BBR_LT_MAX_INTERVAL_US) {
		pep_bbr_lt_reset(b, sk);
		return;
	}
	pep_bbr_lt_interval_done(b, sk, pep_bw(delivered, us));
}

PEP_CORE void pep_bbr_lt_sample(struct pep_bbr *b, const struct pep_cc_sock *sk, bool losses,
				bool app_limited)
{
	if (b->lt_use_bw) {
		if (b->mode == PEP_BBR_PROBE_BW && b->round_start &&
		    ++b->lt_rounds >= PEP_BBR_LT_HOLD_ROUNDS) {
			pep_bbr_lt_reset(b, sk);
			pep_bbr_enter_probe_bw(b, sk);
		}
		return;
	}
	if (!b->lt_is_sampling) {
		if (!losses)
			return;
		pep_bbr_lt_restart_interval(b, sk);
		b->lt_is_sampling = true;
	}
	if (app_limited) {
		pep_bbr_lt_reset(b, sk);
		return;
	}
	if (b->round_start)
		b->lt_rounds++;
	if (b->lt_rounds < PEP_BBR_LT_MIN_ROUNDS)
		return;
	if (b->lt_rounds > PEP_BBR_LT_MAX_ROUNDS) {
		pep_bbr_lt_reset(b, sk);
		return;
	}
	/* An interval ends on a loss, so that it starts with an empty token bucket. */
	if (losses)
		pep_bbr_lt_measure(b, sk);
}

/* -- bandwidth -- */

/*
 * The filter's clock. A queue lengthens the rounds just when an old bandwidth must be forgotten, so
 * that with a time bound a tick also passes when a part of the window, but no less than an unloaded
 * round trip and an eighth (the ProbeBW cycle has to stay inside the window), has gone by.
 */
PEP_CORE void pep_bbr_tick(struct pep_bbr *b, const struct pep_bbr_params *p,
			   const struct pep_cc_sock *sk)
{
	uint64_t tick_us;

	if (!p->bw_window_ms) {
		b->ticks += b->round_start;
		return;
	}
	tick_us = (uint64_t)p->bw_window_ms * PEP_USEC_PER_MSEC / p->bw_window_rounds;
	if (b->min_rtt_us != PEP_RTT_NONE)
		tick_us = pep_max64(tick_us, (uint64_t)b->min_rtt_us + (b->min_rtt_us >> 3));
	if (b->round_start || pep_elapsed_us(sk->delivered_us, b->tick_us) >= tick_us) {
		b->ticks++;
		b->tick_us = sk->delivered_us;
	}
}

/* The round that ends now, with @packets delivered in it, may tell what a busy path's RTT is. */
PEP_CORE void pep_bbr_update_busy_rtt(struct pep_bbr *b, const struct pep_bbr_params *p,
				      const struct pep_cc_sock *sk, uint32_t packets)
{
	uint64_t window_us = (uint64_t)p->min_rtt_window_ms * PEP_USEC_PER_MSEC;

	if (pep_elapsed_us(sk->now_us, b->busy.since_us) > window_us) {
		b->busy.before_us = b->busy.now_us;
		b->busy.now_us = PEP_RTT_NONE;
		b->busy.since_us = sk->now_us;
	}
	if (b->mode == PEP_BBR_PROBE_BW && !b->idle_rounds &&
	    packets >= pep_bbr_bdp(b, pep_bbr_bw(b), PEP_GAIN_UNIT) / 2)
		b->busy.now_us = pep_min32(b->busy.now_us, b->rtt.now_us);
}

PEP_CORE void pep_bbr_update_usual_loss(struct pep_usual_loss *u, const struct pep_cc_sock *sk)
{
	uint32_t lost = sk->lost - u->lost, sent = sk->delivered - u->delivered + lost;
	uint32_t share = sent ? (uint32_t)(((uint64_t)lost << 16) / sent) : 0;

	if (share < u->share)
		u->share -= (u->share - share) >> PEP_BBR_USUAL_DOWN_SHIFT;
	else
		u->share += (share - u->share) >> PEP_BBR_USUAL_UP_SHIFT;
	u->lost = sk->lost;
	u->delivered = sk->delivered;
}

PEP_CORE void pep_bbr_start_round(struct pep_bbr *b, const struct pep_bbr_params *p,
				  const struct pep_cc_sock *sk)
{
	uint32_t packets = sk->delivered - b->next_rtt_delivered;

	b->next_rtt_delivered = sk->delivered;
	b->round_start = true;
	b->packet_conservation = false;
	b->cut_round = false;
	if (b->idle_rounds)
		b->idle_rounds--;
	pep_bbr_update_busy_rtt(b, p, sk, packets);
	pep_bbr_update_usual_loss(&b->usual, sk);
	pep_standing_rtt_round(&b->rtt);
}

PEP_CORE void pep_bbr_update_bw(struct pep_bbr *b, const struct pep_bbr_params *p,
				const struct pep_cc_sock *sk, const struct pep_cc_rate *rs)
{
	uint32_t bw;

	b->round_start = false;
	if (rs->delivered < 0 || rs->interval_us <= 0)
		return;
	if (pep_seq_reached(rs->prior_delivered, b->next_rtt_delivered))
		pep_bbr_start_round(b, p, sk);
	pep_bbr_tick(b, p, sk);
	if (p->policer)
		pep_bbr_lt_sample(b, sk, rs->losses, rs->app_limited);

	/* A sender without data measures itself, not the path: believe it only upwards. */
	bw = pep_bw((uint32_t)rs->delivered, (uint64_t)rs->interval_us);
	if (!rs->app_limited || bw >= pep_bbr_max_bw(b))
		pep_max_filter_add(&b->bw, p->bw_window_rounds, b->ticks, bw);
}

/* -- ACK aggregation -- */

PEP_CORE uint32_t pep_bbr_extra_acked(const struct pep_bbr *b)
{
	return pep_max32(b->extra_acked[0], b->extra_acked[1]);
}

PEP_CORE void pep_bbr_update_aggregation(struct pep_bbr *b, const struct pep_bbr_params *p,
					 const struct pep_cc_sock *sk, const struct pep_cc_rate *rs,
					 const struct pep_cc_out *out)
{
	uint32_t expected, extra;

	if (!p->aggregation_gain || !rs->acked_sacked || rs->delivered < 0 || rs->interval_us <= 0)
		return;
	if (b->round_start && ++b->extra_acked_rounds >= PEP_BBR_EXTRA_ACKED_ROUNDS) {
		b->extra_acked_rounds = 0;
		b->extra_acked_idx = !b->extra_acked_idx;
		b->extra_acked[b->extra_acked_idx & 1] = 0;
	}

	expected = pep_bw_packets(pep_bbr_bw(b), pep_elapsed_us(sk->delivered_us, b->epoch_us));
	if (b->epoch_acked <= expected ||
	    b->epoch_acked + rs->acked_sacked >= PEP_BBR_EPOCH_ACKED_MAX) {
		b->epoch_acked = 0;
		b->epoch_us = sk->delivered_us;
		expected = 0;
	}
	b->epoch_acked = pep_min32(PEP_BBR_EPOCH_ACKED_MAX - 1, b->epoch_acked + rs->acked_sacked);
	extra = pep_min32(b->epoch_acked - expected, out->cwnd);
	if (extra > b->extra_acked[b->extra_acked_idx & 1])
		b->extra_acked[b->extra_acked_idx & 1] = extra;
}

/** Window that bunched ACKs call for, packets. */
PEP_CORE uint32_t pep_bbr_aggregation_cwnd(const struct pep_bbr *b, const struct pep_bbr_params *p)
{
	if (!p->aggregation_gain || !b->full_bw_reached)
		return 0;
	return pep_min32(pep_gain(pep_bbr_extra_acked(b), p->aggregation_gain),
			 pep_bw_packets(pep_bbr_bw(b), PEP_BBR_EXTRA_ACKED_MAX_US));
}

#endif
