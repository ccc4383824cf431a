/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Every series exists from the start, with 0, so that rates and alerts work from the first scrape.
 */
#include "base/metrics_collect.h"

#include <string.h>

#include "base/attribution.h"
#include "base/log.h"

static void value(const struct metrics_row *row, const struct metrics_family *f,
		  const struct metrics_labels *labels, uint64_t v)
{
	if (row->flags & SECONDS)
		metrics_seconds(f, labels, v);
	else
		metrics_integer(f, labels, v);
}

static uint64_t plain_value(enum plain which, const struct pep_metrics_input *in)
{
	const struct pep_stats_info *info = in->info;

	switch (which) {
	case PLAIN_UP:
		return in->up;
	case PLAIN_START:
		return info->start_real_ns;
	case PLAIN_HEARTBEAT:
		return info->heartbeat_real_ns;
	case PLAIN_DRAINING:
		return info->state == PEP_STATS_STATE_DRAINING;
	case PLAIN_BYPASS:
		return info->state == PEP_STATS_STATE_BYPASS;
	case PLAIN_CONFIG_LOADED:
		return info->config_loaded_real_ns;
	case PLAIN_CONFIG_OK:
		return !info->config_failed;
	case PLAIN_FLOWS_LIMIT:
		return info->max_flows;
	case PLAIN_MEMORY_LIMIT:
		return info->memory_limit_bytes;
	case PLAIN_CPU:
		return info->cpu_ns;
	case PLAIN_RESIDENT:
		return info->resident_bytes;
	case PLAIN_LOG_ERRORS:
		return info->log_messages[PEP_LOG_LEVEL_ERROR];
	case PLAIN_LOG_WARNINGS:
		return info->log_messages[PEP_LOG_LEVEL_WARNING];
	case PLAIN_MON_REQUESTS:
		return in->monitor.requests;
	case PLAIN_MON_CONNECTIONS:
		return in->monitor.connections;
	case PLAIN_MON_REFUSED:
		return in->monitor.refused_connections;
	case PLAIN_MON_RENDER:
		return in->monitor.render_ns;
	}
	return 0;
}

void metrics_collect_plain(const struct metrics_row *row, const struct pep_metrics_input *in,
			   const struct metrics_family *f)
{
	value(row, f, NULL, plain_value((enum plain)row->arg, in));
}

void metrics_collect_counter(const struct metrics_row *row, const struct pep_metrics_input *in,
			     const struct metrics_family *f)
{
	value(row, f, NULL, pep_stats_word_get(&in->totals->counters[row->arg]));
}

void metrics_collect_gauge(const struct metrics_row *row, const struct pep_metrics_input *in,
			   const struct metrics_family *f)
{
	value(row, f, NULL, pep_stats_word_get(&in->totals->gauges[row->arg]));
}

void metrics_collect_held(const struct metrics_row *row, const struct pep_metrics_input *in,
			  const struct metrics_family *f)
{
	static const enum pep_gauge gauges[PEP_DIRECTION_COUNT_] = {
		[PEP_DIRECTION_DOWNLINK] = PEP_GAUGE_HELD_DOWNLINK_BYTES,
		[PEP_DIRECTION_UPLINK] = PEP_GAUGE_HELD_UPLINK_BYTES,
	};

	for (int d = 0; d < PEP_DIRECTION_COUNT_; d++) {
		struct metrics_labels l = {
			{{"direction", pep_direction_name((enum pep_direction)d)}}};

		value(row, f, &l, pep_stats_word_get(&in->totals->gauges[gauges[d]]));
	}
}

static void reason_value(const struct metrics_row *row, const struct metrics_family *f,
			 const char *reason, const pep_stats_word *word)
{
	struct metrics_labels l = {{{"reason", reason}}};

	value(row, f, &l, pep_stats_word_get(word));
}

void metrics_collect_closed(const struct metrics_row *row, const struct pep_metrics_input *in,
			    const struct metrics_family *f)
{
	for (int i = 0; i < PEP_CLOSE_COUNT_; i++)
		reason_value(row, f, pep_close_name((enum pep_close)i), &in->totals->closed[i]);
}

void metrics_collect_bypassed(const struct metrics_row *row, const struct pep_metrics_input *in,
			      const struct metrics_family *f)
{
	for (int i = 0; i < PEP_BYPASS_COUNT_; i++)
		reason_value(row, f, pep_bypass_name((enum pep_bypass)i), &in->totals->bypassed[i]);
}

void metrics_collect_refused(const struct metrics_row *row, const struct pep_metrics_input *in,
			     const struct metrics_family *f)
{
	for (int i = 0; i < PEP_REFUSE_COUNT_; i++)
		reason_value(row, f, pep_refuse_name((enum pep_refuse)i), &in->totals->refused[i]);
}

void metrics_collect_connect_failures(const struct metrics_row *row,
				      const struct pep_metrics_input *in,
				      const struct metrics_family *f)
{
	for (int i = 0; i < PEP_CONNECT_FAILURE_COUNT_; i++)
		reason_value(row, f, pep_connect_failure_name((enum pep_connect_failure)i),
			     &in->totals->connect_failures[i]);
}

