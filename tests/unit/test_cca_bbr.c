/* SPDX-License-Identifier: GPL-2.0-or-later */
/* BBR version 1: modes, phases, least RTT, ProbeRTT, Recovery, policer, aggregation. */
#include "unit/cca_bench.h"

static const struct pep_bbr_params bbr = PEP_BBR_PARAMS_BBR;

static void the_constants_are_those_of_linux(void **state)
{
	(void)state;
	assert_int_equal(bbr.startup_gain, 256 * 2885 / 1000 + 1);
	assert_int_equal(bbr.drain_gain, 256 * 1000 / 2885);
	assert_int_equal(bbr.cwnd_gain, 512);
	assert_int_equal(bbr.probe_up_gain, 256 * 5 / 4);
	assert_int_equal(bbr.probe_down_gain, 256 * 3 / 4);
	assert_int_equal(bbr.bw_window_rounds, 10);
	assert_int_equal(bbr.margin_ppm, 10000);
}

static void without_an_rtt_a_millisecond_is_believed(void **state)
{
	struct bench x;

	(void)state;
	bench_init(&x, bbr);
	assert_int_equal(x.out.ssthresh, PEP_SSTHRESH_NONE);
	assert_false(x.b.has_seen_rtt);
	/* 10 packets in a millisecond, times 739/256, less 1 %. */
	assert_in_range(x.out.pacing_rate, 41370000, 41385000);

	/* The first RTT corrects that, also downwards, though the pipe is not full. */
	bench_ack(&x, (struct ack){.packets = 10, .rtt_us = 20000, .inflight = 10});
	assert_true(x.b.has_seen_rtt);
	assert_in_range(x.out.pacing_rate, 2000000, 4200000);
}

static void the_start_ends_after_three_rounds_without_growth(void **state)
{
	struct bench x;
	uint64_t rate;

	(void)state;
	bench_init(&x, bbr);
	bench_rounds(&x, 1, 10, 20000, 200);
	assert_int_equal(x.b.pacing_gain, 739);
	assert_int_equal(x.b.cwnd_gain, 739);
	bench_rounds(&x, 1, 20, 20000, 200);
	bench_rounds(&x, 1, 40, 20000, 200);
	rate = x.out.pacing_rate;
	bench_rounds(&x, 2, 40, 20000, 200);
	assert_int_equal(x.b.mode, PEP_BBR_STARTUP);
	assert_int_equal(x.out.pacing_rate, rate);
	bench_rounds(&x, 1, 40, 20000, 200);
	assert_true(x.b.full_bw_reached);
	assert_int_equal(x.b.mode, PEP_BBR_DRAIN);
	assert_int_equal(x.b.pacing_gain, 88);
	assert_int_equal(x.b.cwnd_gain, 739);
	/* ssthresh := target(1.0) = 40 packets, 3 bursts, even. */
	assert_in_range(x.out.ssthresh, 40, 40 + 3 * 8 + 1);
	assert_true(x.out.pacing_rate < rate);
}

static void pacing_never_falls_before_the_pipe_is_full(void **state)
{
	struct bench x;
	uint64_t rate;

	(void)state;
	bench_init(&x, bbr);
	bench_rounds(&x, 1, 10, 20000, 10);
	rate = x.out.pacing_rate;
	bench_init(&x, bbr);
	bench_ack(&x, (struct ack){.packets = 1, .rtt_us = 20000, .inflight = 9});
	assert_true(x.out.pacing_rate >= rate); /* of the initial window, not of one packet */
}

static void targets_have_room_for_bursts_and_are_even(void **state)
{
	struct bench x;

	(void)state;
	bench_steady(&x, bbr, 41, 20000);
	bench_phase(&x, 3, 41, 20000);
	/* 41 packets and three bursts of two */
	assert_int_equal(pep_bbr_target(&x.b, &x.sk, &x.out, pep_bw(41, 20000), 256), 48);
	x.b.cycle_idx = 0;
	assert_int_equal(pep_bbr_target(&x.b, &x.sk, &x.out, pep_bw(41, 20000), 256), 50);
}

