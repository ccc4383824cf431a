/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the simulator taught the core about radio links: losses are congestive only when they come
 * in bursts, a cut window comes back step by step, and a busy path's RTT is learnt from busy
 * rounds.
 */
#include "unit/unit.h"

#include "sim/radio_world.h"

#include "cca/core/bwe.h"

static void usual_loss_falls_fast_and_rises_slowly(void **state)
{
	struct pep_usual_loss u = {0};
	struct pep_cc_sock sk = {0};

	(void)state;
	for (int i = 0; i < 1000; i++) { /* 5 % for ever */
		sk.delivered += 95;
		sk.lost += 5;
		pep_bbr_update_usual_loss(&u, &sk);
	}
	assert_in_range(u.share, 65536 * 48 / 1000, 65536 * 50 / 1000);
	for (int i = 0; i < 1000; i++) { /* 20 % in each fourth round: a full queue's pattern */
		sk.delivered += i % 4 ? 100 : 80;
		sk.lost += i % 4 ? 0 : 20;
		pep_bbr_update_usual_loss(&u, &sk);
	}
	assert_in_range(u.share, 0, 65536 * 12 / 1000);
}

static void usual_loss_survives_an_empty_round(void **state)
{
	struct pep_usual_loss u = {.share = 100};
	struct pep_cc_sock sk = {0};

	(void)state;
	pep_bbr_update_usual_loss(&u, &sk);
	assert_in_range(u.share, 80, 100);
}

static void the_usual_loss_is_not_congestive_whatever_the_rtt(void **state)
{
	struct world w;

	(void)state;
	start(&w, &bbr_a);
	for (int i = 0; i < 400; i++)
		go_round(&w, 3 * MIN_RTT_US, 285, 15); /* 5 % */
	pep_standing_rtt_add(&w.b.rtt, 3 * MIN_RTT_US);
	w.sk.delivered += 100;
	w.sk.lost += 25; /* a bad round of a 5 % path */
	assert_false(pep_bbr_congested(&w.b, &w.p, &w.sk));
	w.sk.lost += 60;
	assert_true(pep_bbr_congested(&w.b, &w.p, &w.sk));
}

static void a_burst_without_a_queue_is_not_congestive(void **state)
{
	struct world w;

	(void)state;
	start(&w, &bbr_a);
	go_round(&w, MIN_RTT_US, 100, 0);
	go_round(&w, MIN_RTT_US, 100, 0);
	w.sk.lost += 50;
	assert_false(pep_bbr_congested(&w.b, &w.p, &w.sk));
}

static void one_loss_is_never_a_burst(void **state)
{
	struct world w;

	(void)state;
	start(&w, &bbr_a);
	w.sk.inflight = 4;
	go_round(&w, 3 * MIN_RTT_US, 4, 0);
	w.sk.lost += 1;
	assert_false(pep_bbr_congested(&w.b, &w.p, &w.sk));
	w.sk.lost += 1;
	assert_true(pep_bbr_congested(&w.b, &w.p, &w.sk));
	w.sk.lost -= 1;
	w.p.verdict_burst = 0; /* any loss counts */
	assert_true(pep_bbr_congested(&w.b, &w.p, &w.sk));
}

static void a_late_burst_cuts_within_the_episode(void **state)
{
	struct pep_cc_rate rs = {.acked_sacked = 1, .losses = 1, .interval_us = 1, .delivered = 1};
	struct world w;

	(void)state;
	start(&w, &bbr_a);
	go_round(&w, 3 * MIN_RTT_US, 100, 0);
	pep_standing_rtt_add(&w.b.rtt, 3 * MIN_RTT_US);
	w.b.round_start = false;
	w.sk.ca_state = PEP_CA_RECOVERY;
	w.sk.lost += 1;
	assert_true(pep_bbr_recover(&w.b, &w.p, &w.sk, &rs, &w.out)); /* conservation */
	assert_int_equal(w.b.cuts, 0);
	w.sk.lost += 30;
	rs.losses = 30;
	assert_true(pep_bbr_recover(&w.b, &w.p, &w.sk, &rs, &w.out));
	assert_int_equal(w.b.cuts, 1);
	w.sk.lost += 30;
	assert_true(pep_bbr_recover(&w.b, &w.p, &w.sk, &rs, &w.out));
	assert_int_equal(w.b.cuts, 1); /* once a round */
	w.sk.ca_state = PEP_CA_OPEN;
	pep_bbr_recover(&w.b, &w.p, &w.sk, &rs, &w.out);
	assert_int_equal(w.b.radio_losses, 0);
}

