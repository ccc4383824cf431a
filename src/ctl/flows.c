/* SPDX-License-Identifier: GPL-2.0-or-later */
/* edgepepctl flows, flows show, flows history, flows kill */
#include "ctl/flowlist.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/stats_json.h"
#include "base/units.h"
#include "ctl/ask.h"
#include "ctl/segment.h"

#define DEFAULT_LIMIT 50

enum {
	OPTION_SORT = CTL_OPTION_OWN,
	OPTION_CLIENT,
	OPTION_LIMIT,
	OPTION_CLOSED,
};

static const struct pep_usage_option options[] = {
	CTL_OPTIONS,
	{OPTION_SORT, "sort", "KEY", "rate (default), bytes, age, held, rtt or retrans"},
	{OPTION_CLIENT, "client", "ADDRESS[/BITS]", "only flows of these clients"},
	{OPTION_LIMIT, "limit", "N",
	 "at most N flows (or seconds of a history), 50 by default; 0 shows all"},
	{OPTION_CLOSED, "closed", NULL, "recently closed flows in place of open ones"},
	{0}};

static const struct pep_usage usage = {
	"edgepepctl flows",
	"[OPTION...] [show ID | history ID | kill ID]",
	"Lists flows with both their legs; shows one in full (show), or second by second as "
	"edgepep-mon has seen it (history); ends one with a reset (kill).",
	options,
	NULL,
	false,
};

static int parse_client(const char *text, struct pep_prefix *ret)
{
	char address[INET6_ADDRSTRLEN + 1];
	size_t len = strcspn(text, "/");
	struct in_addr v4;
	uint64_t bits = 128, offset = 0;

	if (len >= sizeof(address))
		return -EINVAL;
	memcpy(address, text, len);
	address[len] = '\0';
	memset(ret, 0, sizeof(*ret));
	if (inet_pton(AF_INET, address, &v4) == 1) {
		ret->addr.s6_addr[10] = ret->addr.s6_addr[11] = 0xff;
		memcpy(&ret->addr.s6_addr[12], &v4, sizeof(v4));
		offset = 96;
	} else if (inet_pton(AF_INET6, address, &ret->addr) != 1) {
		return -EINVAL;
	}
	if (text[len] == '/') {
		if (pep_units_parse_count(text + len + 1, &bits) || bits > 128 - offset)
			return -EINVAL;
		bits += offset;
	}
	ret->bits = (uint8_t)bits;
	return 0;
}

static int parse_option(int option, struct flow_pick *pick)
{
	uint64_t limit;

	switch (option) {
	case OPTION_SORT:
		if (flow_sort_parse(optarg, &pick->sort))
			return pep_usage_error(
				&usage,
				"--sort=%s: expected rate, bytes, age, held, rtt or retrans",
				optarg);
		return CTL_EXIT_OK;
	case OPTION_CLIENT:
		if (parse_client(optarg, &pick->client))
			return pep_usage_error(&usage, "--client=%s is no address or prefix",
					       optarg);
		return CTL_EXIT_OK;
	case OPTION_LIMIT:
		if (pep_units_parse_count(optarg, &limit) || limit > 1000000)
			return pep_usage_error(&usage, "--limit=%s is no number up to 1000000",
					       optarg);
		pick->limit = (size_t)limit;
		return CTL_EXIT_OK;
	default:
		pick->closed = true;
		return CTL_EXIT_OK;
	}
}

static int print_list_json(const struct segment *segment, const struct flow_list *list)
{
	json_t *flows = json_array();

	for (size_t i = 0; i < list->n; i++)
		(void)json_array_append_new(
			flows,
			pep_stats_flow_json(&list->flows[i], &segment->info, segment->now_real_ns));
	return ctl_print_json(json_pack("{s:b, s:I, s:I, s:o}", "ok", 1, "matched",
					(json_int_t)list->matched, "skipped",
					(json_int_t)list->skipped, "flows", flows));
}

