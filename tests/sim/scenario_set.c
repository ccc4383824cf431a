/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Invariant: a setting that is refused leaves the scenario as it was. */
#include "scenario.h"
#include "evq.h"

#include "base/units.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SPEC 256

static int set_time(uint64_t *field, const char *value, const char **ret_expected)
{
	*ret_expected = "a time such as 500us, 40ms or 30s";
	return scenario_parse_time(value, field);
}

static int set_share(double *field, const char *value, const char **ret_expected)
{
	*ret_expected = "a share such as 0.1%";
	return scenario_parse_share(value, field);
}

static int set_rate(uint64_t *field, const char *value, const char **ret_expected)
{
	uint64_t bps;

	*ret_expected = "a rate such as 20Mbit/s, at most 400Gbit/s";
	if (pep_units_parse_rate(value, &bps) < 0 || bps > 400000000000ull)
		return -EINVAL;
	*field = bps / 8;
	return 0;
}

static int set_size(uint64_t *field, const char *value, const char **ret_expected)
{
	*ret_expected = "a size such as 64KiB or 10MB";
	return pep_units_parse_size(value, field) < 0 ? -EINVAL : 0;
}

static int set_count(unsigned int *field, const char *value, unsigned int most,
		     const char **ret_expected)
{
	uint64_t v;

	*ret_expected = "a count from 1 up (256 flows, 1000 packets per ACK, 1000 seeds at most)";
	if (pep_units_parse_count(value, &v) < 0 || v < 1 || v > most)
		return -EINVAL;
	*field = (unsigned int)v;
	return 0;
}

static int set_buffer(struct scenario *s, const char *value, const char **ret_expected)
{
	char *end;
	double v = strtod(value, &end);
	uint64_t bytes = 0;

	*ret_expected = "a size such as 2bdp, 100p (packets) or 64KiB";
	if (*value < '0' || *value > '9' || v <= 0)
		return -EINVAL;
	if (strcmp(end, "bdp") == 0 && v <= 1000) {
		s->buffer_bdp = v;
		s->buffer_packets = 0;
	} else if (strcmp(end, "p") == 0 && v >= 1 && v <= 1e6) {
		s->buffer_packets = (uint32_t)v;
		s->buffer_bdp = 0;
	} else if (pep_units_parse_size(value, &bytes) == 0 && bytes >= SIM_WIRE_BYTES) {
		s->buffer_packets = 0;
	} else {
		return -EINVAL;
	}
	s->buffer_bytes = bytes;
	return 0;
}

