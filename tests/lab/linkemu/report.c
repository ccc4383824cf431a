/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report.h"

#include <jansson.h>

static json_t *times_us(const struct pep_hist *hist)
{
	return json_pack("{s:f, s:f, s:f, s:f, s:f}", "mean", pep_hist_mean(hist) / 1e3, "p50",
			 (double)pep_hist_quantile(hist, 0.50) / 1e3, "p95",
			 (double)pep_hist_quantile(hist, 0.95) / 1e3, "p99",
			 (double)pep_hist_quantile(hist, 0.99) / 1e3, "max",
			 (double)hist->max / 1e3);
}

static json_t *drops(const struct pep_link_stats *s, const struct pep_nfq *nfq)
{
	return json_pack("{s:I, s:I, s:I, s:I}", "loss", (json_int_t)s->dropped[PEP_LINK_DROP_LOSS],
			 "burst", (json_int_t)s->dropped[PEP_LINK_DROP_BURST], "buffer",
			 (json_int_t)s->dropped[PEP_LINK_DROP_BUFFER], "kernel",
			 (json_int_t)pep_nfq_missed(nfq));
}

/* Mean rate between the first and the last packet released, in bit/s. */
static double mean_rate(const struct pep_link_stats *s)
{
	if (s->last_out_ns <= s->first_out_ns)
		return 0;
	return (double)s->bytes_out * 8e9 / (double)(s->last_out_ns - s->first_out_ns);
}

static json_t *one_link(const struct pep_link *link, const struct pep_nfq *nfq)
{
	const struct pep_link_conf *c = pep_link_conf(link);
	const struct pep_link_stats *s = pep_link_stats(link);

	return json_pack(
		"{s:s, s:i, s:I, s:I, s:I, s:I, s:f, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o}",
		"name", c->name, "queue", (int)c->queue, "packets_in", (json_int_t)s->packets_in,
		"bytes_in", (json_int_t)s->bytes_in, "packets_out", (json_int_t)s->packets_out,
		"bytes_out", (json_int_t)s->bytes_out, "rate_bps", mean_rate(s), "dropped",
		drops(s, nfq), "loss_runs", (json_int_t)s->loss_runs, "buffer_bytes",
		(json_int_t)c->buffer_bytes, "backlog_bytes",
		(json_int_t)pep_link_backlog_bytes(link), "max_backlog_bytes",
		(json_int_t)s->max_backlog_bytes, "max_packet_bytes",
		(json_int_t)s->max_packet_bytes, "overruns", (json_int_t)pep_nfq_overruns(nfq),
		"queue_delay_us", times_us(&s->queue_delay), "lateness_us", times_us(&s->lateness));
}

char *pep_report_json(struct pep_link *const *links, struct pep_nfq *const *queues,
		      unsigned int count, uint64_t now_ns)
{
	json_t *list = json_array();
	json_t *root;
	char *text;
	unsigned int i;

	for (i = 0; i < count; i++)
		json_array_append_new(list, one_link(links[i], queues[i]));
	root = json_pack("{s:f, s:o}", "monotonic_s", (double)now_ns / 1e9, "links", list);
	text = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(15));
	json_decref(root);
	return text;
}
