/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How RTT-adjusted pacing learns what jitter does to the RTT, and when ProbeRTT comes early. */
#include "unit/unit.h"

#include "sim/radio_world.h"

static void rounds(struct pep_sparse_rtt *s, unsigned int count, uint32_t least_us,
		   uint32_t most_us)
{
	while (count--) {
		pep_sparse_rtt_add(s, least_us, true);
		pep_sparse_rtt_add(s, most_us, false);
	}
	pep_sparse_rtt_add(s, least_us, true); /* ends the last one */
}

static void jitter_is_measured_by_rounds(void **state)
{
	struct pep_sparse_rtt s = {.jitter_us = PEP_RTT_NONE};

	(void)state;
	pep_sparse_rtt_start(&s);
	pep_sparse_rtt_add(&s, 40000, true);
	pep_sparse_rtt_end(&s);
	assert_int_equal(s.jitter_us, PEP_RTT_NONE); /* not one round */
	rounds(&s, 5, 40000, 55000);
	pep_sparse_rtt_end(&s);
	assert_int_equal(s.jitter_us, 30000);
	pep_sparse_rtt_start(&s);
	rounds(&s, 5, 40000, 40000);
	pep_sparse_rtt_end(&s);
	assert_int_equal(s.jitter_us, 0);
}

static void anothers_queue_in_some_rounds_is_no_jitter(void **state)
{
	struct pep_sparse_rtt s = {.jitter_us = PEP_RTT_NONE};

	(void)state;
	pep_sparse_rtt_start(&s);
	rounds(&s, 3, 60000, 79000); /* not drained yet */
	rounds(&s, 2, 40000, 41000);
	rounds(&s, 3, 60000, 79000); /* back again */
	pep_sparse_rtt_end(&s);
	assert_int_equal(s.jitter_us, 2000);
}

static void few_rounds_correct_what_is_known(void **state)
{
	struct pep_sparse_rtt s = {.jitter_us = 20000};

	(void)state;
	pep_sparse_rtt_start(&s);
	rounds(&s, 1, 80000, 100000);
	pep_sparse_rtt_end(&s);
	assert_int_equal(s.jitter_us, 30000);
	pep_sparse_rtt_start(&s);
	rounds(&s, 1, 80000, 80000);
	pep_sparse_rtt_end(&s);
	assert_int_equal(s.jitter_us, 7500);
	pep_sparse_rtt_start(&s);
	rounds(&s, 4, 80000, 81000);
	pep_sparse_rtt_end(&s);
	assert_int_equal(s.jitter_us, 2000);
}

static void probe_rtt_goes_on_until_jitter_is_known(void **state)
{
	struct world w;

	(void)state;
	start(&w, &bbr_d);
	w.b.probe_rtt_done_us = w.sk.now_us;
	assert_true(pep_bbr_jitter_wanted(&w.b, &w.p, &w.sk));
	w.b.sparse.rounds = 3;
	assert_true(pep_bbr_jitter_wanted(&w.b, &w.p, &w.sk));
	w.b.sparse.rounds = 4;
	assert_false(pep_bbr_jitter_wanted(&w.b, &w.p, &w.sk));
	w.b.sparse.rounds = 1; /* a long way to go: one round has to do */
	w.sk.now_us += 800001;
	assert_false(pep_bbr_jitter_wanted(&w.b, &w.p, &w.sk));
	w.b.sparse.rounds = 0;
	assert_true(pep_bbr_jitter_wanted(&w.b, &w.p, &w.sk));
	w.b.sparse.jitter_us = 0;
	assert_false(pep_bbr_jitter_wanted(&w.b, &w.p, &w.sk));
	w.b.sparse.jitter_us = PEP_RTT_NONE;
	w.p = bbr_a;
	assert_false(pep_bbr_jitter_wanted(&w.b, &w.p, &w.sk));
}

static void rtts_that_may_be_jitter_are_checked_once_and_early(void **state)
{
	struct pep_cc_rate rs = {.interval_us = 1, .delivered = 1, .rtt_us = 2 * MIN_RTT_US};
	struct world w;

	(void)state;
	start(&w, &bbr_d);
	go_round(&w, 2 * MIN_RTT_US, 100, 0);
	pep_bbr_update_min_rtt(&w.b, &w.p, &w.sk, &rs, &w.out);
	assert_int_equal(w.b.mode, PEP_BBR_PROBE_BW); /* too early */
	w.sk.now_us += 1000000;
	pep_bbr_update_min_rtt(&w.b, &w.p, &w.sk, &rs, &w.out);
	assert_int_equal(w.b.mode, PEP_BBR_PROBE_RTT);
	w.b.mode = PEP_BBR_PROBE_BW;
	w.sk.now_us += 1000000;
	w.b.min_rtt_us = MIN_RTT_US;
	pep_bbr_update_min_rtt(&w.b, &w.p, &w.sk, &rs, &w.out);
	assert_int_equal(w.b.mode, PEP_BBR_PROBE_BW);
}

