/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_BASE_METRICS_TEXT_H
#define PEP_BASE_METRICS_TEXT_H

/* The two text formats, one line at a time. */

#include "base/metrics.h"

#define METRICS_MAX_LABELS 3

/** Labels of one series; a NULL name ends them. Values are escaped when written. */
struct metrics_labels {
	struct {
		const char *name, *value;
	} of[METRICS_MAX_LABELS + 1];
};

/** The family being written. */
struct metrics_family {
	FILE *out;
	enum pep_metrics_format format;
	const char *name;
	enum pep_metric_type type;
};

/** HELP and TYPE lines. */
void metrics_family_begin(const struct metrics_family *family, const char *help);

/** One sample line with an integer value. */
void metrics_integer(const struct metrics_family *family, const struct metrics_labels *labels,
		     uint64_t value);

/** One sample line with @value nanoseconds as seconds. */
void metrics_seconds(const struct metrics_family *family, const struct metrics_labels *labels,
		     uint64_t value_ns);

/** The lines of one histogram; @in_ns says that bounds and sum are ns and are written as seconds.
 */
void metrics_histogram(const struct metrics_family *family, const struct metrics_labels *labels,
		       const struct pep_stats_histogram *histogram, const uint64_t *bounds,
		       bool in_ns);

/** What follows the last family. */
void metrics_end(FILE *out, enum pep_metrics_format format);

#endif
