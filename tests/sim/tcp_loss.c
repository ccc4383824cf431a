/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Loss: who is believed lost (RACK), and what the congestion state machine makes of it.
 *
 * Invariant: sacked_out, lost_out and retrans_out count the packets in una..nxt-1 that carry the
 * flags SACKED, LOST and RETRANS; a LOST packet without RETRANS is not in the list by send time.
 */
#include "tcp.h"
#include "cca.h"

void sim_tcp_set_state(struct sim_tcp *tp, enum sim_ca_state state)
{
	if (tp->cca->set_state)
		tp->cca->set_state(tp, state);
	tp->state = state;
}

bool sim_tcp_in_reduction(const struct sim_tcp *tp)
{
	return tp->state == SIM_CA_CWR || tp->state == SIM_CA_RECOVERY;
}

void sim_tcp_event(struct sim_tcp *tp, enum sim_ca_event event)
{
	if (tp->cca->event)
		tp->cca->event(tp, event);
}

void sim_tcp_list_remove(struct sim_tcp *tp, uint32_t seq)
{
	struct sim_pkt *p = sim_tcp_pkt(tp, seq);

	if (p->older != SIM_TCP_NIL)
		sim_tcp_pkt(tp, p->older)->newer = p->newer;
	else if (tp->oldest == seq)
		tp->oldest = p->newer;
	else
		return; /* not listed */
	if (p->newer != SIM_TCP_NIL)
		sim_tcp_pkt(tp, p->newer)->older = p->older;
	else
		tp->newest = p->older;
	p->older = p->newer = SIM_TCP_NIL;
}

void sim_tcp_mark_lost(struct sim_tcp *tp, uint32_t seq)
{
	struct sim_pkt *p = sim_tcp_pkt(tp, seq);

	if (p->flags & SIM_PKT_SACKED)
		return;
	if (p->flags & SIM_PKT_LOST) {
		if (!(p->flags & SIM_PKT_RETRANS))
			return;
		p->flags &= ~SIM_PKT_RETRANS;
		tp->retrans_out--;
	} else {
		p->flags |= SIM_PKT_LOST;
		tp->lost_out++;
		if (p->flags & SIM_PKT_RETRANS) {
			p->flags &= ~SIM_PKT_RETRANS;
			tp->retrans_out--;
		}
	}
	tp->lost++;
	if (seq < tp->retrans_hint)
		tp->retrans_hint = seq;
	sim_tcp_list_remove(tp, seq);
}

static bool sent_after(uint64_t t1, uint32_t seq1, uint64_t t2, uint32_t seq2)
{
	return t1 > t2 || (t1 == t2 && seq1 > seq2);
}

void sim_tcp_rack_advance(struct sim_tcp *tp, uint32_t seq)
{
	const struct sim_pkt *p = sim_tcp_pkt(tp, seq);
	uint32_t rtt = (uint32_t)((tp->now_ns - p->sent_ns) / 1000);

	/* Faster than possible: this acknowledges the original, not the retransmission. */
	if (rtt < tp->min_rtt_us && (p->flags & SIM_PKT_EVER_RETRANS))
		return;
	tp->rack_rtt_us = rtt;
	if (sent_after(p->sent_ns, seq, tp->rack_sent_ns, tp->rack_seq)) {
		tp->rack_sent_ns = p->sent_ns;
		tp->rack_seq = seq;
	}
}

/* No packet is ever reordered on the simulated path, so the window is only there until three
 * packets have been selectively acknowledged.
 */
static uint32_t reorder_window_us(const struct sim_tcp *tp)
{
	uint32_t srtt = tp->srtt_us >> 3, window = tp->min_rtt_us / 4;

	if (tp->state >= SIM_CA_RECOVERY || tp->sacked_out >= 3)
		return 0;
	return window < srtt ? window : srtt;
}

