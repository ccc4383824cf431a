/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Invariant: a trace that was accepted has at least one opportunity and a period of at least 1 ms.
 */
#include "trace.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The longest line accepted, with its newline: leading zeros are allowed, novels are not. */
#define LINE_SIZE 32

struct reader {
	FILE *in;
	FILE *errors;
	const char *name;
	unsigned int line;
};

static int complain(const struct reader *r, const char *what)
{
	fprintf(r->errors, "%s:%u: %s\n", r->name, r->line, what);
	return -EINVAL;
}

/* Reads the digits of one line. A NUL or any other byte is an error, never a silent end. */
static int parse_ms(const struct reader *r, const char *text, size_t length, uint32_t *ret)
{
	uint64_t value = 0;
	size_t i;

	for (i = 0; i < length; i++) {
		if (text[i] < '0' || text[i] > '9')
			return complain(r, "expected a whole number of milliseconds");
		value = value * 10 + (uint64_t)(text[i] - '0');
		if (value > PEP_TRACE_MAX_MS)
			return complain(r, "time beyond 24 hours (86400000 ms)");
	}
	*ret = (uint32_t)value;
	return 0;
}

static int append(struct pep_trace *trace, size_t *capacity, uint32_t ms)
{
	if (trace->count == *capacity) {
		size_t more = *capacity ? *capacity * 2 : 1024;
		uint32_t *grown = realloc(trace->ms, more * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		trace->ms = grown;
		*capacity = more;
	}
	trace->ms[trace->count++] = ms;
	return 0;
}

/* Reads one line; *@ret_end says that there was none left. */
static int next_line(struct reader *r, uint32_t *ret_ms, bool *ret_end)
{
	char text[LINE_SIZE];
	size_t length = 0;
	int c;

	r->line++;
	while ((c = getc(r->in)) != EOF && c != '\n') {
		if (length == sizeof(text))
			return complain(r, "line too long, expected one number");
		text[length++] = (char)c;
	}
	if (ferror(r->in)) {
		complain(r, "read error");
		return -EIO;
	}
	*ret_end = c == EOF && !length;
	if (*ret_end)
		return 0;
	if (length && text[length - 1] == '\r')
		length--;
	if (!length)
		return complain(r, "empty line, expected a number of milliseconds");
	return parse_ms(r, text, length, ret_ms);
}

static int read_lines(struct reader *r, struct pep_trace *trace)
{
	size_t capacity = 0;
	uint32_t ms = 0, last = 0;
	bool end;
	int err;

	for (;;) {
		err = next_line(r, &ms, &end);
		if (err)
			return err;
		if (end)
			break;
		if (ms < last)
			return complain(r, "time goes back, expected it not to decrease");
		if (trace->count == PEP_TRACE_MAX_LINES)
			return complain(r, "too many lines (more than 8388608)");
		err = append(trace, &capacity, ms);
		if (err)
			return err;
		last = ms;
	}
	if (!trace->count)
		return complain(r, "no opportunity at all, expected one number a line");
	if (!last)
		return complain(r, "the last line is the period and must be at least 1 ms");
	trace->period_ms = last;
	return 0;
}

int pep_trace_read(FILE *in, const char *name, FILE *errors, struct pep_trace *ret)
{
	struct reader reader = {.in = in, .errors = errors, .name = name};
	struct pep_trace trace = {0};
	int err = read_lines(&reader, &trace);

	if (err) {
		pep_trace_fini(&trace);
		return err;
	}
	*ret = trace;
	return 0;
}

int pep_trace_load(const char *path, FILE *errors, struct pep_trace *ret)
{
	FILE *in = fopen(path, "re");
	int err;

	if (!in) {
		err = -errno;
		fprintf(errors, "%s: cannot open the trace: %s\n", path, strerror(-err));
		return err;
	}
	err = pep_trace_read(in, path, errors, ret);
	fclose(in);
	return err;
}

void pep_trace_fini(struct pep_trace *trace)
{
	free(trace->ms);
	*trace = (struct pep_trace){0};
}

uint64_t pep_trace_mean_rate(const struct pep_trace *trace)
{
	uint64_t rate =
		(uint64_t)trace->count * PEP_TRACE_PACKET_BYTES * 8 * 1000 / trace->period_ms;

	return rate ? rate : 1;
}
