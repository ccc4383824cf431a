/* SPDX-License-Identifier: GPL-2.0-or-later */
/* edgepepctl flows history */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/units.h"
#include "ctl/flowlist.h"
#include "ctl/monitor.h"

#define FORMAT "%-8s %12s %12s %-12s %-12s %10s %10s %10s %10s %10s\n"

static const json_t *member(const json_t *history, const char *part, const char *column, size_t i)
{
	return json_array_get(json_object_get(json_object_get(history, part), column), i);
}

static const char *rate(const json_t *history, const char *direction, size_t i, char *text)
{
	double bytes = json_number_value(member(history, direction, "bytes_per_second", i));

	return bytes > 0 ? pep_units_format_rate(text, 8 * bytes) : "-";
}

static const char *limit(const json_t *history, const char *direction, size_t i)
{
	const char *name = json_string_value(member(history, direction, "limit", i));

	return name ? name : "-";
}

static const char *rtt(const json_t *history, const char *segment, size_t i, char *text)
{
	double seconds = json_number_value(member(history, segment, "rtt_seconds", i));

	return seconds > 0 ? pep_units_format_time(text, (uint64_t)(seconds * 1e6)) : "-";
}

static const char *held(const json_t *history, size_t i, char *text)
{
	double bytes = json_number_value(member(history, "downlink", "held_bytes", i)) +
		       json_number_value(member(history, "uplink", "held_bytes", i));

	return bytes > 0 ? pep_units_format_bytes(text, (uint64_t)bytes) : "-";
}

/* Bytes sent again since the line before. */
static const char *again(const json_t *history, const char *segment, size_t i, char *text)
{
	double now = json_number_value(member(history, segment, "retransmitted_bytes", i));
	double before =
		i ? json_number_value(member(history, segment, "retransmitted_bytes", i - 1)) : now;

	return now > before ? pep_units_format_bytes(text, (uint64_t)(now - before)) : "-";
}

static void print_line(const json_t *history, size_t i)
{
	time_t when =
		(time_t)json_number_value(json_array_get(json_object_get(history, "time"), i));
	char clock[16], text[7][PEP_UNITS_TEXT_SIZE];
	struct tm parts;

	if (!localtime_r(&when, &parts) || !strftime(clock, sizeof(clock), "%H:%M:%S", &parts))
		(void)snprintf(clock, sizeof(clock), "-");
	printf(FORMAT, clock, rate(history, "downlink", i, text[0]),
	       rate(history, "uplink", i, text[1]), limit(history, "downlink", i),
	       limit(history, "uplink", i), rtt(history, "wireless", i, text[2]),
	       rtt(history, "wired", i, text[3]), again(history, "wireless", i, text[4]),
	       again(history, "wired", i, text[5]), held(history, i, text[6]));
}

static void print_history(const json_t *history, size_t most)
{
	size_t n = json_array_size(json_object_get(history, "time"));

	printf(FORMAT, "TIME", "DOWN", "UP", "DOWN-LIMIT", "UP-LIMIT", "WL-RTT", "WD-RTT",
	       "WL-AGAIN", "WD-AGAIN", "HELD");
	for (size_t i = most && n > most ? n - most : 0; i < n; i++)
		print_line(history, i);
}

int flow_history(const struct ctl *ctl, const char *id, size_t most)
{
	json_t *flow, *history;
	char path[96];
	int code;

	(void)snprintf(path, sizeof(path), "/api/v1/flows/%s", id);
	code = ctl_ask_monitor(ctl, path, &flow);
	if (code)
		return code;
	history = json_object_get(flow, "history");
	if (ctl->json)
		return ctl_print_json(json_pack("{s:b, s:o}", "ok", 1, "flow", flow));
	if (json_is_object(history))
		print_history(history, most);
	else
		printf("no history yet: edgepep-mon keeps those of the fastest flows and of flows "
		       "that were asked for, which this one is from now on\n");
	json_decref(flow);
	return CTL_EXIT_OK;
}