static void a_cut_window_comes_back_by_a_part_of_the_bdp(void **state)
{
	struct world w;

	(void)state;
	start(&w, &bbr_a); /* 16/256 of 100 packets: 7 a round */
	w.b.cwnd_cap = 60;
	w.b.round_start = true;
	w.out.cwnd = 60;
	pep_bbr_grow(&w.b, &w.p, &w.sk, 500, &w.out);
	assert_int_equal(w.out.cwnd, 100); /* at once to one BDP ... */
	for (int i = 0; i < 5; i++)
		pep_bbr_grow(&w.b, &w.p, &w.sk, 500, &w.out);
	assert_int_equal(w.out.cwnd, 60 + 6 * 7); /* ... and slowly beyond */
	w.b.round_start = false;
	pep_bbr_grow(&w.b, &w.p, &w.sk, 500, &w.out);
	assert_int_equal(w.out.cwnd, 60 + 6 * 7);
	w.b.round_start = true;
	for (int i = 0; i < 20; i++)
		pep_bbr_grow(&w.b, &w.p, &w.sk, 500, &w.out);
	assert_int_equal(w.b.cwnd_cap, 0);
	assert_true(w.out.cwnd >= 200);
}

static void the_cap_moves_by_a_packet_at_least(void **state)
{
	struct world w;

	(void)state;
	start(&w, &bbr_a);
	pep_max_filter_reset(&w.b.bw, 0, BW / 50); /* 2 packets */
	w.b.cwnd_cap = 4;
	w.b.round_start = true;
	w.out.cwnd = 4;
	pep_bbr_grow(&w.b, &w.p, &w.sk, 1, &w.out);
	assert_int_equal(w.b.cwnd_cap, 5);
}

static void busy_rounds_tell_the_base_rtt(void **state)
{
	struct world w;

	(void)state;
	start(&w, &bbr_d);
	assert_int_equal(pep_bbr_base_rtt(&w.b), MIN_RTT_US);
	go_round(&w, MIN_RTT_US + 30000, 49, 0); /* not busy */
	assert_int_equal(pep_bbr_base_rtt(&w.b), MIN_RTT_US);
	go_round(&w, MIN_RTT_US + 30000, 50, 0);
	assert_int_equal(pep_bbr_base_rtt(&w.b), MIN_RTT_US + 30000);
	w.b.idle_rounds = 2; /* sparse packets before: does not count */
	go_round(&w, MIN_RTT_US + 10000, 100, 0);
	assert_int_equal(pep_bbr_base_rtt(&w.b), MIN_RTT_US + 30000);
	w.b.mode = PEP_BBR_PROBE_RTT;
	w.b.idle_rounds = 0;
	go_round(&w, MIN_RTT_US, 100, 0);
	assert_int_equal(pep_bbr_base_rtt(&w.b), MIN_RTT_US + 30000);
}

static void the_base_rtt_is_forgotten_after_two_windows(void **state)
{
	struct world w;

	(void)state;
	start(&w, &bbr_d);
	go_round(&w, MIN_RTT_US + 5000, 100, 0);
	for (int window = 0; window < 2; window++) {
		assert_int_equal(pep_bbr_base_rtt(&w.b), MIN_RTT_US + 5000);
		w.sk.now_us += 11000000;
		go_round(&w, MIN_RTT_US + 25000, 100, 0);
	}
	assert_int_equal(pep_bbr_base_rtt(&w.b), MIN_RTT_US + 25000);
}

static void regain(struct world *w, uint32_t bw)
{
	struct pep_cc_rate rs = {.interval_us = 1, .delivered = 1};

	pep_max_filter_reset(&w->b.bw, 0, bw);
	pep_bbr_regain(&w->b, &w->p, &w->sk, &rs);
}

