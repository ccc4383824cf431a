/* SPDX-License-Identifier: GPL-2.0-or-later */
/* edgepepctl probe: how fast is each segment alone, and both together. */
#include "ctl/probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "ctl/ask.h"

enum {
	OPTION_SERVER = CTL_OPTION_OWN,
	OPTION_CLIENT,
	OPTION_PORT,
	OPTION_TIME,
	OPTION_PARALLEL,
	OPTION_UPLINK,
	OPTION_CLIENT_EXEC,
	OPTION_DIRECT,
};

static const struct pep_usage_option options[] = {
	CTL_OPTIONS,
	{OPTION_SERVER, "server", "ADDRESS", "where 'iperf3 -s' runs behind the wired side"},
	{OPTION_CLIENT, "client", "ADDRESS", "where 'iperf3 -s' runs behind the wireless side"},
	{OPTION_CLIENT_EXEC, "client-exec", "COMMAND",
	 "runs a program on the client ('ssh ue1'): measures both\nsegments together, too"},
	{OPTION_DIRECT, "direct", NULL,
	 "with --client-exec: also without the proxy; all new\nconnections go end to end "
	 "meanwhile"},
	{OPTION_PORT, "port", "N", "port of iperf3, 5201 by default"},
	{OPTION_TIME, "time", "TIME", "length of each measurement, 10s by default"},
	{OPTION_PARALLEL, "parallel", "N", "connections of each measurement, 1 by default"},
	{OPTION_UPLINK, "uplink", NULL, "from the client to the server, not the other way"},
	{0}};

static const struct pep_usage usage = {
	"edgepepctl probe",
	"[OPTION...] --server=ADDRESS --client=ADDRESS",
	"Measures server to gateway, gateway to client, and server to client with iperf3.",
	options,
	NULL,
	false,
};

struct probe {
	const char *server, *client;
	char *client_exec; /* split in place */
	const char *prefix[PROBE_MAX_PREFIX];
	unsigned int port, seconds, parallel;
	bool uplink, direct;
};

/* One line of the report. */
struct measurement {
	const char *name, *from, *to;
	struct probe_result result;
};

/* ---- options ------------------------------------------------------------------------------------
 */

/* Goes to iperf3 as a word of its own, so only an option could do harm. */
static bool is_host(const char *text)
{
	return *text && *text != '-' &&
	       strspn(text, "0123456789abcdefghijklmnopqrstuvwxyz"
			    "ABCDEFGHIJKLMNOPQRSTUVWXYZ.:-_%") == strlen(text);
}

static bool parse_number(const char *text, uint64_t max, unsigned int *ret)
{
	uint64_t value;

	if (pep_units_parse_count(text, &value) || value < 1 || value > max)
		return false;
	*ret = (unsigned int)value;
	return true;
}

static bool split_words(char *text, const char *words[PROBE_MAX_PREFIX])
{
	size_t n = 0;

	for (char *w = strtok_r(text, " ", &text); w; w = strtok_r(NULL, " ", &text)) {
		if (n == PROBE_MAX_PREFIX - 1)
			return false;
		words[n++] = w;
	}
	return n > 0;
}

static int take_option(int option, struct probe *p)
{
	uint64_t ms;

	switch (option) {
	case OPTION_SERVER:
	case OPTION_CLIENT:
		*(option == OPTION_SERVER ? &p->server : &p->client) = optarg;
		return is_host(optarg) ? CTL_EXIT_OK
				       : pep_usage_error(&usage, "'%s' is no address", optarg);
	case OPTION_PORT:
		return parse_number(optarg, 65535, &p->port)
			       ? CTL_EXIT_OK
			       : pep_usage_error(&usage, "--port=%s is no port", optarg);
	case OPTION_PARALLEL:
		return parse_number(optarg, 128, &p->parallel)
			       ? CTL_EXIT_OK
			       : pep_usage_error(&usage, "--parallel=%s is not from 1 to 128",
						 optarg);
	case OPTION_TIME:
		if (pep_units_parse_time(optarg, &ms) || ms < 1000 || ms > 3600000)
			return pep_usage_error(&usage, "--time=%s is no time from 1s to 1h",
					       optarg);
		p->seconds = (unsigned int)(ms / 1000);
		return CTL_EXIT_OK;
	case OPTION_CLIENT_EXEC:
		p->client_exec = optarg;
		return split_words(optarg, p->prefix)
			       ? CTL_EXIT_OK
			       : pep_usage_error(&usage, "--client-exec: expected a command");
	case OPTION_DIRECT:
		p->direct = true;
		return CTL_EXIT_OK;
	default:
		p->uplink = true;
		return CTL_EXIT_OK;
	}
}

/* ---- measuring ----------------------------------------------------------------------------------
 */

/* Fills in @m; says where it failed, and what is likely missing there. */
static int measure(const struct ctl *ctl, const struct probe *p, const struct probe_task *task,
		   struct measurement *m)
{
	char error[PROBE_ERROR_SIZE];

	if (!ctl->json)
		fprintf(stderr, "measuring %s to %s (%s), %u s ...\n", m->from, m->to, m->name,
			p->seconds);
	if (probe_run(task, &m->result, error) == 0)
		return CTL_EXIT_OK;
	return ctl_fail(ctl, "%s to %s: %s (does 'iperf3 -s -p %u' run on %s?)", m->from, m->to,
			error, task->port, task->host);
}

