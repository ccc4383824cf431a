/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unit/unit.h"

#include "proxy/clients.h"
#include "proxy/tuple.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct pep_tuple make_tuple(uint32_t i)
{
	struct pep_tuple t = {.client_port = (uint16_t)(i & 0xffff), .server_port = 443};

	inet_pton(AF_INET6, "::ffff:10.0.0.1", &t.client);
	inet_pton(AF_INET6, "::ffff:192.0.2.1", &t.server);
	memcpy(&t.client.s6_addr[12], &i, sizeof(i));
	return t;
}

static void what_was_added_is_found_until_it_is_removed(void **state)
{
	enum {
		N = 5000
	};
	struct pep_tuple_node *nodes = calloc(N, sizeof(*nodes));
	struct pep_tuple_table *table;
	struct pep_tuple other;

	(void)state;
	assert_int_equal(pep_tuple_table_new(64, &table), 0);
	for (uint32_t i = 0; i < N; i++) {
		nodes[i].tuple = make_tuple(i);
		pep_tuple_table_add(table, &nodes[i]);
	}
	for (uint32_t i = 0; i < N; i++) {
		struct pep_tuple key = make_tuple(i);

		assert_ptr_equal(pep_tuple_table_find(table, &key), &nodes[i]);
	}
	for (uint32_t i = 0; i < N; i += 2)
		pep_tuple_table_remove(table, &nodes[i]);
	for (uint32_t i = 0; i < N; i++) {
		struct pep_tuple key = make_tuple(i);

		assert_ptr_equal(pep_tuple_table_find(table, &key), i % 2 ? &nodes[i] : NULL);
	}
	pep_tuple_table_remove(table, &nodes[0]); /* twice: a no-op */

	/* every part of the tuple counts */
	other = make_tuple(1);
	other.server_port++;
	assert_null(pep_tuple_table_find(table, &other));
	other = make_tuple(1);
	other.client_port++;
	assert_null(pep_tuple_table_find(table, &other));
	other = make_tuple(1);
	other.server.s6_addr[15]++;
	assert_null(pep_tuple_table_find(table, &other));
	pep_tuple_table_free(table);
	pep_tuple_table_free(NULL);
	free(nodes);
}

static void endpoints_survive_the_way_to_a_sockaddr_and_back(void **state)
{
	static const struct {
		const char *addr, *text;
		int family;
	} cases[] = {
		{"::ffff:192.0.2.7", "192.0.2.7:8080", AF_INET},
		{"2001:db8::7", "[2001:db8::7]:8080", AF_INET6},
		{"::1", "[::1]:8080", AF_INET6},
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		char text[PEP_ENDPOINT_TEXT];
		struct sockaddr_storage sa;
		struct in6_addr addr, back;
		uint16_t port;

		inet_pton(AF_INET6, cases[i].addr, &addr);
		assert_string_equal(pep_endpoint_text(&addr, 8080, text), cases[i].text);
		assert_true(pep_endpoint_to_sockaddr(&addr, 8080, &sa) > 0);
		assert_int_equal(sa.ss_family, cases[i].family);
		assert_int_equal(pep_endpoint_from_sockaddr(&sa, &back, &port), 0);
		assert_memory_equal(&addr, &back, sizeof(addr));
		assert_int_equal(port, 8080);
	}
	{
		struct sockaddr_storage sa = {.ss_family = AF_UNIX};
		struct in6_addr back;
		uint16_t port;

		assert_int_equal(pep_endpoint_from_sockaddr(&sa, &back, &port), -EAFNOSUPPORT);
	}
}

static void clients_are_counted_each_for_itself(void **state)
{
	struct pep_clients *clients;
	struct in6_addr a, b;

	(void)state;
	inet_pton(AF_INET6, "::ffff:10.0.0.1", &a);
	inet_pton(AF_INET6, "2001:db8::1", &b);
	assert_int_equal(pep_clients_new(1000, &clients), 0);
	assert_int_equal(pep_clients_count(clients, &a), 0);
	for (int i = 0; i < 3; i++)
		pep_clients_add(clients, &a);
	pep_clients_add(clients, &b);
	assert_int_equal(pep_clients_count(clients, &a), 3);
	assert_int_equal(pep_clients_count(clients, &b), 1);
	pep_clients_remove(clients, &a);
	assert_int_equal(pep_clients_count(clients, &a), 2);
	pep_clients_remove(clients, &b);
	assert_int_equal(pep_clients_count(clients, &b), 0);
	pep_clients_free(clients);
	pep_clients_free(NULL);
}

static void many_clients_are_rarely_counted_together(void **state)
{
	enum {
		N = 4000
	};
	struct pep_clients *clients;
	unsigned int wrong = 0;

	(void)state;
	assert_int_equal(pep_clients_new(N * 4, &clients), 0);
	for (uint32_t i = 0; i < N; i++) {
		struct pep_tuple t = make_tuple(i);

		pep_clients_add(clients, &t.client);
	}
	for (uint32_t i = 0; i < N; i++) {
		struct pep_tuple t = make_tuple(i);
		uint32_t count = pep_clients_count(clients, &t.client);

		assert_true(count >= 1); /* never too few */
		wrong += count > 1;
	}
	/* with rows four times as long, about 0.22^3 of them: 1 % */
	assert_true(wrong < N / 20);
	pep_clients_free(clients);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_added_is_found_until_it_is_removed),
		cmocka_unit_test(endpoints_survive_the_way_to_a_sockaddr_and_back),
		cmocka_unit_test(clients_are_counted_each_for_itself),
		cmocka_unit_test(many_clients_are_rarely_counted_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
