/* SPDX-License-Identifier: GPL-2.0-or-later */
/* edgepepctl: its table of commands, picking flows out of a real segment, running programs. */
#include "ctl/ctl.h"
#include "ctl/flowlist.h"
#include "ctl/probe.h"
#include "ctl/run.h"

#include <arpa/inet.h>
#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "unit/unit.h"

static char *read_file(const char *path)
{
	FILE *in = fopen(path, "r");
	char *text = NULL;
	size_t size = 0;

	assert_non_null(in);
	assert_true(getdelim(&text, &size, '\0', in) > 0);
	fclose(in);
	return text;
}

static void test_manual_page_has_every_command(void **state)
{
	char *page = read_file(PEP_SOURCE_DIR "/doc/edgepepctl.8");
	char item[64];

	(void)state;
	for (const struct ctl_command *c = ctl_commands; c->name; c++) {
		char *words = strdup(c->args), *rest = words;

		snprintf(item, sizeof(item), "\n.It Cm %s", c->name);
		assert_contains(page, item);
		/* the words that a user types, "show", "--deadline" */
		for (char *w = strtok_r(rest, " []|", &rest); w;
		     w = strtok_r(NULL, " []|", &rest)) {
			if (*w >= 'A' && *w <= 'Z')
				continue;
			snprintf(item, sizeof(item), " %s", *w == '-' ? w + 1 : w);
			assert_contains(page, item);
		}
		free(words);
	}
	free(page);
}

static void test_help_has_every_command(void **state)
{
	char *text = ctl_commands_text();

	(void)state;
	assert_non_null(text);
	for (const struct ctl_command *c = ctl_commands; c->name; c++) {
		assert_contains(text, c->name);
		assert_contains(text, c->summary);
	}
	free(text);
}

/* ---- flows ------------------------------------------------------------------------------------
 */

#define FLOWS 300

/* Flow i: rate and RTT fall, bytes rise with i; every third one is IPv6. */
static void write_flows(struct pep_stats_worker *worker)
{
	for (unsigned int i = 0; i < FLOWS; i++) {
		struct pep_stats_flow *f = pep_stats_flow_acquire(worker);
		char text[64];

		assert_non_null(f);
		pep_stats_flow_begin(f);
		f->state = PEP_STATS_FLOW_OPEN;
		snprintf(text, sizeof(text), i % 3 ? "::ffff:10.0.%u.%u" : "fd00::%x:%x", i / 256,
			 i % 256);
		assert_int_equal(inet_pton(AF_INET6, text, &f->client), 1);
		assert_int_equal(inet_pton(AF_INET6, "::ffff:192.0.2.1", &f->server), 1);
		f->client_port = (uint16_t)(1000 + i);
		f->server_port = 443;
		f->path[PEP_DIRECTION_DOWNLINK].rate = 1000000 - i;
		f->path[PEP_DIRECTION_UPLINK].bytes = i;
		f->path[PEP_DIRECTION_UPLINK].held_bytes = i % 7;
		f->leg[PEP_SEGMENT_WIRELESS].tcp.valid = 1;
		f->leg[PEP_SEGMENT_WIRELESS].tcp.srtt_us = 1000 - i;
		f->leg[PEP_SEGMENT_WIRELESS].tcp.bytes_sent = 1000;
		f->leg[PEP_SEGMENT_WIRELESS].tcp.bytes_retrans = i;
		pep_stats_flow_end(f);
	}
}

static struct {
	char dir[64], path[80];
	struct pep_stats *stats;
	struct pep_stats_reader *reader;
} segment;

static int open_segment(void **state)
{
	const struct pep_stats_params params = {1, FLOWS, (gid_t)-1, "test"};

	(void)state;
	snprintf(segment.dir, sizeof(segment.dir), "/tmp/pep-test-ctl-XXXXXX");
	assert_non_null(mkdtemp(segment.dir));
	snprintf(segment.path, sizeof(segment.path), "%s/stats", segment.dir);
	assert_int_equal(pep_stats_create(segment.path, &params, &segment.stats), 0);
	write_flows(pep_stats_worker(segment.stats, 0));
	assert_int_equal(pep_stats_open(segment.path, &segment.reader), 0);
	return 0;
}

