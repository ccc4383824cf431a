/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What BBR-ACD, BBR-A and RTT-adjusted pacing add: the verdict on losses, the cut, slower pacing.
 */
#include "unit/cca_bench.h"

#define RTT 20000U

static const struct pep_bbr_params bbr = PEP_BBR_PARAMS_BBR;
static const struct pep_bbr_params acd = PEP_BBR_PARAMS_ACD;
static const struct pep_bbr_params bbr_a = PEP_BBR_PARAMS_A;
static const struct pep_bbr_params bbr_d = PEP_BBR_PARAMS_D;

static struct pep_bbr_params with_verdict(enum pep_verdict verdict)
{
	struct pep_bbr_params params = bbr_a;

	params.verdict = verdict;
	params.regrow = 0;
	params.verdict_burst = 0;
	return params;
}

/* 100 packets per 20 ms, cwnd about two BDP. */
static void steady(struct bench *x, struct pep_bbr_params params)
{
	bench_steady(x, params, 100, RTT);
	bench_rounds(x, 12, 100, RTT, 100);
	assert_int_equal(x->b.min_rtt_us, RTT);
	assert_true(x->out.cwnd >= 200);
}

/* @n ACKs of one round with @rtt_us each. */
static void see_rtt(struct bench *x, int n, uint32_t rtt_us)
{
	for (int i = 0; i < n; i++)
		bench_ack(x, (struct ack){.packets = 5,
					  .rtt_us = rtt_us,
					  .pass_us = 1000,
					  .inflight = 150,
					  .same_round = i > 0});
}

/* Recovery begins with an ACK for one packet that tells of @losses; @rtt_us 0: no RTT sample. */
static void lose(struct bench *x, uint32_t losses, uint32_t rtt_us)
{
	(void)pep_bbr_ssthresh(&x->b, &x->sk);
	bench_ack(x, (struct ack){.packets = 1,
				  .rtt_us = rtt_us,
				  .pass_us = 100,
				  .interval_us = RTT,
				  .inflight = 150,
				  .losses = losses,
				  .same_round = true,
				  .ca_state = PEP_CA_RECOVERY});
}

static void leave(struct bench *x)
{
	bench_ack(x, (struct ack){.packets = 1,
				  .rtt_us = RTT,
				  .pass_us = 100,
				  .interval_us = RTT,
				  .inflight = 100,
				  .same_round = true,
				  .ca_state = PEP_CA_OPEN});
}

static void the_controls_differ_where_they_should(void **state)
{
	struct pep_bbr_params a = bbr_a;

	(void)state;
	assert_int_equal(bbr.verdict, PEP_VERDICT_OFF);
	assert_int_equal(bbr.rtt_pacing, PEP_RTT_PACING_OFF);
	assert_int_equal(bbr_a.cut_gain, 192);
	assert_int_equal(acd.cut_gain, 256);
	assert_int_equal(bbr_d.rtt_pacing, PEP_RTT_PACING_SAFE);
	assert_int_equal(bbr_d.verdict, PEP_VERDICT_OFF);
	a.cut_gain = acd.cut_gain;
	a.regrow = acd.regrow;
	a.regain = acd.regain;
	assert_memory_equal(&a, &acd, sizeof(a));
}

static void a_standing_queue_halves_the_window(void **state)
{
	struct bench x;
	uint32_t before;

	(void)state;
	steady(&x, with_verdict(PEP_VERDICT_STANDING));
	see_rtt(&x, 20, RTT * 3 / 2);
	see_rtt(&x, 20, RTT * 3 / 2);
	before = x.sk.cwnd;
	lose(&x, 1, RTT * 3 / 2);
	assert_int_equal(x.b.congestive_losses, 1);
	assert_int_equal(x.b.cuts, 1);
	/* Half, or what the path holds with its bursts. */
	assert_int_equal(x.out.cwnd,
			 pep_min32((before - 1) / 2,
				   pep_bbr_target(&x.b, &x.sk, &x.out, pep_bbr_bw(&x.b), 256)));
	assert_in_range(x.out.cwnd, 100, 130);
}

