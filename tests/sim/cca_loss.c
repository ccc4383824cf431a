/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The loss-based references: a fixed window, Reno (RFC 5681 with appropriate byte counting) and
 * CUBIC (RFC 9438 with HyStart), all with the sender's proportional rate reduction and unpaced, as
 * Linux runs them without the fq queueing discipline.
 */
#include "cca_loss.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

uint32_t sim_cca_slow_start(struct sim_tcp *tp, uint32_t acked)
{
	uint32_t room = tp->ssthresh - tp->cwnd, used = acked < room ? acked : room;

	tp->cwnd += used;
	return acked - used;
}

void sim_cca_additive(struct sim_tcp *tp, uint32_t window, uint32_t acked)
{
	if (tp->cwnd_cnt >= window) {
		tp->cwnd_cnt = 0;
		tp->cwnd++;
	}
	tp->cwnd_cnt += acked;
	if (tp->cwnd_cnt >= window) {
		tp->cwnd += tp->cwnd_cnt / window;
		tp->cwnd_cnt %= window;
	}
}

/* -- fixed window: for checking the simulator against theory ------------------------------------
 */

struct fixed_conf {
	uint32_t cwnd;
	uint64_t pacing; /* bytes/s, 0: none */
};

static void fixed_defaults(void *conf)
{
	*(struct fixed_conf *)conf = (struct fixed_conf){.cwnd = 10};
}

static int fixed_set(void *conf, const char *key, const char *value)
{
	struct fixed_conf *c = conf;
	char *end;
	unsigned long v;

	errno = 0;
	v = strtoul(value, &end, 10);
	if (*value < '0' || *value > '9' || *end || errno)
		return -EINVAL;
	if (!strcmp(key, "cwnd")) {
		if (v < 1 || v > 100000)
			return -EINVAL;
		c->cwnd = (uint32_t)v;
	} else if (!strcmp(key, "pacing")) {
		c->pacing = v;
	} else {
		return -ENOENT;
	}
	return 0;
}

static void fixed_init(struct sim_tcp *tp, const void *conf)
{
	const struct fixed_conf *c = conf;

	*(struct fixed_conf *)tp->ca = *c;
	tp->cwnd = c->cwnd;
	if (c->pacing) {
		tp->pacing = true;
		tp->pacing_rate = c->pacing;
	}
}

static void fixed_control(struct sim_tcp *tp, const struct sim_rate *rs)
{
	(void)rs;
	tp->cwnd = ((struct fixed_conf *)tp->ca)->cwnd;
}

static uint32_t keep_ssthresh(struct sim_tcp *tp)
{
	return tp->ssthresh;
}

const struct sim_cca sim_cca_fixed = {
	.name = "fixed",
	.help = "a window of cwnd packets, whatever happens; pacing=BYTES_PER_S",
	.state_size = sizeof(struct fixed_conf),
	.conf_size = sizeof(struct fixed_conf),
	.defaults = fixed_defaults,
	.set = fixed_set,
	.init = fixed_init,
	.ssthresh = keep_ssthresh,
	.cong_control = fixed_control,
};

/* -- reno ---------------------------------------------------------------------------------------
 */

static uint32_t reno_ssthresh(struct sim_tcp *tp)
{
	return tp->cwnd / 2 > 2 ? tp->cwnd / 2 : 2;
}

static void reno_avoid(struct sim_tcp *tp, uint32_t acked)
{
	if (!sim_tcp_cwnd_limited(tp))
		return;
	if (tp->cwnd < tp->ssthresh) {
		acked = sim_cca_slow_start(tp, acked);
		if (!acked)
			return;
	}
	sim_cca_additive(tp, tp->cwnd, acked);
}

const struct sim_cca sim_cca_reno = {
	.name = "reno",
	.help = "Reno with proportional rate reduction, as in Linux",
	.ssthresh = reno_ssthresh,
	.cong_avoid = reno_avoid,
};

/* -- cubic --------------------------------------------------------------------------------------
 */

#define CUBIC_BETA           0.7 /* window kept after a loss */
#define CUBIC_C              0.4
#define CUBIC_MAX_RISE       0.5 /* of the window per round trip: not faster than slow start / 2 */
#define HYSTART_LOW_WINDOW   16u
#define HYSTART_MIN_SAMPLES  8u
#define HYSTART_ACK_GAP_US   2000u
#define HYSTART_DELAY_MIN_US 4000u
#define HYSTART_DELAY_MAX_US 16000u
#define HYSTART_NO_DELAY     UINT32_MAX

struct cubic {
	double w_max;        /* window before the last loss, after fast convergence */
	double origin, k_s;  /* where the curve flattens and when */
	double reno_window;  /* what Reno would have by now */
	uint64_t epoch_us;   /* start of the curve; 0: none */
	uint32_t min_rtt_us; /* 0: none */

	/* HyStart: leave slow start when ACKs show that the pipe is full */
	uint64_t round_us, last_ack_us;
	uint32_t round_end, round_rtt_us, samples;
	bool found;
};

static uint64_t at_least_1(uint64_t us)
{
	return us ? us : 1;
}

static void hystart_round(struct sim_tcp *tp, struct cubic *c)
{
	c->round_us = c->last_ack_us = sim_tcp_us(tp);
	c->round_end = tp->nxt;
	c->round_rtt_us = HYSTART_NO_DELAY;
	c->samples = 0;
}

static void cubic_reset(struct sim_tcp *tp, struct cubic *c)
{
	*c = (struct cubic){0};
	hystart_round(tp, c);
}

static void cubic_init(struct sim_tcp *tp, const void *conf)
{
	(void)conf;
	cubic_reset(tp, tp->ca);
}

