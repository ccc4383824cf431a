/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The link's model, its command line and its traces, without a network. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "link.h"
#include "spec.h"

#define MS  UINT64_C(1000000)
#define SEC UINT64_C(1000000000)

static char complaint[512];

/* A configuration from text; what it complains about goes to `complaint`. */
static int parse(const char *text, struct pep_link_conf *ret)
{
	FILE *errors = fmemopen(complaint, sizeof(complaint), "w");
	int err = pep_spec_link(text, errors, ret);

	fclose(errors);
	return err;
}

static struct pep_link *link_of(const char *text)
{
	struct pep_link_conf conf;
	struct pep_link *link;

	assert_int_equal(parse(text, &conf), 0);
	assert_int_equal(pep_link_new(&conf, 0, &link), 0);
	return link;
}

/* Runs the link until packet @id comes out; returns when that is. */
static uint64_t release_time(struct pep_link *link, uint32_t id, uint64_t now, bool *ret_drop)
{
	uint32_t got;

	for (int turn = 0; turn < 1000000; turn++) {
		while (pep_link_output(link, now, now, &got, ret_drop))
			if (got == id)
				return now;
		if (pep_link_next(link) == PEP_LINK_NEVER)
			break;
		assert_true(pep_link_next(link) >= now);
		now = pep_link_next(link);
	}
	fail_msg("packet %u never came out", id);
	return 0;
}

static void rate_and_delay_add_up(void **state)
{
	struct pep_link *link = link_of("queue=1,rate=12Mbit,delay=10ms");
	bool drop;

	(void)state;
	for (uint32_t id = 1; id <= 100; id++) /* 1500 bytes take 1 ms */
		assert_int_equal(pep_link_input(link, id, 1500, 0), 0);
	assert_in_range(release_time(link, 1, 0, &drop), 11 * MS, 11 * MS + 10);
	assert_false(drop);
	assert_in_range(release_time(link, 100, 11 * MS, &drop), 110 * MS, 110 * MS + 200);
	pep_link_free(link);
}

/* A rate that does not divide the packet's bits loses nothing to rounding. */
static void odd_rate_is_exact(void **state)
{
	struct pep_link *link = link_of("queue=1,rate=7Gbit,buffer=1GB");
	const uint32_t packets = 500000;
	bool drop;

	(void)state;
	for (uint32_t id = 1; id <= packets; id++)
		assert_int_equal(pep_link_input(link, id, 1500, 0), 0);
	assert_in_range(release_time(link, packets, 0, &drop), (uint64_t)packets * 12000 / 7 - 50,
			(uint64_t)packets * 12000 / 7 + 50);
	pep_link_free(link);
}

static void buffer_counts_bytes(void **state)
{
	struct pep_link *link = link_of("queue=1,rate=12Mbit,rtt=4ms,buffer=1BDP");
	uint64_t now = 0;
	bool drop;

	(void)state;
	assert_int_equal(pep_link_conf(link)->buffer_bytes, 6000);
	for (uint32_t id = 1; id <= 6; id++)
		pep_link_input(link, id, 1500, 0);
	assert_int_equal(pep_link_backlog_bytes(link), 6000);
	assert_int_equal(pep_link_stats(link)->dropped[PEP_LINK_DROP_BUFFER], 2);
	for (uint32_t id = 1; id <= 6; id++) {
		now = release_time(link, id, now, &drop);
		assert_int_equal(drop, id > 4);
	}
	pep_link_input(link, 7, 60000, now); /* an empty buffer takes one packet of any size */
	release_time(link, 7, now, &drop);
	assert_false(drop);
	pep_link_free(link);
}

