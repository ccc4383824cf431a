/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The stats segment: what one process writes, another reads; never a torn record. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/stats.h"
#include "base/stats_json.h"
#include "base/stats_layout.h"
#include "base/stats_read.h"

static char dir[] = "/tmp/edgepep-test-stats-XXXXXX";
static char path[64];

static struct pep_stats *create(unsigned int workers, unsigned int flows)
{
	struct pep_stats_params params = {workers, flows, (gid_t)-1, "1.2.3"};
	struct pep_stats *stats = NULL;

	assert_int_equal(pep_stats_create(path, &params, &stats), 0);
	assert_non_null(stats);
	return stats;
}

static struct pep_stats_reader *reader_open(void)
{
	struct pep_stats_reader *reader = NULL;

	assert_int_equal(pep_stats_open(path, &reader), 0);
	return reader;
}

static void totals_are_sums_over_workers(void **state)
{
	struct pep_stats *stats = create(3, 4);
	struct pep_stats_reader *reader = reader_open();
	static struct pep_stats_block totals;
	unsigned int class = pep_stats_class(stats, "video");

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		struct pep_stats_worker *w = pep_stats_worker(stats, i);

		pep_stats_add(w, PEP_COUNTER_SYNS, i + 1);
		pep_stats_gauge_set(w, PEP_GAUGE_FLOWS, 10);
		pep_stats_gauge_add(w, PEP_GAUGE_FLOWS, -1);
		pep_stats_payload(w, PEP_SEGMENT_WIRED, PEP_DIRECTION_DOWNLINK, class, 100);
		pep_stats_bypassed(w, PEP_BYPASS_MPTCP);
		pep_stats_observe(w, PEP_HISTOGRAM_CONNECT, 6000000);
	}
	pep_stats_read_totals(reader, &totals);
	assert_int_equal(totals.counters[PEP_COUNTER_SYNS], 6);
	assert_int_equal(totals.gauges[PEP_GAUGE_FLOWS], 27);
	assert_int_equal(totals.payload_bytes[PEP_SEGMENT_WIRED][PEP_DIRECTION_DOWNLINK][class],
			 300);
	assert_int_equal(totals.bypassed[PEP_BYPASS_MPTCP], 3);
	assert_int_equal(totals.histograms[PEP_HISTOGRAM_CONNECT].buckets[1], 3);
	assert_int_equal(totals.histograms[PEP_HISTOGRAM_CONNECT].sum, 18000000);
	pep_stats_close(reader);
	pep_stats_destroy(stats);
}

static void names_keep_their_slots(void **state)
{
	struct pep_stats *stats = create(1, 1);
	static struct pep_stats_info info;
	struct pep_stats_reader *reader;
	char name[16];

	(void)state;
	assert_int_equal(pep_stats_class(stats, "default"), 0);
	assert_int_equal(pep_stats_class(stats, "a"), 1);
	assert_int_equal(pep_stats_class(stats, "b"), 2);
	assert_int_equal(pep_stats_class(stats, "a"), 1);
	for (int i = 3; i < PEP_STATS_MAX_CLASSES; i++) {
		snprintf(name, sizeof(name), "c%d", i);
		assert_int_equal(pep_stats_class(stats, name), i);
	}
	assert_int_equal(pep_stats_class(stats, "toomany"), 0);

	assert_int_equal(pep_stats_cca(stats, "cubic"), 0);
	assert_int_equal(pep_stats_cca(stats, "pep_bbr_a"), 1);
	for (int i = 2; i < PEP_STATS_MAX_CCAS - 1; i++) {
		snprintf(name, sizeof(name), "cc%d", i);
		assert_int_equal(pep_stats_cca(stats, name), i);
	}
	assert_int_equal(pep_stats_cca(stats, "toomany"), PEP_STATS_MAX_CCAS - 1);

	reader = reader_open();
	pep_stats_read_info(reader, &info);
	assert_string_equal(info.classes[2], "b");
	assert_string_equal(info.ccas[1], "pep_bbr_a");
	assert_string_equal(info.ccas[PEP_STATS_MAX_CCAS - 1], "other");
	pep_stats_close(reader);
	pep_stats_destroy(stats);
}

static bool count_flow(const struct pep_stats_flow *flow, void *user)
{
	(void)flow;
	(*(unsigned int *)user)++;
	return true;
}

static unsigned int count(const struct pep_stats_reader *reader)
{
	unsigned int n = 0;

	assert_int_equal(pep_stats_each_flow(reader, count_flow, &n), 0);
	return n;
}

static unsigned int count_closed(const struct pep_stats_reader *reader)
{
	unsigned int n = 0;

	assert_int_equal(pep_stats_each_closed(reader, count_flow, &n), 0);
	return n;
}