void metrics_collect_payload(const struct metrics_row *row, const struct pep_metrics_input *in,
			     const struct metrics_family *f)
{
	for (int s = 0; s < PEP_SEGMENT_COUNT_; s++) {
		for (int d = 0; d < PEP_DIRECTION_COUNT_; d++) {
			for (int c = 0; c < PEP_STATS_MAX_CLASSES && in->info->classes[c][0]; c++) {
				struct metrics_labels l = {{
					{"segment", pep_segment_name((enum pep_segment)s)},
					{"direction", pep_direction_name((enum pep_direction)d)},
					{"class", in->info->classes[c]},
				}};

				value(row, f, &l,
				      pep_stats_word_get(&in->totals->payload_bytes[s][d][c]));
			}
		}
	}
}

static const pep_stats_word *per_cca(const struct pep_stats_block *b, enum per_cca which, int s)
{
	switch (which) {
	case PER_CCA_SENT:
		return b->sent_bytes[s];
	case PER_CCA_RETRANSMITTED:
		return b->retransmitted_bytes[s];
	case PER_CCA_FALLBACKS:
		break;
	}
	return b->cca_fallbacks[s];
}

void metrics_collect_per_cca(const struct metrics_row *row, const struct pep_metrics_input *in,
			     const struct metrics_family *f)
{
	for (int s = 0; s < PEP_SEGMENT_COUNT_; s++) {
		const pep_stats_word *words = per_cca(in->totals, (enum per_cca)row->arg, s);

		for (int c = 0; c < PEP_STATS_MAX_CCAS; c++) {
			struct metrics_labels l = {{
				{"segment", pep_segment_name((enum pep_segment)s)},
				{"cca", in->info->ccas[c]},
			}};

			if (in->info->ccas[c][0])
				value(row, f, &l, pep_stats_word_get(&words[c]));
		}
	}
}

void metrics_collect_per_segment(const struct metrics_row *row, const struct pep_metrics_input *in,
				 const struct metrics_family *f)
{
	for (int s = 0; s < PEP_SEGMENT_COUNT_; s++) {
		const pep_stats_word *words[] = {
			[PER_SEGMENT_BUSY] = in->totals->busy_ns,
			[PER_SEGMENT_RWND] = in->totals->rwnd_limited_ns,
			[PER_SEGMENT_SNDBUF] = in->totals->sndbuf_limited_ns,
		};
		struct metrics_labels l = {{{"segment", pep_segment_name((enum pep_segment)s)}}};

		value(row, f, &l, pep_stats_word_get(&words[row->arg][s]));
	}
}

void metrics_collect_limited(const struct metrics_row *row, const struct pep_metrics_input *in,
			     const struct metrics_family *f)
{
	for (int d = 0; d < PEP_DIRECTION_COUNT_; d++) {
		for (int r = 0; r < PEP_LIMIT_COUNT_; r++) {
			enum pep_direction direction = (enum pep_direction)d;
			enum pep_limit limit = (enum pep_limit)r;
			enum pep_segment s = pep_attribution_segment(limit, direction);
			struct metrics_labels l = {{
				{"segment", pep_segment_name(s)},
				{"direction", pep_direction_name(direction)},
				{"reason", pep_limit_name(limit)},
			}};

			value(row, f, &l, pep_stats_word_get(&in->totals->limited_ns[s][d][r]));
		}
	}
}

static bool in_ns(enum pep_histogram h)
{
	return h != PEP_HISTOGRAM_WIRELESS_THROUGHPUT && h != PEP_HISTOGRAM_WIRED_THROUGHPUT;
}

/* @arg is the wireless one; the wired one follows it in the enum. */
void metrics_collect_segment_histogram(const struct metrics_row *row,
				       const struct pep_metrics_input *in,
				       const struct metrics_family *f)
{
	for (int s = 0; s < PEP_SEGMENT_COUNT_; s++) {
		enum pep_histogram h = (enum pep_histogram)(row->arg + s);
		struct metrics_labels l = {{{"segment", pep_segment_name((enum pep_segment)s)}}};

		metrics_histogram(f, &l, &in->totals->histograms[h], pep_histogram_bounds(h),
				  in_ns(h));
	}
}

void metrics_collect_histogram(const struct metrics_row *row, const struct pep_metrics_input *in,
			       const struct metrics_family *f)
{
	enum pep_histogram h = (enum pep_histogram)row->arg;

	metrics_histogram(f, NULL, &in->totals->histograms[h], pep_histogram_bounds(h), in_ns(h));
}

void metrics_collect_worker_histogram(const struct metrics_row *row,
				      const struct pep_metrics_input *in,
				      const struct metrics_family *f)
{
	enum pep_histogram h = (enum pep_histogram)row->arg;

	for (unsigned int w = 0; w < in->info->workers; w++) {
		char number[12];
		struct metrics_labels l = {{{"worker", number}}};

		snprintf(number, sizeof(number), "%u", w);
		metrics_histogram(f, &l, &in->workers[w].histograms[h], pep_histogram_bounds(h),
				  in_ns(h));
	}
}

/* row->arg is the wireless one; the wired one follows it in the enum. */
void metrics_collect_segment_gauge(const struct metrics_row *row,
				   const struct pep_metrics_input *in,
				   const struct metrics_family *f)
{
	for (int s = 0; s < PEP_SEGMENT_COUNT_; s++) {
		struct metrics_labels l = {{{"segment", pep_segment_name((enum pep_segment)s)}}};

		value(row, f, &l, pep_stats_word_get(&in->totals->gauges[row->arg + s]));
	}
}