static void events_change_and_restore(void **state)
{
	struct pep_link *link = link_of("queue=1,event=at 10ms rate 1.2Mbit for 10ms,rate=12Mbit,"
					"event=at 100ms block for 50ms every 200ms");
	bool drop;

	(void)state;
	pep_link_input(link, 1, 1500, 9500000); /* half at 12 Mbit/s, half at a tenth */
	assert_in_range(release_time(link, 1, 9500000, &drop), 15 * MS - 10, 15 * MS + 10);
	pep_link_input(link, 2, 1500, 30 * MS);
	assert_in_range(release_time(link, 2, 30 * MS, &drop), 31 * MS, 31 * MS + 10);
	pep_link_input(link, 3, 1500, 110 * MS);
	assert_in_range(release_time(link, 3, 110 * MS, &drop), 151 * MS, 151 * MS + 10);
	pep_link_input(link, 4, 1500, 310 * MS); /* again after 200 ms */
	assert_in_range(release_time(link, 4, 310 * MS, &drop), 351 * MS, 351 * MS + 10);
	pep_link_free(link);
}

static void commands_change_a_running_link(void **state)
{
	struct pep_link *link = link_of("queue=1,delay=1ms");
	struct pep_link_change change;
	bool drop;

	(void)state;
	assert_int_equal(pep_spec_change("loss 100%", &change), 0);
	pep_link_change(link, &change, 0);
	pep_link_input(link, 1, 100, 0);
	release_time(link, 1, 0, &drop);
	assert_true(drop);
	assert_int_equal(pep_spec_change("loss 0%", &change), 0);
	pep_link_change(link, &change, MS);
	pep_link_input(link, 2, 100, MS);
	release_time(link, 2, MS, &drop);
	assert_false(drop);
	assert_int_equal(pep_spec_change("rate", &change), -EINVAL);
	assert_int_equal(pep_spec_change("loss 101%", &change), -EINVAL);
	assert_int_equal(pep_spec_change("blocks", &change), -EINVAL);
	pep_link_free(link);
}

static void order_is_kept_with_jitter(void **state)
{
	struct pep_link *link = link_of("queue=1,delay=20ms,jitter=10ms:normal,loss=10%,seed=5");
	uint64_t now = 0, out = 0;
	uint32_t expected = 1, id;
	bool drop;

	(void)state;
	for (uint32_t i = 1; i <= 2000; i++, now += 100000) {
		pep_link_input(link, i, 200, now);
		while (pep_link_output(link, now, now, &id, &drop)) {
			assert_int_equal(id, expected++);
			out += !drop;
		}
	}
	while (pep_link_output(link, now + SEC, now + SEC, &id, &drop)) {
		assert_int_equal(id, expected++);
		out += !drop;
	}
	assert_int_equal(expected, 2001);
	assert_int_equal(out, pep_link_stats(link)->packets_out);
	assert_in_range(2000 - out, 140, 260);
	pep_link_free(link);
}

static void lost_packets(const char *spec, char lost[1000])
{
	struct pep_link *link = link_of(spec);
	bool drop;

	for (uint32_t id = 0; id < 1000; id++) {
		pep_link_input(link, id, 100, id);
		release_time(link, id, id, &drop);
		lost[id] = (char)('0' + drop);
	}
	pep_link_free(link);
}

static void seed_decides(void **state)
{
	static char one[1000], again[1000], other[1000];

	(void)state;
	lost_packets("queue=1,loss=5%,burst=1%:30%,seed=1", one);
	lost_packets("queue=1,loss=5%,burst=1%:30%,seed=1", again);
	lost_packets("queue=1,loss=5%,burst=1%:30%,seed=2", other);
	assert_memory_equal(one, again, sizeof(one));
	assert_memory_not_equal(one, other, sizeof(one));
}

static struct pep_trace trace_of(const char *text, int want)
{
	struct pep_trace trace = {0};
	FILE *errors = fmemopen(complaint, sizeof(complaint), "w");
	FILE *in = fmemopen((void *)text, strlen(text), "r");

	assert_int_equal(pep_trace_read(in, "t", errors, &trace), want);
	fclose(in);
	fclose(errors);
	return trace;
}