static void growth_by_a_quarter_goes_on(void **state)
{
	struct bench x;

	(void)state;
	bench_init(&x, bbr);
	for (uint32_t n = 100; n < 1000; n = n * 5 / 4 + 1) {
		bench_rounds(&x, 1, n, 20000, 2000);
		bench_rounds(&x, 2, n, 20000, 2000); /* two rounds without are not three */
		assert_false(x.b.full_bw_reached);
	}
}

static void a_sender_without_data_does_not_end_the_start(void **state)
{
	struct bench x;

	(void)state;
	bench_init(&x, bbr);
	for (int i = 0; i < 10; i++)
		bench_ack(&x, (struct ack){.packets = 10, .rtt_us = 20000, .app_limited = true});
	assert_false(x.b.full_bw_reached);
	/* Its samples only raise the estimate. */
	bench_ack(&x, (struct ack){.packets = 50, .rtt_us = 20000, .app_limited = true});
	assert_int_equal(pep_bbr_max_bw(&x.b), pep_bw(50, 20000));
	bench_ack(&x, (struct ack){.packets = 5, .rtt_us = 20000, .app_limited = true});
	assert_int_equal(pep_bbr_max_bw(&x.b), pep_bw(50, 20000));
}

static void draining_ends_when_the_queue_is_gone(void **state)
{
	struct bench x;

	(void)state;
	bench_init(&x, bbr);
	bench_rounds(&x, 5, 40, 20000, 400);
	assert_int_equal(x.b.mode, PEP_BBR_DRAIN);
	bench_rounds(&x, 1, 40, 20000, 100);
	assert_int_equal(x.b.mode, PEP_BBR_DRAIN);
	bench_rounds(&x, 1, 40, 20000, 40);
	assert_int_equal(x.b.mode, PEP_BBR_PROBE_BW);
	assert_int_equal(x.b.cwnd_gain, 512);
}

static void a_cycle_never_begins_in_the_slow_phase(void **state)
{
	bool seen[PEP_BBR_CYCLE_LEN] = {false};
	struct bench x;

	(void)state;
	bench_init(&x, bbr);
	for (int i = 0; i < 2000; i++) {
		pep_bbr_enter_probe_bw(&x.b, &x.sk);
		seen[x.b.cycle_idx] = true;
	}
	for (unsigned int i = 0; i < PEP_BBR_CYCLE_LEN; i++)
		assert_int_equal(seen[i], i != 1);
}

static void the_cycle_has_its_gains_in_order(void **state)
{
	static const uint32_t gains[PEP_BBR_CYCLE_LEN] = {320, 192, 256, 256, 256, 256, 256, 256};
	struct bench x;

	(void)state;
	bench_steady(&x, bbr, 40, 20000);
	for (uint8_t i = 0; i < PEP_BBR_CYCLE_LEN; i++) {
		bench_phase(&x, i, 40, 20000);
		assert_int_equal(x.b.pacing_gain, gains[i]);
		/* rate = bw x gain x 0.99 */
		assert_in_range(x.out.pacing_rate, 40ULL * MSS * 50 * gains[i] / 256 * 985 / 1000,
				40ULL * MSS * 50 * gains[i] / 256 * 991 / 1000);
	}
}

static void asking_for_more_lasts_until_more_is_in_flight(void **state)
{
	struct bench x;

	(void)state;
	bench_steady(&x, bbr, 40, 20000);
	bench_phase(&x, 0, 40, 20000);
	for (int i = 0; i < 5; i++)
		bench_ack(&x, (struct ack){.packets = 40,
					   .rtt_us = 20000,
					   .pass_us = 20001,
					   .interval_us = 20000,
					   .inflight = 40,
					   .prior = 45});
	assert_int_equal(x.b.cycle_idx, 0);
	/* 1.25 BDP with what bursts add: 50 + 3 x 2 + 2 */
	bench_ack(&x, (struct ack){.packets = 40,
				   .rtt_us = 20000,
				   .pass_us = 20001,
				   .interval_us = 20000,
				   .inflight = 60,
				   .prior = 70});
	assert_int_equal(x.b.cycle_idx, 1);

	bench_phase(&x, 0, 40, 20000);
	bench_ack(&x, (struct ack){.packets = 40,
				   .rtt_us = 20000,
				   .pass_us = 20001,
				   .interval_us = 20000,
				   .inflight = 40,
				   .prior = 45,
				   .losses = 1});
	assert_int_equal(x.b.cycle_idx, 1);
}

