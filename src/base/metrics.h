/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_BASE_METRICS_H
#define PEP_BASE_METRICS_H

/*
 * The metrics that edgepep exports. The table in metrics.c is the only place where a metric exists;
 * the exposition, doc/METRICS.md and its test are made from it.
 */

#include <stdio.h>

#include "base/stats_read.h"

enum pep_metrics_format {
	PEP_METRICS_FORMAT_PROMETHEUS,  /* text format 0.0.4 */
	PEP_METRICS_FORMAT_OPENMETRICS, /* 1.0.0, ends with "# EOF" */
};

enum pep_metric_type {
	PEP_METRIC_TYPE_COUNTER,
	PEP_METRIC_TYPE_GAUGE,
	PEP_METRIC_TYPE_HISTOGRAM,
};

/** The monitor's own numbers. */
struct pep_metrics_monitor {
	uint64_t requests, refused_connections, connections, render_ns;
};

/** What one exposition is made of. */
struct pep_metrics_input {
	bool up; /* false: only the monitor's own metrics and edgepep_up 0 are written */
	const struct pep_stats_info *info;
	const struct pep_stats_block *totals;
	const struct pep_stats_block *workers; /* info->workers of them */
	struct pep_metrics_monitor monitor;
};

/** Writes every metric to @out. The caller checks ferror(). */
void pep_metrics_write(const struct pep_metrics_input *input, enum pep_metrics_format format,
		       FILE *out);

/** The Content-Type of @format. */
const char *pep_metrics_content_type(enum pep_metrics_format format);

/** One row of the table, for documentation and its test. */
struct pep_metric_info {
	const char *name; /* as in the text format, counters with _total */
	enum pep_metric_type type;
	const char *labels; /* "segment, direction", "" for none */
	const char *help;
};

/** Row number @i, or false past the last. */
bool pep_metrics_get(size_t i, struct pep_metric_info *ret);

const char *pep_metric_type_name(enum pep_metric_type type);

/** Writes the table as a Markdown document (doc/METRICS.md's reference part). */
void pep_metrics_document(FILE *out);

#endif