static void an_rtt_near_the_least_needs_no_check(void **state)
{
	struct world w;

	(void)state;
	start(&w, &bbr_d);
	w.sk.now_us += 2000000;
	w.b.rtt.now_us = MIN_RTT_US + MIN_RTT_US / 4;
	assert_false(pep_bbr_jitter_needs_check(&w.b, &w.sk));
	w.b.rtt.now_us += 1;
	assert_true(pep_bbr_jitter_needs_check(&w.b, &w.sk));
	w.b.sparse.jitter_us = 0; /* known */
	assert_false(pep_bbr_jitter_needs_check(&w.b, &w.sk));
}

static bool comes_early(struct world *w, uint32_t before_us, uint32_t rtt_us)
{
	struct pep_cc_rate rs = {.rtt_us = rtt_us};

	w->b.rtt.before_us = before_us;
	return pep_bbr_probe_rtt_early(&w->b, &w->p, &w->sk, &rs);
}

static void probe_rtt_joins_others(void **state)
{
	const uint32_t queue_us = MIN_RTT_US + MIN_RTT_US / 16 + 1;
	struct world w;

	(void)state;
	start(&w, &bbr_d);
	w.b.sparse.jitter_us = 0;
	w.sk.now_us = w.b.min_rtt_stamp_us + 8750000;
	assert_false(comes_early(&w, queue_us, MIN_RTT_US)); /* our own is not near yet */
	w.sk.now_us += 1;
	assert_true(comes_early(&w, queue_us, MIN_RTT_US));
	assert_true(comes_early(&w, queue_us, MIN_RTT_US + MIN_RTT_US / 32));
	assert_false(comes_early(&w, queue_us, MIN_RTT_US + MIN_RTT_US / 32 + 1)); /* still there */
	assert_false(comes_early(&w, queue_us - 1, MIN_RTT_US)); /* there was none */
	w.p.rtt_pacing = PEP_RTT_PACING_STRICT;
	assert_false(comes_early(&w, queue_us, MIN_RTT_US));
	w.p = bbr_d;
	w.p.probe_rtt_ms = 0;
	assert_false(comes_early(&w, queue_us, MIN_RTT_US));
	w.p = bbr_d;
	w.b.sparse.jitter_us = MIN_RTT_US / 4 + 1; /* jitter comes and goes as well */
	assert_false(comes_early(&w, 3 * MIN_RTT_US, MIN_RTT_US));
}

static void jitter_alone_does_not_slow_pacing(void **state)
{
	struct world w;

	(void)state;
	start(&w, &bbr_d);
	w.b.sparse.jitter_us = 35000;
	go_round(&w, MIN_RTT_US + 30000, 100, 0);
	w.sk.srtt_us = MIN_RTT_US + 30000;
	assert_int_equal(pep_bbr_rtt_factor(&w.b, &w.p, &w.sk), PEP_GAIN_UNIT);
	w.sk.srtt_us = MIN_RTT_US + 50000; /* a queue comes on top */
	assert_true(pep_bbr_rtt_factor(&w.b, &w.p, &w.sk) < PEP_GAIN_UNIT);
}

static void the_window_holds_what_jitter_calls_for(void **state)
{
	struct world w;

	(void)state;
	start(&w, &bbr_d);
	assert_int_equal(pep_bbr_jitter_cwnd(&w.b, &w.p), 0);
	w.b.sparse.jitter_us = 6 * MIN_RTT_US; /* half of it was seen */
	assert_in_range(pep_bbr_jitter_cwnd(&w.b, &w.p), 399, 400);
	w.out.cwnd = 200;
	pep_bbr_grow(&w.b, &w.p, &w.sk, 500, &w.out);
	assert_in_range(w.out.cwnd, 399, 450);
	w.p = bbr_a;
	assert_int_equal(pep_bbr_jitter_cwnd(&w.b, &w.p), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(jitter_is_measured_by_rounds),
		cmocka_unit_test(anothers_queue_in_some_rounds_is_no_jitter),
		cmocka_unit_test(few_rounds_correct_what_is_known),
		cmocka_unit_test(probe_rtt_goes_on_until_jitter_is_known),
		cmocka_unit_test(rtts_that_may_be_jitter_are_checked_once_and_early),
		cmocka_unit_test(an_rtt_near_the_least_needs_no_check),
		cmocka_unit_test(probe_rtt_joins_others),
		cmocka_unit_test(jitter_alone_does_not_slow_pacing),
		cmocka_unit_test(the_window_holds_what_jitter_calls_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
