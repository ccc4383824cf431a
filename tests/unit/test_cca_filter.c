/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The units, the windowed maximum and the standing RTT that the congestion controls rest on. */
#include "unit/unit.h"

#include "cca/core/filter.h"
#include "cca/core/growth.h"

static void the_maximum_leaves_with_its_window(void **state)
{
	struct pep_max_filter f;

	(void)state;
	pep_max_filter_reset(&f, 0, 0);
	pep_max_filter_add(&f, 10, 1, 100);
	for (uint32_t t = 2; t <= 11; t++) {
		pep_max_filter_add(&f, 10, t, 50);
		assert_int_equal(pep_max_filter_get(&f), 100);
	}
	pep_max_filter_add(&f, 10, 12, 50);
	assert_int_equal(pep_max_filter_get(&f), 50);
}

static void second_and_third_best_take_over_in_turn(void **state)
{
	struct pep_max_filter f;

	(void)state;
	pep_max_filter_reset(&f, 0, 0);
	pep_max_filter_add(&f, 10, 0, 100);
	pep_max_filter_add(&f, 10, 4, 80); /* past a quarter of the window */
	pep_max_filter_add(&f, 10, 8, 60); /* past half of it */
	pep_max_filter_add(&f, 10, 10, 10);
	assert_int_equal(pep_max_filter_get(&f), 100);
	pep_max_filter_add(&f, 10, 11, 10);
	assert_int_equal(pep_max_filter_get(&f), 80);
	pep_max_filter_add(&f, 10, 15, 10);
	assert_int_equal(pep_max_filter_get(&f), 60);
	pep_max_filter_add(&f, 10, 19, 10);
	assert_int_equal(pep_max_filter_get(&f), 10);
}

static void two_samples_may_expire_at_once(void **state)
{
	struct pep_max_filter f;

	(void)state;
	pep_max_filter_reset(&f, 0, 100);
	pep_max_filter_add(&f, 10, 3, 80);
	pep_max_filter_add(&f, 10, 8, 60);
	pep_max_filter_add(&f, 10, 15, 10);
	assert_int_equal(pep_max_filter_get(&f), 60);
}

/* Against a plain look over all samples: never less, and right whenever the best is recent. */
static void the_maximum_agrees_with_a_plain_search(void **state)
{
	enum {
		N = 2000,
		WINDOW = 10
	};
	static uint32_t v[N];
	struct pep_max_filter f;
	uint32_t random = 7;

	(void)state;
	pep_max_filter_reset(&f, 0, 0);
	for (uint32_t t = 1; t < N; t++) {
		uint32_t best = 0, got;

		v[t] = pep_random(&random) % 1000;
		pep_max_filter_add(&f, WINDOW, t, v[t]);
		for (uint32_t i = t > WINDOW ? t - WINDOW : 1; i <= t; i++)
			best = pep_max32(best, v[i]);
		got = pep_max_filter_get(&f);
		assert_true(got <= best);
		assert_true(got >= v[t]);
		/* It keeps three samples, so it may miss a better one, but not one of the last
		 * quarter. */
		for (uint32_t i = t > WINDOW / 4 ? t - WINDOW / 4 : 1; i <= t; i++)
			assert_true(got >= v[i]);
	}
}

static void the_filters_clock_may_wrap(void **state)
{
	struct pep_max_filter f;
	uint32_t t = UINT32_MAX - 3;

	(void)state;
	pep_max_filter_reset(&f, t, 0);
	pep_max_filter_add(&f, 10, t, 100);
	pep_max_filter_add(&f, 10, t + 8, 50);
	assert_int_equal(pep_max_filter_get(&f), 100);
	pep_max_filter_add(&f, 10, t + 12, 40);
	assert_int_equal(pep_max_filter_get(&f), 50);
}

static void the_standing_rtt_is_the_least_of_two_rounds(void **state)
{
	struct pep_standing_rtt s;

	(void)state;
	pep_standing_rtt_reset(&s);
	assert_int_equal(pep_standing_rtt_get(&s), PEP_RTT_NONE);
	pep_standing_rtt_add(&s, 30000);
	pep_standing_rtt_add(&s, 20000);
	assert_int_equal(pep_standing_rtt_get(&s), 20000);
	pep_standing_rtt_round(&s);
	pep_standing_rtt_add(&s, 50000);
	assert_int_equal(pep_standing_rtt_get(&s), 20000);
	assert_int_equal(pep_standing_rtt_samples(&s), 3);
	pep_standing_rtt_round(&s);
	assert_int_equal(pep_standing_rtt_get(&s), 50000);
	pep_standing_rtt_add(&s, 60000);
	assert_int_equal(pep_standing_rtt_get(&s), 50000);
	pep_standing_rtt_round(&s);
	pep_standing_rtt_round(&s);
	assert_int_equal(pep_standing_rtt_get(&s), PEP_RTT_NONE);
}

