/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The target of a direction: it follows rate and round trip, jumps up, decays down, shares fairly.
 */
#include "unit/unit.h"

#include "proxy/target.h"

#include <stdlib.h>

#define MS  1000000u
#define MIB (1u << 20)

static const struct pep_target_conf conf = {
	.min_bytes = 65536,
	.max_bytes = 32 * MIB,
	.gain_percent = 150,
};

/* One direction under way. */
struct run {
	struct pep_target target;
	struct pep_budget *budget;
	uint64_t now_ns, delivered;
	uint32_t rtt_us;
	bool hole; /* in the reading leg */
};

static struct run run_new(struct pep_budget *budget, uint32_t rtt_us)
{
	struct run r = {.budget = budget, .now_ns = 1000 * MS, .rtt_us = rtt_us};

	pep_target_init(&r.target, r.now_ns);
	pep_target_start(&r.target, 65536, 0, r.now_ns);
	return r;
}

static void update(struct run *r, bool dry)
{
	struct pep_target_seen seen = {
		.delivered_bytes = r->delivered, .rtt_us = r->rtt_us, .dry = dry, .hole = r->hole};

	pep_target_update(&r->target, r->budget, &conf, &seen, r->now_ns);
}

/* @ms of sending at @rate bytes/s, bytes waiting or the leg dry, updated when due. */
static void go_on(struct run *r, uint32_t ms, uint64_t rate, bool waiting)
{
	for (uint32_t i = 0; i < ms; i++) {
		pep_target_waiting(&r->target, waiting, r->now_ns);
		r->now_ns += MS;
		r->delivered += rate / 1000;
		if (pep_target_due(&r->target, r->now_ns))
			update(r, !waiting);
	}
}

static void assert_near(uint64_t got, uint64_t want)
{
	if (got < want - want / 10 || got > want + want / 10)
		fail_msg("%llu is not within 10 %% of %llu", (unsigned long long)got,
			 (unsigned long long)want);
}

/* 25 MB/s x (1.5 x 100 ms + 20 ms). */
static void follows_rate_and_round_trip(void **state)
{
	struct pep_budget budget;
	struct run r;

	(void)state;
	pep_budget_init(&budget, 1u << 30);
	r = run_new(&budget, 100000);
	go_on(&r, 500, 25000000, true);
	assert_near(r.target.bytes, 4250000);
	go_on(&r, 20000, 2500000, true); /* long enough for the memory to fade */
	assert_near(r.target.bytes, 425000);
	pep_target_fini(&r.target, &budget);
}

static void a_slow_reader_on_a_short_path_gets_the_minimum(void **state)
{
	struct pep_budget budget;
	struct run r;

	(void)state;
	pep_budget_init(&budget, 1u << 30);
	r = run_new(&budget, 50);
	go_on(&r, 1000, 2000000, true);
	assert_int_equal(r.target.bytes, conf.min_bytes);
	pep_target_fini(&r.target, &budget);
}

static void jumps_with_the_rate(void **state)
{
	struct pep_budget budget;
	struct run r;

	(void)state;
	pep_budget_init(&budget, 1u << 30);
	r = run_new(&budget, 100000);
	go_on(&r, 1000, 5000000, true);
	assert_near(r.target.bytes, 850000);
	go_on(&r, 100, 25000000, true); /* one round trip of the reading leg */
	assert_near(r.target.bytes, 4250000);
	pep_target_fini(&r.target, &budget);
}

/* A part is kept for a radio that comes back soon, and forgotten in time. */
static void decays_to_a_part_fast_and_then_slowly(void **state)
{
	struct pep_budget budget;
	struct run r;
	uint32_t full;

	(void)state;
	pep_budget_init(&budget, 1u << 30);
	r = run_new(&budget, 100000);
	go_on(&r, 2000, 25000000, true);
	full = r.target.bytes;
	go_on(&r, 300, 5000000, true);
	assert_in_range(r.target.bytes, full * 33 / 100, full * 40 / 100);
	go_on(&r, 700, 5000000, true);
	assert_in_range(r.target.bytes, full * 28 / 100, full * 37 / 100);
	go_on(&r, 10000, 5000000, true);
	assert_in_range(r.target.bytes, full * 19 / 100, full * 22 / 100);
	pep_target_fini(&r.target, &budget);
}

