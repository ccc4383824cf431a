/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Invariant: what the core sees here is what the BPF glue shows it in the kernel, unit for unit. */
#include "cca_core.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int word_index(const char *words, const char *value, uint32_t *ret)
{
	size_t length = strlen(value);
	uint32_t i = 0;

	for (const char *w = words; length && *w; i++) {
		size_t n = strcspn(w, "|");

		if (n == length && !strncmp(w, value, n)) {
			*ret = i;
			return 0;
		}
		w += n + (w[n] == '|');
	}
	return -EINVAL;
}

static int parse_value(const struct sim_cca_param *p, const char *value, uint32_t *ret)
{
	unsigned long v;
	char *end;

	if (strchr(p->unit, '|'))
		return word_index(p->unit, value, ret);
	errno = 0;
	v = strtoul(value, &end, 10);
	if (*value < '0' || *value > '9' || *end || errno || v < p->min || v > p->max)
		return -EINVAL;
	*ret = (uint32_t)v;
	return 0;
}

int sim_cca_param_set(const struct sim_cca_param *table, void *conf, const char *key,
		      const char *value)
{
	for (const struct sim_cca_param *p = table; p->key; p++) {
		if (!strcmp(p->key, key))
			return parse_value(p, value, (uint32_t *)((char *)conf + p->offset));
	}
	return -ENOENT;
}

void sim_cca_param_print(const struct sim_cca_param *table, FILE *out)
{
	for (const struct sim_cca_param *p = table; p->key; p++)
		fprintf(out, "  %-20s %u..%u %s: %s\n", p->key, p->min, p->max, p->unit, p->help);
}

struct pep_cc_sock sim_cca_sock(struct sim_tcp *tp)
{
	return (struct pep_cc_sock){
		.now_us = tp->now_ns / 1000,
		.delivered_us = tp->delivered_ns / 1000,
		.clock_ns = tp->now_ns,
		.wstamp_ns = tp->wstamp_ns,
		.pacing_rate = tp->pacing_rate,
		.max_pacing_rate = UINT64_MAX,
		.delivered = tp->delivered,
		.lost = tp->lost,
		.inflight = sim_tcp_in_flight(tp),
		.cwnd = tp->cwnd,
		.cwnd_clamp = UINT32_MAX,
		.ssthresh = tp->ssthresh,
		.app_limited = tp->app_limited,
		.mss_bytes = tp->mss,
		.srtt_us = tp->srtt_us >> 3,
		.mdev_us = tp->mdev_us >> 2,
		.min_rtt_us = tp->min_rtt_us,
		.pacing_shift = 10,
		.ca_state = (uint8_t)tp->state,
		.cwnd_limited = sim_tcp_cwnd_limited(tp),
	};
}

struct pep_cc_rate sim_cca_rate(const struct sim_rate *rs)
{
	return (struct pep_cc_rate){
		.interval_us = rs->interval_us,
		.rtt_us = rs->rtt_us,
		.delivered = rs->delivered,
		.prior_delivered = rs->prior_delivered,
		.losses = rs->losses,
		.acked_sacked = rs->acked_sacked,
		.prior_inflight = rs->prior_in_flight,
		.app_limited = rs->is_app_limited,
		.ack_delayed = rs->is_ack_delayed,
	};
}

void sim_cca_apply(struct sim_tcp *tp, const struct pep_cc_out *out)
{
	tp->cwnd = out->cwnd;
	tp->ssthresh = out->ssthresh;
	tp->pacing_rate = out->pacing_rate;
	tp->app_limited = out->app_limited;
}
