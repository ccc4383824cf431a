/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Invariant: each number printed comes from FIELDS, so that the three formats cannot differ. */
#include "report.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define FIELDS(F)                                          \
	F(goodput_mbps, r->goodput_bps / 1e6, "Mbit/s", 2) \
	F(utilisation, r->utilisation, "", 4)              \
	F(retrans_percent, r->retrans_share * 100, "%", 4) \
	F(drop_percent, r->drop_share * 100, "%", 4)       \
	F(loss_percent, r->loss_share * 100, "%", 4)       \
	F(jain, r->jain, "", 4)                            \
	F(queue_mean_ms, r->queue_mean_ms, "ms", 3)        \
	F(queue_p50_ms, r->queue_p50_ms, "ms", 3)          \
	F(queue_p95_ms, r->queue_p95_ms, "ms", 3)          \
	F(queue_p99_ms, r->queue_p99_ms, "ms", 3)          \
	F(rtos, (double)r->rtos, "", 0)

enum field {
#define F(name, value, unit, digits) FIELD_##name,
	FIELDS(F)
#undef F
	FIELD_COUNT_,
};

static const struct {
	const char *name, *unit;
	int digits;
} fields[] = {
#define F(name, value, unit, digits) {#name, unit, digits},
	FIELDS(F)
#undef F
};

/** All runs of one control. */
struct series {
	char cca[16];
	double *value[FIELD_COUNT_]; /* one list of n per field */
	size_t n;
};

struct report {
	enum report_format format;
	FILE *out;
	json_t *runs;
	struct series *series;
	size_t n_series;
	bool started;
};

int report_new(enum report_format format, FILE *out, struct report **ret)
{
	struct report *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->format = format;
	r->out = out;
	r->runs = json_array();
	if (!r->runs) {
		free(r);
		return -ENOMEM;
	}
	*ret = r;
	return 0;
}

static void values_of(const struct sim_result *r, double v[FIELD_COUNT_])
{
#define F(name, value, unit, digits) v[FIELD_##name] = (value);
	FIELDS(F)
#undef F
}

static struct series *find_series(struct report *r, const char *cca)
{
	struct series *list;

	if (r->n_series && !strcmp(r->series[r->n_series - 1].cca, cca))
		return &r->series[r->n_series - 1];
	list = reallocarray(r->series, r->n_series + 1, sizeof(*list));
	if (!list)
		return NULL;
	r->series = list;
	list += r->n_series++;
	*list = (struct series){0};
	strncpy(list->cca, cca, sizeof(list->cca) - 1);
	return list;
}

static int remember(struct report *r, const char *cca, const double v[FIELD_COUNT_])
{
	struct series *s = find_series(r, cca);

	if (!s)
		return -ENOMEM;
	for (int i = 0; i < FIELD_COUNT_; i++) {
		double *list = reallocarray(s->value[i], s->n + 1, sizeof(*list));

		if (!list)
			return -ENOMEM;
		list[s->n] = v[i];
		s->value[i] = list;
	}
	s->n++;
	return 0;
}

/* What the control believed at the end. */
static json_t *control_json(const struct sim_tcp *tp)
{
	char *text = NULL;
	size_t size;
	json_t *o = NULL;
	FILE *f = tp && tp->cca->describe ? open_memstream(&text, &size) : NULL;

	if (!f)
		return NULL;
	tp->cca->describe(tp, f);
	if (fclose(f) == 0)
		o = json_string(text);
	free(text);
	return o;
}

static json_t *flow_json(const struct sim_flow_result *f, const struct sim_tcp *tp)
{
	json_t *o = json_pack("{s:f, s:f, s:f, s:I, s:I, s:I, s:I, s:I}", "goodput_mbps",
			      f->goodput_bps / 1e6, "retrans_percent", f->retrans_share * 100,
			      "rtt_ms", f->rtt_ms, "sent", (json_int_t)f->sent, "retransmitted",
			      (json_int_t)f->retransmitted, "recoveries", (json_int_t)f->recoveries,
			      "rtos", (json_int_t)f->rtos, "undos", (json_int_t)f->undos);

	json_t *control = control_json(tp);

	if (o && control)
		json_object_set_new(o, "control", control);
	if (o && f->finished_s >= 0)
		json_object_set_new(o, "finished_s", json_real(f->finished_s));
	return o;
}

