/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Invariant: a scenario that passed scenario_check() gives simulations that can run. */
#include "scenario.h"
#include "evq.h"

#include "base/units.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MS 1000000ull
#define S  1000000000ull

void scenario_init(struct scenario *s)
{
	*s = (struct scenario){
		.rate = 20000000 / 8,
		.rtt_ns = 40 * MS,
		.buffer_bdp = 1,
		.n_flows = 1,
		.stagger_ns = 100 * MS,
		.ack_every = 1,
		.ack_delay_ns = 40 * MS,
		.duration_ns = 30 * S,
		.warmup_ns = 5 * S,
		.seed = 1,
		.n_seeds = 1,
	};
}

void scenario_fini(struct scenario *s)
{
	sim_trace_fini(&s->trace);
}

int scenario_parse_time(const char *text, uint64_t *ret_ns)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = {{"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"min", 60e9}};
	char *end;
	double v;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	v = strtod(text, &end);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(end, units[i].unit) != 0 || v * units[i].ns > 1e15)
			continue;
		*ret_ns = (uint64_t)(v * units[i].ns + 0.5);
		return 0;
	}
	return -EINVAL;
}

int scenario_parse_share(const char *text, double *ret)
{
	char *end;
	double v;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	v = strtod(text, &end);
	if (strcmp(end, "%") != 0 || v > 100)
		return -EINVAL;
	*ret = v / 100;
	return 0;
}

static double mean_rate(const struct scenario *s)
{
	return s->trace.n ? sim_trace_rate(&s->trace) : (double)s->rate;
}

static uint64_t group_rtt(const struct scenario *s, const struct scenario_group *g)
{
	return g->rtt_ns ? g->rtt_ns : s->rtt_ns;
}

static double bdp_bytes(const struct scenario *s)
{
	double rtt = 0;
	unsigned int n = 0;

	for (unsigned int i = 0; i < s->n_groups; i++) {
		rtt += (double)group_rtt(s, &s->groups[i]) * s->groups[i].count;
		n += s->groups[i].count;
	}
	rtt = n ? rtt / n : (double)s->rtt_ns;
	if (s->bdp_rtt_ns)
		rtt = (double)s->bdp_rtt_ns;
	return mean_rate(s) * rtt / 1e9;
}

static unsigned int count_flows(const struct scenario *s)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < s->n_groups; i++)
		n += s->groups[i].count;
	return s->n_groups ? n : s->n_flows;
}

static int check_params(const struct scenario *s, FILE *errors)
{
	for (unsigned int i = 0; i < s->n_params; i++) {
		const struct scenario_param *p = &s->params[i];
		const struct sim_cca *cca = sim_cca_find(p->cca);
		void *conf = cca ? calloc(1, cca->conf_size + 1) : NULL;
		int r = conf && cca->set ? cca->set(conf, p->key, p->value) : -ENOENT;

		free(conf);
		if (r == 0)
			continue;
		fprintf(errors, "param '%s.%s=%s': %s\n", p->cca, p->key, p->value,
			r == -ENOENT ? "no such control or parameter; see --list-controls"
				     : "value out of range; see --list-controls");
		return -EINVAL;
	}
	return 0;
}

int scenario_check(const struct scenario *s, FILE *errors)
{
	unsigned int flows = count_flows(s);

	if (flows < 1 || flows > SIM_MAX_FLOWS) {
		fprintf(errors, "%u flows; expected 1 to %u\n", flows, SIM_MAX_FLOWS);
		return -EINVAL;
	}
	if (s->warmup_ns >= s->duration_ns) {
		fprintf(errors, "warm-up is not shorter than the run; set 'time' and 'warmup'\n");
		return -EINVAL;
	}
	if (!s->trace.n && !s->rate) {
		fprintf(errors, "the rate is 0; expected more at the start\n");
		return -EINVAL;
	}
	if (s->n_steps && !s->steps[s->n_steps - 1].rate) {
		fprintf(errors, "the last rate-at is 0; expected the link to come back\n");
		return -EINVAL;
	}
	return check_params(s, errors);
}