static void draining_a_probe_ends_early_without_a_queue(void **state)
{
	struct bench x;

	(void)state;
	bench_steady(&x, bbr, 40, 20000);
	bench_phase(&x, 1, 40, 20000);
	bench_ack(&x,
		  (struct ack){.packets = 10, .rtt_us = 20000, .pass_us = 5000, .inflight = 80});
	assert_int_equal(x.b.cycle_idx, 1);
	bench_ack(&x, (struct ack){.packets = 10, .rtt_us = 20000, .pass_us = 5000, .prior = 40});
	assert_int_equal(x.b.cycle_idx, 2);
}

static void packets_that_wait_to_leave_are_not_in_flight(void **state)
{
	struct bench x;

	(void)state;
	bench_steady(&x, bbr, 40, 20000);
	bench_phase(&x, 2, 40, 20000);
	x.sk.clock_ns = 1000000;
	x.sk.wstamp_ns = 1000000 + 5000000; /* 5 ms ahead: a quarter of 40 packets */
	/* The division of 40 packets by 20 ms rounds down. */
	assert_in_range(pep_bbr_inflight_at_edt(&x.b, &x.sk, &x.out, 50), 40, 41);
	assert_int_equal(pep_bbr_inflight_at_edt(&x.b, &x.sk, &x.out, 5), 0);
	x.sk.wstamp_ns = 0; /* behind the clock: nothing waits */
	assert_int_equal(pep_bbr_inflight_at_edt(&x.b, &x.sk, &x.out, 50), 50);
}

static void the_least_rtt_is_believed_for_ten_seconds(void **state)
{
	struct bench x;
	uint64_t stamp;

	(void)state;
	bench_steady(&x, bbr, 40, 20000);
	stamp = x.b.min_rtt_stamp_us;
	bench_ack(&x, (struct ack){.packets = 40, .rtt_us = 20000, .inflight = 40});
	assert_int_equal(x.b.min_rtt_stamp_us, stamp); /* equal is not less */
	bench_ack(&x, (struct ack){.packets = 40, .rtt_us = 19999, .inflight = 40});
	assert_int_equal(x.b.min_rtt_us, 19999);
	assert_int_equal(x.b.min_rtt_stamp_us, x.sk.now_us);
	bench_ack(&x, (struct ack){.packets = 40, .rtt_us = 0, .pass_us = 20000, .inflight = 40});
	assert_int_equal(x.b.min_rtt_us, 19999); /* rtt = -1 */

	/* Expired: an ACK that was delayed does not count, the next does. */
	x.b.idle_restart = true; /* keeps ProbeRTT away */
	bench_ack(&x, (struct ack){.packets = 0,
				   .rtt_us = 30000,
				   .pass_us = 10100000,
				   .inflight = 40,
				   .ack_delayed = true});
	assert_int_equal(x.b.min_rtt_us, 19999);
	bench_ack(&x, (struct ack){.packets = 0, .rtt_us = 25000, .inflight = 40});
	assert_int_equal(x.b.min_rtt_us, 25000);
}

static void enter_probe_rtt(struct bench *x)
{
	bench_steady(x, bbr, 40, 20000);
	bench_rounds(x, 20, 40, 20000, 60);
	assert_int_equal(x->b.mode, PEP_BBR_PROBE_BW);
	x->sk.now_us = x->b.min_rtt_stamp_us + 10000000;
	x->sk.delivered_us = x->sk.now_us;
	bench_ack(x, (struct ack){.packets = 4,
				  .rtt_us = 21000,
				  .pass_us = 1,
				  .interval_us = 2000,
				  .inflight = 60,
				  .same_round = true,
				  .ack_delayed = true});
	assert_int_equal(x->b.mode, PEP_BBR_PROBE_RTT);
}