static void flow_table_is_bounded_and_reused(void **state)
{
	struct pep_stats *stats = create(2, 2);
	struct pep_stats_worker *w = pep_stats_worker(stats, 1);
	struct pep_stats_reader *reader = reader_open();
	struct pep_stats_flow *a, *b, copy;
	static struct pep_stats_block totals;

	(void)state;
	a = pep_stats_flow_acquire(w);
	b = pep_stats_flow_acquire(w);
	assert_non_null(a);
	assert_non_null(b);
	assert_null(pep_stats_flow_acquire(w));
	assert_int_equal(count(reader), 2);

	/* NULL is a no-op but for the count. */
	pep_stats_flow_begin(NULL);
	pep_stats_flow_end(NULL);
	pep_stats_flow_release(w, NULL, PEP_CLOSE_FINISHED);

	assert_int_equal(a->id, (UINT64_C(1) << 48) + 1);
	pep_stats_flow_release(w, a, PEP_CLOSE_CLIENT_RESET);
	assert_int_equal(count(reader), 1);
	assert_int_equal(count_closed(reader), 1);
	assert_int_equal(pep_stats_read_flow(reader, (UINT64_C(1) << 48) + 1, &copy), 0);
	assert_int_equal(copy.state, PEP_STATS_FLOW_CLOSED);
	assert_int_equal(copy.close_reason, PEP_CLOSE_CLIENT_RESET);
	assert_int_equal(pep_stats_read_flow(reader, (UINT64_C(1) << 48) + 9, &copy), -ENOENT);

	a = pep_stats_flow_acquire(w);
	assert_non_null(a);
	assert_int_equal(a->id, (UINT64_C(1) << 48) + 3);

	for (int i = 0; i < 1000; i++) {
		pep_stats_flow_release(w, a, PEP_CLOSE_FINISHED);
		a = pep_stats_flow_acquire(w);
		assert_non_null(a);
	}
	assert_int_equal(count_closed(reader), PEP_STATS_CLOSED_PER_WORKER);
	pep_stats_read_totals(reader, &totals);
	assert_int_equal(totals.counters[PEP_COUNTER_RECORDS_FULL], 1);
	assert_int_equal(totals.closed[PEP_CLOSE_FINISHED], 1001);
	pep_stats_close(reader);
	pep_stats_destroy(stats);
}

static volatile bool stop_writer;

/* Writes records in which every field tells the same number. */
static void *write_records(void *arg)
{
	struct pep_stats_worker *w = arg;
	struct pep_stats_flow *flow = pep_stats_flow_acquire(w);

	for (uint64_t n = 1; !stop_writer; n++) {
		pep_stats_flow_begin(flow);
		flow->start_ns = n;
		flow->leg[0].tcp.bytes_acked = n;
		flow->leg[1].tcp.bytes_received = n;
		flow->path[1].bytes = n;
		flow->sample_ns = n;
		pep_stats_flow_end(flow);
		if (n % 64 == 0) {
			pep_stats_flow_release(w, flow, PEP_CLOSE_FINISHED);
			flow = pep_stats_flow_acquire(w);
		}
	}
	return NULL;
}

static bool check_flow(const struct pep_stats_flow *f, void *user)
{
	if (f->sample_ns == 0) /* fresh: only start_ns is set */
		return true;
	assert_int_equal(f->leg[0].tcp.bytes_acked, f->sample_ns);
	assert_int_equal(f->leg[1].tcp.bytes_received, f->sample_ns);
	assert_int_equal(f->path[1].bytes, f->sample_ns);
	(*(unsigned int *)user)++;
	return true;
}

static void no_reader_sees_a_torn_record(void **state)
{
	struct pep_stats *stats = create(1, 4);
	struct pep_stats_reader *reader = reader_open();
	uint64_t end = pep_clock_mono_ns() + 500000000;
	unsigned int seen = 0;
	pthread_t thread;

	(void)state;
	stop_writer = false;
	assert_int_equal(pthread_create(&thread, NULL, write_records, pep_stats_worker(stats, 0)),
			 0);
	while (pep_clock_mono_ns() < end) {
		(void)pep_stats_each_flow(reader, check_flow, &seen);
		(void)pep_stats_each_closed(reader, check_flow, &seen);
	}
	stop_writer = true;
	pthread_join(thread, NULL);
	assert_true(seen > 100);
	pep_stats_close(reader);
	pep_stats_destroy(stats);
}