static void a_cut_lasts_until_the_round_ends(void **state)
{
	struct bench x;
	uint32_t cut;

	(void)state;
	steady(&x, with_verdict(PEP_VERDICT_STANDING));
	see_rtt(&x, 20, RTT * 2);
	see_rtt(&x, 20, RTT * 2);
	lose(&x, 1, RTT * 2);
	cut = x.out.cwnd;
	for (int i = 0; i < 5; i++)
		bench_ack(&x, (struct ack){.packets = 5,
					   .rtt_us = RTT * 2,
					   .pass_us = 1000,
					   .inflight = 90,
					   .same_round = true,
					   .ca_state = PEP_CA_RECOVERY});
	assert_int_equal(x.out.cwnd, cut);
	assert_int_equal(x.b.applied_gain, 192);
	assert_int_equal(x.b.cuts, 1);
	/* The queue is gone in the next rounds: no further cut, usual pacing, growth. */
	for (int i = 0; i < 3; i++)
		bench_ack(&x, (struct ack){.packets = 20,
					   .rtt_us = RTT,
					   .inflight = 90,
					   .ca_state = PEP_CA_RECOVERY});
	assert_in_range(x.b.cuts, 1, 2); /* the round before still stands behind the first */
	assert_true(x.b.applied_gain >= 256 || x.b.cycle_idx == 1);
	assert_true(x.out.cwnd > cut);
}

static void two_losses_in_a_round_are_one_cut(void **state)
{
	static const enum pep_verdict verdicts[] = {PEP_VERDICT_STANDING, PEP_VERDICT_PAPER};
	struct bench x;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(verdicts); i++) {
		uint32_t cut;

		steady(&x, with_verdict(verdicts[i]));
		see_rtt(&x, 20, RTT * 2);
		see_rtt(&x, 20, RTT * 2);
		lose(&x, 1, RTT * 2);
		assert_int_equal(x.b.cuts, 1);
		cut = x.out.cwnd;
		bench_ack(&x, (struct ack){.packets = 1,
					   .rtt_us = RTT * 2,
					   .pass_us = 100,
					   .inflight = 100,
					   .losses = 2,
					   .same_round = true,
					   .ca_state = PEP_CA_RECOVERY});
		assert_int_equal(x.b.cuts, 1);
		assert_int_equal(x.out.cwnd, cut - 2); /* the losses, not another half */
	}
}

static void an_empty_queue_makes_it_a_radio_loss(void **state)
{
	struct bench x;

	(void)state;
	steady(&x, with_verdict(PEP_VERDICT_STANDING));
	see_rtt(&x, 20, RTT);
	lose(&x, 1, RTT);
	assert_int_equal(x.b.cuts, 0);
	/* As BBR does: what is in flight and what was acked, for a round. */
	assert_true(x.b.packet_conservation);
	assert_int_equal(x.out.cwnd, 151);
	leave(&x);
	assert_int_equal(x.b.radio_losses, 1);
	assert_int_equal(x.b.congestive_losses, 0);
	assert_true(x.out.cwnd >= 200);
}

static void single_late_packets_are_no_queue(void **state)
{
	struct bench x;

	(void)state;
	steady(&x, with_verdict(PEP_VERDICT_STANDING));
	for (int i = 0; i < 30; i++)
		see_rtt(&x, 1, i % 10 == 9 ? RTT : RTT * 3);
	lose(&x, 1, RTT * 3);
	assert_int_equal(x.b.cuts, 0);
}

static void jitter_lifts_the_bar(void **state)
{
	struct bench x;

	(void)state;
	steady(&x, with_verdict(PEP_VERDICT_STANDING));
	x.sk.mdev_us = 4000; /* allows 8 ms, up to half of the least RTT */
	see_rtt(&x, 20, RTT + 7000);
	see_rtt(&x, 20, RTT + 7000);
	lose(&x, 1, RTT + 7000);
	assert_int_equal(x.b.cuts, 0);
	leave(&x);
	x.sk.mdev_us = 400000;
	see_rtt(&x, 20, RTT + 11000);
	see_rtt(&x, 20, RTT + 11000);
	lose(&x, 1, RTT + 11000);
	assert_int_equal(x.b.cuts, 1);
}

/* paper: three equal RTTs above the least one are congestion, equal to it they are not. */
static void equal_rtts_above_the_least_one_convict(void **state)
{
	struct bench x;

	(void)state;
	steady(&x, with_verdict(PEP_VERDICT_PAPER));
	see_rtt(&x, 1, RTT * 5 / 4);
	see_rtt(&x, 1, RTT * 5 / 4 + 900);
	lose(&x, 1, RTT * 5 / 4 + 300);
	assert_int_equal(x.b.cuts, 1);

	steady(&x, with_verdict(PEP_VERDICT_PAPER));
	see_rtt(&x, 1, RTT * 5 / 4);
	lose(&x, 1, RTT * 5 / 4); /* two only */
	assert_int_equal(x.b.cuts, 0);

	steady(&x, with_verdict(PEP_VERDICT_PAPER));
	see_rtt(&x, 20, RTT);
	lose(&x, 1, RTT);
	assert_int_equal(x.b.cuts, 0);
}