/* 100 Gbit/s in packets of 1448 bytes of payload over a second. */
static void nothing_overflows_at_100_gbit_and_a_second(void **state)
{
	uint32_t packets = 8632596; /* 100e9 / 8 / 1448 */
	uint32_t bw = pep_bw(packets, PEP_USEC_PER_SEC);
	uint64_t bytes;

	(void)state;
	assert_int_equal(bw, ((uint64_t)packets << 24) / 1000000);
	assert_in_range(pep_bw_packets(bw, PEP_USEC_PER_SEC), packets - 1, packets);
	assert_in_range(pep_bw_packets_gain(bw, PEP_USEC_PER_SEC, 739),
			(uint64_t)packets * 739 / 256 - 1, (uint64_t)packets * 739 / 256 + 1);
	bytes = pep_bw_bytes(bw, 1448, 739, 10000);
	assert_in_range(bytes, 35700000000ULL, 35730000000ULL); /* 12.5e9 x 2.887 x 0.99 */
}

static void extremes_saturate(void **state)
{
	(void)state;
	assert_int_equal(pep_bw(UINT32_MAX, 1), UINT32_MAX);
	assert_int_equal(pep_bw_packets(UINT32_MAX, UINT64_MAX), UINT32_MAX);
	assert_int_equal(pep_bw_packets_gain(UINT32_MAX, UINT32_MAX, 1023), UINT32_MAX);
	assert_true(pep_bw_bytes(UINT32_MAX, 65536, 1023, 0) >= 1000000000000ULL);
	assert_int_equal(pep_gain(UINT32_MAX, 1023), UINT32_MAX);
	assert_int_equal(pep_elapsed_us(5, 9), 0);
}

static void windows_are_rounded_up(void **state)
{
	(void)state;
	assert_int_equal(pep_bw_packets_gain(pep_bw(1, 1000), 1000, 256), 1);
	assert_int_equal(pep_bw_packets_gain(pep_bw(10, 1000), 1000, 256), 10);
	assert_int_equal(pep_bw_packets_gain(pep_bw(10, 1000), 1000, 320), 13); /* 12.5 */
	assert_int_equal(pep_bw_packets_gain(0, 1000, 256), 0);
}

static void bursts_follow_the_pacing_rate(void **state)
{
	struct pep_cc_sock sk = {.mss_bytes = 1448, .pacing_shift = 10};

	(void)state;
	assert_int_equal(pep_min_tso_segs(149999), 1);
	assert_int_equal(pep_min_tso_segs(150000), 2);
	assert_int_equal(pep_tso_goal(&sk, 1000), 1);
	assert_int_equal(pep_tso_goal(&sk, 1000000), 2);
	assert_int_equal(pep_tso_goal(&sk, 12500000), 8);    /* 12207 bytes */
	assert_int_equal(pep_tso_goal(&sk, UINT64_MAX), 45); /* 65215 bytes */
	sk.mss_bytes = 100;
	assert_int_equal(pep_tso_goal(&sk, UINT64_MAX), 127);
}

static void cube_roots_are_exact(void **state)
{
	(void)state;
	assert_int_equal(pep_cube_root(0), 0);
	assert_int_equal(pep_cube_root(1), 1);
	assert_int_equal(pep_cube_root(7), 1);
	for (uint64_t r = 2; r < (1 << 21) - 1; r += 1 + r / 1000) {
		assert_int_equal(pep_cube_root(r * r * r - 1), r - 1);
		assert_int_equal(pep_cube_root(r * r * r), r);
		assert_int_equal(pep_cube_root(r * r * r + 1), r);
	}
	assert_int_equal(pep_cube_root((1ULL << 63) - 1), 2097151);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_maximum_leaves_with_its_window),
		cmocka_unit_test(second_and_third_best_take_over_in_turn),
		cmocka_unit_test(two_samples_may_expire_at_once),
		cmocka_unit_test(the_maximum_agrees_with_a_plain_search),
		cmocka_unit_test(the_filters_clock_may_wrap),
		cmocka_unit_test(the_standing_rtt_is_the_least_of_two_rounds),
		cmocka_unit_test(nothing_overflows_at_100_gbit_and_a_second),
		cmocka_unit_test(extremes_saturate),
		cmocka_unit_test(windows_are_rounded_up),
		cmocka_unit_test(bursts_follow_the_pacing_rate),
		cmocka_unit_test(cube_roots_are_exact),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
