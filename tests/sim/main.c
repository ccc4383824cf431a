/* SPDX-License-Identifier: GPL-2.0-or-later */
/* edgepep-sim: runs one scenario for each control and seed asked for. */
#include "report.h"

#include "base/usage.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum option_id {
	OPTION_LIST_PRESETS = PEP_USAGE_LONG,
	OPTION_LIST_CONTROLS,
	OPTION_JSON,
	OPTION_CSV,
	OPTION_SETTING, /* this and all above are settings of the scenario */
};

static const struct pep_usage_option options[] = {
	{'p', "preset", "NAME", "start from a named scenario"},
	{OPTION_LIST_PRESETS, "list-presets", NULL, "print the named scenarios and end"},
	{OPTION_LIST_CONTROLS, "list-controls", NULL,
	 "print the congestion controls, their parameters and end"},
	{OPTION_JSON, "json", NULL, "print all runs and their medians as JSON"},
	{OPTION_CSV, "csv", NULL, "print one line per run"},
	{OPTION_SETTING + 0, "rate", "RATE", "rate of the bottleneck (20Mbit/s)"},
	{OPTION_SETTING + 1, "rate-at", "TIME:RATE", "change the rate at TIME; may be repeated"},
	{OPTION_SETTING + 2, "trace", "FILE",
	 "capacity trace in Mahimahi's format in place of a rate"},
	{OPTION_SETTING + 3, "rtt", "TIME", "round-trip time without queue (40ms)"},
	{OPTION_SETTING + 4, "buffer", "SIZE",
	 "room for waiting packets: 2bdp, 100p or 64KiB (1bdp)"},
	{OPTION_SETTING + 5, "bdp-rtt", "TIME", "the RTT in a BDP (mean of the flows)"},
	{OPTION_SETTING + 6, "loss", "SHARE", "random loss behind the queue, such as 1%"},
	{OPTION_SETTING + 7, "burst", "START,END,LOSS",
	 "burst loss (Gilbert-Elliott): chance per packet to start and to\n"
	 "end a bad time, loss in it, such as 0.1%,25%,100%"},
	{OPTION_SETTING + 8, "jitter", "TIME", "up to TIME more delay per packet, order kept"},
	{OPTION_SETTING + 9, "ack-jitter", "TIME", "the same for ACKs"},
	{OPTION_SETTING + 10, "cca", "NAME,...",
	 "congestion controls to run, one after the other (all)"},
	{OPTION_SETTING + 11, "param", "CCA.KEY=VALUE",
	 "set a control's parameter; may be repeated"},
	{OPTION_SETTING + 12, "flows", "N", "number of flows (1)"},
	{OPTION_SETTING + 13, "flow", "KEY=VALUE,...",
	 "a group of flows, in place of --flows; may be repeated. Keys:\n"
	 "cca count rtt start stop bytes app-rate app-chunk"},
	{OPTION_SETTING + 14, "stagger", "TIME", "flows start at random within TIME (100ms)"},
	{OPTION_SETTING + 15, "ack-every", "N", "packets per ACK (1)"},
	{OPTION_SETTING + 16, "ack-delay", "TIME", "longest delay of such an ACK (40ms)"},
	{OPTION_SETTING + 17, "time", "TIME", "length of a run (30s)"},
	{OPTION_SETTING + 18, "warmup", "TIME", "results count from here on (5s)"},
	{OPTION_SETTING + 19, "seed", "N", "first seed (1)"},
	{OPTION_SETTING + 20, "seeds", "N", "number of runs with seeds following each other (1)"},
	{OPTION_SETTING + 21, "series", "TIME", "with --json: rates and windows every TIME"},
	{0},
};

static const struct pep_usage usage = {
	"edgepep-sim",
	"[OPTION...]",
	"Simulates congestion controls over one bottleneck, packet by packet.",
	options,
	"The controls pep_* are the code that runs in the kernel; cubic and reno are models of\n"
	"Linux'. The same options and seed give the same output, byte for byte.\n",
	false,
};