static void exactly_twice_the_least_rtt_is_where_paper_and_code_differ(void **state)
{
	struct bench x;

	(void)state;
	steady(&x, with_verdict(PEP_VERDICT_PAPER));
	lose(&x, 1, 2 * RTT);
	assert_int_equal(x.b.cuts, 1);

	steady(&x, with_verdict(PEP_VERDICT_AUTHOR));
	lose(&x, 1, 2 * RTT);
	assert_int_equal(x.b.congestive_losses, 0);

	steady(&x, with_verdict(PEP_VERDICT_AUTHOR));
	lose(&x, 1, 2 * RTT + 1);
	assert_int_equal(x.b.congestive_losses, 1);

	steady(&x, with_verdict(PEP_VERDICT_STANDING));
	see_rtt(&x, 2, 2 * RTT);
	see_rtt(&x, 1, 2 * RTT);
	x.b.rise_count = 0;
	assert_true(pep_bbr_congested(&x.b, &x.p, &x.sk));
}

/* A millisecond of tolerance is more than a mmWave RTT has; a tolerance must scale. */
static void rtts_below_a_millisecond_are_judged(void **state)
{
	struct bench x;

	(void)state;
	bench_steady(&x, with_verdict(PEP_VERDICT_PAPER), 100, 400);
	bench_rounds(&x, 12, 100, 400, 100);
	see_rtt(&x, 1, 500);
	see_rtt(&x, 1, 600); /* 100 us apart at 400 us: not the same */
	see_rtt(&x, 1, 700);
	lose(&x, 1, 610);
	assert_int_equal(x.b.cuts, 0);
	leave(&x);
	see_rtt(&x, 3, 600);
	lose(&x, 1, 610);
	assert_int_equal(x.b.cuts, 1);

	/* The authors' subtraction wraps there: nothing is ever the same. */
	bench_steady(&x, with_verdict(PEP_VERDICT_AUTHOR), 100, 400);
	bench_rounds(&x, 12, 100, 400, 100);
	see_rtt(&x, 20, 600);
	lose(&x, 1, 600);
	assert_int_equal(x.b.congestive_losses, 0);
}

static void a_missing_rtt_changes_no_verdict(void **state)
{
	static const enum pep_verdict verdicts[] = {PEP_VERDICT_STANDING, PEP_VERDICT_PAPER,
						    PEP_VERDICT_AUTHOR};
	struct bench x;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(verdicts); i++) {
		steady(&x, with_verdict(verdicts[i]));
		lose(&x, 1, 0);
		assert_int_equal(x.b.congestive_losses, 0);

		steady(&x, with_verdict(verdicts[i]));
		see_rtt(&x, 20, RTT * 3);
		see_rtt(&x, 20, RTT * 3);
		lose(&x, 1, 0);
		assert_int_equal(x.b.congestive_losses, 1);
	}
	/* Nor does a connection without any RTT. */
	bench_init(&x, with_verdict(PEP_VERDICT_PAPER));
	lose(&x, 1, 0);
	assert_int_equal(x.b.congestive_losses, 0);
}

static void the_authors_code_halves_on_every_ack(void **state)
{
	struct bench x;

	(void)state;
	steady(&x, with_verdict(PEP_VERDICT_AUTHOR));
	see_rtt(&x, 5, RTT * 3);
	lose(&x, 1, RTT * 3);
	for (int i = 0; i < 6; i++)
		bench_ack(&x, (struct ack){.packets = 1,
					   .rtt_us = RTT * 3,
					   .pass_us = 100,
					   .inflight = 100,
					   .same_round = true,
					   .ca_state = PEP_CA_RECOVERY});
	assert_int_equal(x.out.cwnd, 4);
	assert_int_equal(x.b.applied_gain, 192);
}

static void probe_rtt_gives_the_window_back_but_for_the_authors(void **state)
{
	static const enum pep_verdict verdicts[] = {PEP_VERDICT_STANDING, PEP_VERDICT_PAPER,
						    PEP_VERDICT_AUTHOR};
	struct bench x;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(verdicts); i++) {
		steady(&x, with_verdict(verdicts[i]));
		x.sk.now_us = x.b.min_rtt_stamp_us + 10000000;
		for (int k = 0; k < 15; k++)
			bench_ack(&x, (struct ack){.packets = 4,
						   .rtt_us = RTT,
						   .inflight = 4,
						   .app_limited = true});
		assert_int_equal(x.b.probe_rtts, 1);
		assert_int_equal(x.b.mode, PEP_BBR_PROBE_BW);
		if (verdicts[i] == PEP_VERDICT_AUTHOR)
			assert_true(x.out.cwnd < 60);
		else
			assert_true(x.out.cwnd >= 200);
	}
}

