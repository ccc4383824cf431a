/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sending: window, pacing, bursts, retransmissions, timers.
 *
 * Invariant: new packets and retransmissions leave only while packets in flight are below cwnd and,
 * when paced, not before wstamp_ns; the tail loss probe and the RTO's first packet excepted.
 */
#include "tcp.h"
#include "cca.h"
#include "evq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define UNPACED_START   10u    /* the first packets of a connection are not paced */
#define PACING_SHIFT    10     /* bursts hold about 1 ms of the pacing rate */
#define MAX_BURST_BYTES 65536u /* one TSO packet */
#define DELAYED_ACK_US  200000u

int sim_tcp_init(struct sim_tcp *tp, const struct sim_tcp_ops *ops, const struct sim_cca *cca,
		 const void *cca_conf, uint64_t now_ns, uint32_t rtt_us, uint32_t mss,
		 uint64_t seed)
{
	*tp = (struct sim_tcp){
		.now_ns = now_ns,
		.mask = 255,
		.oldest = SIM_TCP_NIL,
		.newest = SIM_TCP_NIL,
		.cwnd = SIM_TCP_INIT_CWND,
		.ssthresh = SIM_TCP_INFINITE,
		.delivered = 1, /* the SYN */
		.min_rtt_us = UINT32_MAX,
		.rto_us = SIM_TCP_RTO_INIT_US,
		.timer_ns = SIM_NEVER,
		.pace_ns = SIM_NEVER,
		.probe_seq = SIM_TCP_NIL,
		.mss = mss,
		.max_burst = MAX_BURST_BYTES / mss ? MAX_BURST_BYTES / mss : 1,
		.ops = ops,
		.cca = cca,
	};
	tp->pkts = calloc(tp->mask + 1, sizeof(*tp->pkts));
	tp->ca = calloc(1, cca->state_size ? cca->state_size : 1);
	if (!tp->pkts || !tp->ca) {
		sim_tcp_fini(tp);
		return -ENOMEM;
	}
	sim_prng_seed(&tp->prng, seed, 2);
	tp->delivered_ns = now_ns;
	sim_tcp_rtt_sample(tp, rtt_us, rtt_us);
	tp->pacing_rate = 200ull * 80000 * mss * tp->cwnd / tp->srtt_us;
	if (cca->init)
		cca->init(tp, cca_conf);
	return 0;
}

void sim_tcp_fini(struct sim_tcp *tp)
{
	free(tp->pkts);
	free(tp->ca);
	tp->pkts = NULL;
	tp->ca = NULL;
}

static bool grow(struct sim_tcp *tp)
{
	uint32_t size = (tp->mask + 1) * 2;
	struct sim_pkt *pkts = size <= SIM_TCP_MAX_WINDOW ? calloc(size, sizeof(*pkts)) : NULL;

	if (!pkts) {
		tp->failed = true;
		return false;
	}
	for (uint32_t seq = tp->una; seq != tp->nxt; seq++)
		pkts[seq & (size - 1)] = *sim_tcp_pkt(tp, seq);
	free(tp->pkts);
	tp->pkts = pkts;
	tp->mask = size - 1;
	return true;
}

void sim_tcp_arm(struct sim_tcp *tp, enum sim_timer timer, uint64_t at_ns)
{
	tp->timer = timer;
	tp->timer_ns = at_ns;
}

/* A tail loss probe comes before the RTO when nothing is known lost. */
static bool arm_probe(struct sim_tcp *tp)
{
	uint64_t us;

	if (tp->state != SIM_CA_OPEN && tp->state != SIM_CA_CWR)
		return false;
	if (tp->sacked_out || tp->probe_seq != SIM_TCP_NIL)
		return false;
	us = tp->srtt_us >> 2;
	us += sim_tcp_packets_out(tp) == 1 ? DELAYED_ACK_US : SIM_TCP_TICK_US;
	if (us > tp->rto_us)
		us = tp->rto_us;
	sim_tcp_arm(tp, SIM_TIMER_PROBE, tp->now_ns + us * 1000);
	return true;
}

void sim_tcp_set_timer(struct sim_tcp *tp)
{
	if (tp->una == tp->nxt)
		sim_tcp_arm(tp, SIM_TIMER_NONE, SIM_NEVER);
	else if (!arm_probe(tp))
		sim_tcp_arm(tp, SIM_TIMER_RTO,
			    tp->now_ns + ((uint64_t)tp->rto_us << tp->backoff) * 1000);
}

