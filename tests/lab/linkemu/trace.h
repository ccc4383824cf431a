/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_LINKEMU_TRACE_H
#define PEP_LINKEMU_TRACE_H

/*
 * Delivery traces in the Mahimahi format: each line is the millisecond, counted from the start, of
 * one opportunity to send 1500 bytes; lines do not go back in time; the last line is also the
 * period after which the trace repeats.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define PEP_TRACE_PACKET_BYTES 1500
#define PEP_TRACE_MAX_LINES    (8u << 20)
#define PEP_TRACE_MAX_MS       (24u * 3600 * 1000)

struct pep_trace {
	uint32_t *ms;       /* opportunities in file order; not decreasing */
	size_t count;       /* >= 1 */
	uint32_t period_ms; /* the last line; >= 1 */
};

/**
 * Reads a trace from @in; @name is for messages only. One line "NAME:LINE: ..." about what is wrong
 * goes to @errors. Returns 0 and fills @ret (release with pep_trace_fini), or -EINVAL, -ENOMEM or
 * -EIO with @ret untouched.
 */
int pep_trace_read(FILE *in, const char *name, FILE *errors, struct pep_trace *ret);

/** The same for the file @path; also -ENOENT, -EACCES, ... with a line to @errors. */
int pep_trace_load(const char *path, FILE *errors, struct pep_trace *ret);

void pep_trace_fini(struct pep_trace *trace);

/** Mean rate in bit/s over one period; at least 1. */
uint64_t pep_trace_mean_rate(const struct pep_trace *trace);

#endif