static void probe_rtt_keeps_four_packets_for_200_ms_and_a_round(void **state)
{
	struct bench x;
	uint32_t before;

	(void)state;
	enter_probe_rtt(&x);
	before = x.b.prior_cwnd;
	assert_true(before > 40);
	assert_int_equal(x.out.cwnd, 4);
	assert_int_equal(x.b.pacing_gain, 256);
	assert_int_equal(x.b.cwnd_gain, 256);
	assert_int_equal(x.out.app_limited, x.sk.delivered + x.sk.inflight);

	bench_ack(&x, (struct ack){.packets = 10, .rtt_us = 20000, .inflight = 50});
	assert_int_equal(x.b.probe_rtt_done_us, 0); /* too much in flight still */
	bench_ack(&x, (struct ack){.packets = 10, .rtt_us = 20000, .inflight = 4});
	assert_int_equal(x.b.probe_rtt_done_us, x.sk.now_us + 200000);
	/* 200 ms but no round */
	bench_ack(&x, (struct ack){.packets = 4,
				   .rtt_us = 20000,
				   .pass_us = 210000,
				   .inflight = 4,
				   .same_round = true});
	assert_int_equal(x.b.mode, PEP_BBR_PROBE_RTT);
	bench_ack(&x, (struct ack){.packets = 4, .rtt_us = 20000, .inflight = 4});
	assert_int_equal(x.b.mode, PEP_BBR_PROBE_BW);
	assert_true(x.out.cwnd >= before); /* the window is back at once */
	assert_int_equal(x.b.probe_rtts, 1);
}

static void probe_rtt_waits_for_its_time_too(void **state)
{
	struct bench x;

	(void)state;
	enter_probe_rtt(&x);
	bench_ack(&x, (struct ack){.packets = 10, .rtt_us = 20000, .inflight = 4});
	for (int i = 0; i < 9; i++) {
		bench_ack(&x, (struct ack){.packets = 4, .rtt_us = 20000, .inflight = 4});
		assert_int_equal(x.b.mode, PEP_BBR_PROBE_RTT);
		assert_int_equal(x.out.cwnd, 4);
	}
	bench_rounds(&x, 2, 4, 20000, 4);
	assert_int_equal(x.b.mode, PEP_BBR_PROBE_BW);
}

static void a_connection_that_was_idle_needs_no_probe_rtt(void **state)
{
	struct bench x;

	(void)state;
	bench_steady(&x, bbr, 40, 20000);
	x.sk.now_us += 11000000;
	x.sk.app_limited = 1;
	pep_cc_out_init(&x.out, &x.sk);
	pep_bbr_tx_start(&x.b, &x.p, &x.sk, &x.out);
	bench_apply(&x);
	assert_true(x.b.idle_restart);
	assert_int_equal(x.b.epoch_us, x.sk.now_us);
	/* Pacing restarts at the estimated bandwidth, whatever the phase was. */
	assert_in_range(x.out.pacing_rate, 40ULL * MSS * 50 * 985 / 1000,
			40ULL * MSS * 50 * 991 / 1000);
	bench_ack(&x, (struct ack){.packets = 10, .rtt_us = 20000, .inflight = 10});
	assert_int_equal(x.b.mode, PEP_BBR_PROBE_BW);
	assert_false(x.b.idle_restart);
}

static void recovery_conserves_packets_for_a_round_and_restores(void **state)
{
	struct bench x;
	uint32_t before;

	(void)state;
	bench_steady(&x, bbr, 40, 20000);
	bench_rounds(&x, 10, 40, 20000, 60);
	before = x.out.cwnd;
	assert_true(before >= 80);
	(void)pep_bbr_ssthresh(&x.b, &x.sk);
	bench_ack(&x, (struct ack){.packets = 2,
				   .rtt_us = 20000,
				   .pass_us = 100,
				   .inflight = 50,
				   .losses = 3,
				   .same_round = true,
				   .ca_state = PEP_CA_RECOVERY});
	assert_true(x.b.packet_conservation);
	assert_int_equal(x.out.cwnd, 52); /* what is in flight and what was acked */
	bench_ack(&x, (struct ack){.packets = 5,
				   .rtt_us = 20000,
				   .pass_us = 100,
				   .inflight = 49,
				   .same_round = true,
				   .ca_state = PEP_CA_RECOVERY});
	assert_int_equal(x.out.cwnd, 54);
	/* The next round grows as usual, up to the target. */
	bench_ack(&x, (struct ack){.packets = 10,
				   .rtt_us = 20000,
				   .inflight = 49,
				   .ca_state = PEP_CA_RECOVERY});
	assert_false(x.b.packet_conservation);
	assert_int_equal(x.out.cwnd, 64);
	bench_ack(&x, (struct ack){.packets = 1,
				   .rtt_us = 20000,
				   .pass_us = 100,
				   .inflight = 49,
				   .same_round = true,
				   .ca_state = PEP_CA_OPEN});
	assert_true(x.out.cwnd >= before);
}