static void list_append(struct sim_tcp *tp, uint32_t seq)
{
	struct sim_pkt *p = sim_tcp_pkt(tp, seq);

	p->older = tp->newest;
	p->newer = SIM_TCP_NIL;
	if (tp->newest != SIM_TCP_NIL)
		sim_tcp_pkt(tp, tp->newest)->newer = seq;
	else
		tp->oldest = seq;
	tp->newest = seq;
}

static void transmit(struct sim_tcp *tp, uint32_t seq)
{
	struct sim_pkt *p = sim_tcp_pkt(tp, seq);

	p->sent_ns = tp->last_send_ns = tp->now_ns;
	list_append(tp, seq);
	tp->sent++;
	if (sim_tcp_in_reduction(tp))
		tp->prr_out++;
	tp->ops->transmit(tp, seq);
}

void sim_tcp_retransmit(struct sim_tcp *tp, uint32_t seq)
{
	struct sim_pkt *p = sim_tcp_pkt(tp, seq);

	sim_tcp_list_remove(tp, seq);
	if (p->flags & SIM_PKT_RETRANS)
		tp->retrans_out--;
	sim_tcp_rate_sent(tp, p);
	p->flags |= SIM_PKT_RETRANS | SIM_PKT_EVER_RETRANS;
	tp->retrans_out++;
	tp->retransmitted++;
	if (!tp->undo_retrans_ns)
		tp->undo_retrans_ns = tp->now_ns;
	transmit(tp, seq);
}

/* After an idle time longer than the RTO a window-based control starts over gently. */
static void restart_after_idle(struct sim_tcp *tp)
{
	int64_t idle_us = (int64_t)((tp->now_ns - tp->last_send_ns) / 1000) - tp->rto_us;
	uint32_t floor = tp->cwnd < SIM_TCP_INIT_CWND ? tp->cwnd : SIM_TCP_INIT_CWND;

	if (tp->cca->cong_control || idle_us <= 0)
		return;
	sim_tcp_event(tp, SIM_EVENT_CWND_RESTART);
	if (tp->ssthresh < tp->cwnd / 4 * 3)
		tp->ssthresh = tp->cwnd / 4 * 3;
	for (; idle_us > 0 && tp->cwnd > floor; idle_us -= tp->rto_us)
		tp->cwnd /= 2;
	tp->cwnd = tp->cwnd > floor ? tp->cwnd : floor;
}

static bool send_new(struct sim_tcp *tp)
{
	struct sim_pkt *p;
	bool first = tp->una == tp->nxt;

	if (tp->nxt - tp->una > tp->mask && !grow(tp))
		return false;
	if (first) {
		restart_after_idle(tp);
		sim_tcp_event(tp, SIM_EVENT_TX_START);
	}
	p = sim_tcp_pkt(tp, tp->nxt);
	p->flags = 0;
	sim_tcp_rate_sent(tp, p);
	tp->nxt++;
	transmit(tp, tp->nxt - 1);
	if (first || tp->timer == SIM_TIMER_PROBE || tp->timer == SIM_TIMER_NONE)
		sim_tcp_set_timer(tp);
	return true;
}

/* The next lost packet not yet sent again, or SIM_TCP_NIL. */
static uint32_t next_retransmission(struct sim_tcp *tp)
{
	if (tp->lost_out <= tp->retrans_out)
		return SIM_TCP_NIL;
	for (; tp->retrans_hint < tp->nxt; tp->retrans_hint++) {
		uint32_t flags = sim_tcp_pkt(tp, tp->retrans_hint)->flags;

		if ((flags & (SIM_PKT_LOST | SIM_PKT_RETRANS)) == SIM_PKT_LOST)
			return tp->retrans_hint;
	}
	return SIM_TCP_NIL;
}

static uint32_t burst_size(const struct sim_tcp *tp)
{
	uint64_t bytes = tp->pacing_rate >> PACING_SHIFT;
	uint32_t least = tp->cca->min_segs ? tp->cca->min_segs((struct sim_tcp *)tp) : 2, segs;

	segs = bytes < MAX_BURST_BYTES ? (uint32_t)bytes / tp->mss : tp->max_burst;
	segs = segs > least ? segs : least;
	return segs < tp->max_burst ? segs : tp->max_burst;
}

/* Moves the earliest time of the next burst; a burst that came late gives up to half a burst back.
 */
