/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Delivery-rate samples and the round-trip time estimator, as Linux keeps them.
 *
 * Invariant: a packet gives at most one rate sample; delivered_ns == 0 marks it as used.
 */
#include "tcp.h"

void sim_tcp_rate_sent(struct sim_tcp *tp, struct sim_pkt *p)
{
	/* Nothing in flight: the sample's intervals start now, idle time does not count. */
	if (sim_tcp_packets_out(tp) == 0) {
		tp->first_tx_ns = tp->now_ns;
		tp->delivered_ns = tp->now_ns;
	}
	p->first_tx_ns = tp->first_tx_ns;
	p->delivered_ns = tp->delivered_ns;
	p->delivered = tp->delivered;
	p->flags = (p->flags & ~SIM_PKT_APP_LIMITED) | (tp->app_limited ? SIM_PKT_APP_LIMITED : 0u);
}

void sim_tcp_rate_delivered(struct sim_tcp *tp, uint32_t seq, struct sim_rate *rs)
{
	struct sim_pkt *p = sim_tcp_pkt(tp, seq);

	if (!p->delivered_ns)
		return;
	if (!rs->prior_ns || p->sent_ns > rs->last_sent_ns ||
	    (p->sent_ns == rs->last_sent_ns && seq > rs->last_seq)) {
		rs->prior_ns = p->delivered_ns;
		rs->prior_delivered = p->delivered;
		rs->is_app_limited = p->flags & SIM_PKT_APP_LIMITED;
		rs->is_retrans = p->flags & SIM_PKT_EVER_RETRANS;
		rs->last_sent_ns = p->sent_ns;
		rs->last_seq = seq;
		rs->interval_us = (int64_t)(p->sent_ns / 1000 - p->first_tx_ns / 1000);
		tp->first_tx_ns = p->sent_ns;
	}
	p->delivered_ns = 0;
}

void sim_tcp_rate_finish(struct sim_tcp *tp, struct sim_rate *rs)
{
	int64_t ack_us;

	if (tp->app_limited && tp->delivered > tp->app_limited)
		tp->app_limited = 0;
	if (rs->acked_sacked)
		tp->delivered_ns = tp->now_ns;
	if (!rs->prior_ns) {
		rs->delivered = -1;
		rs->interval_us = -1;
		return;
	}
	rs->delivered = (int32_t)(tp->delivered - rs->prior_delivered);
	ack_us = (int64_t)(tp->now_ns / 1000 - rs->prior_ns / 1000);
	if (ack_us > rs->interval_us)
		rs->interval_us = ack_us;
	/* Shorter than any round trip: the intervals were cut short by retransmissions. */
	if (rs->interval_us < tp->min_rtt_us)
		rs->interval_us = -1;
}

static void set_rto(struct sim_tcp *tp)
{
	uint32_t rto = (tp->srtt_us >> 3) + tp->rttvar_us;

	tp->rto_us = rto < SIM_TCP_RTO_MAX_US ? rto : SIM_TCP_RTO_MAX_US;
}

/* Jacobson's estimator with Linux' changes: the variance falls once per round trip only, and a
 * sample below the mean counts less.
 */
static void estimate(struct sim_tcp *tp, int64_t sample)
{
	int64_t m = sample > 0 ? sample : 1;

	if (!tp->srtt_us) {
		tp->srtt_us = (uint32_t)m << 3;
		tp->mdev_us = (uint32_t)m << 1;
		tp->rttvar_us = tp->mdev_us > SIM_TCP_RTO_MIN_US ? tp->mdev_us : SIM_TCP_RTO_MIN_US;
		tp->mdev_max_us = tp->rttvar_us;
		tp->rtt_seq = tp->nxt;
		return;
	}
	m -= tp->srtt_us >> 3;
	tp->srtt_us = (uint32_t)(tp->srtt_us + m);
	if (m < 0) {
		m = -m - (tp->mdev_us >> 2);
		if (m > 0)
			m >>= 3;
	} else {
		m -= tp->mdev_us >> 2;
	}
	tp->mdev_us = (uint32_t)(tp->mdev_us + m);
	if (tp->mdev_us > tp->mdev_max_us) {
		tp->mdev_max_us = tp->mdev_us;
		if (tp->mdev_max_us > tp->rttvar_us)
			tp->rttvar_us = tp->mdev_max_us;
	}
	if (tp->una > tp->rtt_seq) {
		if (tp->mdev_max_us < tp->rttvar_us)
			tp->rttvar_us -= (tp->rttvar_us - tp->mdev_max_us) >> 2;
		tp->rtt_seq = tp->nxt;
		tp->mdev_max_us = SIM_TCP_RTO_MIN_US;
	}
}

void sim_tcp_rtt_sample(struct sim_tcp *tp, int64_t seq_rtt_us, int64_t ca_rtt_us)
{
	if (seq_rtt_us < 0)
		return;
	if (ca_rtt_us >= 0 && ca_rtt_us < tp->min_rtt_us)
		tp->min_rtt_us = ca_rtt_us > 0 ? (uint32_t)ca_rtt_us : 1;
	estimate(tp, seq_rtt_us);
	set_rto(tp);
	tp->backoff = 0;
}
