/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_TESTS_CCA_BENCH_H
#define PEP_TESTS_CCA_BENCH_H

/* A BBR connection on the bench: the test says what each ACK brings and looks at what comes out. */

#include "unit/unit.h"

#include "cca/core/bbr.h"

#define MSS 1448U

struct bench {
	struct pep_bbr b;
	struct pep_bbr_params p;
	struct pep_cc_sock sk;
	struct pep_cc_out out;
};

/** What one ACK brings; fields left out take the plain value. */
struct ack {
	uint32_t packets;  /* delivered and acked */
	uint32_t rtt_us;   /* 0: no RTT sample (-1) */
	uint32_t pass_us;  /* time since the ACK before; 0: as long as the RTT */
	uint32_t inflight; /* after the ACK */
	uint32_t prior;    /* in flight before it; 0: ->inflight + ->packets */
	uint32_t losses;
	uint32_t interval_us; /* of the rate sample; 0: the time that passed */
	bool same_round;      /* the packet was sent before the round began */
	bool app_limited, ack_delayed;
	uint8_t ca_state;
};

static inline void bench_apply(struct bench *x)
{
	x->sk.cwnd = x->out.cwnd;
	x->sk.pacing_rate = x->out.pacing_rate;
	x->sk.ssthresh = x->out.ssthresh;
	x->sk.app_limited = x->out.app_limited;
}

static inline void bench_init(struct bench *x, struct pep_bbr_params params)
{
	memset(x, 0, sizeof(*x));
	x->p = params;
	x->sk = (struct pep_cc_sock){
		.now_us = 1000000,
		.delivered_us = 1000000,
		.cwnd = 10,
		.cwnd_clamp = UINT32_MAX,
		.ssthresh = PEP_SSTHRESH_NONE,
		.mss_bytes = MSS,
		.min_rtt_us = PEP_RTT_NONE,
		.max_pacing_rate = UINT64_MAX,
		.pacing_shift = 10,
		.random = 12345,
	};
	pep_cc_out_init(&x->out, &x->sk);
	pep_bbr_init(&x->b, &x->p, &x->sk, &x->out);
	bench_apply(x);
}

static inline void bench_ack(struct bench *x, struct ack a)
{
	uint32_t pass_us = a.pass_us ? a.pass_us : a.rtt_us ? a.rtt_us : 1000;
	struct pep_cc_rate rs = {
		.interval_us = a.interval_us ? a.interval_us : pass_us,
		.rtt_us = a.rtt_us ? (int64_t)a.rtt_us : -1,
		.delivered = (int32_t)a.packets,
		.prior_delivered = a.same_round ? x->b.next_rtt_delivered - 1 : x->sk.delivered,
		.losses = a.losses,
		.acked_sacked = a.packets,
		.prior_inflight = a.prior ? a.prior : a.inflight + a.packets,
		.app_limited = a.app_limited,
		.ack_delayed = a.ack_delayed,
	};

	x->sk.now_us += pass_us;
	x->sk.delivered_us = x->sk.now_us;
	x->sk.delivered += a.packets;
	x->sk.lost += a.losses;
	x->sk.inflight = a.inflight;
	x->sk.ca_state = a.ca_state;
	if (a.rtt_us) {
		x->sk.srtt_us = x->sk.srtt_us ? (7 * x->sk.srtt_us + a.rtt_us) / 8 : a.rtt_us;
		x->sk.min_rtt_us = pep_min32(x->sk.min_rtt_us, a.rtt_us);
	}
	pep_cc_out_init(&x->out, &x->sk);
	pep_bbr_ack(&x->b, &x->p, &x->sk, &rs, &x->out);
	bench_apply(x);
}

/** @n rounds of @packets in @rtt_us each, with @inflight packets left in flight. */
static inline void bench_rounds(struct bench *x, int n, uint32_t packets, uint32_t rtt_us,
				uint32_t inflight)
{
	for (int i = 0; i < n; i++)
		bench_ack(x,
			  (struct ack){.packets = packets, .rtt_us = rtt_us, .inflight = inflight});
}

/** Brings the connection to ProbeBW at @packets per @rtt_us. */
static inline void bench_steady(struct bench *x, struct pep_bbr_params params, uint32_t packets,
				uint32_t rtt_us)
{
	bench_init(x, params);
	bench_rounds(x, 6, packets, rtt_us, packets / 2);
	assert_int_equal(x->b.mode, PEP_BBR_PROBE_BW);
	assert_true(x->b.full_bw_reached);
}

/** Goes on until the ProbeBW cycle is in phase @idx. */
static inline void bench_phase(struct bench *x, uint8_t idx, uint32_t packets, uint32_t rtt_us)
{
	for (int i = 0; i < 40 && x->b.cycle_idx != idx; i++)
		bench_ack(x, (struct ack){.packets = packets,
					  .rtt_us = rtt_us,
					  .pass_us = rtt_us + 1,
					  .interval_us = rtt_us,
					  .inflight = 3 * packets});
	assert_int_equal(x->b.cycle_idx, idx);
}

#endif
