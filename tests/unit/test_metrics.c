/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names follow the rules, every series is there from the start, both formats are well formed. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/metrics.h"

static struct pep_stats_info info;
static struct pep_stats_block totals, workers[2];

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && strcmp(text + n - m, end) == 0;
}

static char *render(bool up, enum pep_metrics_format format)
{
	struct pep_metrics_input in = {
		.up = up, .info = &info, .totals = &totals, .workers = workers};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	pep_metrics_write(&in, format, out);
	assert_int_equal(ferror(out), 0);
	fclose(out);
	return text;
}

static int setup(void **state)
{
	(void)state;
	info.workers = 2;
	info.start_real_ns = 1500000000;
	strcpy(info.classes[0], "default");
	strcpy(info.classes[1], "we\"ird\\\n");
	strcpy(info.ccas[0], "cubic");
	strcpy(info.ccas[PEP_STATS_MAX_CCAS - 1], "other");
	totals.payload_bytes[PEP_SEGMENT_WIRED][PEP_DIRECTION_UPLINK][0] = 42;
	totals.limited_ns[PEP_SEGMENT_WIRELESS][PEP_DIRECTION_DOWNLINK][PEP_LIMIT_RECEIVER] =
		2500000000;
	totals.histograms[PEP_HISTOGRAM_CONNECT].buckets[0] = 2;
	totals.histograms[PEP_HISTOGRAM_CONNECT].buckets[3] = 1;
	totals.histograms[PEP_HISTOGRAM_CONNECT].buckets[12] = 1;
	totals.histograms[PEP_HISTOGRAM_CONNECT].sum = 1;
	return 0;
}

static void names_follow_the_rules(void **state)
{
	static const char *const labels[] = {"",
					     "reason",
					     "segment",
					     "direction",
					     "worker",
					     "segment",
					     "segment, cca",
					     "segment, direction, class",
					     "segment, direction, reason"};
	struct pep_metric_info m, other;

	(void)state;
	for (size_t i = 0; pep_metrics_get(i, &m); i++) {
		bool known = false;

		assert_memory_equal(m.name, "edgepep_", 8);
		for (const char *c = m.name; *c; c++)
			assert_true(islower((unsigned char)*c) || *c == '_');
		assert_int_equal(ends_with(m.name, "_total"), m.type == PEP_METRIC_TYPE_COUNTER);
		if (m.type == PEP_METRIC_TYPE_HISTOGRAM)
			assert_true(ends_with(m.name, "_seconds") ||
				    ends_with(m.name, "_bytes_per_second"));
		assert_null(strstr(m.name, "_ns"));
		assert_null(strstr(m.name, "_ms"));
		assert_true(ends_with(m.help, "."));
		assert_null(strchr(m.help, '\n'));
		for (size_t j = 0; j < sizeof(labels) / sizeof(labels[0]); j++)
			known |= strcmp(m.labels, labels[j]) == 0;
		assert_true(known);
		for (size_t j = 0; j < i; j++) {
			assert_true(pep_metrics_get(j, &other));
			assert_string_not_equal(m.name, other.name);
		}
	}
}

static void every_metric_is_there_once(void **state)
{
	char *text = render(true, PEP_METRICS_FORMAT_PROMETHEUS);
	struct pep_metric_info m;

	(void)state;
	for (size_t i = 0; pep_metrics_get(i, &m); i++) {
		char line[128], *first;

		snprintf(line, sizeof(line), "# TYPE %s %s\n", m.name,
			 pep_metric_type_name(m.type));
		first = strstr(text, line);
		assert_non_null(first);
		assert_null(strstr(first + 1, line));
	}
	free(text);
}

static void values_are_written_exactly(void **state)
{
	static const char *const lines[] = {
		"\nedgepep_start_time_seconds 1.5\n",
		"\nedgepep_segment_payload_bytes_total{segment=\"wired\",direction=\"uplink\","
		"class=\"default\"} 42\n",
		"class=\"we\\\"ird\\\\\\n\"} 0\n",
		"\nedgepep_segment_limited_seconds_total{segment=\"wireless\","
		"direction=\"downlink\",reason=\"receiver\"} 2.5\n",
		"\nedgepep_connect_duration_seconds_bucket{le=\"0.005\"} 2\n",
		"\nedgepep_connect_duration_seconds_bucket{le=\"0.05\"} 3\n",
		"\nedgepep_connect_duration_seconds_bucket{le=\"30.0\"} 3\n",
		"\nedgepep_connect_duration_seconds_bucket{le=\"+Inf\"} 4\n",
		"\nedgepep_connect_duration_seconds_sum 0.000000001\n",
		"\nedgepep_connect_duration_seconds_count 4\n",
		"\nedgepep_event_loop_lag_seconds_bucket{worker=\"1\",le=\"0.0001\"} 0\n",
		"\nedgepep_flows_closed_total{reason=\"half_close_timeout\"} 0\n",
		"\nedgepep_cca_fallbacks_total{segment=\"wired\",cca=\"other\"} 0\n",
	};
	char *text = render(true, PEP_METRICS_FORMAT_PROMETHEUS);

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (!strstr(text, lines[i]))
			fail_msg("missing: %s", lines[i]);
	assert_null(strstr(text, "# EOF"));
	assert_null(strstr(text, "\"?\""));
	free(text);
}

static void openmetrics_differs_where_it_must(void **state)
{
	char *text = render(true, PEP_METRICS_FORMAT_OPENMETRICS);

	(void)state;
	assert_true(ends_with(text, "\n# EOF\n"));
	assert_non_null(strstr(text, "# TYPE edgepep_syns counter\n"));
	assert_non_null(strstr(text, "\nedgepep_syns_total 0\n"));
	free(text);
}

static void a_dead_daemon_has_no_numbers(void **state)
{
	char *text = render(false, PEP_METRICS_FORMAT_PROMETHEUS);

	(void)state;
	assert_non_null(strstr(text, "\nedgepep_up 0\n"));
	assert_null(strstr(text, "edgepep_flows"));
	assert_non_null(strstr(text, "edgepep_monitor_requests_total 0\n"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_follow_the_rules),
		cmocka_unit_test(every_metric_is_there_once),
		cmocka_unit_test(values_are_written_exactly),
		cmocka_unit_test(openmetrics_differs_where_it_must),
		cmocka_unit_test(a_dead_daemon_has_no_numbers),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