static int close_segment(void **state)
{
	(void)state;
	pep_stats_close(segment.reader);
	pep_stats_destroy(segment.stats);
	return rmdir(segment.dir);
}

static void test_flows_sort_and_limit(void **state)
{
	static const struct {
		enum flow_sort sort;
		unsigned int first_port; /* of the best flow */
	} cases[] = {
		{FLOW_SORT_RATE, 1000}, {FLOW_SORT_BYTES, 1299}, {FLOW_SORT_AGE, 1000},
		{FLOW_SORT_RTT, 1000},  {FLOW_SORT_HELD, 1006},  {FLOW_SORT_RETRANS, 1299},
	};
	static const size_t limits[] = {1, 7, 64, 150, 299, 300, 1000, 0};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		for (size_t k = 0; k < COUNT_OF(limits); k++) {
			struct flow_pick pick = {.sort = cases[i].sort, .limit = limits[k]};
			struct flow_list list;

			assert_int_equal(flow_list_read(segment.reader, &pick, &list), 0);
			assert_int_equal(list.matched, FLOWS);
			assert_int_equal(list.n,
					 limits[k] && limits[k] < FLOWS ? limits[k] : FLOWS);
			assert_int_equal(list.flows[0].client_port, cases[i].first_port);
			flow_list_fini(&list);
		}
	}
}

static void test_flows_of_a_client(void **state)
{
	struct flow_pick pick = {.client = {.bits = 96 + 24}};
	struct flow_list list;

	(void)state;
	assert_int_equal(inet_pton(AF_INET6, "::ffff:10.0.1.0", &pick.client.addr), 1);
	assert_int_equal(flow_list_read(segment.reader, &pick, &list), 0);
	assert_int_equal(list.matched, 30); /* 256..299 without each third */
	for (size_t i = 0; i < list.n; i++)
		assert_int_equal(list.flows[i].client.s6_addr[14], 1);
	flow_list_fini(&list);
}

static void test_flow_lines(void **state)
{
	struct flow_pick pick = {.limit = 1};
	struct flow_list list;
	char title[512], line[512], narrow[512];

	(void)state;
	assert_int_equal(flow_list_read(segment.reader, &pick, &list), 0);
	flow_line(NULL, 0, flow_fit(1000), title, sizeof(title));
	flow_line(&list.flows[0], list.flows[0].start_ns + 2000000000, flow_fit(1000), line,
		  sizeof(line));
	assert_contains(title, "LIMITED BY");
	assert_contains(line, "[fd00::]:1000"); /* client */
	assert_contains(line, "192.0.2.1:443");
	assert_contains(line, "8.00 Mbit/s");
	assert_contains(line, "2.00 s");
	/* what a terminal has no room for is left out, and nothing is wider than promised */
	for (int width = 20; width < 300; width++) {
		flow_line(NULL, 0, flow_fit(width), narrow, sizeof(narrow));
		if (flow_fit(width) > 0)
			assert_true(strlen(narrow) <= (size_t)width);
	}
	/* 80 columns have room for what matters, of both legs; a long address moves nothing */
	flow_line(NULL, 0, flow_fit(80), narrow, sizeof(narrow));
	assert_contains(narrow, "LIMITED BY");
	assert_contains(narrow, "RADIO RTT");
	assert_contains(narrow, "WIRED RTT");
	assert_int_equal(inet_pton(AF_INET6, "2001:db8:1234:5678::1", &list.flows[0].client), 1);
	flow_line(&list.flows[0], 0, flow_fit(80), narrow, sizeof(narrow));
	assert_contains(narrow, "[2001:db8:1234:567~  8.00 Mbit/s");
	/* a buffer too small is no overflow */
	memset(narrow, 'x', sizeof(narrow));
	flow_line(&list.flows[0], 0, FLOW_ALL_COLUMNS, narrow, 10);
	assert_true(strlen(narrow) <= 9);
	assert_int_equal(narrow[10], 'x');
	flow_list_fini(&list);
}