static int make_cca_conf(const struct scenario *s, const struct sim_cca *cca, void **ret)
{
	void *conf = calloc(1, cca->conf_size + 1);

	if (!conf)
		return -ENOMEM;
	if (cca->defaults)
		cca->defaults(conf);
	for (unsigned int i = 0; i < s->n_params; i++) {
		if (!strcmp(s->params[i].cca, cca->name))
			(void)cca->set(conf, s->params[i].key, s->params[i].value);
	}
	*ret = conf;
	return 0;
}

static void link_conf(const struct scenario *s, struct sim_link_conf *l)
{
	*l = (struct sim_link_conf){
		.trace = s->trace.n ? &s->trace : NULL,
		.buffer_bytes = UINT64_MAX / 2,
		.buffer_packets = s->buffer_packets,
		.loss = s->loss,
		.burst_start = s->burst_start,
		.burst_end = s->burst_end,
		.burst_loss = s->burst_loss,
	};
	l->steps[l->n_steps++] = (struct sim_step){0, s->rate};
	for (unsigned int i = 0; i < s->n_steps && l->n_steps < SIM_LINK_MAX_STEPS; i++)
		l->steps[l->n_steps++] = s->steps[i];
	if (s->buffer_bytes)
		l->buffer_bytes = s->buffer_bytes;
	else if (s->buffer_bdp > 0)
		l->buffer_bytes = (uint64_t)fmax(s->buffer_bdp * bdp_bytes(s), SIM_WIRE_BYTES);
}

static void add_flows(const struct scenario *s, const struct scenario_group *g,
		      const struct sim_cca *cca, const void *cca_conf, struct sim_prng *prng,
		      struct sim_conf *conf)
{
	for (unsigned int i = 0; i < g->count; i++) {
		conf->flows[conf->n_flows++] = (struct sim_flow_conf){
			.cca = cca,
			.cca_conf = cca_conf,
			.rtt_ns = group_rtt(s, g),
			.start_ns = g->start_ns + sim_prng_below64(prng, s->stagger_ns),
			.stop_ns = g->stop_ns,
			.bytes = g->bytes,
			.app_rate = g->app_rate,
			.app_chunk = g->app_chunk,
			.ack_every = s->ack_every,
			.ack_delay_ns = s->ack_delay_ns,
		};
	}
}

int scenario_run_init(struct scenario_run *run, const struct scenario *s, const struct sim_cca *cca,
		      uint64_t seed)
{
	struct scenario_group all = {.count = s->n_flows, .stop_ns = SIM_NEVER};
	struct sim_prng prng;
	unsigned int n = s->n_groups ? s->n_groups : 1;

	*run = (struct scenario_run){.conf = {
					     .duration_ns = s->duration_ns,
					     .warmup_ns = s->warmup_ns,
					     .jitter_ns = s->jitter_ns,
					     .ack_jitter_ns = s->ack_jitter_ns,
					     .seed = seed,
					     .series_ns = s->series_ns,
				     }};
	sim_prng_seed(&prng, seed, 4);
	link_conf(s, &run->conf.link);
	for (unsigned int i = 0; i < n; i++) {
		const struct scenario_group *g = s->n_groups ? &s->groups[i] : &all;
		const struct sim_cca *own = g->cca ? g->cca : cca;

		if (make_cca_conf(s, own, &run->cca_conf[i]) < 0) {
			scenario_run_fini(run);
			return -ENOMEM;
		}
		add_flows(s, g, own, run->cca_conf[i], &prng, &run->conf);
	}
	return 0;
}

void scenario_run_fini(struct scenario_run *run)
{
	for (unsigned int i = 0; i <= SCENARIO_MAX_GROUPS; i++) {
		free(run->cca_conf[i]);
		run->cca_conf[i] = NULL;
	}
}
