/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pep_bwe: estimators, the answer to losses, slow start, growth. */
#include "unit/unit.h"

#include <math.h>

#include "cca/core/bwe.h"

#define MSS  1448U
#define RTT  20000U
#define BDP  100U /* packets of the path below */
#define TICK (RTT / BDP)

struct bench {
	struct pep_bwe w;
	struct pep_bwe_params p;
	struct pep_cc_sock sk;
	struct pep_cc_out out;
};

static const struct pep_bwe_params defaults = PEP_BWE_PARAMS_DEFAULT;

static void apply(struct bench *x)
{
	x->sk.cwnd = x->out.cwnd;
	x->sk.pacing_rate = x->out.pacing_rate;
	x->sk.ssthresh = x->out.ssthresh;
}

static void start(struct bench *x, struct pep_bwe_params params)
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
		.cwnd_limited = true,
	};
	pep_cc_out_init(&x->out, &x->sk);
	pep_bwe_init(&x->w, &x->p, &x->sk, &x->out);
	apply(x);
}

/* One ACK for @packets after @pass_us; the rate sample covers a round trip at the path's rate. */
static void ack(struct bench *x, uint32_t packets, uint32_t pass_us, uint32_t rtt_us,
		uint32_t losses, uint8_t ca_state)
{
	bool begins = x->sk.delivered + packets - x->w.next_rtt_delivered >= BDP;
	struct pep_cc_rate rs = {
		.interval_us = RTT,
		.rtt_us = rtt_us ? (int64_t)rtt_us : -1,
		.delivered = BDP,
		.prior_delivered = begins ? x->sk.delivered : x->w.next_rtt_delivered - 1,
		.losses = losses,
		.acked_sacked = packets,
	};

	x->sk.now_us += pass_us;
	x->sk.delivered_us = x->sk.now_us;
	x->sk.delivered += packets;
	x->sk.lost += losses;
	x->sk.ca_state = ca_state;
	if (rtt_us)
		x->sk.srtt_us = x->sk.srtt_us ? (7 * x->sk.srtt_us + rtt_us) / 8 : rtt_us;
	pep_cc_out_init(&x->out, &x->sk);
	pep_bwe_ack(&x->w, &x->p, &x->sk, &rs, &x->out);
	apply(x);
}

/* @n rounds at the path's rate, one ACK a packet. */
static void rounds(struct bench *x, int n, uint32_t rtt_us, uint8_t ca_state)
{
	for (unsigned int i = 0; i < (unsigned int)n * BDP; i++)
		ack(x, 1, TICK, rtt_us, 0, ca_state);
}

static void lose(struct bench *x, uint32_t rtt_us)
{
	x->sk.ssthresh = pep_bwe_ssthresh(&x->w, &x->p, &x->sk);
	ack(x, 1, TICK, rtt_us, 1, PEP_CA_RECOVERY);
}

static void every_estimator_finds_the_rate(void **state)
{
	struct bench x;

	(void)state;
	for (uint32_t e = PEP_ESTIMATOR_TUSTIN; e <= PEP_ESTIMATOR_MAX; e++) {
		struct pep_bwe_params params = defaults;

		params.estimator = e;
		start(&x, params);
		rounds(&x, 200, RTT, PEP_CA_OPEN);
		assert_in_range(pep_bwe_bw(&x.w, &x.p), pep_bw(BDP, RTT) * 995ULL / 1000,
				pep_bw(BDP, RTT) * 1005ULL / 1000);
	}
}

static void the_tustin_filter_is_the_published_one(void **state)
{
	struct pep_estimate e = {0};
	double b = 0, before = 0;

	(void)state;
	pep_tustin_add(&e, 500, 100, 10000); /* the first sample is taken as it is */
	b = before = 100.0 / 10000 * (1 << 24);
	for (int i = 0; i < 300; i++) {
		uint32_t acked = i % 3 ? 40 : 160;
		double gap = i % 2 ? 10000 : 3000, sample = acked / gap * (1 << 24);

		pep_tustin_add(&e, 500, acked, (uint64_t)gap);
		b = ((1e6 - gap) * b + gap * (sample + before)) / (1e6 + gap);
		before = sample;
		assert_true(fabs((double)e.fine / 256 - b) < b * 1e-4);
	}
}

static void a_silent_path_lowers_the_tustin_estimate(void **state)
{
	struct pep_estimate e = {0};
	uint64_t before;

	(void)state;
	for (int i = 0; i < 100; i++)
		pep_tustin_add(&e, 500, 10, 1000);
	before = e.fine;
	pep_tustin_add(&e, 500, 1, 10000000); /* ten seconds: samples of zero are put in */
	assert_true(e.fine < before / 4);
	assert_true(e.fine > 0);
}