static json_t *samples_json(const struct sim_world *world, unsigned int n_flows)
{
	const struct sim_sample *s;
	json_t *list = json_array();

	for (size_t i = 0; (s = sim_world_sample(world, i)); i++) {
		json_t *flows = json_array();

		for (unsigned int k = 0; k < n_flows; k++)
			json_array_append_new(flows,
					      json_pack("{s:f, s:i, s:i, s:f}", "goodput_mbps",
							s->flows[k].goodput_bps / 1e6, "cwnd",
							(int)s->flows[k].cwnd, "srtt_us",
							(int)s->flows[k].srtt_us, "pacing_mbps",
							(double)s->flows[k].pacing_bps / 1e6));
		json_array_append_new(list, json_pack("{s:f, s:f, s:o}", "at_s", s->at_s,
						      "queue_ms", s->queue_ms, "flows", flows));
	}
	return list;
}

static int add_json(struct report *r, const char *cca, uint64_t seed, const double v[FIELD_COUNT_],
		    const struct sim_result *result, const struct sim_world *world)
{
	json_t *o = json_pack("{s:s, s:I}", "cca", cca, "seed", (json_int_t)seed);
	json_t *flows = json_array();

	for (int i = 0; i < FIELD_COUNT_; i++)
		json_object_set_new(o, fields[i].name, json_real(v[i]));
	for (unsigned int i = 0; i < result->n_flows; i++)
		json_array_append_new(flows, flow_json(&result->flows[i], sim_world_tcp(world, i)));
	json_object_set_new(o, "flows", flows);
	if (sim_world_sample(world, 0))
		json_object_set_new(o, "series", samples_json(world, result->n_flows));
	return json_array_append_new(r->runs, o) < 0 ? -ENOMEM : 0;
}

static void add_csv(struct report *r, const char *cca, uint64_t seed, const double v[FIELD_COUNT_])
{
	if (!r->started) {
		fprintf(r->out, "cca,seed");
		for (int i = 0; i < FIELD_COUNT_; i++)
			fprintf(r->out, ",%s", fields[i].name);
		fputc('\n', r->out);
		r->started = true;
	}
	fprintf(r->out, "%s,%llu", cca, (unsigned long long)seed);
	for (int i = 0; i < FIELD_COUNT_; i++)
		fprintf(r->out, ",%.*f", fields[i].digits, v[i]);
	fputc('\n', r->out);
}

int report_add(struct report *r, const char *cca, uint64_t seed, const struct sim_result *result,
	       const struct sim_world *world)
{
	double v[FIELD_COUNT_];

	values_of(result, v);
	if (r->format == REPORT_FORMAT_CSV)
		add_csv(r, cca, seed, v);
	if (r->format == REPORT_FORMAT_JSON && add_json(r, cca, seed, v, result, world) < 0)
		return -ENOMEM;
	return remember(r, cca, v);
}

static void print_table(struct report *r)
{
	fprintf(r->out, "%-16s", "median of runs");
	for (size_t i = 0; i < r->n_series; i++)
		fprintf(r->out, "%14s", r->series[i].cca);
	fputc('\n', r->out);
	for (int k = 0; k < FIELD_COUNT_; k++) {
		fprintf(r->out, "%-16s", fields[k].name);
		for (size_t i = 0; i < r->n_series; i++)
			fprintf(r->out, "%14.*f", fields[k].digits,
				sim_median(r->series[i].value[k], r->series[i].n));
		fputc('\n', r->out);
	}
}

static int print_json(struct report *r)
{
	json_t *medians = json_array(), *all;
	int failed;

	for (size_t i = 0; i < r->n_series; i++) {
		json_t *o = json_pack("{s:s, s:i}", "cca", r->series[i].cca, "runs",
				      (int)r->series[i].n);

		for (int k = 0; k < FIELD_COUNT_; k++)
			json_object_set_new(
				o, fields[k].name,
				json_real(sim_median(r->series[i].value[k], r->series[i].n)));
		json_array_append_new(medians, o);
	}
	all = json_pack("{s:o, s:O}", "medians", medians, "runs", r->runs);
	failed = !all || json_dumpf(all, r->out, JSON_INDENT(1) | JSON_REAL_PRECISION(8)) < 0;
	fputc('\n', r->out);
	json_decref(all);
	return failed ? -ENOMEM : 0;
}

int report_finish(struct report *r)
{
	int failed = 0;

	if (r->format == REPORT_FORMAT_TABLE)
		print_table(r);
	else if (r->format == REPORT_FORMAT_JSON)
		failed = print_json(r);
	for (size_t i = 0; i < r->n_series; i++) {
		for (int k = 0; k < FIELD_COUNT_; k++)
			free(r->series[i].value[k]);
	}
	free(r->series);
	json_decref(r->runs);
	free(r);
	return failed;
}
