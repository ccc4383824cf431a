/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unit/unit.h"

#include "proxy/probation.h"

#include <arpa/inet.h>

#define SECOND 1000000000ull

static struct in6_addr addr(const char *text)
{
	struct in6_addr a;

	assert_int_equal(inet_pton(AF_INET6, text, &a), 1);
	return a;
}

static void three_time_outs_in_a_row_begin_a_probation_that_doubles(void **state)
{
	struct in6_addr server = addr("::ffff:192.0.2.1"), sibling = addr("::ffff:192.0.2.200");
	struct in6_addr other = addr("::ffff:192.0.3.1");
	uint64_t now = 1000 * SECOND, expected = PEP_PROBATION_FIRST_S;
	struct pep_probation *p;

	(void)state;
	assert_int_equal(pep_probation_new(&p), 0);
	for (int term = 0; term < 9; term++) {
		assert_int_equal(pep_probation_failed(p, &server, now), 0);
		assert_int_equal(pep_probation_failed(p, &sibling, now), 0);
		assert_false(pep_probation_holds(p, &server, now));
		assert_int_equal(pep_probation_failed(p, &server, now), expected);
		assert_true(pep_probation_holds(p, &server, now));
		assert_true(pep_probation_holds(p, &sibling, now)); /* the whole prefix */
		assert_false(pep_probation_holds(p, &other, now));
		assert_int_equal(pep_probation_count(p, now), 1);
		/* late failures of connects under way change nothing */
		assert_int_equal(pep_probation_failed(p, &server, now + SECOND), 0);
		assert_true(pep_probation_holds(p, &server, now + expected * SECOND - 1));
		now += expected * SECOND;
		assert_false(pep_probation_holds(p, &server, now));
		assert_int_equal(pep_probation_count(p, now), 0);
		if (expected < PEP_PROBATION_LAST_S)
			expected *= 2;
	}
	pep_probation_free(p);
}

static void an_answer_clears_the_record(void **state)
{
	struct in6_addr server = addr("2001:db8:1:2::1"), sibling = addr("2001:db8:1:2::ffff");
	struct pep_probation *p;

	(void)state;
	assert_int_equal(pep_probation_new(&p), 0);
	pep_probation_failed(p, &server, 1);
	pep_probation_failed(p, &server, 2);
	pep_probation_answered(p, &sibling);
	assert_int_equal(pep_probation_failed(p, &server, 3), 0);
	assert_int_equal(pep_probation_failed(p, &server, 4), 0);
	assert_int_equal(pep_probation_failed(p, &server, 5), PEP_PROBATION_FIRST_S);
	pep_probation_answered(p, &sibling);
	assert_false(pep_probation_holds(p, &server, 6));
	pep_probation_free(p);
}

static void a_scan_of_many_prefixes_only_makes_it_forget(void **state)
{
	struct pep_probation *p;
	uint64_t now = 1;

	(void)state;
	assert_int_equal(pep_probation_new(&p), 0);
	for (uint32_t i = 0; i < 100000; i++) {
		struct in6_addr a = addr("::ffff:10.0.0.1");

		a.s6_addr[13] = (uint8_t)(i >> 8);
		a.s6_addr[14] = (uint8_t)i;
		a.s6_addr[12] = (uint8_t)(i >> 16);
		for (int n = 0; n < PEP_PROBATION_FAILURES; n++)
			pep_probation_failed(p, &a, now++);
	}
	assert_true(pep_probation_count(p, now) <= 1024);
	pep_probation_free(p);
	pep_probation_free(NULL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(three_time_outs_in_a_row_begin_a_probation_that_doubles),
		cmocka_unit_test(an_answer_clears_the_record),
		cmocka_unit_test(a_scan_of_many_prefixes_only_makes_it_forget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