static void westwood_plus_moves_by_a_tenth(void **state)
{
	struct pep_estimate e = {0};

	(void)state;
	pep_westwood_add(&e, 100, 20000);
	assert_int_equal(e.fine >> 8, pep_bw(100, 20000));
	pep_westwood_add(&e, 200, 20000);
	assert_in_range(e.fine >> 8, pep_bw(110, 20000) - 1, pep_bw(110, 20000) + 1);
	pep_westwood_add(&e, 0, 20000);
	assert_in_range(e.fine >> 8, pep_bw(99, 20000) - 1, pep_bw(99, 20000) + 1);
}

/* R' = (RTT R + L) / (gap + RTT) */
static void the_sliding_window_is_one_rtt(void **state)
{
	struct pep_estimate e = {0};

	(void)state;
	pep_tsw_add(&e, 100, 20000, 20000);
	assert_int_equal(e.fine >> 8, pep_bw(100, 20000));
	pep_tsw_add(&e, 200, 20000, 20000);
	assert_int_equal(e.fine >> 8, pep_bw(150, 20000));
	pep_tsw_add(&e, 150, 60000, 20000); /* (150 + 150) / 80 ms */
	assert_in_range(e.fine >> 8, pep_bw(75, 20000) - 1, pep_bw(75, 20000) + 1);
}

static void estimators_bear_100_gbit_and_long_gaps(void **state)
{
	struct pep_estimate e = {0}, w = {0}, t = {0};

	(void)state;
	for (int i = 0; i < 100; i++) {
		pep_tustin_add(&e, 500, 8632, 1000);
		pep_westwood_add(&w, 8632596, 1000000);
		pep_tsw_add(&t, 8632596, 1000000, 1000000);
	}
	assert_in_range(e.fine >> 8, pep_bw(8600, 1000), pep_bw(8640, 1000));
	assert_in_range(w.fine >> 8, pep_bw(8600, 1000), pep_bw(8640, 1000));
	assert_in_range(t.fine >> 8, pep_bw(8600, 1000), pep_bw(8640, 1000));
	/* Hostile clocks: nothing wraps to nonsense. */
	pep_tustin_add(&e, 500, UINT32_MAX, 1);
	assert_true(e.fine <= (uint64_t)UINT32_MAX << 8);
	pep_tsw_add(&t, UINT32_MAX, 1, UINT32_MAX);
	assert_true(t.fine <= (uint64_t)UINT32_MAX << 8);
}

static void a_sender_without_data_lowers_no_estimate(void **state)
{
	struct pep_cc_rate rs = {.interval_us = RTT,
				 .rtt_us = RTT,
				 .delivered = 5,
				 .acked_sacked = 5,
				 .app_limited = true};
	struct bench x;

	(void)state;
	for (uint32_t e = PEP_ESTIMATOR_TUSTIN; e <= PEP_ESTIMATOR_MAX; e++) {
		struct pep_bwe_params params = defaults;
		uint32_t before;

		params.estimator = e;
		start(&x, params);
		rounds(&x, 50, RTT, PEP_CA_OPEN);
		before = pep_bwe_bw(&x.w, &x.p);
		for (int i = 0; i < 50; i++) {
			x.sk.delivered_us += RTT;
			rs.prior_delivered = x.sk.delivered;
			x.sk.delivered += 5;
			pep_estimate_add(&x.w.est, &x.p, &x.sk, &rs, x.w.rounds, true);
		}
		assert_int_equal(pep_bwe_bw(&x.w, &x.p), before);
	}
}

static void a_loss_leaves_what_the_path_holds(void **state)
{
	struct bench x;

	(void)state;
	start(&x, defaults);
	rounds(&x, 5, RTT, PEP_CA_OPEN);
	rounds(&x, 3, RTT * 2, PEP_CA_OPEN); /* the queue is as long as the path */
	x.sk.cwnd = 200;
	lose(&x, RTT * 2);
	assert_int_equal(x.out.ssthresh, BDP);
	assert_in_range(x.out.cwnd, BDP, BDP + 1);
	assert_int_equal(x.w.cuts, 1);
	assert_int_equal(x.w.congestive_losses, 1);
	/* Once per episode. */
	x.sk.cwnd = 180;
	ack(&x, 1, TICK, RTT * 2, 1, PEP_CA_RECOVERY);
	assert_int_equal(x.out.cwnd, 180);
	assert_int_equal(x.w.cuts, 1);
	/* The next episode is another. */
	ack(&x, 1, TICK, RTT * 2, 0, PEP_CA_OPEN);
	lose(&x, RTT * 2);
	assert_int_equal(x.w.cuts, 2);
	assert_in_range(x.out.cwnd, BDP, BDP + 1);
}