static void more_bandwidth_without_a_queue_starts_a_search(void **state)
{
	struct world w;

	(void)state;
	start(&w, &bbr_a);
	w.b.cycle_bw = BW;
	w.b.quiet_cycles = 2;
	go_round(&w, MIN_RTT_US, 100, 0);
	regain(&w, pep_gain(BW, 299)); /* not enough */
	assert_int_equal(w.b.mode, PEP_BBR_PROBE_BW);
	regain(&w, pep_gain(BW, 320));
	assert_int_equal(w.b.mode, PEP_BBR_STARTUP);
	assert_false(w.b.full_bw_reached);
	assert_int_equal(w.b.full_bw, pep_gain(BW, 320));
}

static void more_bandwidth_does_not_count(const char *why, void (*spoil)(struct world *))
{
	struct world w;

	start(&w, &bbr_a);
	w.b.cycle_bw = BW;
	w.b.quiet_cycles = 2;
	go_round(&w, MIN_RTT_US, 100, 0);
	spoil(&w);
	regain(&w, pep_gain(BW, 320));
	if (w.b.mode != PEP_BBR_PROBE_BW)
		fail_msg("a search began in spite of %s", why);
}

static void have_queue(struct world *w)
{
	for (int i = 0; i < 2; i++)
		go_round(w, MIN_RTT_US + MIN_RTT_US / 2, 40, 0);
}

static void have_recovery(struct world *w)
{
	w->sk.ca_state = PEP_CA_RECOVERY;
}

static void have_cap(struct world *w)
{
	w->b.cwnd_cap = 50;
}

static void have_policer(struct world *w)
{
	w->b.lt_use_bw = true;
}

static void have_idled(struct world *w)
{
	w->b.idle_rounds = 1;
}

static void have_it_off(struct world *w)
{
	w->p.regain = 0;
}

static void have_others(struct world *w)
{
	w->b.quiet_cycles = 1;
}

static void a_search_needs_a_quiet_path(void **state)
{
	(void)state;
	more_bandwidth_does_not_count("a queue", have_queue);
	more_bandwidth_does_not_count("loss recovery", have_recovery);
	more_bandwidth_does_not_count("a window cut not long ago", have_cap);
	more_bandwidth_does_not_count("a policer", have_policer);
	more_bandwidth_does_not_count("idle time", have_idled);
	more_bandwidth_does_not_count("the setting", have_it_off);
	more_bandwidth_does_not_count("other flows' queue not long ago", have_others);
}

static void a_queue_after_our_own_is_others(void **state)
{
	const uint32_t bound_us = MIN_RTT_US + MIN_RTT_US / 4 + 2000;
	struct world w;

	(void)state;
	start(&w, &bbr_a);
	w.b.quiet_cycles = 5;
	w.b.cycle_idx = 3; /* may be our own */
	w.b.rtt.now_us = w.b.rtt.before_us = bound_us + 1;
	pep_bbr_watch_others(&w.b, &w.p, &w.sk);
	assert_int_equal(w.b.quiet_cycles, 5);
	w.b.cycle_idx = 4;
	w.b.rtt.now_us = bound_us;
	pep_bbr_watch_others(&w.b, &w.p, &w.sk);
	assert_int_equal(w.b.quiet_cycles, 5);
	w.b.rtt.now_us++;
	pep_bbr_watch_others(&w.b, &w.p, &w.sk);
	assert_int_equal(w.b.quiet_cycles, 0);
	w.b.quiet_cycles = 5;
	w.b.mode = PEP_BBR_PROBE_RTT;
	pep_bbr_watch_others(&w.b, &w.p, &w.sk);
	assert_int_equal(w.b.quiet_cycles, 0);
}

static void a_cycle_remembers_its_bandwidth(void **state)
{
	struct world w;

	(void)state;
	start(&w, &bbr_a);
	w.b.cycle_idx = 7;
	pep_bbr_advance_phase(&w.b, &w.sk);
	assert_int_equal(w.b.cycle_bw, BW);
	assert_int_equal(w.b.quiet_cycles, 1);
	pep_max_filter_reset(&w.b.bw, 0, 2 * BW);
	pep_bbr_advance_phase(&w.b, &w.sk);
	assert_int_equal(w.b.cycle_bw, BW);
	assert_int_equal(w.b.quiet_cycles, 1);
}

/* -- bandwidth estimation -- */

struct bwe_world {
	struct pep_bwe w;
	struct pep_bwe_params p;
	struct pep_cc_sock sk;
	struct pep_cc_rate rs;
	struct pep_cc_out out;
};

