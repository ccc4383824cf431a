/* SPDX-License-Identifier: GPL-2.0-or-later */
/* edgepepctl status: the daemon's own words; unknown members are simply not printed. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "ctl/ask.h"

static const struct pep_usage_option options[] = {CTL_OPTIONS, {0}};

static const struct pep_usage usage = {
	"edgepepctl status",
	"[OPTION...]",
	"Shows what the daemon does and has done since its start.",
	options,
	NULL,
	false,
};

static const char *text(const json_t *object, const char *key)
{
	const char *value = json_string_value(json_object_get(object, key));

	return value ? value : "?";
}

static json_int_t number(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

/* " (policy 5, mptcp 2)": the members that are not zero; @ret_sum gets all together. */
static void print_reasons(const json_t *reasons)
{
	const char *name, *before = " (";
	json_t *value;

	json_object_foreach((json_t *)reasons, name, value)
	{
		if (json_integer_value(value) == 0)
			continue;
		printf("%s%s %lld", before, name, (long long)json_integer_value(value));
		before = ", ";
	}
	if (strcmp(before, ", ") == 0)
		printf(")");
}

static long long sum(const json_t *reasons)
{
	const char *name;
	json_t *value;
	long long all = 0;

	json_object_foreach((json_t *)reasons, name, value) all += json_integer_value(value);
	return all;
}

static void print_leg(const json_t *status, const char *segment, const char *interfaces)
{
	const json_t *cca = json_object_get(json_object_get(status, "congestion_control"), segment);
	const char *in_use = text(cca, "in_use");
	json_t *name;
	size_t i;

	printf("%-10s", segment);
	json_array_foreach(json_object_get(status, interfaces), i, name)
		printf("%s%s", i ? ", " : "", json_string_value(name));
	printf("; congestion control %s", *in_use ? in_use : "of the host");
	if (json_is_true(json_object_get(cca, "fallback")))
		printf(" (%s is not to be had: see 'edgepepctl doctor')", text(cca, "configured"));
	printf("\n");
}

static void print_counts(const json_t *counters)
{
	static const struct {
		const char *key, *title, *more;
	} groups[] = {
		{"bypassed", "bypassed", "went end to end"},
		{"refused", "refused", "were reset by us"},
		{"closed", "closed", "flows"},
		{"connect_failures", "failed", "wired connects"},
	};
	static const char *const troubles[] = {
		"source_port_fallbacks", "accept_orphans", "accept_failures", "option_failures",
		"gate_errors",           "gate_overruns",  "relay_cap_hits",  "pipe_failures",
	};

	printf("%-10s%lld, %lld of them again; %lld flows split\n", "SYNs",
	       (long long)number(counters, "syns"),
	       (long long)number(counters, "syn_retransmissions"),
	       (long long)number(counters, "split"));
	for (size_t i = 0; i < sizeof(groups) / sizeof(*groups); i++) {
		const json_t *reasons = json_object_get(counters, groups[i].key);

		if (sum(reasons) == 0)
			continue;
		printf("%-10s%lld %s", groups[i].title, sum(reasons), groups[i].more);
		print_reasons(reasons);
		printf("\n");
	}
	for (size_t i = 0; i < sizeof(troubles) / sizeof(*troubles); i++)
		if (number(counters, troubles[i]))
			printf("%-10s%s %lld\n", "trouble", troubles[i],
			       (long long)number(counters, troubles[i]));
}

static void print_status(const json_t *status)
{
	char up[PEP_UNITS_TEXT_SIZE], held[PEP_UNITS_TEXT_SIZE], limit[PEP_UNITS_TEXT_SIZE];
	double seconds = json_real_value(json_object_get(status, "uptime_seconds"));

	printf("edgepepd %s: %s, pid %lld, up %s, %lld workers\n", text(status, "version"),
	       text(status, "state"), (long long)number(status, "pid"),
	       pep_units_format_time(up, (uint64_t)(seconds * 1e6)),
	       (long long)number(status, "workers"));
	printf("%-10s%s, generation %lld; accept %s, source %s\n", "config",
	       text(status, "config_file"), (long long)number(status, "config_generation"),
	       text(status, "accept"), text(status, "source"));
	print_leg(status, "wireless", "wireless_interfaces");
	print_leg(status, "wired", "wired_interfaces");
	printf("%-10s%lld of at most %lld, and %lld being opened\n", "flows",
	       (long long)number(status, "flows"), (long long)number(status, "flows_limit"),
	       (long long)number(status, "pending"));
	printf("%-10s%s between the legs, of at most %s\n", "held",
	       pep_units_format_bytes(held, (uint64_t)number(status, "held_bytes")),
	       pep_units_format_bytes(limit, (uint64_t)number(status, "memory_limit_bytes")));
	print_counts(json_object_get(status, "counters"));
}

int ctl_status(struct ctl *ctl, int argc, char **argv)
{
	json_t *status;
	int code;

	if (ctl_options(ctl, &usage, argc, argv, &code))
		return code;
	if (argv[optind])
		return pep_usage_error(&usage, "'%s' is not understood", argv[optind]);
	code = ctl_ask(ctl, "status", &status);
	if (code)
		return code;
	if (ctl->json)
		return ctl_print_json(status);
	print_status(status);
	json_decref(status);
	return CTL_EXIT_OK;
}
