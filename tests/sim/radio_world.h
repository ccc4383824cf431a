/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_TESTS_SIM_RADIO_WORLD_H
#define PEP_TESTS_SIM_RADIO_WORLD_H

/* A connection of the BBR family in the middle of its life, for tests of single rules. */

#include "cca/core/bbr.h"

#define MIN_RTT_US 40000u
#define MSS        1448u
#define BW         ((uint32_t)(PEP_BW_UNIT / 400)) /* one packet in 400 us: 100 packets in 40 ms */

struct world {
	struct pep_bbr b;
	struct pep_bbr_params p;
	struct pep_cc_sock sk;
	struct pep_cc_out out;
};

static const struct pep_bbr_params bbr_a __attribute__((unused)) = PEP_BBR_PARAMS_A;
static const struct pep_bbr_params bbr_d __attribute__((unused)) = PEP_BBR_PARAMS_D;

/* A connection in ProbeBW that knows its path: 100 packets and 40 ms. */
static inline void start(struct world *w, const struct pep_bbr_params *p)
{
	*w = (struct world){.p = *p};
	w->sk = (struct pep_cc_sock){
		.now_us = 1000000,
		.delivered_us = 1000000,
		.max_pacing_rate = UINT64_MAX,
		.delivered = 1000,
		.cwnd = 200,
		.cwnd_clamp = UINT32_MAX,
		.inflight = 200,
		.mss_bytes = MSS,
		.srtt_us = MIN_RTT_US,
		.min_rtt_us = MIN_RTT_US,
		.pacing_shift = 10,
		.random = 1,
	};
	pep_cc_out_init(&w->out, &w->sk);
	pep_bbr_init(&w->b, &w->p, &w->sk, &w->out);
	pep_max_filter_reset(&w->b.bw, 0, BW);
	w->b.mode = PEP_BBR_PROBE_BW;
	w->b.cwnd_gain = 512;
	w->b.full_bw_reached = true;
}

/* A round trip of @rtt_us in which @packets arrived and @lost did not. */
static inline void go_round(struct world *w, uint32_t rtt_us, uint32_t packets, uint32_t lost)
{
	for (int i = 0; i < 4; i++)
		pep_standing_rtt_add(&w->b.rtt, rtt_us);
	w->sk.now_us += rtt_us;
	w->sk.delivered_us = w->sk.now_us;
	w->sk.delivered += packets;
	w->sk.lost += lost;
	pep_bbr_start_round(&w->b, &w->p, &w->sk);
}

#endif
