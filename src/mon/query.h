/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef PEP_MON_QUERY_H
#define PEP_MON_QUERY_H

/* The part of a URL behind '?'. */

#include "mon/flowset.h"

struct pep_query {
	unsigned int seconds; /* 0: not given */
	struct pep_flowset_query flows;
	bool closed; /* recently closed flows in place of live ones */
};

/** Which parameters an endpoint takes. */
enum pep_query_set {
	PEP_QUERY_NONE,
	PEP_QUERY_SECONDS, /* seconds=1..600 */
	PEP_QUERY_FLOWS,   /* limit=1..500 sort= order=asc|desc client=ADDRESS state=live|closed */
};

#define PEP_QUERY_WHY_SIZE 160

/**
 * Reads @text, percent-encoded as sent. Returns 0, or -EINVAL with @why telling the parameter and
 * what was expected (ASCII; what the client sent is not repeated in it).
 */
int pep_query_parse(const char *text, enum pep_query_set allowed, struct pep_query *ret,
		    char why[PEP_QUERY_WHY_SIZE]);

#endif