static int measure_wired(const struct ctl *ctl, const struct probe *p, const struct pep_conf *conf,
			 struct measurement *m)
{
	const struct probe_task task = {
		.host = p->server,
		.port = p->port,
		.seconds = p->seconds,
		.parallel = p->parallel,
		.receive = !p->uplink,
		.control = p->uplink ? conf->leg[PEP_SEGMENT_WIRED].congestion_control : NULL,
	};

	*m = (struct measurement){.name = "wired",
				  .from = p->uplink ? "gateway" : "server",
				  .to = p->uplink ? "server" : "gateway"};
	return measure(ctl, p, &task, m);
}

static int measure_wireless(const struct ctl *ctl, const struct probe *p,
			    const struct pep_conf *conf, struct measurement *m)
{
	const struct probe_task task = {
		.host = p->client,
		.port = p->port,
		.seconds = p->seconds,
		.parallel = p->parallel,
		.receive = p->uplink,
		.control = p->uplink ? NULL : conf->leg[PEP_SEGMENT_WIRELESS].congestion_control,
	};

	*m = (struct measurement){.name = "wireless",
				  .from = p->uplink ? "client" : "gateway",
				  .to = p->uplink ? "gateway" : "client"};
	return measure(ctl, p, &task, m);
}

static int measure_both(const struct ctl *ctl, const struct probe *p, const char *name,
			struct measurement *m)
{
	struct probe_task task = {
		.host = p->server,
		.port = p->port,
		.seconds = p->seconds,
		.parallel = p->parallel,
		.receive = !p->uplink,
	};

	memcpy(task.prefix, p->prefix, sizeof(task.prefix));
	*m = (struct measurement){.name = name,
				  .from = p->uplink ? "client" : "server",
				  .to = p->uplink ? "server" : "client"};
	return measure(ctl, p, &task, m);
}

/* Without the proxy; it is on again afterwards, whatever happened. */
static int measure_direct(const struct ctl *ctl, const struct probe *p, struct measurement *m)
{
	json_t *reply;
	int code = ctl_ask(ctl, "bypass on", &reply);
	int after;

	if (code)
		return code;
	json_decref(reply);
	code = measure_both(ctl, p, "end to end", m);
	after = ctl_ask(ctl, "bypass off", &reply);
	if (!after)
		json_decref(reply);
	return code ? code : after;
}

/* ---- report -------------------------------------------------------------------------------------
 */

static json_t *measurement_json(const struct measurement *m)
{
	long long rtt_us = m->result.rtt_us;

	return json_pack("{s:s, s:s, s:s, s:f, s:I, s:o, s:s}", "name", m->name, "from", m->from,
			 "to", m->to, "bits_per_second", m->result.bits_per_second, "retransmits",
			 (json_int_t)m->result.retransmits, "rtt_us",
			 rtt_us ? json_integer(rtt_us) : json_null(), "congestion_control",
			 m->result.control);
}

static int report(const struct ctl *ctl, const struct measurement *m, size_t n)
{
	char rate[PEP_UNITS_TEXT_SIZE], rtt[PEP_UNITS_TEXT_SIZE];
	json_t *list;

	if (ctl->json) {
		list = json_array();
		for (size_t i = 0; i < n; i++)
			(void)json_array_append_new(list, measurement_json(&m[i]));
		return ctl_print_json(json_pack("{s:b, s:o}", "ok", 1, "measurements", list));
	}
	printf("%-12s%-10s%-10s%14s%12s%12s  %s\n", "SEGMENT", "FROM", "TO", "THROUGHPUT",
	       "SENT AGAIN", "RTT", "CONTROL OF SENDER");
	for (size_t i = 0; i < n; i++)
		printf("%-12s%-10s%-10s%14s%12lld%12s  %s\n", m[i].name, m[i].from, m[i].to,
		       pep_units_format_rate(rate, m[i].result.bits_per_second),
		       m[i].result.retransmits,
		       m[i].result.rtt_us ? pep_units_format_time(rtt, (uint64_t)m[i].result.rtt_us)
					  : "-",
		       *m[i].result.control ? m[i].result.control : "?");
	return CTL_EXIT_OK;
}

static int run(const struct ctl *ctl, const struct probe *p)
{
	struct measurement all[4];
	struct pep_conf *conf;
	size_t n = 0;
	int code = ctl_load_conf(ctl, &conf);

	if (code)
		return code;
	code = measure_wired(ctl, p, conf, &all[n++]);
	if (!code)
		code = measure_wireless(ctl, p, conf, &all[n++]);
	if (!code && p->client_exec)
		code = measure_both(ctl, p, "split", &all[n++]);
	if (!code && p->client_exec && p->direct)
		code = measure_direct(ctl, p, &all[n++]);
	pep_conf_free(conf);
	return code ? code : report(ctl, all, n);
}

int ctl_probe(struct ctl *ctl, int argc, char **argv)
{
	struct probe p = {.port = 5201, .seconds = 10, .parallel = 1};
	int option, code;

	while ((option = pep_usage_next(&usage, argc, argv)) != PEP_USAGE_END) {
		if (option >= CTL_OPTION_OWN) {
			code = take_option(option, &p);
			if (code)
				return code;
		} else if (ctl_option(ctl, option, &code)) {
			return code;
		}
	}
	if (argv[optind])
		return pep_usage_error(&usage, "'%s' is not understood", argv[optind]);
	if (!p.server || !p.client)
		return pep_usage_error(&usage, "--server and --client are needed");
	if (p.direct && !p.client_exec)
		return pep_usage_error(&usage, "--direct needs --client-exec");
	return run(ctl, &p);
}