/* Marks what RACK believes lost. Returns when to look again, in us from now; 0: no need. */
static int64_t rack_detect(struct sim_tcp *tp)
{
	int64_t wait = 0, allowed = (int64_t)tp->rack_rtt_us + reorder_window_us(tp);
	uint32_t seq = tp->oldest;

	while (seq != SIM_TCP_NIL) {
		const struct sim_pkt *p = sim_tcp_pkt(tp, seq);
		uint32_t newer = p->newer;
		int64_t left;

		if (!sent_after(tp->rack_sent_ns, tp->rack_seq, p->sent_ns, seq))
			break;
		left = allowed - (int64_t)((tp->now_ns - p->sent_ns) / 1000);
		if (left <= 0)
			sim_tcp_mark_lost(tp, seq);
		else if (left > wait)
			wait = left;
		seq = newer;
	}
	return wait;
}

static void rack_mark(struct sim_tcp *tp)
{
	int64_t wait;

	if (!tp->rack_sent_ns)
		return;
	wait = rack_detect(tp);
	if (wait)
		sim_tcp_arm(tp, SIM_TIMER_REORDER,
			    tp->now_ns + ((uint64_t)wait + SIM_TCP_TICK_US) * 1000);
}

static void start_reduction(struct sim_tcp *tp)
{
	tp->high_seq = tp->nxt;
	tp->probe_seq = SIM_TCP_NIL;
	tp->cwnd_cnt = 0;
	tp->prior_cwnd = tp->cwnd;
	tp->prr_delivered = tp->prr_out = 0;
	tp->ssthresh = tp->cca->ssthresh(tp);
}

static void enter_recovery(struct sim_tcp *tp)
{
	tp->undo_retrans_ns = 0;
	if (!sim_tcp_in_reduction(tp)) {
		tp->prior_ssthresh = tp->ssthresh;
		start_reduction(tp);
	}
	tp->recoveries++;
	sim_tcp_set_state(tp, SIM_CA_RECOVERY);
}

static void end_reduction(struct sim_tcp *tp)
{
	if (tp->cca->cong_control)
		return;
	if (tp->ssthresh < SIM_TCP_INFINITE)
		tp->cwnd = tp->ssthresh;
	sim_tcp_event(tp, SIM_EVENT_COMPLETE_CWR);
}

void sim_tcp_rack_timeout(struct sim_tcp *tp)
{
	uint32_t before = sim_tcp_in_flight(tp);

	rack_mark(tp);
	if (before != sim_tcp_in_flight(tp) && tp->state != SIM_CA_RECOVERY) {
		enter_recovery(tp);
		if (!tp->cca->cong_control)
			sim_tcp_reduce(tp, 1, 0, false);
	}
	if (tp->timer != SIM_TIMER_REORDER || tp->timer_ns <= tp->now_ns)
		sim_tcp_arm(tp, SIM_TIMER_RTO, tp->now_ns + (uint64_t)tp->rto_us * 1000);
}

void sim_tcp_enter_loss(struct sim_tcp *tp)
{
	bool fresh = tp->state <= SIM_CA_DISORDER || tp->una >= tp->high_seq ||
		     (tp->state == SIM_CA_LOSS && !tp->backoff);

	for (uint32_t seq = tp->una; seq != tp->nxt; seq++) {
		const struct sim_pkt *p = sim_tcp_pkt(tp, seq);
		uint64_t age_us = (tp->now_ns - p->sent_ns) / 1000;

		/* What was sent less than a round trip ago may well arrive. */
		if (seq != tp->una && age_us < tp->rack_rtt_us)
			continue;
		sim_tcp_mark_lost(tp, seq);
	}
	if (fresh) {
		tp->prior_ssthresh = tp->ssthresh;
		tp->prior_cwnd = tp->cwnd;
		tp->ssthresh = tp->cca->ssthresh(tp);
		sim_tcp_event(tp, SIM_EVENT_LOSS);
		tp->undo_retrans_ns = 0;
	}
	tp->cwnd = sim_tcp_in_flight(tp) + 1;
	tp->cwnd_cnt = 0;
	sim_tcp_set_state(tp, SIM_CA_LOSS);
	tp->high_seq = tp->nxt;
}