static void losses_take_their_packets_out_of_the_window(void **state)
{
	struct bench x;
	uint32_t before;

	(void)state;
	bench_steady(&x, bbr, 40, 20000);
	bench_rounds(&x, 10, 40, 20000, 60);
	before = x.out.cwnd;
	bench_ack(&x, (struct ack){.packets = 1,
				   .rtt_us = 20000,
				   .pass_us = 100,
				   .inflight = 50,
				   .losses = 7,
				   .same_round = true,
				   .ca_state = PEP_CA_DISORDER});
	assert_int_equal(x.out.cwnd, before - 7 + 1);
	bench_ack(&x, (struct ack){.packets = 1,
				   .rtt_us = 20000,
				   .pass_us = 100,
				   .inflight = 50,
				   .losses = 100000,
				   .same_round = true,
				   .ca_state = PEP_CA_DISORDER});
	assert_int_equal(x.out.cwnd, 4);
}

static void a_timeout_ends_a_round_and_restarts_the_search(void **state)
{
	struct bench x;

	(void)state;
	bench_steady(&x, bbr, 40, 20000);
	bench_rounds(&x, 10, 40, 20000, 60);
	(void)pep_bbr_ssthresh(&x.b, &x.sk);
	pep_bbr_set_state(&x.b, &x.p, &x.sk, PEP_CA_LOSS);
	assert_int_equal(x.b.full_bw, 0);
	assert_true(x.b.round_start);
	assert_int_equal(x.b.prev_ca_state, PEP_CA_LOSS);
	assert_true(x.b.lt_is_sampling);
	/* After it the window comes back. */
	x.sk.cwnd = 1;
	bench_ack(&x,
		  (struct ack){
			  .packets = 1, .rtt_us = 20000, .inflight = 1, .ca_state = PEP_CA_OPEN});
	assert_true(x.out.cwnd >= 80);
}

static void undo_forgets_the_policer_and_the_full_pipe(void **state)
{
	struct bench x;

	(void)state;
	bench_steady(&x, bbr, 40, 20000);
	x.b.lt_use_bw = true;
	assert_int_equal(pep_bbr_undo_cwnd(&x.b, &x.sk), x.sk.cwnd);
	assert_int_equal(x.b.full_bw, 0);
	assert_false(x.b.lt_use_bw);
	assert_int_equal(pep_bbr_ssthresh(&x.b, &x.sk), x.sk.ssthresh);
}

/* One policed interval: five rounds at @packets with a quarter of them lost. */
static void policed_interval(struct bench *x, uint32_t packets)
{
	for (int i = 0; i < 5; i++)
		bench_ack(x, (struct ack){.packets = packets,
					  .rtt_us = 20000,
					  .inflight = packets,
					  .losses = packets / 3});
}

static void two_lossy_intervals_of_one_rate_are_a_policer(void **state)
{
	struct bench x;
	int i;

	(void)state;
	bench_steady(&x, bbr, 100, 20000);
	for (i = 0; i < 20 && !x.b.lt_use_bw; i++)
		bench_ack(&x, (struct ack){.packets = 40 + (uint32_t)i % 2,
					   .rtt_us = 20000,
					   .inflight = 40,
					   .losses = 13});
	assert_in_range(i, 8, 12); /* two intervals of at least four rounds */
	assert_true(x.b.lt_use_bw);
	assert_in_range(x.b.lt_bw, pep_bw(38, 20000), pep_bw(42, 20000));
	assert_int_equal(x.b.pacing_gain, 256);

	/* Held for 48 rounds, then the search begins anew. */
	for (i = 0; i < 100 && x.b.lt_use_bw; i++)
		bench_rounds(&x, 1, 40, 20000, 40);
	assert_in_range(i, 46, 49);
}

