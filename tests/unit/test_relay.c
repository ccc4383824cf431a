/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The relay on real loopback TCP sockets: what goes in comes out, whole, in order, with its end. */
#include "unit/unit.h"

#include "proxy/pool.h"
#include "proxy/relay.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* peer[0] <-> leg[0] == relay == leg[1] <-> peer[1] */
struct bench {
	int peer[2], leg[2];
	struct pep_pool *pool;
	struct pep_path path;
};

static void tcp_pair(int *ret_client, int *ret_server)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(sa);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(listener, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&sa, &size), 0);
	*ret_client = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(*ret_client, (struct sockaddr *)&sa, sizeof(sa)), 0);
	*ret_server = accept(listener, NULL, NULL);
	assert_true(*ret_server >= 0);
	close(listener);
}

static struct bench bench_new(uint64_t memory, uint32_t max_pipes)
{
	struct pep_pool_params params = {
		.memory_bytes = memory,
		.pipe_bytes = 262144,
		.max_pipes = max_pipes,
	};
	struct bench b;

	tcp_pair(&b.peer[0], &b.leg[0]);
	tcp_pair(&b.peer[1], &b.leg[1]);
	for (int i = 0; i < 2; i++) {
		fcntl(b.leg[i], F_SETFL, O_NONBLOCK);
		fcntl(b.peer[i], F_SETFL, O_NONBLOCK);
	}
	assert_int_equal(pep_pool_new(&params, &b.pool), 0);
	pep_path_init(&b.path, b.leg[0], b.leg[1], 1u << 20);
	return b;
}

static void bench_free(struct bench *b)
{
	struct pep_pool_usage usage;

	pep_path_fini(&b->path, b->pool);
	pep_pool_get_usage(b->pool, &usage);
	assert_int_equal(usage.held_bytes, 0);
	assert_int_equal(usage.pipes_used, 0);
	assert_int_equal(usage.chunks_used, 0);
	pep_pool_free(b->pool);
	for (int i = 0; i < 2; i++) {
		close(b->peer[i]);
		close(b->leg[i]);
	}
}

static uint8_t byte_at(uint64_t i)
{
	return (uint8_t)(i * 2654435761u >> 13);
}

/* Writes what the sender takes of bytes [*at, total). */
static void feed(int fd, uint64_t *at, uint64_t total)
{
	uint8_t block[65536];

	while (*at < total) {
		size_t n = total - *at < sizeof(block) ? total - *at : sizeof(block);
		ssize_t sent;

		for (size_t i = 0; i < n; i++)
			block[i] = byte_at(*at + i);
		sent = send(fd, block, n, MSG_NOSIGNAL);
		if (sent <= 0)
			return;
		*at += (uint64_t)sent;
	}
}

/* Reads and checks at most @most bytes. Returns false at the end of the stream. */
static bool drink(int fd, uint64_t *at, size_t most)
{
	uint8_t block[65536];
	ssize_t n = recv(fd, block, most < sizeof(block) ? most : sizeof(block), 0);

	if (n < 0)
		assert_int_equal(errno, EAGAIN);
	for (ssize_t i = 0; i < n; i++)
		assert_int_equal(block[i], byte_at(*at + (uint64_t)i));
	*at += n > 0 ? (uint64_t)n : 0;
	return n != 0;
}

struct run {
	uint64_t total;
	size_t sip; /* bytes the receiver takes at a time */
	bool splice;
	uint32_t max_pipes;
};

static void transfer(const struct run *run)
{
	struct bench b = bench_new(16u << 20, run->max_pipes);
	uint64_t fed = 0, drunk = 0;
	bool more = true, closed = false;
	int error = 0;

	while (more) {
		enum pep_pump result;

		feed(b.peer[0], &fed, run->total);
		if (fed == run->total && !closed) {
			shutdown(b.peer[0], SHUT_WR);
			closed = true;
		}
		result = pep_path_pump(&b.path, b.pool, run->splice, &error);
		b.path.peer_closed = closed;
		assert_true(result != PEP_PUMP_READ_FAILED && result != PEP_PUMP_WRITE_FAILED);
		assert_true(b.path.held_bytes <= 262144);
		assert_true(!b.path.fin_sent || b.path.held_bytes == 0);
		more = drink(b.peer[1], &drunk, run->sip);
	}
	assert_int_equal(drunk, run->total);
	assert_int_equal(b.path.bytes, run->total);
	assert_true(b.path.fin_sent);
	bench_free(&b);
}

