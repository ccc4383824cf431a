/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Invariant: ms[] never decreases and its last value, the period, is above 0. */
#include "trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LINES 20000000u
#define MAX_MS    (24u * 3600u * 1000u)

static int append(struct sim_trace *t, size_t *room, uint32_t ms)
{
	if (t->n == *room) {
		size_t more = *room ? *room * 2 : 4096;
		uint32_t *p = reallocarray(t->ms, more, sizeof(*p));

		if (!p)
			return -ENOMEM;
		t->ms = p;
		*room = more;
	}
	t->ms[t->n++] = ms;
	t->period_ms = ms;
	return 0;
}

static int parse_line(const char *path, unsigned int line, char *text, uint32_t last, FILE *errors,
		      uint32_t *ret_ms)
{
	char *end;
	unsigned long v;

	text[strcspn(text, "\r\n")] = '\0';
	errno = 0;
	v = strtoul(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end || errno || v > MAX_MS) {
		fprintf(errors, "%s:%u: '%.20s' is not a time in whole milliseconds (0 to %u)\n",
			path, line, text, MAX_MS);
		return -EINVAL;
	}
	if (v < last) {
		fprintf(errors,
			"%s:%u: time %lu is before the line above (%u); expected a rising list\n",
			path, line, v, last);
		return -EINVAL;
	}
	*ret_ms = (uint32_t)v;
	return 0;
}

static int read_lines(FILE *f, const char *path, FILE *errors, struct sim_trace *t)
{
	char text[64];
	unsigned int line = 0;
	size_t room = 0;
	int r;

	while (fgets(text, sizeof(text), f)) {
		uint32_t ms;

		r = parse_line(path, ++line, text, t->period_ms, errors, &ms);
		if (r < 0)
			return r;
		if (t->n >= MAX_LINES) {
			fprintf(errors, "%s:%u: too long; at most %u lines are read\n", path, line,
				MAX_LINES);
			return -EFBIG;
		}
		r = append(t, &room, ms);
		if (r < 0)
			return r;
	}
	if (ferror(f)) {
		fprintf(errors, "%s: cannot read: %s\n", path, strerror(EIO));
		return -EIO;
	}
	if (!t->period_ms) {
		fprintf(errors,
			"%s:%u: the last time is 0 or there is none; expected a length in ms\n",
			path, line);
		return -EINVAL;
	}
	return 0;
}

int sim_trace_load(const char *path, FILE *errors, struct sim_trace *ret)
{
	struct sim_trace t = {0};
	FILE *f = fopen(path, "re");
	int r;

	if (!f) {
		r = -errno;
		fprintf(errors, "%s: cannot open: %s\n", path, strerror(-r));
		return r;
	}
	r = read_lines(f, path, errors, &t);
	fclose(f);
	if (r < 0) {
		sim_trace_fini(&t);
		return r;
	}
	*ret = t;
	return 0;
}

void sim_trace_fini(struct sim_trace *t)
{
	free(t->ms);
	*t = (struct sim_trace){0};
}

double sim_trace_rate(const struct sim_trace *t)
{
	return (double)t->n * SIM_TRACE_CHANCE_BYTES * 1000.0 / t->period_ms;
}
