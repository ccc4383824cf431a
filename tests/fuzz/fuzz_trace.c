/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parser of delivery traces: whatever is accepted must keep the promises of the header. */
#include "../lab/linkemu/trace.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct pep_trace *trace)
{
	if (!trace->count || !trace->period_ms || trace->period_ms > PEP_TRACE_MAX_MS)
		abort();
	for (size_t i = 1; i < trace->count; i++)
		if (trace->ms[i] < trace->ms[i - 1])
			abort();
	if (trace->ms[trace->count - 1] != trace->period_ms)
		abort();
	if (!pep_trace_mean_rate(trace))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pep_trace trace = {0};
	char *said = NULL;
	size_t said_size = 0;
	FILE *in = size ? fmemopen((void *)data, size, "r") : NULL;
	FILE *errors = open_memstream(&said, &said_size);

	if (in && errors) {
		int err = pep_trace_read(in, "trace", errors, &trace);

		fflush(errors);
		/* One line about what is wrong, or a trace and no word. */
		if ((err == 0) != (said_size == 0) || (err && trace.ms))
			abort();
		if (!err)
			check(&trace);
		pep_trace_fini(&trace);
	}
	if (in)
		fclose(in);
	if (errors)
		fclose(errors);
	free(said);
	return 0;
}