static void with_an_empty_queue_a_loss_costs_nothing(void **state)
{
	struct bench x;

	(void)state;
	start(&x, defaults);
	x.sk.ssthresh = BDP;
	x.sk.cwnd = BDP;
	rounds(&x, 5, RTT, PEP_CA_OPEN);
	x.sk.cwnd = BDP;
	lose(&x, RTT);
	assert_in_range(x.out.cwnd, BDP, BDP + 1);
	assert_int_equal(x.w.cuts, 0);
	assert_int_equal(x.w.radio_losses, 1);
}

static void the_window_is_never_below_four(void **state)
{
	struct bench x;

	(void)state;
	start(&x, defaults);
	x.sk.ssthresh = 10;
	lose(&x, RTT);
	assert_true(x.out.cwnd >= 4);
	assert_true(x.out.ssthresh >= 4);
}

static void a_radio_loss_does_not_end_slow_start(void **state)
{
	struct pep_bwe_params params = defaults;
	struct bench x;
	uint32_t before;

	(void)state;
	start(&x, defaults);
	rounds(&x, 1, RTT, PEP_CA_OPEN);
	before = x.sk.cwnd;
	lose(&x, RTT);
	assert_int_equal(x.out.ssthresh, PEP_SSTHRESH_NONE);
	assert_int_equal(x.out.cwnd, before + 1);
	assert_int_equal(x.w.radio_losses, 1);

	params.start_through_loss = 0;
	start(&x, params);
	rounds(&x, 1, RTT, PEP_CA_OPEN);
	lose(&x, RTT);
	assert_int_equal(x.out.ssthresh, BDP);
}

static void many_losses_end_slow_start_without_a_queue(void **state)
{
	struct bench x;

	(void)state;
	start(&x, defaults);
	rounds(&x, 3, RTT, PEP_CA_OPEN);
	x.sk.cwnd = 200;
	lose(&x, RTT);
	ack(&x, 1, TICK, RTT, 60, PEP_CA_RECOVERY);
	assert_int_equal(x.out.ssthresh, BDP);
	assert_in_range(x.out.cwnd, 4, BDP + 1);
}

static void a_standing_queue_ends_slow_start(void **state)
{
	struct pep_bwe_params params = defaults;
	struct bench x;

	(void)state;
	start(&x, defaults);
	rounds(&x, 2, RTT, PEP_CA_OPEN);
	assert_true(x.out.cwnd < x.out.ssthresh);
	rounds(&x, 3, RTT * 3 / 2, PEP_CA_OPEN);
	assert_true(x.out.cwnd >= x.out.ssthresh);

	params.start_exit = 0;
	start(&x, params);
	rounds(&x, 2, RTT, PEP_CA_OPEN);
	rounds(&x, 3, RTT * 3 / 2, PEP_CA_OPEN);
	assert_int_equal(x.out.ssthresh, PEP_SSTHRESH_NONE);
}

static void reno_grows_by_a_packet_a_round(void **state)
{
	struct pep_bwe_params params = defaults;
	struct bench x;

	(void)state;
	params.growth = PEP_GROWTH_RENO;
	start(&x, params);
	x.sk.ssthresh = BDP;
	x.sk.cwnd = BDP;
	rounds(&x, 10, RTT, PEP_CA_OPEN);
	assert_in_range(x.out.cwnd, BDP + 9, BDP + 11);
}

static void the_window_grows_in_recovery_only_without_a_queue(void **state)
{
	struct pep_bwe_params params = defaults;
	struct bench x;

	(void)state;
	params.growth = PEP_GROWTH_RENO;
	start(&x, params);
	x.sk.ssthresh = BDP;
	x.sk.cwnd = BDP;
	rounds(&x, 3, RTT, PEP_CA_OPEN);
	lose(&x, RTT);
	rounds(&x, 5, RTT, PEP_CA_RECOVERY);
	assert_in_range(x.out.cwnd, BDP + 4, BDP + 7);
	rounds(&x, 2, RTT * 2, PEP_CA_RECOVERY);
	x.sk.cwnd = 200;
	rounds(&x, 5, RTT * 2, PEP_CA_RECOVERY);
	assert_int_equal(x.out.cwnd, 200);

	x.p.recovery_growth = 0;
	x.sk.cwnd = BDP;
	rounds(&x, 5, RTT, PEP_CA_RECOVERY);
	assert_int_equal(x.out.cwnd, BDP);
}

static void an_application_that_sends_little_gets_no_larger_window(void **state)
{
	struct bench x;

	(void)state;
	start(&x, defaults);
	x.sk.cwnd_limited = false;
	rounds(&x, 5, RTT, PEP_CA_OPEN);
	assert_int_equal(x.out.cwnd, 10);
}