/* ---- programs ----------------------------------------------------------------------------------
 */

static void test_run(void **state)
{
	const char *const cat[] = {"cat", NULL};
	const char *const fail[] = {"sh", "-c", "echo out; echo oops >&2; exit 3", NULL};
	const char *const none[] = {"edgepep-no-such-program", NULL};
	const char *const slow[] = {"sleep", "30", NULL};
	const char *const full[] = {"sh", "-c", "exec yes | head -c 3000000", NULL};
	const char *const deaf[] = {"true", NULL};
	static char input[300001];
	struct pep_run run;
	char line[8];
	time_t begin = time(NULL);

	(void)state;
	memset(input, 'a', sizeof(input) - 1);
	assert_int_equal(pep_run(cat, input, 10, &run), 0);
	assert_string_equal(run.out, input);
	assert_string_equal(run.err, "");
	pep_run_fini(&run);
	assert_int_equal(pep_run(deaf, input, 10, &run), 0); /* does not read what it is given */
	pep_run_fini(&run);
	assert_int_equal(pep_run(full, NULL, 10, &run), 0);
	assert_int_equal(strlen(run.out), 3000000);
	pep_run_fini(&run);
	assert_int_equal(pep_run(fail, NULL, 10, &run), 0);
	assert_int_equal(run.status, 3);
	assert_string_equal(run.out, "out\n");
	assert_string_equal(pep_run_first_line(run.err, line, sizeof(line)), "oops");
	pep_run_fini(&run);
	assert_int_equal(pep_run(none, NULL, 10, &run), -ENOENT);
	assert_int_equal(pep_run(slow, NULL, 1, &run), -ETIMEDOUT);
	assert_true(time(NULL) - begin < 10);
}

static void test_probe_parse(void **state)
{
	static const struct {
		const char *text;
		int result;
		const char *error;
	} bad[] = {
		{"", -EPROTO, "no result"},
		{"[1]", -EPROTO, "no result"},
		{"{\"end\": {\"sum_received\": {\"bits_per_second\": \"1\"}}}", -EPROTO,
		 "no result"},
		{"{\"error\": \"unable to connect\"}", -EIO, "unable to connect"},
	};
	char error[PROBE_ERROR_SIZE];
	struct probe_result result;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		assert_int_equal(probe_parse(bad[i].text, &result, error), bad[i].result);
		assert_contains(error, bad[i].error);
	}
	assert_int_equal(probe_parse("{\"end\": {\"sum_received\": {\"bits_per_second\": 2e6},"
				     "\"sum_sent\": {\"retransmits\": 7},"
				     "\"streams\": [{\"sender\": {\"mean_rtt\": 10}},"
				     "{\"sender\": {\"mean_rtt\": 20}}],"
				     "\"sender_tcp_congestion\": \"cubic\"}}",
				     &result, error),
			 0);
	assert_true(result.bits_per_second > 1999999 && result.bits_per_second < 2000001);
	assert_int_equal(result.retransmits, 7);
	assert_int_equal(result.rtt_us, 15);
	assert_string_equal(result.control, "cubic");
}

int main(void)
{
#define WITH_SEGMENT(name) cmocka_unit_test_setup_teardown(name, open_segment, close_segment)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_manual_page_has_every_command),
		cmocka_unit_test(test_help_has_every_command),
		WITH_SEGMENT(test_flows_sort_and_limit),
		WITH_SEGMENT(test_flows_of_a_client),
		WITH_SEGMENT(test_flow_lines),
		cmocka_unit_test(test_run),
		cmocka_unit_test(test_probe_parse),
	};

	return cmocka_run_group_tests_name("ctl", tests, NULL, NULL);
}