/* The RTO was spurious: an ACK answers a packet sent before the first retransmission. */
static bool undo_loss(struct sim_tcp *tp, const struct sim_ack *ack, bool una_moved)
{
	uint32_t cwnd;

	if (!una_moved || !tp->undo_retrans_ns || ack->echo_ns >= tp->undo_retrans_ns)
		return false;
	for (uint32_t seq = tp->una; seq != tp->nxt; seq++) {
		struct sim_pkt *p = sim_tcp_pkt(tp, seq);

		if (!(p->flags & SIM_PKT_LOST))
			continue;
		p->flags &= ~SIM_PKT_LOST;
		tp->lost_out--;
		if (p->flags & SIM_PKT_RETRANS)
			continue;
		/* Back in flight; its place by send time does not matter for what follows. */
		p->older = tp->newest;
		p->newer = SIM_TCP_NIL;
		if (tp->newest != SIM_TCP_NIL)
			sim_tcp_pkt(tp, tp->newest)->newer = seq;
		else
			tp->oldest = seq;
		tp->newest = seq;
	}
	cwnd = tp->cca->undo_cwnd ? tp->cca->undo_cwnd(tp) : tp->prior_cwnd;
	tp->cwnd = cwnd > tp->cwnd ? cwnd : tp->cwnd;
	if (tp->prior_ssthresh > tp->ssthresh)
		tp->ssthresh = tp->prior_ssthresh;
	tp->undo_retrans_ns = 0;
	tp->undos++;
	sim_tcp_set_state(tp, SIM_CA_OPEN);
	return true;
}

static void try_to_open(struct sim_tcp *tp)
{
	enum sim_ca_state state = SIM_CA_OPEN;

	if (tp->state == SIM_CA_CWR)
		return;
	if (tp->sacked_out + tp->lost_out || tp->retrans_out)
		state = SIM_CA_DISORDER;
	if (tp->state != state) {
		sim_tcp_set_state(tp, state);
		tp->high_seq = tp->nxt;
	}
}

static void episode_may_end(struct sim_tcp *tp)
{
	if (tp->state == SIM_CA_OPEN || tp->una < tp->high_seq)
		return;
	if (tp->state == SIM_CA_RECOVERY || (tp->state == SIM_CA_CWR && tp->una > tp->high_seq)) {
		sim_tcp_set_state(tp, SIM_CA_OPEN);
		end_reduction(tp);
	}
}

void sim_tcp_alert(struct sim_tcp *tp, const struct sim_ack *ack, bool una_moved)
{
	uint32_t retrans_before;

	episode_may_end(tp);
	if (tp->state == SIM_CA_LOSS) {
		if (!undo_loss(tp, ack, una_moved) && tp->una >= tp->high_seq)
			sim_tcp_set_state(tp, SIM_CA_OPEN);
	}
	retrans_before = tp->retrans_out;
	rack_mark(tp);
	if (tp->state == SIM_CA_RECOVERY)
		return;
	if (tp->state == SIM_CA_LOSS && tp->retrans_out >= retrans_before)
		return;
	if (tp->lost_out)
		enter_recovery(tp);
	else
		try_to_open(tp);
}

void sim_tcp_reduce(struct sim_tcp *tp, uint32_t acked, uint32_t lost, bool una_moved)
{
	uint32_t in_flight = sim_tcp_in_flight(tp), send;

	if (!acked || !tp->prior_cwnd)
		return;
	tp->prr_delivered += acked;
	if (in_flight > tp->ssthresh) {
		uint64_t share = (uint64_t)tp->ssthresh * tp->prr_delivered + tp->prior_cwnd - 1;

		share /= tp->prior_cwnd;
		send = share > tp->prr_out ? (uint32_t)(share - tp->prr_out) : 0;
	} else {
		send = tp->prr_delivered > tp->prr_out ? tp->prr_delivered - tp->prr_out : 0;
		if (send < acked)
			send = acked;
		if (una_moved && !lost)
			send++;
		if (send > tp->ssthresh - in_flight)
			send = tp->ssthresh - in_flight;
	}
	if (!send && !tp->prr_out)
		send = 1; /* the first retransmission must go */
	tp->cwnd = in_flight + send;
}