static void cubic_is_flat_where_the_last_loss_was(void **state)
{
	struct pep_growth g = {0};
	uint32_t k;

	(void)state;
	pep_growth_cut(&g, 1000);
	pep_growth_begin(&g, 1000000, 700);
	assert_int_equal(g.origin, 1000);
	/* K = cbrt(300 / 0.4) = 9.086 s */
	k = g.k;
	assert_in_range(k, 9080 * 1024 / 1000, 9090 * 1024 / 1000);
	/* At K the curve is at the origin: from 999 it takes all of the window for a packet. */
	assert_int_equal(pep_cubic_count(&g, 1000000 + 9086000, 0, 1000), 100000);
	/* 10 s past K: 0.4 x 10^3 = 400 packets more. */
	assert_in_range(pep_cubic_count(&g, 1000000 + 19086000, 0, 1000), 2, 3);
	/* A smaller maximum than last time makes room: 500 x 0.85 */
	pep_growth_cut(&g, 500);
	assert_int_equal(g.last_max, 425);
}

static void cubic_is_not_slower_than_reno(void **state)
{
	struct pep_bwe_params params = defaults;
	struct pep_growth g = {0};
	uint32_t cwnd = 100;

	(void)state;
	params.growth = PEP_GROWTH_CUBIC;
	pep_growth_cut(&g, 100);
	for (int i = 0; i < 20; i++)
		cwnd = pep_growth_avoid(&g, &params, 1000000 + (uint64_t)i * RTT, RTT, cwnd, cwnd);
	assert_in_range(cwnd, 119, 125);
}

static void pacing_is_above_the_windows_rate(void **state)
{
	struct bench x;
	uint64_t rate;

	(void)state;
	start(&x, defaults);
	x.sk.ssthresh = BDP;
	x.sk.cwnd = BDP;
	rounds(&x, 5, RTT, PEP_CA_OPEN);
	rate = (uint64_t)x.out.cwnd * MSS * (1000000 / RTT);
	assert_in_range(x.out.pacing_rate, rate * 119 / 100, rate * 121 / 100);
	x.sk.ssthresh = PEP_SSTHRESH_NONE;
	ack(&x, 1, TICK, RTT, 0, PEP_CA_OPEN);
	assert_in_range(x.out.pacing_rate, rate * 198 / 100, rate * 205 / 100);
	x.sk.max_pacing_rate = 12345;
	ack(&x, 1, TICK, RTT, 0, PEP_CA_OPEN);
	assert_int_equal(x.out.pacing_rate, 12345);
}

static void a_timeout_measures_the_least_rtt_anew(void **state)
{
	struct bench x;

	(void)state;
	start(&x, defaults);
	rounds(&x, 5, RTT, PEP_CA_OPEN);
	x.sk.cwnd = 150;
	x.sk.ssthresh = pep_bwe_ssthresh(&x.w, &x.p, &x.sk);
	pep_bwe_set_state(&x.w, PEP_CA_LOSS);
	x.sk.cwnd = 1; /* the kernel's */
	ack(&x, 1, 1000, RTT * 2, 0, PEP_CA_LOSS);
	assert_int_equal(x.w.min_rtt_us, RTT * 2);
	assert_int_equal(x.out.ssthresh, 2 * BDP);
	assert_int_equal(x.out.cwnd, 2); /* slow start up to it */
	/* It was none after all: the window comes back. */
	assert_int_equal(pep_bwe_undo_cwnd(&x.w, &x.sk), 150);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_estimator_finds_the_rate),
		cmocka_unit_test(the_tustin_filter_is_the_published_one),
		cmocka_unit_test(a_silent_path_lowers_the_tustin_estimate),
		cmocka_unit_test(westwood_plus_moves_by_a_tenth),
		cmocka_unit_test(the_sliding_window_is_one_rtt),
		cmocka_unit_test(estimators_bear_100_gbit_and_long_gaps),
		cmocka_unit_test(a_sender_without_data_lowers_no_estimate),
		cmocka_unit_test(a_loss_leaves_what_the_path_holds),
		cmocka_unit_test(with_an_empty_queue_a_loss_costs_nothing),
		cmocka_unit_test(the_window_is_never_below_four),
		cmocka_unit_test(a_radio_loss_does_not_end_slow_start),
		cmocka_unit_test(many_losses_end_slow_start_without_a_queue),
		cmocka_unit_test(a_standing_queue_ends_slow_start),
		cmocka_unit_test(reno_grows_by_a_packet_a_round),
		cmocka_unit_test(the_window_grows_in_recovery_only_without_a_queue),
		cmocka_unit_test(an_application_that_sends_little_gets_no_larger_window),
		cmocka_unit_test(cubic_is_flat_where_the_last_loss_was),
		cmocka_unit_test(cubic_is_not_slower_than_reno),
		cmocka_unit_test(pacing_is_above_the_windows_rate),
		cmocka_unit_test(a_timeout_measures_the_least_rtt_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