/* 25 MB/s x ((1.5 + 2) x 100 ms + 20 ms), and as before once no hole was seen for long. */
static void a_hole_is_bridged(void **state)
{
	struct pep_budget budget;
	struct run r;

	(void)state;
	pep_budget_init(&budget, 1u << 30);
	r = run_new(&budget, 100000);
	go_on(&r, 500, 25000000, true);
	r.hole = true;
	go_on(&r, 125, 0, false); /* the sending leg starves, which says nothing about its rate */
	r.hole = false;
	go_on(&r, 50, 25000000, true);
	assert_near(r.target.bytes, 9250000);
	go_on(&r, 3000, 25000000, true);
	assert_near(r.target.bytes, 9250000);
	go_on(&r, 2000, 25000000, true);
	assert_near(r.target.bytes, 4250000);
	pep_target_fini(&r.target, &budget);
}

/* What waits through a hole shows the rate of the sending leg as ever. */
static void a_hole_does_not_hide_a_slow_radio(void **state)
{
	struct pep_budget budget;
	struct run r;

	(void)state;
	pep_budget_init(&budget, 1u << 30);
	r = run_new(&budget, 100000);
	go_on(&r, 500, 25000000, true);
	r.hole = true;
	go_on(&r, 30000, 2500000, true);
	assert_near(r.target.bytes, 925000);
	pep_target_fini(&r.target, &budget);
}

/* Doubles once for each answer, and needs no bound when that did not make bytes wait. */
static void grows_while_the_leg_is_dry(void **state)
{
	struct pep_budget budget;
	struct run r;

	(void)state;
	pep_budget_init(&budget, 1u << 30);
	r = run_new(&budget, 100000);
	go_on(&r, 100, 1000, false);
	assert_int_equal(r.target.bytes, 65536);
	go_on(&r, 60, 1000, false);
	assert_int_equal(r.target.bytes, 2 * 65536);
	go_on(&r, 200, 1000, false);
	assert_int_equal(r.target.bytes, UINT32_MAX);
	assert_int_equal(r.target.want_bytes, 0);
	pep_target_fini(&r.target, &budget);
}

/* What a dry leg has just delivered it can deliver: the target is not below that. */
static void a_dry_leg_gets_what_it_has_shown(void **state)
{
	struct pep_budget budget;
	struct run r;

	(void)state;
	pep_budget_init(&budget, 1u << 30);
	r = run_new(&budget, 100000);
	go_on(&r, 50, 5000000, true);
	go_on(&r, 30, 25000000, false);
	assert_true(r.target.bytes > 3000000);
	pep_target_fini(&r.target, &budget);
}

/* Nothing waits here, but the leg still has bytes: nothing is known, nothing changes. */
static void stays_while_the_leg_has_bytes(void **state)
{
	struct pep_budget budget;
	struct run r;

	(void)state;
	pep_budget_init(&budget, 1u << 30);
	r = run_new(&budget, 100000);
	for (int i = 0; i < 20; i++) {
		r.now_ns += 50 * MS;
		r.delivered += 50000;
		update(&r, false);
	}
	assert_int_equal(r.target.bytes, 65536);
	pep_target_fini(&r.target, &budget);
}