static void pace(struct sim_tcp *tp, uint32_t packets)
{
	uint64_t credit, ns, rate = tp->pacing_rate ? tp->pacing_rate : 1;

	credit = tp->now_ns > tp->wstamp_ns ? tp->now_ns - tp->wstamp_ns : 0;
	if (tp->wstamp_ns < tp->now_ns)
		tp->wstamp_ns = tp->now_ns;
	if (!tp->pacing || tp->sent < UNPACED_START)
		return;
	ns = (uint64_t)packets * tp->mss * 1000000000ull / rate;
	tp->wstamp_ns += ns - (credit < ns / 2 ? credit : ns / 2);
}

/* Sends one burst: lost packets first, then new ones. Returns how many packets went. */
static uint32_t send_burst(struct sim_tcp *tp, uint32_t room)
{
	uint32_t n = 0, seq;

	while (n < room && (seq = next_retransmission(tp)) != SIM_TCP_NIL) {
		sim_tcp_retransmit(tp, seq);
		n++;
	}
	if (n)
		return n;
	while (n < room && tp->nxt < tp->write_seq && send_new(tp))
		n++;
	return n;
}

/* What tcp_cwnd_validate() keeps: whether the window, not the application, was the limit. */
static void validate_cwnd(struct sim_tcp *tp, bool sent)
{
	bool limited = sim_tcp_in_flight(tp) >= tp->cwnd;
	uint32_t out = sim_tcp_packets_out(tp);

	if (!sent && !limited)
		return;
	if (tp->una >= tp->cwnd_usage_seq || limited ||
	    (!tp->cwnd_limited && out > tp->max_packets_out)) {
		tp->cwnd_limited = limited;
		tp->max_packets_out = out;
		tp->cwnd_usage_seq = tp->nxt;
	}
}

bool sim_tcp_cwnd_limited(const struct sim_tcp *tp)
{
	if (tp->cwnd_limited)
		return true;
	return tp->cwnd < tp->ssthresh && tp->cwnd < 2 * tp->max_packets_out;
}

void sim_tcp_push(struct sim_tcp *tp)
{
	bool sent = false;

	tp->pace_ns = SIM_NEVER;
	while (!tp->failed) {
		uint32_t in_flight = sim_tcp_in_flight(tp), room, n;

		if (in_flight >= tp->cwnd)
			break;
		if (tp->nxt >= tp->write_seq && tp->lost_out <= tp->retrans_out)
			break;
		if (tp->pacing && tp->wstamp_ns > tp->now_ns) {
			tp->pace_ns = tp->wstamp_ns;
			break;
		}
		room = burst_size(tp);
		if (room > tp->cwnd - in_flight)
			room = tp->cwnd - in_flight;
		n = send_burst(tp, room);
		if (!n)
			break;
		pace(tp, n);
		sent = true;
	}
	validate_cwnd(tp, sent);
	if (tp->nxt >= tp->write_seq && sim_tcp_in_flight(tp) < tp->cwnd &&
	    tp->lost_out <= tp->retrans_out)
		tp->app_limited = tp->delivered + sim_tcp_in_flight(tp);
}

void sim_tcp_write(struct sim_tcp *tp, uint32_t write_seq)
{
	tp->write_seq = write_seq;
	sim_tcp_push(tp);
}

static void send_probe(struct sim_tcp *tp)
{
	if (tp->nxt < tp->write_seq) {
		if (!send_new(tp))
			return;
	} else {
		sim_tcp_retransmit(tp, tp->nxt - 1);
	}
	tp->probe_seq = tp->nxt;
	pace(tp, 1);
	sim_tcp_arm(tp, SIM_TIMER_RTO, tp->now_ns + (uint64_t)tp->rto_us * 1000);
}

void sim_tcp_timeout(struct sim_tcp *tp)
{
	enum sim_timer timer = tp->timer;

	sim_tcp_arm(tp, SIM_TIMER_NONE, SIM_NEVER);
	if (tp->una == tp->nxt)
		return;
	if (timer == SIM_TIMER_PROBE) {
		send_probe(tp);
		return;
	}
	if (timer == SIM_TIMER_REORDER) {
		sim_tcp_rack_timeout(tp);
		sim_tcp_push(tp);
		return;
	}
	tp->rtos++;
	sim_tcp_enter_loss(tp);
	sim_tcp_retransmit(tp, tp->una);
	if (((uint64_t)tp->rto_us << (tp->backoff + 1)) <= SIM_TCP_RTO_MAX_US)
		tp->backoff++;
	sim_tcp_arm(tp, SIM_TIMER_RTO, tp->now_ns + ((uint64_t)tp->rto_us << tp->backoff) * 1000);
	sim_tcp_push(tp);
}