static void losses_must_exceed_the_usual_ones(void **state)
{
	struct pep_bbr_params params = bbr_a;
	struct bench x;

	(void)state;
	params.regrow = 0;
	steady(&x, params);
	/* A path with a queue that loses one packet of a hundred in each round. */
	for (int i = 0; i < 300; i++)
		bench_ack(&x, (struct ack){.packets = 99,
					   .rtt_us = RTT * 3 / 2,
					   .inflight = 100,
					   .losses = 1});
	assert_in_range(x.b.usual.share, 500, 700); /* 655: 1 % */
	lose(&x, 2, RTT * 3 / 2);
	assert_int_equal(x.b.cuts, 0);
	leave(&x);
	see_rtt(&x, 20, RTT * 3 / 2);
	see_rtt(&x, 20, RTT * 3 / 2);
	lose(&x, 30, RTT * 3 / 2);
	assert_int_equal(x.b.cuts, 1);
}

static void a_cut_window_comes_back_step_by_step(void **state)
{
	struct bench x;
	uint32_t n = 0;

	(void)state;
	steady(&x, bbr_a);
	see_rtt(&x, 20, RTT * 2);
	see_rtt(&x, 20, RTT * 2);
	lose(&x, 40, RTT * 2);
	assert_int_equal(x.b.cuts, 1);
	leave(&x);
	assert_in_range(x.out.cwnd, 100, 130); /* a BDP at once */
	for (n = 0; n < 60 && x.out.cwnd < 200; n++) {
		uint32_t before = x.out.cwnd;

		bench_rounds(&x, 1, 100, RTT, 100);
		assert_true(x.out.cwnd - before <= 100 / 16 + 3);
	}
	assert_in_range(n, 10, 25);
	assert_int_equal(x.b.radio_losses, 0);
}

static uint32_t factor(struct bench *x)
{
	return pep_bbr_rtt_factor(&x->b, &x->p, &x->sk);
}

static void pacing_gives_way_to_a_standing_queue(void **state)
{
	struct bench x;

	(void)state;
	steady(&x, bbr_d);
	see_rtt(&x, 20, RTT);
	assert_int_equal(factor(&x), 256);
	/* 20 ms and a sixteenth over 25 ms */
	see_rtt(&x, 20, 25000);
	assert_int_equal(factor(&x), 256); /* the round before was good */
	see_rtt(&x, 20, 25000);
	assert_int_equal(factor(&x), 21250 * 256 / 25000);
	assert_int_equal(x.b.applied_gain, (x.b.pacing_gain * factor(&x)) >> 8);
	/* Thirteen sixteenths at least. */
	see_rtt(&x, 20, 60000);
	see_rtt(&x, 20, 60000);
	assert_int_equal(factor(&x), 208);
	x.p.rtt_pacing_floor = 192;
	assert_int_equal(factor(&x), 192);
}

static void known_jitter_is_allowed_on_top(void **state)
{
	struct bench x;

	(void)state;
	steady(&x, bbr_d);
	see_rtt(&x, 20, RTT);
	x.sk.inflight = 1000;
	x.sk.srtt_us = 25000;
	x.b.sparse.jitter_us = 0; /* none: 20 ms and a thirty-second */
	assert_int_equal(factor(&x), 20625 * 256 / 25000);
	x.sk.srtt_us = 100000;
	assert_int_equal(factor(&x), 128);
	x.b.sparse.jitter_us = 2000;
	x.sk.srtt_us = 25000;
	assert_int_equal(factor(&x), 22625 * 256 / 25000);
	x.b.sparse.jitter_us = RTT / 4 + 1; /* so much that a mistake must not feed itself */
	x.sk.srtt_us = 100000;
	assert_int_equal(factor(&x), 208);
	x.b.sparse.jitter_us = RTT + 1; /* as much as the RTT itself */
	assert_int_equal(factor(&x), 256);
	x.p.rtt_pacing_floor = 150;
	assert_int_equal(factor(&x), 150);
}