/* A connection that knows its path: 100 packets and 40 ms, in the middle of a loss episode. */
static void bwe_start(struct bwe_world *x)
{
	*x = (struct bwe_world){.p = PEP_BWE_PARAMS_DEFAULT};
	x->sk = (struct pep_cc_sock){
		.now_us = 1000000,
		.max_pacing_rate = UINT64_MAX,
		.delivered = 1000,
		.cwnd = 300,
		.cwnd_clamp = UINT32_MAX,
		.ssthresh = 100,
		.mss_bytes = MSS,
		.srtt_us = MIN_RTT_US,
		.min_rtt_us = MIN_RTT_US,
		.ca_state = PEP_CA_RECOVERY,
		.cwnd_limited = true,
	};
	x->rs = (struct pep_cc_rate){.rtt_us = MIN_RTT_US, .delivered = 1, .acked_sacked = 1};
	pep_bwe_init(&x->w, &x->p, &x->sk, &x->out);
	pep_max_filter_reset(&x->w.est.max, 0, BW);
	x->w.prev_ca_state = PEP_CA_RECOVERY;
	x->w.episode_cut = true;
	pep_cc_out_init(&x->out, &x->sk);
}

static void an_episode_that_loses_on_is_cut_again(void **state)
{
	struct bwe_world x;

	(void)state;
	bwe_start(&x);
	x.w.round_start = true;
	x.sk.lost += 30; /* of 300: a tenth */
	pep_bwe_recover(&x.w, &x.p, &x.sk, &x.out);
	assert_int_equal(x.out.cwnd, 300);
	x.sk.lost += 30;
	pep_bwe_recover(&x.w, &x.p, &x.sk, &x.out);
	assert_int_equal(x.out.cwnd, 100);
}

static void a_round_that_loses_much_does_not_grow(void **state)
{
	struct bwe_world x;

	(void)state;
	bwe_start(&x);
	x.w.growth.acked = 100000;
	x.sk.lost += 60;
	pep_bwe_grow(&x.w, &x.p, &x.sk, 1, &x.out);
	assert_int_equal(x.out.cwnd, 300);
	x.sk.lost -= 60;
	pep_bwe_grow(&x.w, &x.p, &x.sk, 1, &x.out);
	assert_true(x.out.cwnd > 300);
}

static void a_timeout_does_not_take_the_queue_for_the_path(void **state)
{
	struct bwe_world x;

	(void)state;
	bwe_start(&x);
	pep_bwe_set_state(&x.w, PEP_CA_LOSS);
	x.rs.rtt_us = 3 * MIN_RTT_US;
	pep_bwe_update_rtt(&x.w, &x.sk, &x.rs);
	assert_int_equal(x.w.min_rtt_us, MIN_RTT_US);
	pep_bwe_set_state(&x.w, PEP_CA_LOSS);
	x.sk.min_rtt_us = 2 * MIN_RTT_US; /* the kernel has forgotten the old path */
	pep_bwe_update_rtt(&x.w, &x.sk, &x.rs);
	assert_int_equal(x.w.min_rtt_us, 2 * MIN_RTT_US);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(usual_loss_falls_fast_and_rises_slowly),
		cmocka_unit_test(usual_loss_survives_an_empty_round),
		cmocka_unit_test(the_usual_loss_is_not_congestive_whatever_the_rtt),
		cmocka_unit_test(a_burst_without_a_queue_is_not_congestive),
		cmocka_unit_test(one_loss_is_never_a_burst),
		cmocka_unit_test(a_late_burst_cuts_within_the_episode),
		cmocka_unit_test(a_cut_window_comes_back_by_a_part_of_the_bdp),
		cmocka_unit_test(the_cap_moves_by_a_packet_at_least),
		cmocka_unit_test(busy_rounds_tell_the_base_rtt),
		cmocka_unit_test(the_base_rtt_is_forgotten_after_two_windows),
		cmocka_unit_test(more_bandwidth_without_a_queue_starts_a_search),
		cmocka_unit_test(a_search_needs_a_quiet_path),
		cmocka_unit_test(a_queue_after_our_own_is_others),
		cmocka_unit_test(a_cycle_remembers_its_bandwidth),
		cmocka_unit_test(an_episode_that_loses_on_is_cut_again),
		cmocka_unit_test(a_round_that_loses_much_does_not_grow),
		cmocka_unit_test(a_timeout_does_not_take_the_queue_for_the_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
