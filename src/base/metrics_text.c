/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers are printed from integers, so neither the locale nor rounding changes them. */
#include "base/metrics_text.h"

#include <inttypes.h>
#include <string.h>

#define NS UINT64_C(1000000000)

/* In OpenMetrics a counter's family is named without the suffix that its samples carry. */
static int family_name_length(const struct metrics_family *f)
{
	size_t length = strlen(f->name), suffix = strlen("_total");

	if (f->format == PEP_METRICS_FORMAT_OPENMETRICS && f->type == PEP_METRIC_TYPE_COUNTER &&
	    length > suffix && strcmp(f->name + length - suffix, "_total") == 0)
		length -= suffix;
	return (int)length;
}

void metrics_family_begin(const struct metrics_family *f, const char *help)
{
	int length = family_name_length(f);

	fprintf(f->out, "# HELP %.*s %s\n", length, f->name, help);
	fprintf(f->out, "# TYPE %.*s %s\n", length, f->name, pep_metric_type_name(f->type));
}

static void write_escaped(FILE *out, const char *value)
{
	for (; *value; value++) {
		if (*value == '\\' || *value == '"')
			fprintf(out, "\\%c", *value);
		else if (*value == '\n')
			fputs("\\n", out);
		else
			fputc(*value, out);
	}
}

/* @le is the bucket's bound, or NULL. */
static void write_head(const struct metrics_family *f, const char *suffix,
		       const struct metrics_labels *labels, const char *le)
{
	const char *open = "{";

	fprintf(f->out, "%s%s", f->name, suffix);
	for (int i = 0; labels && i < METRICS_MAX_LABELS && labels->of[i].name; i++) {
		fprintf(f->out, "%s%s=\"", open, labels->of[i].name);
		write_escaped(f->out, labels->of[i].value);
		fputc('"', f->out);
		open = ",";
	}
	if (le) {
		fprintf(f->out, "%sle=\"%s\"", open, le);
		open = ",";
	}
	fputs(*open == ',' ? "} " : " ", f->out);
}

#define SECONDS_SIZE 40

/* "12.5", "0.001", and "3.0" (OpenMetrics wants bucket bounds to look like floats). */
static const char *format_seconds(uint64_t ns, char text[SECONDS_SIZE])
{
	int n = snprintf(text, SECONDS_SIZE, "%" PRIu64 ".%09" PRIu64, ns / NS, ns % NS);

	while (n > 2 && text[n - 1] == '0' && text[n - 2] != '.')
		text[--n] = '\0';
	return text;
}

void metrics_integer(const struct metrics_family *f, const struct metrics_labels *labels,
		     uint64_t value)
{
	write_head(f, "", labels, NULL);
	fprintf(f->out, "%" PRIu64 "\n", value);
}

void metrics_seconds(const struct metrics_family *f, const struct metrics_labels *labels,
		     uint64_t value_ns)
{
	char text[SECONDS_SIZE];

	write_head(f, "", labels, NULL);
	fprintf(f->out, "%s\n", format_seconds(value_ns, text));
}

void metrics_histogram(const struct metrics_family *f, const struct metrics_labels *labels,
		       const struct pep_stats_histogram *histogram, const uint64_t *bounds,
		       bool in_ns)
{
	uint64_t sum = pep_stats_word_get(&histogram->sum), count = 0;
	char text[SECONDS_SIZE];
	int i;

	for (i = 0; bounds[i]; i++) {
		if (in_ns)
			format_seconds(bounds[i], text);
		else
			snprintf(text, sizeof(text), "%" PRIu64 ".0", bounds[i]);
		count += pep_stats_word_get(&histogram->buckets[i]);
		write_head(f, "_bucket", labels, text);
		fprintf(f->out, "%" PRIu64 "\n", count);
	}
	count += pep_stats_word_get(&histogram->buckets[i]);
	write_head(f, "_bucket", labels, "+Inf");
	fprintf(f->out, "%" PRIu64 "\n", count);

	write_head(f, "_sum", labels, NULL);
	if (in_ns)
		fprintf(f->out, "%s\n", format_seconds(sum, text));
	else
		fprintf(f->out, "%" PRIu64 "\n", sum);
	write_head(f, "_count", labels, NULL);
	fprintf(f->out, "%" PRIu64 "\n", count);
}

void metrics_end(FILE *out, enum pep_metrics_format format)
{
	if (format == PEP_METRICS_FORMAT_OPENMETRICS)
		fputs("# EOF\n", out);
}