static void budget_is_shared_fairly(void **state)
{
	struct pep_budget budget;
	struct run slow[2], fast[4];
	uint64_t sum = 0;

	(void)state;
	pep_budget_init(&budget, 10 * MIB);
	for (int i = 0; i < 2; i++)
		slow[i] = run_new(&budget, 100000);
	for (int i = 0; i < 4; i++)
		fast[i] = run_new(&budget, 100000);
	for (int turn = 0; turn < 20; turn++) {
		for (int i = 0; i < 2; i++)
			go_on(&slow[i], 50, 2500000, true); /* wants 425 KB */
		for (int i = 0; i < 4; i++)
			go_on(&fast[i], 50, i < 2 ? 25000000 : 100000000, true);
	}
	for (int i = 0; i < 2; i++) {
		assert_near(slow[i].target.bytes, 425000); /* little is given */
		sum += slow[i].target.bytes;
	}
	for (int i = 0; i < 4; i++) {
		assert_near(fast[i].target.bytes,
			    fast[0].target.bytes); /* the rest in equal parts */
		sum += fast[i].target.bytes;
	}
	assert_true(sum <= 10 * MIB);
	assert_true(sum >= 9 * MIB);

	/* What one gives back the others get. */
	pep_target_fini(&fast[3].target, &budget);
	for (int i = 0; i < 3; i++)
		go_on(&fast[i], 50, i < 2 ? 25000000 : 100000000, true);
	assert_true(fast[2].target.bytes > 3 * MIB);
	for (int i = 0; i < 3; i++)
		pep_target_fini(&fast[i].target, &budget);
	for (int i = 0; i < 2; i++)
		pep_target_fini(&slow[i].target, &budget);
	for (int i = 0; i <= 32; i++) {
		assert_int_equal(budget.count[i], 0);
		assert_int_equal(budget.wanted[i], 0);
	}
	assert_int_equal(budget.level, UINT32_MAX);
}

/* Whatever the numbers: bounds hold, the budget holds, nothing overflows. */
static void any_history_keeps_the_bounds(void **state)
{
	struct pep_budget budget;
	struct run r[16];
	uint64_t sum;

	(void)state;
	srand(7);
	pep_budget_init(&budget, 20 * MIB);
	for (int i = 0; i < 16; i++)
		r[i] = run_new(&budget, 1);
	for (int turn = 0; turn < 20000; turn++) {
		struct run *one = &r[rand() % 16];

		one->rtt_us = (uint32_t)rand() % 4 ? (uint32_t)rand() % 500000 : UINT32_MAX;
		one->now_ns += (uint64_t)rand() % (3000 * (uint64_t)MS);
		one->delivered += (uint64_t)rand() * (uint64_t)(rand() % 1000);
		pep_target_waiting(&one->target, rand() % 2, one->now_ns);
		one->now_ns += (uint64_t)rand() % (30 * MS);
		update(one, rand() % 2);
		assert_true(one->target.bytes >= 8192);
		if (one->target.want_bytes)
			assert_true(one->target.bytes <= budget.level || one->target.bytes == 8192);
	}
	sum = 0;
	for (int i = 0; i < 16; i++) {
		uint32_t want = r[i].target.want_bytes;

		sum += want < budget.level ? want : budget.level;
	}
	assert_true(sum <= 20 * MIB);
	for (int i = 0; i < 16; i++)
		pep_target_fini(&r[i].target, &budget);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(follows_rate_and_round_trip),
		cmocka_unit_test(a_slow_reader_on_a_short_path_gets_the_minimum),
		cmocka_unit_test(jumps_with_the_rate),
		cmocka_unit_test(decays_to_a_part_fast_and_then_slowly),
		cmocka_unit_test(a_hole_is_bridged),
		cmocka_unit_test(a_hole_does_not_hide_a_slow_radio),
		cmocka_unit_test(grows_while_the_leg_is_dry),
		cmocka_unit_test(a_dry_leg_gets_what_it_has_shown),
		cmocka_unit_test(stays_while_the_leg_has_bytes),
		cmocka_unit_test(budget_is_shared_fairly),
		cmocka_unit_test(any_history_keeps_the_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