static void a_flow_without_a_part_in_the_queue_is_not_slowed(void **state)
{
	struct bench x;

	(void)state;
	steady(&x, bbr_d); /* 100 packets and 20 ms */
	see_rtt(&x, 20, RTT);
	x.b.sparse.jitter_us = 0;
	x.sk.srtt_us = 30000;
	x.sk.inflight = 103; /* 20 ms and a thirty-second of the bandwidth */
	assert_int_equal(factor(&x), 256);
	x.sk.inflight = 104;
	assert_int_equal(factor(&x), 20625 * 256 / 30000);
}

static void the_strict_form_follows_the_smoothed_rtt(void **state)
{
	struct bench x;

	(void)state;
	steady(&x, bbr_d);
	x.p.rtt_pacing = PEP_RTT_PACING_STRICT;
	x.sk.srtt_us = 25000;
	assert_int_equal(factor(&x), 20000 * 256 / 25000);
	x.sk.srtt_us = 100000;
	assert_int_equal(factor(&x), 128);
	x.sk.srtt_us = 10000;
	assert_int_equal(factor(&x), 256);
}

static void pacing_is_left_alone_where_the_rtt_tells_nothing(void **state)
{
	struct bench x;

	(void)state;
	steady(&x, bbr_d);
	see_rtt(&x, 20, 60000);
	see_rtt(&x, 20, 60000);
	assert_int_equal(factor(&x), 208);
	x.b.mode = PEP_BBR_STARTUP;
	assert_int_equal(factor(&x), 256);
	x.b.mode = PEP_BBR_PROBE_RTT;
	assert_int_equal(factor(&x), 256);
	x.b.mode = PEP_BBR_PROBE_BW;

	/* After idle the first rounds do not count. */
	x.sk.app_limited = 1;
	pep_cc_out_init(&x.out, &x.sk);
	pep_bbr_tx_start(&x.b, &x.p, &x.sk, &x.out);
	assert_int_equal(factor(&x), 256);

	/* Nor do fewer than four samples. */
	steady(&x, bbr_d);
	see_rtt(&x, 1, 60000);
	see_rtt(&x, 1, 60000);
	see_rtt(&x, 1, 60000);
	assert_int_equal(factor(&x), 256);
}

static void four_packets_a_round_trip_are_always_allowed(void **state)
{
	struct bench x;

	(void)state;
	bench_steady(&x, bbr_d, 8, RTT);
	see_rtt(&x, 20, 4 * RTT);
	see_rtt(&x, 20, 4 * RTT);
	x.b.mode = PEP_BBR_PROBE_BW;
	x.b.pacing_gain = 256;
	x.b.sparse.jitter_us = PEP_RTT_NONE;
	x.sk.inflight = 1000;
	assert_int_equal(factor(&x), 208);
	assert_int_equal(pep_bbr_applied_gain(&x.b, &x.p, &x.sk, pep_bw(8, RTT)), 208);
	assert_int_equal(pep_bbr_applied_gain(&x.b, &x.p, &x.sk, pep_bw(3, RTT)), 256);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_controls_differ_where_they_should),
		cmocka_unit_test(a_standing_queue_halves_the_window),
		cmocka_unit_test(a_cut_lasts_until_the_round_ends),
		cmocka_unit_test(two_losses_in_a_round_are_one_cut),
		cmocka_unit_test(an_empty_queue_makes_it_a_radio_loss),
		cmocka_unit_test(single_late_packets_are_no_queue),
		cmocka_unit_test(jitter_lifts_the_bar),
		cmocka_unit_test(equal_rtts_above_the_least_one_convict),
		cmocka_unit_test(exactly_twice_the_least_rtt_is_where_paper_and_code_differ),
		cmocka_unit_test(rtts_below_a_millisecond_are_judged),
		cmocka_unit_test(a_missing_rtt_changes_no_verdict),
		cmocka_unit_test(the_authors_code_halves_on_every_ack),
		cmocka_unit_test(probe_rtt_gives_the_window_back_but_for_the_authors),
		cmocka_unit_test(losses_must_exceed_the_usual_ones),
		cmocka_unit_test(a_cut_window_comes_back_step_by_step),
		cmocka_unit_test(pacing_gives_way_to_a_standing_queue),
		cmocka_unit_test(known_jitter_is_allowed_on_top),
		cmocka_unit_test(a_flow_without_a_part_in_the_queue_is_not_slowed),
		cmocka_unit_test(the_strict_form_follows_the_smoothed_rtt),
		cmocka_unit_test(pacing_is_left_alone_where_the_rtt_tells_nothing),
		cmocka_unit_test(four_packets_a_round_trip_are_always_allowed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