static void little_loss_or_changing_rates_are_no_policer(void **state)
{
	struct bench x;

	(void)state;
	bench_steady(&x, bbr, 100, 20000);
	for (int i = 0; i < 60; i++)
		bench_ack(&x, (struct ack){.packets = 100,
					   .rtt_us = 20000,
					   .inflight = 100,
					   .losses = 19}); /* below 50/256 */
	assert_false(x.b.lt_use_bw);

	bench_steady(&x, bbr, 100, 20000);
	for (uint32_t n = 20; n < 400; n += n / 2)
		policed_interval(&x, n);
	assert_false(x.b.lt_use_bw);
}

static void the_policer_can_be_switched_off(void **state)
{
	struct pep_bbr_params params = bbr;
	struct bench x;

	(void)state;
	params.policer = 0;
	bench_steady(&x, params, 100, 20000);
	for (int i = 0; i < 6; i++)
		policed_interval(&x, 40);
	assert_false(x.b.lt_use_bw);
}

/* Rounds of 20 ACKs for five packets each. At just the estimated rate an excess once seen stays. */
static void smooth_rounds(struct bench *x, int n, uint32_t pass_us)
{
	for (int i = 0; i < 20 * n; i++)
		bench_ack(x, (struct ack){.packets = 5,
					  .rtt_us = 20000,
					  .pass_us = pass_us,
					  .inflight = 200,
					  .same_round = i % 20 != 0});
}

static void bunched_acks_widen_the_window(void **state)
{
	struct bench x;
	uint32_t plain;

	(void)state;
	bench_steady(&x, bbr, 100, 20000);
	smooth_rounds(&x, 9, 1100);
	smooth_rounds(&x, 30, 1200);
	assert_in_range(pep_bbr_extra_acked(&x.b), 1, 10);
	plain = x.out.cwnd;
	/* 60 packets at once, of which a millisecond explains five. */
	bench_ack(&x, (struct ack){.packets = 60,
				   .rtt_us = 20000,
				   .pass_us = 1000,
				   .interval_us = 20000,
				   .inflight = 200,
				   .same_round = true});
	assert_in_range(pep_bbr_extra_acked(&x.b), 50, 66);
	smooth_rounds(&x, 2, 1200);
	assert_in_range(x.out.cwnd - plain, 45, 66);
	smooth_rounds(&x, 9, 1400);
	smooth_rounds(&x, 9, 1600); /* forgotten after ten rounds at most */
	assert_in_range(pep_bbr_extra_acked(&x.b), 1, 10);
}

static void aggregation_adds_at_most_100_ms(void **state)
{
	struct bench x;

	(void)state;
	bench_steady(&x, bbr, 100, 2000);
	x.b.extra_acked[0] = 1000000;
	assert_int_equal(pep_bbr_aggregation_cwnd(&x.b, &x.p),
			 pep_bw_packets(pep_bbr_bw(&x.b), 100000));
	x.p.aggregation_gain = 0;
	assert_int_equal(pep_bbr_aggregation_cwnd(&x.b, &x.p), 0);
}

static void invalid_samples_change_no_estimate(void **state)
{
	struct pep_cc_rate rs = {.interval_us = 0, .rtt_us = -1, .delivered = 10};
	struct bench x;
	uint32_t bw;

	(void)state;
	bench_steady(&x, bbr, 40, 20000);
	bw = pep_bbr_bw(&x.b);
	pep_bbr_ack(&x.b, &x.p, &x.sk, &rs, &x.out);
	rs.interval_us = 10;
	rs.delivered = -1;
	pep_bbr_ack(&x.b, &x.p, &x.sk, &rs, &x.out);
	assert_int_equal(pep_bbr_bw(&x.b), bw);
}

static void caps_of_the_socket_hold(void **state)
{
	struct bench x;

	(void)state;
	bench_init(&x, bbr);
	x.sk.cwnd_clamp = 20;
	x.sk.max_pacing_rate = 500000;
	bench_rounds(&x, 12, 100, 20000, 100);
	assert_int_equal(x.out.cwnd, 20);
	assert_int_equal(x.out.pacing_rate, 500000);
}

