/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unit/unit.h"

#include "proxy/recent.h"

#include <arpa/inet.h>

#define SECOND 1000000000ull
#define NOW    (1000 * SECOND)

static struct pep_tuple tuple(const char *client, uint16_t port)
{
	struct pep_tuple t = {.client_port = port, .server_port = 443};

	assert_int_equal(inet_pton(AF_INET6, client, &t.client), 1);
	assert_int_equal(inet_pton(AF_INET6, "::ffff:198.51.100.7", &t.server), 1);
	return t;
}

static void only_the_very_same_syn_is_held(void **state)
{
	struct pep_tuple t = tuple("::ffff:192.0.2.1", 40000), other = t;
	struct pep_recent *r;

	(void)state;
	assert_int_equal(pep_recent_new(&r), 0);
	assert_false(pep_recent_holds(r, &t, 7, NOW));
	pep_recent_add(r, &t, 7, NOW);
	assert_true(pep_recent_holds(r, &t, 7, NOW));
	assert_false(pep_recent_holds(r, &t, 8, NOW)); /* a new connection from the same port */
	other.client_port++;
	assert_false(pep_recent_holds(r, &other, 7, NOW));
	other = t;
	other.server_port++;
	assert_false(pep_recent_holds(r, &other, 7, NOW));
	other = t;
	other.server.s6_addr[15] ^= 1;
	assert_false(pep_recent_holds(r, &other, 7, NOW));
	other = t;
	other.client.s6_addr[15] ^= 1;
	assert_false(pep_recent_holds(r, &other, 7, NOW));
	pep_recent_free(r);
}

static void it_is_forgotten_in_time_and_renewed_by_each_retransmission(void **state)
{
	struct pep_tuple t = tuple("2001:db8::1", 1);
	uint64_t last = NOW + PEP_RECENT_SECONDS * SECOND;
	struct pep_recent *r;

	(void)state;
	assert_int_equal(pep_recent_new(&r), 0);
	pep_recent_add(r, &t, 0, NOW);
	assert_true(pep_recent_holds(r, &t, 0, last - 1));
	assert_false(pep_recent_holds(r, &t, 0, last));
	pep_recent_add(r, &t, 0, last - 1);
	assert_true(pep_recent_holds(r, &t, 0, last + SECOND));
	pep_recent_free(r);
}

/* Ten times as many as there are places: the old ones go, the new ones stay. */
static void a_flood_makes_it_forget_the_oldest_first(void **state)
{
	unsigned int flood = 10 * 16384, kept = 0;
	struct pep_recent *r;

	(void)state;
	assert_int_equal(pep_recent_new(&r), 0);
	for (unsigned int i = 0; i < flood; i++) {
		struct pep_tuple t = tuple("::ffff:192.0.2.9", (uint16_t)i);

		pep_recent_add(r, &t, i, NOW + i);
	}
	for (unsigned int i = 0; i < flood; i++) {
		struct pep_tuple t = tuple("::ffff:192.0.2.9", (uint16_t)i);
		bool held = pep_recent_holds(r, &t, i, NOW + flood);

		kept += held;
		if (i >= flood - 100)
			assert_true(held);
		/* 30 newer ones for each set of 4 on average: less than 4 in 1 of 10^6 runs. */
		if (i < flood / 4)
			assert_false(held);
	}
	assert_in_range(kept, 16384 * 95 / 100, 16384);
	pep_recent_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_the_very_same_syn_is_held),
		cmocka_unit_test(it_is_forgotten_in_time_and_renewed_by_each_retransmission),
		cmocka_unit_test(a_flood_makes_it_forget_the_oldest_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