static void trace_errors_name_the_line(void **state)
{
	static const struct {
		const char *text, *start;
	} wrong[] = {
		{"\n", "t:1: empty"},          {"1\n2\nx\n", "t:3: expected a whole number"},
		{"5\n4\n", "t:2: time goes"},  {"0\n", "t:2: the last line"},
		{"99999999\n", "t:1: time b"}, {"1\n-2\n", "t:2: expected a whole"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		trace_of(wrong[i].text, -EINVAL);
		assert_memory_equal(complaint, wrong[i].start, strlen(wrong[i].start));
	}
}

static void trace_repeats_and_fragments(void **state)
{
	struct pep_link_conf conf;
	struct pep_link *link;
	bool drop;

	(void)state;
	assert_int_equal(parse("queue=1", &conf), 0);
	conf.trace = trace_of("2\n2\n5\n10\n", 0);
	assert_int_equal(pep_trace_mean_rate(&conf.trace), 4800000);
	assert_int_equal(pep_link_new(&conf, 0, &link), 0);
	pep_link_input(link, 1, 3000, 0); /* needs both opportunities of 2 ms */
	pep_link_input(link, 2, 700, 0);  /* share the one of 5 ms */
	pep_link_input(link, 3, 800, 0);
	pep_link_input(link, 4, 100, 0);
	assert_int_equal(release_time(link, 1, 0, &drop), 2 * MS);
	assert_int_equal(release_time(link, 2, 2 * MS, &drop), 5 * MS);
	assert_int_equal(release_time(link, 3, 5 * MS, &drop), 5 * MS);
	assert_int_equal(release_time(link, 4, 5 * MS, &drop), 10 * MS);
	pep_link_input(link, 5, 1500, 10 * MS); /* the next period */
	assert_int_equal(release_time(link, 5, 10 * MS, &drop), 12 * MS);
	pep_link_input(link, 6, 1500, 100003 * MS); /* after a long idle time */
	assert_int_equal(release_time(link, 6, 100003 * MS, &drop), 100005 * MS);
	pep_link_free(link);
}

static void wrong_specs_are_refused(void **state)
{
	static const char *const wrong[] = {
		"",
		"rate=1Mbit",
		"queue=70000",
		"queue=1.5",
		"queue=1,rate=5",
		"queue=1,rate=0x10Mbit",
		"queue=1,rate=1e3Mbit",
		"queue=1,rate=-1Mbit",
		"queue=1,rate=nan",
		"queue=1,loss=101%",
		"queue=1,loss=2",
		"queue=1,burst=1%",
		"queue=1,burst=1%:0%",
		"queue=1,delay=25h",
		"queue=1,buffer=2BDP",
		"queue=1,jitter=1ms:x",
		"queue=1,name=a b",
		"queue=1,event=at 1s",
		"queue=1,event=1s block",
		"queue=1,event=at 1s block for 0",
		"queue=1,speed=1Mbit",
		"queue=1,event=at 1s block for 2s every 1s",
		"queue=1,seed=-1",
		"queue=1,trace=/nonexistent/trace",
	};
	struct pep_link_conf conf;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		memset(complaint, 0, sizeof(complaint));
		assert_true(parse(wrong[i], &conf) < 0);
		assert_non_null(strstr(complaint, "expected"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rate_and_delay_add_up),
		cmocka_unit_test(odd_rate_is_exact),
		cmocka_unit_test(buffer_counts_bytes),
		cmocka_unit_test(events_change_and_restore),
		cmocka_unit_test(commands_change_a_running_link),
		cmocka_unit_test(order_is_kept_with_jitter),
		cmocka_unit_test(seed_decides),
		cmocka_unit_test(trace_errors_name_the_line),
		cmocka_unit_test(trace_repeats_and_fragments),
		cmocka_unit_test(wrong_specs_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