static void every_byte_arrives_and_the_end_behind_it(void **state)
{
	static const struct run runs[] = {
		{0, 65536, true, 4},        {1, 65536, true, 4},        {65536, 65536, true, 4},
		{65537, 1000, true, 4},     {8u << 20, 65536, true, 4}, {8u << 20, 65536, false, 4},
		{8u << 20, 65536, true, 0}, {2u << 20, 3000, true, 4},  {2u << 20, 3000, false, 0},
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(runs); i++)
		transfer(&runs[i]);
}

static void a_full_receiver_stops_the_reading(void **state)
{
	struct bench b = bench_new(16u << 20, 4);
	uint64_t fed = 0, before;
	int error = 0;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		feed(b.peer[0], &fed, UINT64_MAX);
		if (pep_path_pump(&b.path, b.pool, true, &error) == PEP_PUMP_BLOCKED)
			break;
	}
	assert_true(b.path.held_bytes > 0 && b.path.held_bytes <= 262144);
	before = b.path.bytes;
	for (int i = 0; i < 10; i++)
		assert_int_equal(pep_path_pump(&b.path, b.pool, true, &error), PEP_PUMP_BLOCKED);
	assert_int_equal(b.path.bytes, before);
	bench_free(&b);
}

static void at_the_memory_cap_bytes_move_on_and_none_is_held(void **state)
{
	struct bench b = bench_new(65536, 4);
	uint64_t fed = 0, drunk = 0, total = 8u << 20;
	bool finished = false;
	int error = 0;

	(void)state;
	pep_pool_hold(b.pool, 65536); /* as if other flows held it all */
	while (drink(b.peer[1], &drunk, 65536)) {
		enum pep_pump result = pep_path_pump(&b.path, b.pool, true, &error);

		assert_int_equal(b.path.held_bytes, 0);
		assert_true(result == PEP_PUMP_DRAINED || result == PEP_PUMP_BLOCKED ||
			    result == PEP_PUMP_BUDGET || result == PEP_PUMP_FINISHED);
		feed(b.peer[0], &fed, total);
		if (fed == total && !finished) {
			shutdown(b.peer[0], SHUT_WR);
			finished = true;
		}
	}
	assert_int_equal(drunk, total);
	assert_int_equal(b.path.bytes, total);
	assert_true(b.path.starved > 0);
	pep_pool_hold(b.pool, -65536);
	bench_free(&b);
}

static void at_the_memory_cap_a_full_receiver_stops_the_reading(void **state)
{
	struct bench b = bench_new(65536, 4);
	uint64_t fed = 0, drunk = 0, before;
	int error = 0;

	(void)state;
	pep_pool_hold(b.pool, 65536);
	do {
		before = b.path.bytes;
		feed(b.peer[0], &fed, 64u << 20);
		(void)pep_path_pump(&b.path, b.pool, true, &error);
	} while (b.path.bytes > before);
	assert_int_equal(pep_path_pump(&b.path, b.pool, true, &error), PEP_PUMP_BLOCKED);
	assert_true(fed < 64u << 20);
	assert_int_equal(b.path.held_bytes, 0);
	/* There is memory again: the same flow goes on with it, and nothing comes twice. */
	pep_pool_hold(b.pool, -65536);
	shutdown(b.peer[0], SHUT_WR);
	while (drink(b.peer[1], &drunk, 65536))
		(void)pep_path_pump(&b.path, b.pool, true, &error);
	assert_int_equal(drunk, fed);
	bench_free(&b);
}

static void a_reset_of_either_leg_is_told_with_its_side(void **state)
{
	struct linger abortive = {1, 0};
	struct bench b = bench_new(16u << 20, 4);
	struct pollfd ready;
	uint64_t fed = 0;
	int error = 0;

	(void)state;
	setsockopt(b.peer[0], SOL_SOCKET, SO_LINGER, &abortive, sizeof(abortive));
	close(b.peer[0]);
	ready = (struct pollfd){.fd = b.leg[0], .events = POLLIN};
	assert_int_equal(poll(&ready, 1, 5000), 1);
	assert_int_equal(pep_path_pump(&b.path, b.pool, true, &error), PEP_PUMP_READ_FAILED);
	assert_int_equal(error, ECONNRESET);
	b.peer[0] = -1;
	bench_free(&b);

	b = bench_new(16u << 20, 4);
	setsockopt(b.peer[1], SOL_SOCKET, SO_LINGER, &abortive, sizeof(abortive));
	close(b.peer[1]);
	b.peer[1] = -1;
	ready = (struct pollfd){.fd = b.leg[1], .events = POLLIN};
	assert_int_equal(poll(&ready, 1, 5000), 1);
	feed(b.peer[0], &fed, 1000);
	ready = (struct pollfd){.fd = b.leg[0], .events = POLLIN};
	assert_int_equal(poll(&ready, 1, 5000), 1);
	assert_int_equal(pep_path_pump(&b.path, b.pool, true, &error), PEP_PUMP_WRITE_FAILED);
	assert_true(error == ECONNRESET || error == EPIPE);
	bench_free(&b);
}