static uint32_t cubic_ssthresh(struct sim_tcp *tp)
{
	struct cubic *c = tp->ca;
	uint32_t kept = (uint32_t)(tp->cwnd * CUBIC_BETA);

	/* Fast convergence: a flow that lost at a lower window than last time makes room. */
	if (tp->cwnd < c->w_max)
		c->w_max = tp->cwnd * (1 + CUBIC_BETA) / 2;
	else
		c->w_max = tp->cwnd;
	c->epoch_us = 0;
	return kept > 2 ? kept : 2;
}

static void cubic_start_epoch(struct sim_tcp *tp, struct cubic *c)
{
	c->epoch_us = at_least_1(sim_tcp_us(tp));
	c->reno_window = tp->cwnd;
	if (c->w_max <= tp->cwnd) {
		c->k_s = 0;
		c->origin = tp->cwnd;
	} else {
		c->k_s = cbrt((c->w_max - tp->cwnd) / CUBIC_C);
		c->origin = c->w_max;
	}
}

/* How many packets must be acknowledged for one more in the window. */
static uint32_t cubic_pace(struct sim_tcp *tp, struct cubic *c, uint32_t acked)
{
	double t, target, need, rise, cwnd = tp->cwnd;

	if (!c->epoch_us)
		cubic_start_epoch(tp, c);
	t = (double)(sim_tcp_us(tp) - c->epoch_us + c->min_rtt_us) / 1e6 - c->k_s;
	target = c->origin + CUBIC_C * t * t * t;
	need = target > cwnd ? fmin(cwnd / (target - cwnd), 100 * cwnd) : 100 * cwnd;
	if (!c->w_max && need > 20)
		need = 20; /* the first curve has no plateau to respect */
	/* Not slower than Reno with the same average window. */
	c->reno_window += 3 * (1 - CUBIC_BETA) / (1 + CUBIC_BETA) * acked / cwnd;
	if (c->reno_window > cwnd) {
		rise = cwnd / (c->reno_window - cwnd);
		need = need < rise ? need : rise;
	}
	return need > 1 / CUBIC_MAX_RISE ? (uint32_t)need : (uint32_t)(1 / CUBIC_MAX_RISE);
}

static void cubic_avoid(struct sim_tcp *tp, uint32_t acked)
{
	struct cubic *c = tp->ca;

	if (!sim_tcp_cwnd_limited(tp))
		return;
	if (tp->cwnd < tp->ssthresh) {
		acked = sim_cca_slow_start(tp, acked);
		if (!acked)
			return;
	}
	sim_cca_additive(tp, cubic_pace(tp, c, acked), acked);
}

static void hystart_leave(struct sim_tcp *tp, struct cubic *c)
{
	c->found = true;
	tp->ssthresh = tp->cwnd;
}

static void hystart(struct sim_tcp *tp, struct cubic *c, uint32_t rtt_us)
{
	uint64_t now = sim_tcp_us(tp);
	uint32_t rise = c->min_rtt_us / 8;

	if (tp->una > c->round_end)
		hystart_round(tp, c);
	/* ACKs that follow each other closely for half an RTT: the train fills the pipe. */
	if (now - c->last_ack_us <= HYSTART_ACK_GAP_US) {
		c->last_ack_us = now;
		/* Unpaced senders have half of the train still queued at the bottleneck. */
		if (now - c->round_us > c->min_rtt_us / 2)
			hystart_leave(tp, c);
	}
	/* The least RTT of a round has risen: a queue builds up. */
	if (c->round_rtt_us > rtt_us)
		c->round_rtt_us = rtt_us;
	if (c->samples < HYSTART_MIN_SAMPLES) {
		c->samples++;
		return;
	}
	rise = rise < HYSTART_DELAY_MIN_US ? HYSTART_DELAY_MIN_US : rise;
	rise = rise > HYSTART_DELAY_MAX_US ? HYSTART_DELAY_MAX_US : rise;
	if (c->round_rtt_us > c->min_rtt_us + rise)
		hystart_leave(tp, c);
}

static void cubic_acked(struct sim_tcp *tp, uint32_t acked, int64_t rtt_us)
{
	struct cubic *c = tp->ca;
	uint32_t rtt = rtt_us > 0 ? (uint32_t)rtt_us : 1;

	(void)acked;
	if (rtt_us < 0 || (c->epoch_us && sim_tcp_us(tp) - c->epoch_us < 1000000))
		return; /* just after a loss the RTT says little */
	if (!c->min_rtt_us || rtt < c->min_rtt_us)
		c->min_rtt_us = rtt;
	if (!c->found && tp->cwnd < tp->ssthresh && tp->cwnd >= HYSTART_LOW_WINDOW)
		hystart(tp, c, rtt);
}

static void cubic_state(struct sim_tcp *tp, enum sim_ca_state next)
{
	if (next == SIM_CA_LOSS)
		cubic_reset(tp, tp->ca);
}

static void cubic_event(struct sim_tcp *tp, enum sim_ca_event event)
{
	struct cubic *c = tp->ca;
	uint64_t now = sim_tcp_us(tp), idle = now - tp->last_send_ns / 1000;

	/* The curve does not rise while nothing is sent. */
	if (event == SIM_EVENT_TX_START && c->epoch_us && tp->last_send_ns) {
		c->epoch_us += idle;
		if (c->epoch_us > now)
			c->epoch_us = now;
	}
}

const struct sim_cca sim_cca_cubic = {
	.name = "cubic",
	.help = "CUBIC with HyStart and proportional rate reduction, as in Linux",
	.state_size = sizeof(struct cubic),
	.init = cubic_init,
	.ssthresh = cubic_ssthresh,
	.cong_avoid = cubic_avoid,
	.set_state = cubic_state,
	.event = cubic_event,
	.pkts_acked = cubic_acked,
};