static void list_controls(FILE *out)
{
	const struct sim_cca *cca;

	for (size_t i = 0; (cca = sim_cca_get(i)); i++) {
		fprintf(out, "%-14s %s\n", cca->name, cca->help);
		if (cca->print_params)
			cca->print_params(out);
	}
}

static const char *setting_name(int id)
{
	for (const struct pep_usage_option *o = options; o->id; o++) {
		if (o->id == id)
			return o->name;
	}
	abort();
}

/* One option. Returns 0 to go on, 1 when all is done, or a negative errno. */
static int take_option(int id, struct scenario *s, enum report_format *format, FILE *errors)
{
	switch (id) {
	case PEP_USAGE_DONE:
		return 1;
	case PEP_USAGE_ERROR:
		return -EINVAL;
	case OPTION_LIST_PRESETS:
		scenario_print_presets(stdout);
		return 1;
	case OPTION_LIST_CONTROLS:
		list_controls(stdout);
		return 1;
	case OPTION_JSON:
		*format = REPORT_FORMAT_JSON;
		return 0;
	case OPTION_CSV:
		*format = REPORT_FORMAT_CSV;
		return 0;
	case 'p':
		return scenario_preset(s, optarg, errors);
	default:
		return scenario_set(s, setting_name(id), optarg, errors);
	}
}

static int take_options(int argc, char **argv, struct scenario *s, enum report_format *format,
			FILE *errors)
{
	int id, r;

	while ((id = pep_usage_next(&usage, argc, argv)) != PEP_USAGE_END) {
		r = take_option(id, s, format, errors);
		if (r)
			return r;
	}
	if (optind < argc) {
		pep_usage_error(&usage, "unexpected word '%s'", argv[optind]);
		return -EINVAL;
	}
	return scenario_check(s, errors);
}

/* The same; messages get the program's name. */
static int read_options(int argc, char **argv, struct scenario *s, enum report_format *format)
{
	char *text = NULL;
	size_t size;
	FILE *errors = open_memstream(&text, &size);
	int r = -ENOMEM;

	if (errors) {
		r = take_options(argc, argv, s, format, errors);
		if (fclose(errors) == 0 && r < 0 && size)
			fprintf(stderr, "%s: %s", usage.program, text);
	}
	free(text);
	return r;
}

static int run_one(const struct scenario *s, const struct sim_cca *cca, uint64_t seed,
		   struct report *report)
{
	static struct scenario_run run;
	struct sim_world *world = NULL;
	struct sim_result result;
	int r = scenario_run_init(&run, s, cca, seed);

	if (r < 0)
		return r;
	r = sim_world_new(&run.conf, &world);
	if (r == 0)
		r = sim_world_run(world, &result);
	if (r == 0)
		r = report_add(report, cca->name, seed, &result, world);
	sim_world_free(world);
	scenario_run_fini(&run);
	return r;
}

static int run_all(const struct scenario *s, enum report_format format)
{
	const struct sim_cca *cca;
	struct report *report;
	int r = report_new(format, stdout, &report);

	if (r < 0)
		return r;
	for (size_t i = 0; r == 0; i++) {
		cca = s->n_ccas ? (i < s->n_ccas ? s->ccas[i] : NULL) : sim_cca_get(i);
		if (!cca)
			break;
		if (!s->n_ccas && !strcmp(cca->name, "fixed"))
			continue; /* not a control one would compare */
		for (unsigned int k = 0; k < s->n_seeds && r == 0; k++)
			r = run_one(s, cca, s->seed + k, report);
	}
	if (report_finish(report) < 0)
		r = -ENOMEM;
	return r;
}

int main(int argc, char **argv)
{
	static struct scenario scenario;
	enum report_format format = REPORT_FORMAT_TABLE;
	int r;

	scenario_init(&scenario);
	r = read_options(argc, argv, &scenario, &format);
	if (r == 0) {
		r = run_all(&scenario, format);
		if (r < 0)
			fprintf(stderr, "edgepep-sim: the simulation failed: %s\n", strerror(-r));
		r = r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
	} else {
		r = r < 0 ? PEP_EXIT_USAGE : EXIT_SUCCESS;
	}
	scenario_fini(&scenario);
	if (fflush(stdout) == EOF)
		r = EXIT_FAILURE;
	return r;
}