static void print_list(const struct segment *segment, const struct flow_list *list)
{
	char line[512];

	flow_line(NULL, 0, FLOW_ALL_COLUMNS, line, sizeof(line));
	printf("%s\n", line);
	for (size_t i = 0; i < list->n; i++) {
		flow_line(&list->flows[i], segment->now_real_ns, FLOW_ALL_COLUMNS, line,
			  sizeof(line));
		printf("%s\n", line);
	}
	if (list->n < list->matched)
		printf("%zu more; --limit shows them\n", list->matched - list->n);
}

static int run_list(const struct ctl *ctl, const struct flow_pick *pick)
{
	struct segment segment;
	struct flow_list list;
	int code = segment_open(ctl, &segment);

	if (code)
		return code;
	if (flow_list_read(segment.reader, pick, &list)) {
		code = ctl_fail(ctl, "out of memory");
	} else {
		if (ctl->json)
			code = print_list_json(&segment, &list);
		else
			print_list(&segment, &list);
		flow_list_fini(&list);
	}
	segment_close(&segment);
	return code;
}

static void print_flow(const json_t *flow)
{
	segment_print_values(flow);
	printf("\n%-20s %-20s %s\n", "", "DOWNLINK", "UPLINK");
	segment_print_pair(json_object_get(flow, "downlink"), json_object_get(flow, "uplink"));
	printf("\n%-20s %-20s %s\n", "", "WIRELESS", "WIRED");
	segment_print_pair(json_object_get(flow, "wireless"), json_object_get(flow, "wired"));
}

static int run_show(const struct ctl *ctl, uint64_t id, const char *text)
{
	struct pep_stats_flow flow;
	struct segment segment;
	json_t *object;
	int code = segment_open(ctl, &segment);

	if (code)
		return code;
	if (pep_stats_read_flow(segment.reader, id, &flow)) {
		code = ctl_fail(ctl, "there is no flow %s, open or recently closed", text);
	} else {
		object = pep_stats_flow_json(&flow, &segment.info, segment.now_real_ns);
		if (ctl->json) {
			code = ctl_print_json(json_pack("{s:b, s:o}", "ok", 1, "flow", object));
		} else {
			print_flow(object);
			json_decref(object);
		}
	}
	segment_close(&segment);
	return code;
}

static int run_kill(const struct ctl *ctl, const char *id)
{
	char request[64];
	json_t *reply;
	int code;

	(void)snprintf(request, sizeof(request), "flows kill %s", id);
	code = ctl_ask(ctl, request, &reply);
	if (code)
		return code;
	if (ctl->json)
		return ctl_print_json(reply);
	json_decref(reply);
	printf("flow %s was reset\n", id);
	return CTL_EXIT_OK;
}

int ctl_flows(struct ctl *ctl, int argc, char **argv)
{
	struct flow_pick pick = {.limit = DEFAULT_LIMIT};
	const char *verb, *id;
	uint64_t number;
	int option, code;

	while ((option = pep_usage_next(&usage, argc, argv)) != PEP_USAGE_END) {
		if (option >= CTL_OPTION_OWN) {
			code = parse_option(option, &pick);
			if (code)
				return code;
		} else if (ctl_option(ctl, option, &code)) {
			return code;
		}
	}
	verb = argv[optind];
	if (!verb)
		return run_list(ctl, &pick);
	if (strcmp(verb, "show") != 0 && strcmp(verb, "history") != 0 && strcmp(verb, "kill") != 0)
		return pep_usage_error(&usage, "expected show, history or kill, not '%s'", verb);
	id = argv[optind + 1];
	if (!id || argv[optind + 2] || pep_stats_flow_id_parse(id, &number))
		return pep_usage_error(&usage, "%s takes one flow's ID, as the list prints it",
				       verb);
	if (strcmp(verb, "history") == 0)
		return flow_history(ctl, id, pick.limit);
	return strcmp(verb, "show") == 0 ? run_show(ctl, number, id) : run_kill(ctl, id);
}