static void reader_refuses_what_it_cannot_read(void **state)
{
	static const struct {
		size_t offset;
		uint32_t value;
		int error;
	} rows[] = {
		{offsetof(struct stats_header, magic), 1, -EBADMSG},
		{offsetof(struct stats_header, version), PEP_STATS_VERSION + 1, -EPROTO},
		{offsetof(struct stats_header, block_size), 8, -EPROTO},
		{offsetof(struct stats_header, flow_size), 8, -EPROTO},
		{offsetof(struct stats_header, workers), 0, -EBADMSG},
		{offsetof(struct stats_header, workers), 65, -EBADMSG},
		{offsetof(struct stats_header, flows_per_worker), 1u << 20, -EBADMSG},
		{offsetof(struct stats_header, closed_per_worker), 1u << 19, -EBADMSG},
		{offsetof(struct stats_header, size), 4096, -EBADMSG},
	};
	struct pep_stats_reader *reader = NULL;
	char text[300], expected[64];
	uint32_t version;

	(void)state;
	assert_int_equal(pep_stats_open(path, &reader), -ENOENT);
	pep_stats_explain(path, -ENOENT, text, sizeof(text));
	assert_non_null(strstr(text, "edgepepd is not running"));

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pep_stats *stats = create(1, 1);
		int fd = open(path, O_RDWR);

		assert_int_equal(pwrite(fd, &rows[i].value, 4, (off_t)rows[i].offset), 4);
		close(fd);
		assert_int_equal(pep_stats_open(path, &reader), rows[i].error);
		if (rows[i].offset == offsetof(struct stats_header, version)) {
			assert_int_equal(pep_stats_version(path, &version), 0);
			assert_int_equal(version, PEP_STATS_VERSION + 1);
			pep_stats_explain(path, -EPROTO, text, sizeof(text));
			snprintf(expected, sizeof(expected),
				 "layout version %u, this program reads %u", PEP_STATS_VERSION + 1,
				 PEP_STATS_VERSION);
			assert_non_null(strstr(text, expected));
		}
		pep_stats_destroy(stats);
	}

	/* Shorter than its header, empty, and not a file at all. */
	assert_int_equal(close(open(path, O_CREAT | O_WRONLY, 0600)), 0);
	assert_int_equal(pep_stats_open(path, &reader), -EBADMSG);
	assert_int_equal(truncate(path, 20), 0);
	assert_int_equal(pep_stats_open(path, &reader), -EBADMSG);
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(pep_stats_open(path, &reader), -EBADMSG);
	rmdir(path);
	assert_null(reader);
}

static void file_is_private_and_goes_away(void **state)
{
	struct pep_stats *stats = create(1, 1), *second;
	struct pep_stats_reader *reader = reader_open();
	struct stat st;

	(void)state;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_false(pep_stats_replaced(reader));

	/* A second daemon's segment replaces the first's, and survives the first's end. */
	second = create(1, 1);
	assert_true(pep_stats_replaced(reader));
	pep_stats_destroy(stats);
	assert_int_equal(stat(path, &st), 0);
	pep_stats_destroy(second);
	assert_int_equal(stat(path, &st), -1);
	pep_stats_close(reader);
}

static void death_is_seen_at_once(void **state)
{
	struct pep_stats_reader *reader;
	static struct pep_stats_info info;
	int ready[2], status;
	char byte;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		struct pep_stats_params params = {1, 1, (gid_t)-1, ""};
		struct pep_stats *stats;

		if (pep_stats_create(path, &params, &stats) || write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	reader = reader_open();
	pep_stats_read_info(reader, &info);
	assert_int_equal(info.pid, pid);
	assert_true(pep_stats_alive(&info, pep_clock_mono_ns()));
	assert_false(pep_stats_alive(&info, pep_clock_mono_ns() + PEP_STATS_STALE_NS));

	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	pep_stats_read_info(reader, &info);
	assert_false(pep_stats_alive(&info, pep_clock_mono_ns()));
	assert_false(pep_stats_replaced(reader)); /* the file is left behind */
	pep_stats_close(reader);
	unlink(path);
	close(ready[0]);
	close(ready[1]);
}

static void bad_parameters_are_refused(void **state)
{
	static const struct pep_stats_params rows[] = {
		{0, 1, 0, ""},
		{PEP_CONF_MAX_WORKERS + 1, 1, 0, ""},
		{1, 0, 0, ""},
		{1, PEP_STATS_MAX_FLOWS + 1, 0, ""},
	};
	struct pep_stats_params good = {1, 1, (gid_t)-1, ""};
	struct pep_stats *stats = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(pep_stats_create(path, &rows[i], &stats), -EINVAL);
	assert_int_equal(pep_stats_create("/nonexistent/stats", &good, &stats), -ENOENT);
	assert_null(stats);
}

static void ids_are_read_as_written(void **state)
{
	static const char *const bad[] = {
		"",
		"1",
		"1-",
		"-1",
		"a-1",
		"1-a",
		"1-1 ",
		" 1-1",
		"64-1",
		"1-281474976710656",
		"+1-1",
		"1--1",
		"99999999999999999999-1",
	};
	char text[PEP_STATS_FLOW_ID_SIZE];
	uint64_t id = 7;

	(void)state;
	assert_string_equal(pep_stats_flow_id(UINT64_C(63) << 48 | 12, text), "63-12");
	assert_int_equal(pep_stats_flow_id_parse("63-12", &id), 0);
	assert_int_equal(id, UINT64_C(63) << 48 | 12);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(pep_stats_flow_id_parse(bad[i], &id), -EINVAL);
	assert_int_equal(id, UINT64_C(63) << 48 | 12);
}

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/stats", dir);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(totals_are_sums_over_workers),
		cmocka_unit_test(names_keep_their_slots),
		cmocka_unit_test(flow_table_is_bounded_and_reused),
		cmocka_unit_test(no_reader_sees_a_torn_record),
		cmocka_unit_test(reader_refuses_what_it_cannot_read),
		cmocka_unit_test(file_is_private_and_goes_away),
		cmocka_unit_test(death_is_seen_at_once),
		cmocka_unit_test(bad_parameters_are_refused),
		cmocka_unit_test(ids_are_read_as_written),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
