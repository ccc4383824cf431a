/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_BASE_METRICS_COLLECT_H
#define PEP_BASE_METRICS_COLLECT_H

/* What the table in metrics.c is made of: rows, and the collectors that write a row's series. */

#include "base/metrics_text.h"

/* A metric that is there although no daemon is. */
#define ALWAYS 0x1
/* The value is in ns and is written in seconds. */
#define SECONDS 0x2

struct metrics_row {
	const char *name;
	enum pep_metric_type type;
	const char *labels;
	const char *help;
	void (*collect)(const struct metrics_row *row, const struct pep_metrics_input *in,
			const struct metrics_family *family);
	int arg; /* for the collector: which counter, gauge, ... */
	unsigned int flags;
};

/* Plain numbers of the header and of the monitor. */
enum plain {
	PLAIN_UP,
	PLAIN_START,
	PLAIN_HEARTBEAT,
	PLAIN_DRAINING,
	PLAIN_BYPASS,
	PLAIN_CONFIG_LOADED,
	PLAIN_CONFIG_OK,
	PLAIN_FLOWS_LIMIT,
	PLAIN_MEMORY_LIMIT,
	PLAIN_CPU,
	PLAIN_RESIDENT,
	PLAIN_LOG_ERRORS,
	PLAIN_LOG_WARNINGS,
	PLAIN_MON_REQUESTS,
	PLAIN_MON_CONNECTIONS,
	PLAIN_MON_REFUSED,
	PLAIN_MON_RENDER,
};

enum per_cca {
	PER_CCA_SENT,
	PER_CCA_RETRANSMITTED,
	PER_CCA_FALLBACKS
};

enum per_segment {
	PER_SEGMENT_BUSY,
	PER_SEGMENT_RWND,
	PER_SEGMENT_SNDBUF
};

typedef void metrics_collector(const struct metrics_row *row, const struct pep_metrics_input *in,
			       const struct metrics_family *f);

metrics_collector metrics_collect_plain;
metrics_collector metrics_collect_counter;
metrics_collector metrics_collect_gauge, metrics_collect_held;
metrics_collector metrics_collect_closed;
metrics_collector metrics_collect_bypassed, metrics_collect_refused;
metrics_collector metrics_collect_connect_failures;
metrics_collector metrics_collect_payload, metrics_collect_per_cca;
metrics_collector metrics_collect_per_segment;
metrics_collector metrics_collect_limited, metrics_collect_segment_histogram;
metrics_collector metrics_collect_histogram, metrics_collect_worker_histogram;
metrics_collector metrics_collect_segment_gauge;

#endif
