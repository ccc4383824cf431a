/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The monitor's parsers: request heads, queries and Accept. What is checked beside memory: a head
 * is never longer than its data, and cutting it short asks for more or refuses, never accepts.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "mon/http_parse.h"
#include "mon/query.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_status(int status)
{
	switch (-status) {
	case 400:
	case 405:
	case 411:
	case 413:
	case 414:
	case 431:
	case 505:
		assert(*pep_http_reason(-status));
		return;
	default:
		abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pep_http_request request, shorter;
	char why[PEP_QUERY_WHY_SIZE];
	struct pep_query query;
	char *copy = malloc(size + 1);
	int n;

	if (!copy)
		return 0;
	/* An exact copy, so that a sanitizer sees a read beyond the end. */
	memcpy(copy, data, size);
	n = pep_http_parse(copy, size, &request);
	if (n < 0) {
		check_status(n);
	} else if (n > 0) {
		assert((size_t)n <= size && n <= PEP_HTTP_MAX_HEAD);
		assert(request.path[0] == '/' && strlen(request.path) <= PEP_HTTP_MAX_TARGET);
		assert(request.body_length <= PEP_HTTP_MAX_BODY);
		assert(pep_http_parse(copy, (size_t)n - 1, &shorter) <= 0);
		for (int set = PEP_QUERY_NONE; set <= PEP_QUERY_FLOWS; set++)
			(void)pep_query_parse(request.query, (enum pep_query_set)set, &query, why);
		n = pep_http_accept_quality(request.accept, "text/plain");
		assert(n >= 0 && n <= 1000);
	}

	copy[size] = '\0';
	if (pep_query_parse(copy, PEP_QUERY_FLOWS, &query, why) == 0)
		assert(query.flows.limit >= 1 && query.flows.limit <= 500);
	free(copy);
	return 0;
}
