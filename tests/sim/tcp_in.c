/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An ACK comes in: scoreboard, samples, congestion control, in the order of Linux' tcp_ack().
 *
 * Invariant: after each ACK delivered has grown by the packets that left the network through it,
 * each counted once, whether acknowledged selectively or cumulatively.
 */
#include "tcp.h"
#include "cca.h"

/* What one pass over the acknowledged packets found. */
struct found {
	uint64_t first_sent_ns, last_sent_ns; /* cumulative, never retransmitted; 0: none */
	uint64_t sack_sent_ns;                /* selective, never retransmitted; 0: none */
	uint32_t acked;                       /* left the scoreboard */
	bool retrans_acked, was_sacked;
};

static void take_sack(struct sim_tcp *tp, uint32_t seq, struct sim_rate *rs, struct found *found)
{
	struct sim_pkt *p;

	if (seq == SIM_TCP_NIL || seq < tp->una || seq >= tp->nxt)
		return;
	p = sim_tcp_pkt(tp, seq);
	if (p->flags & SIM_PKT_SACKED)
		return;
	if (p->flags & SIM_PKT_RETRANS)
		tp->retrans_out--;
	if (p->flags & SIM_PKT_LOST)
		tp->lost_out--;
	if (!(p->flags & SIM_PKT_EVER_RETRANS))
		found->sack_sent_ns = p->sent_ns;
	sim_tcp_rack_advance(tp, seq);
	sim_tcp_rate_delivered(tp, seq, rs);
	sim_tcp_list_remove(tp, seq);
	p->flags = (p->flags & ~(SIM_PKT_RETRANS | SIM_PKT_LOST)) | SIM_PKT_SACKED;
	tp->sacked_out++;
	tp->delivered++;
}

static void take_cumulative(struct sim_tcp *tp, uint32_t una, struct sim_rate *rs,
			    struct found *found)
{
	for (uint32_t seq = tp->una; seq < una; seq++) {
		struct sim_pkt *p = sim_tcp_pkt(tp, seq);

		if (p->flags & SIM_PKT_SACKED) {
			tp->sacked_out--;
			found->was_sacked = true;
		} else {
			tp->delivered++;
			sim_tcp_rack_advance(tp, seq);
			sim_tcp_rate_delivered(tp, seq, rs);
			sim_tcp_list_remove(tp, seq);
		}
		if (p->flags & SIM_PKT_EVER_RETRANS) {
			found->retrans_acked = true;
		} else if (!(p->flags & SIM_PKT_SACKED)) {
			found->last_sent_ns = p->sent_ns;
			if (!found->first_sent_ns)
				found->first_sent_ns = p->sent_ns;
		}
		if (p->flags & SIM_PKT_RETRANS)
			tp->retrans_out--;
		if (p->flags & SIM_PKT_LOST)
			tp->lost_out--;
		p->flags = 0;
		found->acked++;
	}
	tp->una = una;
	if (tp->retrans_hint < una)
		tp->retrans_hint = una;
}

static int64_t since_us(const struct sim_tcp *tp, uint64_t then)
{
	return (int64_t)(tp->now_ns / 1000 - then / 1000);
}

/* The timestamp option ticks once per millisecond and never yields 0. */
static int64_t echo_rtt_us(const struct sim_tcp *tp, const struct sim_ack *ack)
{
	int64_t ms = (int64_t)(tp->now_ns / 1000000 - ack->echo_ns / 1000000);

	return ms > 0 ? ms * 1000 : 1000;
}

/* A selective ACK restarts the timer only if the oldest packet went out after the one it names;
 * otherwise a stream of them would put the RTO off for ever.
 */
static bool is_progress(struct sim_tcp *tp, const struct found *found, bool una_moved)
{
	if (una_moved || !found->sack_sent_ns)
		return una_moved;
	return sim_tcp_pkt(tp, tp->una)->sent_ns > found->sack_sent_ns;
}

static void update_rtt(struct sim_tcp *tp, const struct found *found, const struct sim_ack *ack,
		       struct sim_rate *rs)
{
	int64_t seq_rtt = -1, ca_rtt = -1, sack_rtt = -1;

	if (found->first_sent_ns && !found->retrans_acked) {
		seq_rtt = since_us(tp, found->first_sent_ns);
		ca_rtt = since_us(tp, found->last_sent_ns);
		if (found->acked == 1 && !found->was_sacked && tp->state == SIM_CA_OPEN &&
		    rs->prior_delivered + 1 == tp->delivered)
			rs->is_ack_delayed = true;
	}
	if (found->sack_sent_ns)
		sack_rtt = ca_rtt = since_us(tp, found->sack_sent_ns);
	if (seq_rtt < 0)
		seq_rtt = sack_rtt;
	/* The timestamp option tells which transmission arrived. */
	if (seq_rtt < 0 && found->acked)
		seq_rtt = ca_rtt = echo_rtt_us(tp, ack);
	rs->rtt_us = ca_rtt;
	sim_tcp_rtt_sample(tp, seq_rtt, ca_rtt);
}

static void control(struct sim_tcp *tp, const struct sim_rate *rs, bool una_moved)
{
	if (tp->cca->cong_control) {
		tp->cca->cong_control(tp, rs);
		return;
	}
	if (sim_tcp_in_reduction(tp))
		sim_tcp_reduce(tp, rs->acked_sacked, rs->losses, una_moved);
	else if (una_moved)
		tp->cca->cong_avoid(tp, rs->acked_sacked);
	/* Not used for pacing unless asked for, but for the size of bursts. */
	if (tp->srtt_us) {
		uint64_t percent = tp->cwnd < tp->ssthresh / 2 ? 200 : 120;
		uint32_t out = sim_tcp_packets_out(tp);

		out = out > tp->cwnd ? out : tp->cwnd;
		tp->pacing_rate = percent * 80000 * tp->mss * out / tp->srtt_us;
	}
}

static void probe_answered(struct sim_tcp *tp)
{
	if (tp->probe_seq != SIM_TCP_NIL && tp->una >= tp->probe_seq)
		tp->probe_seq = SIM_TCP_NIL;
}

void sim_tcp_ack(struct sim_tcp *tp, const struct sim_ack *ack)
{
	struct sim_rate rs = {.rtt_us = -1, .interval_us = -1};
	struct found found = {0};
	uint32_t delivered = tp->delivered, lost = tp->lost, una = tp->una;
	bool una_moved;

	rs.prior_in_flight = sim_tcp_in_flight(tp);
	take_sack(tp, ack->sack, &rs, &found);
	if (ack->una > tp->una)
		take_cumulative(tp, ack->una, &rs, &found);
	una_moved = tp->una != una;
	probe_answered(tp);
	update_rtt(tp, &found, ack, &rs);
	if (is_progress(tp, &found, una_moved))
		sim_tcp_set_timer(tp);
	if (tp->cca->pkts_acked && tp->delivered != delivered)
		tp->cca->pkts_acked(tp, found.acked, rs.rtt_us);

	if (tp->state != SIM_CA_OPEN || tp->sacked_out || !una_moved)
		sim_tcp_alert(tp, ack, una_moved);
	rs.acked_sacked = tp->delivered - delivered;
	rs.losses = tp->lost - lost;
	sim_tcp_rate_finish(tp, &rs);
	control(tp, &rs, una_moved);
	sim_tcp_push(tp);
}