/* START%,END%,LOSS% */
static int set_burst(struct scenario *s, const char *value, const char **ret_expected)
{
	char text[MAX_SPEC], *save = NULL, *word;
	double v[3];
	int n = 0;

	*ret_expected = "three shares START%,END%,LOSS% such as 0.1%,25%,100%";
	if (strlen(value) >= sizeof(text))
		return -EINVAL;
	strcpy(text, value);
	for (word = strtok_r(text, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		if (n == 3 || scenario_parse_share(word, &v[n++]) < 0)
			return -EINVAL;
	}
	if (n != 3)
		return -EINVAL;
	s->burst_start = v[0];
	s->burst_end = v[1];
	s->burst_loss = v[2];
	return 0;
}

/* TIME:RATE */
static int add_step(struct scenario *s, const char *value, const char **ret_expected)
{
	struct sim_step step;
	char time[32];
	const char *colon = strchr(value, ':'), *unused;

	*ret_expected =
		"TIME:RATE such as 7s:500Mbit/s, each later than the one before, 63 at most";
	if (!colon || (size_t)(colon - value) >= sizeof(time) ||
	    s->n_steps + 1 >= SIM_LINK_MAX_STEPS)
		return -EINVAL;
	memcpy(time, value, (size_t)(colon - value));
	time[colon - value] = '\0';
	if (scenario_parse_time(time, &step.at_ns) < 0 ||
	    set_rate(&step.rate, colon + 1, &unused) < 0)
		return -EINVAL;
	if (!step.at_ns || (s->n_steps && step.at_ns <= s->steps[s->n_steps - 1].at_ns))
		return -EINVAL;
	s->steps[s->n_steps++] = step;
	return 0;
}

static int set_ccas(struct scenario *s, const char *value, const char **ret_expected)
{
	const struct sim_cca *list[SCENARIO_MAX_CCAS];
	char text[MAX_SPEC], *save = NULL, *word;
	unsigned int n = 0;

	*ret_expected = "names of controls, ',' between; see --list-controls";
	if (strlen(value) >= sizeof(text))
		return -EINVAL;
	strcpy(text, value);
	for (word = strtok_r(text, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		if (n == SCENARIO_MAX_CCAS)
			return -EINVAL;
		list[n] = sim_cca_find(word);
		if (!list[n++])
			return -EINVAL;
	}
	if (!n)
		return -EINVAL;
	memcpy(s->ccas, list, n * sizeof(list[0]));
	s->n_ccas = n;
	return 0;
}

/* CCA.KEY=VALUE; whether they exist is checked at the end, when all are known. */
static int add_param(struct scenario *s, const char *value, const char **ret_expected)
{
	struct scenario_param p;

	*ret_expected = "CONTROL.KEY=VALUE such as pep_bbr_a.cut-gain=128";
	if (s->n_params == SCENARIO_MAX_PARAMS)
		return -EINVAL;
	if (sscanf(value, "%15[^.].%31[^=]=%31s", p.cca, p.key, p.value) != 3)
		return -EINVAL;
	s->params[s->n_params++] = p;
	return 0;
}

static int set_group_key(struct scenario_group *g, const char *key, const char *value)
{
	const char *unused;

	if (!strcmp(key, "cca"))
		return (g->cca = sim_cca_find(value)) ? 0 : -EINVAL;
	if (!strcmp(key, "count"))
		return set_count(&g->count, value, SIM_MAX_FLOWS, &unused);
	if (!strcmp(key, "rtt"))
		return set_time(&g->rtt_ns, value, &unused);
	if (!strcmp(key, "start"))
		return set_time(&g->start_ns, value, &unused);
	if (!strcmp(key, "stop"))
		return set_time(&g->stop_ns, value, &unused);
	if (!strcmp(key, "bytes"))
		return set_size(&g->bytes, value, &unused);
	if (!strcmp(key, "app-rate"))
		return set_rate(&g->app_rate, value, &unused);
	if (!strcmp(key, "app-chunk"))
		return set_size(&g->app_chunk, value, &unused);
	return -EINVAL;
}

static int add_group(struct scenario *s, const char *value, const char **ret_expected)
{
	struct scenario_group g = {.count = 1, .stop_ns = SIM_NEVER};
	char text[MAX_SPEC], *save = NULL, *word;

	*ret_expected = "KEY=VALUE,... with keys cca count rtt start stop bytes app-rate app-chunk";
	if (s->n_groups == SCENARIO_MAX_GROUPS || strlen(value) >= sizeof(text))
		return -EINVAL;
	strcpy(text, value);
	for (word = strtok_r(text, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		char *equals = strchr(word, '=');

		if (!equals)
			return -EINVAL;
		*equals = '\0';
		if (set_group_key(&g, word, equals + 1) < 0)
			return -EINVAL;
	}
	s->groups[s->n_groups++] = g;
	return 0;
}

static int set_trace(struct scenario *s, const char *value, FILE *errors)
{
	struct sim_trace trace;
	int r = sim_trace_load(value, errors, &trace);

	if (r < 0)
		return r; /* it has said why */
	sim_trace_fini(&s->trace);
	s->trace = trace;
	return 0;
}

static int set_path(struct scenario *s, const char *name, const char *value, const char **expected)
{
	if (!strcmp(name, "rate"))
		return set_rate(&s->rate, value, expected);
	if (!strcmp(name, "rate-at"))
		return add_step(s, value, expected);
	if (!strcmp(name, "rtt"))
		return set_time(&s->rtt_ns, value, expected);
	if (!strcmp(name, "buffer"))
		return set_buffer(s, value, expected);
	if (!strcmp(name, "bdp-rtt"))
		return set_time(&s->bdp_rtt_ns, value, expected);
	if (!strcmp(name, "loss"))
		return set_share(&s->loss, value, expected);
	if (!strcmp(name, "burst"))
		return set_burst(s, value, expected);
	if (!strcmp(name, "jitter"))
		return set_time(&s->jitter_ns, value, expected);
	if (!strcmp(name, "ack-jitter"))
		return set_time(&s->ack_jitter_ns, value, expected);
	return -ENOENT;
}

static int set_flows(struct scenario *s, const char *name, const char *value, const char **expected)
{
	if (!strcmp(name, "cca"))
		return set_ccas(s, value, expected);
	if (!strcmp(name, "param"))
		return add_param(s, value, expected);
	if (!strcmp(name, "flows"))
		return set_count(&s->n_flows, value, SIM_MAX_FLOWS, expected);
	if (!strcmp(name, "flow"))
		return add_group(s, value, expected);
	if (!strcmp(name, "stagger"))
		return set_time(&s->stagger_ns, value, expected);
	if (!strcmp(name, "ack-every"))
		return set_count(&s->ack_every, value, 1000, expected);
	if (!strcmp(name, "ack-delay"))
		return set_time(&s->ack_delay_ns, value, expected);
	return -ENOENT;
}

static int set_run(struct scenario *s, const char *name, const char *value, const char **expected)
{
	if (!strcmp(name, "time"))
		return set_time(&s->duration_ns, value, expected);
	if (!strcmp(name, "warmup"))
		return set_time(&s->warmup_ns, value, expected);
	if (!strcmp(name, "series"))
		return set_time(&s->series_ns, value, expected);
	if (!strcmp(name, "seeds"))
		return set_count(&s->n_seeds, value, 1000, expected);
	if (!strcmp(name, "seed")) {
		*expected = "a whole number";
		return pep_units_parse_count(value, &s->seed) < 0 ? -EINVAL : 0;
	}
	return -ENOENT;
}

int scenario_set(struct scenario *s, const char *name, const char *value, FILE *errors)
{
	const char *expected = "";
	int r;

	if (!strcmp(name, "trace"))
		return set_trace(s, value, errors);
	r = set_path(s, name, value, &expected);
	if (r == -ENOENT)
		r = set_flows(s, name, value, &expected);
	if (r == -ENOENT)
		r = set_run(s, name, value, &expected);
	if (r == -ENOENT)
		fprintf(errors, "there is no setting '%.40s'\n", name);
	else if (r < 0)
		fprintf(errors, "%s: '%.80s' is wrong; expected %s\n", name, value, expected);
	return r;
}