static void a_bound_in_time_forgets_faster_when_rounds_are_long(void **state)
{
	struct pep_bbr_params params = bbr;
	struct bench bounded, unbounded;

	(void)state;
	params.bw_window_ms = 500;
	bench_steady(&bounded, params, 400, 20000);
	bench_steady(&unbounded, bbr, 400, 20000);
	/* A tenth of the rate; the queue stretches rounds to 200 ms, of which ten ACKs each
	 * show 20. */
	for (int i = 0; i < 40; i++) {
		struct ack a = {.packets = 40,
				.rtt_us = 200000,
				.pass_us = 20000,
				.interval_us = 20000,
				.inflight = 400,
				.same_round = i % 10 != 0};

		bench_ack(&bounded, a);
		bench_ack(&unbounded, a);
	}
	assert_int_equal(pep_bbr_max_bw(&unbounded.b), pep_bw(400, 20000));
	assert_int_equal(pep_bbr_max_bw(&bounded.b), pep_bw(40, 20000));
}

static void extreme_paths_keep_their_senses(void **state)
{
	struct bench x;

	(void)state;
	/* 100 Gbit/s and 1 s: a BDP of 8.6 million packets. */
	bench_init(&x, bbr);
	bench_rounds(&x, 8, 8632596, 1000000, 8000000);
	assert_in_range(pep_bbr_bdp(&x.b, pep_bbr_bw(&x.b), 256), 8632000, 8633000);
	assert_in_range(x.out.pacing_rate, 3000000000ULL, 36000000000ULL);
	assert_true(x.out.cwnd > 8000000);
	/* One packet a second. */
	bench_init(&x, bbr);
	bench_rounds(&x, 8, 1, 1000000, 1);
	assert_true(x.out.cwnd >= 4);
	assert_true(x.out.pacing_rate > 0);
	/* 1 us. */
	bench_init(&x, bbr);
	bench_rounds(&x, 8, 10, 1, 10);
	assert_true(x.out.cwnd >= 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_constants_are_those_of_linux),
		cmocka_unit_test(without_an_rtt_a_millisecond_is_believed),
		cmocka_unit_test(the_start_ends_after_three_rounds_without_growth),
		cmocka_unit_test(pacing_never_falls_before_the_pipe_is_full),
		cmocka_unit_test(targets_have_room_for_bursts_and_are_even),
		cmocka_unit_test(growth_by_a_quarter_goes_on),
		cmocka_unit_test(a_sender_without_data_does_not_end_the_start),
		cmocka_unit_test(draining_ends_when_the_queue_is_gone),
		cmocka_unit_test(a_cycle_never_begins_in_the_slow_phase),
		cmocka_unit_test(the_cycle_has_its_gains_in_order),
		cmocka_unit_test(asking_for_more_lasts_until_more_is_in_flight),
		cmocka_unit_test(draining_a_probe_ends_early_without_a_queue),
		cmocka_unit_test(packets_that_wait_to_leave_are_not_in_flight),
		cmocka_unit_test(the_least_rtt_is_believed_for_ten_seconds),
		cmocka_unit_test(probe_rtt_keeps_four_packets_for_200_ms_and_a_round),
		cmocka_unit_test(probe_rtt_waits_for_its_time_too),
		cmocka_unit_test(a_connection_that_was_idle_needs_no_probe_rtt),
		cmocka_unit_test(recovery_conserves_packets_for_a_round_and_restores),
		cmocka_unit_test(losses_take_their_packets_out_of_the_window),
		cmocka_unit_test(a_timeout_ends_a_round_and_restarts_the_search),
		cmocka_unit_test(undo_forgets_the_policer_and_the_full_pipe),
		cmocka_unit_test(two_lossy_intervals_of_one_rate_are_a_policer),
		cmocka_unit_test(little_loss_or_changing_rates_are_no_policer),
		cmocka_unit_test(the_policer_can_be_switched_off),
		cmocka_unit_test(bunched_acks_widen_the_window),
		cmocka_unit_test(aggregation_adds_at_most_100_ms),
		cmocka_unit_test(invalid_samples_change_no_estimate),
		cmocka_unit_test(caps_of_the_socket_hold),
		cmocka_unit_test(a_bound_in_time_forgets_faster_when_rounds_are_long),
		cmocka_unit_test(extreme_paths_keep_their_senses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