static void a_broken_leg_ends_without_a_fin(void **state)
{
	struct bench b = bench_new(16u << 20, 4);
	uint64_t fed = 0, drunk = 0;
	int error = 0;

	(void)state;
	feed(b.peer[0], &fed, 1000);
	shutdown(b.peer[0], SHUT_WR);
	b.path.no_fin = true;
	b.path.peer_closed = true;
	while (!b.path.fin_sent)
		pep_path_pump(&b.path, b.pool, true, &error);
	while (drunk < 1000)
		drink(b.peer[1], &drunk, 65536);
	/* not the end of the stream: nothing more to read, for now */
	assert_true(drink(b.peer[1], &drunk, 65536));
	bench_free(&b);
}

static void an_urgent_byte_is_a_byte_of_the_stream(void **state)
{
	struct bench b = bench_new(16u << 20, 4);
	uint64_t drunk = 0, fed = 0;
	int one = 1, error = 0;
	uint8_t urgent;

	(void)state;
	setsockopt(b.leg[0], SOL_SOCKET, SO_OOBINLINE, &one, sizeof(one));
	feed(b.peer[0], &fed, 300000);
	urgent = byte_at(fed);
	while (send(b.peer[0], &urgent, 1, MSG_OOB | MSG_NOSIGNAL) < 1) {
		pep_path_pump(&b.path, b.pool, true, &error);
		drink(b.peer[1], &drunk, 65536);
	}
	fed++;
	for (int i = 0; i < 100000 && drunk < fed; i++) {
		pep_path_pump(&b.path, b.pool, true, &error);
		drink(b.peer[1], &drunk, 65536);
	}
	assert_int_equal(drunk, fed);
	bench_free(&b);
}

static void pipes_are_borrowed_up_to_the_limit_and_closed_when_not_empty(void **state)
{
	struct pep_pool_params params = {
		.memory_bytes = 1u << 20, .pipe_bytes = 262144, .max_pipes = 2};
	struct pep_pool_usage usage;
	struct pep_pipe *a, *b;
	struct pep_pool *pool;

	(void)state;
	assert_int_equal(pep_pool_new(&params, &pool), 0);
	a = pep_pool_get_pipe(pool);
	b = pep_pool_get_pipe(pool);
	assert_non_null(a);
	assert_non_null(b);
	assert_true(a->size_bytes >= PEP_PIPE_USEFUL_BYTES);
	assert_null(pep_pool_get_pipe(pool));
	pep_pool_get_usage(pool, &usage);
	assert_int_equal(usage.pipe_failures, 1);
	assert_int_equal(usage.pipes_open, 2);
	pep_pool_put_pipe(pool, a, false);
	pep_pool_put_pipe(pool, b, true);
	pep_pool_get_usage(pool, &usage);
	assert_int_equal(usage.pipes_open, 1);
	assert_int_equal(usage.pipes_used, 0);
	pep_pool_free(pool);
	pep_pool_free(NULL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_byte_arrives_and_the_end_behind_it),
		cmocka_unit_test(a_full_receiver_stops_the_reading),
		cmocka_unit_test(at_the_memory_cap_bytes_move_on_and_none_is_held),
		cmocka_unit_test(at_the_memory_cap_a_full_receiver_stops_the_reading),
		cmocka_unit_test(a_reset_of_either_leg_is_told_with_its_side),
		cmocka_unit_test(a_broken_leg_ends_without_a_fin),
		cmocka_unit_test(an_urgent_byte_is_a_byte_of_the_stream),
		cmocka_unit_test(pipes_are_borrowed_up_to_the_limit_and_closed_when_not_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
